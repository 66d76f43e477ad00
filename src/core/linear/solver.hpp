// The outer loop: sweeps until every lane has converged.
//
// A lane stops when the violations of one full sweep add up to at most `tol` times those of its first sweep. Rows that look settled
// at a bound are shrunk away, lane by lane; when a lane converges on what is left, all its rows come back, and only a sweep over
// all of them can end it.
//
// Every sweep visits the rows in a new random order. (A random order of chunks of neighbouring rows would read X from memory in
// longer runs and sweep faster, but the rows of a chunk then settle among themselves: after the same number of sweeps the duality
// gap was five times larger.)
//
// Threads. More than 32 lanes make several blocks, which share nothing but X and are solved side by side. A single block is solved
// by a team: each member holds a range of the columns, with their weights, and all of them walk through the rows together, adding
// up their parts of each score (see Exchange). Members hold their own copies of everything else and take the same decisions from
// the same numbers, so there are no locks, and the result depends on the number of members only. What would be natural, threads on
// different rows of one shared W, was slower than one thread: a column's cache line then travels to and fro with every row that
// touches it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/parallel.hpp"
#include "common/random.hpp"
#include "common/rows.hpp"
#include "isa/isa.hpp"
#include "linear/block.hpp"
#include "linear/certificate.hpp"
#include "linear/parts.hpp"
#include "linear/sweep.hpp"

namespace rankplane {

template <class T, class Rows> class Solver {
  public:
    // X, its parts and the arrays of visits and rows are borrowed: they must outlive the solver. A visit is a row, or with twice as
    // many visits as rows, one of the two halves that a row is split into.
    Solver(const std::vector<Part<Rows>>& parts, const Visits& visits, const T* row_weights, std::size_t n_lanes,
           std::size_t n_cuts, const Options& options, Isa isa, Control& control)
        : parts_(parts),
          visits_(visits),
          row_weights_(row_weights),
          n_lanes_(n_lanes),
          n_cuts_(n_cuts),
          options_(options),
          isa_(isa),
          square_norms_(parts_.front().rows.n_rows) {
        measure_rows(control);
        const std::size_t block_size = lanes_per_block(n_lanes, options.n_threads);
        for (std::size_t first = 0; first < n_lanes; first += block_size) {
            std::vector<std::size_t> lanes;
            for (std::size_t lane = first; lane < std::min(n_lanes, first + block_size); ++lane) lanes.push_back(lane);
            for (const Part<Rows>& part : parts_) {
                members_.emplace_back();
                members_.back().part = &part;
                members_.back().blocks.emplace_back(lanes, part.order.size(), n_cuts, visits);
            }
        }
    }
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    // Full blocks where they keep all threads busy, else half as large. A pass costs by the cache lines of a block's row, so blocks
    // that fill them are the cheapest.
    static std::size_t lanes_per_block(std::size_t n_lanes, std::size_t n_threads) {
        const bool is_single = n_lanes <= max_width;
        return is_single || n_lanes >= n_threads * max_width ? max_width : max_width / 2;
    }

    // Solves for the demands of a table, from where the last run ended; lanes marked frozen are left as they are. The first
    // n_certified lanes get a dual objective and a gap.
    void run(const Table& table, const std::vector<bool>& frozen, std::size_t n_certified, Control& control) {
        if (options_.free_offsets) options_.rho = mean_square_norm_;
        results_.assign(n_lanes_, LaneResult());
        for (Member& member : members_) {
            member.n_rows_done = 0;
            for (Block<T>& block : member.blocks) block.load(table, visits_, frozen);
        }
        const std::size_t team_size = parts_.size();
        const std::size_t slot_bytes = sizeof(std::uint64_t) + max_width * sizeof(double);
        const std::size_t aligned_slot = (slot_bytes + 127) / 128 * 128;
        Buffer<char> slots(team_size > 1 ? team_size * Exchange::ring * aligned_slot : 0);
        std::mutex report_mutex;
        parallel_for(members_.size(), team_size > 1 ? team_size : options_.n_threads, control, [&](std::size_t m) {
            Member& member = members_[m];
            Exchange exchange;
            exchange.slots = slots.data();
            exchange.slot_bytes = aligned_slot;
            exchange.n_members = team_size;
            exchange.member = m % team_size;
            exchange.delay = first_delay();
            exchange.n_rows_done = &member.n_rows_done;
            exchange.stop = control.stop_flag();
            exchange.yield = [] { std::this_thread::yield(); };
            try {
                for (std::size_t b = 0; b < member.blocks.size() && !control.should_stop(); ++b) {
                    solve(member, b, exchange, control, report_mutex);
                }
                if (!control.should_stop()) certify_first(member, n_certified, exchange, control);
            } catch (...) {
                control.request_stop();  // or the others would wait for this member for ever
                throw;
            }
        });
        control.check();
        conclude(n_certified);
    }

    // A first guess for bounds that are wider by a factor: each lane's solution, stretched as far as that helps. While all its
    // duals sit at their bounds, they want to follow them all the way; once most are free, they want to stay. Between the two, the
    // dual objective along the ray is a parabola. Frozen lanes stay as they are.
    void stretch(double factor, const std::vector<bool>& frozen, Control& control) {
        const std::size_t team_size = parts_.size();
        std::vector<std::vector<double>> squares(members_.size(), std::vector<double>(n_lanes_, 0.0));
        std::vector<double> factors(n_lanes_, 1.0);
        parallel_for(members_.size(), options_.n_threads, control, [&](std::size_t m) {
            for (const Block<T>& block : members_[m].blocks) {
                const std::vector<double> of_block = block.square_weights();
                for (std::size_t l = 0; l < block.lanes.size(); ++l) squares[m][block.lanes[l]] = of_block[l];
            }
        });
        parallel_for(members_.size() / team_size, options_.n_threads, control, [&](std::size_t team) {
            for (const Block<T>& block : members_[team * team_size].blocks) {
                const auto rays = block.rays(visits_, row_weights_, square_norms_.size(), options_.rho, factor);
                for (std::size_t l = 0; l < block.lanes.size(); ++l) {
                    const std::size_t lane = block.lanes[l];
                    double square = rays[l].square;
                    for (std::size_t m = 0; m < team_size; ++m) square += squares[team * team_size + m][lane];
                    if (!frozen[lane] && square > 0) factors[lane] = std::clamp(-rays[l].linear / square, 1.0, factor);
                }
            }
        });
        parallel_for(members_.size(), options_.n_threads, control, [&](std::size_t m) {
            for (Block<T>& block : members_[m].blocks) block.scale(factors);
        });
    }

    // Which lanes would change if their bounds were wider.
    std::vector<bool> touch_bounds() const {
        std::vector<bool> touches(n_lanes_, false);
        for (const Member& member : members_) {
            if (member.part != &parts_.front()) continue;  // all members of a team hold the same duals
            for (const Block<T>& block : member.blocks) {
                for (std::size_t l = 0; l < block.lanes.size(); ++l) {
                    touches[block.lanes[l]] = block.touches_bound(l, visits_, row_weights_, square_norms_.size());
                }
            }
        }
        return touches;
    }

    // w . x of some rows on some neighbouring lanes, without offsets: [pick][lane].
    void score(const std::uint32_t* picks, std::size_t n_picks, std::size_t first_lane, std::size_t n_wanted, T* scores,
               Control& control) const {
        constexpr std::size_t rows_per_job = 1024;
        std::fill(scores, scores + n_picks * n_wanted, T(0));
        parallel_for((n_picks + rows_per_job - 1) / rows_per_job, options_.n_threads, control, [&](std::size_t job) {
            const std::size_t first = job * rows_per_job, n_here = std::min(n_picks - first, rows_per_job);
            std::vector<T> part(rows_per_job * max_width);
            for (const Member& member : members_) {
                for (const Block<T>& block : member.blocks) {
                    std::vector<std::pair<std::size_t, std::size_t>> moves;  // a lane's place in the block, and in the scores
                    for (std::size_t l = 0; l < block.lanes.size(); ++l) {
                        const std::size_t to = block.lanes[l] - first_lane;  // wraps round below the first
                        if (to < n_wanted) moves.emplace_back(l, to);
                    }
                    if (moves.empty()) continue;
                    std::fill(part.begin(), part.end(), T(0));
                    lane_loops<T, Rows>(isa_, block.width)
                        .add_scores(block.weights.data(), member.part->rows, picks + first, n_here, part.data());
                    for (std::size_t i = 0; i < n_here; ++i) {
                        for (const auto& [l, to] : moves) scores[(first + i) * n_wanted + to] += part[i * block.width + l];
                    }
                }
            }
        });
    }

    // One entry per lane.
    const std::vector<LaneResult>& results() const { return results_; }

    // Frees what only a further run would need: a caller that copies the weights out then holds no more than it did while solving.
    void release_duals() {
        for (Member& member : members_) {
            for (Block<T>& block : member.blocks) {
                block.duals = Buffer<T>();
                block.bits = Buffer<std::uint8_t>();
            }
        }
    }

    // The first n_wanted lanes: [column][lane] in the caller's numbering of the columns.
    void copy_weights(T* weights, std::size_t n_wanted) const {
        for (const Member& member : members_) {
            const ColumnOrder& order = member.part->order;
            for (const Block<T>& block : member.blocks) {
                for (std::size_t column = order.first(); column < order.last(); ++column) {
                    const T* from = block.weights.data() + order.position(column) * block.width;
                    for (std::size_t l = 0; l < block.lanes.size() && block.lanes[l] < n_wanted; ++l) {
                        weights[column * n_wanted + block.lanes[l]] = from[l];
                    }
                }
            }
        }
    }

    // offsets: [cut][lane].
    void copy_offsets(T* offsets) const {
        for (const Member& member : members_) {
            for (const Block<T>& block : member.blocks) block.copy_offsets(offsets, n_lanes_);
        }
    }

  private:
    static constexpr std::size_t chunk_rows = 512;

    // A thread's share: some lanes on some columns.
    struct Member {
        const Part<Rows>* part = nullptr;
        std::deque<Block<T>> blocks;  // the running one, then those split off when their lanes had ended
        std::vector<Certificate> certificates;
        std::uint64_t n_rows_done = 0;
    };

    // What one sweep adds up.
    struct Tally {
        std::vector<double> violation_sum;
        std::vector<T> violation_max;
        std::uint32_t dropped = 0;
        std::size_t n_active = 0;
    };

    void measure_rows(Control& control) {
        constexpr std::size_t rows_per_job = 4096;
        const std::size_t n_rows = square_norms_.size();
        std::vector<double> totals((n_rows + rows_per_job - 1) / rows_per_job, 0.0);
        parallel_for(totals.size(), options_.n_threads, control, [&](std::size_t job) {
            for (std::size_t i = job * rows_per_job; i < std::min(n_rows, (job + 1) * rows_per_job); ++i) {
                double square = 0;
                for (const Part<Rows>& part : parts_) {
                    const auto row = part.rows[i];
                    for (std::size_t q = 0; q < row.size; ++q) {
                        square += static_cast<double>(row.value(q)) * static_cast<double>(row.value(q));
                    }
                }
                square_norms_[i] = static_cast<T>(square);
                totals[job] += square;
            }
        });
        double total = 0;
        for (const double part : totals) total += part;
        mean_square_norm_ = total > 0 ? total / static_cast<double>(n_rows) : 1.0;
    }

    // How many rows old a score may be, so that a team need not wait for every row. Rows of text hardly overlap and do not notice.
    // Dense rows do, and are long enough to wait for.
    static constexpr std::size_t first_delay() { return Rows::is_sparse ? 2 : 0; }

    void solve(Member& member, std::size_t b, Exchange& exchange, Control& control, std::mutex& report_mutex) {
        Tally tally;
        double last_violation = -1;
        for (Block<T>& block = member.blocks[b]; block.running != 0 && block.n_sweeps < options_.max_sweeps;) {
            sweep_once(block, member.part->rows, exchange, control, tally);
            if (control.should_stop()) return;
            // The price of a delay, should there be one, is that violations grow: then wait for every row.
            double violation = 0;
            for (const double lane_violation : tally.violation_sum) violation += lane_violation;
            if (last_violation >= 0 && violation > last_violation) exchange.delay = 0;
            last_violation = violation;
            judge(block, tally);
            if (control.report && exchange.member == 0) {
                const std::lock_guard lock(report_mutex);
                control.report(report_on(block, tally));
            }
            if (should_narrow(block)) {
                Block<T> ended = block.split_ended(member.part->order.size(), visits_);
                // A deque: blocks stay where they are when one is added.
                member.blocks.push_back(std::move(ended));
            }
        }
    }

    void certify_first(Member& member, std::size_t n_certified, const Exchange& exchange, Control& control) const {
        member.certificates.clear();
        for (Block<T>& block : member.blocks) {
            Certificate& sums = member.certificates.emplace_back();
            if (block.lanes.front() >= n_certified) continue;
            sums = certify(state_of(block, exchange), block.width, member.part->rows, visits_.size, options_.free_offsets,
                           lane_loops<T, Rows>(isa_, block.width).certify, control);
            sums.square = block.square_weights();
        }
    }

    SweepState<T> state_of(Block<T>& block, const Exchange& exchange) const {
        SweepState<T> state{};
        state.n_cuts = n_cuts_;
        state.rho = static_cast<T>(options_.rho);
        state.may_shrink = options_.shrinking;
        state.demands = block.demands.data();
        state.table_rows = visits_.table_rows;
        state.row_weights = row_weights_;
        state.square_norms = square_norms_.data();
        state.weights = block.weights.data();
        state.offsets = block.offsets.data();
        state.duals = block.duals.data();
        state.bits = block.bits.data();
        state.shrink_beyond = block.shrink_beyond.data();
        state.exchange = exchange;
        return state;
    }

    void sweep_once(Block<T>& block, const Rows& rows, const Exchange& exchange, Control& control, Tally& tally) const {
        const LaneLoops<T, Rows> loops = lane_loops<T, Rows>(isa_, block.width);
        const auto sweep = exchange.n_members > 1 ? loops.sweep_together : loops.sweep;
        tally.violation_sum.assign(block.width, 0.0);
        tally.violation_max.assign(block.width, T(0));
        tally.dropped = 0;
        tally.n_active = 0;
        std::vector<T> chunk_sum(block.width);
        SweepState<T> state = state_of(block, exchange);
        state.violation_sum = chunk_sum.data();
        state.violation_max = tally.violation_max.data();
        state.dropped = &tally.dropped;

        Random random(mix(options_.seed, (block.n_runs - 1) << 32 | block.n_sweeps));
        shuffle(block.order.data(), block.order.size(), random);
        std::uint32_t visits[chunk_rows];
        for (std::size_t first = 0; first < visits_.size && !control.should_stop(); first += chunk_rows) {
            const std::size_t n_active = block.active_visits(first, std::min(visits_.size, first + chunk_rows), visits);
            tally.n_active += n_active;
            // Sums over a chunk are short enough for T; over a sweep they are not.
            std::fill(chunk_sum.begin(), chunk_sum.end(), T(0));
            sweep(state, rows, visits, n_active);
            for (std::size_t l = 0; l < block.width; ++l) tally.violation_sum[l] += static_cast<double>(chunk_sum[l]);
        }
        ++block.n_sweeps;
    }

    // After a sweep: which lanes have converged, which get their rows back.
    void judge(Block<T>& block, const Tally& tally) const {
        std::uint32_t converged = 0;
        for (std::size_t l = 0; l < block.width; ++l) {
            if (!block.is_running(l)) continue;
            if (block.first_violation[l] < 0) block.first_violation[l] = tally.violation_sum[l];
            block.violation[l] = tally.violation_sum[l];
            ++block.lane_sweeps[l];
            ++block.sweeps_since_recentred[l];
            const T largest = tally.violation_max[l];
            block.shrink_beyond[l] = largest > 0 ? largest : std::numeric_limits<T>::infinity();
            if (block.violation[l] <= options_.tol * block.first_violation[l]) converged |= 1u << l;
        }
        // Rows shrunk during this sweep were part of it; rows shrunk before were not.
        const std::uint32_t incomplete = converged & block.has_shrunk;
        block.has_shrunk |= tally.dropped;
        std::uint32_t ended = converged & ~incomplete;
        if (options_.free_offsets) ended = settled_offsets(block, ended);
        if (incomplete != 0) block.activate(incomplete, visits_);
        if (ended != 0) block.retire(ended);
    }

    // A lane with free offsets has ended when moving them no longer upsets it, that is when the first sweep after the move
    // converges at once, and the constraint on its duals holds: while all its rows sit at their bounds a move upsets nobody,
    // however far the offset still has to go. Moves the offsets of the others among these lanes.
    std::uint32_t settled_offsets(Block<T>& block, std::uint32_t lanes) const {
        std::uint32_t settled = 0, moved = 0;
        for (std::size_t l = 0; l < block.width; ++l) {
            if ((lanes >> l & 1) == 0) continue;
            const bool is_calm = block.sweeps_since_recentred[l] == 1 && block.lane_sweeps[l] > 1;
            if (is_calm && block.is_balanced(l, visits_, options_.tol)) {
                settled |= 1u << l;
            } else {
                block.recentre(l);
                moved |= 1u << l;
            }
        }
        if (moved != 0) block.activate(moved, visits_);
        return settled;
    }

    Report report_on(const Block<T>& block, const Tally& tally) const {
        Report report;
        report.sweep = block.n_sweeps;
        report.n_active_rows = tally.n_active;
        report.lanes = block.lanes;
        for (std::size_t l = 0; l < block.lanes.size(); ++l) report.violations.push_back(block.relative_violation(l));
        return report;
    }

    // Moving lanes costs about a sweep. A solve that has already taken many will likely take many more.
    static bool should_narrow(const Block<T>& block) {
        const auto n_running = static_cast<std::size_t>(__builtin_popcount(block.running));
        return n_running > 0 && block.n_sweeps >= 16 && 2 * width_for(n_running) <= block.width;
    }

    // Puts the certificates of all members together: the weights of a lane lie with all of them.
    void conclude(std::size_t n_certified) {
        for (const Member& member : members_) {
            const bool is_first = member.part == &parts_.front();
            for (std::size_t b = 0; b < member.blocks.size(); ++b) {
                const Block<T>& block = member.blocks[b];
                for (std::size_t l = 0; l < block.lanes.size(); ++l) {
                    LaneResult& result = results_[block.lanes[l]];
                    if (is_first) {
                        result.n_sweeps = block.lane_sweeps[l];
                        result.has_converged = !block.is_running(l);
                        result.violation = block.relative_violation(l);
                    }
                    if (block.lanes[l] >= n_certified) continue;
                    const Certificate& sums = member.certificates[b];
                    if (!is_first) {
                        result.dual_objective -= 0.5 * sums.square[l];
                        continue;
                    }
                    result.violation = block.first_violation[l] > 0 ? sums.violation[l] / block.first_violation[l] : 0.0;
                    result.n_support = static_cast<std::size_t>(sums.support[l]);
                    result.gap = sums.duality_gap(l);
                    result.dual_objective += sums.dual_objective(l);
                }
            }
        }
    }

    const std::vector<Part<Rows>>& parts_;
    Visits visits_;
    const T* row_weights_;
    std::size_t n_lanes_, n_cuts_;
    Options options_;
    Isa isa_;
    Buffer<T> square_norms_;
    double mean_square_norm_ = 1.0;
    std::deque<Member> members_;
    std::vector<LaneResult> results_;
};

}  // namespace rankplane
