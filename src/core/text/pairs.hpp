// Pairs (prefix, term), of which n-grams are made: an n-gram of k terms is the pair of an n-gram of k - 1 terms and a term.
//
// Both numbers fit 32 bits, so a pair is an exact 64-bit key, and in the order of the keys n-grams are in alphabetical order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/parallel.hpp"
#include "text/corpus.hpp"
#include "text/interner.hpp"

namespace rankplane::text {

inline std::uint64_t pair_key(std::uint32_t prefix, std::uint32_t term) {
    return std::uint64_t{prefix} << 32 | term;
}
inline std::uint32_t prefix_of(std::uint64_t key) {
    return static_cast<std::uint32_t>(key >> 32);
}
inline std::uint32_t last_of(std::uint64_t key) {
    return static_cast<std::uint32_t>(key);
}

// Finds the value of a pair. Each prefix has a run of slots of its own, so a slot needs only the term: 8 bytes, and the slots of
// frequent prefixes stay in the cache.
class PairTable {
  public:
    struct Slot {
        std::uint32_t term, value;
    };
    struct Run {
        std::uint32_t first = 0, size = 0;
    };

    PairTable() = default;
    // keys: rising; values[i] belongs to keys[i].
    PairTable(std::size_t n_prefixes, const std::vector<std::uint64_t>& keys, const std::uint32_t* values, Control& control)
        : runs_(n_prefixes) {
        for (const std::uint64_t key : keys) ++runs_[prefix_of(key)].size;
        std::size_t n_slots = 0;
        for (std::size_t i = 0; i < n_prefixes; ++i) {
            runs_[i].first = static_cast<std::uint32_t>(n_slots);
            // A third of the slots is free, and at least one, which ends a search.
            if (runs_[i].size > 0) runs_[i].size += runs_[i].size / 2 + 1;
            n_slots += runs_[i].size;
        }
        slots_ = Buffer<Slot>(n_slots);
        for (std::size_t i = 0; i < n_slots; ++i) slots_[i].term = none;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (i % 0x10000 == 0) control.check();
            const Run run = runs_[prefix_of(keys[i])];
            std::uint32_t place = place_in(run, last_of(keys[i]));
            while (slots_[run.first + place].term != none) place = place + 1 == run.size ? 0 : place + 1;
            slots_[run.first + place] = {last_of(keys[i]), values[i]};
        }
    }

    Run run_of(std::uint32_t prefix) const { return runs_[prefix]; }
    void prefetch_run(std::uint32_t prefix) const { __builtin_prefetch(runs_.data() + prefix); }
    static std::uint32_t place_in(Run run, std::uint32_t term) {
        const std::uint32_t hash = static_cast<std::uint32_t>((std::uint64_t{term} * 0x9E3779B97F4A7C15U) >> 32);
        return static_cast<std::uint32_t>(std::uint64_t{hash} * run.size >> 32);
    }
    void prefetch(Run run, std::uint32_t place) const { __builtin_prefetch(slots_.data() + run.first + place); }

    std::uint32_t find(Run run, std::uint32_t place, std::uint32_t term) const {
        if (run.size == 0) return none;
        while (true) {
            const Slot slot = slots_[run.first + place];
            if (slot.term == term) return slot.value;
            if (slot.term == none) return none;
            place = place + 1 == run.size ? 0 : place + 1;
        }
    }

    // values[i] = value of (prefixes[i], terms[i]) or none, for i < n; none stands for no prefix or no term. May be in place.
    void find_all(const std::uint32_t* prefixes, const std::uint32_t* terms, std::size_t n, std::uint32_t* values) const {
        constexpr std::size_t ahead = 32;
        struct Waiting {
            Run run;
            std::uint32_t place, term;
        } waiting[ahead];
        for (std::size_t i = 0; i < n + ahead; ++i) {
            Waiting& slot = waiting[i % ahead];
            if (i >= ahead) values[i - ahead] = find(slot.run, slot.place, slot.term);
            if (i < n) {
                slot.run = prefixes[i] == none || terms[i] == none ? Run{} : runs_[prefixes[i]];
                slot.term = terms[i];
                slot.place = place_in(slot.run, slot.term);
                prefetch(slot.run, slot.place);
            }
        }
    }

  private:
    Buffer<Run> runs_;
    Buffer<Slot> slots_;
};

struct PairCounts {
    std::vector<std::uint64_t> keys;  // rising
    std::vector<std::uint32_t> n_documents;
    std::vector<std::uint64_t> n_occurrences;  // only if asked for
};

// Counts in how many documents, and how often, the pairs of one range of prefixes occur.
class PairCounter {
  public:
    // n_expected: about how many pairs will be added. Growing costs more than a table that is somewhat too large.
    PairCounter(std::size_t n_expected, bool counts_occurrences)
        : slots_(std::bit_ceil(std::max<std::size_t>(n_expected / 4, 1024))), counts_occurrences_(counts_occurrences) {
        if (counts_occurrences) occurrences_ = Buffer<std::uint32_t>(slots_.size());
        waiting_.reserve(n_waiting);
    }

    void add(std::uint64_t key, std::uint32_t document) {
        waiting_.push_back({key, document});
        if (waiting_.size() == n_waiting) flush();
    }

    PairCounts take(std::size_t min_documents) {
        flush();
        struct Found {
            std::uint64_t key;
            std::uint32_t n_documents, n_occurrences;
        };
        std::vector<Found> found;
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            const Slot& slot = slots_[i];
            if (slot.n_documents == 0 || slot.n_documents < min_documents) continue;
            found.push_back({slot.key, slot.n_documents, counts_occurrences_ ? occurrences_[i] : 0});
        }
        slots_ = Buffer<Slot>();
        occurrences_ = Buffer<std::uint32_t>();
        std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.key < b.key; });
        PairCounts counts;
        for (const Found& pair : found) {
            counts.keys.push_back(pair.key);
            counts.n_documents.push_back(pair.n_documents);
            if (counts_occurrences_) counts.n_occurrences.push_back(pair.n_occurrences);
        }
        return counts;
    }

  private:
    static constexpr std::size_t n_waiting = 512, ahead = 16;

    struct Slot {
        std::uint64_t key;
        std::uint32_t last_document;
        std::uint32_t n_documents;  // 0: empty
    };
    struct Waiting {
        std::uint64_t key;
        std::uint32_t document;
    };

    std::size_t place_of(std::uint64_t key) const { return mix(key) & (slots_.size() - 1); }

    // Slots are fetched well before they are read: the table is larger than any cache.
    void flush() {
        while ((n_used_ + waiting_.size()) * 3 > slots_.size() * 2) grow();
        const std::size_t n = waiting_.size();
        for (std::size_t i = 0; i < n + ahead; ++i) {
            if (i < n) __builtin_prefetch(slots_.data() + place_of(waiting_[i].key), 1);
            if (i >= ahead) count(waiting_[i - ahead]);
        }
        waiting_.clear();
    }

    void count(const Waiting& pair) {
        std::size_t place = place_of(pair.key);
        while (slots_[place].n_documents != 0 && slots_[place].key != pair.key) place = (place + 1) & (slots_.size() - 1);
        Slot& slot = slots_[place];
        if (slot.n_documents == 0) {
            slot = {pair.key, pair.document, 1};
            ++n_used_;
        } else {
            slot.n_documents += slot.last_document != pair.document;
            slot.last_document = pair.document;
        }
        if (counts_occurrences_) ++occurrences_[place];
    }

    void grow() {
        Buffer<Slot> old = std::move(slots_);
        Buffer<std::uint32_t> old_occurrences = std::move(occurrences_);
        slots_ = Buffer<Slot>(old.size() * 2);
        if (counts_occurrences_) occurrences_ = Buffer<std::uint32_t>(old.size() * 2);
        for (std::size_t i = 0; i < old.size(); ++i) {
            if (old[i].n_documents == 0) continue;
            std::size_t place = place_of(old[i].key);
            while (slots_[place].n_documents != 0) place = (place + 1) & (slots_.size() - 1);
            slots_[place] = old[i];
            if (counts_occurrences_) occurrences_[place] = old_occurrences[i];
        }
    }

    Buffer<Slot> slots_;
    Buffer<std::uint32_t> occurrences_;
    std::vector<Waiting> waiting_;
    std::size_t n_used_ = 0;
    bool counts_occurrences_;
};

// prefixes[b][i]: the n-gram of `length - 1` terms that starts at token i of block b, or none. weight_of[p]: about how many
// pairs start with p, to share the work. A pair whose parts are both frequent enough is counted; no other can be.
inline PairCounts count_pairs(const std::vector<Block>& blocks, const std::vector<const std::uint32_t*>& prefixes,
                              std::size_t length, const std::vector<std::uint32_t>& weight_of, std::size_t min_documents,
                              bool counts_occurrences, std::size_t n_threads, Control& control) {
    // Small ranges keep the tables small, but each range walks all tokens once.
    constexpr std::size_t weight_per_range = std::size_t{1} << 22;
    const std::size_t total = std::accumulate(weight_of.begin(), weight_of.end(), std::size_t{0});
    std::size_t n_ranges = total / weight_per_range + 1;
    n_ranges = (n_ranges + n_threads - 1) / n_threads * n_threads;
    std::vector<std::uint32_t> firsts{0};
    for (std::size_t p = 0, sum = 0; p < weight_of.size(); ++p) {
        sum += weight_of[p];
        if (sum * n_ranges >= firsts.size() * total && firsts.size() < n_ranges)
            firsts.push_back(static_cast<std::uint32_t>(p + 1));
    }
    firsts.push_back(static_cast<std::uint32_t>(weight_of.size()));
    std::vector<PairCounts> parts(firsts.size() - 1);
    parallel_for(parts.size(), n_threads, control, [&](std::size_t part) {
        const std::uint32_t first = firsts[part], n_prefixes = firsts[part + 1] - first;
        const std::size_t n_expected =
            std::accumulate(weight_of.begin() + first, weight_of.begin() + firsts[part + 1], std::size_t{0});
        PairCounter counter(n_expected, counts_occurrences);
        std::vector<std::uint64_t> keys;
        for (std::size_t b = 0; b < blocks.size(); ++b) {
            control.check();
            const Block& block = blocks[b];
            const std::uint32_t* const prefix = prefixes[b];
            for (std::size_t d = 0; d < block.n_documents(); ++d) {
                const std::size_t begin = block.begin_of(d), end = block.ends[d];
                if (end - begin < length) continue;
                const std::size_t n = end - begin - length + 1;
                if (keys.size() < n) keys.resize(n);
                std::size_t n_keys = 0;
                for (std::size_t i = begin; i < begin + n; ++i) {
                    keys[n_keys] = pair_key(prefix[i], block.ids[i + length - 1]);
                    n_keys += prefix[i] - first < n_prefixes && prefix[i + 1] != none;
                }
                const auto document = static_cast<std::uint32_t>(block.first_document + d);
                for (std::size_t i = 0; i < n_keys; ++i) counter.add(keys[i], document);
            }
        }
        parts[part] = counter.take(min_documents);
    });
    PairCounts all = std::move(parts[0]);
    for (std::size_t i = 1; i < parts.size(); ++i) {
        all.keys.insert(all.keys.end(), parts[i].keys.begin(), parts[i].keys.end());
        all.n_documents.insert(all.n_documents.end(), parts[i].n_documents.begin(), parts[i].n_documents.end());
        all.n_occurrences.insert(all.n_occurrences.end(), parts[i].n_occurrences.begin(), parts[i].n_occurrences.end());
        parts[i] = {};
    }
    return all;
}

}  // namespace rankplane::text
