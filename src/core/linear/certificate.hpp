// How good a block's solution is: dual objective, duality gap and violation, in double.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/control.hpp"
#include "common/parallel.hpp"
#include "linear/sweep.hpp"

namespace rankplane {

// Sums per lane of a block. `square` is |w|^2, which only the keeper of w can tell.
struct Certificate {
    std::vector<double> gap, dual, violation, repair, support, square, offset_square;
    std::vector<double> positive, negative;  // [cut][lane] sums of the duals above and below zero

    explicit Certificate(std::size_t width = 0)
        : gap(width, 0.0),
          dual(width, 0.0),
          violation(width, 0.0),
          repair(width, 0.0),
          support(width, 0.0),
          square(width, 0.0),
          offset_square(width, 0.0) {}

    void add(const Certificate& other) {
        for (const auto sum : {&Certificate::gap, &Certificate::dual, &Certificate::violation, &Certificate::repair,
                               &Certificate::support, &Certificate::square, &Certificate::offset_square}) {
            for (std::size_t l = 0; l < (this->*sum).size(); ++l) (this->*sum)[l] += (other.*sum)[l];
        }
    }

    // |sum a x|^2 = 2 sum a s - |w|^2 up to the square of the rounding in w.
    double dual_objective(std::size_t l) const { return dual[l] + 0.5 * offset_square[l] - 0.5 * square[l]; }
    double duality_gap(std::size_t l) const { return gap[l] + 0.5 * repair[l] * repair[l]; }
};

// Visits that a thread certifies at a time. Sums are formed for so many and then added up in order, so that they do not depend on
// the number of threads.
inline constexpr std::size_t visits_at_once = std::size_t{1} << 14;

// `of_visit` as in CertifyState. Leaves `square` to the caller.
template <class T, class Rows>
Certificate certify(const SweepState<T>& state, std::size_t width, const Rows& rows, std::size_t n_visits, bool free_offsets,
                    CertifyLoop<T, Rows> loop, std::size_t n_threads, Control& control, double* of_visit = nullptr) {
    const std::size_t n_per_cut = state.n_cuts * width, n_jobs = (n_visits + visits_at_once - 1) / visits_at_once;
    const auto for_visits = [&](const auto& job) {
        parallel_for(n_jobs, n_threads, control,
                     [&](std::size_t i) { job(i, i * visits_at_once, std::min(n_visits, (i + 1) * visits_at_once)); });
    };
    // [job][cut][lane]
    std::vector<double> positive(n_jobs * n_per_cut, 0.0), negative(n_jobs * n_per_cut, 0.0);
    for_visits([&](std::size_t job, std::size_t first, std::size_t last) {
        for (std::size_t visit = first; visit < last; ++visit) {
            for (std::size_t i = 0; i < n_per_cut; ++i) {
                const double a = static_cast<double>(state.duals[visit * n_per_cut + i]);
                positive[job * n_per_cut + i] += std::max(a, 0.0);
                negative[job * n_per_cut + i] += std::min(a, 0.0);
            }
        }
    });
    // With ordered offsets, the duals of the cuts must sum to minus the multipliers; all of these are scaled down if some cut lacks
    // duals for that.
    std::vector<double> wanted(n_per_cut, 0.0), possible(width, 1.0);
    Certificate sums(width);
    sums.positive.assign(n_per_cut, 0.0);
    sums.negative.assign(n_per_cut, 0.0);
    // With free offsets the duals of a cut must sum to zero; scaling down the larger side makes them.
    std::vector<double> positive_factor(n_per_cut, 1.0), negative_factor(n_per_cut, 1.0);
    for (std::size_t i = 0; i < n_per_cut; ++i) {
        double &up = sums.positive[i], &down = sums.negative[i];
        for (std::size_t job = 0; job < n_jobs; ++job) {
            up += positive[job * n_per_cut + i];
            down += negative[job * n_per_cut + i];
        }
        if (state.pushes == nullptr) continue;
        wanted[i] = -static_cast<double>(state.pushes[i]) / static_cast<double>(state.rho);
        const double most = wanted[i] > 0 ? up : down;
        if (wanted[i] != 0) possible[i % width] = std::clamp(most / wanted[i], 0.0, possible[i % width]);
    }
    for (std::size_t i = 0; i < n_per_cut; ++i) {
        const double up = sums.positive[i], down = sums.negative[i], sum = up + down;
        const double target = possible[i % width] * wanted[i];
        if (!free_offsets) sums.offset_square[i % width] += static_cast<double>(state.rho) * sum * sum;
        if (free_offsets && sum > target) positive_factor[i] = (target - down) / up;
        if (free_offsets && sum < target) negative_factor[i] = (target - up) / down;
    }
    std::vector<Certificate> parts(n_jobs, Certificate(width));
    for_visits([&](std::size_t job, std::size_t first, std::size_t last) {
        Certificate& part = parts[job];
        loop(state, rows, first, last,
             {positive_factor.data(), negative_factor.data(), part.gap.data(), part.dual.data(), part.violation.data(),
              part.repair.data(), part.support.data(), of_visit});
    });
    for (const Certificate& part : parts) sums.add(part);
    return sums;
}

}  // namespace rankplane
