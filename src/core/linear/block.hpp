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

#include "common/memory.hpp"
#include "linear/sweep.hpp"

namespace rankplane {

// Demands of every table row on every lane and cut, as the caller wrote them: [table row][cut][lane][field].
struct Table {
    const double* values = nullptr;
    std::size_t n_rows = 0;
    std::size_t n_cuts = 1;
    std::size_t n_lanes = 0;

    double at(std::size_t row, std::size_t cut, std::size_t lane, std::size_t field) const {
        return values[((row * n_cuts + cut) * n_lanes + lane) * n_demand_fields + field];
    }
};

// The visits of one sweep and the table row that each asks for. Borrowed.
struct Visits {
    const std::int32_t* table_rows = nullptr;
    std::size_t size = 0;
};

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

    Buffer<T> weights;                 // [column][lane]
    Buffer<T> offsets, centres;        // [cut][lane]
    Buffer<T> duals;                   // [visit][cut][lane]
    Buffer<T> demands;                 // [table row][cut][field][lane]
    Buffer<std::uint8_t> bits;         // [visit], LaneBits of the width
    std::vector<std::uint32_t> order;  // the visits, in the order of the last sweep

    std::vector<T> shrink_beyond;         // [lane]
    std::vector<double> first_violation;  // [lane]; negative before the first sweep
    std::vector<double> violation;        // [lane] of the last sweep
    std::vector<std::size_t> lane_sweeps, sweeps_since_recentred;
    std::uint32_t running = 0;     // one bit per lane
    std::uint32_t has_shrunk = 0;  // lanes that miss rows

    Block() = default;
    Block(std::vector<std::size_t> of_lanes, std::size_t n_columns, std::size_t cuts, const Visits& visits)
        : lanes(std::move(of_lanes)),
          width(width_for(lanes.size())),
          n_cuts(cuts),
          weights(n_columns * width),
          offsets(n_cuts * width),
          centres(n_cuts * width),
          duals(visits.size * n_cuts * width),
          bits(visits.size * bytes_per_visit()),
          order(visits.size),
          shrink_beyond(width, infinity),
          first_violation(width, -1.0),
          violation(width, 0.0),
          lane_sweeps(width, 0),
          sweeps_since_recentred(width, 0) {}

    // Takes over new demands; weights and duals stay as they are. Frozen lanes are not to be swept.
    void load(const Table& table, const Visits& visits, const std::vector<bool>& frozen) {
        demands = Buffer<T>(table.n_rows * n_cuts * n_demand_fields * width);
        table_bits_.assign(table.n_rows, 0);
        running = 0;
        for (std::size_t row = 0; row < table.n_rows; ++row) {
            for (std::size_t cut = 0; cut < n_cuts; ++cut) {
                T* to = demands.data() + (row * n_cuts + cut) * n_demand_fields * width;
                for (std::size_t l = 0; l < lanes.size(); ++l) {
                    for (std::size_t field = 0; field < n_demand_fields; ++field) {
                        to[field * width + l] = static_cast<T>(table.at(row, cut, lanes[l], field));
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
        std::iota(order.begin(), order.end(), 0u);
        lane_sweeps.assign(width, 0);
        sweeps_since_recentred.assign(width, 0);
    }

    // Whether any dual of a lane sits at a finite bound that is not zero: if none does, wider bounds change nothing.
    bool touches_bound(std::size_t l, const Visits& visits, const T* row_weights, std::size_t n_rows) const {
        for (std::size_t visit = 0; visit < visits.size; ++visit) {
            const T weight = row_weights == nullptr ? T(1) : row_weights[visit < n_rows ? visit : visit - n_rows];
            const std::size_t table_row = static_cast<std::size_t>(visits.table_rows[visit]);
            for (std::size_t cut = 0; cut < n_cuts; ++cut) {
                const T* demand = demands.data() + (table_row * n_cuts + cut) * n_demand_fields * width;
                const T lo = weight * demand[field_lo * width + l], hi = weight * demand[field_hi * width + l];
                const T a = duals[(visit * n_cuts + cut) * width + l];
                if ((lo < 0 && a <= lo) || (hi > 0 && a >= hi) || demand[field_d * width + l] > 0) return true;
            }
        }
        return false;
    }

    // The dual objective of a lane's solution times s, once D is divided by `price`, is  linear s + 1/2 square s^2  with these
    // sums, |w|^2 left out.
    struct Ray {
        double linear = 0, square = 0;
    };
    std::vector<Ray> rays(const Visits& visits, const T* row_weights, std::size_t n_rows, double rho, double price) const {
        std::vector<Ray> found(width);
        for (std::size_t visit = 0; visit < visits.size; ++visit) {
            const double weight =
                row_weights == nullptr ? 1.0 : static_cast<double>(row_weights[visit < n_rows ? visit : visit - n_rows]);
            const std::size_t table_row = static_cast<std::size_t>(visits.table_rows[visit]);
            for (std::size_t cut = 0; cut < n_cuts; ++cut) {
                const T* demand = demands.data() + (table_row * n_cuts + cut) * n_demand_fields * width;
                const T* a = duals.data() + (visit * n_cuts + cut) * width;
                for (std::size_t l = 0; l < width; ++l) {
                    const T linear = demand[field_e * width + l] * std::fabs(a[l]) - demand[field_t * width + l] * a[l];
                    found[l].linear += static_cast<double>(linear);
                    found[l].square += static_cast<double>(demand[field_d * width + l] * a[l] * a[l]) / (weight * price);
                }
            }
        }
        for (std::size_t i = 0; rho > 0 && i < offsets.size(); ++i) {
            const double offset = static_cast<double>(offsets[i] - centres[i]);
            found[i % width].square += offset * offset / rho;
        }
        return found;
    }

    // |w|^2 of each lane, on the columns that are here.
    std::vector<double> square_weights() const {
        std::vector<double> found(width, 0.0);
        for (std::size_t i = 0; i < weights.size(); i += width) {
            for (std::size_t l = 0; l < width; ++l) {
                const double w = static_cast<double>(weights[i + l]);
                found[l] += w * w;
            }
        }
        return found;
    }

    // Multiplies each lane's solution by a factor of its own.
    void scale(const std::vector<double>& factor_of_lane) {
        std::vector<T> factors(width, T(1));
        for (std::size_t l = 0; l < lanes.size(); ++l) factors[l] = static_cast<T>(factor_of_lane[lanes[l]]);
        for (Buffer<T>* values : {&weights, &offsets, &centres, &duals}) {
            for (std::size_t i = 0; i < values->size(); i += width) {
                for (std::size_t l = 0; l < width; ++l) (*values)[i + l] *= factors[l];
            }
        }
    }

    // [cut][lane], of all lanes of the solve.
    void copy_offsets(T* to, std::size_t n_lanes) const {
        for (std::size_t cut = 0; cut < n_cuts; ++cut) {
            for (std::size_t l = 0; l < lanes.size(); ++l) to[cut * n_lanes + lanes[l]] = offsets[cut * width + l];
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

    // Whether the duals of every cut sum to zero, up to the tolerance. Measured against the duals of all cuts: where one side of a
    // cut has no rows, the duals of the other only ever approach zero.
    bool is_balanced(std::size_t l, const Visits& visits, double tol) const {
        double largest_sum = 0, size = 0;
        for (std::size_t cut = 0; cut < n_cuts; ++cut) {
            double sum = 0;
            for (std::size_t visit = 0; visit < visits.size; ++visit) {
                const double a = static_cast<double>(duals[(visit * n_cuts + cut) * width + l]);
                sum += a;
                size += std::fabs(a);
            }
            largest_sum = std::max(largest_sum, std::fabs(sum));
        }
        return largest_sum <= tol * size;
    }

    // Those of the visits [first, last) of the order that any lane still makes.
    std::size_t active_visits(std::size_t first, std::size_t last, std::uint32_t* visits) {
        std::size_t n_active = 0;
        with_bits([&](const auto* row_bits) {
            for (std::size_t i = first; i < last; ++i) {
                visits[n_active] = order[i];
                n_active += row_bits[order[i]] != 0 ? 1 : 0;
            }
        });
        return n_active;
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
    static constexpr T infinity = std::numeric_limits<T>::infinity();

    std::vector<std::uint32_t> table_bits_;  // [table row] the lanes of which it demands anything

    std::size_t bytes_per_visit() const { return width <= 8 ? 1 : width == 16 ? 2 : 4; }

    template <class Function> void with_bits(Function&& function) {
        switch (bytes_per_visit()) {
            case 1: return function(bits.data());
            case 2: return function(reinterpret_cast<std::uint16_t*>(bits.data()));
            default: return function(reinterpret_cast<std::uint32_t*>(bits.data()));
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
        Block to(std::move(picked_lanes), n_columns, n_cuts, visits);
        to.demands = Buffer<T>(demands.size() / width * to.width);
        const std::pair<const Buffer<T>*, Buffer<T>*> moves[] = {{&weights, &to.weights},
                                                                 {&offsets, &to.offsets},
                                                                 {&centres, &to.centres},
                                                                 {&duals, &to.duals},
                                                                 {&demands, &to.demands}};
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
        to.n_runs = n_runs;
        to.order = order;
        to.running = regroup(running);
        to.has_shrunk = regroup(has_shrunk);
        for (const std::uint32_t old_bits : table_bits_) to.table_bits_.push_back(regroup(old_bits));
        for (std::size_t k = 0; k < picks.size(); ++k) {
            to.shrink_beyond[k] = shrink_beyond[picks[k]];
            to.first_violation[k] = first_violation[picks[k]];
            to.violation[k] = violation[picks[k]];
            to.lane_sweeps[k] = lane_sweeps[picks[k]];
            to.sweeps_since_recentred[k] = sweeps_since_recentred[picks[k]];
        }
        return to;
    }
};

}  // namespace rankplane
