// Included like pack_lanes.hpp, and after it.

// The certificate's terms, in double. With the loss as the conjugate of the dual's own terms,
//
//     L(z) = max over a in [lo, hi] of  a (t - z) - e |a| - 1/2 D a^2,
//
// the duality gap is a sum of terms L(z) + a z - t a + e |a| + 1/2 D a^2, none of them negative: nothing cancels.
//
// Those of soft demands come from soft.hpp, lane by lane.
template <class B> struct CertifiedTerms {
    typename B::Pack violation, loss, own;  // own: what the duals cost but for a z

    void soften(const double* soft, typename B::Pack lo, typename B::Pack hi, typename B::Pack e, typename B::Pack residual,
                typename B::Pack a, typename B::Pack feasible, typename B::Pack t) {
        for (std::size_t lane = 0; lane < B::N; ++lane) {
            if (!(soft[lane] > 0)) continue;
            const SoftDemand demand{lo[lane], hi[lane], e[lane]};
            violation[lane] = demand.violation(residual[lane], a[lane]);
            own[lane] = demand.cost(feasible[lane]) - t[lane] * feasible[lane];
            loss[lane] = demand.loss(residual[lane]);
        }
    }
};

// The level for which z = t - D is tight: the joint loss is then the sum of the lanes' own losses, and no term of the gap is
// negative.
template <class T, std::size_t Width>
inline void add_tight_levels(const SweepState<T>& state, const T* demand,
                             typename Block<double, Width>::Pack (&score)[Block<double, Width>::Count]) {
    using B = Block<double, Width>;
    double scores[Width];
    for (std::size_t c = 0; c < B::Count; ++c) B::store(scores + c * B::N, score[c]);
    for (std::size_t first = 0; first + state.n_joined <= Width; first += state.n_joined) {
        double level = 0;
        for (std::size_t l = first; l < first + state.n_joined; ++l) {
            const double z = scores[l] + static_cast<double>(state.offsets[l]);
            const double residual = static_cast<double>(demand[field_t * Width + l]) - z;
            level = l == first || residual < level ? residual : level;
        }
        for (std::size_t l = first; l < first + state.n_joined; ++l) scores[l] += level;
    }
    for (std::size_t c = 0; c < B::Count; ++c) score[c] = B::load(scores + c * B::N);
}

template <class T, std::size_t Width, class Rows>
void certify(const SweepState<T>& state, const Rows& rows, std::size_t first_visit, std::size_t last_visit,
             const CertifyState& result) {
    using B = Block<double, Width>;
    using Pack = typename B::Pack;
    constexpr std::size_t N = B::N, Count = B::Count;
    const Pack zero = {};
    const std::size_t n_cuts = state.n_cuts;

    const auto row_of = [&](std::size_t visit) { return visit < rows.n_rows ? visit : visit - rows.n_rows; };
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
        if (Rows::is_sparse && visit + 2 < last_visit) prefetch_weights<T, Width>(state.weights, rows[row_of(visit + 2)]);
        dot_widened<T, Width>(state.weights, rows[row_index], score);
        if (state.coupling != nullptr) couple<T, Width, double>(state.coupling, score);
        const double norm = __builtin_sqrt(static_cast<double>(state.square_norms[row_index]));
        const double row_weight = state.row_weights == nullptr ? 1.0 : static_cast<double>(state.row_weights[row_index]);
        const T* demand = state.demands + static_cast<std::size_t>(state.table_rows[visit]) * n_cuts * n_demand_fields * Width;
        const T* duals = state.duals + visit * n_cuts * Width;
        if (state.n_joined > 0) add_tight_levels<T, Width>(state, demand, score);
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
                CertifiedTerms<B> terms;
                terms.violation = larger(zero, larger(can_rise, can_fall));
                is_support[c] = a != zero ? zero + 1.0 : is_support[c];

                const Pack shrink = a > zero ? B::load(result.positive_factor + cut * Width + c * N)
                                             : B::load(result.negative_factor + cut * Width + c * N);
                const Pack feasible = shrink * a;
                repair[c] += norm * (a > feasible ? a - feasible : feasible - a);

                const Pack residual = t - z;
                const Pack pull = larger(zero, residual - e) + smaller(zero, residual + e);
                const Pack bounded = larger(lo, smaller(hi, pull / (d > zero ? d : zero + 1.0)));
                const Pack best = d > zero ? bounded : (pull > zero ? hi : lo);
                terms.loss = best * pull - 0.5 * d * best * best;
                const Pack magnitude = feasible < zero ? zero - feasible : feasible;
                terms.own = e * magnitude - t * feasible + 0.5 * d * feasible * feasible;
                if (!state.is_plain) {
                    double soft[N];
                    B::store(soft, B::widen(demand + field_soft * Width + c * N));
                    terms.soften(soft, lo, hi, e, residual, a, feasible, t);
                }
                violation_sum[c] += terms.violation;
                of_visit += terms.violation;
                gap[c] += larger(zero, terms.loss + feasible * z + terms.own);
                dual[c] += feasible * score[c] + terms.own;
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
