#include "isa/isa.hpp"

#include <stdexcept>

#include "common/rows.hpp"
#include "kernel/loops.hpp"

namespace rankplane {

#if defined(__x86_64__)
namespace avx2 {
template <class T, class Rows> LaneLoops<T, Rows> loops(std::size_t width);
template <class K> KernelLoops<K> kernel_loops_here();
}  // namespace avx2
namespace avx512 {
template <class T, class Rows> LaneLoops<T, Rows> loops(std::size_t width);
template <class K> KernelLoops<K> kernel_loops_here();
}  // namespace avx512
#endif
namespace portable {
template <class T, class Rows> LaneLoops<T, Rows> loops(std::size_t width);
template <class K> KernelLoops<K> kernel_loops_here();
}  // namespace portable

std::vector<Isa> supported_isas() {
    std::vector<Isa> isas;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    if (has_avx512) isas.push_back(Isa::avx512);
    if (has_avx2) isas.push_back(Isa::avx2);
#endif
    isas.push_back(Isa::portable);
    return isas;
}

const char* name_of(Isa isa) {
    switch (isa) {
        case Isa::avx512: return "avx512";
        case Isa::avx2: return "avx2";
        default: return "portable";
    }
}

Isa choose_isa(const std::string& name) {
    const std::vector<Isa> isas = supported_isas();
    if (name.empty()) return isas.front();
    std::string known;
    for (const Isa isa : isas) {
        if (name == name_of(isa)) return isa;
        known += known.empty() ? "" : ", ";
        known += name_of(isa);
    }
    throw std::invalid_argument("RANKPLANE_ISA must be one that this machine has: " + known + ". Got " + name + ".");
}

template <class T, class Rows> LaneLoops<T, Rows> lane_loops(Isa isa, std::size_t width) {
#if defined(__x86_64__)
    if (isa == Isa::avx512) return avx512::loops<T, Rows>(width);
    if (isa == Isa::avx2) return avx2::loops<T, Rows>(width);
#endif
    return portable::loops<T, Rows>(width);
}

template <class K> KernelLoops<K> kernel_loops(Isa isa) {
#if defined(__x86_64__)
    if (isa == Isa::avx512) return avx512::kernel_loops_here<K>();
    if (isa == Isa::avx2) return avx2::kernel_loops_here<K>();
#endif
    return portable::kernel_loops_here<K>();
}
template KernelLoops<float> kernel_loops(Isa);
template KernelLoops<double> kernel_loops(Isa);

#define RANKPLANE_INSTANTIATE(T)                                                     \
    template LaneLoops<T, SparseRows<T, std::int32_t>> lane_loops(Isa, std::size_t); \
    template LaneLoops<T, SparseRows<T, std::int64_t>> lane_loops(Isa, std::size_t); \
    template LaneLoops<T, DenseRows<T>> lane_loops(Isa, std::size_t);
RANKPLANE_INSTANTIATE(float)
RANKPLANE_INSTANTIATE(double)

}  // namespace rankplane
