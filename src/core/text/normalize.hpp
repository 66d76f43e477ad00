// Turns a document into lower-case UTF-8 with a bit per byte that says whether the byte belongs to a word. Words are then runs of
// ones, found 64 bytes at a time without a branch per character. ASCII, the bulk of most texts, is processed in vector registers,
// other characters one by one by the table of code points.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "text/unicode.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rankplane::text {

// One bit per byte of a block of 64.
struct BlockMasks {
    std::uint64_t word, mark, beyond_ascii;
};

// ASCII signs that are tokens of their own.
struct Marks {
    static constexpr std::size_t max_signs = 4;
    unsigned char signs[max_signs] = {};
    std::size_t n_signs = 0;

    bool has(unsigned char c) const {
        for (std::size_t i = 0; i < n_signs; ++i) {
            if (signs[i] == c) return true;
        }
        return false;
    }
};

namespace detail {

inline bool is_ascii_word(unsigned char c) {
    const unsigned lower = c | 0x20U;
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

#if defined(__SSE2__)
inline __m128i in_range(__m128i bytes, char low, char high) {
    // Signed comparison: bytes beyond ASCII are negative and fall below every range.
    return _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8(static_cast<char>(low - 1))),
                         _mm_cmpgt_epi8(_mm_set1_epi8(static_cast<char>(high + 1)), bytes));
}
#endif

// Copies 64 bytes, in lower case if asked, and classifies them.
inline BlockMasks classify(const unsigned char* in, unsigned char* out, bool lowers, const Marks& marks) {
    BlockMasks masks{0, 0, 0};
#if defined(__SSE2__)
    const __m128i case_bit = _mm_set1_epi8(lowers ? 0x20 : 0);
    for (int part = 0; part < 4; ++part) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in) + part);
        const __m128i upper = in_range(bytes, 'A', 'Z');
        const __m128i cased = _mm_or_si128(bytes, _mm_and_si128(upper, case_bit));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + part, cased);
        const __m128i letter = _mm_or_si128(upper, in_range(bytes, 'a', 'z'));
        const __m128i word =
            _mm_or_si128(_mm_or_si128(letter, in_range(bytes, '0', '9')), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('_')));
        const auto bits = [&](__m128i flags) { return std::uint64_t{static_cast<std::uint16_t>(_mm_movemask_epi8(flags))}; };
        masks.word |= bits(word) << (16 * part);
        masks.beyond_ascii |= bits(bytes) << (16 * part);
        for (std::size_t i = 0; i < marks.n_signs; ++i) {
            masks.mark |= bits(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(marks.signs[i])))) << (16 * part);
        }
    }
#else
    for (int i = 0; i < 64; ++i) {
        const unsigned char c = in[i];
        out[i] = lowers && c >= 'A' && c <= 'Z' ? static_cast<unsigned char>(c | 0x20U) : c;
        masks.word |= std::uint64_t{is_ascii_word(c)} << i;
        masks.beyond_ascii |= std::uint64_t{c >= 0x80} << i;
        masks.mark |= std::uint64_t{marks.has(c)} << i;
    }
#endif
    return masks;
}

}  // namespace detail

// A part of a document that starts and ends between words.
struct Piece {
    const unsigned char *document_begin, *begin, *end, *document_end;
};

// A normalised piece. `text` may be read a little past its end: `padding` bytes follow it.
class Normalized {
  public:
    static constexpr std::size_t padding = 64;

    const unsigned char* text() const { return text_.data(); }
    std::size_t size() const { return size_; }
    const std::uint64_t* words() const { return words_.data(); }
    const std::uint64_t* marks() const { return marks_.data(); }
    std::size_t n_blocks() const { return (size_ + 63) / 64; }
    bool has_beyond_ascii() const { return has_beyond_ascii_; }

    // Normalises the piece [at, end) of a document; a capital sigma looks beyond the piece.
    void assign(const Piece& piece, const CodePoints& code_points, const Marks& marks) {
        const unsigned char* at = piece.begin;
        const unsigned char* const end = piece.end;
        size_ = 0;
        has_beyond_ascii_ = false;
        reserve(0);
        while (at < end) {
            const std::size_t n_left = static_cast<std::size_t>(end - at);
            reserve(n_left);
            const unsigned char* block = at;
            unsigned char tail[64];
            if (n_left < 64) {
                std::memset(tail, 0, sizeof tail);
                std::memcpy(tail, at, n_left);
                block = tail;
            }
            const BlockMasks masks = detail::classify(block, text_.data() + size_, code_points.lowers(), marks);
            const std::size_t n_ascii =
                std::min<std::size_t>(n_left, static_cast<std::size_t>(std::countr_zero(masks.beyond_ascii)));
            append(masks.word, masks.mark, n_ascii);
            at += n_ascii;
            // A single ASCII character between others, such as a digit in Chinese, is not worth a block.
            while (at < end && *at >= 0x80) at = append_code_point(piece, at, code_points, marks);
        }
        std::memset(text_.data() + size_, 0, padding);
        if (size_ % 64 != 0) {
            const std::uint64_t kept = (std::uint64_t{1} << (size_ % 64)) - 1;
            words_[size_ / 64] &= kept;
            marks_[size_ / 64] &= kept;
        }
    }

  private:
    // A code point becomes at most this many bytes.
    static constexpr std::size_t max_expansion = 4 * CodePoints::max_sequence;

    void reserve(std::size_t n_more) {
        const std::size_t needed = size_ + n_more + max_expansion + 2 * padding;
        if (text_.size() >= needed) return;
        text_.resize(needed + needed / 2);
        words_.resize(text_.size() / 64 + 2);
        marks_.resize(text_.size() / 64 + 2);
    }

    // The bits of the next n bytes, already in place. Bits from n on are overwritten by the next call.
    void append(std::uint64_t word, std::uint64_t mark, std::size_t n) {
        const std::size_t slot = size_ / 64, shift = size_ % 64;
        if (shift == 0) {
            words_[slot] = word;
            marks_[slot] = mark;
        } else {
            const std::uint64_t kept = (std::uint64_t{1} << shift) - 1;
            words_[slot] = (words_[slot] & kept) | word << shift;
            marks_[slot] = (marks_[slot] & kept) | mark << shift;
            words_[slot + 1] = word >> (64 - shift);
            marks_[slot + 1] = mark >> (64 - shift);
        }
        size_ += n;
    }

    void append_entry(CodePoints::Entry entry, const Marks& marks) {
        const std::uint32_t c = entry.code_point();
        const std::uint32_t n_bytes = encode(c, text_.data() + size_);
        // Without its width, a full-width sign is a mark like any other.
        const bool is_mark = c < 0x80 && marks.has(static_cast<unsigned char>(c));
        append(entry.is_word() ? ~std::uint64_t{0} : 0, is_mark ? 1 : 0, n_bytes);
        has_beyond_ascii_ |= n_bytes > 1;
    }

    const unsigned char* append_code_point(const Piece& piece, const unsigned char* at, const CodePoints& code_points,
                                           const Marks& marks) {
        const unsigned char* const end = piece.end;
        Decoded next = decode(at, end);
        if (next.code_point == capital_sigma && code_points.lowers() &&
            code_points.is_final_sigma(piece.document_begin, at, piece.document_end)) {
            next.code_point = final_sigma;
        }
        const CodePoints::Entry entry = code_points[next.code_point];
        if (entry.is_sequence()) {
            reserve(static_cast<std::size_t>(end - at));
            for (const CodePoints::Entry part : code_points.sequence(entry)) append_entry(part, marks);
        } else {
            append_entry(entry, marks);
        }
        if (size_ + static_cast<std::size_t>(end - at) + 2 * padding > text_.size()) reserve(static_cast<std::size_t>(end - at));
        return at + next.n_bytes;
    }

    std::vector<unsigned char> text_;
    std::vector<std::uint64_t> words_, marks_;
    std::size_t size_ = 0;
    bool has_beyond_ascii_ = false;
};

}  // namespace rankplane::text
