#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <utility>

#include "bindings/arrays.hpp"
#include "bindings/topics.hpp"
#include "kernel/products.hpp"
#include "kernel/solver.hpp"
#include "linear/columns.hpp"

namespace rankplane {
namespace {

class BoundKernelSolver {
  public:
    BoundKernelSolver(const Vector<double>& diagonal, const Vector<std::int32_t>& table_rows,
                      const std::optional<Vector<double>>& row_weights, std::size_t n_lanes, std::size_t n_cuts,
                      const Options& options)
        : keep_(nb::make_tuple(diagonal, table_rows, row_weights)),
          table_rows_(table_rows),
          n_rows_(diagonal.shape(0)),
          n_lanes_(n_lanes),
          n_cuts_(n_cuts),
          solver_(diagonal.data(), {table_rows.data(), table_rows.shape(0)}, row_weights ? row_weights->data() : nullptr, n_lanes,
                  n_cuts, options, isa_in_use()) {}

    BoundKernelSolver(const BoundKernelSolver&) = delete;
    BoundKernelSolver& operator=(const BoundKernelSolver&) = delete;

    void load(const TableArray& table, const std::vector<bool>& frozen) {
        solver_.load(table_of(table, table_rows_, n_cuts_, n_lanes_), all_lanes(frozen, n_lanes_));
        stage_ = Stage::loaded;
    }

    nb::tuple measure() {
        check_stage(stage_ == Stage::loaded);
        auto urgency = new_array<double, 1>({n_rows_});
        bool is_running = false;
        run_interruptibly([&](Control& control) { is_running = solver_.measure(urgency.data.get(), control); });
        return nb::make_tuple(is_running, urgency.release({n_rows_}));
    }

    template <class K> void improve(const Vector<std::uint32_t>& rows, const Matrix<K>& cache, const Vector<std::uint32_t>& slots) {
        check_stage(stage_ == Stage::loaded);
        if (cache.shape(1) != n_rows_ || slots.shape(0) != rows.shape(0)) {
            throw std::invalid_argument("There must be a kernel row of full length for every row.");
        }
        std::vector<std::uint32_t> picks(rows.data(), rows.data() + rows.shape(0));
        if (picks.empty()) throw std::invalid_argument("There must be at least one row.");
        std::vector<const K*> kernel_rows;
        std::vector<bool> is_picked(n_rows_, false);
        for (std::size_t i = 0; i < picks.size(); ++i) {
            const std::size_t slot = slots.data()[i];
            if (picks[i] >= n_rows_ || slot >= cache.shape(0)) throw std::invalid_argument("There is no such row.");
            if (is_picked[picks[i]]) throw std::invalid_argument("A row must be picked once.");
            is_picked[picks[i]] = true;
            kernel_rows.push_back(cache.data() + slot * n_rows_);
        }
        Control control;
        run_watched([&] { solver_.improve<K>(picks, kernel_rows, control); }, control, nb::none());
    }

    void stretch(double factor, const std::vector<bool>& frozen) {
        check_stage(stage_ == Stage::loaded);
        check_factor(factor, frozen, n_lanes_);
        run_interruptibly([&](Control& control) { solver_.stretch(factor, frozen, control); });
    }

    nb::object score(const Vector<std::uint32_t>& picks, std::size_t first_lane, std::size_t n_wanted) const {
        const bool has_bad_row = std::any_of(picks.data(), picks.data() + picks.shape(0), [&](auto row) { return row >= n_rows_; });
        if (has_bad_row || first_lane > n_lanes_ || n_wanted > n_lanes_ - first_lane)
            throw std::invalid_argument("There are no such rows or lanes.");
        auto scores = new_array<double, 2>({picks.shape(0), n_wanted});
        solver_.copy_scores(picks.data(), picks.shape(0), first_lane, n_wanted, scores.data.get());
        return nb::cast(scores.release({picks.shape(0), n_wanted}));
    }

    nb::object duals() const {
        auto duals = new_array<double, 2>({n_rows_, n_lanes_});
        solver_.copy_duals(duals.data.get());
        return nb::cast(duals.release({n_rows_, n_lanes_}));
    }

    nb::object offsets() const {
        auto offsets = new_array<double, 2>({n_cuts_, n_lanes_});
        solver_.copy_offsets(offsets.data.get());
        return nb::cast(offsets.release({n_cuts_, n_lanes_}));
    }

    std::vector<bool> touch_bounds() const {
        check_stage(stage_ == Stage::loaded);
        return solver_.touch_bounds();
    }
    nb::dict results() const { return results_of(solver_.results()); }

  private:
    nb::tuple keep_;
    Vector<std::int32_t> table_rows_;
    Stage stage_ = Stage::made;
    std::size_t n_rows_, n_lanes_, n_cuts_;
    KernelSolver solver_;
};

template <class T, class Index> void bind_products(nb::module_& module) {
    module.def(
        "row_products",
        [](const Vector<Index>& pick_starts, const Vector<Index>& pick_columns, const Vector<T>& pick_values,
           const Vector<Index>& column_starts, const Vector<Index>& column_rows, const Vector<T>& column_values,
           std::size_t n_rows) {
            const auto view = [](const auto& starts, const auto& indices, const auto& values, std::size_t bound) {
                const std::size_t size = starts.shape(0) == 0 ? 0 : starts.shape(0) - 1;
                const RowBounds begins{starts.data(), sizeof(Index) == 8};
                const SparseRows<T, Index> rows{begins, begins.after(1), indices.data(), values.data(), size, bound};
                check_starts(starts.data(), starts.shape(0), std::min(indices.shape(0), values.shape(0)));
                run_interruptibly([&](Control& control) { check_columns(rows, 1, control); });
                return rows;
            };
            const auto columns = view(column_starts, column_rows, column_values, n_rows);
            const auto picks = view(pick_starts, pick_columns, pick_values, columns.n_rows);
            auto products = new_array<double, 2>({picks.n_rows, n_rows});
            run_interruptibly([&](Control& control) { row_products(picks, columns, n_rows, products.data.get(), control); });
            return products.release({picks.n_rows, n_rows});
        },
        nb::arg("pick_starts").noconvert(), nb::arg("pick_columns").noconvert(), nb::arg("pick_values").noconvert(),
        nb::arg("column_starts").noconvert(), nb::arg("column_rows").noconvert(), nb::arg("column_values").noconvert(),
        nb::arg("n_rows"));
}

}  // namespace

void bind_kernel(nb::module_& module) {
    nb::class_<BoundKernelSolver>(module, "KernelSolver")
        .def(
            "__init__",
            [](BoundKernelSolver* self, const Vector<double>& diagonal, const Vector<std::int32_t>& table_rows,
               const std::optional<Vector<double>>& row_weights, std::size_t n_lanes, std::size_t n_cuts, const Options& options) {
                check_rows(diagonal.shape(0), table_rows, row_weights);
                check_sizes(table_rows.shape(0), diagonal.shape(0), n_lanes, n_cuts);
                if (diagonal.shape(0) == 0) throw std::invalid_argument("There must be at least one row.");
                if (table_rows.shape(0) != diagonal.shape(0)) throw std::invalid_argument("With a kernel, rows are not split.");
                new (self) BoundKernelSolver(diagonal, table_rows, row_weights, n_lanes, n_cuts, options);
            },
            nb::arg("diagonal").noconvert(), nb::arg("table_rows").noconvert(), nb::arg("row_weights").noconvert().none(),
            nb::arg("n_lanes"), nb::arg("n_cuts"), nb::arg("options"))
        .def("load", &BoundKernelSolver::load, nb::arg("table").noconvert(), nb::arg("frozen"))
        .def("measure", &BoundKernelSolver::measure)
        .def("improve", &BoundKernelSolver::improve<float>, nb::arg("rows").noconvert(), nb::arg("cache").noconvert(),
             nb::arg("slots").noconvert())
        .def("improve", &BoundKernelSolver::improve<double>, nb::arg("rows").noconvert(), nb::arg("cache").noconvert(),
             nb::arg("slots").noconvert())
        .def("stretch", &BoundKernelSolver::stretch, nb::arg("factor"), nb::arg("frozen"))
        .def("touch_bounds", &BoundKernelSolver::touch_bounds)
        .def("score", &BoundKernelSolver::score, nb::arg("picks").noconvert(), nb::arg("first_lane"), nb::arg("n_wanted"))
        .def("offsets", &BoundKernelSolver::offsets)
        .def("duals", &BoundKernelSolver::duals)
        .def("results", &BoundKernelSolver::results);
    bind_products<float, std::int32_t>(module);
    bind_products<float, std::int64_t>(module);
    bind_products<double, std::int32_t>(module);
    bind_products<double, std::int64_t>(module);
}

}  // namespace rankplane
