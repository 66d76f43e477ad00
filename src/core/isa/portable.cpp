// The loops for any machine: 16-byte packs, which the compiler turns into SSE2 on x86-64 and NEON on arm64.
#include "common/rows.hpp"
#include "kernel/loops.hpp"
#include "linear/soft.hpp"
#include "linear/sweep.hpp"

#define RANKPLANE_PACK_BYTES 16

namespace rankplane::portable {
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
}  // namespace rankplane::portable
