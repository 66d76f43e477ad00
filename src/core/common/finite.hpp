// Looking for NaN and infinity.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "common/control.hpp"
#include "common/parallel.hpp"

namespace rankplane {

// Whether any of the values has an exponent of all ones. By their bits, which the compiler turns into a SIMD loop.
template <class T> bool has_not_finite(const T* values, std::size_t size) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const T infinity = std::numeric_limits<T>::infinity();
    Bits exponent;
    std::memcpy(&exponent, &infinity, sizeof exponent);
    Bits found = 0;
    for (std::size_t i = 0; i < size; ++i) {
        Bits bits;
        std::memcpy(&bits, values + i, sizeof bits);
        found |= static_cast<Bits>((bits & exponent) == exponent);
    }
    return found != 0;
}

// The place of the first of them, or -1.
template <class T> std::ptrdiff_t first_not_finite(const T* values, std::size_t size, std::size_t n_threads, Control& control) {
    constexpr std::size_t at_once = std::size_t{1} << 18;
    const std::size_t n_jobs = (size + at_once - 1) / at_once;
    std::atomic<std::size_t> first_job{n_jobs};
    parallel_for(n_jobs, n_threads, control, [&](std::size_t job) {
        if (job >= first_job || !has_not_finite(values + job * at_once, std::min(at_once, size - job * at_once))) return;
        std::size_t before = first_job;
        while (job < before && !first_job.compare_exchange_weak(before, job)) {}
    });
    for (std::size_t i = first_job * at_once; i < size; ++i) {
        if (has_not_finite(values + i, 1)) return static_cast<std::ptrdiff_t>(i);
    }
    return -1;
}

}  // namespace rankplane
