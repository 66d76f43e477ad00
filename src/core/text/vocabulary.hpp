// The n-grams that are columns, as a tree: level 1 holds the terms in alphabetical order, level k the pairs (n-gram of level
// k - 1, term) in the order of their keys. A walk of the tree, parents before children, meets the n-grams in alphabetical order,
// because the blank that joins terms comes before every character of a term. Callers see to that.
//
// An n-gram can be no more frequent than its parts. So what falls below min_documents on one level need not be looked at on the
// next, which keeps the tables small. What is too frequent to be a column stays in the tree as a parent.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/parallel.hpp"
#include "common/sharing.hpp"
#include "text/corpus.hpp"
#include "text/interner.hpp"
#include "text/merged.hpp"
#include "text/pair_counts.hpp"
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
    parallel_for_own(blocks.size(), tallies, control, [&](std::size_t b, std::vector<Tally>& tally) {
        tally.resize(n_terms);
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
                own.n_occurrences += block.count(i);
            }
        }
    });
    TermCounts counts{std::vector<std::uint32_t>(n_terms), std::vector<std::uint64_t>(n_terms)};
    parallel_ranges(n_terms, n_threads, control, [&](std::size_t begin, std::size_t end) {
        for (const std::vector<Tally>& tally : tallies) {
            for (std::size_t t = begin; t < end && !tally.empty(); ++t) {
                counts.n_documents[t] += tally[t].n_documents;
                counts.n_occurrences[t] += tally[t].n_occurrences;
            }
        }
    });
    return counts;
}

// Numbers of the given strings in the order of their bytes, which for UTF-8 is the order of their code points.
inline std::vector<std::uint32_t> alphabetical(const std::vector<std::string_view>& strings, std::vector<std::uint32_t> numbers,
                                               std::size_t n_threads, Control& control) {
    struct Item {
        std::uint64_t start;
        std::uint32_t number;
    };
    std::vector<Array<Item>> items(1);
    items[0].resize(numbers.size());
    parallel_ranges(numbers.size(), n_threads, control, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const std::string_view string = strings[numbers[i]];
            std::uint64_t start = 0;
            for (std::size_t c = 0; c < 8; ++c) {
                start = start << 8 | (c < string.size() ? static_cast<unsigned char>(string[c]) : 0U);
            }
            items[0][i] = {start, numbers[i]};
        }
    });
    const Array<Item> all = sorted(std::move(items), n_threads, control, [&](const Item& a, const Item& b) {
        return a.start != b.start ? a.start < b.start : strings[a.number] < strings[b.number];
    });
    for (std::size_t i = 0; i < all.size(); ++i) numbers[i] = all[i].number;
    return numbers;
}

class Vocabulary {
  public:
    struct Level {
        Array<std::uint64_t> keys;  // of pairs; empty on level 1
        Array<std::uint32_t> n_documents;
        Array<std::uint64_t> n_occurrences;  // may be empty
        Array<std::uint32_t> columns;        // or none
        PairTable table;                     // of the pairs: to their column on the last level, else to their place on this one

        std::size_t size() const { return n_documents.size(); }
    };

    Vocabulary() = default;
    Vocabulary(Interner terms, std::vector<Level> levels, Control& control) : terms_(std::move(terms)), levels_(std::move(levels)) {
        count_columns(1, control);
        for (std::size_t l = 1; l < levels_.size(); ++l) make_table(l, l + 1 == levels_.size(), 1, control);
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

    // Learns terms and n-grams of up to max_n terms from a corpus whose tokens become the terms `merged`, and rewrites it in terms
    // of this vocabulary. Columns are not chosen yet.
    void learn(Corpus& corpus, Merged merged, std::size_t max_n, std::size_t min_documents, bool counts_occurrences,
               Control& control) {
        const std::vector<std::string_view>& strings = merged.strings;
        const std::size_t n_threads = corpus.n_workers();
        TermCounts counts = count_terms(corpus, merged.number_of, strings.size(), control);
        std::vector<std::uint32_t> kept;
        for (std::uint32_t t = 0; t < strings.size(); ++t) {
            if (counts.n_documents[t] > 0 && counts.n_documents[t] >= min_documents) kept.push_back(t);
        }
        kept = alphabetical(strings, std::move(kept), n_threads, control);
        std::vector<std::uint32_t> rank(strings.size(), none);
        n_columns_ = n_entries_ = 0;
        levels_.clear();
        levels_.emplace_back();
        levels_[0].n_documents.resize(kept.size());
        levels_[0].n_occurrences.resize(kept.size());
        for (std::uint32_t r = 0; r < kept.size(); ++r) {
            rank[kept[r]] = r;
            levels_[0].n_documents[r] = counts.n_documents[kept[r]];
            levels_[0].n_occurrences[r] = counts.n_occurrences[kept[r]];
        }
        terms_ = Interner();
        terms_.append_all(kept.size(), n_threads, control, [&](std::size_t r) { return strings[kept[r]]; });
        parallel_for(merged.number_of.size(), n_threads, control, [&](std::size_t owner) {
            for (std::uint32_t& term : merged.number_of[owner]) term = term >= dropped ? term : rank[term];
        });
        corpus.rewrite(merged.number_of, control);
        // Before pairs need as much memory.
        counts = {};
        merged = {};
        corpus.forget_strings();
        if (max_n > 1) learn_pairs(corpus, max_n, min_documents, counts_occurrences, control);
    }

    // Makes columns of the n-grams of min_n and more terms that are in at most max_documents documents.
    void choose_columns(std::size_t min_n, double max_documents, std::size_t n_threads, Control& control) {
        const std::size_t n_levels = levels_.size();
        const auto is_column = [&](std::size_t l, std::size_t i) {
            return l + 1 >= min_n && static_cast<double>(levels_[l].n_documents[i]) <= max_documents;
        };
        // How many columns the tree below each n-gram has, from the leaves up; then where they start, from the root down.
        std::vector<Array<std::uint32_t>> n_below(n_levels);
        std::vector<Array<std::size_t>> starts(n_levels);
        const auto first_child = [&](std::size_t l, std::size_t i) { return l + 1 < n_levels ? starts[l + 1][i] : 0; };
        for (std::size_t l = n_levels; l-- > 0;) {
            n_below[l].resize(levels_[l].size());
            if (l + 1 < n_levels) starts[l + 1] = starts_of(levels_[l + 1].keys, levels_[l].size(), n_threads, control);
            parallel_ranges(levels_[l].size(), n_threads, control, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) {
                    std::uint32_t n = is_column(l, i);
                    for (std::size_t child = first_child(l, i); child < first_child(l, i + 1); ++child) n += n_below[l + 1][child];
                    n_below[l][i] = n;
                }
            });
        }
        if (n_levels == 0) return finish_columns(n_threads, control);  // nothing has been learnt
        // `n_below` becomes the first column there.
        for (std::uint32_t next = 0; std::uint32_t& n : n_below[0]) n = std::exchange(next, next + n);
        for (std::size_t l = 0; l < n_levels; ++l) {
            levels_[l].columns.resize(levels_[l].size());
            parallel_ranges(levels_[l].size(), n_threads, control, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) {
                    std::uint32_t next = n_below[l][i];
                    levels_[l].columns[i] = is_column(l, i) ? next++ : none;
                    for (std::size_t child = first_child(l, i); child < first_child(l, i + 1); ++child) {
                        next += std::exchange(n_below[l + 1][child], next);
                    }
                }
            });
        }
        finish_columns(n_threads, control);
    }

    // Keeps the columns with kept[column] set and renumbers them.
    void keep_columns(const std::uint8_t* kept, std::size_t n_threads, Control& control) {
        std::vector<std::uint32_t> renumbered(n_columns_, none);
        std::uint32_t n_kept = 0;
        for (std::size_t c = 0; c < n_columns_; ++c) {
            if (kept[c] != 0) renumbered[c] = n_kept++;
        }
        for (Level& level : levels_) {
            parallel_ranges(level.size(), n_threads, control, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) {
                    if (level.columns[i] != none) level.columns[i] = renumbered[level.columns[i]];
                }
            });
        }
        finish_columns(n_threads, control);
    }

    // One number per column, out of one per n-gram: get(level, i).
    template <class Out, class Get> Array<Out> by_column(std::size_t n_threads, Control& control, const Get& get) const {
        Array<Out> values(n_columns_);
        for (std::size_t l = 0; l < levels_.size(); ++l) {
            // None at all, before columns are chosen.
            const Array<std::uint32_t>& columns = levels_[l].columns;
            parallel_ranges(columns.size(), n_threads, control, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) {
                    if (columns[i] != none) values[columns[i]] = get(l, i);
                }
            });
        }
        return values;
    }

    // N-gram i of a level.
    struct Place {
        std::size_t level, i;
    };
    Array<Place> places_of_columns(std::size_t n_threads, Control& control) const {
        return by_column<Place>(n_threads, control, [](std::size_t level, std::size_t i) { return Place{level, i}; });
    }

    std::string name(Place place) const {
        // From the last term to the first. Not by recursion: a file may bring any number of levels.
        auto [level, i] = place;
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
    // Pairs have their column in the table of the last level, which n-grams end with, and else their place on the level.
    void make_table(std::size_t l, bool has_columns, std::size_t n_threads, Control& control) {
        const Array<std::size_t> starts = starts_of(levels_[l].keys, levels_[l - 1].size(), n_threads, control);
        levels_[l].table =
            PairTable(levels_[l].keys, starts, has_columns ? levels_[l].columns.data() : nullptr, n_threads, control);
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
            PairCounts counts =
                count_pairs(corpus, prefixes, levels_.back().size(), length, min_documents, counts_occurrences, control);
            if (counts.keys.empty()) break;  // nor is there anything longer
            Level level;
            level.keys = std::move(counts.keys);
            level.n_documents = std::move(counts.n_documents);
            level.n_occurrences = std::move(counts.n_occurrences);
            levels_.push_back(std::move(level));
            if (length < max_n) make_table(length - 1, false, corpus.n_workers(), control);
        }
    }

    void count_columns(std::size_t n_threads, Control& control) {
        std::atomic<std::size_t> n_columns{0}, n_entries{0};
        for (const Level& level : levels_) {
            parallel_ranges(level.size(), n_threads, control, [&](std::size_t begin, std::size_t end) {
                std::size_t n = 0, n_in_documents = 0;
                for (std::size_t i = begin; i < end; ++i) {
                    n += level.columns[i] != none;
                    n_in_documents += level.columns[i] != none ? level.n_documents[i] : 0;
                }
                n_columns += n;
                n_entries += n_in_documents;
            });
        }
        n_columns_ = n_columns;
        n_entries_ = n_entries;
    }

    void finish_columns(std::size_t n_threads, Control& control) {
        count_columns(n_threads, control);
        if (levels_.size() > 1) make_table(levels_.size() - 1, true, n_threads, control);
    }

    Interner terms_;
    std::vector<Level> levels_;
    std::size_t n_columns_ = 0, n_entries_ = 0;
};

}  // namespace rankplane::text
