// The loops for any machine: 16-byte packs, which the compiler turns into SSE2 on x86-64 and NEON on arm64.
#include "kernel_loops.hpp"
#include "rows.hpp"
#include "sweep.hpp"

#define RANKPLANE_PACK_BYTES 16

namespace rankplane::portable {
#include "sweep_lanes.hpp"
//
#include "lane_loops.hpp"
//
#include "look_lanes.hpp"
}  // namespace rankplane::portable
