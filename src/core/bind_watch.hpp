// Long work that can be watched and interrupted from Python.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace rankplane {

// Runs `work` without the GIL on a thread of its own, while this one looks out for Ctrl-C and, with the GIL, calls `look` some
// twenty times a second. Should either raise, `stop` is called once, and the error goes on when the work has ended.
template <class Work, class Look, class Stop> void run_interruptibly(const Work& work, const Look& look, const Stop& stop) {
    namespace nb = nanobind;
    std::mutex mutex;
    std::condition_variable changed;
    bool is_finished = false;
    std::exception_ptr failure;
    std::optional<nb::python_error> python_failure;
    {
        const nb::gil_scoped_release unlocked;
        std::thread worker([&] {
            try {
                work();
            } catch (...) { failure = std::current_exception(); }
            const std::lock_guard lock(mutex);
            is_finished = true;
            changed.notify_one();
        });
        std::unique_lock lock(mutex);
        while (!changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return is_finished; })) {
            lock.unlock();
            if (!python_failure) {
                const nb::gil_scoped_acquire locked;
                try {
                    if (PyErr_CheckSignals() != 0) throw nb::python_error();
                    look();
                } catch (nb::python_error& error) {
                    python_failure.emplace(std::move(error));
                    stop();
                }
            }
            lock.lock();
        }
        lock.unlock();
        worker.join();
    }
    if (python_failure) throw nb::python_error(std::move(*python_failure));
    if (failure) std::rethrow_exception(failure);
}

}  // namespace rankplane
