// Shared by the bindings: numpy arrays in and out, checks, and reports of progress.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings/interruptible.hpp"
#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/parallel.hpp"
#include "isa/isa.hpp"
#include "linear/block.hpp"

namespace rankplane {

namespace nb = nanobind;

template <class T> using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using TableArray = nb::ndarray<const double, nb::shape<-1, -1, -1, n_demand_fields>, nb::c_contig, nb::device::cpu>;

template <class T, std::size_t N> struct OwnedArray {
    std::unique_ptr<T, FreeMemory> data;
    nb::ndarray<nb::numpy, T, nb::ndim<N>> release(std::initializer_list<std::size_t> shape) {
        T* raw = data.release();
        nb::capsule owner(raw, [](void* memory) noexcept { std::free(memory); });
        return nb::ndarray<nb::numpy, T, nb::ndim<N>>(raw, shape, owner);
    }
};
template <class T, std::size_t N> OwnedArray<T, N> new_array(std::initializer_list<std::size_t> shape) {
    const std::size_t size = size_of(shape, sizeof(T));
    auto* const memory = static_cast<T*>(std::malloc((size == 0 ? 1 : size) * sizeof(T)));
    if (memory == nullptr) throw std::bad_alloc();
    return {std::unique_ptr<T, FreeMemory>(memory)};
}

inline Isa isa_in_use() {
    const char* name = std::getenv("RANKPLANE_ISA");
    return choose_isa(name == nullptr ? "" : name);
}

template <class T>
void check_rows(std::size_t n_rows, const Vector<std::int32_t>& table_rows, const std::optional<Vector<T>>& row_weights) {
    if (table_rows.shape(0) != n_rows && table_rows.shape(0) != 2 * n_rows) {
        throw std::invalid_argument("table_rows must have one or two entries per row.");
    }
    if (!row_weights) return;
    const T* const weights = row_weights->data();
    if (row_weights->shape(0) != n_rows) throw std::invalid_argument("row_weights must have one entry per row.");
    if (!std::all_of(weights, weights + n_rows, [](T weight) { return weight >= 0 && std::isfinite(weight); })) {
        throw std::invalid_argument("row_weights must be finite and not negative.");
    }
}

// Checks the factors of the sizes of a solver's arrays.
inline void check_sizes(std::size_t n_visits, std::size_t n_columns, std::size_t n_lanes, std::size_t n_cuts) {
    constexpr std::size_t most_demands = std::size_t{1} << 24;  // of a row
    if (n_lanes == 0 || n_cuts == 0) throw std::invalid_argument("There must be at least one lane and one cut.");
    if (n_lanes > most_demands || n_cuts > most_demands / n_lanes) throw std::invalid_argument("There are too many lanes.");
    if (n_visits > std::numeric_limits<std::uint32_t>::max()) throw std::invalid_argument("There are too many rows.");
    // Lanes are rounded up to whole blocks.
    size_of({n_visits, n_cuts, n_lanes + max_width}, sizeof(double));
    size_of({n_columns, n_lanes + max_width}, sizeof(double));
}

inline void check_factor(double factor, const std::vector<bool>& frozen, std::size_t n_lanes) {
    if (!(factor >= 1)) throw std::invalid_argument("factor must be at least 1.");
    if (frozen.size() != n_lanes) throw std::invalid_argument("frozen must have one entry per lane.");
}

// The stage of a solver. Calls out of order, which would read arrays that do not exist, are refused.
enum class Stage { made, loaded, taken };

inline void check_stage(bool is_right) {
    if (!is_right) throw std::invalid_argument("A solver must be given a table first, and its weights be taken last.");
}

inline Table table_of(const TableArray& table, const Vector<std::int32_t>& table_rows, std::size_t n_cuts, std::size_t n_lanes) {
    if (table.shape(1) != n_cuts || table.shape(2) != n_lanes) throw std::invalid_argument("The table has the wrong shape.");
    const std::int32_t* const rows = table_rows.data();
    const bool is_inside = std::all_of(rows, rows + table_rows.shape(0), [&](std::int32_t row) {
        return row >= 0 && static_cast<std::size_t>(row) < table.shape(0);
    });
    if (!is_inside) throw std::invalid_argument("table_rows must be rows of the table.");
    for (std::size_t i = 0; i < table.size(); i += n_demand_fields) {
        const double* const demand = table.data() + i;
        const bool is_sound =
            demand[field_lo] <= demand[field_hi] && !std::isnan(demand[field_t]) && demand[field_e] >= 0 && demand[field_d] >= 0;
        if (!is_sound) throw std::invalid_argument("A demand must have lo <= hi, e >= 0, D >= 0 and no NaN.");
        const bool is_bounded =
            std::isfinite(demand[field_lo]) && std::isfinite(demand[field_hi]) && demand[field_e] <= 40 && demand[field_d] == 0;
        if (demand[field_soft] != 0 && !(demand[field_soft] == 1 && is_bounded)) {
            throw std::invalid_argument("A soft demand must have soft = 1, finite lo and hi, e <= 40 and D = 0.");
        }
    }
    return {table.data(), table.shape(0), n_cuts, n_lanes};
}

// By default, no lane is frozen.
inline std::vector<bool> all_lanes(std::vector<bool> frozen, std::size_t n_lanes) {
    frozen.resize(n_lanes, false);
    return frozen;
}

inline nb::dict results_of(const std::vector<LaneResult>& results) {
    std::vector<std::size_t> sweeps, support;
    std::vector<bool> converged;
    std::vector<double> violation, objective, gap;
    for (const LaneResult& result : results) {
        sweeps.push_back(result.n_sweeps);
        support.push_back(result.n_support);
        converged.push_back(result.has_converged);
        violation.push_back(result.violation);
        objective.push_back(result.dual_objective);
        gap.push_back(result.gap);
    }
    nb::dict columns;
    columns["n_sweeps"] = sweeps;
    columns["n_support"] = support;
    columns["has_converged"] = converged;
    columns["violation"] = violation;
    columns["dual_objective"] = objective;
    columns["gap"] = gap;
    return columns;
}

// Runs a solve that can be interrupted, and passes its reports on to Python; of several pending reports, only the last.
template <class Work> void run_watched(const Work& work, Control& control, const nb::object& on_report) {
    std::mutex mutex;
    std::optional<Report> news;
    if (!on_report.is_none()) {
        control.report = [&](const Report& report) {
            const std::lock_guard lock(mutex);
            news = report;
        };
    }
    const auto pass_on = [&] {
        std::unique_lock lock(mutex);
        const std::optional<Report> report = std::exchange(news, std::nullopt);
        lock.unlock();
        if (report) on_report(report->sweep, report->n_active_rows, report->lanes, report->violations);
    };
    run_interruptibly(control, pass_on, work);
}

}  // namespace rankplane
