// Long work that can be watched and interrupted from Python.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <optional>
#include <utility>

#include "common/control.hpp"

namespace rankplane {

// Runs `work` on this thread, without the GIL. As often as `control` looks, a pending Ctrl-C is heard and `look` is called, both
// with the GIL. Should either raise, the work is stopped, and the error goes on when it has ended.
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

// The same for work that has nothing to tell: work(control).
template <class Work> void run_interruptibly(const Work& work) {
    Control control;
    run_interruptibly(control, [] {}, [&] { work(control); });
}

// For long loops that hold the GIL: hears Ctrl-C every so many rounds.
inline void hear_signals(std::size_t round) {
    if (round % 0x10000 == 0xFFFF && PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

}  // namespace rankplane
