// Every path through the solver: both value types, sparse and dense rows, both index widths, every instruction set and block width,
// teams and single threads. What holds for all of them needs no second implementation:
//
//  - the gap is not negative, and it is the primal objective (plain loops, below) plus the dual one. That ties the weights to the
//    duals: were w not the sum of a x, the two sides would differ;
//  - two runs give the same bits;
//  - the objective is strongly convex, so two answers with gaps g and h lie within sqrt(2 g) + sqrt(2 h) of each other.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "linear/parts.hpp"
#include "linear/solver.hpp"
#include "problems.hpp"

namespace rankplane::testing {
namespace {

constexpr std::size_t n_ranks = 5;

struct Case {
    std::string kind;
    std::size_t n_lanes = 1, n_cuts = 1;
    Options options;
    Isa isa = Isa::portable;

    std::string name() const {
        return kind + " isa=" + name_of(isa) + " lanes=" + std::to_string(n_lanes) + " cuts=" + std::to_string(n_cuts) +
               " threads=" + std::to_string(options.n_threads) + " shrinking=" + std::to_string(options.shrinking) +
               " batch=" + std::to_string(options.batch) + " max_sweeps=" + std::to_string(options.max_sweeps) +
               " rho=" + std::to_string(options.rho) + " free_offsets=" + std::to_string(options.free_offsets);
    }
};

// Rows with their ranks and weights. With `n_halves` = 2 every row is visited twice, each time with a rank of its own.
template <class T> struct Problem {
    Matrix<T> matrix;
    std::vector<std::int32_t> ranks;
    std::vector<T> row_weights;

    Problem(std::size_t n_rows, std::size_t n_columns, double density, std::size_t n_halves = 1)
        : matrix(n_rows, n_columns, density, n_rows) {
        Uniform uniform(n_columns);
        for (std::size_t visit = 0; visit < n_halves * n_rows; ++visit) {
            ranks.push_back(static_cast<std::int32_t>(uniform.below(n_ranks)));
        }
        for (std::size_t i = 0; i < n_rows; ++i) row_weights.push_back(static_cast<T>(0.5 + uniform()));
    }
    Visits visits() const { return {ranks.data(), ranks.size()}; }
};

template <class T> struct Answer {
    std::vector<T> weights, offsets;
    std::vector<LaneResult> lanes;
};

bool is_same(const LaneResult& a, const LaneResult& b) {
    return a.n_sweeps == b.n_sweeps && a.has_converged == b.has_converged && a.violation == b.violation &&
           a.dual_objective == b.dual_objective && a.gap == b.gap && a.n_support == b.n_support;
}

template <class T> bool is_same(const Answer<T>& a, const Answer<T>& b) {
    return a.weights == b.weights && a.offsets == b.offsets &&
           std::equal(a.lanes.begin(), a.lanes.end(), b.lanes.begin(), b.lanes.end(),
                      [](const LaneResult& one, const LaneResult& other) { return is_same(one, other); });
}

template <class T, class Rows>
Answer<T> solve(const Parts<Rows>& parts, const Problem<T>& problem, const Demands& demands, const Case& which) {
    Control control;
    Solver<T, Rows> solver(parts, problem.visits(), problem.row_weights.data(), which.n_lanes, which.n_cuts, which.options,
                           which.options.batch, which.isa, control);
    solver.run(demands.table(), std::vector<bool>(demands.table().n_lanes, false), demands.table().n_lanes, control);
    Answer<T> answer;
    answer.weights.assign(problem.matrix.n_columns * which.n_lanes, std::numeric_limits<T>::quiet_NaN());
    answer.offsets.assign(which.n_cuts * which.n_lanes, std::numeric_limits<T>::quiet_NaN());
    solver.release_duals();
    solver.copy_weights(answer.weights.data(), which.n_lanes, control);
    solver.copy_offsets(answer.offsets.data());
    answer.lanes = solver.results();
    return answer;
}

template <class T>
double primal_objective(const Problem<T>& problem, const Demands& demands, const Answer<T>& answer, const Case& which,
                        std::size_t lane) {
    const Matrix<T>& matrix = problem.matrix;
    double objective = 0;
    for (std::size_t j = 0; j < matrix.n_columns; ++j) {
        const double w = static_cast<double>(answer.weights[j * which.n_lanes + lane]);
        objective += 0.5 * w * w;
    }
    for (std::size_t cut = 0; cut < which.n_cuts; ++cut) {
        const double b = static_cast<double>(answer.offsets[cut * which.n_lanes + lane]);
        if (!which.options.free_offsets && which.options.rho > 0) objective += 0.5 * b * b / which.options.rho;
    }
    for (std::size_t visit = 0; visit < problem.ranks.size(); ++visit) {
        const std::size_t i = visit % matrix.n_rows;
        double score = 0;
        for (std::size_t j = 0; j < matrix.n_columns; ++j) {
            score += static_cast<double>(matrix.dense[i * matrix.n_columns + j]) *
                     static_cast<double>(answer.weights[j * which.n_lanes + lane]);
        }
        for (std::size_t cut = 0; cut < which.n_cuts; ++cut) {
            objective += loss_of(demands.table(), static_cast<std::size_t>(problem.ranks[visit]), cut, lane,
                                 static_cast<double>(problem.row_weights[i]),
                                 score + static_cast<double>(answer.offsets[cut * which.n_lanes + lane]));
        }
    }
    return objective;
}

template <class T>
void check_certificates(const Problem<T>& problem, const Demands& demands, const Answer<T>& answer, const Case& which) {
    constexpr double rounding = sizeof(T) == 4 ? 2e-5 : 1e-12;
    CHECK(answer.lanes.size() == which.n_lanes, which.name());
    for (std::size_t lane = 0; lane < which.n_lanes; ++lane) {
        const LaneResult& result = answer.lanes[lane];
        const double primal = primal_objective(problem, demands, answer, which, lane);
        const double scale = rounding * (1.0 + primal + std::fabs(result.dual_objective));
        const auto where = [&] {
            return which.name() + " lane=" + std::to_string(lane) + " gap=" + std::to_string(result.gap) +
                   " primal=" + std::to_string(primal) + " dual=" + std::to_string(result.dual_objective) +
                   " sweeps=" + std::to_string(result.n_sweeps);
        };
        CHECK(std::isfinite(primal) && std::isfinite(result.dual_objective), where());
        CHECK(result.gap >= -scale, where());
        CHECK(result.n_sweeps >= 1 && result.n_sweeps <= which.options.max_sweeps, where());
        CHECK(result.n_support <= problem.ranks.size(), where());
        if (which.options.free_offsets) {
            // Here the gap is a bound: duals that had to be made feasible first count by how far they were moved.
            CHECK(primal + result.dual_objective <= result.gap + scale, where());
        } else {
            CHECK(std::fabs(primal + result.dual_objective - result.gap) <= scale, where());
        }
        if (sizeof(T) == 8 && which.options.max_sweeps > 1) {
            CHECK(result.has_converged, where());
            CHECK(result.gap <= 1e-5 * primal, where());
        }
    }
}

template <class T> void check_agreement(const Answer<T>& one, const Answer<T>& other, const Case& which) {
    constexpr double rounding = sizeof(T) == 4 ? 1e-3 : 1e-10;
    for (std::size_t lane = 0; lane < which.n_lanes; ++lane) {
        double square = 0;
        for (std::size_t i = lane; i < one.weights.size(); i += which.n_lanes) {
            const double difference = static_cast<double>(one.weights[i]) - static_cast<double>(other.weights[i]);
            square += difference * difference;
        }
        // After a single sweep nothing has converged, but the steps are the same up to rounding.
        const double gaps = which.options.max_sweeps == 1 ? 0.0
                                                          : std::sqrt(2.0 * std::max(0.0, one.lanes[lane].gap)) +
                                                                std::sqrt(2.0 * std::max(0.0, other.lanes[lane].gap));
        CHECK(std::sqrt(square) <= gaps + rounding, which.name() + " lane=" + std::to_string(lane) +
                                                        " distance=" + std::to_string(std::sqrt(square)) +
                                                        " allowed=" + std::to_string(gaps + rounding));
    }
}

// All instruction sets on one problem; the first answer is returned, for comparison with other numbers of threads.
template <class T, class Rows>
Answer<T> test_isas(const Parts<Rows>& parts, const Problem<T>& problem, const Demands& demands, Case which) {
    Answer<T> first;
    for (const Isa isa : tested_isas()) {
        which.isa = isa;
        const Answer<T> answer = solve(parts, problem, demands, which);
        CHECK(is_same(answer, solve(parts, problem, demands, which)), which.name());
        check_certificates(problem, demands, answer, which);
        if (first.lanes.empty()) first = answer;
        check_agreement(answer, first, which);
    }
    return first;
}

template <class T, class MakeParts>
void test_widths(const std::string& kind, const Problem<T>& problem, const MakeParts& make_parts,
                 const std::vector<std::size_t>& widths, const Options& base) {
    for (const std::size_t n_lanes : widths) {
        for (const std::size_t n_cuts : {1, 4}) {
            const Demands demands(n_ranks, n_cuts, n_lanes);
            for (const bool shrinking : {true, false}) {
                for (const std::size_t max_sweeps : {1, 300}) {
                    Answer<T> alone;
                    // Three threads on two cores wait for each other most of the time; once is enough.
                    // Three threads on two cores sleep most of the time, so few cases have them.
                    const std::size_t most_threads = !shrinking || n_lanes % 4 != 0 ? 1 : n_lanes == 8 ? 3 : 2;
                    for (std::size_t n_threads = 1; n_threads <= most_threads; ++n_threads) {
                        // A team meets twice for each batch, and its members sleep where processors are few.
                        for (const std::size_t batch :
                             n_threads == 1 ? std::vector<std::size_t>{1, 4} : std::vector<std::size_t>{8}) {
                            Case which{kind, n_lanes, n_cuts, base, Isa::portable};
                            which.options.shrinking = shrinking;
                            which.options.max_sweeps = max_sweeps;
                            which.options.n_threads = n_threads;
                            which.options.batch = batch;
                            const auto parts = make_parts(n_threads);
                            const Answer<T> answer = test_isas(parts, problem, demands, which);
                            if (n_threads == 1 && batch == 1) alone = answer;
                            // A team visits the rows in another order, and rows of a batch do not see each other's steps.
                            if (max_sweeps > 1) check_agreement(answer, alone, which);
                        }
                    }
                }
            }
        }
    }
}

template <class T> void test_values(const std::string& value_type) {
    const std::vector<std::size_t> widths =
        is_for_threads ? std::vector<std::size_t>{3, 20, 40} : std::vector<std::size_t>{1, 2, 3, 5, 8, 12, 16, 20, 24, 32, 40};
    Options options;
    options.tol = 1e-6;
    options.seed = 7;
    const Problem<T> problem(33, 29, 0.3);
    const Matrix<T>& matrix = problem.matrix;
    const Csr<T, std::int32_t> narrow(matrix);
    const Csr<T, std::int64_t> wide(matrix);
    const auto dense = [&](std::size_t n_parts) {
        return dense_parts(matrix.dense.data(), matrix.n_rows, matrix.n_columns, n_parts);
    };
    Control control;
    const auto renumbered = [&](std::size_t n_parts) {
        return renumbered_parts(narrow.rows(), n_parts, Order::strict, n_parts, control);
    };
    const auto renumbered_wide = [&](std::size_t n_parts) {
        return renumbered_parts(wide.rows(), n_parts, Order::strict, n_parts, control);
    };
    test_widths(value_type + " dense", problem, dense, widths, options);
    test_widths(value_type + " csr32", problem, renumbered, widths, options);
    test_widths(value_type + " csr64 renumbered", problem, renumbered_wide, {3, 8}, options);
    // Entries in any order are the same rows, and so are those of a column in two pieces.
    const Csr<T, std::int32_t> mixed = shuffled(narrow);
    test_widths(
        value_type + " csr32 unsorted", problem,
        [&](std::size_t n_parts) { return renumbered_parts(mixed.rows(), n_parts, Order::unsorted, n_parts, control); }, {3, 8},
        options);
    test_widths(
        value_type + " csr32 unsorted as it lies", problem,
        [&](std::size_t) { return whole_parts(mixed.rows(), Order::unsorted, control); }, {8}, options);
    // As it lies, X serves a team of one only; several blocks may still be solved side by side.
    test_widths(
        value_type + " csr32 as it lies", problem, [&](std::size_t) { return whole_parts(narrow.rows(), Order::strict, control); },
        {3, 8, 40}, options);
    test_widths(
        value_type + " csr64 as it lies", problem, [&](std::size_t) { return whole_parts(wide.rows(), Order::strict, control); },
        widths, options);

    Options without_offset = options;
    without_offset.rho = 0;
    test_widths(value_type + " csr32 without offset", problem, renumbered, {3, 8}, without_offset);
    Options free_offsets = options;
    free_offsets.free_offsets = true;
    test_widths(value_type + " csr32 free offsets", problem, renumbered, {3, 8}, free_offsets);

    const Problem<T> halves(33, 29, 0.3, 2);
    test_widths(
        value_type + " dense halves", halves,
        [&](std::size_t n_parts) {
            return dense_parts(halves.matrix.dense.data(), halves.matrix.n_rows, halves.matrix.n_columns, n_parts);
        },
        {3, 8}, options);
}

// A stop in the middle of a sweep must release every member of a team, not only the one that sees it.
void test_stop() {
    const Problem<float> problem(600, 40, 0.3);
    const Csr<float, std::int32_t> csr(problem.matrix);
    const Demands demands(n_ranks, 1, 8);
    Options options;
    options.tol = 0;
    options.max_sweeps = std::numeric_limits<std::size_t>::max();
    for (const std::size_t n_threads : {1, 2, 3}) {
        options.n_threads = n_threads;
        Control control;
        const auto parts = renumbered_parts(csr.rows(), n_threads, Order::strict, n_threads, control);
        Solver<float, SparseRows<float, std::int32_t>> solver(parts, problem.visits(), nullptr, 8, 1, options, 8,
                                                              supported_isas().front(), control);
        std::size_t n_reports = 0;
        control.report = [&](const Report& report) {
            CHECK(report.lanes.size() == report.violations.size() && report.n_active_rows <= 600, "a report of the sweep");
            if (++n_reports == 3) control.request_stop();
        };
        const auto run = [&] {
            solver.run(demands.table(), std::vector<bool>(demands.table().n_lanes, false), demands.table().n_lanes, control);
        };
        CHECK(throws<Stopped>(run), "a stopped solve says so");
        CHECK(n_reports == 3, std::to_string(n_threads) + " threads");
    }
}

}  // namespace

void test_solver() {
    test_values<float>("float");
    test_values<double>("double");
    test_stop();
}

}  // namespace rankplane::testing
