// The data of the loops over rows, which are in look_lanes.hpp. With a kernel there is no w: a lane keeps the scores of all rows,
// and a step of size d on row i adds d times the kernel row of i to them.
//
// How strongly the dual a of row i on cut k violates optimality, with the demand (lo, hi, t, e, D) and the score z = s + b, follows
// from two numbers that change only when a itself does:
//
//     violation upwards     rise - z,     rise = t - D a - (a < 0 ? -e : e),   or -infinity where a = hi
//     violation downwards   z - fall,     fall = t - D a - (a > 0 ? e : -e),   or +infinity where a = lo
//
// so finding the largest violation reads three numbers per row, whatever the table.
#pragma once

#include <cstddef>

#include "linear/sweep.hpp"

namespace rankplane {

// One lane over some rows.
struct LaneView {
    std::size_t n_rows = 0;
    std::size_t n_cuts = 1;
    double* scores = nullptr;           // [row]
    const double* rise = nullptr;       // [cut][row]
    const double* fall = nullptr;       // [cut][row]
    const double* offsets = nullptr;    // [cut]
    const double* curvature = nullptr;  // [row] A of a step on it
    const double* units = nullptr;      // [row] one over the root of A
};

// The dual with the largest violation, `place` = cut * n_rows + row. Size 0: there is none.
struct Candidate {
    double size = 0;
    std::size_t place = 0;
};

template <class K> struct Move {
    const K* kernel_row = nullptr;
    double size = 0;
};

// A step that is looking for a partner: it has been added to the offsets, but not yet to the scores. `rho` is how far the offset of
// its cut moves per unit of it.
template <class K> struct Leader {
    const K* kernel_row = nullptr;
    double size = 0;
    double curvature = 1;
    std::size_t cut = 0;
    double rho = 0;
};

// Rows in place of X whose "weights" are their scores: row i has a one in column i.
struct ScoreRow {
    std::size_t index = 0;
    static constexpr std::size_t size = 1;
    std::size_t column(std::size_t) const { return index; }
    double value(std::size_t) const { return 1.0; }
};
struct ScoreRows {
    using value_type = double;
    static constexpr bool is_sparse = false;
    std::size_t n_rows = 0;
    ScoreRow operator[](std::size_t row) const { return {row}; }
};

// `K` is the value type of kernel rows.
template <class K> struct KernelLoops {
    // Moves all scores by two steps, then finds the dual whose own step would gain most: violation^2 / A.
    Candidate (*move_and_look)(const LaneView&, const Move<K>& first, const Move<K>& second);
    // After the leader's step, the dual whose step gains most together with a second one of the leader. With the coupling c of the
    // two, the gain is violation^2 / (A - c^2 / A_leader).
    Candidate (*look_for_partner)(const LaneView&, const Leader<K>&);
    // scores[lane][i] += sum over steps of steps[lane][step] * kernel_rows[step][i], for i in [first, last).
    void (*spread)(const K* const* kernel_rows, std::size_t n_steps, const double* const* steps, double* const* scores,
                   std::size_t n_lanes, std::size_t first, std::size_t last);
    CertifyLoop<double, ScoreRows> certify;
};

template <class K> KernelLoops<K> kernel_loops(Isa isa);

}  // namespace rankplane
