// The columns of a csr matrix: checked, counted, and renumbered by how often they occur.
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
#include "common/parallel.hpp"
#include "common/rows.hpp"

namespace rankplane {

// Rows that a thread takes at a time where all rows are gone through once.
inline constexpr std::size_t rows_at_once = 4096;

// job(first, last) for ranges of rows.
template <class Job> void for_rows(std::size_t n_rows, std::size_t n_threads, Control& control, const Job& job) {
    parallel_for((n_rows + rows_at_once - 1) / rows_at_once, n_threads, control,
                 [&](std::size_t i) { job(i * rows_at_once, std::min(n_rows, (i + 1) * rows_at_once)); });
}

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

// How the columns of all rows are ordered.
enum class Order { unsorted, sorted, strict };  // strict: sorted, and no column occurs twice in a row

// The one property of X that only the core walks: a column index out of range would write outside the weights.
template <class T, class Index> Order check_columns(const SparseRows<T, Index>& rows, std::size_t n_threads, Control& control) {
    struct Found {
        Index smallest = 0, largest = -1, falls = 0, repeats = 0;  // the last two as numbers, or the loop has no vectors
    };
    std::vector<Found> found((rows.n_rows + rows_at_once - 1) / rows_at_once);
    for_rows(rows.n_rows, n_threads, control, [&](std::size_t first, std::size_t last) {
        Found here;
        for (std::size_t i = first; i < last; ++i) {
            const auto row = rows[i];
            if (row.size == 0) continue;
            Index falls = 0, repeats = 0;
            for (std::size_t q = 1; q < row.size; ++q) {
                falls |= static_cast<Index>(row.columns[q] < row.columns[q - 1]);
                repeats |= static_cast<Index>(row.columns[q] == row.columns[q - 1]);
            }
            const Index* const end = row.columns + row.size;
            here.smallest = std::min(here.smallest, falls == 0 ? *row.columns : *std::min_element(row.columns, end));
            here.largest = std::max(here.largest, falls == 0 ? *(end - 1) : *std::max_element(row.columns, end));
            here.falls |= falls;
            here.repeats |= repeats;
        }
        found[first / rows_at_once] = here;
    });
    Found all;
    for (const Found& here : found) {
        all.smallest = std::min(all.smallest, here.smallest);
        all.largest = std::max(all.largest, here.largest);
        all.falls |= here.falls;
        all.repeats |= here.repeats;
    }
    if (all.smallest < 0 || (all.largest >= 0 && static_cast<std::size_t>(all.largest) >= rows.n_columns)) {
        const std::string index = std::to_string(all.smallest < 0 ? all.smallest : all.largest);
        throw std::invalid_argument("The column indices of a csr matrix must lie in [0, n_columns). Got index " + index + " with " +
                                    std::to_string(rows.n_columns) + " columns.");
    }
    return all.falls != 0 ? Order::unsorted : all.repeats != 0 ? Order::sorted : Order::strict;
}

// First columns of ranges that hold about equally many entries, judged by a sample of the rows. n_parts + 1 numbers.
template <class T, class Index> std::vector<std::size_t> split_columns(const SparseRows<T, Index>& rows, std::size_t n_parts) {
    std::vector<std::size_t> first(n_parts + 1, 0);
    first[n_parts] = rows.n_columns;
    if (n_parts == 1) return first;
    constexpr std::size_t sample_rows = 256, entries_per_row = 64;
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

// work(i, row) for all rows, beginning at row `begin`. Threads that walk through parts of the same rows begin in different places,
// or they would wait for each other wherever one of them gets the next page of memory from the system. Parts of rows are too short
// for the processor to foresee the next one.
template <class Rows, class Work> void walk_rows(const Rows& rows, std::size_t begin, Control& control, const Work& work) {
    constexpr std::size_t ahead = 4, entries_per_line = 64 / sizeof(*rows.columns);
    for (std::size_t k = 0, i = begin; k < rows.n_rows; ++k) {
        if (k % rows_at_once == 0) control.check();
        if (i + ahead < rows.n_rows) {
            const auto next = rows[i + ahead];
            for (std::size_t q = 0; q < next.size; q += entries_per_line) __builtin_prefetch(next.columns + q);
        }
        work(i, rows[i]);
        i = i + 1 == rows.n_rows ? 0 : i + 1;
    }
}

// How often each column of a range occurs, by a walk that begins at row `begin`. `on_repeat(row)` is called where a column occurs
// again in the same row.
template <class Rows, class OnRepeat>
std::vector<std::uint32_t> count_columns(const Rows& rows, std::size_t first, std::size_t last, std::size_t begin, Control& control,
                                         const OnRepeat& on_repeat) {
    // Side by side, since looking up one of them is a cache miss.
    struct Seen {
        std::uint32_t count = 0, row_after = 0;
    };
    std::vector<Seen> seen(last - first);
    walk_rows(rows, begin, control, [&](std::size_t i, const auto& row) {
        const auto after = static_cast<std::uint32_t>(i + 1);
        for (std::size_t q = 0; q < row.size; ++q) {
            Seen& column = seen[row.column(q) - first];
            if (column.row_after == after) on_repeat(i);
            column.row_after = after;
            ++column.count;
        }
    });
    std::vector<std::uint32_t> counts(last - first);
    for (std::size_t column = 0; column < counts.size(); ++column) counts[column] = seen[column].count;
    return counts;
}

// The place of each column when they are sorted by falling frequency, equal ones in their order. A counting sort, to which
// everything above a cap is equally frequent.
inline std::vector<std::int32_t> places_by_frequency(const std::vector<std::uint32_t>& counts) {
    constexpr std::uint32_t cap = 1 << 16;
    std::vector<std::int32_t> next(cap + 2, 0), places(counts.size());
    const auto slot = [&](std::uint32_t count) { return static_cast<std::size_t>(cap - std::min(count, cap)); };
    for (const std::uint32_t count : counts) ++next[slot(count) + 1];
    for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
    for (std::size_t column = 0; column < counts.size(); ++column) places[column] = next[slot(counts[column])]++;
    return places;
}

}  // namespace rankplane
