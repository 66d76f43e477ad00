#pragma once

#include <nanobind/nanobind.h>

namespace rankplane {

void bind_options(nanobind::module_& module);
void bind_linear(nanobind::module_& module);
void bind_kernel(nanobind::module_& module);
void bind_text(nanobind::module_& module);

}  // namespace rankplane
