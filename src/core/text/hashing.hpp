// Columns without a vocabulary: the column of an n-gram is a hash of its text. The hash is MurmurHash3 (32 bits, seed 0) and the
// column its absolute value modulo the number of columns, as in scikit-learn's HashingVectorizer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "text/interner.hpp"

namespace rankplane::text {

inline std::uint32_t murmur3(const char* text, std::size_t size) {
    const auto rotate = [](std::uint32_t x, int n) { return x << n | x >> (32 - n); };
    const auto scramble = [&](std::uint32_t k) { return rotate(k * 0xCC9E2D51U, 15) * 0x1B873593U; };
    std::uint32_t hash = 0;
    std::size_t at = 0;
    for (; at + 4 <= size; at += 4) {
        const auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(text[at + i])} << (8 * i); };
        hash = rotate(hash ^ scramble(byte(0) | byte(1) | byte(2) | byte(3)), 13) * 5 + 0xE6546B64U;
    }
    std::uint32_t rest = 0;
    for (std::size_t i = size; i-- > at;) rest = rest << 8 | static_cast<unsigned char>(text[i]);
    hash ^= scramble(rest);
    hash ^= static_cast<std::uint32_t>(size);
    hash = (hash ^ hash >> 16) * 0x85EBCA6BU;
    hash = (hash ^ hash >> 13) * 0xC2B2AE35U;
    return hash ^ hash >> 16;
}

// The columns of a document's n-grams of min_n to max_n terms.
class HashedColumns {
  public:
    HashedColumns(const std::vector<std::string_view>& terms, std::size_t min_n, std::size_t max_n, unsigned n_bits)
        : terms_(&terms), min_n_(min_n), max_n_(max_n), n_bits_(n_bits) {}
    std::size_t n_columns() const { return std::size_t{1} << n_bits_; }

    // How many n-grams a document of n terms has.
    std::size_t count(std::size_t n) const {
        const std::size_t longest = std::min(max_n_, n);
        if (longest < min_n_) return 0;
        return ((n - min_n_ + 1) + (n - longest + 1)) * (longest - min_n_ + 1) / 2;
    }

    void collect(const std::uint32_t* ids, std::size_t n, std::vector<std::uint32_t>& columns) {
        columns.clear();
        for (std::size_t i = 0; i < n; ++i) {
            joined_.clear();
            for (std::size_t length = 1; length <= max_n_ && i + length <= n; ++length) {
                if (length > 1) joined_.push_back(' ');
                joined_.append((*terms_)[ids[i + length - 1]]);
                if (length >= min_n_) columns.push_back(column_of(joined_));
            }
        }
    }

    std::uint32_t of_term(std::uint32_t id) const { return id < terms_->size() ? column_of((*terms_)[id]) : none; }

  private:
    std::uint32_t column_of(std::string_view text) const {
        const std::uint32_t hash = murmur3(text.data(), text.size());
        const std::uint32_t size = hash >> 31 != 0 ? 0U - hash : hash;
        return size & static_cast<std::uint32_t>(n_columns() - 1);
    }

    const std::vector<std::string_view>* terms_;
    std::size_t min_n_, max_n_;
    unsigned n_bits_;
    std::string joined_;
};

}  // namespace rankplane::text
