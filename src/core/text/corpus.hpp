// Documents as lists of token numbers.
//
// Every thread numbers the tokens it meets in an interner of its own, so tokenising shares nothing; the numbers are brought
// together afterwards, over the distinct tokens only (merged.hpp). Which thread met what does not show in the result, because terms
// are numbered in alphabetical order in the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/parallel.hpp"
#include "common/sharing.hpp"
#include "text/interner.hpp"
#include "text/merged.hpp"
#include "text/pages.hpp"
#include "text/reading.hpp"
#include "text/tokenizer.hpp"

namespace rankplane::text {

// How often a token occurs in a document. What is more goes on with another entry of the same token.
using Count = std::uint16_t;

// A run of documents. `ids` are token numbers of interner `owner` until Corpus::rewrite makes them terms. They are in the order of
// the text, each as often as it occurs; or, if there are `counts`, each once, in no particular order.
struct Block {
    std::size_t first_document = 0;
    std::size_t owner = 0;
    Pages<std::uint32_t> ids;
    Pages<Count> counts;
    std::vector<std::size_t> ends;  // of each document, in ids

    std::size_t n_documents() const { return ends.size(); }
    std::size_t begin_of(std::size_t document) const { return document == 0 ? 0 : ends[document - 1]; }
    bool is_counted() const { return counts.size() > 0; }
    std::size_t count(std::size_t i) const { return is_counted() ? counts[i] : 1; }
    void release() {
        ids = {};
        counts = {};
    }
};

class Corpus {
  public:
    Corpus(const CodePoints& code_points, const TokenRules& rules, std::size_t n_threads) {
        for (std::size_t i = 0; i < std::max<std::size_t>(n_threads, 1); ++i) readers_.emplace_back(code_points, rules);
    }

    // Blocks are what threads take, so more threads than blocks would find nothing to do.
    std::size_t n_workers() const { return std::min(readers_.size(), std::max<std::size_t>(blocks_.size(), 1)); }
    std::size_t n_threads() const { return readers_.size(); }
    std::size_t n_documents() const { return n_documents_; }
    std::size_t n_tokens() const {
        std::size_t n = 0;
        for (const Block& block : blocks_) n += block.ids.size();
        return n;
    }
    std::vector<Block>& blocks() { return blocks_; }
    const std::vector<Block>& blocks() const { return blocks_; }

    // Reads all documents of a source (see reading.hpp) into each corpus, all of which have as many threads and documents. If it
    // fails, they are as before.
    template <class Source> static void read_together(const std::vector<Corpus*>& corpora, Source& source, Control& control) {
        std::vector<std::size_t> n_old;
        for (const Corpus* const corpus : corpora) n_old.push_back(corpus->blocks_.size());
        try {
            read_batches(source, corpora[0]->n_threads(), control, [&](std::size_t number, const auto& views, std::size_t thread) {
                std::vector<Block> made;
                for (Corpus* const corpus : corpora) made.push_back(tokenized(views, corpus->readers_[thread], thread, control));
                control.add_done(views.size());
                return [&, number, made = std::move(made)]() mutable {
                    for (std::size_t c = 0; c < corpora.size(); ++c) {
                        std::vector<Block>& blocks = corpora[c]->blocks_;
                        const std::size_t place = n_old[c] + number;
                        if (blocks.size() <= place) blocks.resize(place + 1);
                        blocks[place] = std::move(made[c]);
                    }
                };
            });
        } catch (...) {
            for (std::size_t c = 0; c < corpora.size(); ++c) corpora[c]->blocks_.resize(n_old[c]);
            throw;
        }
        for (std::size_t c = 0; c < corpora.size(); ++c) corpora[c]->place_blocks(n_old[c]);
    }

    template <class Source> void read(Source& source, Control& control) { read_together({this}, source, control); }

    void add(const std::vector<std::string_view>& documents, Control& control) {
        ViewSource source(documents);
        read(source, control);
    }

    // Documents that were cut into tokens elsewhere: one after another in `tokens`, `ends[d]` after the last of document d.
    void add_tokens(const std::vector<std::string_view>& tokens, std::vector<std::size_t> ends) {
        std::vector<std::uint32_t> ids;
        ids.reserve(tokens.size());
        for (const std::string_view token : tokens) ids.push_back(readers_[0].interner.intern(token));
        blocks_.push_back({0, 0, readers_[0].store.store(ids.data(), ids.size()), {}, std::move(ends)});
        place_blocks(blocks_.size() - 1);
    }

    // The distinct tokens, numbered together. Strings are views of those of the corpus if only one thread has met any.
    Merged merge(Control& control) const {
        std::vector<const Interner*> interners;
        for (std::size_t i = 0; i < n_workers(); ++i) interners.push_back(&readers_[i].interner);
        return text::merge(interners, n_workers(), control);
    }

    // Frees the strings of the tokens, after which only `rewrite` and reading blocks make sense.
    void forget_strings() {
        for (Reader& reader : readers_) {
            if (reader.interner.size() > 0) reader.interner = Interner();
        }
    }

    // Makes tokens of the joined n-grams of min_n to max_n terms, for terms whose own text could be taken for a joint. The
    // terms are strings[term_of[owner][token]]. Slow, and rarely needed.
    void join_ngrams(const Merged& merged, std::size_t min_n, std::size_t max_n, Control& control) {
        if (readers_[0].tokenizer.counts_tokens()) {
            throw std::invalid_argument("Tokens that are counted are in no order, and cannot be joined.");
        }
        Interner joined;
        PageStore store;
        std::vector<std::uint32_t> terms, ids;
        std::string text;
        for (Block& block : blocks_) {
            ids.clear();
            std::size_t begin = 0;
            for (std::size_t& end : block.ends) {
                control.check();
                terms.clear();
                for (std::size_t i = begin; i < end; ++i) {
                    const std::uint32_t term = merged.number_of[block.owner][block.ids[i]];
                    if (term != dropped) terms.push_back(term);
                }
                for (std::size_t i = 0; i < terms.size(); ++i) {
                    text.clear();
                    for (std::size_t n = 1; n <= max_n && i + n <= terms.size(); ++n) {
                        if (n > 1) text.push_back(' ');
                        text.append(merged.strings[terms[i + n - 1]]);
                        if (n >= min_n) ids.push_back(joined.intern(text));
                    }
                }
                begin = std::exchange(end, ids.size());
            }
            block.ids = store.store(ids.data(), ids.size());
            block.owner = 0;
        }
        forget_strings();
        readers_[0].interner = std::move(joined);
    }

    // Replaces each token by term_of[owner][token]. Runs of `none` become one, or vanish where tokens are counted.
    void rewrite(const std::vector<std::vector<std::uint32_t>>& term_of, Control& control) {
        parallel_for(blocks_.size(), n_workers(), control, [&](std::size_t b) {
            Block& block = blocks_[b];
            const std::uint32_t* const map = term_of[block.owner].data();
            std::uint32_t* const ids = block.ids.data();
            std::size_t from = 0, to = 0;
            for (std::size_t& end : block.ends) {
                if (block.is_counted()) {
                    for (; from < end; ++from) {
                        const std::uint32_t term = map[ids[from]];
                        ids[to] = term;
                        block.counts.data()[to] = block.counts[from];
                        to += term < dropped;
                    }
                    end = to;
                    continue;
                }
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
            if (block.is_counted()) block.counts.truncate(to);
        });
    }

  private:
    // What a thread reads with. Aligned, so that threads do not write to the same cache lines.
    struct alignas(128) Reader {
        Tokenizer tokenizer;
        Interner interner;
        PageStore store;
        std::vector<std::uint32_t> ids;
        std::vector<Count> counts;

        Reader(const CodePoints& code_points, const TokenRules& rules) : tokenizer(code_points, rules) {}
    };

    template <class Views> static Block tokenized(const Views& documents, Reader& reader, std::size_t owner, Control& control) {
        Block block;
        block.owner = owner;
        block.ends.reserve(documents.size());
        reader.ids.clear();
        reader.counts.clear();
        for (const std::string_view document : documents) {
            control.check();
            reader.tokenizer.tokenize(document, control, [&](const char* text, const std::vector<Span>& spans) {
                intern(text, spans, reader.interner, reader.ids);
            });
            if (reader.tokenizer.counts_tokens()) add_counts(reader);
            block.ends.push_back(reader.ids.size());
        }
        block.ids = reader.store.store(reader.ids.data(), reader.ids.size());
        block.counts = reader.store.store(reader.counts.data(), reader.counts.size());
        return block;
    }

    // Those of the tokens that were added last.
    static void add_counts(Reader& reader) {
        constexpr std::uint32_t most = std::numeric_limits<Count>::max();
        const std::vector<std::uint32_t>& counts = reader.tokenizer.counts();
        const std::size_t first = reader.counts.size();
        for (const std::uint32_t count : counts) reader.counts.push_back(static_cast<Count>(std::min(count, most)));
        for (std::size_t i = 0; i < counts.size(); ++i) {
            for (std::uint32_t rest = counts[i]; rest > most;) {
                rest -= most;
                reader.ids.push_back(reader.ids[first + i]);
                reader.counts.push_back(static_cast<Count>(std::min(rest, most)));
            }
        }
    }

    void place_blocks(std::size_t first) {
        for (std::size_t b = first; b < blocks_.size(); ++b) {
            blocks_[b].first_document = n_documents_;
            n_documents_ += blocks_[b].n_documents();
        }
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

    std::vector<Reader> readers_;
    std::vector<Block> blocks_;
    std::size_t n_documents_ = 0;
};

}  // namespace rankplane::text
