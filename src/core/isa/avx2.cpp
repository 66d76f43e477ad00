// The loops for AVX2 with FMA.
//
// The target is set by a region, not by a compiler flag: a flag would also apply to inline functions of the headers above the
// region, which the linker could then use on machines without these instructions.
#include "common/rows.hpp"
#include "kernel/loops.hpp"
#include "linear/soft.hpp"
#include "linear/sweep.hpp"

#if defined(__x86_64__)

#define RANKPLANE_PACK_BYTES 32

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

namespace rankplane::avx2 {
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
}  // namespace rankplane::avx2

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
