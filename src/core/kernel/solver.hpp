// The outer loop for kernels. There is no w: each lane keeps the scores of all rows, and a step on row i adds its kernel row to
// them.
//
// Rounds. A round measures the violations of all rows, optimises the duals of some of them (lane.hpp), and only then updates the
// scores of the others: by all steps of the round at once, a product of matrices that is bound by arithmetic, where single steps
// would be bound by memory. The caller chooses the rows and provides their kernel rows, so that only it has to know the kernel and
// which of its rows are cached; if all are, a round works on all rows.
//
// Lanes share the kernel rows and nothing else, and each is solved by one thread, so the result does not depend on the number of
// threads. Measuring all rows yields a certificate: a lane stops when its duality gap is at most tol^2 of its objective.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/parallel.hpp"
#include "isa/isa.hpp"
#include "kernel/lane.hpp"
#include "kernel/loops.hpp"
#include "linear/block.hpp"
#include "linear/certificate.hpp"
#include "linear/sweep.hpp"

namespace rankplane {

class KernelSolver {
  public:
    // `diagonal` is the kernel of each row with itself. Each row is one visit. All arrays are borrowed.
    KernelSolver(const double* diagonal, const Visits& visits, const double* row_weights, std::size_t n_lanes, std::size_t n_cuts,
                 const Options& options, Isa isa)
        : diagonal_(diagonal),
          n_rows_(visits.size),
          visits_(visits),
          row_weights_(row_weights),
          n_cuts_(n_cuts),
          options_(options),
          isa_(isa),
          results_(n_lanes) {
        if (options_.free_offsets) {
            double total = 0;
            for (std::size_t i = 0; i < n_rows_; ++i) total += diagonal[i];
            options_.rho = total > 0 ? total / static_cast<double>(n_rows_) : 1.0;
        }
        for (std::size_t lane = 0; lane < n_lanes; ++lane) lanes_.emplace_back(lane, n_rows_, n_cuts, visits);
    }

    // Sets new demands, to be solved starting from the last solution; frozen lanes are left as they are.
    void load(const Table& table, const std::vector<bool>& frozen) {
        results_.assign(lanes_.size(), LaneResult());
        for (Lane& lane : lanes_) {
            lane.block.load(table, visits_, frozen);
            lane.n_steps = 0;
            lane.violation_after_move = -1;
        }
    }

    // Measures all rows: finds the lanes that have ended, and how urgently each row needs a step, [row]. Returns whether any lane
    // is still running.
    bool measure(double* urgency, Control& control) {
        std::vector<std::vector<double>> of_lane(lanes_.size());
        parallel_for(lanes_.size(), options_.n_threads, control, [&](std::size_t l) {
            Lane& lane = lanes_[l];
            of_lane[l].assign(n_rows_, 0.0);
            judge(lane, of_lane[l].data(), control);
        });
        std::fill(urgency, urgency + n_rows_, 0.0);
        bool is_running = false;
        for (std::size_t l = 0; l < lanes_.size(); ++l) {
            if (!may_go_on(lanes_[l])) continue;
            is_running = true;
            const double sum = lanes_[l].block.violation[0];
            for (std::size_t i = 0; i < n_rows_; ++i) urgency[i] += of_lane[l][i] / (sum > 0 ? sum : 1.0);
        }
        return is_running;
    }

    // A round on the picked rows. `kernel_rows[k]` is the kernel row of rows[k], n_rows long.
    template <class K>
    void improve(const std::vector<std::uint32_t>& rows, const std::vector<const K*>& kernel_rows, Control& control) {
        const KernelLoops<K> loops = kernel_loops<K>(isa_);
        std::vector<std::size_t> running;
        for (std::size_t l = 0; l < lanes_.size(); ++l) {
            if (may_go_on(lanes_[l])) running.push_back(l);
        }
        if (rows.size() == n_rows_) {
            std::vector<const K*> in_order(n_rows_);
            std::vector<std::uint32_t> all(n_rows_);
            for (std::size_t k = 0; k < n_rows_; ++k) {
                in_order[rows[k]] = kernel_rows[k];
                all[k] = static_cast<std::uint32_t>(k);
            }
            parallel_for(running.size(), options_.n_threads, control, [&](std::size_t r) {
                Lane& lane = lanes_[running[r]];
                LaneWork<K> work(duals_of(lane), all, in_order, loops);
                lane.n_steps += work.settle(settled_whole, steps_left(lane), control);
                std::copy(work.scores().begin(), work.scores().end(), lane.block.weights.data());
            });
            return;
        }
        const std::size_t n_picks = rows.size();
        Buffer<K> among(n_picks * n_picks, false);
        std::vector<const K*> among_rows(n_picks);
        parallel_for(n_picks, options_.n_threads, control, [&](std::size_t i) {
            among_rows[i] = among.data() + i * n_picks;
            for (std::size_t k = 0; k < n_picks; ++k) among[i * n_picks + k] = kernel_rows[i][rows[k]];
        });
        std::vector<std::vector<double>> steps(running.size());
        parallel_for(running.size(), options_.n_threads, control, [&](std::size_t r) {
            Lane& lane = lanes_[running[r]];
            std::vector<double> before = sums_of_duals(lane, rows);
            LaneWork<K> work(duals_of(lane), rows, among_rows, loops);
            lane.n_steps += work.settle(settled_part, steps_left(lane), control);
            steps[r] = sums_of_duals(lane, rows);
            for (std::size_t k = 0; k < n_picks; ++k) steps[r][k] -= before[k];
        });
        spread(running, steps, kernel_rows, loops, control);
    }

    // A starting point for bounds that are wider by a factor, as in linear/solver.hpp.
    void stretch(double factor, const std::vector<bool>& frozen, Control& control) {
        parallel_for(lanes_.size(), options_.n_threads, control, [&](std::size_t l) {
            Block<double>& block = lanes_[l].block;
            std::vector<Block<double>::Ray> ray(1);
            block.add_rays(visits_, row_weights_, n_rows_, factor, 0, n_rows_, ray);
            const double square = ray[0].square + block.offset_square(0, options_.rho) + square_weight(lanes_[l]);
            if (frozen[l] || square <= 0) return;
            block.scale({std::clamp(-ray[0].linear / square, 1.0, factor)}, 1, control);
        });
    }

    std::vector<bool> touch_bounds() const {
        std::vector<bool> touches;
        for (const Lane& lane : lanes_) touches.push_back(lane.block.touch_bounds(visits_, row_weights_, n_rows_, 0, n_rows_) != 0);
        return touches;
    }

    const std::vector<LaneResult>& results() const { return results_; }

    // Scores of the picked rows on consecutive lanes, without offsets: [pick][lane].
    void copy_scores(const std::uint32_t* picks, std::size_t n_picks, std::size_t first_lane, std::size_t n_wanted,
                     double* scores) const {
        for (std::size_t l = 0; l < n_wanted; ++l) {
            const Block<double>& block = lanes_[first_lane + l].block;
            for (std::size_t i = 0; i < n_picks; ++i) scores[i * n_wanted + l] = block.weights[picks[i]];
        }
    }

    // Coefficients of the kernel expansion of each lane: [row][lane].
    void copy_duals(double* duals) const {
        for (std::size_t l = 0; l < lanes_.size(); ++l) {
            for (std::size_t i = 0; i < n_rows_; ++i) duals[i * lanes_.size() + l] = sum_of_duals(lanes_[l], i);
        }
    }

    void copy_offsets(double* offsets) const {
        for (const Lane& lane : lanes_) lane.block.copy_offsets(offsets, lanes_.size());
    }

  private:
    // Rounds end when the largest violation has fallen to this share. Measuring all rows costs as much as a few steps if a round
    // works on all rows, and as much as many steps if it works on some.
    static constexpr double settled_whole = 0.5, settled_part = 0.1;

    // A block of one lane, whose weights are the scores.
    struct Lane {
        Lane(std::size_t lane, std::size_t n_rows, std::size_t n_cuts, const Visits& visits)
            : block(std::vector<std::size_t>{lane}, n_rows, n_cuts, visits) {}

        Block<double> block;
        std::size_t n_steps = 0;
        double violation_after_move = -1;  // the violation just after the offsets were moved
    };

    bool may_go_on(const Lane& lane) const { return lane.block.running != 0 && steps_left(lane) > 0; }
    // One sweep is n_rows steps.
    std::size_t steps_left(const Lane& lane) const {
        const std::size_t largest = std::numeric_limits<std::size_t>::max();
        const std::size_t most = options_.max_sweeps > largest / n_rows_ ? largest : options_.max_sweeps * n_rows_;
        return lane.n_steps < most ? most - lane.n_steps : 0;
    }

    LaneDuals duals_of(Lane& lane) const { return {lane.block, visits_, row_weights_, diagonal_, options_.rho}; }

    double sum_of_duals(const Lane& lane, std::size_t row) const {
        double sum = 0;
        for (std::size_t cut = 0; cut < n_cuts_; ++cut) sum += lane.block.duals[row * n_cuts_ + cut];
        return sum;
    }
    std::vector<double> sums_of_duals(const Lane& lane, const std::vector<std::uint32_t>& rows) const {
        std::vector<double> sums;
        for (const std::uint32_t row : rows) sums.push_back(sum_of_duals(lane, row));
        return sums;
    }

    Certificate certificate(Lane& lane, double* of_row, Control& control) const {
        SweepState<double> state{};
        state.n_cuts = n_cuts_;
        state.rho = options_.rho;
        state.is_plain = !lane.block.has_soft;
        state.demands = lane.block.demands.data();
        state.table_rows = visits_.table_rows;
        state.row_weights = row_weights_;
        state.square_norms = diagonal_;
        state.weights = lane.block.weights.data();
        state.offsets = lane.block.offsets.data();
        state.duals = lane.block.duals.data();
        state.pushes = options_.ordered_offsets ? lane.block.pushes.data() : nullptr;
        Certificate sums = certify(state, 1, ScoreRows{n_rows_}, n_rows_, options_.free_offsets, kernel_loops<double>(isa_).certify,
                                   1, control, of_row);
        sums.square[0] = square_weight(lane);
        return sums;
    }

    // |w|^2 = sum a s.
    double square_weight(const Lane& lane) const {
        double square = 0;
        for (std::size_t i = 0; i < n_rows_; ++i) square += sum_of_duals(lane, i) * lane.block.weights[i];
        return square;
    }

    // Whether free offsets would still move by more than rounding errors. Where one side of a cut has no rows, the duals of the
    // other come down to these without being balanced.
    bool may_move(const Block<double>& block) const {
        for (std::size_t cut = 0; cut < n_cuts_; ++cut) {
            const double size = std::max(1.0, std::abs(block.offsets[cut]));
            if (std::abs(block.offsets[cut] - block.centres[cut]) > least_violation * size) return true;
        }
        return false;
    }

    // Retires the lane if it has converged; moves free offsets once the duals have converged for the current ones.
    void judge(Lane& lane, double* of_row, Control& control) {
        Block<double>& block = lane.block;
        if (options_.ordered_offsets && block.running != 0) block.order_offsets(0);
        Certificate sums = certificate(lane, of_row, control);
        if (block.first_violation[0] < 0) block.first_violation[0] = sums.violation[0];
        const auto has_ended = [&] {
            const double gap = sums.duality_gap(0), objective = gap - sums.dual_objective(0);
            if (gap <= options_.tol * options_.tol * objective) return true;
            // While all duals sit at their bounds, no row is violated, however far free offsets still have to go.
            return sums.violation[0] <= least_violation * block.first_violation[0] &&
                   (!options_.free_offsets || block.is_balanced(0, visits_, options_.rho, options_.tol) || !may_move(block));
        };
        while (block.running != 0) {
            if (has_ended()) {
                block.retire(1);
            } else if (lane.violation_after_move < 0) {
                lane.violation_after_move = sums.violation[0];
                break;
            } else if (options_.free_offsets && sums.violation[0] <= settled_part * lane.violation_after_move) {
                block.recentre(0);
                if (options_.ordered_offsets) block.order_offsets(0);
                lane.violation_after_move = -1;
                sums = certificate(lane, of_row, control);
            } else {
                break;
            }
        }
        block.violation[0] = sums.violation[0];
        LaneResult& result = results_[block.lanes[0]];
        result.n_sweeps = (lane.n_steps + n_rows_ - 1) / n_rows_;
        result.has_converged = block.running == 0;
        result.violation = block.relative_violation(0);
        result.n_support = static_cast<std::size_t>(sums.support[0]);
        result.gap = sums.duality_gap(0);
        result.dual_objective = sums.dual_objective(0);
    }

    template <class K>
    void spread(const std::vector<std::size_t>& running, const std::vector<std::vector<double>>& steps,
                const std::vector<const K*>& kernel_rows, const KernelLoops<K>& loops, Control& control) {
        constexpr std::size_t rows_per_job = 512;
        std::vector<const K*> moved_rows;
        std::vector<std::vector<double>> moves(running.size());
        for (std::size_t k = 0; k < kernel_rows.size(); ++k) {
            if (std::all_of(steps.begin(), steps.end(), [&](const auto& of_lane) { return of_lane[k] == 0; })) continue;
            moved_rows.push_back(kernel_rows[k]);
            for (std::size_t r = 0; r < running.size(); ++r) moves[r].push_back(steps[r][k]);
        }
        std::vector<const double*> sizes;
        std::vector<double*> scores;
        for (std::size_t r = 0; r < running.size(); ++r) {
            sizes.push_back(moves[r].data());
            scores.push_back(lanes_[running[r]].block.weights.data());
        }
        parallel_for((n_rows_ + rows_per_job - 1) / rows_per_job, options_.n_threads, control, [&](std::size_t job) {
            loops.spread(moved_rows.data(), moved_rows.size(), sizes.data(), scores.data(), running.size(), job * rows_per_job,
                         std::min(n_rows_, (job + 1) * rows_per_job));
        });
    }

    static constexpr double least_violation = 1e-12;  // relative; smaller ones are rounding errors

    const double* diagonal_;
    std::size_t n_rows_;
    Visits visits_;
    const double* row_weights_;
    std::size_t n_cuts_;
    Options options_;
    Isa isa_;
    std::vector<LaneResult> results_;
    std::deque<Lane> lanes_;
};

}  // namespace rankplane
