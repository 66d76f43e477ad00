// Threads that work on one thing step by step, and meet between the steps.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

#include "common/control.hpp"

namespace rankplane {

// Processors that this process may use. A team of more threads than that would only wait.
inline std::size_t usable_processors() {
#if defined(__linux__)
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) == 0) return static_cast<std::size_t>(std::max(1, CPU_COUNT(&usable)));
#endif
    return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

// Nobody goes on from a meeting before all members have come. Who waits looks for a moment whether the others come, since a
// thread that sleeps takes long to wake up, and then sleeps, since the processor may be what the others are waiting for.
class Team {
  public:
    Team(std::size_t size, Control& control) : next_size_(static_cast<std::uint32_t>(size)), size_(next_size_), control_(control) {}
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    std::size_t size() const { return size_.load(std::memory_order_relaxed); }

    // From the next meeting on, only the first members belong to the team; the others learn it from `size` and do not come again.
    void shrink_to(std::size_t size) { next_size_ = static_cast<std::uint32_t>(size); }

    // Returns false if the work is to be stopped; whoever got false must not come again. Adds to `spun` how long the processor was
    // kept busy with waiting.
    bool meet(std::chrono::nanoseconds& spun) {
        if (size() == 1 && next_size_ == 1) return !control_.should_stop();
        const std::uint32_t meeting = meeting_.load();
        if (n_here_.fetch_add(1) + 1 == size()) {
            n_here_.store(0);
            size_.store(next_size_, std::memory_order_relaxed);
            meeting_.fetch_add(1);
            if (n_asleep_.load() > 0) {
                { const std::lock_guard nobody_falls_asleep(mutex_); }
                begun_.notify_all();
            }
            return !is_stopping();
        }
        const auto came = std::chrono::steady_clock::now();
        bool has_begun = false;
        for (int n_looks = 0; n_looks < max_looks && !has_begun; ++n_looks) {
            has_begun = meeting_.load(std::memory_order_acquire) != meeting;
            if (!has_begun) pause();
        }
        spun += std::chrono::steady_clock::now() - came;
        if (has_begun) return !is_stopping();
        n_asleep_.fetch_add(1);
        std::unique_lock lock(mutex_);
        while (meeting_.load() == meeting && !is_stopping()) {
            begun_.wait_for(lock, Control::shortest_pause);
            control_.look_if_due();
        }
        n_asleep_.fetch_sub(1);
        return !is_stopping();
    }

  private:
    static constexpr int max_looks = 2000;  // some 20 to 80 microseconds

    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }
    bool is_stopping() const { return __atomic_load_n(control_.stop_flag(), __ATOMIC_RELAXED); }

    std::uint32_t next_size_;  // written between meetings, by one member
    std::atomic<std::uint32_t> size_;
    Control& control_;
    alignas(64) std::atomic<std::uint32_t> n_here_{0};
    alignas(64) std::atomic<std::uint32_t> meeting_{0};  // the number of the next one
    alignas(64) std::atomic<std::uint32_t> n_asleep_{0};
    std::mutex mutex_;
    std::condition_variable begun_;
};

// A member's place in a team. The first one watches how much the team gets done: where other work keeps the processors busy,
// members wait for each other most of the time, and fewer of them are faster.
class Seat {
  public:
    Seat(Team& team, std::size_t member) : team_(team), member_(member) {}

    std::size_t member() const { return member_; }
    std::size_t n_members() const { return team_.size(); }
    bool is_dismissed() const { return member_ >= team_.size(); }
    bool meet() { return team_.meet(spun_); }

    // Between meetings.
    void watch() {
        if (member_ > 0 || team_.size() == 1) return;
        const auto now = std::chrono::steady_clock::now();
        const std::chrono::nanoseconds passed = now - began_;
        if (passed < window) return;
        const std::chrono::nanoseconds cpu = thread_time();
        // Members have equal shares of the work. What all of them do in a second must be more than one alone would do.
        const auto done = static_cast<std::int64_t>(team_.size()) * (cpu - cpu_began_ - spun_);
        if (is_watching_ && 10 * done < 9 * passed) team_.shrink_to(team_.size() / 2);
        is_watching_ = true;
        began_ = now;
        cpu_began_ = cpu;
        spun_ = {};
    }

  private:
    static constexpr std::chrono::milliseconds window{10};

    static std::chrono::nanoseconds thread_time() {
        timespec time{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    }

    Team& team_;
    std::size_t member_;
    bool is_watching_ = false;
    std::chrono::steady_clock::time_point began_{};
    std::chrono::nanoseconds cpu_began_{0}, spun_{0};
};

}  // namespace rankplane
