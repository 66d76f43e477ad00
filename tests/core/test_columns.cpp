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
            Control control;
            check_columns(csr.rows(), 2, control);
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

// Every entry must be found again, in its row, under its new number, and in the part of its column.
template <class T, class Index>
void test_renumbering(std::size_t n_columns, double density, std::size_t n_parts, bool is_shuffled) {
    const Matrix<T> matrix(40, n_columns, density, n_columns + n_parts);
    const Csr<T, Index> sorted(matrix), csr = is_shuffled ? shuffled(sorted) : sorted;
    Control control;
    const Order order = check_columns(csr.rows(), 2, control);
    const auto parts = renumbered_parts(csr.rows(), n_parts, order, 2, control);
    const std::string where =
        std::to_string(n_columns) + " columns in " + std::to_string(n_parts) + " parts" + (is_shuffled ? ", shuffled" : "");
    std::vector<T> found(matrix.dense.size(), T(0)), found_in_parts = found;
    std::vector<std::size_t> column_at(n_columns, n_columns), part_of(n_columns, n_parts);
    bool is_permutation = true, is_by_frequency = true, is_in_one_part = true;
    for (std::size_t column = 0; column < n_columns; ++column) {
        is_permutation = is_permutation && column_at.at(parts.place(column)) == n_columns;
        column_at.at(parts.place(column)) = column;
    }
    CHECK(parts.parts.size() == n_parts, where);
    const auto collect = [&](const auto& rows, std::vector<T>& to, std::size_t part) {
        std::vector<std::size_t> count(n_columns, 0);
        for (std::size_t i = 0; i < matrix.n_rows; ++i) {
            const auto row = rows[i];
            for (std::size_t q = 0; q < row.size; ++q) {
                to[i * n_columns + column_at.at(row.column(q))] += row.value(q);
                ++count[row.column(q)];
                if (part == n_parts) continue;
                is_in_one_part = is_in_one_part && (part_of[row.column(q)] == n_parts || part_of[row.column(q)] == part);
                part_of[row.column(q)] = part;
            }
        }
        if (part < n_parts) {
            std::vector<std::size_t> own;
            for (std::size_t place = 0; place < n_columns; ++place) {
                if (part_of[place] == part) own.push_back(count[place]);
            }
            is_by_frequency = is_by_frequency && std::is_sorted(own.rbegin(), own.rend());
        }
    };
    collect(parts.whole, found, n_parts);
    for (std::size_t part = 0; part < n_parts; ++part) collect(parts.parts[part], found_in_parts, part);
    CHECK(is_permutation, where);
    CHECK(is_by_frequency, where);
    CHECK(is_in_one_part, where);
    CHECK(found == matrix.dense, where);
    CHECK(found_in_parts == matrix.dense, where);
    bool repeats = false;
    for (std::size_t q = 0; is_shuffled && q < matrix.values.size(); ++q) repeats = repeats || q % 4 == 0;
    CHECK(parts.repetitive.empty() != repeats, where);
}

void test_orders() {
    const Matrix<float> matrix(20, 15, 0.5, 1);
    Csr<float, std::int32_t> csr(matrix);
    Control control;
    CHECK(check_columns(csr.rows(), 1, control) == Order::strict, "sorted rows");
    std::swap(csr.columns[0], csr.columns[1]);
    CHECK(check_columns(csr.rows(), 1, control) == Order::unsorted, "two entries swapped");
    csr.columns[0] = csr.columns[1];
    CHECK(check_columns(csr.rows(), 1, control) == Order::sorted, "a column twice");
}

void test_plans() {
    const auto parts = [](std::size_t mean_size, std::size_t n_lanes, std::size_t batch, std::size_t n_threads) {
        return parts_for(1000, 1000 * mean_size, n_lanes, batch, n_threads);
    };
    CHECK(parts(100, 8, 256, 1) == 1, "one thread");
    CHECK(parts(100, 8, 256, 2) == 2, "long rows are worth a team");
    CHECK(parts(100, 8, 1024, 64) == 12, "a part of a row has eight entries at least");
    CHECK(parts(100, 8, 64, 2) == 1, "small batches are not worth a meeting");
    CHECK(parts(100, 2 * max_width + 1, 256, 2) == 1, "as many blocks as threads need no teams");
    CHECK(parts(100, max_width + 1, 256, 4) == 4, "blocks that leave threads idle do");
    CHECK(parts(10, 8, 256, 2) == 1, "short rows are not worth a team");
}

// Batches by what the rows have in common.
template <class MakeValue> Likeness likeness_of(std::size_t n_columns, const MakeValue& value_of) {
    constexpr std::size_t n_rows = 500;
    std::vector<double> values(n_rows * n_columns);
    Uniform uniform(n_columns);
    for (std::size_t i = 0; i < n_rows; ++i) {
        for (std::size_t j = 0; j < n_columns; ++j) values[i * n_columns + j] = value_of(i, j, uniform);
    }
    return compare_rows(DenseRows<double>{values.data(), n_columns, n_rows, n_columns, 0}, 1.0, false, values.size());
}

void test_batches() {
    constexpr std::size_t n_visits = 1 << 20;
    const auto noise = [](std::size_t, std::size_t, Uniform& uniform) { return 2 * uniform() - 1; };
    const auto batch = [&](const Likeness& likeness, std::size_t n_cuts = 1) { return choose_batch(likeness, n_visits, n_cuts); };
    const std::size_t few = batch(likeness_of(5, noise)), many = batch(likeness_of(500, noise));
    CHECK(few <= 8, "few columns: " + std::to_string(few));
    CHECK(many >= 20 && many > few, "many columns: " + std::to_string(many));
    const auto alike = likeness_of(500, [](std::size_t, std::size_t j, Uniform&) { return j % 3 == 0 ? 1.0 : -0.5; });
    CHECK(batch(alike) == 1, "equal rows");
    const auto hot =
        likeness_of(500, [&](std::size_t i, std::size_t j, Uniform& uniform) { return j == 0 ? 30.0 : noise(i, j, uniform); });
    CHECK(batch(hot) <= 2, "a hot column that outweighs the offset: " + std::to_string(batch(hot)));
    const auto warm = likeness_of(
        500, [&](std::size_t i, std::size_t j, Uniform& uniform) { return j == 0 ? 0.5 : 0.01 * noise(i, j, uniform); });
    CHECK(batch(warm) >= 64, "a column that the offset outweighs: " + std::to_string(batch(warm)));
    CHECK(batch(warm, 8) < batch(warm), "and eight of its kind that it does not: " + std::to_string(batch(warm, 8)));
    const auto groups = likeness_of(8, [](std::size_t i, std::size_t j, Uniform&) { return i * 7 % 8 == j ? 3.0 : 0.0; });
    CHECK(batch(groups) <= 8, "rows of eight kinds: " + std::to_string(batch(groups)));
    CHECK(batch(Likeness{}) == max_batch, "rows that have nothing in common");
    CHECK(choose_batch(Likeness{}, 100, 1) == 1, "few rows");
}

}  // namespace

void test_columns() {
    test_malformed<std::int32_t>();
    test_malformed<std::int64_t>();
    for (const std::size_t n_columns : {1, 2, 30, 200}) {
        for (const double density : {0.0, 0.1, 0.9}) {
            for (const std::size_t n_parts : {1, 2, 3, 5}) {
                for (const bool is_shuffled : {false, true}) {
                    test_renumbering<float, std::int32_t>(n_columns, density, n_parts, is_shuffled);
                    test_renumbering<double, std::int64_t>(n_columns, density, n_parts, is_shuffled);
                }
            }
        }
    }
    test_orders();
    test_plans();
    test_batches();
}

}  // namespace rankplane::testing
