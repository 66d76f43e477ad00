// Linear NPSVOR as a textbook would have it: plane after plane, dual coordinate descent in double (DCD-2), one weight gathered at a
// time. It shares no code with the package; it is what the package is measured against, so it is plain but not slow on purpose.
//
// For one plane, with a signed dual variable a per row, w = sum a x (bias included as a column of ones), z = w.x and Q = x.x + 1:
//
//     row of the plane's rank:  a in [-C1, C1],  min over a'  Q/2 (a'-a)^2 + z (a'-a) + eps |a'|      (soft threshold, clamp)
//     row of a higher rank:     a in [0, C2],    min over a'  Q/2 (a'-a)^2 + (z-1) (a'-a)             (clamp)
//     row of a lower rank:      the same with the signs of z and a turned
//
// Stops when the violations of a sweep over all rows sum to at most tol times those of the first sweep. Shrinking as in LIBLINEAR:
// a row at a bound whose gradient points outwards by more than the largest violation of the last sweep is left out.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

namespace {

struct Csr {
    std::int64_t n_rows, n_columns;
    const std::int64_t* starts;
    const std::int32_t* columns;
    const double* values;
};

struct Plane {
    double* weights;  // columns, then the bias
    double* duals;
};

struct Settings {
    double c_own, c_other, epsilon, tol;
    std::int64_t max_sweeps;
};

double score(const Csr& X, std::int64_t row, const double* weights) {
    double z = weights[X.n_columns];
    for (std::int64_t q = X.starts[row]; q < X.starts[row + 1]; ++q) z += weights[X.columns[q]] * X.values[q];
    return z;
}

void add(const Csr& X, std::int64_t row, double step, double* weights) {
    for (std::int64_t q = X.starts[row]; q < X.starts[row + 1]; ++q) weights[X.columns[q]] += step * X.values[q];
    weights[X.n_columns] += step;
}

// How a row stands: by how much it violates its optimality condition, whether it may be left out, where its variable should go.
struct Verdict {
    double violation = 0;
    bool shrinks = false;
    double target = 0;
};

Verdict lie_on(double a, double z, double square, double bound, double epsilon, double largest) {
    const double up = z + epsilon, down = z - epsilon;  // slopes to the right and to the left of a = 0
    Verdict verdict;
    if (a == 0) {
        verdict.violation = std::max({0.0, -up, down});
        verdict.shrinks = up > largest && down < -largest;
    } else if (a >= bound) {
        verdict.violation = std::max(0.0, up);
        verdict.shrinks = up < -largest;
    } else if (a <= -bound) {
        verdict.violation = std::max(0.0, -down);
        verdict.shrinks = down > largest;
    } else {
        verdict.violation = std::fabs(a > 0 ? up : down);
    }
    const double newton = a - z / square, threshold = epsilon / square;
    const double soft = newton > threshold ? newton - threshold : newton < -threshold ? newton + threshold : 0.0;
    verdict.target = std::clamp(soft, -bound, bound);
    return verdict;
}

// For side +1; a caller on side -1 turns the signs of a and z, and of the target.
Verdict be_above(double a, double z, double square, double bound, double largest) {
    const double gradient = z - 1;
    Verdict verdict;
    if (a <= 0) {
        verdict.violation = std::max(0.0, -gradient);
        verdict.shrinks = gradient > largest;
    } else if (a >= bound) {
        verdict.violation = std::max(0.0, gradient);
        verdict.shrinks = gradient < -largest;
    } else {
        verdict.violation = std::fabs(gradient);
    }
    verdict.target = std::clamp(a - gradient / square, 0.0, bound);
    return verdict;
}

std::int64_t solve_plane(const Csr& X, const std::int32_t* ranks, std::int32_t rank, const std::vector<double>& squares,
                         const Settings& settings, std::mt19937_64& random, const Plane& plane) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::vector<std::int64_t> rows(static_cast<std::size_t>(X.n_rows));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
    std::size_t n_active = rows.size();
    double largest = infinity, first_sum = -1;
    std::int64_t sweep = 0;
    while (sweep < settings.max_sweeps) {
        ++sweep;
        const bool is_full = n_active == rows.size();
        double sum = 0, worst = 0;
        std::shuffle(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n_active), random);
        for (std::size_t s = 0; s < n_active; ++s) {
            const std::int64_t row = rows[s];
            double& a = plane.duals[row];
            const double z = score(X, row, plane.weights);
            const double square = squares[static_cast<std::size_t>(row)];
            Verdict verdict;
            if (ranks[row] == rank) {
                verdict = lie_on(a, z, square, settings.c_own, settings.epsilon, largest);
            } else {
                const double side = ranks[row] > rank ? 1.0 : -1.0;
                verdict = be_above(side * a, side * z, square, settings.c_other, largest);
                verdict.target *= side;
            }
            if (verdict.shrinks) {
                std::swap(rows[s--], rows[--n_active]);
                continue;
            }
            sum += verdict.violation;
            worst = std::max(worst, verdict.violation);
            if (std::fabs(verdict.target - a) > 1e-12) {
                add(X, row, verdict.target - a, plane.weights);
                a = verdict.target;
            }
        }
        if (first_sum < 0) first_sum = sum;
        if (sum <= settings.tol * first_sum) {
            if (is_full) break;
            n_active = rows.size();
            largest = infinity;
        } else {
            largest = worst > 0 ? worst : infinity;
        }
    }
    return sweep;
}

}  // namespace

// weights: [rank][columns + 1], duals: [rank][row], both zero on entry; sweeps: [rank].
extern "C" void textbook_npsvor(std::int64_t n_rows, std::int64_t n_columns, const std::int64_t* starts, const std::int32_t* columns,
                                const double* values, const std::int32_t* ranks, std::int32_t n_ranks, double c_own, double c_other,
                                double epsilon, double tol, std::int64_t max_sweeps, std::uint64_t seed, double* weights,
                                double* duals, std::int64_t* sweeps) {
    const Csr X{n_rows, n_columns, starts, columns, values};
    const Settings settings{c_own, c_other, epsilon, tol, max_sweeps};
    std::mt19937_64 random(seed);
    std::vector<double> squares(static_cast<std::size_t>(n_rows));
    for (std::int64_t row = 0; row < n_rows; ++row) {
        double square = 1;
        for (std::int64_t q = starts[row]; q < starts[row + 1]; ++q) square += values[q] * values[q];
        squares[static_cast<std::size_t>(row)] = square;
    }
    for (std::int32_t rank = 0; rank < n_ranks; ++rank) {
        const Plane plane{weights + rank * (n_columns + 1), duals + rank * n_rows};
        sweeps[rank] = solve_plane(X, ranks, rank, squares, settings, random, plane);
    }
}
