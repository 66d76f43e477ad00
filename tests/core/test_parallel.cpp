#include <atomic>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "parallel.hpp"

namespace rankplane::testing {

void test_parallel() {
    for (const std::size_t n_threads : {0, 1, 2, 3, 8}) {
        for (const std::size_t n_jobs : {0, 1, 2, 5, 100}) {
            std::vector<std::atomic<int>> n_runs(n_jobs);
            parallel_for(n_jobs, n_threads, [&](std::size_t i) { ++n_runs[i]; });
            bool is_once_each = true;
            for (const auto& n : n_runs) is_once_each = is_once_each && n == 1;
            CHECK(is_once_each, std::to_string(n_jobs) + " jobs on " + std::to_string(n_threads) + " threads");
        }
        const auto fail = [&] {
            parallel_for(5, n_threads, [](std::size_t i) {
                if (i == 3) throw std::runtime_error("job 3");
            });
        };
        CHECK(throws<std::runtime_error>(fail), "a job's exception reaches the caller");
    }
}

}  // namespace rankplane::testing
