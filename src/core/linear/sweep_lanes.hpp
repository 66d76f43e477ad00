// The sweep of sweep.hpp. Included like pack_lanes.hpp, and after step_lanes.hpp.

// How much a batch's steps have changed the scores of its own rows, on one part of the columns: what watch.hpp asks for. What may
// be rounding does not count.
template <class T, std::size_t Width, class Rows>
void compare_scores(const SweepState<T>& state, const Rows& rows, std::size_t part, const std::uint32_t* visits,
                    std::size_t n_visits) {
    using B = Block<T, Width>;
    using Pack = typename B::Pack;
    constexpr std::size_t N = B::N, Count = B::Count;
    constexpr T rounding = sizeof(T) == 4 ? T(2e-6) : T(4e-15);
    const Pack zero = {};
    Pack change[Count] = {}, own_change[Count] = {};
    for (std::size_t i = 0; i < n_visits; ++i) {
        const std::size_t row = visits[i] < rows.n_rows ? visits[i] : visits[i] - rows.n_rows;
        Pack step[Count], score[Count];
        for (std::size_t c = 0; c < Count; ++c) step[c] = B::load(state.steps + i * Width + c * N);
        if (!B::any_nonzero(step)) continue;
        dot<T, Width>(state.weights, rows[row], score);
        Pack moved[Count], own[Count], noise[Count];
        for (std::size_t c = 0; c < Count; ++c) {
            const Pack product = step[c] * score[c];
            noise[c] = rounding * larger(product, zero - product);
            moved[c] = score[c] - B::load(state.scores + (part * state.batch + i) * Width + c * N);
            own[c] = state.square_norms[row] * step[c];
        }
        if (state.coupling != nullptr) {
            couple<T, Width, T>(state.coupling, moved);
            couple<T, Width, T>(state.coupling, own);
        }
        for (std::size_t c = 0; c < Count; ++c) {
            change[c] += step[c] * moved[c] - noise[c];
            own_change[c] += step[c] * own[c];
        }
    }
    for (std::size_t c = 0; c < Count; ++c) {
        for (std::size_t lane = 0; lane < N && c * N + lane < Width; ++lane) {
            state.changes[part * Width + c * N + lane] += static_cast<double>(change[c][lane]);
            if (part == 0) state.own_changes[c * N + lane] += static_cast<double>(own_change[c][lane]);
        }
    }
}

// A sweep over batches of visits, each of which ends at one of `ends`:
//
//     score    every row of the batch, by the weights from before the batch; each thread on its own parts of the columns
//     collect  the parts of each score and what else its step needs; each thread for its share of the rows
//     step     all rows one after the other; only the offsets follow every step. Each thread does all of it, since it takes less
//              time than telling the others, and then all know all steps
//     add      the steps to the weights; each thread on its own parts of the columns
//
// A thread waits for the others before it collects and before it steps. With a single part there is nothing to collect, and with
// batches of one row this is the textbook's row by row.
template <class T, std::size_t Width, class Rows>
void sweep(const SweepState<T>& state, const Rows& whole, const Rows* parts, const std::uint32_t* visits, const std::uint32_t* ends,
           std::size_t n_batches) {
    using B = Block<T, Width>;
    using Pack = typename B::Pack;
    constexpr std::size_t N = B::N, Count = B::Count;
    constexpr std::size_t bounds_ahead = 16, rows_ahead = 6, weights_ahead = 2;

    T* const weights = state.weights;
    auto* const bits = static_cast<LaneBits<Width>*>(state.bits);
    const std::size_t n_cuts = state.n_cuts;
    const bool is_whole = state.n_parts == 1;
    const std::size_t row_bytes = sizeof(BatchRow<T>) + (1 + n_cuts) * Width * sizeof(T);

    Violations<T, Width> violations;
    for (std::size_t c = 0; c < Count; ++c) {
        violations.sum[c] = Pack{};
        violations.largest[c] = B::load(state.violation_max + c * N);
        violations.shrink_beyond[c] = B::load(state.shrink_beyond + c * N);
    }

    const std::size_t n_rows = parts[0].n_rows;
    const auto row_of = [&](std::uint32_t visit) { return visit < n_rows ? visit : visit - n_rows; };
    const auto prefetch_step = [&](std::uint32_t visit) {
        __builtin_prefetch(state.duals + visit * n_cuts * Width, 0, 2);
        __builtin_prefetch(state.square_norms + row_of(visit), 0, 2);
        __builtin_prefetch(state.table_rows + visit, 0, 2);
    };

    const std::size_t n_visits = ends[n_batches - 1];
    std::size_t first = state.first_visit;
    for (std::size_t k = 0; k < n_batches; first = ends[k++]) {
        const std::size_t last = ends[k];

        for (std::size_t p = state.member; p < state.n_parts; p += state.n_members) {
            const Rows& rows = parts[p];
            T* scores = state.scores + p * state.batch * Width;
            for (std::size_t i = first; i < last; ++i, scores += Width) {
                if constexpr (Rows::is_sparse) {
                    if (i + bounds_ahead < n_visits) rows.prefetch_bounds(row_of(visits[i + bounds_ahead]));
                    if (i + rows_ahead < n_visits) {
                        prefetch_row(rows[row_of(visits[i + rows_ahead])]);
                        if (is_whole) prefetch_step(visits[i + rows_ahead]);
                    }
                    if (i + weights_ahead < n_visits) {
                        prefetch_weights<T, Width>(weights, rows[row_of(visits[i + weights_ahead])]);
                    }
                }
                Pack score[Count];
                dot<T, Width>(weights, rows[row_of(visits[i])], score);
                for (std::size_t c = 0; c < Count; ++c) B::store(scores + c * N, score[c]);
            }
        }

        const std::size_t first_own = first + (last - first) * state.member / state.n_members;
        const std::size_t last_own = first + (last - first) * (state.member + 1) / state.n_members;
        if (!is_whole) {
            for (std::size_t i = first_own; i < last_own; ++i) prefetch_step(visits[i]);
            if (!state.meet(state.seat)) return;
            for (std::size_t i = first_own; i < last_own; ++i) {
                const std::uint32_t visit = visits[i];
                const std::size_t row = row_of(visit);
                const BatchRow<T> head = {state.square_norms[row], state.row_weights == nullptr ? T(1) : state.row_weights[row],
                                          state.table_rows[visit], bits[visit]};
                char* to = state.batch_rows + (i - first) * row_bytes;
                __builtin_memcpy(to, &head, sizeof head);
                T* score_to = reinterpret_cast<T*>(to + sizeof head);
                for (std::size_t c = 0; c < Count; ++c) {
                    Pack score = {};
                    for (std::size_t p = 0; p < state.n_parts; ++p) {
                        score += B::load(state.scores + (p * state.batch + (i - first)) * Width + c * N);
                    }
                    B::store(score_to + c * N, score);
                }
                __builtin_memcpy(score_to + Width, state.duals + visit * n_cuts * Width, n_cuts * Width * sizeof(T));
            }
            if (!state.meet(state.seat)) return;
        }

        const BatchSpan span = {visits, first, last, first_own, last_own, n_rows};
        if (state.is_plain) {
            take_steps<T, Width, true>(state, span, violations);
        } else {
            Violations<T, Width> apart = violations;
            take_special_steps<T, Width>(state, span, apart);
            violations = apart;
        }

        const auto add_steps = [&](const Rows& rows) {
            for (std::size_t i = first; i < last; ++i) {
                Pack step[Count];
                for (std::size_t c = 0; c < Count; ++c) step[c] = B::load(state.steps + (i - first) * Width + c * N);
                if (B::any_nonzero(step)) add_scaled<T, Width>(weights, rows[row_of(visits[i])], step);
            }
        };
        if (state.n_members == 1) add_steps(whole);  // the same sums, in fewer and longer runs
        for (std::size_t p = state.member; p < state.n_parts; p += state.n_members) {
            const Rows& rows = parts[p];
            if (state.n_members > 1) add_steps(rows);
            if (state.check_every > 0 && (state.first_batch + k) % state.check_every == 0) {
                compare_scores<T, Width>(state, rows, p, visits + first, last - first);
            }
        }
    }

    for (std::size_t c = 0; c < Count; ++c) {
        B::store(state.violation_sum + c * N, B::load(state.violation_sum + c * N) + violations.sum[c]);
        B::store(state.violation_max + c * N, violations.largest[c]);
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
