// X as the solver wants it: its columns renumbered by frequency where that pays, and dealt out in parts to the threads of a team.
//
// A part is a range of the columns, and with it a run of the entries of every row. Sorted rows have such runs as they are, and only
// the column indices are copied, under their new numbers. Unsorted rows are as good for one thread; for several, their entries are
// put in order of the parts, which takes a copy of the values too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/memory.hpp"
#include "common/parallel.hpp"
#include "common/rows.hpp"
#include "linear/batch.hpp"
#include "linear/block.hpp"
#include "linear/columns.hpp"

namespace rankplane {

// All of X, the parts of it, and the arrays of our own that they point into. Moving it leaves those arrays where they are.
template <class Rows> struct Parts {
    using rows_type = Rows;
    using T = typename Rows::value_type;

    Rows whole;
    std::vector<Rows> parts;
    std::vector<std::int32_t> places;       // where a column's weights lie; empty where they lie in its own place
    std::vector<std::uint32_t> repetitive;  // rows in which a column occurs more than once

    Buffer<std::int32_t> columns;
    Buffer<T> values;
    Buffer<std::int32_t> bounds;
    Buffer<std::int64_t> wide_bounds;

    std::size_t place(std::size_t column) const { return places.empty() ? column : static_cast<std::size_t>(places[column]); }
};

// A team pays when its rows and batches are long enough to be worth sharing, and when the blocks alone do not keep all threads
// busy.
inline std::size_t parts_for(std::size_t n_rows, std::size_t n_entries, std::size_t n_lanes, std::size_t batch,
                             std::size_t n_threads) {
    constexpr std::size_t entries_of_row = 8, entries_of_batch = 4096;  // for each part
    if (n_rows == 0 || n_lanes > n_threads * max_width) return 1;
    const std::size_t mean_size = n_entries / n_rows;
    return std::clamp<std::size_t>(std::min(mean_size / entries_of_row, batch * mean_size / entries_of_batch), 1, n_threads);
}

// Weights that fit well into the second-level cache gain nothing from another order of the columns.
template <class T> bool has_large_weights(std::size_t n_columns, std::size_t n_lanes) {
    constexpr std::size_t large = std::size_t{1} << 19;
    return n_columns * width_for(std::min(n_lanes, max_width)) * sizeof(T) > large;
}

struct Plan {
    std::size_t n_parts = 1, batch = 1;
};

template <class Rows>
Plan plan_parts(const Rows& rows, std::size_t n_entries, std::size_t n_visits, std::size_t n_lanes, std::size_t n_cuts,
                const Options& options) {
    Plan plan;
    plan.batch = options.batch;
    if (plan.batch == 0) {
        const Likeness likeness = compare_rows(rows, options.rho, options.free_offsets, n_entries);
        plan.batch = choose_batch(likeness, n_visits, n_cuts, options.coupling.strength());
    }
    plan.n_parts = parts_for(rows.n_rows, n_entries, n_lanes, plan.batch, options.n_threads);
    // One thread gains by batches too, since the products of their rows do not wait for steps. In any case the weights that a batch
    // touches in a part are to be in the second-level cache still when the steps are added. This is not a matter of the number of
    // lanes: a lane's result does not depend on its company.
    if (options.batch == 0) {
        const std::size_t entries_of_part = plan.n_parts == 1 ? 4096 : 8192;
        const std::size_t fitting = entries_of_part * plan.n_parts * rows.n_rows / std::max<std::size_t>(1, n_entries);
        plan.batch = std::clamp<std::size_t>(fitting, 1, plan.batch);
    }
    return plan;
}

// A row comes as often as a column of it occurs again, and in between no other row.
inline void add_once(std::vector<std::uint32_t>& rows, std::size_t row) {
    if (rows.empty() || rows.back() != row) rows.push_back(static_cast<std::uint32_t>(row));
}

// X as it is, for a team of one.
template <class T, class Index>
Parts<SparseRows<T, Index>> whole_parts(const SparseRows<T, Index>& rows, Order order, Control& control) {
    Parts<SparseRows<T, Index>> whole;
    whole.whole = rows;
    whole.parts = {rows};
    if (order != Order::strict) {
        count_columns(rows, 0, rows.n_columns, 0, control, [&](std::size_t row) { add_once(whole.repetitive, row); });
    }
    return whole;
}

// Where the parts of every row begin, and the last one ends: [row][part]. The columns of a row must be sorted.
template <class T, class Index, class Bound>
void find_bounds(const SparseRows<T, Index>& rows, const std::vector<std::size_t>& first, Bound* bounds, std::size_t n_threads,
                 Control& control) {
    const std::size_t n_parts = first.size() - 1;
    for_rows(rows.n_rows, n_threads, control, [&](std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < to; ++i) {
            const auto row = rows[i];
            Bound* of_row = bounds + i * (n_parts + 1);
            const Index* at = row.columns;
            for (std::size_t part = 0; part < n_parts; ++part) {
                if (part > 0) at = std::lower_bound(at, row.columns + row.size, static_cast<Index>(first[part]));
                of_row[part] = static_cast<Bound>(at - rows.columns);
            }
            of_row[n_parts] = static_cast<Bound>(row.columns + row.size - rows.columns);
        }
    });
}

// The same for columns in any order: puts the entries of each row in order of the parts.
template <class T, class Index, class Bound>
void sort_into_parts(const SparseRows<T, Index>& rows, const std::vector<std::size_t>& first, Bound* bounds, std::int32_t* columns,
                     T* values, std::size_t n_threads, Control& control) {
    const std::size_t n_parts = first.size() - 1;
    std::vector<std::uint16_t> part_of(rows.n_columns);
    for (std::size_t part = 0; part < n_parts; ++part) {
        std::fill(part_of.begin() + static_cast<std::ptrdiff_t>(first[part]),
                  part_of.begin() + static_cast<std::ptrdiff_t>(first[part + 1]), static_cast<std::uint16_t>(part));
    }
    for_rows(rows.n_rows, n_threads, control, [&](std::size_t from, std::size_t to) {
        std::vector<std::size_t> next(n_parts + 1);
        for (std::size_t i = from; i < to; ++i) {
            const auto row = rows[i];
            std::fill(next.begin(), next.end(), 0);
            for (std::size_t q = 0; q < row.size; ++q) ++next[part_of[row.column(q)] + std::size_t{1}];
            next[0] = rows.begins[i];
            for (std::size_t part = 1; part <= n_parts; ++part) next[part] += next[part - 1];
            std::transform(next.begin(), next.end(), bounds + i * (n_parts + 1),
                           [](std::size_t begin) { return static_cast<Bound>(begin); });
            for (std::size_t q = 0; q < row.size; ++q) {
                const std::size_t to_entry = next[part_of[row.column(q)]]++;
                columns[to_entry] = static_cast<std::int32_t>(row.columns[q]);
                values[to_entry] = row.values[q];
            }
        }
    });
}

// Columns in order of frequency, within each part.
template <class T, class Index>
Parts<SparseRows<T, std::int32_t>> renumbered_parts(const SparseRows<T, Index>& rows, std::size_t n_parts, Order order,
                                                    std::size_t n_threads, Control& control) {
    Parts<SparseRows<T, std::int32_t>> found;
    const std::size_t n_entries = count_entries(rows), n_bounds = n_parts > 1 ? rows.n_rows * (n_parts + 1) : 0;
    const std::vector<std::size_t> first = split_columns(rows, n_parts);
    const bool is_wide = n_entries > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
    const bool is_moved = n_parts > 1 && order == Order::unsorted;
    found.columns = Buffer<std::int32_t>(n_entries, false);
    if (is_moved) found.values = Buffer<T>(n_entries, false);
    if (is_wide) {
        found.wide_bounds = Buffer<std::int64_t>(n_bounds, false);
    } else {
        found.bounds = Buffer<std::int32_t>(n_bounds, false);
    }
    const auto bound = [&](auto* bounds) {
        if (is_moved) {
            sort_into_parts(rows, first, bounds, found.columns.data(), found.values.data(), n_threads, control);
        } else {
            find_bounds(rows, first, bounds, n_threads, control);
        }
    };
    RowBounds begins = rows.begins, ends = rows.ends;
    if (n_parts > 1) {
        is_wide ? bound(found.wide_bounds.data()) : bound(found.bounds.data());
        begins = {is_wide ? static_cast<const void*>(found.wide_bounds.data()) : found.bounds.data(), is_wide, n_parts + 1};
        ends = begins.after(n_parts);
    }
    const T* values = is_moved ? found.values.data() : rows.values;
    found.whole = {begins, ends, found.columns.data(), values, rows.n_rows, rows.n_columns};
    found.places.resize(rows.n_columns);
    std::vector<std::vector<std::uint32_t>> repetitive(n_parts);
    parallel_for(n_parts, n_threads, control, [&](std::size_t p) {
        const auto renumber = [&](const auto& part) {
            const std::size_t begin = part.n_rows * p / n_parts;
            const auto counts =
                count_columns(part, first[p], first[p + 1], begin, control, [&](std::size_t row) { add_once(repetitive[p], row); });
            const std::vector<std::int32_t> places = places_by_frequency(counts);
            const auto base = static_cast<std::int32_t>(first[p]);
            for (std::size_t i = 0; i < places.size(); ++i) found.places[first[p] + i] = base + places[i];
            walk_rows(part, begin, control, [&](std::size_t, const auto& row) {
                std::int32_t* to = found.columns.data() + (row.columns - part.columns);
                for (std::size_t q = 0; q < row.size; ++q) to[q] = base + places[row.column(q) - first[p]];
            });
        };
        const RowBounds from = n_parts > 1 ? begins.after(p) : begins, to = n_parts > 1 ? begins.after(p + 1) : ends;
        if (is_moved) {
            renumber(SparseRows<T, std::int32_t>{from, to, found.columns.data(), values, rows.n_rows, rows.n_columns});
        } else {
            renumber(SparseRows<T, Index>{from, to, rows.columns, values, rows.n_rows, rows.n_columns});
        }
    });
    for (std::size_t p = 0; p < n_parts; ++p) {
        const RowBounds from = n_parts > 1 ? begins.after(p) : begins, to = n_parts > 1 ? begins.after(p + 1) : ends;
        found.parts.push_back({from, to, found.columns.data(), values, rows.n_rows, rows.n_columns});
        found.repetitive.insert(found.repetitive.end(), repetitive[p].begin(), repetitive[p].end());
    }
    std::sort(found.repetitive.begin(), found.repetitive.end());
    found.repetitive.erase(std::unique(found.repetitive.begin(), found.repetitive.end()), found.repetitive.end());
    return found;
}

template <class T>
Parts<DenseRows<T>> dense_parts(const T* values, std::size_t n_rows, std::size_t n_columns, std::size_t n_parts) {
    Parts<DenseRows<T>> found;
    found.whole = {values, n_columns, n_rows, n_columns, 0};
    for (std::size_t i = 0; i < n_parts; ++i) {
        const std::size_t first = n_columns * i / n_parts, last = n_columns * (i + 1) / n_parts;
        found.parts.push_back({values + first, n_columns, n_rows, last - first, first});
    }
    return found;
}

}  // namespace rankplane
