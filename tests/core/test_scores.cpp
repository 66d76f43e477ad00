#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "linear/scores.hpp"
#include "problems.hpp"

namespace rankplane::testing {
namespace {

template <class T, class Rows>
void test_rows(const Rows& rows, const Matrix<T>& matrix, std::size_t n_planes, std::size_t n_threads) {
    Uniform uniform(n_planes);
    std::vector<T> weights(matrix.n_columns * n_planes);
    for (T& weight : weights) weight = static_cast<T>(uniform() - 0.5);
    std::vector<T> scores(matrix.n_rows * n_planes, std::numeric_limits<T>::quiet_NaN());
    Control control;
    plane_scores(rows, weights.data(), n_planes, scores.data(), n_threads, control);
    bool is_equal = true;
    for (std::size_t i = 0; i < matrix.n_rows; ++i) {
        for (std::size_t k = 0; k < n_planes; ++k) {
            double sum = 0, size = 0;
            for (std::size_t j = 0; j < matrix.n_columns; ++j) {
                const double term =
                    static_cast<double>(matrix.dense[i * matrix.n_columns + j]) * static_cast<double>(weights[j * n_planes + k]);
                sum += term;
                size += std::fabs(term);
            }
            const double slack = 100.0 * static_cast<double>(std::numeric_limits<T>::epsilon()) * size;
            is_equal = is_equal && std::fabs(static_cast<double>(scores[i * n_planes + k]) - sum) <= slack;
        }
    }
    CHECK(is_equal, std::to_string(n_planes) + " planes on " + std::to_string(n_threads) + " threads");
}

template <class T> void test_values() {
    // More rows than one job takes, so that threads share the work.
    const Matrix<T> matrix(1100, 12, 0.4, 5), nothing(0, 12, 0.4, 5);
    const Csr<T, std::int32_t> narrow(matrix), no_rows(nothing);
    const Csr<T, std::int64_t> wide(matrix);
    const DenseRows<T> dense{matrix.dense.data(), matrix.n_columns, matrix.n_rows, matrix.n_columns};
    for (const std::size_t n_planes : {1, 3, 8, 11, 16}) {
        for (const std::size_t n_threads : {1, 2, 3}) {
            test_rows(narrow.rows(), matrix, n_planes, n_threads);
            test_rows(wide.rows(), matrix, n_planes, n_threads);
            test_rows(dense, matrix, n_planes, n_threads);
            test_rows(no_rows.rows(), nothing, n_planes, n_threads);
        }
    }
}

}  // namespace

void test_scores() {
    test_values<float>();
    test_values<double>();
}

}  // namespace rankplane::testing
