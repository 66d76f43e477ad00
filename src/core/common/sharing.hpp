// Long loops and sorts, shared among threads. The results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/parallel.hpp"

namespace rankplane {

// job(begin, end) for ranges that together are 0 to n: short enough to share and to be interrupted between them, and long enough
// to be worth a thread.
template <class Job> void parallel_ranges(std::size_t n, std::size_t n_threads, Control& control, const Job& job) {
    constexpr std::size_t shortest = std::size_t{1} << 14, longest = std::size_t{1} << 20;
    const std::size_t n_jobs = std::max({std::size_t{1}, std::min(n / shortest, 4 * n_threads), n / longest});
    parallel_for(n_jobs, n_threads, control, [&](std::size_t i) { job(n * i / n_jobs, n * (i + 1) / n_jobs); });
}

// job(i, own) for i below n_jobs, with an `own` of each thread, such as memory that its jobs use one after another. The number of
// threads is that of the owns.
template <class Own, class Job>
void parallel_for_own(std::size_t n_jobs, std::vector<Own>& owns, Control& control, const Job& job) {
    const std::size_t n_threads = std::min(owns.size(), n_jobs);
    std::atomic<std::size_t> next{0};
    parallel_for(n_threads, n_threads, control, [&](std::size_t thread) {
        for (std::size_t i = next++; i < n_jobs; i = next++) {
            control.check();
            job(i, owns[thread]);
        }
    });
}

// All items of the lists, which are freed, in the order of `is_less`. No two items may be equal. Items are dealt to ranges between
// splitters, which are drawn from a sample, and the ranges are sorted one by one.
template <class Item, class Less>
Array<Item> sorted(std::vector<Array<Item>> lists, std::size_t n_threads, Control& control, const Less& is_less) {
    constexpr std::size_t n_per_range = 1024, most_ranges = 1024, n_per_part = std::size_t{1} << 14, n_sampled = 16;
    // Parts of lists, which threads take.
    struct Part {
        std::size_t list, begin, end;
    };
    std::vector<Part> parts;
    std::size_t n = 0;
    for (std::size_t l = 0; l < lists.size(); ++l) {
        for (std::size_t begin = 0; begin < lists[l].size(); begin += n_per_part) {
            parts.push_back({l, begin, std::min(begin + n_per_part, lists[l].size())});
        }
        n += lists[l].size();
    }
    const std::size_t n_ranges = std::bit_floor(std::clamp<std::size_t>(n / n_per_range, 1, most_ranges));
    std::vector<Item> sample, splitters;
    for (std::size_t i = 0, part = 0, before = 0; n_ranges > 1 && i < n_ranges * n_sampled; ++i) {
        const std::size_t at = n * i / (n_ranges * n_sampled);
        while (at - before >= parts[part].end - parts[part].begin) before += parts[part].end - parts[part].begin, ++part;
        sample.push_back(lists[parts[part].list][parts[part].begin + at - before]);
    }
    std::sort(sample.begin(), sample.end(), is_less);
    for (std::size_t i = n_sampled; i < sample.size(); i += n_sampled) splitters.push_back(sample[i]);

    // Where the items of each part go: a count per part and range, then places, range by range.
    std::vector<std::size_t> places(parts.size() * n_ranges), ends(n_ranges);
    Array<std::uint16_t> ranges(n);
    std::vector<std::size_t> firsts(parts.size());
    for (std::size_t p = 1; p < parts.size(); ++p) firsts[p] = firsts[p - 1] + parts[p - 1].end - parts[p - 1].begin;
    parallel_for(parts.size(), n_threads, control, [&](std::size_t p) {
        const Item* const items = lists[parts[p].list].data();
        for (std::size_t i = parts[p].begin, at = firsts[p]; i < parts[p].end; ++i, ++at) {
            // A binary search whose steps are the same for every item.
            std::size_t range = 0;
            for (std::size_t step = n_ranges / 2; step > 0; step /= 2) {
                range += is_less(items[i], splitters[range + step - 1]) ? 0 : step;
            }
            ranges[at] = static_cast<std::uint16_t>(range);
            ++places[p * n_ranges + range];
        }
    });
    for (std::size_t r = 0, place = 0; r < n_ranges; ++r) {
        for (std::size_t p = 0; p < parts.size(); ++p) place += std::exchange(places[p * n_ranges + r], place);
        ends[r] = place;
    }
    Array<Item> all(n);
    parallel_for(parts.size(), n_threads, control, [&](std::size_t p) {
        const Item* const items = lists[parts[p].list].data();
        std::size_t* const place = places.data() + p * n_ranges;
        for (std::size_t i = parts[p].begin, at = firsts[p]; i < parts[p].end; ++i, ++at) all[place[ranges[at]]++] = items[i];
    });
    lists.clear();
    parallel_for(n_ranges, n_threads, control, [&](std::size_t r) {
        const auto at = [&](std::size_t place) { return all.begin() + static_cast<std::ptrdiff_t>(place); };
        std::sort(at(r == 0 ? 0 : ends[r - 1]), at(ends[r]), is_less);
    });
    return all;
}

}  // namespace rankplane
