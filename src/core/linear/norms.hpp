// The square norm of every row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "linear/columns.hpp"
#include "linear/parts.hpp"

namespace rankplane {

// Returns their mean, or 1 if all are zero.
template <class T, class Rows>
double measure_rows(const Parts<Rows>& parts, std::size_t n_threads, Buffer<T>& norms, Control& control) {
    const std::size_t n_rows = norms.size();
    std::vector<double> totals((n_rows + rows_at_once - 1) / rows_at_once, 0.0);
    for_rows(n_rows, n_threads, control, [&](std::size_t first, std::size_t last) {
        double total = 0;
        for (std::size_t i = first; i < last; ++i) {
            const auto row = parts.whole[i];
            double square = 0;
            for (std::size_t q = 0; q < row.size; ++q) {
                square += static_cast<double>(row.value(q)) * static_cast<double>(row.value(q));
            }
            norms[i] = static_cast<T>(square);
            total += square;
        }
        totals[first / rows_at_once] = total;
    });
    double total = 0;
    for (const double part : totals) total += part;
    // A column that occurs more than once in a row means the sum of its values.
    std::vector<double> sums(parts.repetitive.empty() ? 0 : parts.whole.n_columns, 0.0);
    for (const std::uint32_t i : parts.repetitive) {
        control.check();
        const auto row = parts.whole[i];
        for (std::size_t q = 0; q < row.size; ++q) sums[row.column(q)] += static_cast<double>(row.value(q));
        double square = 0;
        for (std::size_t q = 0; q < row.size; ++q) square += static_cast<double>(row.value(q)) * sums[row.column(q)];
        for (std::size_t q = 0; q < row.size; ++q) sums[row.column(q)] = 0;
        total += square - static_cast<double>(norms[i]);
        norms[i] = static_cast<T>(square);
    }
    return total > 0 ? total / static_cast<double>(n_rows) : 1.0;
}

}  // namespace rankplane
