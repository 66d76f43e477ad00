// Options of a solve, and the instruction sets.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/topics.hpp"
#include "common/control.hpp"
#include "common/parallel.hpp"
#include "isa/isa.hpp"

namespace rankplane {

namespace {

// A square matrix, row by row; its rows have positive entries on the diagonal.
Coupling coupling_of(const std::vector<double>& values) {
    Coupling coupling{values, 0};
    while (coupling.size * coupling.size < values.size()) ++coupling.size;
    bool is_sound = coupling.size * coupling.size == values.size() && coupling.size <= max_width;
    for (const double value : values) is_sound = is_sound && std::isfinite(value);
    for (std::size_t k = 0; is_sound && k < coupling.size; ++k) is_sound = coupling.at(k, k) > 0;
    if (!is_sound) throw std::invalid_argument("coupling must be a square matrix of at most 32 rows with a positive diagonal.");
    return coupling;
}

}  // namespace

void bind_options(nb::module_& module) {
    nb::class_<Options>(module, "Options")
        .def(
            "__init__",
            [](Options* self, double tol, std::size_t max_sweeps, bool shrinking, std::uint64_t seed, std::size_t n_threads,
               double rho, bool free_offsets, std::size_t batch, const std::vector<double>& coupling, bool ordered_offsets,
               std::size_t n_joined) {
                if (ordered_offsets && !free_offsets) throw std::invalid_argument("Only free offsets are kept in order.");
                if (n_joined > max_width) throw std::invalid_argument("There are too many joined lanes.");
                Coupling planes = coupling_of(coupling);
                if (n_joined > 0 && planes.size > 0) throw std::invalid_argument("Joined lanes cannot share weights.");
                if (n_joined > 0) planes.size = n_joined;
                new (self) Options{tol, max_sweeps,   shrinking, seed,   std::clamp<std::size_t>(n_threads, 1, max_threads),
                                   rho, free_offsets, batch,     planes, ordered_offsets};
            },
            nb::kw_only(), nb::arg("tol"), nb::arg("max_sweeps"), nb::arg("shrinking"), nb::arg("seed"), nb::arg("n_threads"),
            nb::arg("rho"), nb::arg("free_offsets"), nb::arg("batch") = 0, nb::arg("coupling") = std::vector<double>(),
            nb::arg("ordered_offsets") = false, nb::arg("n_joined") = 0);
    module.attr("max_lanes") = max_width;
    module.def("isa", [] { return std::string(name_of(isa_in_use())); });
    module.def("isas", [] {
        std::vector<std::string> names;
        for (const Isa isa : supported_isas()) names.emplace_back(name_of(isa));
        return names;
    });
}

}  // namespace rankplane
