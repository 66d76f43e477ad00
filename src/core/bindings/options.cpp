// What a solve is told, and the instruction sets that it may use.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/topics.hpp"
#include "common/control.hpp"
#include "common/parallel.hpp"
#include "isa/isa.hpp"

namespace rankplane {

void bind_options(nb::module_& module) {
    nb::class_<Options>(module, "Options")
        .def(
            "__init__",
            [](Options* self, double tol, std::size_t max_sweeps, bool shrinking, std::uint64_t seed, std::size_t n_threads,
               double rho, bool free_offsets) {
                new (self) Options{tol, max_sweeps,  shrinking, seed, std::clamp<std::size_t>(n_threads, 1, max_threads),
                                   rho, free_offsets};
            },
            nb::kw_only(), nb::arg("tol"), nb::arg("max_sweeps"), nb::arg("shrinking"), nb::arg("seed"), nb::arg("n_threads"),
            nb::arg("rho"), nb::arg("free_offsets"));
    module.attr("max_lanes") = max_width;
    module.def("isa", [] { return std::string(name_of(isa_in_use())); });
    module.def("isas", [] {
        std::vector<std::string> names;
        for (const Isa isa : supported_isas()) names.emplace_back(name_of(isa));
        return names;
    });
}

}  // namespace rankplane
