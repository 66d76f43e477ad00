// One lane of a kernel solve on a set of rows: optimises two duals at a time, chosen by the gain of their step.
//
// With an offset, the dual problem has a direction, the sum of all duals, in which steps on single duals make slow progress. So
// every step moves two duals: the leader gains most by itself, its partner gains most together with a second step of the leader
// (the second-order rule of LIBSVM, without the constraint on the sum). The problem of two variables is solved by a Newton step if
// that stays within the bounds, else by alternating between the variables.
//
// Soft demands have their duals inside the box, all of them, and no choice is better than another by much: they are stepped in
// turn.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/control.hpp"
#include "kernel/loops.hpp"
#include "linear/block.hpp"
#include "linear/soft.hpp"
#include "linear/sweep.hpp"

namespace rankplane {

// The duals, bounds and targets of one lane; lives as long as its block does.
struct LaneDuals {
    Block<double>& block;  // of width one
    const Visits& visits;
    const double* row_weights;  // [row], or null
    const double* diagonal;     // [row]
    double rho;

    struct Demand {
        double lo, hi, t, e, d;
        bool is_soft;
    };

    double& dual(std::size_t row, std::size_t cut) const { return block.duals[row * block.n_cuts + cut]; }

    Demand demand(std::size_t row, std::size_t cut) const {
        const auto table_row = static_cast<std::size_t>(visits.table_rows[row]);
        const double* fields = block.demands.data() + (table_row * block.n_cuts + cut) * n_demand_fields;
        const double weight = row_weights == nullptr ? 1.0 : row_weights[row];
        return {weight * fields[field_lo], weight * fields[field_hi], fields[field_t],
                fields[field_e],           fields[field_d] / weight,  fields[field_soft] > 0};
    }
};

template <class K> class LaneWork {
  public:
    // `rows` are those to work on; `kernel_rows[i]` is the kernel of rows[i] with all of them, in their order.
    LaneWork(const LaneDuals& lane, const std::vector<std::uint32_t>& rows, const std::vector<const K*>& kernel_rows,
             const KernelLoops<K>& loops)
        : lane_(lane),
          rows_(rows),
          kernel_rows_(kernel_rows),
          loops_(loops),
          n_rows_(rows.size()),
          scores_(n_rows_),
          curvature_(n_rows_),
          units_(n_rows_),
          rise_(n_rows_ * lane.block.n_cuts),
          fall_(n_rows_ * lane.block.n_cuts) {
        for (std::size_t i = 0; i < n_rows_; ++i) {
            scores_[i] = lane.block.weights[rows[i]];
            curvature_[i] = variable(i).curvature;
            units_[i] = 1.0 / std::sqrt(curvature_[i]);
            for (std::size_t cut = 0; cut < lane.block.n_cuts; ++cut) renew(i, cut);
        }
    }

    // Steps until the largest violation is at most `share` of what it was at first. Returns how many it took.
    std::size_t settle(double share, std::size_t most_steps, Control& control) {
        const LaneView view{n_rows_,      lane_.block.n_cuts,         scores_.data(),    rise_.data(),
                            fall_.data(), lane_.block.offsets.data(), curvature_.data(), units_.data()};
        Move<K> first{kernel_rows_[0], 0.0}, second{kernel_rows_[0], 0.0};
        const bool goes_in_turn = lane_.block.has_soft;
        double enough = -1;
        std::size_t n_steps = 0;
        while (true) {
            Candidate candidate = loops_.move_and_look(view, first, second);
            if (goes_in_turn) candidate = n_steps < rise_.size() ? Candidate{1.0, n_steps} : Candidate{};
            if (enough < 0) enough = share * candidate.size;
            if (!(candidate.size > enough) || n_steps == most_steps || (n_steps % 64 == 0 && control.should_stop())) break;
            ++n_steps;

            Variable leader = variable(candidate.place);
            const double first_step = leader.step_by(leader.best_step());
            commit(leader);
            first = {kernel_rows_[leader.i], first_step};
            second.size = 0;
            if (goes_in_turn) continue;
            const Candidate follows =
                loops_.look_for_partner(view, {first.kernel_row, first_step, leader.curvature, leader.cut, lane_.rho});
            if (follows.size > 0 && follows.place != candidate.place) {
                Variable partner = variable(follows.place);
                const auto k = static_cast<double>(kernel_rows_[leader.i][partner.i]);
                partner.gradient += k * first_step;  // the step is already in the offset
                const double from_leader = leader.a, from_partner = partner.a;
                settle_pair(partner, leader, k + (leader.cut == partner.cut ? lane_.rho : 0.0));
                commit(partner);
                commit(leader);
                first.size += leader.a - from_leader;
                second = {kernel_rows_[partner.i], partner.a - from_partner};
            }
        }
        return n_steps;
    }

    const std::vector<double>& scores() const { return scores_; }

  private:
    // One dual during a step.
    struct Variable {
        std::size_t i = 0, cut = 0;
        typename LaneDuals::Demand demand{};
        double a = 0, gradient = 0, curvature = 0;

        // The step to the exact optimum in this variable.
        double best_step() const {
            if (demand.is_soft) return SoftDemand{demand.lo, demand.hi, demand.e}.step(a, -gradient, curvature) - a;
            const double u = a - gradient / curvature, threshold = demand.e / curvature;
            const double rest = std::max(0.0, u - threshold) + std::min(0.0, u + threshold);
            return std::clamp(rest, demand.lo, demand.hi) - a;
        }
        // Returns the step after rounding. Clamping makes sure that bounds are reached exactly.
        double step_by(double step) {
            const double before = a;
            a = std::clamp(a + step, demand.lo, demand.hi);
            gradient += curvature * (a - before);
            return a - before;
        }
        // The slope of the objective in the direction of a step, and whether the objective is quadratic along it.
        double slope(bool is_up) const {
            return gradient + (is_up ? (a < 0 ? -demand.e : demand.e) : (a > 0 ? demand.e : -demand.e));
        }
        bool is_smooth_along(double step) const {
            const double next = a + step;
            return next >= demand.lo && next <= demand.hi && (demand.e == 0 || a == 0 || a * next >= 0);
        }
    };

    void renew(std::size_t i, std::size_t cut) {
        const auto [lo, hi, t, e, d, is_soft] = lane_.demand(rows_[i], cut);
        const double a = lane_.dual(rows_[i], cut);
        const double target = t - d * a;
        rise_[cut * n_rows_ + i] = a < hi ? target - (a < 0 ? -e : e) : -std::numeric_limits<double>::infinity();
        fall_[cut * n_rows_ + i] = a > lo ? target - (a > 0 ? e : -e) : std::numeric_limits<double>::infinity();
    }

    Variable variable(std::size_t place) const {
        Variable v;
        v.i = place % n_rows_;
        v.cut = place / n_rows_;
        v.demand = lane_.demand(rows_[v.i], v.cut);
        v.a = lane_.dual(rows_[v.i], v.cut);
        v.gradient = scores_[v.i] + lane_.block.offsets[v.cut] + v.demand.d * v.a - v.demand.t;
        v.curvature = std::max(lane_.diagonal[rows_[v.i]] + lane_.rho + v.demand.d, 1e-30);
        return v;
    }

    // The leader is at its own optimum; the partner is not.
    static void settle_pair(Variable& partner, Variable& leader, double coupling) {
        constexpr std::size_t most_turns = 10;
        const double determinant = partner.curvature * leader.curvature - coupling * coupling;
        if (determinant > 1e-12 * partner.curvature * leader.curvature) {
            const bool is_up = partner.slope(true) < 0;
            const double g_partner = partner.slope(is_up), g_leader = leader.slope(is_up != (coupling > 0));
            const double step = (coupling * g_leader - leader.curvature * g_partner) / determinant;
            const double step_of_leader = (coupling * g_partner - partner.curvature * g_leader) / determinant;
            const bool is_as_assumed = (step > 0) == is_up && (step_of_leader > 0) == (is_up != (coupling > 0));
            if (is_as_assumed && partner.is_smooth_along(step) && leader.is_smooth_along(step_of_leader)) {
                partner.step_by(step);
                leader.step_by(step_of_leader);
                return;
            }
        }
        for (std::size_t turn = 0; turn < most_turns; ++turn) {
            Variable& mover = turn % 2 == 0 ? partner : leader;
            Variable& other = turn % 2 == 0 ? leader : partner;
            const double step = mover.step_by(mover.best_step());
            other.gradient += coupling * step;
            if (step == 0) return;
        }
    }

    void commit(const Variable& v) {
        double& a = lane_.dual(rows_[v.i], v.cut);
        lane_.block.offsets[v.cut] += lane_.rho * (v.a - a);
        a = v.a;
        renew(v.i, v.cut);
    }

    LaneDuals lane_;
    const std::vector<std::uint32_t>& rows_;
    const std::vector<const K*>& kernel_rows_;
    const KernelLoops<K>& loops_;
    std::size_t n_rows_;
    std::vector<double> scores_, curvature_, units_;
    std::vector<double> rise_, fall_;  // [cut][row]
};

}  // namespace rankplane
