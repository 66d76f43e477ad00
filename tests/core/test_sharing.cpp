// Ranges, own memory and sorts, on any number of threads.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/random.hpp"
#include "common/sharing.hpp"
#include "problems.hpp"

namespace rankplane::testing {
namespace {

void test_ranges(std::size_t n_threads) {
    for (const std::size_t n : {0, 1, 16383, 16384, 100001}) {
        Control control;
        std::vector<std::uint8_t> n_visits(n);
        parallel_ranges(n, n_threads, control, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) ++n_visits[i];
        });
        const bool is_once_each = std::all_of(n_visits.begin(), n_visits.end(), [](std::uint8_t visits) { return visits == 1; });
        CHECK(is_once_each, std::to_string(n) + " in ranges on " + std::to_string(n_threads) + " threads");
    }
}

void test_own(std::size_t n_threads) {
    Control control;
    // Not atomic: the thread sanitizer would see two threads with the same one.
    std::vector<std::size_t> n_jobs(n_threads);
    parallel_for_own(1000, n_jobs, control, [](std::size_t, std::size_t& own) { ++own; });
    std::size_t n = 0;
    for (const std::size_t own : n_jobs) n += own;
    CHECK(n == 1000, "every job once");
    const auto fail = [&] {
        parallel_for_own(1000, n_jobs, control, [](std::size_t i, std::size_t&) {
            if (i == 700) throw std::runtime_error("job 700");
        });
    };
    CHECK(throws<std::runtime_error>(fail), "a job's exception reaches the caller");
}

enum class Order { random, rising, falling, crowded };

// Different numbers, in lists of different lengths, some of them empty.
std::vector<Array<std::uint64_t>> make_lists(std::size_t n, Order order) {
    Uniform uniform(static_cast<std::uint64_t>(n) + 7);
    std::vector<Array<std::uint64_t>> lists(9);
    for (std::size_t i = 0; i < n; ++i) {
        const auto random = static_cast<std::uint64_t>(uniform() * 1e9) << 32 | i;
        const std::uint64_t crowded = i % 10 == 0 ? random : i;  // nearly all below any splitter drawn at even distances
        lists[i % 4 + i * 5 / n].push_back(order == Order::random    ? random
                                           : order == Order::rising  ? i
                                           : order == Order::falling ? n - i
                                                                     : crowded);
    }
    return lists;
}

void test_sorted(std::size_t n_threads) {
    for (const std::size_t n : {1, 1000, 5000, 200000}) {
        for (const Order order : {Order::random, Order::rising, Order::falling, Order::crowded}) {
            std::vector<Array<std::uint64_t>> lists = make_lists(n, order);
            std::vector<std::uint64_t> expected;
            for (const auto& list : lists) expected.insert(expected.end(), list.begin(), list.end());
            std::sort(expected.begin(), expected.end());
            Control control;
            const auto found = sorted(std::move(lists), n_threads, control, [](std::uint64_t a, std::uint64_t b) { return a < b; });
            CHECK(std::equal(found.begin(), found.end(), expected.begin(), expected.end()),
                  std::to_string(n) + " on " + std::to_string(n_threads) + " threads");
        }
    }
    Control control;
    const auto is_less = [](int a, int b) { return a < b; };
    CHECK(sorted(std::vector<Array<int>>(3), n_threads, control, is_less).empty(), "nothing to sort");
    control.request_stop();
    CHECK(throws<Stopped>([&] { sorted(std::vector<Array<int>>{{3, 1}, {2}}, n_threads, control, is_less); }), "a stop");
}

}  // namespace

void test_sharing() {
    for (const std::size_t n_threads : {1, 2, 3, 8}) {
        test_ranges(n_threads);
        test_own(n_threads);
        test_sorted(n_threads);
    }
}

}  // namespace rankplane::testing
