// Scores of rows on finished planes: X W, on several threads.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/parallel.hpp"
#include "common/rows.hpp"

namespace rankplane {

// weights: [column][plane], scores: [row][plane].
template <class T, class Rows>
void plane_scores(const Rows& rows, const T* weights, std::size_t n_planes, T* scores, std::size_t n_threads, Control& control) {
    constexpr std::size_t rows_per_job = 1024;
    constexpr std::size_t tile = 8;  // planes at once: a loop of known length that the compiler turns into SIMD
    if (n_planes == 0) return;       // for which no memory bounds the number of rows
    const std::size_t n_jobs = (rows.n_rows + rows_per_job - 1) / rows_per_job;
    parallel_for(n_jobs, n_threads, control, [&](std::size_t job) {
        const std::size_t last = std::min(rows.n_rows, (job + 1) * rows_per_job);
        for (std::size_t i = job * rows_per_job; i < last; ++i) {
            const auto row = rows[i];
            for (std::size_t first = 0; first < n_planes; first += tile) {
                const std::size_t n_here = std::min(tile, n_planes - first);
                T sums[tile] = {};
                for (std::size_t q = 0; q < row.size; ++q) {
                    const T* w = weights + row.column(q) * n_planes + first;
                    const T x = row.value(q);
                    if (n_here == tile) {
                        for (std::size_t k = 0; k < tile; ++k) sums[k] += x * w[k];
                    } else {
                        for (std::size_t k = 0; k < n_here; ++k) sums[k] += x * w[k];
                    }
                }
                std::copy(sums, sums + n_here, scores + i * n_planes + first);
            }
        }
    });
}

}  // namespace rankplane
