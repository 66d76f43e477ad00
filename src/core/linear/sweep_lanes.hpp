// The sweep of sweep.hpp, over SIMD packs. Included once per instruction set (see isa.cpp), inside a namespace and a target
// region of its own, with RANKPLANE_PACK_BYTES set to the width of a register. No include guard, no other include, and nothing
// from the standard library that could be instantiated here: inline code from this file must never be linked elsewhere.

template <class T, std::size_t N> struct PackOf {
    typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
// A single lane rides in a pack of two. As a plain number the compiler would branch where it selects, and fuse other products with
// other sums than in the packs: a lane that ends up alone would no longer get the bits that it gets in company.
template <class T> struct PackOf<T, 1> : PackOf<T, 2> {};

template <class T> using BitsOf = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// `Count` packs of `N` lanes each are one block row. Sums, products and selections are the compiler's vector operators.
template <class T, std::size_t Width> struct Block {
    static constexpr std::size_t native = RANKPLANE_PACK_BYTES / sizeof(T);
    static constexpr std::size_t N = Width < native ? Width : native;
    static constexpr std::size_t Count = Width / N;
    using Pack = typename PackOf<T, N>::type;
    using Integers = typename PackOf<BitsOf<T>, N>::type;

    static Pack load(const T* from) { return widen(from); }
    template <class From> static Pack widen(const From* from) {
        if constexpr (N == 1) {
            return Pack{static_cast<T>(*from)};
        } else {
            typename PackOf<From, N>::type narrow;
            __builtin_memcpy(&narrow, from, sizeof narrow);
            return __builtin_convertvector(narrow, Pack);
        }
    }
    static void store(T* to, Pack pack) {
        if constexpr (N == 1) {
            *to = pack[0];
        } else {
            __builtin_memcpy(to, &pack, sizeof pack);
        }
    }

    static Integers lane_bit() {
        Integers bit{};
        for (std::size_t lane = 0; lane < N; ++lane) bit[lane] = BitsOf<T>{1} << lane;
        return bit;
    }
    // All lanes of a pack or-ed together, by way of memory: a wide store and a few word loads beat extracting lane after lane.
    static BitsOf<T> fold(Integers values) {
        std::uint64_t words[(sizeof values + 7) / 8] = {};
        __builtin_memcpy(words, &values, sizeof values);
        std::uint64_t folded = 0;
        for (const std::uint64_t word : words) folded |= word;
        if constexpr (sizeof(T) == 4) folded |= folded >> 32;
        return static_cast<BitsOf<T>>(folded);
    }
    static T sum(Pack pack) {
        T total = 0;
        for (std::size_t lane = 0; lane < N; ++lane) total += pack[lane];
        return total;
    }
    static bool any_nonzero(const Pack (&packs)[Count]) {
        Integers nonzero{};
        for (std::size_t c = 0; c < Count; ++c) nonzero |= (packs[c] != Pack{}) ? Integers{} - 1 : Integers{};
        return fold(nonzero) != 0;
    }
};

template <class Pack> inline Pack larger(Pack a, Pack b) {
    return a > b ? a : b;
}
template <class Pack> inline Pack smaller(Pack a, Pack b) {
    return a < b ? a : b;
}

// Ask for what a row that comes soon will need. Into the second level only: the first is too small to hold it until then, and its
// few outstanding misses are better left to the row at hand. Always inlined: GCC takes a function that only prefetches for one
// without effect and drops the call.
template <class T, std::size_t Width, class Row>
__attribute__((always_inline)) inline void prefetch_weights(const T* weights, const Row& row) {
    constexpr std::size_t line = 64 / sizeof(T);
    for (std::size_t q = 0; q < row.size; ++q) {
        const T* first = weights + row.column(q) * Width;
        for (std::size_t lane = 0; lane < Width; lane += line) __builtin_prefetch(first + lane, 0, 2);
    }
}

template <class Row> __attribute__((always_inline)) inline void prefetch_row(const Row& row) {
    constexpr std::size_t entries_per_line = 64 / sizeof(row.values[0]);
    for (std::size_t q = 0; q < row.size; q += entries_per_line) {
        __builtin_prefetch(row.column_bytes(q), 0, 2);
        __builtin_prefetch(row.values + q, 0, 2);
    }
}

template <class T, std::size_t Width, class Row>
inline void dot(const T* weights, const Row& row, typename Block<T, Width>::Pack (&sums)[Block<T, Width>::Count]) {
    using B = Block<T, Width>;
    typename B::Pack odd[B::Count] = {};
    for (std::size_t c = 0; c < B::Count; ++c) sums[c] = typename B::Pack{};
    std::size_t q = 0;
    for (; q + 1 < row.size; q += 2) {
        const T* w0 = weights + row.column(q) * Width;
        const T* w1 = weights + row.column(q + 1) * Width;
        const T x0 = row.value(q), x1 = row.value(q + 1);
        for (std::size_t c = 0; c < B::Count; ++c) {
            sums[c] += x0 * B::load(w0 + c * B::N);
            odd[c] += x1 * B::load(w1 + c * B::N);
        }
    }
    if (q < row.size) {
        const T* w0 = weights + row.column(q) * Width;
        for (std::size_t c = 0; c < B::Count; ++c) sums[c] += row.value(q) * B::load(w0 + c * B::N);
    }
    for (std::size_t c = 0; c < B::Count; ++c) sums[c] += odd[c];
}

// The same in double, for the certificate.
template <class T, std::size_t Width, class Row>
inline void dot_widened(const T* weights, const Row& row,
                        typename Block<double, Width>::Pack (&sums)[Block<double, Width>::Count]) {
    using B = Block<double, Width>;
    for (std::size_t c = 0; c < B::Count; ++c) sums[c] = typename B::Pack{};
    for (std::size_t q = 0; q < row.size; ++q) {
        const T* w = weights + row.column(q) * Width;
        const double x = static_cast<double>(row.value(q));
        for (std::size_t c = 0; c < B::Count; ++c) sums[c] += x * B::widen(w + c * B::N);
    }
}

template <class T, std::size_t Width, class Row>
inline void add_scaled(T* weights, const Row& row, const typename Block<T, Width>::Pack (&steps)[Block<T, Width>::Count]) {
    using B = Block<T, Width>;
    for (std::size_t q = 0; q < row.size; ++q) {
        T* w = weights + row.column(q) * Width;
        const T x = row.value(q);
        for (std::size_t c = 0; c < B::Count; ++c) B::store(w + c * B::N, B::load(w + c * B::N) + x * steps[c]);
    }
}

inline char* slot_of(const Exchange& exchange, std::size_t member, std::uint64_t number) {
    return exchange.slots + (member * Exchange::ring + number % Exchange::ring) * exchange.slot_bytes;
}

// Hand this member's part of the score of row `number` to the others.
template <class T, std::size_t Width>
inline void publish(const Exchange& exchange, std::uint64_t number,
                    const typename Block<T, Width>::Pack (&part)[Block<T, Width>::Count]) {
    char* slot = slot_of(exchange, exchange.member, number);
    __builtin_memcpy(slot + sizeof number, &part, sizeof part);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(slot), number, __ATOMIC_RELEASE);
}

// The whole score of row `number`. Returns false if the solve was abandoned.
template <class T, std::size_t Width>
inline bool collect(const Exchange& exchange, std::uint64_t number,
                    typename Block<T, Width>::Pack (&score)[Block<T, Width>::Count]) {
    using B = Block<T, Width>;
    for (std::size_t c = 0; c < B::Count; ++c) score[c] = typename B::Pack{};
    for (std::size_t member = 0; member < exchange.n_members; ++member) {
        const char* slot = slot_of(exchange, member, number);
        const auto* written = reinterpret_cast<const std::uint64_t*>(slot);
        for (std::size_t n_spins = 0; __atomic_load_n(written, __ATOMIC_ACQUIRE) != number; ++n_spins) {
            if (n_spins < 4096) continue;
            if (__atomic_load_n(exchange.stop, __ATOMIC_RELAXED)) return false;
            exchange.yield();
        }
        for (std::size_t c = 0; c < B::Count; ++c) score[c] += B::load(reinterpret_cast<const T*>(slot + sizeof number) + c * B::N);
    }
    return true;
}

template <class T, std::size_t Width, bool IsTogether, class Rows>
void sweep(const SweepState<T>& state, const Rows& rows, const std::uint32_t* visits, std::size_t n_visits) {
    using B = Block<T, Width>;
    using Pack = typename B::Pack;
    using Integers = typename B::Integers;
    constexpr std::size_t N = B::N, Count = B::Count;
    constexpr T smallest_curvature = T(1e-30);  // an empty row without offset: the step goes to the bound
    constexpr std::size_t rows_ahead = 6 + (IsTogether ? Exchange::max_delay : 0);
    constexpr std::size_t weights_ahead = 2 + (IsTogether ? Exchange::max_delay : 0);

    T* const weights = state.weights;
    auto* const bits = static_cast<LaneBits<Width>*>(state.bits);
    const Integers lane_bit = B::lane_bit();
    const std::size_t n_cuts = state.n_cuts;
    const T rho = state.rho;
    const Pack zero = {};

    Pack violation_sum[Count] = {}, violation_max[Count], shrink_beyond[Count];
    for (std::size_t c = 0; c < Count; ++c) {
        violation_max[c] = B::load(state.violation_max + c * N);
        shrink_beyond[c] = B::load(state.shrink_beyond + c * N);
    }

    const auto row_of = [&](std::uint32_t visit) { return visit < rows.n_rows ? visit : visit - rows.n_rows; };

    [[maybe_unused]] const Exchange& exchange = state.exchange;
    [[maybe_unused]] const std::uint64_t first_number = IsTogether ? *exchange.n_rows_done + 1 : 0;
    const auto hand_in = [&](std::size_t i) {
        Pack part[Count];
        dot<T, Width>(weights, rows[row_of(visits[i])], part);
        publish<T, Width>(exchange, first_number + i, part);
    };
    if constexpr (IsTogether) {
        for (std::size_t i = 0; i < exchange.delay && i < n_visits; ++i) hand_in(i);
        *exchange.n_rows_done += n_visits;
    }

    for (std::size_t i = 0; i < n_visits; ++i) {
        if constexpr (Rows::is_sparse) {
            if (i + rows_ahead < n_visits) {
                const std::uint32_t ahead = visits[i + rows_ahead];
                prefetch_row(rows[row_of(ahead)]);
                __builtin_prefetch(state.duals + ahead * n_cuts * Width, 0, 2);
                __builtin_prefetch(state.square_norms + row_of(ahead), 0, 2);
                __builtin_prefetch(state.table_rows + ahead, 0, 2);
            }
            if (i + weights_ahead < n_visits) prefetch_weights<T, Width>(weights, rows[row_of(visits[i + weights_ahead])]);
        }

        const std::uint32_t visit = visits[i];
        const std::size_t row_index = row_of(visit);
        const auto row = rows[row_index];
        const T square_norm = state.square_norms[row_index];
        const T row_weight = state.row_weights == nullptr ? T(1) : state.row_weights[row_index];
        const T* demand = state.demands + static_cast<std::size_t>(state.table_rows[visit]) * n_cuts * n_demand_fields * Width;
        T* duals = state.duals + visit * n_cuts * Width;

        Pack score[Count], step[Count] = {};
        if constexpr (IsTogether) {
            if (i + exchange.delay < n_visits) hand_in(i + exchange.delay);
            if (!collect<T, Width>(exchange, first_number + i, score)) return;
        } else {
            dot<T, Width>(weights, row, score);
        }

        Integers active[Count], shrinks[Count];
        for (std::size_t c = 0; c < Count; ++c) {
            const auto group = static_cast<BitsOf<T>>(bits[visit] >> (c * N));
            active[c] = ((lane_bit & group) != 0) ? Integers{} - 1 : Integers{};
            shrinks[c] = active[c];
        }

        for (std::size_t cut = 0; cut < n_cuts; ++cut, demand += n_demand_fields * Width, duals += Width) {
            T* offsets = state.offsets + cut * Width;
            for (std::size_t c = 0; c < Count; ++c) {
                const Pack lo = row_weight * B::load(demand + field_lo * Width + c * N);
                const Pack hi = row_weight * B::load(demand + field_hi * Width + c * N);
                const Pack t = B::load(demand + field_t * Width + c * N);
                const Pack e = B::load(demand + field_e * Width + c * N);
                const Pack d = B::load(demand + field_d * Width + c * N) / row_weight;
                const Pack a = B::load(duals + c * N);
                const Pack b = B::load(offsets + c * N);

                const Pack gradient = score[c] + b + d * a - t;
                // One-sided derivatives: they differ by 2e at the kink a = 0 and agree everywhere else.
                const Pack up = gradient + (a < zero ? -e : e);
                const Pack down = gradient + (a > zero ? e : -e);
                const Pack can_rise = a < hi ? zero - up : zero;
                const Pack can_fall = a > lo ? down : zero;
                const Pack violation = active[c] ? larger(zero, larger(can_rise, can_fall)) : zero;
                violation_sum[c] += violation;
                violation_max[c] = larger(violation_max[c], violation);
                // Shrinking looks at the gradient itself; the projected one is zero just where a row is stuck at a bound.
                const auto stays_low = (a >= hi) | (up > shrink_beyond[c]);
                const auto stays_high = (a <= lo) | (down < zero - shrink_beyond[c]);
                shrinks[c] = (stays_low & stays_high) ? shrinks[c] : Integers{};

                const Pack curvature = larger(square_norm + rho + d, zero + smallest_curvature);
                const Pack u = a - gradient / curvature;
                const Pack threshold = e / curvature;
                const Pack rest = larger(zero, u - threshold) + smaller(zero, u + threshold);
                const Pack next = larger(lo, smaller(hi, rest));
                const Pack delta = active[c] ? next - a : zero;

                B::store(duals + c * N, active[c] ? next : a);
                B::store(offsets + c * N, b + rho * delta);
                score[c] += square_norm * delta;
                step[c] += delta;
            }
        }

        if (B::any_nonzero(step)) add_scaled<T, Width>(weights, row, step);
        if (state.may_shrink) {
            LaneBits<Width> dropped = 0;
            for (std::size_t c = 0; c < Count; ++c) {
                dropped = static_cast<LaneBits<Width>>(dropped | (B::fold(shrinks[c] & lane_bit) << (c * N)));
            }
            bits[visit] = static_cast<LaneBits<Width>>(bits[visit] & ~dropped);
            *state.dropped |= dropped;
        }
    }

    for (std::size_t c = 0; c < Count; ++c) {
        B::store(state.violation_sum + c * N, B::load(state.violation_sum + c * N) + violation_sum[c]);
        B::store(state.violation_max + c * N, violation_max[c]);
    }
}

// Adds w . x of the picked rows to scores, [pick][lane].
template <class T, std::size_t Width, class Rows>
void add_scores(const T* weights, const Rows& rows, const std::uint32_t* picks, std::size_t n_picks, T* scores) {
    using B = Block<T, Width>;
    for (std::size_t i = 0; i < n_picks; ++i, scores += Width) {
        if constexpr (Rows::is_sparse) {
            if (i + 6 < n_picks) prefetch_row(rows[picks[i + 6]]);
            if (i + 2 < n_picks) prefetch_weights<T, Width>(weights, rows[picks[i + 2]]);
        }
        typename B::Pack sums[B::Count];
        dot<T, Width>(weights, rows[picks[i]], sums);
        for (std::size_t c = 0; c < B::Count; ++c) B::store(scores + c * B::N, B::load(scores + c * B::N) + sums[c]);
    }
}

// The certificate's terms, in double. With the loss as the conjugate of the dual's own terms,
//
//     L(z) = max over a in [lo, hi] of  a (t - z) - e |a| - 1/2 D a^2,
//
// the duality gap is a sum of terms L(z) + a z - t a + e |a| + 1/2 D a^2, none of them negative: nothing cancels.
template <class T, std::size_t Width, class Rows>
void certify(const SweepState<T>& state, const Rows& rows, std::size_t first_visit, std::size_t last_visit,
             const CertifyState& result) {
    using B = Block<double, Width>;
    using Pack = typename B::Pack;
    constexpr std::size_t N = B::N, Count = B::Count;
    const Pack zero = {};
    const std::size_t n_cuts = state.n_cuts;

    const Exchange& exchange = state.exchange;
    // Nothing changes between rows here, so members may run far ahead of each other.
    const std::size_t delay = exchange.n_members > 1 ? Exchange::ring / 2 - 1 : 0;
    const std::uint64_t first_number = exchange.n_members > 1 ? *exchange.n_rows_done + 1 : 0;
    const auto row_of = [&](std::size_t visit) { return visit < rows.n_rows ? visit : visit - rows.n_rows; };
    const auto hand_in = [&](std::size_t visit) {
        Pack part[Count];
        dot_widened<T, Width>(state.weights, rows[row_of(visit)], part);
        publish<double, Width>(exchange, first_number + (visit - first_visit), part);
    };
    if (exchange.n_members > 1) {
        for (std::size_t visit = first_visit; visit < first_visit + delay && visit < last_visit; ++visit) hand_in(visit);
        *exchange.n_rows_done += last_visit - first_visit;
    }
    Pack gap[Count], dual[Count], violation_sum[Count], repair[Count], support[Count];
    for (std::size_t c = 0; c < Count; ++c) {
        gap[c] = B::load(result.gap + c * N);
        dual[c] = B::load(result.dual + c * N);
        violation_sum[c] = B::load(result.violation_sum + c * N);
        repair[c] = B::load(result.repair + c * N);
        support[c] = B::load(result.support + c * N);
    }

    for (std::size_t visit = first_visit; visit < last_visit; ++visit) {
        const std::size_t row_index = row_of(visit);
        Pack score[Count];
        if (exchange.n_members > 1) {
            if (visit + delay + 1 < last_visit) prefetch_weights<T, Width>(state.weights, rows[row_of(visit + delay + 1)]);
            if (visit + delay < last_visit) hand_in(visit + delay);
            if (!collect<double, Width>(exchange, first_number + (visit - first_visit), score)) return;
        } else {
            if (Rows::is_sparse && visit + 2 < last_visit) prefetch_weights<T, Width>(state.weights, rows[row_of(visit + 2)]);
            dot_widened<T, Width>(state.weights, rows[row_index], score);
        }
        const double norm = __builtin_sqrt(static_cast<double>(state.square_norms[row_index]));
        const double row_weight = state.row_weights == nullptr ? 1.0 : static_cast<double>(state.row_weights[row_index]);
        const T* demand = state.demands + static_cast<std::size_t>(state.table_rows[visit]) * n_cuts * n_demand_fields * Width;
        const T* duals = state.duals + visit * n_cuts * Width;
        Pack is_support[Count] = {}, of_visit = {};

        for (std::size_t cut = 0; cut < n_cuts; ++cut, demand += n_demand_fields * Width, duals += Width) {
            for (std::size_t c = 0; c < Count; ++c) {
                const Pack lo = row_weight * B::widen(demand + field_lo * Width + c * N);
                const Pack hi = row_weight * B::widen(demand + field_hi * Width + c * N);
                const Pack t = B::widen(demand + field_t * Width + c * N);
                const Pack e = B::widen(demand + field_e * Width + c * N);
                const Pack d = B::widen(demand + field_d * Width + c * N) / row_weight;
                const Pack a = B::widen(duals + c * N);
                const Pack z = score[c] + B::widen(state.offsets + cut * Width + c * N);

                const Pack gradient = z + d * a - t;
                const Pack can_rise = a < hi ? zero - (gradient + (a < zero ? -e : e)) : zero;
                const Pack can_fall = a > lo ? gradient + (a > zero ? e : -e) : zero;
                const Pack violation = larger(zero, larger(can_rise, can_fall));
                violation_sum[c] += violation;
                of_visit += violation;
                is_support[c] = a != zero ? zero + 1.0 : is_support[c];

                const Pack shrink = a > zero ? B::load(result.positive_factor + cut * Width + c * N)
                                             : B::load(result.negative_factor + cut * Width + c * N);
                const Pack feasible = shrink * a;
                repair[c] += norm * (a > feasible ? a - feasible : feasible - a);

                const Pack residual = t - z;
                const Pack pull = larger(zero, residual - e) + smaller(zero, residual + e);
                const Pack bounded = larger(lo, smaller(hi, pull / (d > zero ? d : zero + 1.0)));
                const Pack best = d > zero ? bounded : (pull > zero ? hi : lo);
                const Pack loss = best * pull - 0.5 * d * best * best;
                const Pack magnitude = feasible < zero ? zero - feasible : feasible;
                const Pack own = e * magnitude - t * feasible + 0.5 * d * feasible * feasible;
                gap[c] += loss + feasible * z + own;
                dual[c] += feasible * score[c] + own;
            }
        }
        for (std::size_t c = 0; c < Count; ++c) support[c] += is_support[c];
        if (result.of_visit != nullptr) result.of_visit[visit] = B::sum(of_visit);
    }
    for (std::size_t c = 0; c < Count; ++c) {
        B::store(result.gap + c * N, gap[c]);
        B::store(result.dual + c * N, dual[c]);
        B::store(result.violation_sum + c * N, violation_sum[c]);
        B::store(result.repair + c * N, repair[c]);
        B::store(result.support + c * N, support[c]);
    }
}
