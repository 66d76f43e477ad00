// What the caller lends a solver: demands, and the table row of each visit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "linear/sweep.hpp"

namespace rankplane {

// Demands of every table row on every lane and cut, as the caller wrote them: [table row][cut][lane][field].
struct Table {
    const double* values = nullptr;
    std::size_t n_rows = 0;
    std::size_t n_cuts = 1;
    std::size_t n_lanes = 0;

    double at(std::size_t row, std::size_t cut, std::size_t lane, std::size_t field) const {
        return values[((row * n_cuts + cut) * n_lanes + lane) * n_demand_fields + field];
    }
};

// The visits of one sweep and the table row that each asks for. Borrowed.
struct Visits {
    const std::int32_t* table_rows = nullptr;
    std::size_t size = 0;
};

}  // namespace rankplane
