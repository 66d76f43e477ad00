// In how many documents, and how often, pairs occur.
//
// Pairs are dealt to parts by their hash, so a part has all occurrences of its pairs and a table that fits into a cache. Threads
// share the blocks of documents while pairs are dealt, and the parts while they are counted. This goes in rounds, each over a share
// of the hashes, since the pairs of all tokens would take twice as much memory as the tokens.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/sharing.hpp"
#include "text/corpus.hpp"
#include "text/interner.hpp"
#include "text/pairs.hpp"

namespace rankplane::text {

struct PairCounts {
    Array<std::uint64_t> keys;  // rising
    Array<std::uint32_t> n_documents;
    Array<std::uint64_t> n_occurrences;  // only if asked for
};

struct PairCount {
    std::uint64_t key;
    std::uint32_t n_documents, n_occurrences;
};

// The pairs that one thread has dealt, part by part. An item is a key; its highest bit, which no key has, is set on the first pair
// of a document in the part.
class DealtPairs {
  public:
    static constexpr std::uint64_t starts_document = std::uint64_t{1} << 63;

    // Forgets all pairs, but keeps the memory.
    void restart(std::size_t n_parts) {
        parts_.assign(n_parts, Part());
        runs_.resize(n_parts);
        for (std::vector<std::uint64_t*>& runs : runs_) runs.clear();
        n_slabs_used_ = 0;
        free_ = free_end_ = nullptr;
    }

    void add(std::size_t number, std::uint64_t key, std::uint32_t document) {
        Part& part = parts_[number];
        if (part.next == part.end) extend(number);
        *part.next++ = key | (part.last_document != document ? starts_document : 0);
        part.last_document = document;
    }

    std::size_t n_pairs(std::size_t number) const {
        return runs_[number].size() * run_size - static_cast<std::size_t>(parts_[number].end - parts_[number].next);
    }

    // use(items, n) for the runs of a part, in the order they were dealt.
    template <class Use> void for_each_run(std::size_t number, const Use& use) const {
        for (const std::uint64_t* const run : runs_[number]) {
            const std::uint64_t* const end = run + run_size == parts_[number].end ? parts_[number].next : run + run_size;
            use(run, static_cast<std::size_t>(end - run));
        }
    }

  private:
    static constexpr std::size_t run_size = 512;                       // a page
    static constexpr std::size_t first_slab = 16, largest_slab = 512;  // in runs

    struct Part {
        std::uint64_t *next = nullptr, *end = nullptr;
        std::uint32_t last_document = none;
    };

    void extend(std::size_t number) {
        if (free_ == free_end_) {
            if (n_slabs_used_ == slabs_.size()) {
                const std::size_t n_runs = std::min(first_slab << std::min<std::size_t>(slabs_.size(), 32), largest_slab);
                slabs_.emplace_back(n_runs * run_size, false);
            }
            free_ = slabs_[n_slabs_used_].data();
            free_end_ = free_ + slabs_[n_slabs_used_++].size();
        }
        runs_[number].push_back(free_);
        parts_[number].next = free_;
        parts_[number].end = free_ = free_ + run_size;
    }

    std::vector<Part> parts_;
    std::vector<std::vector<std::uint64_t*>> runs_;
    std::vector<Buffer<std::uint64_t>> slabs_;
    std::size_t n_slabs_used_ = 0;
    std::uint64_t *free_ = nullptr, *free_end_ = nullptr;
};

// Counts the pairs of one part after another.
class PairCounter {
  public:
    explicit PairCounter(bool counts_occurrences) : counts_occurrences_(counts_occurrences) {}

    // n_expected: how many pairs will be added. Growing costs more than a table that is somewhat too large.
    void restart(std::size_t n_expected) {
        n_slots_ = std::bit_ceil(std::clamp<std::size_t>(n_expected / 2, 1024, most_slots));
        if (n_slots_ > slots_.size()) make_tables(n_slots_);
        std::fill_n(slots_.data(), n_slots_, Slot{});
        if (counts_occurrences_) std::fill_n(occurrences_.data(), n_slots_, 0U);
        n_used_ = 0;
        document_ = 0;
    }

    // Documents of different calls of `restart_documents` are different.
    void restart_documents() { ++document_; }

    void add(const std::uint64_t* items, std::size_t n) {
        while ((n_used_ + n) * 3 > n_slots_ * 2) grow();
        // Slots are fetched well before they are read: the table may be larger than the second-level cache.
        constexpr std::size_t ahead = 16;
        for (std::size_t i = 0; i < n; ++i) {
            if (i + ahead < n) __builtin_prefetch(slots_.data() + place_of(items[i + ahead] & ~DealtPairs::starts_document), 1);
            document_ += (items[i] & DealtPairs::starts_document) != 0;
            count(items[i] & ~DealtPairs::starts_document);
        }
    }

    // The pairs of at least so many documents, in no order.
    Array<PairCount> take(std::size_t min_documents) const {
        const auto is_kept = [&](const Slot& slot) { return slot.n_documents != 0 && slot.n_documents >= min_documents; };
        const auto n_kept = static_cast<std::size_t>(std::count_if(slots_.data(), slots_.data() + n_slots_, is_kept));
        Array<PairCount> kept;
        kept.reserve(n_kept);
        for (std::size_t i = 0; i < n_slots_; ++i) {
            const Slot& slot = slots_[i];
            if (is_kept(slot)) kept.push_back({slot.key, slot.n_documents, counts_occurrences_ ? occurrences_[i] : 0});
        }
        return kept;
    }

  private:
    static constexpr std::size_t most_slots = std::size_t{1} << 17;  // of a table that has not grown yet

    struct Slot {
        std::uint64_t key = 0;
        std::uint32_t last_document = 0;
        std::uint32_t n_documents = 0;  // 0: empty
    };

    void make_tables(std::size_t n_slots) {
        slots_ = Buffer<Slot>(n_slots);
        if (counts_occurrences_) occurrences_ = Buffer<std::uint32_t>(n_slots);
    }

    std::size_t place_of(std::uint64_t key) const { return mix(key) & (n_slots_ - 1); }

    void count(std::uint64_t key) {
        std::size_t place = place_of(key);
        while (slots_[place].n_documents != 0 && slots_[place].key != key) place = (place + 1) & (n_slots_ - 1);
        Slot& slot = slots_[place];
        if (slot.n_documents == 0) {
            slot = {key, document_, 1};
            ++n_used_;
        } else {
            slot.n_documents += slot.last_document != document_;
            slot.last_document = document_;
        }
        if (counts_occurrences_) ++occurrences_[place];
    }

    void grow() {
        const std::size_t n_before = n_slots_;
        const Buffer<Slot> before = std::move(slots_);
        const Buffer<std::uint32_t> occurrences_before = std::move(occurrences_);
        n_slots_ = n_before * 2;
        make_tables(n_slots_);
        for (std::size_t i = 0; i < n_before; ++i) {
            if (before[i].n_documents == 0) continue;
            std::size_t place = place_of(before[i].key);
            while (slots_[place].n_documents != 0) place = (place + 1) & (n_slots_ - 1);
            slots_[place] = before[i];
            if (counts_occurrences_) occurrences_[place] = occurrences_before[i];
        }
    }

    Buffer<Slot> slots_;
    Buffer<std::uint32_t> occurrences_;
    std::size_t n_slots_ = 0, n_used_ = 0;
    std::uint32_t document_ = 0;
    bool counts_occurrences_;
};

// prefixes[b][i]: the n-gram of `length - 1` terms that starts at token i of block b, or none, for n-grams below n_prefixes. A pair
// whose parts are both frequent enough is counted; no other can be.
inline PairCounts count_pairs(const Corpus& corpus, const std::vector<const std::uint32_t*>& prefixes, std::size_t n_prefixes,
                              std::size_t length, std::size_t min_documents, bool counts_occurrences, Control& control) {
    if (n_prefixes > std::size_t{1} << 31) throw std::length_error("There are more n-grams than can be numbered.");
    constexpr std::size_t pairs_per_part = std::size_t{1} << 15, most_parts = 1024, least_for_rounds = std::size_t{1} << 20;
    const std::vector<Block>& blocks = corpus.blocks();
    const std::size_t n_threads = corpus.n_workers(), n_tokens = corpus.n_tokens();
    const std::size_t n_rounds = n_tokens < least_for_rounds ? 1 : 2;
    const std::size_t n_parts =
        std::bit_ceil(std::max(std::min(n_tokens / n_rounds / pairs_per_part, most_parts), n_threads > 1 ? 4 * n_threads : 2));
    // The highest bits of a product depend on all bits of the key.
    const int n_bits = std::countr_zero(n_rounds * n_parts);
    const auto part_of = [&](std::uint64_t key) { return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15U) >> (64 - n_bits)); };
    // What a thread deals and counts with. Aligned, so that threads do not write to the same cache lines.
    struct alignas(128) Own {
        DealtPairs dealt;
        PairCounter counter;
        std::vector<std::uint64_t> keys;
    };
    std::vector<Own> owns;
    for (std::size_t t = 0; t < n_threads; ++t) owns.push_back({{}, PairCounter(counts_occurrences), {}});
    std::vector<Array<PairCount>> kept(n_rounds * n_parts);

    for (std::size_t round = 0; round < n_rounds; ++round) {
        for (Own& own : owns) own.dealt.restart(n_parts);
        parallel_for_own(blocks.size(), owns, control, [&](std::size_t b, Own& own) {
            const Block& block = blocks[b];
            const std::uint32_t *const prefix = prefixes[b], *const ids = block.ids.data();  // null without tokens
            for (std::size_t d = 0; d < block.n_documents(); ++d) {
                const std::size_t begin = block.begin_of(d), end = block.ends[d];
                if (end - begin < length) continue;
                if (own.keys.size() < end - begin) own.keys.resize(end - begin);
                std::uint64_t* key = own.keys.data();
                for (std::size_t i = begin; i < end + 1 - length; ++i) {
                    *key = pair_key(prefix[i], ids[i + length - 1]);
                    key += (prefix[i] != none) & (prefix[i + 1] != none) & (part_of(*key) / n_parts == round);
                }
                const auto document = static_cast<std::uint32_t>(block.first_document + d);
                for (const std::uint64_t* k = own.keys.data(); k < key; ++k) own.dealt.add(part_of(*k) % n_parts, *k, document);
            }
        });
        parallel_for_own(n_parts, owns, control, [&](std::size_t part, Own& own) {
            std::size_t n_pairs = 0;
            for (const Own& other : owns) n_pairs += other.dealt.n_pairs(part);
            if (n_pairs == 0) return;
            own.counter.restart(n_pairs);
            for (const Own& other : owns) {
                own.counter.restart_documents();
                other.dealt.for_each_run(part, [&](const std::uint64_t* items, std::size_t n) { own.counter.add(items, n); });
            }
            kept[round * n_parts + part] = own.counter.take(min_documents);
        });
    }
    owns.clear();
    const Array<PairCount> all =
        sorted(std::move(kept), n_threads, control, [](const PairCount& a, const PairCount& b) { return a.key < b.key; });
    PairCounts counts{Array<std::uint64_t>(all.size()), Array<std::uint32_t>(all.size()),
                      Array<std::uint64_t>(counts_occurrences ? all.size() : 0)};
    parallel_ranges(all.size(), n_threads, control, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            counts.keys[i] = all[i].key;
            counts.n_documents[i] = all[i].n_documents;
            if (counts_occurrences) counts.n_occurrences[i] = all[i].n_occurrences;
        }
    });
    return counts;
}

}  // namespace rankplane::text
