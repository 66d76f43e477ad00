// The steps of a batch of rows. Included like pack_lanes.hpp, and after it.

template <class T, std::size_t Width> struct Violations {
    using B = Block<T, Width>;
    typename B::Pack sum[B::Count], largest[B::Count], shrink_beyond[B::Count];
};

// Which rows a batch consists of, and for which of them this thread writes down the result.
struct BatchSpan {
    const std::uint32_t* visits;
    std::size_t first, last, first_own, last_own, n_rows;
};

// The dual that a soft demand asks for at residual r, and how fast it grows with r. With u = exp(-|r|), the distance from the
// nearer end of [lo, hi] is h (2 u^2 + 2 cosh(e) u) / (1 + u^2 + 2 cosh(e) u): nothing cancels where it is small.
template <class B> struct SoftDual {
    using Pack = typename B::Pack;
    Pack value, slope;

    SoftDual(Pack lo, Pack hi, Pack soft, Pack r) {
        const Pack zero = {}, half = (hi - lo) * typename B::Value(0.5);
        const Pack u = exp_of_minus<B>(r < zero ? zero - r : r), square = u * u, bend = soft * u;
        const Pack inverse = 1 / (1 + square + bend);
        const Pack distance = half * (2 * square + bend) * inverse;
        value = r < zero ? lo + distance : hi - distance;
        slope = half * (4 * square + bend * (1 + square)) * inverse * inverse;
    }
};

// Replaces the step of soft demands. With A the curvature and z the score before the step, the step s solves
//
//     a + s = dual(t - z - A s),
//
// which lies between 0 and dual(t - z) - a: Newton's method from 0, halving that range where it would leave it. How far the dual is
// from what the score asks for, as a share of half the box, is the violation.
template <class T, std::size_t Width>
inline void soften(typename Block<T, Width>::Pack lo, typename Block<T, Width>::Pack hi, typename Block<T, Width>::Pack soft,
                   typename Block<T, Width>::Pack a, typename Block<T, Width>::Pack residual,
                   typename Block<T, Width>::Pack curvature, typename Block<T, Width>::Integers active,
                   typename Block<T, Width>::Pack& next, typename Block<T, Width>::Pack& violation) {
    using B = Block<T, Width>;
    using Pack = typename B::Pack;
    constexpr T share = sizeof(T) == 4 ? T(1e-3) : T(1e-6), rounding = sizeof(T) == 4 ? T(1e-7) : T(2e-16);
    constexpr int most_turns = 40;
    const Pack zero = {};
    const typename B::Integers is_soft = (soft > zero) & active;
    const Pack half = hi > lo ? (hi - lo) * T(0.5) : zero + 1;
    const Pack start = is_soft ? residual : zero;
    SoftDual<B> asked(lo, hi, soft, start);
    const Pack target = is_soft ? asked.value - a : zero;
    // The far end has not been looked at, and may be the answer: a little beyond it, so that steps to both ends can be refused.
    Pack low = smaller(zero, target * T(1.01)), high = larger(zero, target * T(1.01)), step = zero, excess = zero - target;
    typename B::Integers open = is_soft;
    for (int turn = 0; turn < most_turns; ++turn) {
        low = excess < zero ? step : low;
        high = excess > zero ? step : high;
        const Pack newton = step - excess / (1 + curvature * asked.slope);
        const Pack moved = newton > step ? newton - step : step - newton;
        const Pack enough = share * (newton < zero ? zero - newton : newton) + rounding * half;
        const typename B::Integers is_far = open & (moved > enough);
        const Pack inside = (newton <= low) | (newton >= high) ? (low + high) * T(0.5) : newton;
        step = open ? (is_far ? inside : larger(low, smaller(high, newton))) : step;
        open = is_far;
        if (B::fold(open) == 0) break;
        asked = SoftDual<B>(lo, hi, soft, start - curvature * step);
        excess = is_soft ? a + step - asked.value : zero;
    }
    next = is_soft ? larger(lo, smaller(hi, a + step)) : next;
    violation = is_soft ? (target < zero ? zero - target : target) / half : violation;
}

// Joined lanes: the duals of a row on all lanes of a group sum to zero, as they do where the loss is a largest score of several,
//
//     L(z) = max over k of M (D_k + z_k - z_y)         lo_k = -M     hi_k = M if k = y, else 0     t_k = -D_k
//
// (Crammer and Singer; Fathony et al.). The sum has a multiplier, the level. With it added to the scores, each lane's own step is
// its share of the exact joint step: all lanes have the same curvature A, and next_k = min(hi_k, a_k - (gradient_k + level) / A)
// sums to zero for one level. The sum is concave in -level, so Newton's method from below ends there after at most as many turns as
// lanes.
template <class T, std::size_t Width>
inline void add_levels(const SweepState<T>& state, const T* demand, const T* duals, T square_norm, T row_weight, std::uint32_t bits,
                       typename Block<T, Width>::Pack (&score)[Block<T, Width>::Count]) {
    using B = Block<T, Width>;
    const std::size_t n_joined = state.n_joined;
    const double sum_of_squares = static_cast<double>(square_norm) + static_cast<double>(state.rho);
    const double curvature = sum_of_squares > 1e-30 ? sum_of_squares : 1e-30;
    T scores[Width];
    double next[Width], hi[Width];
    for (std::size_t c = 0; c < B::Count; ++c) B::store(scores + c * B::N, score[c]);
    for (std::size_t first = 0; first + n_joined <= Width; first += n_joined) {
        if ((bits >> first & 1) == 0) continue;
        double sum = 0;
        for (std::size_t l = first; l < first + n_joined; ++l) {
            const double gradient = static_cast<double>(scores[l] + state.offsets[l] - demand[field_t * Width + l]);
            hi[l] = static_cast<double>(row_weight * demand[field_hi * Width + l]);
            next[l] = static_cast<double>(duals[l]) - gradient / curvature;
            sum += next[l];
        }
        double shift = -sum / static_cast<double>(n_joined);
        for (std::size_t turn = 0; turn < n_joined; ++turn) {
            double total = 0, n_free = 0;
            for (std::size_t l = first; l < first + n_joined; ++l) {
                const bool is_free = next[l] + shift < hi[l];
                total += is_free ? next[l] + shift : hi[l];
                n_free += is_free ? 1.0 : 0.0;
            }
            if (total >= 0 || n_free == 0) break;
            shift -= total / n_free;
        }
        for (std::size_t l = first; l < first + n_joined; ++l) scores[l] += static_cast<T>(-shift * curvature);
    }
    for (std::size_t c = 0; c < B::Count; ++c) score[c] = B::load(scores + c * B::N);
}

// All steps of a batch, row by row; only the offsets follow every step. `IsPlain` leaves out what hinge losses on planes that share
// nothing do not need: soft demands, the turns of coupled lanes, and the levels of joined ones.
template <class T, std::size_t Width, bool IsPlain>
__attribute__((always_inline)) inline void take_steps(const SweepState<T>& state, const BatchSpan& span,
                                                      Violations<T, Width>& violations) {
    using B = Block<T, Width>;
    using Pack = typename B::Pack;
    using Integers = typename B::Integers;
    constexpr std::size_t N = B::N, Count = B::Count;
    constexpr T smallest_curvature = T(1e-30);  // an empty row without offset: the step goes to the bound

    auto* const bits = static_cast<LaneBits<Width>*>(state.bits);
    const Integers lane_bit = B::lane_bit();
    const std::size_t n_cuts = state.n_cuts, row_bytes = sizeof(BatchRow<T>) + (1 + n_cuts) * Width * sizeof(T);
    const T rho = state.rho;
    const Pack zero = {};
    const bool is_whole = state.n_parts == 1;

    for (std::size_t i = span.first; i < span.last; ++i) {
        const std::uint32_t visit = span.visits[i];
        const bool is_own = i >= span.first_own && i < span.last_own;
        BatchRow<T> head;
        Pack score[Count], step[Count] = {};
        const T* duals;
        T* duals_to = state.duals + visit * n_cuts * Width;
        if (is_whole) {
            const std::size_t row = visit < span.n_rows ? visit : visit - span.n_rows;
            head = {state.square_norms[row], state.row_weights == nullptr ? T(1) : state.row_weights[row], state.table_rows[visit],
                    bits[visit]};
            for (std::size_t c = 0; c < Count; ++c) score[c] = B::load(state.scores + (i - span.first) * Width + c * N);
            duals = duals_to;
        } else {
            const char* from = state.batch_rows + (i - span.first) * row_bytes;
            __builtin_prefetch(from + 8 * row_bytes, 0, 3);
            __builtin_prefetch(from + 8 * row_bytes + 64, 0, 3);
            __builtin_memcpy(&head, from, sizeof head);
            const T* score_from = reinterpret_cast<const T*>(from + sizeof head);
            for (std::size_t c = 0; c < Count; ++c) score[c] = B::load(score_from + c * N);
            duals = score_from + Width;
        }
        const T square_norm = head.square_norm, row_weight = head.row_weight;
        const T* const demands = state.demands + static_cast<std::size_t>(head.table_row) * n_cuts * n_demand_fields * Width;

        if constexpr (!IsPlain) {
            if (state.coupling != nullptr) couple<T, Width, T>(state.coupling, score);
            if (state.n_joined > 0) add_levels<T, Width>(state, demands, duals, square_norm, row_weight, head.bits, score);
        }
        Integers active[Count], shrinks[Count];
        for (std::size_t c = 0; c < Count; ++c) {
            const auto group = static_cast<BitsOf<T>>(head.bits >> (c * N));
            active[c] = ((lane_bit & group) != 0) ? Integers{} - 1 : Integers{};
            shrinks[c] = active[c];
        }

        for (std::size_t at = 0; at < (IsPlain ? n_cuts : n_cuts * state.n_turns); ++at) {
            const std::size_t cut = IsPlain ? at : at % n_cuts, turn = IsPlain ? 0 : at / n_cuts;
            const T* const demand = demands + cut * n_demand_fields * Width;
            T* const offsets = state.offsets + cut * Width;
            T* const to = duals_to + cut * Width;
            [[maybe_unused]] T deltas[Width];
            for (std::size_t c = 0; c < Count; ++c) {
                const Pack lo = row_weight * B::load(demand + field_lo * Width + c * N);
                const Pack hi = row_weight * B::load(demand + field_hi * Width + c * N);
                const Pack t = B::load(demand + field_t * Width + c * N);
                const Pack e = B::load(demand + field_e * Width + c * N);
                const Pack d = B::load(demand + field_d * Width + c * N) / row_weight;
                const Pack a = B::load(duals + cut * Width + c * N);
                const Pack b = B::load(offsets + c * N);
                Integers moves = active[c];
                Pack norm = zero + square_norm;
                if constexpr (!IsPlain) {
                    moves &= ((lane_bit & static_cast<BitsOf<T>>(state.turns[turn] >> (c * N))) != 0) ? Integers{} - 1 : Integers{};
                    norm *= B::load(state.own_coupling + c * N);
                }

                // The next row waits for this offset, so the way from it to the next one is kept short: no division on it.
                const Pack without_offset = score[c] + d * a - t;
                const Pack curvature = larger(norm + rho + d, zero + smallest_curvature);
                const Pack inverse = 1 / curvature;
                const Pack gradient = without_offset + b;
                const Pack u = a - gradient * inverse;
                const Pack threshold = e * inverse;
                const Pack rest = larger(zero, u - threshold) + smaller(zero, u + threshold);
                Pack next = larger(lo, smaller(hi, rest));

                // One-sided derivatives: they differ by 2e at the kink a = 0 and agree everywhere else.
                const Pack up = gradient + (a < zero ? -e : e);
                const Pack down = gradient + (a > zero ? e : -e);
                const Pack can_rise = a < hi ? zero - up : zero;
                const Pack can_fall = a > lo ? down : zero;
                Pack violation = moves ? larger(zero, larger(can_rise, can_fall)) : zero;
                // Shrinking looks at the gradient itself; the projected one is zero just where a row is stuck at a bound.
                const auto stays_low = (a >= hi) | (up > violations.shrink_beyond[c]);
                const auto stays_high = (a <= lo) | (down < zero - violations.shrink_beyond[c]);
                Integers is_settled = (stays_low & stays_high) ? Integers{} - 1 : Integers{};

                if constexpr (!IsPlain) {
                    const Pack soft = B::load(demand + field_soft * Width + c * N);
                    soften<T, Width>(lo, hi, soft, a, zero - gradient, curvature, moves, next, violation);
                    is_settled = soft > zero ? Integers{} : is_settled;  // duals of soft demands never are
                    is_settled |= ~moves;
                }
                shrinks[c] &= is_settled;
                violations.sum[c] += violation;
                violations.largest[c] = larger(violations.largest[c], violation);
                const Pack delta = moves ? next - a : zero;
                // Lanes that moved in an earlier turn keep what they have become.
                if (is_own) B::store(to + c * N, moves ? next : (turn == 0 ? a : B::load(to + c * N)));
                B::store(offsets + c * N, b + rho * delta);
                step[c] += delta;
                if constexpr (!IsPlain) B::store(deltas + c * N, delta);
                if (IsPlain || state.coupling == nullptr) score[c] += square_norm * delta;
            }
            if constexpr (!IsPlain) {
                for (std::uint32_t left = state.coupling == nullptr ? 0 : state.turns[turn]; left != 0; left &= left - 1) {
                    const auto k = static_cast<std::size_t>(__builtin_ctz(left));
                    add_coupled<T, Width, T>(state.coupling, k, square_norm * deltas[k], score);
                }
            }
        }

        for (std::size_t c = 0; c < Count; ++c) B::store(state.steps + (i - span.first) * Width + c * N, step[c]);
        if (state.may_shrink) {
            LaneBits<Width> dropped = 0;
            for (std::size_t c = 0; c < Count; ++c) {
                dropped = static_cast<LaneBits<Width>>(dropped | (B::fold(shrinks[c] & lane_bit) << (c * N)));
            }
            if (is_own) bits[visit] = static_cast<LaneBits<Width>>(head.bits & ~static_cast<std::uint32_t>(dropped));
            *state.dropped |= dropped;
        }
    }
}

// Apart, so that the plain steps keep the registers to themselves.
template <class T, std::size_t Width>
__attribute__((noinline)) void take_special_steps(const SweepState<T>& state, const BatchSpan& span,
                                                  Violations<T, Width>& violations) {
    take_steps<T, Width, false>(state, span, violations);
}
