// What follows from a sweep: which lanes have converged, and which get their rows back.
//
// A lane stops when the violations of one full sweep add up to at most `tol` times those of its first sweep. Rows that look settled
// at a bound are shrunk away, lane by lane; when a lane converges on what is left, all its rows come back, and only a sweep over
// all of them can end it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "common/control.hpp"
#include "linear/block.hpp"

namespace rankplane {

// What one sweep adds up. All members of a team add up the same.
template <class T> struct Tally {
    std::vector<double> violation_sum;  // [lane]
    std::vector<T> violation_max;       // [lane]
    std::uint32_t dropped = 0;          // lanes that shrank a row
    std::size_t n_active = 0;

    // Of coupled lanes, what their groups add up.
    void pool(const Block<T>& block) {
        block.add_up(violation_sum);
        block.raise(violation_max);
        dropped = block.with_groups(dropped);
    }
};

// A lane with free offsets has ended when moving them no longer upsets it, that is when the first sweep after the move converges
// at once, and the constraint on its duals holds: while all its rows sit at their bounds a move upsets nobody, however far the
// offset still has to go. Moves the offsets of the others among these lanes.
template <class T>
std::uint32_t settled_offsets(Block<T>& block, std::uint32_t lanes, const Options& options, const Visits& visits) {
    std::uint32_t settled = 0, moved = 0;
    for (std::size_t l = 0; l < block.width; ++l) {
        if ((lanes >> l & 1) == 0) continue;
        const bool is_calm = block.sweeps_since_recentred[l] == 1 && block.lane_sweeps[l] > 1;
        if (is_calm && block.is_balanced(l, visits, options.rho, options.tol)) {
            settled |= 1u << l;
        } else {
            block.recentre(l);
            if (options.ordered_offsets) block.order_offsets(l);
            moved |= 1u << l;
        }
    }
    if (moved != 0) block.activate(moved, visits);
    return settled;
}

template <class T> void judge(Block<T>& block, const Tally<T>& tally, const Options& options, const Visits& visits) {
    // Offsets are moved once violations are so much smaller than after the last move: to solve to the end in between is wasted.
    constexpr double enough_to_recentre = 0.1;
    std::uint32_t converged = 0, soon = 0;
    for (std::size_t l = 0; l < block.width; ++l) {
        if (!block.is_running(l)) continue;
        if (options.ordered_offsets) block.order_offsets(l);
        if (block.first_violation[l] < 0) block.first_violation[l] = tally.violation_sum[l];
        block.violation[l] = tally.violation_sum[l];
        ++block.lane_sweeps[l];
        ++block.sweeps_since_recentred[l];
        const T largest = tally.violation_max[l];
        block.shrink_beyond[l] = largest > 0 ? largest : std::numeric_limits<T>::infinity();
        if (block.sweeps_since_recentred[l] == 1) block.violation_since_recentred[l] = block.violation[l];
        if (block.violation[l] <= options.tol * block.first_violation[l]) {
            converged |= 1u << l;
        } else if (options.free_offsets && block.violation[l] <= enough_to_recentre * block.violation_since_recentred[l]) {
            soon |= 1u << l;
        }
    }
    // Rows shrunk during this sweep were part of it; rows shrunk before were not.
    const std::uint32_t incomplete = converged & block.has_shrunk;
    block.has_shrunk |= tally.dropped;
    std::uint32_t ended = converged & ~incomplete;
    if (options.free_offsets) ended = settled_offsets(block, ended | soon, options, visits);
    if (incomplete != 0) block.activate(incomplete, visits);
    if (ended != 0) block.retire(ended);
}

}  // namespace rankplane
