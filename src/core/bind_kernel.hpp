// The solver for kernels as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

namespace rankplane {

void bind_kernel(nanobind::module_& module);

}  // namespace rankplane
