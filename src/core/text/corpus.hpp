// Documents as lists of token numbers.
//
// Every thread numbers the tokens it meets in an interner of its own, so tokenising shares nothing; the numbers are brought
// together afterwards, over the distinct tokens only. Which thread met what does not show in the result, because terms are
// numbered in alphabetical order in the end.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/parallel.hpp"
#include "text/interner.hpp"
#include "text/pages.hpp"
#include "text/tokenizer.hpp"

namespace rankplane::text {

// What a token can become besides a term: `none` stands between terms (an unknown word: no n-gram crosses it), `dropped` never
// was there (a stop word: its neighbours become neighbours).
inline constexpr std::uint32_t dropped = none - 1;

// A run of documents. `ids` are token numbers of interner `owner` until Corpus::rewrite makes them terms.
struct Block {
    std::size_t first_document = 0;
    std::size_t owner = 0;
    Pages<std::uint32_t> ids;
    std::vector<std::size_t> ends;  // of each document, in ids

    std::size_t n_documents() const { return ends.size(); }
    std::size_t begin_of(std::size_t document) const { return document == 0 ? 0 : ends[document - 1]; }
    void release() { ids = {}; }
};

// The same number for each distinct string of several interners.
struct Merged {
    Interner strings;
    std::vector<std::vector<std::uint32_t>> number_of;  // [owner][token]
};

class Corpus {
  public:
    Corpus(const CodePoints& code_points, const TokenRules& rules, std::size_t n_threads)
        : tokenizers_(std::max<std::size_t>(n_threads, 1), Tokenizer(code_points, rules)), interners_(tokenizers_.size()) {}

    // Blocks are what threads take, so more threads than blocks would find nothing to do.
    std::size_t n_workers() const { return std::min(interners_.size(), std::max<std::size_t>(blocks_.size(), 1)); }
    std::size_t n_documents() const { return n_documents_; }
    std::size_t n_tokens() const {
        std::size_t n = 0;
        for (const Block& block : blocks_) n += block.ids.size();
        return n;
    }
    std::vector<Block>& blocks() { return blocks_; }
    const std::vector<Block>& blocks() const { return blocks_; }
    const std::vector<Interner>& interners() const { return interners_; }

    void add(const std::vector<std::string_view>& documents, Control& control) {
        std::vector<std::size_t> firsts{0};
        std::size_t n_bytes = 0;
        for (std::size_t i = 0; i < documents.size(); ++i) {
            if (n_bytes >= block_bytes) {
                firsts.push_back(i);
                n_bytes = 0;
            }
            n_bytes += documents[i].size() + 16;
        }
        firsts.push_back(documents.size());
        const std::size_t n_old = blocks_.size();
        blocks_.resize(n_old + firsts.size() - 1);
        try {
            tokenize(documents, firsts, n_old, control);
        } catch (...) {
            blocks_.resize(n_old);
            throw;
        }
        n_documents_ += documents.size();
    }

    // Documents that were cut into tokens elsewhere: one after another in `tokens`, `ends[d]` after the last of document d.
    void add_tokens(const std::vector<std::string_view>& tokens, std::vector<std::size_t> ends) {
        Block block;
        block.first_document = n_documents_;
        std::vector<std::uint32_t> ids;
        ids.reserve(tokens.size());
        for (const std::string_view token : tokens) ids.push_back(interners_[0].intern(token));
        block.ids = {ids.data(), ids.size()};
        n_documents_ += ends.size();
        block.ends = std::move(ends);
        blocks_.push_back(std::move(block));
    }

    Merged merge(Control& control) const {
        Merged merged;
        merged.strings = interners_[0].copy();
        std::size_t n_strings = 0;
        for (const Interner& own : interners_) n_strings += own.size();
        merged.strings.reserve(n_strings);
        for (std::size_t owner = 0; owner < interners_.size(); ++owner) {
            const Interner& own = interners_[owner];
            std::vector<std::uint32_t> number_of(own.size());
            if (owner == 0) {
                std::iota(number_of.begin(), number_of.end(), 0U);
            } else {
                constexpr std::size_t n_at_once = std::size_t{1} << 16;
                for (std::size_t first = 0; first < own.size(); first += n_at_once) {
                    control.check();
                    merged.strings.intern_all(std::min(own.size() - first, n_at_once), number_of.data() + first,
                                              [&](std::size_t i) { return own[first + i]; });
                }
            }
            merged.number_of.push_back(std::move(number_of));
        }
        return merged;
    }

    // Makes tokens of the joined n-grams of min_n to max_n terms, for terms whose own text could be taken for a joint. The
    // terms are strings[term_of[owner][token]]. Slow, and rarely needed.
    void join_ngrams(const std::vector<std::vector<std::uint32_t>>& term_of, const Interner& strings, std::size_t min_n,
                     std::size_t max_n, Control& control) {
        Interner joined;
        std::vector<std::uint32_t> terms, ids;
        std::string text;
        for (Block& block : blocks_) {
            ids.clear();
            std::size_t begin = 0;
            for (std::size_t& end : block.ends) {
                control.check();
                terms.clear();
                for (std::size_t i = begin; i < end; ++i) {
                    const std::uint32_t term = term_of[block.owner][block.ids[i]];
                    if (term != dropped) terms.push_back(term);
                }
                for (std::size_t i = 0; i < terms.size(); ++i) {
                    text.clear();
                    for (std::size_t n = 1; n <= max_n && i + n <= terms.size(); ++n) {
                        if (n > 1) text.push_back(' ');
                        text.append(strings[terms[i + n - 1]]);
                        if (n >= min_n) ids.push_back(joined.intern(text));
                    }
                }
                begin = std::exchange(end, ids.size());
            }
            block.ids = {ids.data(), ids.size()};
            block.owner = 0;
        }
        interners_[0] = std::move(joined);
        for (std::size_t i = 1; i < interners_.size(); ++i) interners_[i] = Interner();
    }

    // Replaces each token by term_of[owner][token]. Runs of `none` become one.
    void rewrite(const std::vector<std::vector<std::uint32_t>>& term_of, Control& control) {
        parallel_for(blocks_.size(), n_workers(), control, [&](std::size_t b) {
            Block& block = blocks_[b];
            const std::uint32_t* const map = term_of[block.owner].data();
            std::uint32_t* const ids = block.ids.data();
            std::size_t from = 0, to = 0;
            for (std::size_t& end : block.ends) {
                std::uint32_t before = none;
                for (; from < end; ++from) {
                    const std::uint32_t term = map[ids[from]];
                    ids[to] = term;
                    const bool is_kept = term != dropped && (term & before) != none;
                    before = term == dropped ? before : term;
                    to += is_kept;
                }
                end = to;
            }
            block.ids.truncate(to);
        });
    }

  private:
    static constexpr std::size_t block_bytes = std::size_t{1} << 19;

    // Documents firsts[i] up to firsts[i + 1] become block n_old + i.
    void tokenize(const std::vector<std::string_view>& documents, const std::vector<std::size_t>& firsts, std::size_t n_old,
                  Control& control) {
        const std::size_t n_new = firsts.size() - 1, n_tokenizing = std::min(tokenizers_.size(), n_new);
        std::atomic<std::size_t> next{0};
        parallel_for(n_tokenizing, n_tokenizing, control, [&](std::size_t worker) {
            std::vector<std::uint32_t> ids;
            for (std::size_t i = next++; i < n_new; i = next++) {
                Block& block = blocks_[n_old + i];
                block.first_document = n_documents_ + firsts[i];
                block.owner = worker;
                block.ends.reserve(firsts[i + 1] - firsts[i]);
                ids.clear();
                for (std::size_t d = firsts[i]; d < firsts[i + 1]; ++d) {
                    control.check();
                    tokenizers_[worker].tokenize(documents[d], control, [&](const char* text, const std::vector<Span>& spans) {
                        intern(text, spans, interners_[worker], ids);
                    });
                    block.ends.push_back(ids.size());
                    control.add_done(1);
                }
                block.ids = {ids.data(), ids.size()};
            }
        });
    }

    static void intern(const char* text, const std::vector<Span>& spans, Interner& interner, std::vector<std::uint32_t>& ids) {
        // Far enough ahead to hide a miss of the second-level cache.
        constexpr std::size_t ahead = 8;
        Interner::Key keys[ahead];
        const std::size_t n = spans.size();
        const std::size_t n_before = ids.size();
        ids.resize(n_before + n);
        std::uint32_t* const out = ids.data() + n_before;
        for (std::size_t i = 0; i < n + ahead; ++i) {
            if (i >= ahead) out[i - ahead] = interner.intern(keys[i % ahead], text + spans[i - ahead].begin);
            if (i < n) {
                keys[i % ahead] = Interner::padded_key_of(text + spans[i].begin, spans[i].size);
                interner.prefetch(keys[i % ahead]);
            }
        }
    }

    std::vector<Tokenizer> tokenizers_;
    std::vector<Interner> interners_;
    std::vector<Block> blocks_;
    std::size_t n_documents_ = 0;
};

}  // namespace rankplane::text
