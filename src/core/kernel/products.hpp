// Inner products of sparse rows with all rows of X, for kernels.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/control.hpp"
#include "common/rows.hpp"

namespace rankplane {

// products[pick][row] = picks[pick] . X[row]. X is given by columns: `columns[j]` lists the rows with a nonzero entry in column j,
// so that only pairs of nonzero entries are visited, and the products of a pick stay in the cache while they are summed.
template <class T, class Index>
void row_products(const SparseRows<T, Index>& picks, const SparseRows<T, Index>& columns, std::size_t n_rows, double* products,
                  Control& control) {
    for (std::size_t pick = 0; pick < picks.n_rows; ++pick, products += n_rows) {
        control.check();
        std::fill(products, products + n_rows, 0.0);
        const auto row = picks[pick];
        for (std::size_t q = 0; q < row.size; ++q) {
            const auto column = columns[row.column(q)];
            const auto x = static_cast<double>(row.value(q));
            for (std::size_t k = 0; k < column.size; ++k) products[column.column(k)] += x * static_cast<double>(column.value(k));
        }
    }
}

}  // namespace rankplane
