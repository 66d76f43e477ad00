// The n-grams that are columns, as a tree: level 1 holds the terms in alphabetical order, level k the pairs (n-gram of level
// k - 1, term) in the order of their keys. A walk of the tree, parents before children, meets the n-grams in alphabetical order,
// because the blank that joins terms comes before every character of a term. Callers see to that.
//
// An n-gram can be no more frequent than its parts. So what falls below min_documents on one level need not be looked at on the
// next, which keeps the tables small. What is too frequent to be a column stays in the tree as a parent.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "text/corpus.hpp"
#include "text/interner.hpp"
#include "text/pairs.hpp"

namespace rankplane::text {

struct TermCounts {
    std::vector<std::uint32_t> n_documents;
    std::vector<std::uint64_t> n_occurrences;
};

// Counts terms; term_of[owner][token] as in Corpus::rewrite.
inline TermCounts count_terms(const Corpus& corpus, const std::vector<std::vector<std::uint32_t>>& term_of, std::size_t n_terms,
                              Control& control) {
    struct Tally {
        std::uint32_t last_document = none, n_documents = 0;
        std::uint64_t n_occurrences = 0;
    };
    const std::size_t n_threads = corpus.n_workers();
    std::vector<std::vector<Tally>> tallies(n_threads);
    const std::vector<Block>& blocks = corpus.blocks();
    parallel_for(n_threads, n_threads, control, [&](std::size_t thread) {
        std::vector<Tally>& tally = tallies[thread];
        tally.resize(n_terms);
        for (std::size_t b = thread; b < blocks.size(); b += n_threads) {
            control.check();
            const Block& block = blocks[b];
            const std::uint32_t* const map = term_of[block.owner].data();
            for (std::size_t d = 0; d < block.n_documents(); ++d) {
                const auto document = static_cast<std::uint32_t>(block.first_document + d);
                for (std::size_t i = block.begin_of(d); i < block.ends[d]; ++i) {
                    const std::uint32_t term = map[block.ids[i]];
                    if (term >= dropped) continue;
                    Tally& own = tally[term];
                    own.n_documents += own.last_document != document;
                    own.last_document = document;
                    ++own.n_occurrences;
                }
            }
        }
    });
    TermCounts counts{std::vector<std::uint32_t>(n_terms), std::vector<std::uint64_t>(n_terms)};
    for (const std::vector<Tally>& tally : tallies) {
        for (std::size_t t = 0; t < n_terms; ++t) {
            counts.n_documents[t] += tally[t].n_documents;
            counts.n_occurrences[t] += tally[t].n_occurrences;
        }
    }
    return counts;
}

// Numbers of the given strings in the order of their bytes, which for UTF-8 is the order of their code points.
inline std::vector<std::uint32_t> alphabetical(const Interner& strings, std::vector<std::uint32_t> numbers, Control& control) {
    struct Item {
        std::uint64_t start;
        std::uint32_t number;
    };
    std::vector<Item> items;
    items.reserve(numbers.size());
    for (const std::uint32_t number : numbers) {
        const std::string_view string = strings[number];
        std::uint64_t start = 0;
        for (std::size_t i = 0; i < 8; ++i) start = start << 8 | (i < string.size() ? static_cast<unsigned char>(string[i]) : 0U);
        items.push_back({start, number});
    }
    std::size_t n_compared = 0;
    std::sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
        if (++n_compared % 0x10000 == 0) control.check();
        return a.start != b.start ? a.start < b.start : strings[a.number] < strings[b.number];
    });
    for (std::size_t i = 0; i < items.size(); ++i) numbers[i] = items[i].number;
    return numbers;
}

class Vocabulary {
  public:
    struct Level {
        std::vector<std::uint64_t> keys;  // of pairs; empty on level 1
        std::vector<std::uint32_t> n_documents;
        std::vector<std::uint64_t> n_occurrences;  // may be empty
        std::vector<std::uint32_t> columns;        // or none
        PairTable table;  // of the pairs: to their column on the last level, else to their place on this one

        std::size_t size() const { return n_documents.size(); }
    };

    Vocabulary() = default;
    Vocabulary(Interner terms, std::vector<Level> levels, Control& control) : terms_(std::move(terms)), levels_(std::move(levels)) {
        count_columns();
        for (std::size_t l = 1; l < levels_.size(); ++l) {
            make_table(l, l + 1 == levels_.size() ? levels_[l].columns : places(levels_[l].size()), control);
        }
    }

    const Interner& terms() const { return terms_; }
    // The terms, ready to be searched. A fit alone has no need of that.
    const Interner& searchable_terms() {
        terms_.index();
        return terms_;
    }
    const std::vector<Level>& levels() const { return levels_; }
    std::size_t n_columns() const { return n_columns_; }
    std::size_t n_entries() const { return n_entries_; }
    // Whether columns have been chosen since the last n-grams were learnt.
    bool has_columns() const {
        return !levels_.empty() &&
               std::all_of(levels_.begin(), levels_.end(), [](const Level& level) { return level.columns.size() == level.size(); });
    }

    // Learns terms and n-grams of up to max_n terms from a corpus whose tokens become the terms `strings`, and rewrites it in
    // terms of this vocabulary. Columns are not chosen yet.
    void learn(Corpus& corpus, std::vector<std::vector<std::uint32_t>> term_of, const Interner& strings, std::size_t max_n,
               std::size_t min_documents, bool counts_occurrences, Control& control) {
        const TermCounts counts = count_terms(corpus, term_of, strings.size(), control);
        std::vector<std::uint32_t> kept;
        for (std::uint32_t t = 0; t < strings.size(); ++t) {
            if (counts.n_documents[t] > 0 && counts.n_documents[t] >= min_documents) kept.push_back(t);
        }
        kept = alphabetical(strings, std::move(kept), control);
        std::vector<std::uint32_t> rank(strings.size(), none);
        n_columns_ = n_entries_ = 0;
        levels_.clear();
        levels_.emplace_back();
        terms_ = Interner();
        for (std::uint32_t r = 0; r < kept.size(); ++r) {
            rank[kept[r]] = r;
            terms_.append(strings[kept[r]]);
            levels_[0].n_documents.push_back(counts.n_documents[kept[r]]);
            levels_[0].n_occurrences.push_back(counts.n_occurrences[kept[r]]);
        }
        for (std::vector<std::uint32_t>& map : term_of) {
            for (std::uint32_t& term : map) term = term >= dropped ? term : rank[term];
        }
        corpus.rewrite(term_of, control);
        if (max_n > 1) learn_pairs(corpus, max_n, min_documents, counts_occurrences, control);
    }

    // Makes columns of the n-grams of min_n and more terms that are in at most max_documents documents.
    void choose_columns(std::size_t min_n, double max_documents, Control& control) {
        const std::size_t n_levels = levels_.size();
        const auto is_column = [&](std::size_t l, std::size_t i) {
            return l + 1 >= min_n && static_cast<double>(levels_[l].n_documents[i]) <= max_documents;
        };
        // How many columns the tree below each n-gram has, from the leaves up; then where they start, from the root down.
        std::vector<std::vector<std::uint32_t>> n_below(n_levels);
        for (std::size_t l = n_levels; l-- > 0;) {
            n_below[l].resize(levels_[l].size());
            for (std::size_t i = 0; i < levels_[l].size(); ++i) {
                n_below[l][i] += is_column(l, i);
                if (l + 1 < n_levels) continue;
            }
            if (l + 1 < n_levels) {
                for (std::size_t i = 0; i < levels_[l + 1].size(); ++i) {
                    n_below[l][prefix_of(levels_[l + 1].keys[i])] += n_below[l + 1][i];
                }
            }
        }
        std::vector<std::uint32_t> next, next_above;
        std::uint32_t next_column = 0;
        for (std::size_t l = 0; l < n_levels; ++l) {
            Level& level = levels_[l];
            level.columns.assign(level.size(), none);
            next.resize(level.size());
            for (std::size_t i = 0; i < level.size(); ++i) {
                std::uint32_t& place = l == 0 ? next_column : next_above[prefix_of(level.keys[i])];
                next[i] = place;
                place += n_below[l][i];
                if (is_column(l, i)) level.columns[i] = next[i]++;
            }
            std::swap(next, next_above);
        }
        finish_columns(control);
    }

    // Keeps the columns with kept[column] set and renumbers them.
    void keep_columns(const std::uint8_t* kept, Control& control) {
        std::vector<std::uint32_t> renumbered(n_columns_, none);
        std::uint32_t n_kept = 0;
        for (std::size_t c = 0; c < n_columns_; ++c) {
            if (kept[c] != 0) renumbered[c] = n_kept++;
        }
        for (Level& level : levels_) {
            for (std::uint32_t& column : level.columns) column = column == none ? none : renumbered[column];
        }
        finish_columns(control);
    }

    // One number per column, out of one per n-gram.
    template <class Out, class Get> std::vector<Out> by_column(const Get& get) const {
        std::vector<Out> values(n_columns_);
        for (std::size_t l = 0; l < levels_.size(); ++l) {
            // None at all, before columns are chosen.
            for (std::size_t i = 0; i < levels_[l].columns.size(); ++i) {
                if (levels_[l].columns[i] != none) values[levels_[l].columns[i]] = get(l, i);
            }
        }
        return values;
    }

    std::string name(std::size_t level, std::size_t i) const {
        // From the last term to the first. Not by recursion: a file may bring any number of levels.
        std::vector<std::string_view> later;
        for (; level > 0; --level) {
            const std::uint64_t key = levels_[level].keys[i];
            later.push_back(terms_[last_of(key)]);
            i = prefix_of(key);
        }
        std::string text(terms_[i]);
        for (; !later.empty(); later.pop_back()) text.append(1, ' ').append(later.back());
        return text;
    }

  private:
    static std::vector<std::uint32_t> places(std::size_t n) {
        std::vector<std::uint32_t> all(n);
        std::iota(all.begin(), all.end(), 0U);
        return all;
    }

    void make_table(std::size_t l, const std::vector<std::uint32_t>& values, Control& control) {
        levels_[l].table = PairTable(levels_[l - 1].size(), levels_[l].keys, values.data(), control);
    }

    void learn_pairs(Corpus& corpus, std::size_t max_n, std::size_t min_documents, bool counts_occurrences, Control& control) {
        const std::vector<Block>& blocks = corpus.blocks();
        std::vector<std::vector<std::uint32_t>> ngrams(blocks.size());
        std::vector<const std::uint32_t*> prefixes;
        for (const Block& block : blocks) prefixes.push_back(block.ids.data());
        for (std::size_t length = 2; length <= max_n; ++length) {
            if (length > 2) {
                // What starts at each token, one term longer. The last tokens of a document start nothing any more.
                const PairTable& table = levels_.back().table;
                parallel_for(blocks.size(), corpus.n_workers(), control, [&](std::size_t b) {
                    const Block& block = blocks[b];
                    std::vector<std::uint32_t> longer(block.ids.size(), none);
                    for (std::size_t d = 0; d < block.n_documents(); ++d) {
                        const std::size_t begin = block.begin_of(d), n = block.ends[d] - begin;
                        if (n + 1 < length) continue;
                        table.find_all(prefixes[b] + begin, block.ids.data() + begin + length - 2, n + 2 - length,
                                       longer.data() + begin);
                    }
                    ngrams[b] = std::move(longer);
                    prefixes[b] = ngrams[b].data();
                });
            }
            PairCounts counts = count_pairs(blocks, prefixes, length, levels_.back().n_documents, min_documents, counts_occurrences,
                                            corpus.n_workers(), control);
            if (counts.keys.empty()) break;  // nor is there anything longer
            Level level;
            level.keys = std::move(counts.keys);
            level.n_documents = std::move(counts.n_documents);
            level.n_occurrences = std::move(counts.n_occurrences);
            // No longer one can occur.
            if (level.size() == 0) break;
            levels_.push_back(std::move(level));
            if (length < max_n) make_table(length - 1, places(levels_.back().size()), control);
        }
    }

    void count_columns() {
        n_columns_ = n_entries_ = 0;
        for (const Level& level : levels_) {
            for (std::size_t i = 0; i < level.size(); ++i) {
                n_columns_ += level.columns[i] != none;
                n_entries_ += level.columns[i] != none ? level.n_documents[i] : 0;
            }
        }
    }

    void finish_columns(Control& control) {
        count_columns();
        if (levels_.size() > 1) make_table(levels_.size() - 1, levels_.back().columns, control);
    }

    Interner terms_;
    std::vector<Level> levels_;
    std::size_t n_columns_ = 0, n_entries_ = 0;
};

}  // namespace rankplane::text
