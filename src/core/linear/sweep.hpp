// One sweep: a coordinate step for every visited row, on all lanes at once.
//
// A lane is one direction w with its offsets b_k, one per cut (one cut, the bias, for the models with a plane per rank; all
// thresholds for the models that share one direction). For a row x with the signed dual variables a_k of that lane,
//
//     s = w . x       z_k = s + b_k       w = sum a x       b_k = centre_k + rho * sum a_k
//
// and the demand (lo, hi, t, e, D) that the row makes of cut k, the dual along a_k alone is
//
//     minimise over a' in [lo, hi]:   1/2 A (a'-a)^2 + G (a'-a) + e |a'|,     A = x.x + rho + D,   G = z_k + D a - t
//
// whose solution is a Newton step, a soft threshold and a clamp. Weights are stored feature-major, W[column][lane], so that
// one cache line brings a column's weights for all lanes and every operation below is one SIMD instruction over lanes.
//
// Lanes never mix: neither a lane's arithmetic nor the order in which it visits rows depends on which lanes share its block.
// That is what makes the result the same, to the last bit, for any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rankplane {

enum DemandField : std::size_t { field_lo, field_hi, field_t, field_e, field_d, n_demand_fields };

// One bit per lane of a block: set while the lane still visits the row.
template <std::size_t Width>
using LaneBits = std::conditional_t<(Width <= 8), std::uint8_t, std::conditional_t<Width == 16, std::uint16_t, std::uint32_t>>;

// How the members of a team, threads that each hold a range of the columns, add up their parts of a score. Every member writes its
// part of the score of a row into a slot of its own and reads the slots of all members for a row that it wrote `delay` rows before:
// by then the others have most likely written theirs, and nobody waits. All add the parts in the same order, so they all take the
// same step.
struct Exchange {
    char* slots = nullptr;       // [member][ring][slot]
    std::size_t slot_bytes = 0;  // the number of a row, then the part of its score
    std::size_t n_members = 1;
    std::size_t member = 0;
    std::size_t delay = 0;
    std::uint64_t* n_rows_done = nullptr;  // of this member, since the team began: numbers the rows
    const bool* stop = nullptr;            // set when the solve is abandoned; nobody is then waited for
    void (*yield)() = nullptr;

    static constexpr std::size_t ring = 16;  // more than twice the delay: a slot is not written before all have read it
    static constexpr std::size_t max_delay = 4;
};

// What a sweep reads and writes. Every `[lane]` is the block's width long.
template <class T> struct SweepState {
    std::size_t n_cuts;
    T rho;
    bool may_shrink;

    const T* demands;                // [table row][cut][field][lane]
    const std::int32_t* table_rows;  // [visit]
    const T* row_weights;            // [row], or null for all ones; scales lo and hi, divides D
    const T* square_norms;           // [row]

    T* weights;  // [column][lane]
    T* offsets;  // [cut][lane]
    T* duals;    // [visit][cut][lane]
    void* bits;  // [visit], LaneBits

    Exchange exchange;

    const T* shrink_beyond;  // [lane] the largest violation of the sweep before
    T* violation_sum;        // [lane] added to
    T* violation_max;        // [lane] raised
    std::uint32_t* dropped;  // lanes that shrank a row
};

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
    void (*sweep)(const SweepState<T>&, const Rows&, const std::uint32_t* visits, std::size_t n_visits);
    void (*sweep_together)(const SweepState<T>&, const Rows&, const std::uint32_t* visits, std::size_t n_visits);
    void (*add_scores)(const T* weights, const Rows&, const std::uint32_t* picks, std::size_t n_picks, T* scores);
    CertifyLoop<T, Rows> certify;
};

enum class Isa { portable, avx2, avx512 };

// The loops for the instruction set and a width out of `block_widths`. Defined in isa_*.cpp, one file per instruction set.
template <class T, class Rows> LaneLoops<T, Rows> lane_loops(Isa isa, std::size_t width);

inline constexpr std::size_t block_widths[] = {1, 2, 4, 8, 16, 32};

}  // namespace rankplane
