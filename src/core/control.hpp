// What goes into a solve besides the data, and what comes out besides the planes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace rankplane {

struct Options {
    double tol = 0.1;
    std::size_t max_sweeps = 1000;
    bool shrinking = true;
    std::uint64_t seed = 0;
    std::size_t n_threads = 1;
    double rho = 1.0;           // how far an offset moves per unit of dual: 1 is a column of ones, 0 no offset
    bool free_offsets = false;  // offsets carry no penalty: rho is then the step of a proximal-point loop
};

struct LaneResult {
    std::size_t n_sweeps = 0;
    bool has_converged = false;
    double violation = 0;  // at the end, relative to the first sweep
    double dual_objective = 0;
    double gap = 0;
    std::size_t n_support = 0;
};

struct Report {
    std::size_t sweep = 0;
    std::size_t n_active_rows = 0;
    std::vector<std::size_t> lanes;
    std::vector<double> violations;  // per lane of `lanes`, relative to the first sweep
};

// How the caller and a running solve talk: stop is read between chunks of rows, reports come after every sweep.
struct Control {
    bool stop = false;  // read and written with atomic builtins, also by the loops that may not use <atomic>
    std::function<void(const Report&)> report;

    bool should_stop() const { return __atomic_load_n(&stop, __ATOMIC_RELAXED); }
    void request_stop() { __atomic_store_n(&stop, true, __ATOMIC_RELAXED); }
};

}  // namespace rankplane
