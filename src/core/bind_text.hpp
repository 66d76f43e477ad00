#pragma once

#include <nanobind/nanobind.h>

namespace rankplane {

void bind_text(nanobind::module_& module);

}  // namespace rankplane
