#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "common/control.hpp"
#include "common/parallel.hpp"

namespace rankplane::testing {
namespace {

void test_jobs() {
    for (const std::size_t n_threads : {0, 1, 2, 3, 8}) {
        for (const std::size_t n_jobs : {0, 1, 2, 5, 100}) {
            Control control;
            std::vector<std::atomic<int>> n_runs(n_jobs);
            parallel_for(n_jobs, n_threads, control, [&](std::size_t i) { ++n_runs[i]; });
            bool is_once_each = true;
            for (const auto& n : n_runs) is_once_each = is_once_each && n == 1;
            CHECK(is_once_each, std::to_string(n_jobs) + " jobs on " + std::to_string(n_threads) + " threads");
        }
        const auto fail = [&] {
            Control control;
            parallel_for(5, n_threads, control, [](std::size_t i) {
                if (i == 3) throw std::runtime_error("job 3");
            });
        };
        CHECK(throws<std::runtime_error>(fail), "a job's exception reaches the caller");
    }
}

// One thread or one job needs no other thread.
void test_stays_on_this_thread() {
    const auto check_here = [](std::size_t n_jobs, std::size_t n_threads) {
        Control control;
        parallel_for(n_jobs, n_threads, control, [here = std::this_thread::get_id()](std::size_t) {
            CHECK(std::this_thread::get_id() == here, "a job on the caller's thread");
        });
    };
    check_here(10, 1);
    check_here(1, 8);
}

// The thread that listens looks, whether it works or waits for others, and stops them all.
void test_looks(std::size_t n_threads, bool is_busy) {
    const std::thread::id here = std::this_thread::get_id();
    Control control;
    std::size_t n_looks = 0;
    std::atomic<std::size_t> n_started{0};
    bool is_here = true;
    control.listen([&] {
        is_here = is_here && std::this_thread::get_id() == here;
        if (++n_looks == 2) control.request_stop();
    });
    const auto endless = [&](std::size_t) {
        ++n_started;
        // Until all jobs have been taken, or this thread would take them all.
        while (!is_busy && std::this_thread::get_id() == here && n_started < n_threads) std::this_thread::yield();
        if (!is_busy && std::this_thread::get_id() == here) return;
        while (true) control.check();
    };
    const std::string where = std::to_string(n_threads) + (is_busy ? " threads at work" : " threads, this one idle");
    CHECK(throws<Stopped>([&] { parallel_for(n_threads, n_threads, control, endless); }), where);
    CHECK(n_looks == 2 && is_here, where);
}

}  // namespace

void test_parallel() {
    test_jobs();
    test_stays_on_this_thread();
    test_looks(1, true);
    test_looks(3, true);
    test_looks(3, false);
}

}  // namespace rankplane::testing
