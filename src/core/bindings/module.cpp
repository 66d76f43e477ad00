// The Python module, topic by topic.
#include <nanobind/nanobind.h>

#include "bindings/topics.hpp"

NB_MODULE(_core, module) {
    rankplane::bind_options(module);
    rankplane::bind_linear(module);
    rankplane::bind_kernel(module);
    rankplane::bind_text(module);
}
