// How good a block's solution is: dual objective, duality gap and violation, in double.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/control.hpp"
#include "linear/sweep.hpp"

namespace rankplane {

// Sums per lane of a block. `square` is |w|^2, which only the keeper of w can tell.
struct Certificate {
    std::vector<double> gap, dual, violation, repair, support, square, offset_square;

    // |sum a x|^2 = 2 sum a s - |w|^2 up to the square of the rounding in w.
    double dual_objective(std::size_t l) const { return dual[l] + 0.5 * offset_square[l] - 0.5 * square[l]; }
    double duality_gap(std::size_t l) const { return gap[l] + 0.5 * repair[l] * repair[l]; }
};

// `of_visit` as in CertifyState.
template <class T, class Rows>
Certificate certify(const SweepState<T>& state, std::size_t width, const Rows& rows, std::size_t n_visits, bool free_offsets,
                    CertifyLoop<T, Rows> loop, Control& control, double* of_visit = nullptr) {
    const std::size_t n_per_cut = state.n_cuts * width;
    std::vector<double> positive(n_per_cut, 0.0), negative(n_per_cut, 0.0);
    for (std::size_t visit = 0; visit < n_visits; ++visit) {
        for (std::size_t i = 0; i < n_per_cut; ++i) {
            const double a = static_cast<double>(state.duals[visit * n_per_cut + i]);
            positive[i] += std::max(a, 0.0);
            negative[i] += std::min(a, 0.0);
        }
    }
    Certificate sums;
    for (auto* sum : {&sums.gap, &sums.dual, &sums.violation, &sums.repair, &sums.support, &sums.square, &sums.offset_square}) {
        sum->assign(width, 0.0);
    }
    // With free offsets the duals of a cut must sum to zero; scaling down the larger side makes them.
    std::vector<double> positive_factor(n_per_cut, 1.0), negative_factor(n_per_cut, 1.0);
    for (std::size_t i = 0; i < n_per_cut; ++i) {
        const double sum = positive[i] + negative[i];
        if (!free_offsets) sums.offset_square[i % width] += static_cast<double>(state.rho) * sum * sum;
        if (free_offsets && sum > 0) positive_factor[i] = -negative[i] / positive[i];
        if (free_offsets && sum < 0) negative_factor[i] = -positive[i] / negative[i];
    }
    constexpr std::size_t visits_at_once = std::size_t{1} << 14;
    for (std::size_t first = 0; first < n_visits; first += visits_at_once) {
        control.check();
        loop(state, rows, first, std::min(n_visits, first + visits_at_once),
             {positive_factor.data(), negative_factor.data(), sums.gap.data(), sums.dual.data(), sums.violation.data(),
              sums.repair.data(), sums.support.data(), of_visit});
    }
    return sums;
}

}  // namespace rankplane
