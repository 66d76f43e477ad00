#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "linear/columns.hpp"
#include "linear/parts.hpp"
#include "problems.hpp"

namespace rankplane::testing {
namespace {

template <class Index> void test_malformed() {
    const Matrix<float> matrix(20, 15, 0.3, 1);
    const Csr<float, Index> sound(matrix);
    const auto is_refused = [](const Csr<float, Index>& csr) {
        return throws<std::invalid_argument>([&] {
            check_starts(csr.starts.data(), csr.starts.size(), csr.columns.size());
            check_columns(csr.rows());
        });
    };
    CHECK(!is_refused(sound), "a sound matrix");
    for (const Index bad : {Index{-1}, Index{15}, std::numeric_limits<Index>::max(), std::numeric_limits<Index>::min()}) {
        Csr<float, Index> csr = sound;
        csr.columns.back() = bad;
        CHECK(is_refused(csr), "column index " + std::to_string(bad));
    }
    Csr<float, Index> csr = sound;
    csr.starts.back() += 1;
    CHECK(is_refused(csr), "starts beyond the entries");
    csr = sound;
    csr.starts[0] = 1;
    CHECK(is_refused(csr), "starts that do not begin at 0");
    csr = sound;
    csr.starts[3] = -1;
    CHECK(is_refused(csr), "a negative start");
    csr = sound;
    std::swap(csr.starts[3], csr.starts[9]);
    CHECK(is_refused(csr), "starts that fall");
    csr.starts.clear();
    CHECK(throws<std::invalid_argument>([&] { check_starts(csr.starts.data(), 0, 0); }), "no starts");
}

// Every entry must be found again, in its row, under its new number.
template <class T, class Index> void test_renumbering(std::size_t n_columns, double density, std::size_t n_parts) {
    const Matrix<T> matrix(40, n_columns, density, n_columns + n_parts);
    const Csr<T, Index> csr(matrix);
    Control control;
    const auto team = renumbered_parts(csr.rows(), n_parts, control);
    const std::string where = std::to_string(n_columns) + " columns in " + std::to_string(n_parts) + " parts";
    std::vector<T> found(matrix.dense.size(), T(0));
    std::size_t next_column = 0, n_entries = 0;
    bool is_in_range = true, is_permutation = true, is_by_frequency = true;
    for (const auto& part : team.parts) {
        CHECK(part.order.first() == next_column, where);
        next_column = part.order.last();
        std::vector<std::size_t> column_at(part.order.size(), n_columns), count(part.order.size(), 0);
        for (std::size_t column = part.order.first(); column < part.order.last(); ++column) {
            is_permutation = is_permutation && column_at.at(part.order.position(column)) == n_columns;
            column_at.at(part.order.position(column)) = column;
        }
        for (std::size_t i = 0; i < matrix.n_rows; ++i) {
            const auto row = part.rows[i];
            n_entries += row.size;
            for (std::size_t q = 0; q < row.size; ++q) {
                is_in_range = is_in_range && row.column(q) < part.order.size();
                found[i * n_columns + column_at.at(row.column(q))] = row.value(q);
                ++count[row.column(q)];
            }
        }
        is_by_frequency = is_by_frequency && std::is_sorted(count.rbegin(), count.rend());
    }
    CHECK(next_column == n_columns, where);
    CHECK(n_entries == matrix.values.size(), where);
    CHECK(is_in_range, where);
    CHECK(is_permutation, where);
    CHECK(is_by_frequency, where);
    CHECK(found == matrix.dense, where);
}

void test_plans() {
    const Matrix<float> matrix(40, 200, 0.5, 3);
    Csr<float, std::int32_t> csr(matrix);
    CHECK(plan_parts(csr.rows(), 8, 1).n_parts == 1, "one thread");
    CHECK(plan_parts(csr.rows(), 8, 2).n_parts == 2, "long rows are worth a team");
    CHECK(plan_parts(csr.rows(), max_width + 1, 2).n_parts == 1, "several blocks need no teams");
    CHECK(!plan_parts(csr.rows(), 8, 1).is_renumbered, "small weights stay as they are");
    std::swap(csr.columns[0], csr.columns[1]);
    CHECK(plan_parts(csr.rows(), 8, 2).n_parts == 1, "unsorted rows cannot be dealt out");
    const Matrix<float> thin(40, 200, 0.02, 3);
    CHECK(plan_parts(Csr<float, std::int32_t>(thin).rows(), 8, 2).n_parts == 1, "short rows are not worth a team");
}

}  // namespace

void test_columns() {
    test_malformed<std::int32_t>();
    test_malformed<std::int64_t>();
    for (const std::size_t n_columns : {1, 2, 30, 200}) {
        for (const double density : {0.0, 0.1, 0.9}) {
            for (const std::size_t n_parts : {1, 2, 3, 5}) {
                test_renumbering<float, std::int32_t>(n_columns, density, n_parts);
                test_renumbering<double, std::int64_t>(n_columns, density, n_parts);
            }
        }
    }
    test_plans();
}

}  // namespace rankplane::testing
