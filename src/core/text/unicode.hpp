// UTF-8 and the properties of code points that tokenising needs.
//
// The properties come from the running Python, so that words and lower case agree with its `re` and `str.lower`, whatever its
// version of Unicode. For every code point, one table has the result of lower-casing and stripping accents together with the
// properties of that result, so that a character costs one load.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace rankplane::text {

inline constexpr std::uint32_t n_code_points = 0x110000;
inline constexpr std::uint32_t replacement_character = 0xFFFD;
inline constexpr std::uint32_t capital_sigma = 0x3A3, small_sigma = 0x3C3, final_sigma = 0x3C2;

struct Decoded {
    std::uint32_t code_point;
    std::uint32_t n_bytes;
};

// The code point at `text`. A byte that starts no well-formed sequence counts as one U+FFFD, so any bytes can be walked.
// Surrogates are let through: a Python str may hold them alone.
inline Decoded decode(const unsigned char* text, const unsigned char* end) {
    const std::uint32_t first = text[0];
    const auto is_tail = [&](std::ptrdiff_t i) { return end - text > i && (text[i] & 0xC0U) == 0x80U; };
    if (first < 0x80) return {first, 1};
    if (first >= 0xC2 && first < 0xE0 && is_tail(1)) return {(first & 0x1FU) << 6 | (text[1] & 0x3FU), 2};
    if (first >= 0xE0 && first < 0xF0 && is_tail(1) && is_tail(2)) {
        const std::uint32_t c = (first & 0x0FU) << 12 | (text[1] & 0x3FU) << 6 | (text[2] & 0x3FU);
        if (c >= 0x800) return {c, 3};
    }
    if (first >= 0xF0 && first < 0xF5 && is_tail(1) && is_tail(2) && is_tail(3)) {
        const std::uint32_t c = (first & 0x07U) << 18 | (text[1] & 0x3FU) << 12 | (text[2] & 0x3FU) << 6 | (text[3] & 0x3FU);
        if (c >= 0x10000 && c < n_code_points) return {c, 4};
    }
    return {replacement_character, 1};
}

// The code point that ends just before `at`; `at` must be past `begin`.
inline Decoded decode_before(const unsigned char* begin, const unsigned char* at) {
    for (std::ptrdiff_t n = 1; n <= 4 && at - n >= begin; ++n) {
        const Decoded found = decode(at - n, at);
        if (found.n_bytes == static_cast<std::uint32_t>(n) && (at[-n] & 0xC0U) != 0x80U) return found;
    }
    return {replacement_character, 1};
}

// Writes 1 to 4 bytes and returns how many.
inline std::uint32_t encode(std::uint32_t c, unsigned char* out) {
    const auto tail = [](std::uint32_t bits) { return static_cast<unsigned char>(0x80U | (bits & 0x3FU)); };
    if (c < 0x80) {
        out[0] = static_cast<unsigned char>(c);
        return 1;
    }
    if (c < 0x800) {
        out[0] = static_cast<unsigned char>(0xC0U | c >> 6);
        out[1] = tail(c);
        return 2;
    }
    if (c < 0x10000) {
        out[0] = static_cast<unsigned char>(0xE0U | c >> 12);
        out[1] = tail(c >> 6);
        out[2] = tail(c);
        return 3;
    }
    out[0] = static_cast<unsigned char>(0xF0U | c >> 18);
    out[1] = tail(c >> 12);
    out[2] = tail(c >> 6);
    out[3] = tail(c);
    return 4;
}

// Whether Python would decode these bytes as UTF-8; surrogates are allowed only on request.
inline bool is_utf8(const unsigned char* text, const unsigned char* end, bool passes_surrogates = false) {
    while (text < end) {
        const Decoded next = decode(text, end);
        if (next.code_point == replacement_character && next.n_bytes == 1) return false;
        if (!passes_surrogates && next.code_point >= 0xD800 && next.code_point < 0xE000) return false;
        text += next.n_bytes;
    }
    return true;
}

// Properties of a code point, as Python passes them in.
namespace property {
inline constexpr std::uint8_t word = 1, space = 2;
// For the final sigma: `cased` excludes ignorable code points, because the rule skips these first.
inline constexpr std::uint8_t cased = 4, ignorable = 8;
}  // namespace property

class CodePoints {
  public:
    // What a code point becomes. `code_point` holds it, or, when is_sequence, the place of its sequence.
    struct Entry {
        std::uint32_t bits;
        std::uint32_t code_point() const { return bits & 0x1FFFFFU; }
        bool is_word() const { return (bits & word_bit) != 0; }
        bool is_space() const { return (bits & space_bit) != 0; }
        bool is_sequence() const { return (bits & sequence_bit) != 0; }
    };

    // properties[c]: bits of namespace property. mapped[c]: what c becomes, or n_code_points + i for sequence i.
    CodePoints(const std::uint8_t* properties, const std::uint32_t* mapped,
               const std::vector<std::vector<std::uint32_t>>& sequences, bool lowers)
        : lowers_(lowers) {
        if (sequences.size() > n_code_points) throw std::invalid_argument("There are more sequences than code points.");
        const auto entry = [&](std::uint32_t c) {
            return (c & 0x1FFFFFU) | ((properties[c] & property::word) != 0 ? word_bit : 0U) |
                   ((properties[c] & property::space) != 0 ? space_bit : 0U);
        };
        std::map<std::vector<std::uint32_t>, std::uint16_t> known;
        for (std::uint32_t first = 0; first < n_code_points; first += page_size) {
            std::vector<std::uint32_t> page(page_size);
            for (std::uint32_t c = first; c < first + page_size; ++c) {
                const std::uint32_t to = mapped[c];
                if (to >= n_code_points + sequences.size()) throw std::invalid_argument("A code point maps out of range.");
                std::uint32_t bits = to < n_code_points ? entry(to) : (to - n_code_points) | sequence_bit;
                if ((properties[c] & property::cased) != 0) bits |= cased_bit;
                if ((properties[c] & property::ignorable) != 0) bits |= ignorable_bit;
                // Entries relative to their page would share pages between scripts; plain ones are one addition shorter.
                page[c - first] = bits;
            }
            const auto [place, is_new] = known.try_emplace(page, static_cast<std::uint16_t>(known.size()));
            if (is_new) pages_.insert(pages_.end(), page.begin(), page.end());
            page_of_.push_back(place->second);
        }
        for (const std::vector<std::uint32_t>& sequence : sequences) {
            if (sequence.size() > max_sequence) throw std::invalid_argument("A code point becomes too many.");
            std::vector<Entry> entries;
            for (const std::uint32_t c : sequence) entries.push_back({entry(std::min(c, n_code_points - 1))});
            sequences_.push_back(std::move(entries));
        }
    }

    // A ligature of 18 letters is the longest expansion there is.
    static constexpr std::size_t max_sequence = 64;

    Entry operator[](std::uint32_t c) const { return {pages_[std::size_t{page_of_[c / page_size]} * page_size + c % page_size]}; }
    const std::vector<Entry>& sequence(Entry entry) const { return sequences_[entry.code_point()]; }
    bool lowers() const { return lowers_; }

    // Python's rule for a capital sigma at `at`: final after a cased letter and not before one, skipping what is ignorable.
    bool is_final_sigma(const unsigned char* begin, const unsigned char* at, const unsigned char* end) const {
        bool follows_cased = false;
        for (const unsigned char* p = at; p > begin;) {
            const Decoded before = decode_before(begin, p);
            p -= before.n_bytes;
            const std::uint32_t bits = (*this)[before.code_point].bits;
            if ((bits & ignorable_bit) != 0) continue;
            follows_cased = (bits & cased_bit) != 0;
            break;
        }
        if (!follows_cased) return false;
        for (const unsigned char* p = at + 2; p < end;) {
            const Decoded after = decode(p, end);
            p += after.n_bytes;
            const std::uint32_t bits = (*this)[after.code_point].bits;
            if ((bits & ignorable_bit) != 0) continue;
            return (bits & cased_bit) == 0;
        }
        return true;
    }

  private:
    static constexpr std::uint32_t page_size = 256;
    static constexpr std::uint32_t word_bit = 1U << 21, space_bit = 1U << 22, cased_bit = 1U << 23, ignorable_bit = 1U << 24,
                                   sequence_bit = 1U << 25;

    std::vector<std::uint16_t> page_of_;
    std::vector<std::uint32_t> pages_;
    std::vector<std::vector<Entry>> sequences_;
    bool lowers_;
};

}  // namespace rankplane::text
