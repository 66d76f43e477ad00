// Splits a normalised document into tokens.
//
// Words are the runs of word characters that hold at least `min_length` of them, which is what the pattern \b\w\w+\b finds
// for 2; marks are single ASCII signs kept as tokens. The tokens of the other analyzers are n-grams of characters (characters.hpp).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/control.hpp"
#include "text/characters.hpp"
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

class Tokenizer {
  public:
    Tokenizer(const CodePoints& code_points, const TokenRules& rules)
        : code_points_(&code_points),
          rules_(rules),
          characters_(code_points, rules.analyzer == Analyzer::word_characters, rules.min_n, rules.max_n) {}

    // Whether a document's tokens come once each, with counts, instead of as often as they occur, in order.
    bool counts_tokens() const { return rules_.analyzer != Analyzer::word; }
    // How often each token of the last document occurs.
    const std::vector<std::uint32_t>& counts() const { return characters_.counts(); }

    // consume(text, spans) is called once or more with tokens; 8 bytes past the last one can be read.
    template <class Consume> void tokenize(std::string_view document, Control& control, const Consume& consume) {
        const auto* const begin = reinterpret_cast<const unsigned char*>(document.data());
        const unsigned char* const end = begin + document.size();
        if (counts_tokens()) {
            normalized_.assign({begin, begin, end, end}, *code_points_, rules_.marks);
            characters_.find(normalized_);
            consume(characters_.text(), characters_.spans());
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
    // Pieces fit into the first-level cache, and limit the scratch memory of a huge document.
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

    const CodePoints* code_points_;
    TokenRules rules_;
    Normalized normalized_;
    std::vector<Span> spans_;
    CharacterNgrams characters_;
};

}  // namespace rankplane::text
