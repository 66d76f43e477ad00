// One sweep: a coordinate step for every visited row, on all lanes at once.
//
// A lane is one direction w with its offsets b_k, one per cut (one cut, the bias, for the models with a plane per rank; all
// thresholds for the models that share one direction). For a row x with the signed dual variables a_k of that lane,
//
//     s = w . x       z_k = s + b_k       w = sum a x       b_k = centre_k + rho * sum a_k
//
// and the demand (lo, hi, t, e, D, soft) that the row makes of cut k, the dual along a_k alone is
//
//     minimise over a' in [lo, hi]:   1/2 A (a'-a)^2 + G (a'-a) + e |a'|,     A = x.x + rho + D,   G = z_k + D a - t
//
// whose solution is a Newton step, a soft threshold and a clamp. A soft demand has e |a| replaced by a smooth function, and its
// step is Newton's method (soft.hpp). Weights are stored feature-major, W[column][lane], so that one cache line brings a column's
// weights for all lanes and every operation below is one SIMD instruction over lanes.
//
// Lanes never mix: neither a lane's arithmetic nor the order in which it visits rows depends on which lanes share its block.
// That is what makes the result the same, to the last bit, for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rankplane {

enum DemandField : std::size_t { field_lo, field_hi, field_t, field_e, field_d, field_soft, n_demand_fields };

// One bit per lane of a block: set while the lane still visits the row.
template <std::size_t Width>
using LaneBits = std::conditional_t<(Width <= 8), std::uint8_t, std::conditional_t<Width == 16, std::uint16_t, std::uint32_t>>;

// What a thread of a sweep reads and writes. Every `[lane]` is the block's width long.
template <class T> struct SweepState {
    std::size_t n_cuts;
    T rho;
    bool may_shrink;
    bool is_plain;            // no demand is soft, and no lane is coupled or joined
    std::size_t n_joined;     // lanes of a group, see add_levels; 0 for lanes on their own
    std::size_t batch;        // rows at most
    std::size_t first_visit;  // of the first batch

    const T* demands;                // [table row][cut][field][lane]; field_soft is 2 cosh(e) of a soft demand, or 0
    const std::int32_t* table_rows;  // [visit]
    const T* row_weights;            // [row], or null for all ones; scales lo and hi, divides D
    const T* square_norms;           // [row]

    T* weights;  // [column][lane]
    T* duals;    // [visit][cut][lane]
    void* bits;  // [visit], LaneBits

    const T* pushes;  // [cut][lane] see Block; null if offsets are not in order
    // Of lanes that are coupled, which have one cut. A row's score on lane l is the sum over lanes k of coupling[k][l] w_k . x, and
    // lanes of a group take their steps one after the other, since each moves the scores of all.
    const T* coupling;           // [lane][lane], or null
    const T* own_coupling;       // [lane] its diagonal, or ones
    const std::uint32_t* turns;  // [turn] the lanes that step at the same time
    std::size_t n_turns;

    // Of this thread alone.
    T* offsets;  // [cut][lane]
    T* steps;    // [row of the batch][lane]

    // The columns come in parts, and each part has its own share of every score. Threads take turns in choosing parts.
    std::size_t n_parts;
    std::size_t n_members;  // threads
    std::size_t member;     // this one
    T* scores;              // [part][row of the batch][lane]
    char* batch_rows;       // [row of the batch] a BatchRow, its score and its duals; for more than one part
    bool (*meet)(void* seat);
    void* seat;

    // Of one batch in `check_every`, or none if that is 0, for watch.hpp.
    std::size_t check_every;
    std::size_t first_batch;  // of this call, its number in the sweep
    double* changes;          // [part][lane] added to
    double* own_changes;      // [lane] added to by the thread with the first part

    const T* shrink_beyond;  // [lane] the largest violation of the sweep before
    T* violation_sum;        // [lane] added to
    T* violation_max;        // [lane] raised
    std::uint32_t* dropped;  // lanes that shrank a row
};

// What a step needs to know of a row. The rows of a batch are collected by one thread each and read by all.
template <class T> struct BatchRow {
    T square_norm, row_weight;
    std::int32_t table_row;
    std::uint32_t bits;
};

// Bytes of a BatchRow with its score [lane] and its duals [cut][lane] behind it.
template <class T> std::size_t batch_row_bytes(std::size_t n_cuts, std::size_t width) {
    return sizeof(BatchRow<T>) + (1 + n_cuts) * width * sizeof(T);
}

// What the certificate adds up, per lane, in double. The factors make the duals feasible where the offsets are free and the
// duals of a cut must sum to zero; `repair` is how far that moved them, as a length in the space of w.
struct CertifyState {
    const double* positive_factor;  // [cut][lane]
    const double* negative_factor;  // [cut][lane]
    double* gap;                    // [lane]
    double* dual;                   // [lane] sum of a s + e |a| - t a + 1/2 D a^2
    double* violation_sum;          // [lane]
    double* repair;                 // [lane]
    double* support;                // [lane] rows with a dual that is not zero
    double* of_visit = nullptr;     // [visit] the violations of each visit, or null
};

template <class T, class Rows>
using CertifyLoop = void (*)(const SweepState<T>&, const Rows&, std::size_t first_visit, std::size_t last_visit,
                             const CertifyState&);

// The loops for one width and one instruction set.
template <class T, class Rows> struct LaneLoops {
    void (*sweep)(const SweepState<T>&, const Rows& whole, const Rows* parts, const std::uint32_t* visits,
                  const std::uint32_t* ends, std::size_t n_batches);
    void (*add_scores)(const T* weights, const Rows&, const std::uint32_t* picks, std::size_t n_picks, T* scores);
    CertifyLoop<T, Rows> certify;
};

enum class Isa { portable, avx2, avx512 };

// The loops for the instruction set and a width out of `block_widths`. Defined in isa_*.cpp, one file per instruction set.
template <class T, class Rows> LaneLoops<T, Rows> lane_loops(Isa isa, std::size_t width);

inline constexpr std::size_t block_widths[] = {1, 2, 4, 8, 16, 32};

}  // namespace rankplane
