// Cuts a normalised document into tokens.
//
// Words are the runs of word characters that hold at least `min_length` of them, which is what the pattern \b\w\w+\b finds
// for 2; marks are single ASCII signs kept as tokens. The character analyzers follow scikit-learn: white space of two and more
// becomes one blank; `character` takes every n-gram of the text, `word_characters` those of each word between two blanks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/control.hpp"
#include "text/normalize.hpp"
#include "text/unicode.hpp"

namespace rankplane::text {

enum class Analyzer { word, character, word_characters };

struct TokenRules {
    Analyzer analyzer = Analyzer::word;
    std::size_t min_length = 1;  // of a word, in characters
    Marks marks;
    std::size_t min_n = 1, max_n = 1;  // of the character analyzers
};

struct Span {
    std::size_t begin, size;
};

class Tokenizer {
  public:
    Tokenizer(const CodePoints& code_points, const TokenRules& rules) : code_points_(&code_points), rules_(rules) {}

    // consume(text, spans) is called once or more with tokens in order; 8 bytes past the last one can be read.
    template <class Consume> void tokenize(std::string_view document, Control& control, const Consume& consume) {
        const auto* const begin = reinterpret_cast<const unsigned char*>(document.data());
        const unsigned char* const end = begin + document.size();
        if (rules_.analyzer != Analyzer::word) {
            normalized_.assign({begin, begin, end, end}, *code_points_, rules_.marks);
            spans_.clear();
            find_characters();
            consume(reinterpret_cast<const char*>(characters_.data()), spans_);
            return;
        }
        for (const unsigned char* at = begin; at < end;) {
            control.check();
            const unsigned char* const stop = piece_end(at, end);
            normalized_.assign({begin, at, stop, end}, *code_points_, rules_.marks);
            spans_.clear();
            find_words();
            consume(reinterpret_cast<const char*>(normalized_.text()), spans_);
            at = stop;
        }
    }

  private:
    // Pieces stay in the first-level caches and bound the scratch memory of a huge document.
    static constexpr std::ptrdiff_t piece_size = 1 << 14;

    // A blank is no part of a word, so tokens do not cross it.
    static const unsigned char* piece_end(const unsigned char* at, const unsigned char* end) {
        if (end - at <= piece_size) return end;
        const unsigned char* stop = at + piece_size;
        while (stop < end && *stop != ' ' && *stop != '\n') ++stop;
        return stop;
    }

    void find_words() {
        const std::uint64_t* const words = normalized_.words();
        const std::uint64_t* const marks = normalized_.marks();
        const std::size_t n_blocks = normalized_.n_blocks();
        const bool has_marks = rules_.marks.n_signs > 0;
        std::uint64_t carry = 0;
        std::size_t start = 0;
        bool is_inside = false;
        for (std::size_t block = 0; block < n_blocks; ++block) {
            const std::uint64_t word = words[block];
            const std::uint64_t mark = has_marks ? marks[block] : 0;
            std::uint64_t edges = (word ^ (word << 1 | carry)) | mark;
            carry = word >> 63;
            for (; edges != 0; edges &= edges - 1) {
                const auto bit = static_cast<std::size_t>(std::countr_zero(edges));
                const std::size_t at = block * 64 + bit;
                if (is_inside) add_word(start, at);
                const bool is_mark = (mark >> bit & 1U) != 0;
                if (is_mark) spans_.push_back({at, 1});
                is_inside = !is_inside && !is_mark;
                start = at;
            }
        }
        if (is_inside) add_word(start, normalized_.size());
    }

    void add_word(std::size_t begin, std::size_t end) {
        if (end - begin < rules_.min_length) return;
        if (rules_.min_length > 1 && normalized_.has_beyond_ascii() && !is_long_enough(begin, end)) return;
        spans_.push_back({begin, end - begin});
    }

    bool is_long_enough(std::size_t begin, std::size_t end) const {
        std::size_t n_characters = 0;
        for (std::size_t i = begin; i < end && n_characters < rules_.min_length; ++i) {
            n_characters += (normalized_.text()[i] & 0xC0U) != 0x80U;
        }
        return n_characters >= rules_.min_length;
    }

    void find_characters() {
        gather_characters();
        const std::size_t n_characters = starts_.size() - 1;
        if (rules_.analyzer == Analyzer::character) {
            add_ngrams(0, n_characters, false);
        } else {
            // characters_ holds " one two ": words share the blank between them.
            std::size_t first = 0;
            for (std::size_t i = 1; i < n_characters; ++i) {
                if (!is_blank_[i]) continue;
                add_ngrams(first, i + 1, true);
                first = i;
            }
        }
    }

    void add_ngrams(std::size_t first, std::size_t last, bool is_word) {
        for (std::size_t n = rules_.min_n; n <= rules_.max_n; ++n) {
            if (last - first < n) {
                // A word shorter than n counts once, whole.
                if (is_word) spans_.push_back({starts_[first], starts_[last] - starts_[first]});
                break;
            }
            for (std::size_t i = first; i + n <= last; ++i) spans_.push_back({starts_[i], starts_[i + n] - starts_[i]});
            if (is_word && last - first == n) break;
        }
    }

    // The characters of the text with its white space made regular, and where each starts.
    void gather_characters() {
        const bool is_split = rules_.analyzer == Analyzer::word_characters;
        characters_.clear();
        starts_.clear();
        is_blank_.clear();
        const auto add = [&](const unsigned char* bytes, std::size_t n_bytes, bool is_blank) {
            starts_.push_back(characters_.size());
            characters_.insert(characters_.end(), bytes, bytes + n_bytes);
            is_blank_.push_back(is_blank);
        };
        const unsigned char blank = ' ';
        const unsigned char* at = normalized_.text();
        const unsigned char* const end = at + normalized_.size();
        if (is_split) add(&blank, 1, true);
        while (at < end) {
            const Decoded next = decode(at, end);
            if (!is_space(next.code_point)) {
                add(at, next.n_bytes, false);
                at += next.n_bytes;
                continue;
            }
            const unsigned char* stop = at;
            std::size_t n_spaces = 0;
            for (Decoded space = next; is_space(space.code_point); ++n_spaces) {
                stop += space.n_bytes;
                if (stop == end) {
                    ++n_spaces;
                    break;
                }
                space = decode(stop, end);
            }
            if (is_split) {
                if (!is_blank_.back()) add(&blank, 1, true);
            } else if (n_spaces > 1) {
                add(&blank, 1, true);
            } else {
                add(at, next.n_bytes, true);
            }
            at = stop;
        }
        if (is_split && !is_blank_.back()) add(&blank, 1, true);
        starts_.push_back(characters_.size());
        characters_.resize(characters_.size() + Normalized::padding);
    }

    bool is_space(std::uint32_t code_point) const {
        const CodePoints::Entry entry = (*code_points_)[code_point];
        return entry.is_space() && !entry.is_sequence();
    }

    const CodePoints* code_points_;
    TokenRules rules_;
    Normalized normalized_;
    std::vector<Span> spans_;
    std::vector<unsigned char> characters_;
    std::vector<std::size_t> starts_;
    std::vector<bool> is_blank_;
};

}  // namespace rankplane::text
