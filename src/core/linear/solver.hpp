// The outer loop: sweeps until every lane has converged (judge.hpp).
//
// Every sweep visits the rows in a new random order. (A random order of chunks of neighbouring rows would read X from memory in
// longer runs and sweep faster, but the rows of a chunk then settle among themselves: after the same number of sweeps the duality
// gap was five times larger.)
//
// Threads. More than 32 lanes make several blocks, which share nothing but X and are solved side by side while they keep all
// threads busy. Otherwise a team solves one block after the other: the columns are dealt out in parts, each with its weights to one
// thread, and all threads go through the rows together, batch by batch (see sweep_lanes.hpp), with two meetings for each. The
// rows of a batch do not see each other's steps but for the offsets; batch.hpp says how many may be scored at once, and watch.hpp
// makes it fewer where their steps get into each other's way. All sums are formed part by part, and each number is written by one
// thread: there are no locks, and the result depends on the number of parts, which is the number of threads asked for, but not on
// how many threads there really are, nor on their timing.
//
// What would be natural, threads on different rows of one shared W, was slower than one thread: a column's cache line then travels
// to and fro with every row that touches it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/parallel.hpp"
#include "common/random.hpp"
#include "common/rows.hpp"
#include "common/team.hpp"
#include "isa/isa.hpp"
#include "linear/block.hpp"
#include "linear/certificate.hpp"
#include "linear/judge.hpp"
#include "linear/norms.hpp"
#include "linear/parts.hpp"
#include "linear/shuffle.hpp"
#include "linear/sweep.hpp"
#include "linear/watch.hpp"

namespace rankplane {

template <class T, class Rows> class Solver {
  public:
    // X, its parts and the arrays of visits and rows are borrowed: they must outlive the solver. A visit is a row, or with twice as
    // many visits as rows, one of the two halves that a row is split into. `batch` is how many rows may be scored at once.
    Solver(const Parts<Rows>& parts, const Visits& visits, const T* row_weights, std::size_t n_lanes, std::size_t n_cuts,
           const Options& options, std::size_t batch, Isa isa, Control& control)
        : parts_(parts),
          visits_(visits),
          row_weights_(row_weights),
          n_lanes_(n_lanes),
          n_cuts_(n_cuts),
          options_(options),
          batch_(batch),
          isa_(isa),
          square_norms_(parts_.whole.n_rows, false) {
        mean_square_norm_ = measure_rows(parts_, options.n_threads, square_norms_, control);
        const std::size_t block_size = lanes_per_block(n_lanes, n_parts() > 1 ? 1 : options.n_threads, options.coupling.size);
        for (std::size_t first = 0; first < n_lanes; first += block_size) {
            std::vector<std::size_t> lanes;
            for (std::size_t lane = first; lane < std::min(n_lanes, first + block_size); ++lane) lanes.push_back(lane);
            groups_.emplace_back();
            groups_.back().batch = batch_;
            groups_.back().blocks.emplace_back(lanes, parts_.whole.n_columns, n_cuts, visits, options.coupling);
        }
    }
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    // Full blocks where they keep all threads busy, else half as large. A pass costs by the cache lines of a block's row, so blocks
    // that fill them are the cheapest. Groups of coupled lanes stay together.
    static std::size_t lanes_per_block(std::size_t n_lanes, std::size_t n_threads, std::size_t group) {
        const bool is_single = n_lanes <= max_width;
        const std::size_t most = is_single || n_lanes >= n_threads * max_width ? max_width : std::max(max_width / 2, group);
        return group == 0 ? most : most / group * group;
    }

    // Solves for the demands of a table, from where the last run ended; lanes marked frozen are left as they are. The first
    // n_certified lanes get a dual objective and a gap.
    void run(const Table& table, const std::vector<bool>& frozen, std::size_t n_certified, Control& control) {
        if (options_.free_offsets) options_.rho = mean_square_norm_;
        results_.assign(n_lanes_, LaneResult());
        std::mutex report_mutex;
        if (n_parts() == 1) {
            parallel_for(groups_.size(), options_.n_threads, control, [&](std::size_t g) {
                for (Block<T>& block : groups_[g].blocks) block.load(table, visits_, frozen);
                Team alone(1, control);
                Seat seat(alone, 0);
                solve_blocks(groups_[g], seat, report_mutex, control);
            });
        } else {
            const std::size_t n_members = std::min(n_parts(), usable_processors());
            Team team(n_members, control);
            parallel_for(n_members, n_members, control, [&](std::size_t member) {
                Seat seat(team, member);
                try {
                    for (Group& group : groups_) {
                        if (member == 0) {
                            for (Block<T>& block : group.blocks) block.load(table, visits_, frozen);
                        }
                        if (!seat.meet() || !solve_blocks(group, seat, report_mutex, control)) break;
                    }
                } catch (...) {
                    control.request_stop();  // or the others would wait for this member for ever
                    throw;
                }
            });
        }
        control.check();
        certificate_ = Certificate(n_certified);
        certificate_.positive.assign(n_cuts_ * n_certified, 0.0);
        certificate_.negative.assign(n_cuts_ * n_certified, 0.0);
        for_blocks([&](Block<T>& block) { conclude(block, n_certified, control); });
    }

    // A first guess for bounds that are wider by a factor: each lane's solution, stretched as far as that helps. While all its
    // duals sit at their bounds, they want to follow them all the way; once most are free, they want to stay. Between the two, the
    // dual objective along the ray is a parabola. Frozen lanes stay as they are.
    void stretch(double factor, const std::vector<bool>& frozen, Control& control) {
        for_blocks([&](Block<T>& block) {
            const std::vector<typename Block<T>::Ray> rays = rays_of(block, factor, control);
            std::vector<double> factors(block.lanes.size(), 1.0);
            for (std::size_t l = 0; l < factors.size(); ++l) {
                const auto [linear, square] = rays[l];
                if (!frozen[block.lanes[l]] && square > 0) factors[l] = std::clamp(-linear / square, 1.0, factor);
            }
            block.scale(factors, options_.n_threads, control);
        });
    }

    // Which lanes would change if their bounds were wider.
    std::vector<bool> touch_bounds(Control& control) {
        std::vector<bool> touches(n_lanes_, false);
        for_blocks([&](Block<T>& block) {
            std::atomic<std::uint32_t> found{0};
            for_visits(control, [&](std::size_t, std::size_t first, std::size_t last) {
                found |= block.touch_bounds(visits_, row_weights_, square_norms_.size(), first, last);
            });
            found = block.with_groups(found);
            for (std::size_t l = 0; l < block.lanes.size(); ++l) touches[block.lanes[l]] = (found >> l & 1) != 0;
        });
        return touches;
    }

    // w . x of some rows on some neighbouring lanes, without offsets: [pick][lane]. Of coupled lanes, as for their weights, this is
    // what each has gathered itself.
    void score(const std::uint32_t* picks, std::size_t n_picks, std::size_t first_lane, std::size_t n_wanted, T* scores,
               Control& control) const {
        constexpr std::size_t rows_per_job = 1024;
        parallel_for((n_picks + rows_per_job - 1) / rows_per_job, options_.n_threads, control, [&](std::size_t job) {
            const std::size_t first = job * rows_per_job, n_here = std::min(n_picks - first, rows_per_job);
            std::vector<T> part(rows_per_job * max_width);
            for (const Group& group : groups_) {
                for (const Block<T>& block : group.blocks) {
                    std::vector<std::pair<std::size_t, std::size_t>> moves;  // a lane's place in the block, and in the scores
                    for (std::size_t l = 0; l < block.lanes.size(); ++l) {
                        const std::size_t to = block.lanes[l] - first_lane;  // wraps round below the first
                        if (to < n_wanted) moves.emplace_back(l, to);
                    }
                    if (moves.empty()) continue;
                    std::fill(part.begin(), part.end(), T(0));
                    loops_of(block).add_scores(block.weights.data(), parts_.whole, picks + first, n_here, part.data());
                    for (std::size_t i = 0; i < n_here; ++i) {
                        for (const auto& [l, to] : moves) scores[(first + i) * n_wanted + to] = part[i * block.width + l];
                    }
                }
            }
        });
    }

    // One entry per lane.
    const std::vector<LaneResult>& results() const { return results_; }

    // Frees what only a further run would need: a caller that copies the weights out then holds no more than it did while solving.
    void release_duals() {
        for_blocks([](Block<T>& block) {
            block.duals = Buffer<T>();
            block.bits = Buffer<std::uint8_t>();
            block.order = Buffer<std::uint32_t>();
            block.active = Buffer<std::uint32_t>();
        });
    }

    // The first n_wanted lanes: [column][lane] in the caller's numbering of the columns.
    void copy_weights(T* weights, std::size_t n_wanted, Control& control) {
        for_blocks([&](Block<T>& block) {
            for_rows(parts_.whole.n_columns, options_.n_threads, control, [&](std::size_t first, std::size_t last) {
                for (std::size_t column = first; column < last; ++column) {
                    const T* from = block.weights.data() + parts_.place(column) * block.width;
                    for (std::size_t l = 0; l < block.lanes.size() && block.lanes[l] < n_wanted; ++l) {
                        weights[column * n_wanted + block.lanes[l]] = from[l];
                    }
                }
            });
        });
    }

    // offsets: [cut][lane].
    void copy_offsets(T* offsets) const {
        for (const Group& group : groups_) {
            for (const Block<T>& block : group.blocks) block.copy_offsets(offsets, n_lanes_);
        }
    }

    // Further runs take at most so many sweeps; none at all only loads the demands and certifies.
    void limit_sweeps(std::size_t max_sweeps) { options_.max_sweeps = max_sweeps; }

    // Puts all lanes into a state, in the caller's numbering: weights [column][lane], offsets [cut][lane], duals
    // [visit][cut][lane]. Without duals they are zero. The three need not belong together; whoever holds only some of the rows
    // brings the weights of all.
    void start_from(const T* weights, const T* offsets, const T* duals, Control& control) {
        is_own_start_ = false;
        for_blocks([&](Block<T>& block) {
            for_rows(parts_.whole.n_columns, options_.n_threads, control, [&](std::size_t first, std::size_t last) {
                for (std::size_t column = first; column < last; ++column) {
                    T* to = block.weights.data() + parts_.place(column) * block.width;
                    for (std::size_t l = 0; l < block.lanes.size(); ++l) to[l] = weights[column * n_lanes_ + block.lanes[l]];
                }
            });
            block.start_from(offsets, duals, n_lanes_, options_.free_offsets ? mean_square_norm_ : 0.0);
        });
    }

    // [visit][cut][lane] of all lanes.
    void copy_duals(T* duals) {
        for_blocks([&](Block<T>& block) { block.copy_duals(duals, n_lanes_); });
    }

    // The sums of the last run's certificate: in each, [lane], or [cut][lane], of the lanes that it certified. They add up over
    // solvers that hold different rows and the same weights.
    const Certificate& certificate_sums() const { return certificate_; }

  private:
    // Lanes that are swept together, and what one sweep is made with.
    struct Group {
        std::deque<Block<T>> blocks;  // the running one, then those split off when their lanes had ended
        std::size_t batch = 1;        // what one run has learnt of it, the next knows
        Buffer<T> scores;             // [part][row of a batch][lane]
        Buffer<char> batch_rows;      // [row of a batch], see sweep.hpp
        ShuffledVisits visits;
        BatchWatch watch;
    };

    static constexpr double infinity = std::numeric_limits<double>::infinity();

    std::size_t n_parts() const { return parts_.parts.size(); }

    LaneLoops<T, Rows> loops_of(const Block<T>& block) const { return lane_loops<T, Rows>(isa_, block.width); }

    template <class Work> void for_blocks(const Work& work) {
        for (Group& group : groups_) {
            for (Block<T>& block : group.blocks) work(block);
        }
    }

    // work(job, first, last) for ranges of visits that do not depend on the number of threads.
    template <class Work> void for_visits(Control& control, const Work& work) const {
        parallel_for(n_visit_jobs(), options_.n_threads, control,
                     [&](std::size_t job) { work(job, job * visits_at_once, std::min(visits_.size, (job + 1) * visits_at_once)); });
    }
    std::size_t n_visit_jobs() const { return (visits_.size + visits_at_once - 1) / visits_at_once; }

    // Returns false if this member has nothing more to do, or nobody has. Blocks that are split off under way come last, and have
    // nothing left to solve.
    bool solve_blocks(Group& group, Seat& seat, std::mutex& report_mutex, Control& control) {
        Tally<T> tally;
        for (std::size_t b = 0; b < group.blocks.size(); ++b) {
            Block<T>& block = group.blocks[b];
            if (seat.member() == 0) prepare(group, block.width);
            if (!seat.meet()) return false;
            while (block.running != 0 && block.n_sweeps < options_.max_sweeps) {
                if (!sweep_once(group, block, seat, control, tally)) return false;
                if (seat.member() == 0) conclude_sweep(group, block, tally, report_mutex, control);
                if (!seat.meet()) return false;
            }
        }
        return true;
    }

    void prepare(Group& group, std::size_t width) const {
        const std::size_t n = n_parts();
        group.scores = Buffer<T>(n * batch_ * width, false);
        group.batch_rows = Buffer<char>(n > 1 ? batch_ * batch_row_bytes<T>(n_cuts_, width) : 0, false);
        group.visits = ShuffledVisits(n);
        group.watch = BatchWatch(n, width);
    }

    void conclude_sweep(Group& group, Block<T>& block, const Tally<T>& tally, std::mutex& report_mutex, Control& control) {
        ++block.n_sweeps;
        const bool begins_again = is_own_start_ && block.n_sweeps < options_.max_sweeps && group.watch.has_run_away(block);
        group.batch = group.watch.allowed(block, group.batch);
        group.watch.begin_sweep();
        judge(block, tally, options_, visits_);
        if (begins_again) block.begin_again(block.running, visits_);
        if (control.report) {
            const std::lock_guard lock(report_mutex);
            control.report(report_on(block, tally));
        }
        if (should_narrow(block)) {
            Block<T> ended = block.split_ended(parts_.whole.n_columns, visits_);
            group.watch = BatchWatch(n_parts(), block.width);
            // A deque: blocks stay where they are when one is added.
            group.blocks.push_back(std::move(ended));
        }
    }

    SweepState<T> state_of(Block<T>& block) const {
        SweepState<T> state{};
        state.n_cuts = n_cuts_;
        state.rho = static_cast<T>(options_.rho);
        state.n_joined = options_.coupling.n_joined();
        state.may_shrink = options_.shrinking && state.n_joined == 0;  // a single lane of a group cannot leave a row
        state.is_plain = !block.has_soft && !block.is_coupled() && state.n_joined == 0;
        state.coupling = block.is_coupled() ? block.coupling.data() : nullptr;
        state.own_coupling = block.own_coupling.data();
        state.turns = block.turns.data();
        state.n_turns = block.turns.size();
        state.demands = block.demands.data();
        state.table_rows = visits_.table_rows;
        state.row_weights = row_weights_;
        state.square_norms = square_norms_.data();
        state.weights = block.weights.data();
        state.offsets = block.offsets.data();
        state.pushes = options_.ordered_offsets ? block.pushes.data() : nullptr;
        state.duals = block.duals.data();
        state.bits = block.bits.data();
        state.shrink_beyond = block.shrink_beyond.data();
        return state;
    }

    // Returns false if this member has nothing more to do, or nobody has.
    bool sweep_once(Group& group, Block<T>& block, Seat& seat, Control& control, Tally<T>& tally) const {
        if (!group.visits.shuffle(block, mix(options_.seed, (block.n_runs - 1) << 32 | block.n_sweeps), group.batch, seat))
            return false;
        const LaneLoops<T, Rows> loops = loops_of(block);
        tally.violation_sum.assign(block.width, 0.0);
        tally.violation_max.assign(block.width, T(0));
        tally.dropped = 0;
        tally.n_active = group.visits.n_active();
        std::vector<T> chunk_sum(block.width), offsets(block.offsets.data(), block.offsets.data() + block.offsets.size());
        Buffer<T> steps(group.batch * block.width, false);
        SweepState<T> state = state_of(block);
        state.offsets = offsets.data();
        state.steps = steps.data();
        state.batch = group.batch;
        state.n_parts = n_parts();
        state.member = seat.member();
        state.scores = group.scores.data();
        state.batch_rows = group.batch_rows.data();
        state.meet = [](void* at) { return static_cast<Seat*>(at)->meet(); };
        state.seat = &seat;
        state.violation_sum = chunk_sum.data();
        state.violation_max = tally.violation_max.data();
        state.dropped = &tally.dropped;
        state.check_every = group.batch > 1 ? BatchWatch::check_every(block.n_sweeps) : 0;
        state.changes = group.watch.changes();
        state.own_changes = group.watch.own_changes();

        // Sums over a chunk are short enough for T; over a sweep they are not.
        const std::vector<std::uint32_t>& ends = group.visits.ends();
        const std::size_t n_batches = ends.size(), chunk = std::max<std::size_t>(n_parts() > 1 ? 8 : 1, 512 / group.batch);
        std::size_t first_visit = 0;
        for (std::size_t first = 0; first < n_batches; first += chunk) {
            if (control.should_stop()) return false;
            std::fill(chunk_sum.begin(), chunk_sum.end(), T(0));
            state.n_members = seat.n_members();
            state.first_visit = first_visit;
            state.first_batch = first;
            loops.sweep(state, parts_.whole, parts_.parts.data(), block.active.data(), ends.data() + first,
                        std::min(chunk, n_batches - first));
            first_visit = ends[std::min(first + chunk, n_batches) - 1];
            for (std::size_t l = 0; l < block.width; ++l) tally.violation_sum[l] += static_cast<double>(chunk_sum[l]);
            if (n_parts() == 1) continue;
            seat.watch();
            if (!seat.meet() || seat.is_dismissed()) return false;
        }
        if (control.should_stop()) return false;
        tally.pool(block);
        if (n_parts() > 1 && !seat.meet()) return false;
        if (seat.member() == 0) std::copy(offsets.begin(), offsets.end(), block.offsets.data());
        return true;
    }

    Report report_on(const Block<T>& block, const Tally<T>& tally) const {
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

    std::vector<typename Block<T>::Ray> rays_of(const Block<T>& block, double price, Control& control) const {
        using Rays = std::vector<typename Block<T>::Ray>;
        std::vector<Rays> by_job(n_visit_jobs(), Rays(block.width));
        for_visits(control, [&](std::size_t job, std::size_t first, std::size_t last) {
            block.add_rays(visits_, row_weights_, square_norms_.size(), price, first, last, by_job[job]);
        });
        Rays rays(block.width);
        for (const Rays& part : by_job) {
            for (std::size_t l = 0; l < block.width; ++l) {
                rays[l].linear += part[l].linear;
                rays[l].square += part[l].square;
            }
        }
        const std::vector<double> squares = square_weights(block, control);
        for (std::size_t l = 0; l < block.width; ++l) rays[l].square += squares[l] + block.offset_square(l, options_.rho);
        block.add_up(rays);
        return rays;
    }

    std::vector<double> square_weights(const Block<T>& block, Control& control) const {
        const std::size_t n_columns = parts_.whole.n_columns;
        std::vector<std::vector<double>> by_job((n_columns + rows_at_once - 1) / rows_at_once);
        for_rows(n_columns, options_.n_threads, control, [&](std::size_t first, std::size_t last) {
            std::vector<double>& part = by_job[first / rows_at_once];
            part.assign(block.width, 0.0);
            block.add_square_weights(first, last, part);
        });
        std::vector<double> squares(block.width, 0.0);
        for (const std::vector<double>& part : by_job) {
            for (std::size_t l = 0; l < block.width; ++l) squares[l] += part[l];
        }
        return squares;
    }

    // The results of a block's lanes, with a certificate if any of them is to have one.
    void conclude(Block<T>& block, std::size_t n_certified, Control& control) {
        Certificate sums(block.width);
        if (block.lanes.front() < n_certified) {
            sums = certify(state_of(block), block.width, parts_.whole, visits_.size, options_.free_offsets, loops_of(block).certify,
                           options_.n_threads, control);
            sums.square = square_weights(block, control);
        }
        std::vector<double> violation = sums.violation;
        block.add_up(violation);
        // One gap for joined lanes, of which each has its share.
        std::vector<double> gap(block.width), dual_objective(block.width);
        for (std::size_t l = 0; l < block.width; ++l) {
            gap[l] = sums.duality_gap(l);
            dual_objective[l] = sums.dual_objective(l);
        }
        if (const std::size_t n_joined = options_.coupling.n_joined(); n_joined > 0) {
            for (std::vector<double>* values : {&gap, &dual_objective}) {
                block.add_up(*values);
                for (double& value : *values) value /= static_cast<double>(n_joined);
            }
        }
        for (std::size_t l = 0; l < block.lanes.size(); ++l) {
            LaneResult& result = results_[block.lanes[l]];
            result.n_sweeps = block.lane_sweeps[l];
            result.has_converged = !block.is_running(l);
            result.violation = block.relative_violation(l);
            if (block.lanes[l] >= n_certified) continue;
            result.violation = block.first_violation[l] > 0 ? violation[l] / block.first_violation[l] : 0.0;
            result.n_support = static_cast<std::size_t>(sums.support[l]);
            result.gap = gap[l];
            result.dual_objective = dual_objective[l];
            const std::size_t lane = block.lanes[l];
            certificate_.gap[lane] = sums.gap[l];
            certificate_.dual[lane] = sums.dual[l];
            certificate_.violation[lane] = sums.violation[l];
            certificate_.support[lane] = sums.support[l];
            for (std::size_t cut = 0; cut < n_cuts_; ++cut) {
                certificate_.positive[cut * n_certified + lane] = sums.positive[cut * block.width + l];
                certificate_.negative[cut * n_certified + lane] = sums.negative[cut * block.width + l];
            }
        }
    }

    const Parts<Rows>& parts_;
    Visits visits_;
    const T* row_weights_;
    std::size_t n_lanes_, n_cuts_;
    Options options_;
    std::size_t batch_;
    bool is_own_start_ = true;  // or else the weights belong to rows of others too, and cannot be found again
    Isa isa_;
    Buffer<T> square_norms_;
    double mean_square_norm_ = 1.0;
    std::deque<Group> groups_;
    std::vector<LaneResult> results_;
    Certificate certificate_;
};

}  // namespace rankplane
