// Options and results of a solve; how long work reports to its caller, and is stopped.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace rankplane {

// Planes that depend on each other. Lanes come in groups of `size`. Coupled planes share weights: those of lane k of a group are
// the sum over its lanes j of values[k * size + j] times what lane j has gathered. Joined planes have no such values: their duals
// of a row sum to zero. Without groups, `size` is zero.
struct Coupling {
    std::vector<double> values;
    std::size_t size = 0;

    std::size_t n_joined() const { return values.empty() ? size : 0; }
    double at(std::size_t k, std::size_t j) const { return values[k * size + j]; }
    // How much larger an eigenvalue of the matrix can be than an entry on its diagonal.
    double strength() const {
        double most = 1;
        for (std::size_t k = 0; !values.empty() && k < size; ++k) {
            double sum = 0;
            for (std::size_t j = 0; j < size; ++j) sum += std::abs(at(k, j));
            most = std::max(most, sum / at(k, k));
        }
        return most;
    }
};

struct Options {
    double tol = 0.1;
    std::size_t max_sweeps = 1000;
    bool shrinking = true;
    std::uint64_t seed = 0;
    std::size_t n_threads = 1;
    double rho = 1.0;           // how far an offset moves per unit of dual: 1 is a column of ones, 0 no offset
    bool free_offsets = false;  // offsets carry no penalty: rho is then the step of a proximal-point loop
    std::size_t batch = 0;      // rows scored at once; 0 leaves the choice to the solver
    Coupling coupling = {};
    bool ordered_offsets = false;  // free offsets that never rise from one cut to the next
};

struct LaneResult {
    std::size_t n_sweeps = 0;
    bool has_converged = false;
    double violation = 0;  // at the end, relative to the first sweep
    double dual_objective = 0;
    double gap = 0;
    std::size_t n_support = 0;
};

struct Report {
    std::size_t sweep = 0;
    std::size_t n_active_rows = 0;
    std::vector<std::size_t> lanes;
    std::vector<double> violations;  // per lane of `lanes`, relative to the first sweep
};

struct Stopped : std::exception {
    const char* what() const noexcept override { return "The work was stopped."; }
};

// Connects long work with its caller. Every loop of the work calls `should_stop` or `check` at least every few hundredths of a
// second. On the calling thread, such a call runs the callback of `listen`, which may check for signals, if the last run is long
// enough ago. So no extra thread is needed, and short work never runs the callback.
class Control {
  public:
    Control() = default;
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

    std::function<void(const Report&)> report;  // called after every sweep of a solver, by any thread

    // From now on, calls on this thread run `look` from time to time.
    void listen(std::function<void()> look) {
        look_ = std::move(look);
        listener_ = std::this_thread::get_id();
        next_look_ = Clock::now() + shortest_pause;
    }
    // For a thread that waits for others, whose calls do not run the callback.
    void look_if_due() {
        if (std::this_thread::get_id() != listener_) return;
        const Clock::time_point before = Clock::now();
        if (before < next_look_ || is_stopping()) return;
        look_();
        // The callback can take long, for example to get the GIL. It may take at most a twentieth of the time.
        const Clock::time_point after = Clock::now();
        next_look_ = after + std::clamp<Clock::duration>(20 * (after - before), shortest_pause, longest_pause);
    }
    static constexpr std::chrono::milliseconds shortest_pause{50}, longest_pause{500};

    void request_stop() { __atomic_store_n(&stop_, true, __ATOMIC_RELAXED); }
    bool should_stop() {
        look_if_due();
        return is_stopping();
    }
    void check() {
        if (should_stop()) throw Stopped();
    }
    // For loops that may use neither this class nor <atomic>.
    const bool* stop_flag() const { return &stop_; }

    void add_done(std::size_t n) { n_done_.fetch_add(n, std::memory_order_relaxed); }
    std::size_t n_done() const { return n_done_.load(std::memory_order_relaxed); }

  private:
    using Clock = std::chrono::steady_clock;

    bool is_stopping() const { return __atomic_load_n(&stop_, __ATOMIC_RELAXED); }

    bool stop_ = false;  // read and written with atomic builtins only
    std::atomic<std::size_t> n_done_{0};
    std::function<void()> look_;
    std::thread::id listener_;
    Clock::time_point next_look_;
};

}  // namespace rankplane
