// Sums over the entries of each column of a csr matrix, on several threads: each thread has a range of the columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/control.hpp"
#include "common/parallel.hpp"
#include "common/rows.hpp"
#include "linear/columns.hpp"

namespace rankplane {

// work(row, q) for every entry, column ranges side by side. The columns of each row must be sorted.
template <class T, class Index, class Work>
void for_entries(const SparseRows<T, Index>& rows, std::size_t n_threads, Control& control, const Work& work) {
    const std::vector<std::size_t> first = split_columns(rows, std::max<std::size_t>(1, n_threads));
    parallel_for(first.size() - 1, n_threads, control, [&](std::size_t part) {
        for (std::size_t i = 0; i < rows.n_rows; ++i) {
            if (i % rows_at_once == 0) control.check();
            const auto row = rows[i];
            const Index* const end = row.columns + row.size;
            const Index* at = part == 0 ? row.columns : std::lower_bound(row.columns, end, static_cast<Index>(first[part]));
            const bool is_last = part + 2 == first.size();
            for (; at != end && (is_last || *at < static_cast<Index>(first[part + 1])); ++at) {
                work(i, static_cast<std::size_t>(at - row.columns));
            }
        }
    });
}

// counts: [column][group] of the entries in rows of each group; rows of a negative group are left out.
template <class T, class Index>
void count_by_group(const SparseRows<T, Index>& rows, const std::int32_t* groups, std::size_t n_groups, double* counts,
                    std::size_t n_threads, Control& control) {
    std::fill(counts, counts + rows.n_columns * n_groups, 0.0);
    for_entries(rows, n_threads, control, [&](std::size_t i, std::size_t q) {
        if (groups[i] >= 0) counts[rows[i].column(q) * n_groups + static_cast<std::size_t>(groups[i])] += 1;
    });
}

// sums: [column] of the squares of its values.
template <class T, class Index>
void sum_squares(const SparseRows<T, Index>& rows, double* sums, std::size_t n_threads, Control& control) {
    std::fill(sums, sums + rows.n_columns, 0.0);
    for_entries(rows, n_threads, control, [&](std::size_t i, std::size_t q) {
        const auto row = rows[i];
        sums[row.column(q)] += static_cast<double>(row.value(q)) * static_cast<double>(row.value(q));
    });
}

// The values, each times the factor of its column.
template <class T, class Index>
void scale_by_column(const SparseRows<T, Index>& rows, const T* factors, T* scaled, std::size_t n_threads, Control& control) {
    for_rows(rows.n_rows, n_threads, control, [&](std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) {
            const auto row = rows[i];
            T* const to = scaled + (row.values - rows.values);
            for (std::size_t q = 0; q < row.size; ++q) to[q] = row.value(q) * factors[row.column(q)];
        }
    });
}

}  // namespace rankplane
