// Which loops serve which width. Included once per instruction set right after sweep_lanes.hpp, in the same region.

template <class T, std::size_t Width, class Rows> LaneLoops<T, Rows> loops_of_width() {
    return {sweep<T, Width, Rows>, add_scores<T, Width, Rows>, certify<T, Width, Rows>};
}

template <class T, class Rows> LaneLoops<T, Rows> loops(std::size_t width) {
    switch (width) {
        case 1: return loops_of_width<T, 1, Rows>();
        case 2: return loops_of_width<T, 2, Rows>();
        case 4: return loops_of_width<T, 4, Rows>();
        case 8: return loops_of_width<T, 8, Rows>();
        case 16: return loops_of_width<T, 16, Rows>();
        default: return loops_of_width<T, 32, Rows>();
    }
}

#define RANKPLANE_INSTANTIATE(T)                                                                           \
    template LaneLoops<T, SparseRows<T, std::int32_t>> loops<T, SparseRows<T, std::int32_t>>(std::size_t); \
    template LaneLoops<T, SparseRows<T, std::int64_t>> loops<T, SparseRows<T, std::int64_t>>(std::size_t); \
    template LaneLoops<T, DenseRows<T>> loops<T, DenseRows<T>>(std::size_t);
RANKPLANE_INSTANTIATE(float)
RANKPLANE_INSTANTIATE(double)
#undef RANKPLANE_INSTANTIATE
