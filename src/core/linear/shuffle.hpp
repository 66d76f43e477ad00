// The visits of a sweep: a new random order of all, those of them that any lane still makes, and where batches of them end.
//
// Every member of a team deals its stretches of the old order out to as many new ones at random, and shuffles those that are its
// own: that is a permutation like any other, made in parallel. With one part there is one stretch, and this is a plain shuffle.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "common/random.hpp"
#include "common/team.hpp"
#include "linear/block.hpp"

namespace rankplane {

class ShuffledVisits {
  public:
    explicit ShuffledVisits(std::size_t n_parts = 1) : counts_(n_parts * n_parts, 0), n_active_(n_parts, 0) {}

    std::size_t n_active() const { return std::accumulate(n_active_.begin(), n_active_.end(), std::size_t{0}); }
    const std::vector<std::uint32_t>& ends() const { return ends_; }

    // Called by all members of the team. Returns false if the work is to be stopped.
    template <class T> bool shuffle(Block<T>& block, std::uint64_t seed, std::size_t batch, Seat& seat) {
        const std::size_t n = n_active_.size(), member = seat.member(), n_members = seat.n_members(), n_visits = block.order.size();
        std::uint32_t* const from = block.order.data();
        std::uint32_t* const to = block.active.data();
        const auto each_own = [&](const auto& work) {
            for (std::size_t part = member; part < n; part += n_members) work(part);
        };
        const auto deal = [&](std::size_t stretch, const auto& visit_to) {
            Random random(mix(seed, n + stretch));
            const std::size_t last = n_visits * (stretch + 1) / n;
            for (std::size_t i = n_visits * stretch / n; i < last; ++i) {
                visit_to(from[i], n > 1 ? random.below(static_cast<std::uint32_t>(n)) : 0);
            }
        };
        each_own([&](std::size_t stretch) {
            std::uint32_t* const counts = &counts_[stretch * n];
            std::fill(counts, counts + n, 0u);
            deal(stretch, [&](std::uint32_t, std::uint32_t target) { ++counts[target]; });
        });
        if (!seat.meet()) return false;
        std::vector<std::size_t> begins(n + 1, 0);  // of the new stretches
        for (std::size_t target = 0; target < n; ++target) {
            begins[target + 1] = begins[target];
            for (std::size_t stretch = 0; stretch < n; ++stretch) begins[target + 1] += counts_[stretch * n + target];
        }
        each_own([&](std::size_t stretch) {
            std::vector<std::size_t> next(begins.begin(), begins.end() - 1);
            for (std::size_t before = 0; before < stretch; ++before) {
                for (std::size_t target = 0; target < n; ++target) next[target] += counts_[before * n + target];
            }
            deal(stretch, [&](std::uint32_t visit, std::uint32_t target) { to[next[target]++] = visit; });
        });
        if (!seat.meet()) return false;
        each_own([&](std::size_t target) {
            Random random(target == 0 ? seed : mix(seed, target));
            const std::size_t size = begins[target + 1] - begins[target];
            rankplane::shuffle(to + begins[target], size, random);
            n_active_[target] = block.count_active(to + begins[target], size);
        });
        if (!seat.meet()) return false;
        // One thread's batches are made of places of the order, whether or not other lanes still visit the rows there: a lane's
        // result does not depend on its company. A team's are made of active visits, so that they stay worth a meeting.
        if (n == 1) {
            ends_.clear();
            std::uint32_t n_copied = 0;
            for (std::size_t first = 0; first < n_visits; first += batch) {
                const std::size_t n_here = block.count_active(to + first, std::min(batch, n_visits - first));
                if (n_here == 0) continue;
                block.copy_active(to + first, n_here, from + n_copied);
                n_copied += static_cast<std::uint32_t>(n_here);
                ends_.push_back(n_copied);
            }
        } else {
            each_own([&](std::size_t target) {
                std::size_t first = 0;
                for (std::size_t before = 0; before < target; ++before) first += n_active_[before];
                block.copy_active(to + begins[target], n_active_[target], from + first);
            });
            if (member == 0) {
                ends_.clear();
                for (std::size_t first = 0; first < n_active(); first += batch) {
                    ends_.push_back(static_cast<std::uint32_t>(std::min(n_active(), first + batch)));
                }
            }
        }
        if (!seat.meet()) return false;
        if (member == 0) std::swap(block.order, block.active);
        return seat.meet();
    }

  private:
    std::vector<std::uint32_t> counts_;  // [part][part] how many visits of a stretch go to which
    std::vector<std::size_t> n_active_;  // [part]
    std::vector<std::uint32_t> ends_;    // of each batch, among the active visits
};

}  // namespace rankplane
