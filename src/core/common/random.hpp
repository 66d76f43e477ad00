// A small local generator (splitmix64) and a shuffle. The standard library's distributions differ between vendors; these
// give the same order everywhere, so a seed means the same fit on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace rankplane {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    // Uniform in [0, bound), by the upper half of a 32 x 32 bit product.
    std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32); }

  private:
    std::uint64_t next() {
        std::uint64_t bits = (state_ += 0x9e3779b97f4a7c15ULL);
        bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
        bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
        return bits ^ (bits >> 31);
    }

    std::uint64_t state_;
};

// A seed for every sweep of a solve.
inline std::uint64_t mix(std::uint64_t seed, std::uint64_t sweep) {
    return seed * 0xd6e8feb86659fd93ULL + sweep * 0xa0761d6478bd642fULL;
}

inline void shuffle(std::uint32_t* items, std::size_t size, Random& random) {
    for (std::size_t i = size; i > 1; --i) { std::swap(items[i - 1], items[random.below(static_cast<std::uint32_t>(i))]); }
}

}  // namespace rankplane
