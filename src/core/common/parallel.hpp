// Independent jobs on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/control.hpp"

namespace rankplane {

// More threads would only cost memory.
inline constexpr std::size_t max_threads = 1024;

// Joins its threads when it goes out of scope.
class Threads {
  public:
    Threads() = default;
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    ~Threads() { join(); }

    template <class Work> void start(Work&& work) { threads_.emplace_back(std::forward<Work>(work)); }
    void join() {
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
    }

  private:
    std::vector<std::thread> threads_;
};

// Runs job(0) ... job(n_jobs - 1) on up to n_threads threads, including this one; with n_threads = n_jobs, all at the same time.
// Rethrows the first exception. Long jobs check `control` themselves; between jobs, and while this thread waits for the others, it
// is checked here.
template <class Job> void parallel_for(std::size_t n_jobs, std::size_t n_threads, Control& control, const Job& job) {
    n_threads = std::min(n_threads, n_jobs);
    if (n_threads <= 1) {
        for (std::size_t i = 0; i < n_jobs; ++i) {
            control.check();
            job(i);
        }
        return;
    }
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::condition_variable changed;
    std::exception_ptr failure, stop;  // separate, since a stop may be the consequence of another job's failure
    std::size_t n_working = n_threads;
    const auto work = [&] {
        std::exception_ptr own_failure, own_stop;
        try {
            for (std::size_t i = next.fetch_add(1); i < n_jobs; i = next.fetch_add(1)) {
                control.check();
                job(i);
            }
        } catch (const Stopped&) { own_stop = std::current_exception(); } catch (...) {
            own_failure = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        if (own_failure && !failure) failure = own_failure;
        if (own_stop) stop = own_stop;
        --n_working;
        changed.notify_one();
    };
    Threads threads;
    {
        // Jobs that run at the same time may wait for each other, so none starts before all threads exist.
        const std::lock_guard gate(mutex);
        try {
            for (std::size_t t = 1; t < n_threads; ++t) {
                threads.start([&] {
                    { const std::lock_guard passed(mutex); }
                    work();
                });
            }
        } catch (const std::system_error&) {
            next = n_jobs;
            throw std::runtime_error("n_jobs must be a number of threads that the system lets us start. Got " +
                                     std::to_string(n_threads) + ".");
        }
    }
    work();
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, Control::shortest_pause, [&] { return n_working == 0; })) {
        lock.unlock();
        control.look_if_due();
        lock.lock();
    }
    lock.unlock();
    threads.join();
    if (failure) std::rethrow_exception(failure);
    if (stop) std::rethrow_exception(stop);
}

}  // namespace rankplane
