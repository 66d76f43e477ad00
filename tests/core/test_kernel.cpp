// The solver for kernels, on kernel matrices that are inner products: every instruction set, both types of kernel rows, all rows at
// once and a few at a time. The gap must be the primal objective (plain loops) plus the dual one, it must close, threads must not
// change a bit, and the answers of all paths must agree as far as their gaps say.
#include "kernel/solver.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "check.hpp"
#include "kernel/products.hpp"
#include "problems.hpp"

namespace rankplane::testing {
namespace {

constexpr std::size_t n_ranks = 5;

struct KernelProblem {
    std::size_t n_rows;
    std::vector<double> kernel, diagonal, row_weights;
    std::vector<std::int32_t> ranks;

    explicit KernelProblem(std::size_t rows) : n_rows(rows) {
        const Matrix<double> matrix(n_rows, 9, 0.6, 4);
        Uniform uniform(1);
        for (std::size_t i = 0; i < n_rows; ++i) {
            for (std::size_t k = 0; k < n_rows; ++k) {
                double product = 0;
                for (std::size_t j = 0; j < 9; ++j) product += matrix.dense[i * 9 + j] * matrix.dense[k * 9 + j];
                kernel.push_back(std::pow(0.5 + product, 2));
            }
            diagonal.push_back(kernel[i * n_rows + i]);
            ranks.push_back(static_cast<std::int32_t>(uniform.below(n_ranks)));
            row_weights.push_back(0.5 + uniform());
        }
    }
};

struct KernelAnswer {
    std::vector<double> duals, offsets;
    std::vector<LaneResult> lanes;
};

template <class K>
KernelAnswer solve(const KernelProblem& problem, const Demands& demands, const Options& options, Isa isa, std::size_t n_picks) {
    const std::size_t n_rows = problem.n_rows, n_lanes = demands.n_lanes;
    // In arrays of exactly the size they need: the sanitizer sees a step beyond their ends.
    const std::vector<K> kernel(problem.kernel.begin(), problem.kernel.end());
    KernelSolver solver(problem.diagonal.data(), {problem.ranks.data(), n_rows}, problem.row_weights.data(), n_lanes,
                        demands.n_cuts, options, isa);
    solver.load(demands.table(), std::vector<bool>(n_lanes, false));
    std::vector<double> urgency(n_rows);
    Control control;
    std::vector<std::uint32_t> rows(n_rows);
    while (solver.measure(urgency.data(), control)) {
        for (std::size_t i = 0; i < n_rows; ++i) rows[i] = static_cast<std::uint32_t>(i);
        std::sort(rows.begin(), rows.end(), [&](auto a, auto b) { return urgency[a] > urgency[b]; });
        // Half by their urgency, half by turns.
        std::vector<std::uint32_t> picks(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n_picks));
        static std::size_t turn = 0;
        for (std::size_t k = n_picks / 2; k < n_picks && n_picks < n_rows; ++k) picks[k] = rows[(turn += 7) % n_rows];
        std::sort(picks.begin(), picks.end());
        picks.erase(std::unique(picks.begin(), picks.end()), picks.end());
        std::vector<const K*> kernel_rows;
        for (const std::uint32_t row : picks) kernel_rows.push_back(kernel.data() + row * n_rows);
        solver.improve<K>(picks, kernel_rows, control);
    }
    KernelAnswer answer{std::vector<double>(n_rows * n_lanes), std::vector<double>(demands.n_cuts * n_lanes), solver.results()};
    solver.copy_duals(answer.duals.data());
    solver.copy_offsets(answer.offsets.data());
    return answer;
}

double primal_objective(const KernelProblem& problem, const Demands& demands, const KernelAnswer& answer, const Options& options,
                        std::size_t lane) {
    const std::size_t n_rows = problem.n_rows, n_lanes = demands.n_lanes;
    double objective = 0;
    for (std::size_t cut = 0; cut < demands.n_cuts; ++cut) {
        const double b = answer.offsets[cut * n_lanes + lane];
        if (!options.free_offsets && options.rho > 0) objective += 0.5 * b * b / options.rho;
    }
    for (std::size_t i = 0; i < n_rows; ++i) {
        double score = 0;
        for (std::size_t k = 0; k < n_rows; ++k) score += problem.kernel[i * n_rows + k] * answer.duals[k * n_lanes + lane];
        objective += 0.5 * answer.duals[i * n_lanes + lane] * score;
        for (std::size_t cut = 0; cut < demands.n_cuts; ++cut) {
            objective += loss_of(demands.table(), static_cast<std::size_t>(problem.ranks[i]), cut, lane, problem.row_weights[i],
                                 score + answer.offsets[cut * n_lanes + lane]);
        }
    }
    return objective;
}

template <class K> void test_kernel_of(const KernelProblem& problem, std::size_t n_cuts, double rho, bool free_offsets) {
    constexpr double rounding = sizeof(K) == 4 ? 1e-5 : 1e-10;
    const std::size_t n_lanes = n_cuts == 1 ? 6 : 2;
    const Demands demands(n_ranks, n_cuts, n_lanes);
    Options options;
    options.tol = 1e-3;
    options.rho = rho;
    options.free_offsets = free_offsets;
    KernelAnswer first;
    for (const Isa isa : tested_isas()) {
        for (const std::size_t n_picks : {problem.n_rows, (problem.n_rows + 1) / 2}) {
            const std::string where = std::string(name_of(isa)) + " picks=" + std::to_string(n_picks) +
                                      " cuts=" + std::to_string(n_cuts) + " rho=" + std::to_string(rho) +
                                      " free=" + std::to_string(free_offsets) + " bytes=" + std::to_string(sizeof(K));
            const KernelAnswer answer = solve<K>(problem, demands, options, isa, n_picks);
            if (n_picks == problem.n_rows) {
                Options threaded = options;
                threaded.n_threads = 3;
                const KernelAnswer again = solve<K>(problem, demands, threaded, isa, n_picks);
                CHECK(again.duals == answer.duals && again.offsets == answer.offsets, where);
            }
            if (first.lanes.empty()) first = answer;
            for (std::size_t lane = 0; lane < n_lanes; ++lane) {
                const LaneResult& result = answer.lanes[lane];
                const double primal = primal_objective(problem, demands, answer, options, lane);
                const double scale = rounding * (1.0 + primal);
                CHECK(result.has_converged && result.gap >= -scale && result.gap <= 1.001e-6 * primal + scale, where);
                CHECK(primal + result.dual_objective <= result.gap + scale, where);
                if (!free_offsets) CHECK(std::fabs(primal + result.dual_objective - result.gap) <= scale, where);
                CHECK(std::fabs(result.dual_objective - first.lanes[lane].dual_objective) <= 2e-6 * primal + scale, where);
            }
        }
    }
}

void test_products() {
    const Matrix<double> matrix(23, 17, 0.4, 3);
    const Csr<double, std::int32_t> csr(matrix);
    // The transpose, row by row of it.
    Csr<double, std::int32_t> columns(matrix);
    columns.starts.assign(1, 0);
    columns.columns.clear();
    columns.values.clear();
    columns.n_columns = 23;
    for (std::size_t j = 0; j < 17; ++j) {
        for (std::size_t i = 0; i < 23; ++i) {
            if (matrix.dense[i * 17 + j] == 0) continue;
            columns.columns.push_back(static_cast<std::int32_t>(i));
            columns.values.push_back(matrix.dense[i * 17 + j]);
        }
        columns.starts.push_back(static_cast<std::int32_t>(columns.columns.size()));
    }
    std::vector<double> products(23 * 23, -1.0);
    Control control;
    row_products(csr.rows(), columns.rows(), 23, products.data(), control);
    for (std::size_t i = 0; i < 23; ++i) {
        for (std::size_t k = 0; k < 23; ++k) {
            double expected = 0;
            for (std::size_t j = 0; j < 17; ++j) expected += matrix.dense[i * 17 + j] * matrix.dense[k * 17 + j];
            CHECK(std::fabs(products[i * 23 + k] - expected) < 1e-12, std::to_string(i) + " " + std::to_string(k));
        }
    }
}

}  // namespace

void test_kernel() {
    test_products();
    // Numbers of rows that leave a part of a pack over, and none.
    for (const std::size_t n_rows : {1, 7, 37, 48}) {
        const KernelProblem problem(n_rows);
        for (const std::size_t n_cuts : {1, 4}) {
            test_kernel_of<double>(problem, n_cuts, 1.0, false);
            test_kernel_of<double>(problem, n_cuts, 0.0, false);
            if (n_rows > 7) test_kernel_of<double>(problem, n_cuts, 1.0, true);
        }
        test_kernel_of<float>(problem, 1, 1.0, false);
    }
}

}  // namespace rankplane::testing
