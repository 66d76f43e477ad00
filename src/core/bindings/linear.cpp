// Python class of the linear solver: numpy arrays in and out, with Ctrl-C and progress.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/topics.hpp"
#include "common/finite.hpp"
#include "common/rows.hpp"
#include "isa/isa.hpp"
#include "linear/column_sums.hpp"
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
    return rows;
}

// The Python class, over solvers of any value and index type.
class AnySolver {
  public:
    virtual ~AnySolver() = default;
    virtual void run(const TableArray& table, const std::vector<bool>& frozen, std::size_t n_certified, const nb::object& on_report,
                     std::optional<std::size_t> max_sweeps) = 0;
    virtual nb::dict certify(const TableArray& table, std::size_t n_certified) = 0;
    virtual void start_from(const nb::object& weights, const nb::object& offsets, const nb::object& duals) = 0;
    virtual nb::object weights() = 0;
    virtual nb::object duals() = 0;
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
                std::size_t batch, nb::tuple keep)
        : keep_(std::move(keep)),
          table_rows_(table_rows),
          parts_(std::move(parts)),
          n_rows_(parts_.whole.n_rows),
          n_columns_(n_columns),
          n_lanes_(n_lanes),
          n_cuts_(n_cuts),
          options_(options) {
        const std::size_t group = options.coupling.size;
        if (group > 0 && (n_lanes % group != 0 || n_cuts != 1 || options.free_offsets)) {
            throw std::invalid_argument("Coupled lanes come in whole groups, with one penalised offset each.");
        }
        const Visits visits{table_rows.data(), table_rows.shape(0)};
        const T* const weights = row_weights ? row_weights->data() : nullptr;
        const Isa isa = isa_in_use();
        run_interruptibly(
            [&](Control& control) { solver_.emplace(parts_, visits, weights, n_lanes, n_cuts, options, batch, isa, control); });
    }

    void run(const TableArray& table, const std::vector<bool>& frozen, std::size_t n_certified, const nb::object& on_report,
             std::optional<std::size_t> max_sweeps) override {
        check_stage(stage_ != Stage::taken);
        const Table view = table_of(table, table_rows_, n_cuts_, n_lanes_);
        stage_ = Stage::loaded;
        solver_->limit_sweeps(max_sweeps.value_or(options_.max_sweeps));
        Control control;
        run_watched([&] { solver_->run(view, all_lanes(frozen, n_lanes_), n_certified, control); }, control, on_report);
    }

    nb::dict certify(const TableArray& table, std::size_t n_certified) override {
        n_certified = std::min(n_certified, n_lanes_);
        run(table, {}, n_certified, nb::none(), 0);
        const Certificate& sums = solver_->certificate_sums();
        nb::dict found;
        found["gap"] = sums.gap;
        found["dual"] = sums.dual;
        found["violation"] = sums.violation;
        found["support"] = sums.support;
        found["positive"] = sums.positive;
        found["negative"] = sums.negative;
        return found;
    }

    void start_from(const nb::object& weights, const nb::object& offsets, const nb::object& duals) override {
        check_stage(stage_ != Stage::taken);
        const auto all_weights = array_in<Matrix<T>>(weights, "weights");
        const auto all_offsets = array_in<Matrix<T>>(offsets, "offsets");
        check_shape(all_weights.shape(0) == n_columns_ && all_weights.shape(1) == n_lanes_, "weights");
        check_shape(all_offsets.shape(0) == n_cuts_ && all_offsets.shape(1) == n_lanes_, "offsets");
        std::optional<Cube> all_duals;
        if (!duals.is_none()) {
            all_duals = array_in<Cube>(duals, "duals");
            check_shape(
                all_duals->shape(0) == table_rows_.shape(0) && all_duals->shape(1) == n_cuts_ && all_duals->shape(2) == n_lanes_,
                "duals");
        }
        run_interruptibly([&](Control& control) {
            solver_->start_from(all_weights.data(), all_offsets.data(), all_duals ? all_duals->data() : nullptr, control);
        });
    }

    nb::object weights() override {
        check_stage(stage_ != Stage::taken);
        auto weights = new_array<T, 2>({n_columns_, n_lanes_});
        run_interruptibly([&](Control& control) { solver_->copy_weights(weights.data.get(), n_lanes_, control); });
        return nb::cast(weights.release({n_columns_, n_lanes_}));
    }

    nb::object duals() override {
        check_stage(stage_ != Stage::taken);
        auto duals = new_array<T, 3>({table_rows_.shape(0), n_cuts_, n_lanes_});
        {
            const nb::gil_scoped_release unlocked;
            solver_->copy_duals(duals.data.get());
        }
        return nb::cast(duals.release({table_rows_.shape(0), n_cuts_, n_lanes_}));
    }

    void stretch(double factor, const std::vector<bool>& frozen) override {
        check_stage(stage_ == Stage::loaded);
        check_factor(factor, frozen, n_lanes_);
        run_interruptibly([&](Control& control) { solver_->stretch(factor, frozen, control); });
    }

    std::vector<bool> touch_bounds() override {
        check_stage(stage_ == Stage::loaded);
        std::vector<bool> touches;
        run_interruptibly([&](Control& control) { touches = solver_->touch_bounds(control); });
        return touches;
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
        run_interruptibly([&](Control& control) {
            solver_->release_duals();
            parts_.columns = Buffer<std::int32_t>();
            parts_.values = Buffer<T>();
            weights = new_array<T, 2>({n_columns_, n_wanted});
            solver_->copy_weights(weights.data.get(), n_wanted, control);
            solver_->copy_offsets(offsets.data.get());
        });
        return nb::make_tuple(weights.release({n_columns_, n_wanted}), offsets.release({n_cuts_, n_lanes_}));
    }

  private:
    using Cube = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

    // Of the solver's own type, which the Python class does not know: without a cast, which would copy.
    template <class Array> static Array array_in(const nb::object& object, const char* name) {
        Array array;
        if (!nb::try_cast(object, array, false)) {
            throw std::invalid_argument(std::string(name) + " must be a C-ordered array of the type of X.");
        }
        return array;
    }
    static void check_shape(bool is_right, const char* name) {
        if (!is_right) throw std::invalid_argument(std::string(name) + " must have the shape of this solver.");
    }

    nb::tuple keep_;
    Vector<std::int32_t> table_rows_;
    Parts<Rows> parts_;
    Stage stage_ = Stage::made;
    std::optional<Solver<T, Rows>> solver_;
    std::size_t n_rows_, n_columns_, n_lanes_, n_cuts_;
    Options options_;
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
            const auto bind = [&](auto parts, std::size_t batch) -> std::unique_ptr<AnySolver> {
                using Bound = BoundSolver<T, typename decltype(parts)::rows_type>;
                return std::make_unique<Bound>(std::move(parts), n_columns, table_rows, row_weights, n_lanes, n_cuts, options,
                                               batch, keep);
            };
            // Numbers of columns that no index of 32 bits can hold stay as they are.
            const bool can_renumber = n_columns <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
            Plan plan;
            Parts<SparseRows<T, Index>> whole;
            Parts<SparseRows<T, std::int32_t>> renumbered;
            run_interruptibly([&](Control& control) {
                const Order order = check_columns(rows, options.n_threads, control);
                if (can_renumber) { plan = plan_parts(rows, count_entries(rows), table_rows.shape(0), n_lanes, n_cuts, options); }
                if (plan.n_parts > 1 || (can_renumber && has_large_weights<T>(n_columns, n_lanes))) {
                    renumbered = renumbered_parts(rows, plan.n_parts, order, options.n_threads, control);
                } else {
                    whole = whole_parts(rows, order, control);
                }
            });
            return renumbered.parts.empty() ? bind(std::move(whole), plan.batch) : bind(std::move(renumbered), plan.batch);
        },
        nb::arg("starts").noconvert(), nb::arg("columns").noconvert(), nb::arg("values").noconvert(), nb::arg("n_columns"),
        nb::arg("table_rows").noconvert(), nb::arg("row_weights").noconvert().none(), nb::arg("n_lanes"), nb::arg("n_cuts"),
        nb::arg("options"));
    module.def(
        "sparse_scores",
        [](const Vector<Index>& starts, const Vector<Index>& columns, const Vector<T>& values, const Matrix<T>& weights,
           std::size_t n_threads) {
            const SparseRows<T, Index> rows = sparse_rows(starts, columns, values, weights.shape(0));
            run_interruptibly([&](Control& control) { check_columns(rows, n_threads, control); });
            return bound_scores(rows, weights, n_threads);
        },
        nb::arg("starts").noconvert(), nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
        nb::arg("weights").noconvert(), nb::arg("n_threads"));
}

template <class T, class Index> void bind_column_sums(nb::module_& module) {
    const auto checked = [](const Vector<Index>& starts, const Vector<Index>& columns, const Vector<T>& values,
                            std::size_t n_columns, bool is_sorted, std::size_t n_threads) {
        const SparseRows<T, Index> rows = sparse_rows(starts, columns, values, n_columns);
        Order order = Order::strict;
        run_interruptibly([&](Control& control) { order = check_columns(rows, n_threads, control); });
        if (is_sorted && order == Order::unsorted) throw std::invalid_argument("The columns of each row must be sorted.");
        return rows;
    };
    module.def(
        "count_by_group",
        [checked](const Vector<Index>& starts, const Vector<Index>& columns, const Vector<T>& values, std::size_t n_columns,
                  const Vector<std::int32_t>& groups, std::size_t n_groups, std::size_t n_threads) {
            const SparseRows<T, Index> rows = checked(starts, columns, values, n_columns, true, n_threads);
            const std::int32_t* const last = groups.data() + groups.shape(0);
            if (groups.shape(0) != rows.n_rows || std::any_of(groups.data(), last, [&](std::int32_t group) {
                    return group >= static_cast<std::int64_t>(n_groups);
                })) {
                throw std::invalid_argument("groups must have one number below n_groups for each row.");
            }
            auto counts = new_array<double, 2>({n_columns, n_groups});
            run_interruptibly(
                [&](Control& control) { count_by_group(rows, groups.data(), n_groups, counts.data.get(), n_threads, control); });
            return counts.release({n_columns, n_groups});
        },
        nb::arg("starts").noconvert(), nb::arg("columns").noconvert(), nb::arg("values").noconvert(), nb::arg("n_columns"),
        nb::arg("groups").noconvert(), nb::arg("n_groups"), nb::arg("n_threads"));
    module.def(
        "sum_squares",
        [checked](const Vector<Index>& starts, const Vector<Index>& columns, const Vector<T>& values, std::size_t n_columns,
                  std::size_t n_threads) {
            const SparseRows<T, Index> rows = checked(starts, columns, values, n_columns, true, n_threads);
            auto sums = new_array<double, 1>({n_columns});
            run_interruptibly([&](Control& control) { sum_squares(rows, sums.data.get(), n_threads, control); });
            return sums.release({n_columns});
        },
        nb::arg("starts").noconvert(), nb::arg("columns").noconvert(), nb::arg("values").noconvert(), nb::arg("n_columns"),
        nb::arg("n_threads"));
    module.def(
        "scale_by_column",
        [checked](const Vector<Index>& starts, const Vector<Index>& columns, const Vector<T>& values, const Vector<T>& factors,
                  std::size_t n_threads) {
            const SparseRows<T, Index> rows = checked(starts, columns, values, factors.shape(0), false, n_threads);
            auto scaled = new_array<T, 1>({values.shape(0)});
            run_interruptibly([&](Control& control) {
                std::copy(values.data() + count_entries(rows), values.data() + values.shape(0),
                          scaled.data.get() + count_entries(rows));
                scale_by_column(rows, factors.data(), scaled.data.get(), n_threads, control);
            });
            return scaled.release({values.shape(0)});
        },
        nb::arg("starts").noconvert(), nb::arg("columns").noconvert(), nb::arg("values").noconvert(),
        nb::arg("factors").noconvert(), nb::arg("n_threads"));
}

template <class T> void bind_values(nb::module_& module) {
    module.def(
        "first_not_finite",
        [](const Vector<T>& values, std::size_t n_threads) {
            std::ptrdiff_t first = -1;
            run_interruptibly(
                [&](Control& control) { first = first_not_finite(values.data(), values.shape(0), n_threads, control); });
            return first;
        },
        nb::arg("values").noconvert(), nb::arg("n_threads"));
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
            const DenseRows<T> rows{values.data(), n_columns, n_rows, n_columns, 0};
            const Plan plan = plan_parts(rows, n_rows * n_columns, table_rows.shape(0), n_lanes, n_cuts, options);
            auto parts = dense_parts(values.data(), n_rows, n_columns, plan.n_parts);
            return std::make_unique<BoundSolver<T, DenseRows<T>>>(std::move(parts), n_columns, table_rows, row_weights, n_lanes,
                                                                  n_cuts, options, plan.batch, keep);
        },
        nb::arg("values").noconvert(), nb::arg("table_rows").noconvert(), nb::arg("row_weights").noconvert().none(),
        nb::arg("n_lanes"), nb::arg("n_cuts"), nb::arg("options"));
    module.def(
        "dense_scores",
        [](const Matrix<T>& values, const Matrix<T>& weights, std::size_t n_threads) {
            if (values.shape(1) != weights.shape(0)) throw std::invalid_argument("weights must have one row per column of X.");
            const DenseRows<T> rows{values.data(), values.shape(1), values.shape(0), values.shape(1), 0};
            return bound_scores(rows, weights, n_threads);
        },
        nb::arg("values").noconvert(), nb::arg("weights").noconvert(), nb::arg("n_threads"));
}

}  // namespace

void bind_linear(nb::module_& module) {
    nb::class_<AnySolver>(module, "LaneSolver")
        .def("run", &AnySolver::run, nb::arg("table").noconvert(), nb::arg("frozen"), nb::arg("n_certified"),
             nb::arg("on_report").none(), nb::arg("max_sweeps").none() = nb::none())
        .def("certify", &AnySolver::certify, nb::arg("table").noconvert(), nb::arg("n_certified"))
        .def("start_from", &AnySolver::start_from, nb::arg("weights"), nb::arg("offsets"), nb::arg("duals").none())
        .def("weights", &AnySolver::weights)
        .def("duals", &AnySolver::duals)
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
    bind_column_sums<float, std::int32_t>(module);
    bind_column_sums<float, std::int64_t>(module);
    bind_column_sums<double, std::int32_t>(module);
    bind_column_sums<double, std::int64_t>(module);
    bind_values<float>(module);
    bind_values<double>(module);
    bind_dense<float>(module);
    bind_dense<double>(module);
}

}  // namespace rankplane
