// Whether batches are small enough, measured while they are solved.
//
// The steps s_i of a batch's rows each assume that the row's score changes by |x_i|^2 s_i. All steps together change it by x_i . v,
// v = sum s_j x_j. Row by row, they would lower the dual objective by at least half the sum of |x_i|^2 s_i^2; in a batch, they do
// so less
//
//     1/2 (|v|^2 - sum |x_i|^2 s_i^2),     |v|^2 = sum s_i (x_i . v).
//
// So a batch descends as long as |v|^2 is below twice the sum of the |x_i|^2 s_i^2, and converges as row by row while the two are
// about the same. The sweep compares the scores of some batches before and after their steps (`compare_scores` in sweep_lanes.hpp).
// Of coupled lanes, both are sums over the lanes of a group.
//
// This is no bound for rows in general but what happens to these, in the directions in which their duals really move.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "common/memory.hpp"
#include "linear/block.hpp"

namespace rankplane {

class BatchWatch {
  public:
    // One batch in so many is looked at, and the first of every sweep: more in the first sweeps, in which most goes wrong.
    static std::size_t check_every(std::size_t n_sweeps) { return n_sweeps < 2 ? 4 : 32; }

    explicit BatchWatch(std::size_t n_parts = 1, std::size_t width = 1)
        : width_(width), changes_(n_parts * width), own_changes_(width) {}

    double* changes() { return changes_.data(); }          // [part][lane] x_i . v s_i, on the columns of each part
    double* own_changes() { return own_changes_.data(); }  // [lane] |x_i|^2 s_i^2

    // How many rows a batch may have in the next sweep.
    template <class T> std::size_t allowed(const Block<T>& block, std::size_t batch) const {
        const double ratio = largest_ratio(block);
        if (ratio <= most) return batch;
        // What exceeds 1 grows with the other rows of the batch.
        const double bearable = 1 + static_cast<double>(batch - 1) * 0.5 * (most - 1) / (ratio - 1);
        return std::clamp<std::size_t>(static_cast<std::size_t>(bearable), 1, std::max<std::size_t>(1, batch / 2));
    }

    // Whether the batches of the sweep were so much too large that what it found is not worth keeping: the first sweeps have not
    // found much yet.
    template <class T> bool has_run_away(const Block<T>& block) const {
        const bool is_early = block.n_runs == 1 && block.n_sweeps <= 4;
        return largest_ratio(block) > (is_early ? far_too_much : std::numeric_limits<double>::max());
    }

    void begin_sweep() {
        std::fill(changes_.data(), changes_.data() + changes_.size(), 0.0);
        std::fill(own_changes_.data(), own_changes_.data() + own_changes_.size(), 0.0);
    }

  private:
    static constexpr double most = 1.7, far_too_much = 2;

    // Of the running lanes; infinite if any has left the numbers.
    template <class T> double largest_ratio(const Block<T>& block) const {
        std::vector<double> changes(width_, 0.0), own_changes(own_changes_.data(), own_changes_.data() + width_);
        for (std::size_t i = 0; i < changes_.size(); ++i) changes[i % width_] += changes_[i];
        block.add_up(changes);
        block.add_up(own_changes);
        double largest = 0;
        for (std::size_t l = 0; l < block.lanes.size(); ++l) {
            if (!block.is_running(l) || (changes[l] == 0 && own_changes[l] == 0)) continue;
            const double ratio = changes[l] / own_changes[l];
            if (!std::isfinite(ratio)) return std::numeric_limits<double>::infinity();
            largest = std::max(largest, ratio);
        }
        return largest;
    }

    std::size_t width_;
    Buffer<double> changes_, own_changes_;
};

}  // namespace rankplane
