// Sorts integers by some of their bits; what documents hold is too short for wide digits and too long for comparisons.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rankplane::text {

template <class T> class RadixSorter {
  public:
    // In the order of the bits from first_bit up to last_bit. Bits above must be zero; those below may decide or not.
    void sort(std::vector<T>& numbers, std::size_t first_bit, std::size_t last_bit) {
        const std::size_t n = numbers.size(), n_digits = (last_bit - first_bit + 7) / 8;
        // A pass has to clear and add up 256 counts.
        if (n < 48 * n_digits) {
            std::sort(numbers.begin(), numbers.end());
            return;
        }
        for (std::size_t digit = 0; digit < n_digits; ++digit) counts_[digit].fill(0);
        for (const T number : numbers) {
            for (std::size_t digit = 0; digit < n_digits; ++digit) ++counts_[digit][number >> (first_bit + 8 * digit) & 0xFFU];
        }
        other_.resize(n);
        for (std::size_t digit = 0; digit < n_digits; ++digit) {
            std::array<std::uint32_t, 256>& place = counts_[digit];
            std::uint32_t sum = 0;
            for (std::uint32_t& count : place) sum += std::exchange(count, sum);
            for (const T number : numbers) other_[place[number >> (first_bit + 8 * digit) & 0xFFU]++] = number;
            numbers.swap(other_);
        }
    }

  private:
    std::array<std::array<std::uint32_t, 256>, sizeof(T)> counts_;
    std::vector<T> other_;
};

}  // namespace rankplane::text
