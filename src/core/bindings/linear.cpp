// The solver of planes as Python sees it: numpy arrays in, numpy arrays out, Ctrl-C and progress in between.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/topics.hpp"
#include "common/rows.hpp"
#include "isa/isa.hpp"
#include "linear/columns.hpp"
#include "linear/parts.hpp"
#include "linear/scores.hpp"
#include "linear/solver.hpp"

namespace rankplane {
namespace {

template <class T, class Index>
SparseRows<T, Index> sparse_rows(const Vector<Index>& starts, const Vector<Index>& columns, const Vector<T>& values,
                                 std::size_t n_columns) {
    const std::size_t n_rows = starts.shape(0) == 0 ? 0 : starts.shape(0) - 1;
    const RowBounds begins{starts.data(), sizeof(Index) == 8};
    const SparseRows<T, Index> rows{begins, begins.after(1), columns.data(), values.data(), n_rows, n_columns};
    check_starts(starts.data(), starts.shape(0), std::min(columns.shape(0), values.shape(0)));
    check_columns(rows);
    return rows;
}

// A solver of any value and index type, as Python sees it.
class AnySolver {
  public:
    virtual ~AnySolver() = default;
    virtual void run(const TableArray& table, const std::vector<bool>& frozen, std::size_t n_certified,
                     const nb::object& on_report) = 0;
    virtual void stretch(double factor, const std::vector<bool>& frozen) = 0;
    virtual std::vector<bool> touch_bounds() = 0;
    virtual nb::object score(const Vector<std::uint32_t>& picks, std::size_t first_lane, std::size_t n_wanted) = 0;
    virtual nb::object offsets() = 0;
    virtual const std::vector<LaneResult>& results() const = 0;
    virtual nb::tuple take_weights(std::size_t n_wanted) = 0;
};

template <class T, class Rows> class BoundSolver final : public AnySolver {
  public:
    // The solver borrows arrays; `keep` holds their handles.
    BoundSolver(Parts<Rows> parts, std::size_t n_columns, const Vector<std::int32_t>& table_rows,
                const std::optional<Vector<T>>& row_weights, std::size_t n_lanes, std::size_t n_cuts, const Options& options,
                nb::tuple keep)
        : keep_(std::move(keep)),
          table_rows_(table_rows),
          parts_(std::move(parts)),
          n_rows_(parts_.parts.front().rows.n_rows),
          n_columns_(n_columns),
          n_lanes_(n_lanes),
          n_cuts_(n_cuts) {
        const Visits visits{table_rows.data(), table_rows.shape(0)};
        const T* const weights = row_weights ? row_weights->data() : nullptr;
        const Isa isa = isa_in_use();
        run_interruptibly(
            [&](Control& control) { solver_.emplace(parts_.parts, visits, weights, n_lanes, n_cuts, options, isa, control); });
    }

    void run(const TableArray& table, const std::vector<bool>& frozen, std::size_t n_certified,
             const nb::object& on_report) override {
        check_stage(stage_ != Stage::taken);
        const Table view = table_of(table, table_rows_, n_cuts_, n_lanes_);
        stage_ = Stage::loaded;
        Control control;
        run_watched([&] { solver_->run(view, all_lanes(frozen, n_lanes_), n_certified, control); }, control, on_report);
    }

    void stretch(double factor, const std::vector<bool>& frozen) override {
        check_stage(stage_ == Stage::loaded);
        check_factor(factor, frozen, n_lanes_);
        run_interruptibly([&](Control& control) { solver_->stretch(factor, frozen, control); });
    }

    std::vector<bool> touch_bounds() override {
        check_stage(stage_ == Stage::loaded);
        return solver_->touch_bounds();
    }

    nb::object score(const Vector<std::uint32_t>& picks, std::size_t first_lane, std::size_t n_wanted) override {
        check_stage(stage_ == Stage::loaded);
        if (std::any_of(picks.data(), picks.data() + picks.shape(0), [&](std::uint32_t row) { return row >= n_rows_; })) {
            throw std::invalid_argument("picks must be rows of X.");
        }
        if (first_lane > n_lanes_ || n_wanted > n_lanes_ - first_lane) throw std::invalid_argument("There are no such lanes.");
        auto scores = new_array<T, 2>({picks.shape(0), n_wanted});
        run_interruptibly([&](Control& control) {
            solver_->score(picks.data(), picks.shape(0), first_lane, n_wanted, scores.data.get(), control);
        });
        return nb::cast(scores.release({picks.shape(0), n_wanted}));
    }

    nb::object offsets() override {
        auto offsets = new_array<T, 2>({n_cuts_, n_lanes_});
        solver_->copy_offsets(offsets.data.get());
        return nb::cast(offsets.release({n_cuts_, n_lanes_}));
    }

    const std::vector<LaneResult>& results() const override { return solver_->results(); }

    nb::tuple take_weights(std::size_t n_wanted) override {
        check_stage(stage_ != Stage::taken);
        stage_ = Stage::taken;
        n_wanted = std::min(n_wanted, n_lanes_);
        auto offsets = new_array<T, 2>({n_cuts_, n_lanes_});
        OwnedArray<T, 2> weights;
        {
            const nb::gil_scoped_release unlocked;
            solver_->release_duals();
            parts_.renumbered = Buffer<std::int32_t>();
            weights = new_array<T, 2>({n_columns_, n_wanted});
            solver_->copy_weights(weights.data.get(), n_wanted);
            solver_->copy_offsets(offsets.data.get());
        }
        return nb::make_tuple(weights.release({n_columns_, n_wanted}), offsets.release({n_cuts_, n_lanes_}));
    }

  private:
    nb::tuple keep_;
    Vector<std::int32_t> table_rows_;
    Parts<Rows> parts_;
    Stage stage_ = Stage::made;
    std::optional<Solver<T, Rows>> solver_;
    std::size_t n_rows_, n_columns_, n_lanes_, n_cuts_;
};

template <class T, class Rows> auto bound_scores(const Rows& rows, const Matrix<T>& weights, std::size_t n_threads) {
    const std::size_t n_planes = weights.shape(1);
    auto scores = new_array<T, 2>({rows.n_rows, n_planes});
    run_interruptibly(
        [&](Control& control) { plane_scores(rows, weights.data(), n_planes, scores.data.get(), n_threads, control); });
    return scores.release({rows.n_rows, n_planes});
}

template <class T, class Index> void bind_sparse(nb::module_& module) {
    module.def(
        "sparse_solver",
        [](const Vector<Index>& starts, const Vector<Index>& columns, const Vector<T>& values, std::size_t n_columns,
           const Vector<std::int32_t>& table_rows, const std::optional<Vector<T>>& row_weights, std::size_t n_lanes,
           std::size_t n_cuts, const Options& options) -> std::unique_ptr<AnySolver> {
            const SparseRows<T, Index> rows = sparse_rows(starts, columns, values, n_columns);
            check_rows(rows.n_rows, table_rows, row_weights);
            check_sizes(table_rows.shape(0), n_columns, n_lanes, n_cuts);
            nb::tuple keep = nb::make_tuple(starts, columns, values, table_rows, row_weights);
            const auto bind = [&](auto parts) -> std::unique_ptr<AnySolver> {
                using Bound = BoundSolver<T, typename decltype(parts)::rows_type>;
                return std::make_unique<Bound>(std::move(parts), n_columns, table_rows, row_weights, n_lanes, n_cuts, options,
                                               keep);
            };
            SparsePlan plan;
            Parts<SparseRows<T, std::int32_t>> renumbered;
            run_interruptibly([&](Control& control) {
                plan = plan_parts(rows, n_lanes, options.n_threads);
                if (plan.is_renumbered) renumbered = renumbered_parts(rows, plan.n_parts, control);
            });
            return plan.is_renumbered ? bind(std::move(renumbered)) : bind(whole_parts(rows));
        },
        nb::arg("starts").noconvert(), nb::arg("columns").noconvert(), nb::arg("values").noconvert(), nb::arg("n_columns"),
        nb::arg("table_rows").noconvert(), nb::arg("row_weights").noconvert().none(), nb::arg("n_lanes"), nb::arg("n_cuts"),
        nb::arg("options"));
    module.def(
        "sparse_scores",
        [](const Vector<Index>& starts, const Vector<Index>& columns, const Vector<T>& values, const Matrix<T>& weights,
           std::size_t n_threads) {
            const SparseRows<T, Index> rows = sparse_rows(starts, columns, values, weights.shape(0));
            return bound_scores(rows, weights, n_threads);
        },
        nb::arg("starts").noconvert(), nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
        nb::arg("weights").noconvert(), nb::arg("n_threads"));
}

template <class T> void bind_dense(nb::module_& module) {
    module.def(
        "dense_solver",
        [](const Matrix<T>& values, const Vector<std::int32_t>& table_rows, const std::optional<Vector<T>>& row_weights,
           std::size_t n_lanes, std::size_t n_cuts, const Options& options) -> std::unique_ptr<AnySolver> {
            const std::size_t n_rows = values.shape(0), n_columns = values.shape(1);
            check_rows(n_rows, table_rows, row_weights);
            check_sizes(table_rows.shape(0), n_columns, n_lanes, n_cuts);
            nb::tuple keep = nb::make_tuple(values, table_rows, row_weights);
            const std::size_t n_parts = team_size(n_rows, n_rows * n_columns, n_lanes, options.n_threads);
            auto parts = dense_parts(values.data(), n_rows, n_columns, n_parts);
            return std::make_unique<BoundSolver<T, DenseRows<T>>>(std::move(parts), n_columns, table_rows, row_weights, n_lanes,
                                                                  n_cuts, options, keep);
        },
        nb::arg("values").noconvert(), nb::arg("table_rows").noconvert(), nb::arg("row_weights").noconvert().none(),
        nb::arg("n_lanes"), nb::arg("n_cuts"), nb::arg("options"));
    module.def(
        "dense_scores",
        [](const Matrix<T>& values, const Matrix<T>& weights, std::size_t n_threads) {
            if (values.shape(1) != weights.shape(0)) throw std::invalid_argument("weights must have one row per column of X.");
            const DenseRows<T> rows{values.data(), values.shape(1), values.shape(0), values.shape(1)};
            return bound_scores(rows, weights, n_threads);
        },
        nb::arg("values").noconvert(), nb::arg("weights").noconvert(), nb::arg("n_threads"));
}

}  // namespace

void bind_linear(nb::module_& module) {
    nb::class_<AnySolver>(module, "LaneSolver")
        .def("run", &AnySolver::run, nb::arg("table").noconvert(), nb::arg("frozen"), nb::arg("n_certified"),
             nb::arg("on_report").none())
        .def("stretch", &AnySolver::stretch, nb::arg("factor"), nb::arg("frozen"))
        .def("touch_bounds", &AnySolver::touch_bounds)
        .def("score", &AnySolver::score, nb::arg("picks").noconvert(), nb::arg("first_lane"), nb::arg("n_wanted"))
        .def("offsets", &AnySolver::offsets)
        .def("results", [](const AnySolver& solver) { return results_of(solver.results()); })
        .def("take_weights", &AnySolver::take_weights, nb::arg("n_wanted"));
    bind_sparse<float, std::int32_t>(module);
    bind_sparse<float, std::int64_t>(module);
    bind_sparse<double, std::int32_t>(module);
    bind_sparse<double, std::int64_t>(module);
    bind_dense<float>(module);
    bind_dense<double>(module);
}

}  // namespace rankplane
