// Small random problems, with everything in them that real data has: empty rows, empty columns, row weights, every kind of demand.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "common/random.hpp"
#include "common/rows.hpp"
#include "isa/isa.hpp"
#include "linear/block.hpp"

namespace rankplane::testing {

// Under the thread sanitizer everything takes many times as long, and what can go wrong depends neither on the width of a block
// nor on the instruction set: a few of each are enough.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool is_for_threads = true;
#else
inline constexpr bool is_for_threads = false;
#endif

inline std::vector<Isa> tested_isas() {
    std::vector<Isa> isas = supported_isas();
    if (is_for_threads) isas.resize(1);
    return isas;
}

// Numbers in [0, 1), from the core's own generator: the same problems on every machine.
class Uniform {
  public:
    explicit Uniform(std::uint64_t seed) : random_(seed) {}
    double operator()() { return static_cast<double>(random_.below(1u << 24)) / static_cast<double>(1u << 24); }
    std::size_t below(std::size_t bound) { return random_.below(static_cast<std::uint32_t>(bound)); }

  private:
    Random random_;
};

// The same matrix, sparse and dense.
template <class T> struct Matrix {
    std::size_t n_rows, n_columns;
    std::vector<std::int64_t> starts{0}, columns;
    std::vector<T> values, dense;

    Matrix(std::size_t rows, std::size_t of_columns, double density, std::uint64_t seed)
        : n_rows(rows), n_columns(of_columns), dense(rows * of_columns, T(0)) {
        Uniform uniform(seed);
        for (std::size_t i = 0; i < n_rows; ++i) {
            const bool is_empty = i % 11 == 5;
            for (std::size_t j = 0; j < n_columns; ++j) {
                const bool is_empty_column = j % 13 == 7 || j + 1 == n_columns;
                if (is_empty || is_empty_column || uniform() >= density) continue;
                const T value = static_cast<T>(2.0 * uniform() - 0.7);
                columns.push_back(static_cast<std::int64_t>(j));
                values.push_back(value);
                dense[i * n_columns + j] = value;
            }
            starts.push_back(static_cast<std::int64_t>(columns.size()));
        }
    }
};

// A csr matrix with indices of a given width, in arrays of exactly the size it needs: the sanitizer sees a step beyond their ends.
template <class T, class Index> struct Csr {
    std::vector<Index> starts, columns;
    std::vector<T> values;
    std::size_t n_columns;

    explicit Csr(const Matrix<T>& from)
        : starts(from.starts.begin(), from.starts.end()),
          columns(from.columns.begin(), from.columns.end()),
          values(from.values),
          n_columns(from.n_columns) {}

    SparseRows<T, Index> rows() const {
        const RowBounds begins{starts.data(), sizeof(Index) == 8};
        return {begins, begins.after(1), columns.data(), values.data(), starts.size() - 1, n_columns};
    }
};

// The same matrix with the entries of every row in another order, and every fourth of them in two pieces.
template <class T, class Index> Csr<T, Index> shuffled(const Csr<T, Index>& from) {
    Csr<T, Index> to = from;
    to.columns.clear();
    to.values.clear();
    Uniform uniform(from.columns.size());
    for (std::size_t i = 0; i + 1 < from.starts.size(); ++i) {
        std::vector<std::pair<Index, T>> row;
        for (auto q = static_cast<std::size_t>(from.starts[i]); q < static_cast<std::size_t>(from.starts[i + 1]); ++q) {
            const T piece = q % 4 == 0 ? from.values[q] / 2 : T(0);
            row.emplace_back(from.columns[q], from.values[q] - piece);
            if (q % 4 == 0) row.emplace_back(from.columns[q], piece);
        }
        for (std::size_t left = row.size(); left > 1; --left) std::swap(row[left - 1], row[uniform.below(left)]);
        for (const auto& [column, value] : row) {
            to.columns.push_back(column);
            to.values.push_back(value);
        }
        to.starts[i + 1] = static_cast<Index>(to.columns.size());
    }
    return to;
}

// What every rank asks of every lane and cut: hinge, tube and squared hinge in turn, some of them soft, some lanes of some ranks
// nothing at all.
struct Demands {
    std::size_t n_ranks, n_cuts, n_lanes;
    std::vector<double> values;

    Demands(std::size_t ranks, std::size_t cuts, std::size_t lanes)
        : n_ranks(ranks), n_cuts(cuts), n_lanes(lanes), values(ranks * cuts * lanes * n_demand_fields, 0.0) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        for (std::size_t rank = 0; rank < n_ranks; ++rank) {
            for (std::size_t cut = 0; cut < n_cuts; ++cut) {
                for (std::size_t lane = 0; lane < n_lanes; ++lane) {
                    if ((rank + lane) % 7 == 6) continue;
                    const double C = 0.05 * static_cast<double>(1 + lane % 3);
                    const double side = rank > (n_cuts > 1 ? cut : lane % n_ranks) ? 1.0 : -1.0;
                    double* demand = &values[((rank * n_cuts + cut) * n_lanes + lane) * n_demand_fields];
                    const bool is_tube = n_cuts == 1 && lane % 3 == 1, is_squared = lane % 3 == 2;
                    const double bound = is_squared ? infinity : C;
                    demand[field_lo] = is_tube || side < 0 ? -bound : 0.0;
                    demand[field_hi] = is_tube || side > 0 ? bound : 0.0;
                    demand[field_t] = is_tube ? static_cast<double>(rank) - 1.0 : side;
                    demand[field_e] = is_tube ? 0.1 : 0.0;
                    demand[field_d] = is_squared ? 0.5 / C : 0.0;
                    demand[field_soft] = !is_squared && lane % 5 == 3 ? 1.0 : 0.0;
                }
            }
        }
    }

    Table table() const { return {values.data(), n_ranks, n_cuts, n_lanes}; }
};

// The loss of a score under a demand, straight from its definition: the largest a (t - z) - e |a| - 1/2 D a^2 over the box.
inline double loss_of(const Table& table, std::size_t rank, std::size_t cut, std::size_t lane, double row_weight, double score) {
    const double lo = row_weight * table.at(rank, cut, lane, field_lo), hi = row_weight * table.at(rank, cut, lane, field_hi);
    if (!(lo < hi)) return 0.0;
    const double residual = table.at(rank, cut, lane, field_t) - score, e = table.at(rank, cut, lane, field_e);
    if (table.at(rank, cut, lane, field_soft) > 0) {
        const double sides = std::log1p(std::exp(residual - e)) + std::log1p(std::exp(-residual - e));
        return 0.5 * (lo + hi) * residual + 0.5 * (hi - lo) * sides;
    }
    const double d = table.at(rank, cut, lane, field_d) / row_weight;
    const double pull = residual > e ? residual - e : residual < -e ? residual + e : 0.0;
    double a = d > 0 ? pull / d : pull > 0 ? hi : pull < 0 ? lo : 0.0;
    a = std::fmax(lo, std::fmin(hi, a));
    return a * residual - e * std::fabs(a) - 0.5 * d * a * a;
}

}  // namespace rankplane::testing
