// The columns of a csr matrix: checked, dealt out to the members of a team, and renumbered by how often they occur.
//
// With the most frequent columns first, hot columns share cache lines and pages with each other instead of with columns that a
// sweep touches once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/rows.hpp"

namespace rankplane {

template <class T, class Index> std::size_t count_entries(const SparseRows<T, Index>& rows) {
    return rows.n_rows == 0 ? 0 : rows.ends[rows.n_rows - 1];
}

template <class Index> void check_starts(const Index* starts, std::size_t n_starts, std::size_t n_entries) {
    bool is_sound = n_starts > 0 && starts[0] == 0;
    for (std::size_t i = 1; is_sound && i < n_starts; ++i) is_sound = starts[i - 1] <= starts[i];
    if (!is_sound || static_cast<std::size_t>(starts[n_starts - 1]) > n_entries) {
        throw std::invalid_argument("The row starts of a csr matrix must rise from 0 to at most the number of stored values.");
    }
}

// The one property of X that only the core walks: a column index out of range would write outside the weights.
template <class T, class Index> void check_columns(const SparseRows<T, Index>& rows) {
    const std::size_t n_entries = count_entries(rows);
    Index smallest = 0, largest = -1;
    for (std::size_t q = 0; q < n_entries; ++q) {
        smallest = rows.columns[q] < smallest ? rows.columns[q] : smallest;
        largest = rows.columns[q] > largest ? rows.columns[q] : largest;
    }
    if (smallest < 0 || (largest >= 0 && static_cast<std::size_t>(largest) >= rows.n_columns)) {
        const std::string found = std::to_string(smallest < 0 ? smallest : largest);
        throw std::invalid_argument("The column indices of a csr matrix must lie in [0, n_columns). Got index " + found + " with " +
                                    std::to_string(rows.n_columns) + " columns.");
    }
}

template <class T, class Index> bool has_sorted_columns(const SparseRows<T, Index>& rows) {
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        const auto row = rows[i];
        for (std::size_t q = 1; q < row.size; ++q) {
            if (row.columns[q] < row.columns[q - 1]) return false;
        }
    }
    return true;
}

// First columns of ranges that hold about equally many entries, judged by a sample of the rows. n_parts + 1 numbers.
template <class T, class Index> std::vector<std::size_t> split_columns(const SparseRows<T, Index>& rows, std::size_t n_parts) {
    std::vector<std::size_t> first(n_parts + 1, 0);
    first[n_parts] = rows.n_columns;
    if (n_parts == 1) return first;
    constexpr std::size_t sample_rows = 1024, entries_per_row = 1024;
    std::vector<Index> sample;
    const std::size_t step = 1 + rows.n_rows / sample_rows;
    for (std::size_t i = 0; i < rows.n_rows; i += step) {
        const auto row = rows[i];
        const std::size_t stride = 1 + row.size / entries_per_row;
        for (std::size_t q = 0; q < row.size; q += stride) sample.push_back(row.columns[q]);
    }
    std::sort(sample.begin(), sample.end());
    for (std::size_t part = 1; part < n_parts && !sample.empty(); ++part) {
        first[part] = static_cast<std::size_t>(sample[sample.size() * part / n_parts]);
    }
    return first;
}

// Where each row's entries reach column `first`. The indices must be sorted.
template <class T, class Index>
std::vector<std::int64_t> find_column(const SparseRows<T, Index>& rows, std::size_t first, Control& control) {
    std::vector<std::int64_t> bounds(rows.n_rows);
    for (std::size_t i = 0; i < rows.n_rows; ++i) {
        control.check();
        const auto row = rows[i];
        const Index* found = std::lower_bound(row.columns, row.columns + row.size, static_cast<Index>(first));
        bounds[i] = static_cast<std::int64_t>(found - rows.columns);
    }
    return bounds;
}

// A range of columns in order of frequency. `rows` holds entries of that range only.
class ColumnOrder {
  public:
    ColumnOrder() = default;
    // Columns [first, last), as they are.
    ColumnOrder(std::size_t first, std::size_t last) : first_(first), last_(last) {}

    // Columns [first, last), renumbered from 0; the new indices go to `renumbered`, entry for entry.
    template <class T, class Index>
    ColumnOrder(const SparseRows<T, Index>& rows, std::size_t first, std::size_t last, std::int32_t* renumbered, Control& control)
        : first_(first), last_(last), position_(last - first) {
        std::vector<std::int32_t> count(last - first, 0);
        for (std::size_t i = 0; i < rows.n_rows; ++i) {
            control.check();
            const auto row = rows[i];
            for (std::size_t q = 0; q < row.size; ++q) ++count[row.column(q) - first];
        }
        // A counting sort by frequency, in which everything above the cap is equally hot.
        constexpr std::int32_t cap = 1 << 16;
        std::vector<std::int32_t> place(cap + 2, 0);
        const auto slot = [&](std::int32_t frequency) { return static_cast<std::size_t>(cap - std::min(frequency, cap)); };
        for (const std::int32_t frequency : count) ++place[slot(frequency) + 1];
        for (std::size_t i = 1; i < place.size(); ++i) place[i] += place[i - 1];
        for (std::size_t column = 0; column < count.size(); ++column) position_[column] = place[slot(count[column])]++;
        for (std::size_t i = 0; i < rows.n_rows; ++i) {
            control.check();
            const auto row = rows[i];
            std::int32_t* to = renumbered + (row.columns - rows.columns);
            for (std::size_t q = 0; q < row.size; ++q) to[q] = position_[row.column(q) - first];
        }
    }

    std::size_t first() const { return first_; }
    std::size_t last() const { return last_; }
    std::size_t size() const { return last_ - first_; }
    // Where a column of the range has its weights.
    std::size_t position(std::size_t column) const {
        return position_.empty() ? column - first_ : static_cast<std::size_t>(position_[column - first_]);
    }

  private:
    std::size_t first_ = 0, last_ = 0;
    std::vector<std::int32_t> position_;
};

}  // namespace rankplane
