// How X is dealt out to the members of a team: each gets a range of the columns, and its entries of every row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/memory.hpp"
#include "common/parallel.hpp"
#include "common/rows.hpp"
#include "linear/block.hpp"
#include "linear/columns.hpp"

namespace rankplane {

// A range of the columns: its entries of every row, and where its weights lie.
template <class Rows> struct Part {
    Rows rows;
    ColumnOrder order;
};

// The parts of all members, and the arrays of our own that they point into. Moving it leaves those arrays where they are.
template <class Rows> struct Parts {
    using rows_type = Rows;

    std::vector<Part<Rows>> parts;
    Buffer<std::int32_t> renumbered;                // column indices, entry for entry
    std::vector<std::vector<std::int64_t>> bounds;  // [boundary between two members][row]
};

// A team pays when a row is long enough to be worth sharing.
inline std::size_t team_size(std::size_t n_rows, std::size_t n_entries, std::size_t n_lanes, std::size_t n_threads) {
    constexpr std::size_t entries_per_member = 16;
    if (n_lanes > max_width || n_rows == 0) return 1;
    return std::max<std::size_t>(1, std::min(n_threads, n_entries / n_rows / entries_per_member));
}

// Weights that fit well into the second-level cache gain nothing from another order of the columns.
template <class T> bool has_large_weights(std::size_t n_columns, std::size_t n_lanes) {
    constexpr std::size_t large = std::size_t{1} << 19;
    return n_columns * width_for(std::min(n_lanes, max_width)) * sizeof(T) > large;
}

struct SparsePlan {
    std::size_t n_parts = 1;
    bool is_renumbered = false;  // always, with more than one part
};

template <class T, class Index>
SparsePlan plan_parts(const SparseRows<T, Index>& rows, std::size_t n_lanes, std::size_t n_threads) {
    const bool can_renumber = rows.n_columns < (std::size_t{1} << 31);
    SparsePlan plan;
    plan.n_parts = team_size(rows.n_rows, count_entries(rows), n_lanes, n_threads);
    if (plan.n_parts > 1 && !(can_renumber && has_sorted_columns(rows))) plan.n_parts = 1;
    plan.is_renumbered = plan.n_parts > 1 || (can_renumber && has_large_weights<T>(rows.n_columns, n_lanes));
    return plan;
}

// X as it is, for a team of one.
template <class T, class Index> Parts<SparseRows<T, Index>> whole_parts(const SparseRows<T, Index>& rows) {
    Parts<SparseRows<T, Index>> whole;
    whole.parts.push_back({rows, ColumnOrder(0, rows.n_columns)});
    return whole;
}

// Columns in order of frequency, within each member's range. With more than one part, the indices of a row must be sorted.
template <class T, class Index>
Parts<SparseRows<T, std::int32_t>> renumbered_parts(const SparseRows<T, Index>& rows, std::size_t n_parts, Control& control) {
    Parts<SparseRows<T, std::int32_t>> team;
    const std::vector<std::size_t> first = split_columns(rows, n_parts);
    team.bounds.resize(n_parts - 1);
    parallel_for(n_parts - 1, n_parts - 1, control,
                 [&](std::size_t i) { team.bounds[i] = find_column(rows, first[i + 1], control); });
    team.renumbered = Buffer<std::int32_t>(count_entries(rows), false);
    team.parts.resize(n_parts);
    parallel_for(n_parts, n_parts, control, [&](std::size_t i) {
        SparseRows<T, Index> range = rows;
        if (i > 0) range.begins = RowBounds{team.bounds[i - 1].data(), true};
        if (i + 1 < n_parts) range.ends = RowBounds{team.bounds[i].data(), true};
        Part<SparseRows<T, std::int32_t>>& part = team.parts[i];
        part.order = ColumnOrder(range, first[i], first[i + 1], team.renumbered.data(), control);
        part.rows = {range.begins, range.ends, team.renumbered.data(), rows.values, rows.n_rows, part.order.size()};
    });
    return team;
}

template <class T>
Parts<DenseRows<T>> dense_parts(const T* values, std::size_t n_rows, std::size_t n_columns, std::size_t n_parts) {
    Parts<DenseRows<T>> team;
    for (std::size_t i = 0; i < n_parts; ++i) {
        const std::size_t first = n_columns * i / n_parts, last = n_columns * (i + 1) / n_parts;
        team.parts.push_back({{values + first, n_columns, n_rows, last - first}, ColumnOrder(first, last)});
    }
    return team;
}

}  // namespace rankplane
