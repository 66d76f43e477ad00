// Views of the data. X is borrowed from the caller without a copy; sweeps visit it row by row.
//
// A row has `size` entries; entry q sits in column `column(q)` and has the value `value(q)`. Sparse and dense rows share
// this shape, so every loop over X in the core is written once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankplane {

template <class T, class Index> struct SparseRow {
    const Index* columns;
    const T* values;
    std::size_t size;

    std::size_t column(std::size_t q) const { return static_cast<std::size_t>(columns[q]); }
    T value(std::size_t q) const { return values[q]; }
    const void* column_bytes(std::size_t q) const { return columns + q; }
};

template <class T> struct DenseRow {
    const T* values;
    std::size_t size;
    std::size_t first_column;

    std::size_t column(std::size_t q) const { return first_column + q; }
    T value(std::size_t q) const { return values[q]; }
    const void* column_bytes(std::size_t q) const { return values + q; }
};

// Where rows begin or end, as in scipy: numbers of 32 bits if they fit, else of 64. Reading one costs a branch that is always
// predicted, which is cheaper than a second copy of every loop. `stride` is the distance from one row's number to the next's.
struct RowBounds {
    const void* data = nullptr;
    bool is_wide = false;
    std::size_t stride = 1;

    std::size_t operator[](std::size_t row) const {
        return is_wide ? static_cast<std::size_t>(static_cast<const std::int64_t*>(data)[row * stride])
                       : static_cast<std::size_t>(static_cast<const std::int32_t*>(data)[row * stride]);
    }
    RowBounds after(std::size_t n) const { return {address(n), is_wide, stride}; }
    // Where the n-th number from here lies.
    const char* address(std::size_t n) const {
        return static_cast<const char*>(data) + n * (is_wide ? sizeof(std::int64_t) : sizeof(std::int32_t));
    }
};

// Rows of a csr matrix, or of a range of its columns: with sorted indices that is a run of entries of every row.
template <class T, class Index> struct SparseRows {
    using value_type = T;
    static constexpr bool is_sparse = true;

    RowBounds begins, ends;
    const Index* columns = nullptr;
    const T* values = nullptr;
    std::size_t n_rows = 0;
    std::size_t n_columns = 0;

    SparseRow<T, Index> operator[](std::size_t row) const {
        const std::size_t begin = begins[row];
        return {columns + begin, values + begin, ends[row] - begin};
    }
    void prefetch_bounds(std::size_t row) const { __builtin_prefetch(begins.address(row * begins.stride), 0, 2); }
};

// Rows of a C-ordered matrix, or of a range of its columns.
template <class T> struct DenseRows {
    using value_type = T;
    static constexpr bool is_sparse = false;

    const T* values = nullptr;
    std::size_t stride = 0;
    std::size_t n_rows = 0;
    std::size_t n_columns = 0;
    std::size_t first_column = 0;

    DenseRow<T> operator[](std::size_t row) const { return {values + row * stride, n_columns, first_column}; }
};

}  // namespace rankplane
