// Independent jobs on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace rankplane {

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

// job(0) ... job(n_jobs - 1), on up to n_threads threads; with n_threads = n_jobs, all at the same time. The first exception is
// passed on.
template <class Job> void parallel_for(std::size_t n_jobs, std::size_t n_threads, const Job& job) {
    if (n_threads <= 1) {
        for (std::size_t i = 0; i < n_jobs; ++i) job(i);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_mutex;
    const auto work = [&] {
        try {
            for (std::size_t i = next.fetch_add(1); i < n_jobs; i = next.fetch_add(1)) job(i);
        } catch (...) {
            const std::lock_guard lock(failure_mutex);
            if (!failure) failure = std::current_exception();
        }
    };
    Threads threads;
    for (std::size_t t = 1; t < std::min(n_threads, n_jobs); ++t) threads.start(work);
    work();
    threads.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace rankplane
