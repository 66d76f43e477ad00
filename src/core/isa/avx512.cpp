// The loops for AVX-512.
//
// The target is set by a region, never by a flag on the file: a flag would also apply to inline code from the headers above the
// region, which the linker could then pick for machines that lack these instructions.
#include "common/rows.hpp"
#include "kernel/loops.hpp"
#include "linear/soft.hpp"
#include "linear/sweep.hpp"

#if defined(__x86_64__)

#define RANKPLANE_PACK_BYTES 64

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")
#endif

namespace rankplane::avx512 {
#include "linear/pack_lanes.hpp"
//
#include "linear/step_lanes.hpp"
//
#include "linear/sweep_lanes.hpp"
//
#include "linear/certify_lanes.hpp"
//
#include "linear/lane_loops.hpp"
//
#include "kernel/look_lanes.hpp"
}  // namespace rankplane::avx512

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
