// How many rows may be scored at once, before any of their steps counts.
//
// Rows that are scored together do not see each other's steps, except through the offsets, which are kept exact. With g_ij = x_i .
// x_j and d_i = g_ii + rho, the steps of a batch of b rows are a step of Jacobi's method on the matrix of the
//
//     c_ij = g_ij / sqrt(d_i d_j),     i != j,
//
// which descends if b times the largest eigenvalue of their covariance is small. That eigenvalue is at most the root of their mean
// square. What all rows have in common, the mean of the c_ij, does not count: the offset is in every row too, moves along the same
// direction, exactly, and outweighs what is late, as long as it is the larger of the two.
//
// A column that is large in a few rows tells on the batches in which these rows meet. On average that shows in the c_ij too, but a
// small sample of rows may miss it, and what counts is the worst batch. So the variance of x_c / sqrt(d) of each column c over a
// larger sample limits the batch as well.
//
// All of this is said of a sample, before the first step; watch.hpp looks at what the steps then do.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/memory.hpp"
#include "common/random.hpp"

namespace rankplane {

inline constexpr std::size_t max_batch = 1024;

// Inner products of a sample of rows: what a batch is chosen by.
struct Likeness {
    double common = 0;  // mean of c_ij
    double spread = 0;  // root mean square of c_ij less what the two rows have in common with all
    double all = 0;     // root mean square of c_ij
    double offset = 0;  // mean of rho / sqrt(d_i d_j)
    double column = 0;  // largest variance of x_ic / sqrt(d_i) of a column c
};

// `Likeness::column`.
template <class Rows> double largest_column_variance(const Rows& rows, double rho, std::size_t n_entries) {
    constexpr std::size_t most_rows = 2048, most_entries = std::size_t{1} << 18;
    const std::size_t mean_size = std::max<std::size_t>(1, n_entries / std::max<std::size_t>(1, rows.n_rows));
    const std::size_t n_sampled = std::min({rows.n_rows, most_rows, std::max<std::size_t>(1, most_entries / mean_size)});
    Buffer<float> sums(2 * rows.n_columns);  // of a column's values, and of their squares
    Random random(rows.n_rows);
    for (std::size_t s = 0; s < n_sampled; ++s) {
        const std::size_t first = rows.n_rows * s / n_sampled, last = rows.n_rows * (s + 1) / n_sampled;
        const auto row = rows[first + random.below(static_cast<std::uint32_t>(last - first))];
        double square = rho;
        for (std::size_t q = 0; q < row.size; ++q) square += static_cast<double>(row.value(q)) * static_cast<double>(row.value(q));
        if (square <= 0) continue;
        const double scale = 1 / std::sqrt(square);
        for (std::size_t q = 0; q < row.size; ++q) {
            float* const of_column = sums.data() + 2 * row.column(q);
            const double value = static_cast<double>(row.value(q)) * scale;
            of_column[0] += static_cast<float>(value);
            of_column[1] += static_cast<float>(value * value);
        }
    }
    const auto n = static_cast<float>(n_sampled);
    float largest = 0;
    for (std::size_t column = 0; column < rows.n_columns; ++column) {
        const float mean = sums.data()[2 * column] / n;
        largest = std::max(largest, sums.data()[2 * column + 1] / n - mean * mean);
    }
    return largest;
}

template <class Rows> Likeness compare_rows(const Rows& rows, double rho, bool free_offsets, std::size_t n_entries) {
    constexpr std::size_t most_rows = 64, fewest_rows = 16, most_entries = 1 << 13, most_of_row = 1 << 14;
    const std::size_t n_rows = rows.n_rows, mean_size = std::max<std::size_t>(1, n_entries / std::max<std::size_t>(1, n_rows));
    const std::size_t n_sampled = std::min(n_rows, std::clamp(most_entries / mean_size, fewest_rows, most_rows));
    Likeness found;
    if (n_sampled < 2) return found;

    struct Entry {
        std::size_t column, row;
        double value;
    };
    std::vector<Entry> entries;
    std::vector<double> norms(n_sampled, 0.0), products(n_sampled * n_sampled, 0.0);
    Random random(n_rows);
    for (std::size_t s = 0; s < n_sampled; ++s) {
        // One row from each of as many stretches.
        const std::size_t first = n_rows * s / n_sampled, last = n_rows * (s + 1) / n_sampled;
        const auto row = rows[first + random.below(static_cast<std::uint32_t>(last - first))];
        for (std::size_t q = 0; q < std::min(row.size, most_of_row); ++q) {
            entries.push_back({row.column(q), s, static_cast<double>(row.value(q))});
        }
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.column != b.column ? a.column < b.column : a.row < b.row; });
    for (std::size_t first = 0; first < entries.size();) {
        std::size_t last = first;
        while (last < entries.size() && entries[last].column == entries[first].column) ++last;
        for (std::size_t a = first; a < last; ++a) {
            for (std::size_t b = first; b < last; ++b) {
                products[entries[a].row * n_sampled + entries[b].row] += entries[a].value * entries[b].value;
            }
        }
        first = last;
    }
    double mean_norm = 0;
    for (std::size_t i = 0; i < n_sampled; ++i) mean_norm += products[i * n_sampled + i] / static_cast<double>(n_sampled);
    if (mean_norm <= 0) return found;
    if (free_offsets) rho = mean_norm;
    found.column = largest_column_variance(rows, rho, n_entries);
    for (std::size_t i = 0; i < n_sampled; ++i) norms[i] = std::sqrt(products[i * n_sampled + i] + rho);

    std::vector<double> means(n_sampled, 0.0);
    const double n_others = static_cast<double>(n_sampled - 1), n_pairs = static_cast<double>(n_sampled) * n_others;
    for (std::size_t i = 0; i < n_sampled; ++i) {
        for (std::size_t j = 0; j < n_sampled; ++j) {
            if (i == j || norms[i] <= 0 || norms[j] <= 0) continue;
            double& c = products[i * n_sampled + j];
            c /= norms[i] * norms[j];
            means[i] += c / n_others;
            found.common += c / n_pairs;
            found.all += c * c / n_pairs;
            found.offset += rho / (norms[i] * norms[j]) / n_pairs;
        }
    }
    for (std::size_t i = 0; i < n_sampled; ++i) {
        for (std::size_t j = 0; j < n_sampled; ++j) {
            if (i == j || norms[i] <= 0 || norms[j] <= 0) continue;
            const double own = products[i * n_sampled + j] - means[i] - means[j] + found.common;
            found.spread += own * own / n_pairs;
        }
    }
    found.spread = std::sqrt(found.spread);
    found.all = std::sqrt(found.all);
    return found;
}

// All cuts of a lane share w, so what rows have in common counts once for each. Coupled lanes share it too, as far as `strength`
// says.
inline std::size_t choose_batch(const Likeness& likeness, std::size_t n_visits, std::size_t n_cuts, double strength = 1.0) {
    constexpr double most = 1.5;            // largest batch times spread
    constexpr double most_of_column = 0.5;  // the same, of a single column
    constexpr std::size_t share = 64;       // of all rows at most one in so many, or a sweep is only a few steps long
    const bool is_outweighed = 2.0 * static_cast<double>(n_cuts) * strength * likeness.common <= likeness.offset;
    const double spread = strength * (is_outweighed ? likeness.spread : likeness.all), column = strength * likeness.column;
    const std::size_t limit = std::clamp<std::size_t>(n_visits / share, 1, max_batch);
    const double bearable = std::min(most / std::max(spread, 1e-9), most_of_column / std::max(column, 1e-9));
    if (!(bearable >= 1)) return 1;  // NaN too, of values that are not numbers
    return bearable < static_cast<double>(limit) ? static_cast<std::size_t>(bearable) : limit;
}

}  // namespace rankplane
