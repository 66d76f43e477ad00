// The loops of kernel/loops.hpp, over SIMD packs of rows. Included once per instruction set right after sweep_lanes.hpp, in the
// same region and under the same rules.

using RowPack = Block<double, RANKPLANE_PACK_BYTES / sizeof(double)>;

// The largest of many fractions and its place. Fractions are compared by cross-multiplication, since divisions are slow.
struct Largest {
    using Pack = typename RowPack::Pack;
    Pack numerator = {}, denominator = Pack{} + 1.0;
    typename RowPack::Integers places = {};

    void update(Pack over, Pack under, typename RowPack::Integers at) {
        const auto is_larger = over * denominator > numerator * under;
        numerator = is_larger ? over : numerator;
        denominator = is_larger ? under : denominator;
        places = is_larger ? at : places;
    }
    Candidate best() const {
        Candidate found;
        for (std::size_t lane = 0; lane < RowPack::N; ++lane) {
            const double size = numerator[lane] / denominator[lane];
            const auto place = static_cast<std::size_t>(places[lane]);
            // Of ties, the first.
            if (size > found.size || (size == found.size && size > 0 && place < found.place)) found = {size, place};
        }
        return found;
    }
};

inline typename RowPack::Integers numbers_from_zero() {
    typename RowPack::Integers numbers{};
    for (std::size_t lane = 0; lane < RowPack::N; ++lane) numbers[lane] = static_cast<std::int64_t>(lane);
    return numbers;
}

// A pack of rows; those beyond the last are copies of it.
template <class From> inline typename RowPack::Pack rows_from(const From* from, std::size_t n_rows) {
    if (n_rows >= RowPack::N) return RowPack::widen(from);
    typename RowPack::Pack pack{};
    for (std::size_t lane = 0; lane < RowPack::N; ++lane) pack[lane] = static_cast<double>(from[lane < n_rows ? lane : n_rows - 1]);
    return pack;
}

template <class K, bool HasOneCut> Candidate move_and_look(const LaneView& view, const Move<K>& first, const Move<K>& second) {
    using Pack = typename RowPack::Pack;
    const std::size_t n_rows = view.n_rows, n_cuts = HasOneCut ? 1 : view.n_cuts;
    const auto numbers = numbers_from_zero();
    const Pack one = Pack{} + 1.0;
    Largest largest;
    for (std::size_t i = 0; i < n_rows; i += RowPack::N) {
        const std::size_t left = n_rows - i;
        const Pack s = rows_from(view.scores + i, left) + first.size * rows_from(first.kernel_row + i, left) +
                       second.size * rows_from(second.kernel_row + i, left);
        if (left >= RowPack::N) {
            RowPack::store(view.scores + i, s);
        } else {
            for (std::size_t lane = 0; lane < left; ++lane) view.scores[i + lane] = s[lane];
        }
        const Pack unit = rows_from(view.units + i, left);
        for (std::size_t cut = 0; cut < n_cuts; ++cut) {
            const std::size_t place = cut * n_rows + i;
            const Pack z = s + view.offsets[cut];
            const Pack violation = larger(rows_from(view.rise + place, left) - z, z - rows_from(view.fall + place, left));
            largest.update(unit * violation, one, numbers + static_cast<std::int64_t>(place));
        }
    }
    return largest.best();
}

template <class K, bool HasOneCut> Candidate look_for_partner(const LaneView& view, const Leader<K>& leader) {
    using Pack = typename RowPack::Pack;
    const std::size_t n_rows = view.n_rows, n_cuts = HasOneCut ? 1 : view.n_cuts;
    const auto numbers = numbers_from_zero();
    const double per_curvature = 1.0 / leader.curvature;
    const Pack zero = {};
    Largest largest;
    for (std::size_t i = 0; i < n_rows; i += RowPack::N) {
        const std::size_t left = n_rows - i;
        const Pack k = rows_from(leader.kernel_row + i, left);
        const Pack s = rows_from(view.scores + i, left) + leader.size * k;
        const Pack curvature = rows_from(view.curvature + i, left);
        for (std::size_t cut = 0; cut < n_cuts; ++cut) {
            const std::size_t place = cut * n_rows + i;
            const double rho = HasOneCut || cut == leader.cut ? leader.rho : 0.0;
            const Pack coupling = k + rho;
            const Pack rest = larger(curvature - coupling * coupling * per_curvature, 1e-6 * curvature);
            const Pack z = s + view.offsets[cut];
            const Pack violation =
                larger(zero, larger(rows_from(view.rise + place, left) - z, z - rows_from(view.fall + place, left)));
            largest.update(violation * violation, rest, numbers + static_cast<std::int64_t>(place));
        }
    }
    return largest.best();
}

template <class K> Candidate move_and_look_any(const LaneView& view, const Move<K>& first, const Move<K>& second) {
    return view.n_cuts == 1 ? move_and_look<K, true>(view, first, second) : move_and_look<K, false>(view, first, second);
}
template <class K> Candidate look_for_partner_any(const LaneView& view, const Leader<K>& leader) {
    return view.n_cuts == 1 ? look_for_partner<K, true>(view, leader) : look_for_partner<K, false>(view, leader);
}

// In tiles, so that parts of the kernel rows stay in the first-level cache while all lanes read them.
template <class K>
void spread(const K* const* kernel_rows, std::size_t n_steps, const double* const* steps, double* const* scores,
            std::size_t n_lanes, std::size_t first, std::size_t last) {
    using B = RowPack;
    using Pack = typename B::Pack;
    constexpr std::size_t N = B::N, packs = 4, tile_steps = 128;
    for (std::size_t step = 0; step < n_steps; step += tile_steps) {
        const std::size_t last_step = step + tile_steps < n_steps ? step + tile_steps : n_steps;
        std::size_t i = first;
        for (; i + packs * N <= last; i += packs * N) {
            for (std::size_t lane = 0; lane < n_lanes; ++lane) {
                Pack sums[packs];
                for (std::size_t p = 0; p < packs; ++p) sums[p] = B::load(scores[lane] + i + p * N);
                for (std::size_t k = step; k < last_step; ++k) {
                    const double size = steps[lane][k];
                    for (std::size_t p = 0; p < packs; ++p) sums[p] += size * B::widen(kernel_rows[k] + i + p * N);
                }
                for (std::size_t p = 0; p < packs; ++p) B::store(scores[lane] + i + p * N, sums[p]);
            }
        }
        for (; i < last; ++i) {
            for (std::size_t lane = 0; lane < n_lanes; ++lane) {
                double sum = scores[lane][i];
                for (std::size_t k = step; k < last_step; ++k) sum += steps[lane][k] * static_cast<double>(kernel_rows[k][i]);
                scores[lane][i] = sum;
            }
        }
    }
}

template <class K> KernelLoops<K> kernel_loops_here() {
    return {move_and_look_any<K>, look_for_partner_any<K>, spread<K>, certify<double, 1, ScoreRows>};
}
template KernelLoops<float> kernel_loops_here<float>();
template KernelLoops<double> kernel_loops_here<double>();
