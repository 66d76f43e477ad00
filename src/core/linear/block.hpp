// A block: up to 32 lanes that are swept together, and everything that is known about them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/parallel.hpp"
#include "linear/ordered.hpp"
#include "linear/soft.hpp"
#include "linear/sweep.hpp"
#include "linear/table.hpp"

namespace rankplane {

inline constexpr std::size_t max_width = block_widths[std::size(block_widths) - 1];

inline std::size_t width_for(std::size_t n_lanes) {
    for (const std::size_t width : block_widths) {
        if (n_lanes <= width) return width;
    }
    return max_width;
}

template <class T> class Block {
  public:
    std::vector<std::size_t> lanes;  // which of the solve's lanes these are
    std::size_t width = 0;
    std::size_t n_cuts = 0;
    std::size_t n_runs = 0;    // ever: how often demands were loaded
    std::size_t n_sweeps = 0;  // of this run
    bool has_soft = false;     // demands

    Buffer<T> weights;             // [column][lane]
    Buffer<T> offsets, centres;    // [cut][lane]
    Buffer<T> pushes;              // [cut][lane] what keeps ordered offsets in order: the multipliers of b_k >= b_{k+1}, times rho
    Buffer<T> duals;               // [visit][cut][lane]
    Buffer<T> demands;             // [table row][cut][field][lane]
    Buffer<std::uint8_t> bits;     // [visit], LaneBits of the width
    Buffer<std::uint32_t> order;   // the visits, in the order of the last sweep
    Buffer<std::uint32_t> active;  // those of them that it made; scratch between sweeps

    std::vector<T> shrink_beyond;                   // [lane]
    std::vector<double> first_violation;            // [lane]; negative before the first sweep
    std::vector<double> violation;                  // [lane] of the last sweep
    std::vector<double> violation_since_recentred;  // [lane] of the first sweep after offsets were moved
    std::vector<std::size_t> lane_sweeps, sweeps_since_recentred;
    std::vector<T> coupling, own_coupling;     // [lane][lane] and its diagonal, ones if lanes share nothing
    std::vector<std::uint32_t> groups, turns;  // lanes that are coupled; lanes that step together. Both as bits
    std::uint32_t running = 0;                 // one bit per lane
    std::uint32_t has_shrunk = 0;              // lanes that miss rows

    Block() = default;
    Block(std::vector<std::size_t> of_lanes, std::size_t n_columns, std::size_t cuts, const Visits& visits,
          const Coupling& coupled = {})
        : lanes(std::move(of_lanes)),
          width(width_for(lanes.size())),
          n_cuts(cuts),
          weights(n_columns * width),
          offsets(n_cuts * width),
          centres(n_cuts * width),
          pushes(n_cuts * width),
          duals(visits.size * n_cuts * width),
          bits(visits.size * bytes_per_visit()),
          order(visits.size, false),
          active(visits.size, false),
          shrink_beyond(width, infinity),
          first_violation(width, -1.0),
          violation(width, 0.0),
          violation_since_recentred(width, 0.0),
          lane_sweeps(width, 0),
          sweeps_since_recentred(width, 0) {
        couple(coupled);
    }

    bool is_coupled() const { return !coupling.empty(); }

    // Coupled lanes converge together: gives each the sum, or the largest, of its group.
    template <class Value> void add_up(std::vector<Value>& of_lanes) const {
        pool(of_lanes, [](Value a, Value b) { return a + b; });
    }
    template <class Value> void raise(std::vector<Value>& of_lanes) const {
        pool(of_lanes, [](Value a, Value b) { return std::max(a, b); });
    }
    // With the bits of all lanes that share a group with one of these.
    std::uint32_t with_groups(std::uint32_t lanes_of) const {
        std::uint32_t all = lanes_of;
        for (const std::uint32_t group : groups) all |= (lanes_of & group) != 0 ? group : 0;
        return all;
    }

    // Takes over new demands; weights and duals stay as they are. Frozen lanes are not to be swept.
    void load(const Table& table, const Visits& visits, const std::vector<bool>& frozen) {
        demands = Buffer<T>(table.n_rows * n_cuts * n_demand_fields * width);
        table_bits_.assign(table.n_rows, 0);
        running = 0;
        has_soft = false;
        for (std::size_t row = 0; row < table.n_rows; ++row) {
            for (std::size_t cut = 0; cut < n_cuts; ++cut) {
                T* to = demands.data() + (row * n_cuts + cut) * n_demand_fields * width;
                for (std::size_t l = 0; l < lanes.size(); ++l) {
                    for (std::size_t field = 0; field < n_demand_fields; ++field) {
                        to[field * width + l] = static_cast<T>(table.at(row, cut, lanes[l], field));
                    }
                    if (to[field_soft * width + l] > 0) {
                        to[field_soft * width + l] = static_cast<T>(2 * std::cosh(table.at(row, cut, lanes[l], field_e)));
                        has_soft = true;
                    }
                    if (to[field_lo * width + l] < to[field_hi * width + l]) table_bits_[row] |= 1u << l;
                }
            }
            running |= table_bits_[row];
        }
        for (std::size_t l = 0; l < lanes.size(); ++l) {
            if (frozen[lanes[l]]) running &= ~(1u << l);
        }
        retire(~running);
        activate(running, visits);
        ++n_runs;
        n_sweeps = 0;
        // A run's orders must not depend on how long this block's slowest lane took in earlier ones.
        std::iota(order.data(), order.data() + order.size(), 0u);
        lane_sweeps.assign(width, 0);
        sweeps_since_recentred.assign(width, 0);
    }

    // The lanes of which one of the visits [first, last) has a dual at a finite bound that is not zero, or a demand that is soft or
    // squared: of the others, wider bounds change nothing. One bit per lane.
    std::uint32_t touch_bounds(const Visits& visits, const T* row_weights, std::size_t n_rows, std::size_t first,
                               std::size_t last) const {
        const std::uint32_t all = ~0u >> (32 - lanes.size());
        std::uint32_t touches = 0;
        for (std::size_t visit = first; visit < last && touches != all; ++visit) {
            const T weight = row_weights == nullptr ? T(1) : row_weights[visit < n_rows ? visit : visit - n_rows];
            const std::size_t table_row = static_cast<std::size_t>(visits.table_rows[visit]);
            for (std::size_t cut = 0; cut < n_cuts; ++cut) {
                const T* demand = demands.data() + (table_row * n_cuts + cut) * n_demand_fields * width;
                const T* a = duals.data() + (visit * n_cuts + cut) * width;
                for (std::size_t l = 0; l < width; ++l) {
                    const T lo = weight * demand[field_lo * width + l], hi = weight * demand[field_hi * width + l];
                    const bool is_at_bound = (lo < 0 && a[l] <= lo) || (hi > 0 && a[l] >= hi) || demand[field_d * width + l] > 0 ||
                                             demand[field_soft * width + l] > 0;
                    touches |= static_cast<std::uint32_t>(is_at_bound) << l;
                }
            }
        }
        return touches;
    }

    // The dual objective of a lane's solution times s, once bounds are wider by `price` and D is divided by it, is  linear s + 1/2
    // square s^2  with the sums of these over all visits, and with `offset_square` and |w|^2 added to `square`. Of soft demands it
    // is the parabola with the right slopes at s = 1 and s = price; with a price of 1, the value at s = 1.
    struct Ray {
        double linear = 0, square = 0;
        Ray operator+(const Ray& other) const { return {linear + other.linear, square + other.square}; }
    };
    void add_rays(const Visits& visits, const T* row_weights, std::size_t n_rows, double price, std::size_t first, std::size_t last,
                  std::vector<Ray>& found) const {
        for (std::size_t visit = first; visit < last; ++visit) {
            const double weight =
                row_weights == nullptr ? 1.0 : static_cast<double>(row_weights[visit < n_rows ? visit : visit - n_rows]);
            const std::size_t table_row = static_cast<std::size_t>(visits.table_rows[visit]);
            for (std::size_t cut = 0; cut < n_cuts; ++cut) {
                const T* demand = demands.data() + (table_row * n_cuts + cut) * n_demand_fields * width;
                const T* a = duals.data() + (visit * n_cuts + cut) * width;
                for (std::size_t l = 0; l < width; ++l) {
                    if (demand[field_soft * width + l] > 0) {
                        add_soft_ray(demand + l, weight, price, static_cast<double>(a[l]), found[l]);
                        continue;
                    }
                    const T linear = demand[field_e * width + l] * std::fabs(a[l]) - demand[field_t * width + l] * a[l];
                    found[l].linear += static_cast<double>(linear);
                    found[l].square += static_cast<double>(demand[field_d * width + l] * a[l] * a[l]) / (weight * price);
                }
            }
        }
    }
    void add_soft_ray(const T* demand, double weight, double price, double a, Ray& found) const {
        const auto field = [&](DemandField of) { return static_cast<double>(demand[of * width]); };
        const SoftDemand now{weight * field(field_lo), weight * field(field_hi), field(field_e)};
        found.linear -= field(field_t) * a;
        if (price > 1) {
            const double at_one = SoftDemand{price * now.lo, price * now.hi, now.e}.residual(a);
            const double bend = (now.residual(a) - at_one) / (price - 1);
            found.linear += a * (at_one - bend);
            found.square += a * bend;
        } else {
            found.linear += now.cost(a);
        }
    }
    double offset_square(std::size_t l, double rho) const {
        double square = 0;
        for (std::size_t cut = 0; rho > 0 && cut < n_cuts; ++cut) {
            const double moved = static_cast<double>(offsets[cut * width + l] - centres[cut * width + l]);
            square += moved * moved / rho;
        }
        return square;
    }

    // What the centres of free offsets add to the dual objective: each times the sum of its duals.
    double centre_product(std::size_t l, double rho) const {
        double product = 0;
        for (std::size_t cut = 0; rho > 0 && cut < n_cuts; ++cut) {
            const double centre = static_cast<double>(centres[cut * width + l]);
            product += centre * (static_cast<double>(offsets[cut * width + l]) - centre) / rho;
        }
        return product;
    }

    // Adds |w|^2 of each lane on the columns [first, last), or its share of that of its group.
    void add_square_weights(std::size_t first, std::size_t last, std::vector<double>& found) const {
        for (std::size_t i = first * width; i < last * width; i += width) {
            for (std::size_t l = 0; l < width; ++l) {
                const double w = static_cast<double>(weights[i + l]);
                if (!is_coupled()) found[l] += w * w;
            }
            for (std::size_t g = 0; is_coupled() && g < groups.size(); ++g)
                add_square_of_group(weights.data() + i, groups[g], found);
        }
    }

    // Multiplies each lane's solution by a factor of its own.
    void scale(const std::vector<double>& factor_of_lane, std::size_t n_threads, Control& control) {
        constexpr std::size_t rows_per_job = std::size_t{1} << 14;
        std::vector<T> factors(width, T(1));
        std::copy(factor_of_lane.begin(), factor_of_lane.end(), factors.begin());
        for (Buffer<T>* values : {&weights, &offsets, &centres, &pushes, &duals}) {
            const std::size_t n_rows = values->size() / width;
            parallel_for((n_rows + rows_per_job - 1) / rows_per_job, n_threads, control, [&](std::size_t job) {
                const std::size_t last = std::min(n_rows, (job + 1) * rows_per_job) * width;
                for (std::size_t i = job * rows_per_job * width; i < last; i += width) {
                    for (std::size_t l = 0; l < width; ++l) (*values)[i + l] *= factors[l];
                }
            });
        }
    }

    // [cut][lane], of all lanes of the solve.
    void copy_offsets(T* to, std::size_t n_lanes) const {
        for (std::size_t cut = 0; cut < n_cuts; ++cut) {
            for (std::size_t l = 0; l < lanes.size(); ++l) to[cut * n_lanes + lanes[l]] = offsets[cut * width + l];
        }
    }

    // offsets: [cut][lane], duals: [visit][cut][lane] or null for zero, of all lanes of the solve. The centres follow from these.
    void start_from(const T* from_offsets, const T* from_duals, std::size_t n_lanes, double rho) {
        for (std::size_t cut = 0; cut < n_cuts; ++cut) {
            for (std::size_t l = 0; l < lanes.size(); ++l) offsets[cut * width + l] = from_offsets[cut * n_lanes + lanes[l]];
        }
        for (std::size_t i = 0; i < duals.size() / width; ++i) {
            for (std::size_t l = 0; l < lanes.size(); ++l) {
                duals[i * width + l] = from_duals == nullptr ? T(0) : from_duals[i * n_lanes + lanes[l]];
            }
        }
        if (rho > 0) place_centres(rho);
    }

    // Forgets all that these lanes have found.
    void begin_again(std::uint32_t which, const Visits& visits) {
        for (Buffer<T>* values : {&weights, &offsets, &centres, &pushes, &duals}) {
            for (std::size_t i = 0; i < values->size(); i += width) {
                for (std::size_t l = 0; l < width; ++l) (*values)[i + l] = (which >> l & 1) != 0 ? T(0) : (*values)[i + l];
            }
        }
        for (std::size_t l = 0; l < width; ++l) {
            if ((which >> l & 1) != 0) first_violation[l] = -1.0;
        }
        activate(which, visits);
    }

    // [visit][cut][lane], of all lanes of the solve.
    void copy_duals(T* to, std::size_t n_lanes) const {
        for (std::size_t i = 0; i < duals.size() / width; ++i) {
            for (std::size_t l = 0; l < lanes.size(); ++l) to[i * n_lanes + lanes[l]] = duals[i * width + l];
        }
    }

    bool is_running(std::size_t l) const { return (running >> l & 1) != 0; }

    // Brings back every row that demands something of these lanes.
    void activate(std::uint32_t which, const Visits& visits) {
        with_bits([&](auto* row_bits) {
            using Bits = std::remove_pointer_t<decltype(row_bits)>;
            for (std::size_t visit = 0; visit < visits.size; ++visit) {
                const std::uint32_t wanted = table_bits_[static_cast<std::size_t>(visits.table_rows[visit])] & which;
                row_bits[visit] = static_cast<Bits>(row_bits[visit] | wanted);
            }
        });
        for (std::size_t l = 0; l < width; ++l) {
            if ((which >> l & 1) != 0) shrink_beyond[l] = infinity;
        }
        has_shrunk &= ~which;
    }

    // A lane that has ended visits nothing more.
    void retire(std::uint32_t which) {
        with_bits([&](auto* row_bits) {
            using Bits = std::remove_pointer_t<decltype(row_bits)>;
            for (std::size_t visit = 0; visit < order.size(); ++visit)
                row_bits[visit] = static_cast<Bits>(row_bits[visit] & ~which);
        });
        running &= ~which;
    }

    // Free offsets: a proximal-point step. The penalty |b - centre|^2 / (2 rho) is centred on the offsets just found, which is the
    // multiplier step b += rho * sum a on the constraint that the duals of a cut sum to zero.
    void recentre(std::size_t l) {
        for (std::size_t cut = 0; cut < n_cuts; ++cut) {
            T& offset = offsets[cut * width + l];
            T& centre = centres[cut * width + l];
            const T move = offset - centre;
            centre = offset;
            offset += move;
        }
        sweeps_since_recentred[l] = 0;
    }

    // The explicit constraints on free offsets.
    void order_offsets(std::size_t l) { put_in_order(offsets.data() + l, pushes.data() + l, n_cuts, width); }

    // Whether the duals of every cut sum to zero, up to the tolerance. Measured against the duals of all cuts: where one side of a
    // cut has no rows, the duals of the other only ever approach zero.
    bool is_balanced(std::size_t l, const Visits& visits, double rho, double tol) const {
        double largest_sum = 0, size = 0;
        for (std::size_t cut = 0; cut < n_cuts; ++cut) {
            double sum = static_cast<double>(pushes[cut * width + l]) / rho;
            for (std::size_t visit = 0; visit < visits.size; ++visit) {
                const double a = static_cast<double>(duals[(visit * n_cuts + cut) * width + l]);
                sum += a;
                size += std::fabs(a);
            }
            largest_sum = std::max(largest_sum, std::fabs(sum));
        }
        return largest_sum <= tol * size;
    }

    // How many of some visits any lane still makes.
    std::size_t count_active(const std::uint32_t* from, std::size_t size) const {
        std::size_t n_active = 0;
        with_bits([&](const auto* row_bits) {
            for (std::size_t i = 0; i < size; ++i) n_active += row_bits[from[i]] != 0 ? 1 : 0;
        });
        return n_active;
    }
    // Copies them. Ends with the last of them, and so writes nothing behind it.
    void copy_active(const std::uint32_t* from, std::size_t n_active, std::uint32_t* to) const {
        with_bits([&](const auto* row_bits) {
            for (std::size_t n_copied = 0; n_copied < n_active; ++from) {
                to[n_copied] = *from;
                n_copied += row_bits[*from] != 0 ? 1 : 0;
            }
        });
    }

    double relative_violation(std::size_t l) const { return first_violation[l] > 0 ? violation[l] / first_violation[l] : 0.0; }

    // Splits the lanes that have ended off into a block of their own, and keeps the others in a narrower one.
    Block split_ended(std::size_t n_columns, const Visits& visits) {
        std::vector<std::size_t> still_running, ended;
        for (std::size_t l = 0; l < lanes.size(); ++l) (is_running(l) ? still_running : ended).push_back(l);
        Block rest = pick(ended, n_columns, visits);
        *this = pick(still_running, n_columns, visits);
        return rest;
    }

  private:
    void couple(const Coupling& coupled) {
        own_coupling.assign(width, T(1));
        turns.assign(1, ~0u);
        coupled_ = coupled;
        if (coupled.size == 0) return;
        const bool is_joined = coupled.values.empty();
        if (!is_joined) {
            coupling.assign(width * width, T(0));
            turns.assign(coupled.size, 0);
        }
        for (std::size_t first = 0; first < lanes.size(); first += coupled.size) {
            groups.push_back(0);
            for (std::size_t k = 0; k < coupled.size; ++k) {
                groups.back() |= 1u << (first + k);
                if (is_joined) continue;
                turns[k] |= 1u << (first + k);
                own_coupling[first + k] = static_cast<T>(coupled.at(k, k));
                for (std::size_t j = 0; j < coupled.size; ++j) {
                    coupling[(first + k) * width + first + j] = static_cast<T>(coupled.at(k, j));
                }
            }
        }
    }

    template <class Value, class Merge> void pool(std::vector<Value>& of_lanes, const Merge& merge) const {
        for (std::uint32_t group : groups) {
            const auto first = static_cast<std::size_t>(__builtin_ctz(group));
            Value whole = of_lanes[first];
            for (std::size_t k = 1; k < coupled_.size; ++k) whole = merge(whole, of_lanes[first + k]);
            std::fill_n(of_lanes.begin() + static_cast<std::ptrdiff_t>(first), coupled_.size, whole);
        }
    }

    void add_square_of_group(const T* w, std::uint32_t group, std::vector<double>& found) const {
        const auto first = static_cast<std::size_t>(__builtin_ctz(group)), last = first + coupled_.size;
        for (std::size_t l = first; l < last; ++l) {
            if (w[l] == 0) continue;
            double sum = 0;
            for (std::size_t k = first; k < last; ++k) sum += static_cast<double>(coupling[k * width + l] * w[k]);
            found[l] += static_cast<double>(w[l]) * sum;
        }
    }

    static constexpr T infinity = std::numeric_limits<T>::infinity();

    Coupling coupled_;
    std::vector<std::uint32_t> table_bits_;  // [table row] the lanes of which it demands anything

    // Of free offsets: b = centre + rho * sum a.
    void place_centres(double rho) {
        const std::size_t n_per_visit = n_cuts * width;
        std::vector<double> sums(n_per_visit, 0.0);
        for (std::size_t i = 0; i < duals.size(); ++i) sums[i % n_per_visit] += static_cast<double>(duals[i]);
        for (std::size_t i = 0; i < n_per_visit; ++i) {
            centres[i] = static_cast<T>(static_cast<double>(offsets[i]) - rho * sums[i]);
        }
    }

    std::size_t bytes_per_visit() const { return width <= 8 ? 1 : width == 16 ? 2 : 4; }

    template <class Function> void with_bits(Function&& function) const {
        auto* const bytes = const_cast<std::uint8_t*>(bits.data());
        switch (bytes_per_visit()) {
            case 1: return function(bytes);
            case 2: return function(reinterpret_cast<std::uint16_t*>(bytes));
            default: return function(reinterpret_cast<std::uint32_t*>(bytes));
        }
    }

    Block pick(const std::vector<std::size_t>& picks, std::size_t n_columns, const Visits& visits) {
        const auto regroup = [&](std::uint32_t old_bits) {
            std::uint32_t regrouped = 0;
            for (std::size_t k = 0; k < picks.size(); ++k) regrouped |= (old_bits >> picks[k] & 1) << k;
            return regrouped;
        };
        std::vector<std::size_t> picked_lanes;
        for (const std::size_t l : picks) picked_lanes.push_back(lanes[l]);
        Block to(std::move(picked_lanes), n_columns, n_cuts, visits, coupled_);
        to.demands = Buffer<T>(demands.size() / width * to.width);
        const std::pair<const Buffer<T>*, Buffer<T>*> moves[] = {{&weights, &to.weights}, {&offsets, &to.offsets},
                                                                 {&centres, &to.centres}, {&pushes, &to.pushes},
                                                                 {&duals, &to.duals},     {&demands, &to.demands}};
        for (const auto& [source, target] : moves) {
            for (std::size_t i = 0; i < source->size() / width; ++i) {
                for (std::size_t k = 0; k < picks.size(); ++k) (*target)[i * to.width + k] = (*source)[i * width + picks[k]];
            }
        }
        with_bits([&](const auto* old_bits) {
            to.with_bits([&](auto* new_bits) {
                using Bits = std::remove_pointer_t<decltype(new_bits)>;
                for (std::size_t visit = 0; visit < order.size(); ++visit)
                    new_bits[visit] = static_cast<Bits>(regroup(old_bits[visit]));
            });
        });
        to.n_sweeps = n_sweeps;
        to.has_soft = has_soft;
        to.n_runs = n_runs;
        std::copy(order.data(), order.data() + order.size(), to.order.data());
        to.running = regroup(running);
        to.has_shrunk = regroup(has_shrunk);
        for (const std::uint32_t old_bits : table_bits_) to.table_bits_.push_back(regroup(old_bits));
        for (std::size_t k = 0; k < picks.size(); ++k) {
            to.shrink_beyond[k] = shrink_beyond[picks[k]];
            to.first_violation[k] = first_violation[picks[k]];
            to.violation[k] = violation[picks[k]];
            to.violation_since_recentred[k] = violation_since_recentred[picks[k]];
            to.lane_sweeps[k] = lane_sweeps[picks[k]];
            to.sweeps_since_recentred[k] = sweeps_since_recentred[picks[k]];
        }
        return to;
    }
};

}  // namespace rankplane
