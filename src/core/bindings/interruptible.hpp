// Long work that reports progress to Python and can be interrupted.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <optional>
#include <utility>

#include "common/control.hpp"

namespace rankplane {

// Runs `work` on this thread without the GIL. From time to time it checks for Ctrl-C and calls `look`, both with the GIL. If either
// raises, the work is stopped, and the error is rethrown when it has ended.
template <class Work, class Look> void run_interruptibly(Control& control, const Look& look, const Work& work) {
    namespace nb = nanobind;
    std::optional<nb::python_error> raised;
    control.listen([&] {
        const nb::gil_scoped_acquire locked;
        try {
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
            look();
        } catch (nb::python_error& error) {
            raised.emplace(std::move(error));
            control.request_stop();
        }
    });
    std::exception_ptr failure;
    {
        const nb::gil_scoped_release unlocked;
        try {
            work();
        } catch (...) { failure = std::current_exception(); }
    }
    if (raised) throw nb::python_error(std::move(*raised));
    if (failure) std::rethrow_exception(failure);
}

// The same for work that reports no progress: work(control).
template <class Work> void run_interruptibly(const Work& work) {
    Control control;
    run_interruptibly(control, [] {}, [&] { work(control); });
}

// For long loops that hold the GIL: checks for Ctrl-C every 65,536 rounds.
inline void check_signals(std::size_t round) {
    if (round % 0x10000 == 0xFFFF && PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

}  // namespace rankplane
