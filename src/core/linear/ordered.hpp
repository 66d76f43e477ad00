// Offsets in order.
#pragma once

#include <cstddef>
#include <vector>

namespace rankplane {

// The explicit constraints of Chu and Keerthi, b_k >= b_{k+1}. Their multipliers are duals like the others; for given others, the
// best ones take the offsets to the nearest that are in order, which are means over pools of neighbouring cuts. `pushes` says how
// far each was taken.
template <class T> void put_in_order(T* offsets, T* pushes, std::size_t n_cuts, std::size_t stride) {
    struct Pool {
        double sum;
        std::size_t n_cuts;
    };
    std::vector<Pool> pools;
    for (std::size_t cut = 0; cut < n_cuts; ++cut) {
        pools.push_back({static_cast<double>(offsets[cut * stride] - pushes[cut * stride]), 1});
        while (pools.size() > 1) {
            const Pool last = pools.back();
            Pool& before = pools[pools.size() - 2];
            if (before.sum * static_cast<double>(last.n_cuts) >= last.sum * static_cast<double>(before.n_cuts)) break;
            before = {before.sum + last.sum, before.n_cuts + last.n_cuts};
            pools.pop_back();
        }
    }
    std::size_t cut = 0;
    for (const Pool& pool : pools) {
        for (const std::size_t end = cut + pool.n_cuts; cut < end; ++cut) {
            T& offset = offsets[cut * stride];
            T& push = pushes[cut * stride];
            const T alone = offset - push;
            if (pool.n_cuts > 1) offset = static_cast<T>(pool.sum / static_cast<double>(pool.n_cuts));
            push = pool.n_cuts > 1 ? offset - alone : T(0);
            if (pool.n_cuts == 1) offset = alone;
        }
    }
}

}  // namespace rankplane
