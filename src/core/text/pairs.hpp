// Pairs (prefix, term), of which n-grams are made: an n-gram of k terms is the pair of an n-gram of k - 1 terms and a term.
//
// Both numbers fit 32 bits, so a pair is an exact 64-bit key, and in the order of the keys n-grams are in alphabetical order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/sharing.hpp"
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

// Where the pairs of each prefix start in `keys`, which rise, and where the last ones end.
inline Array<std::size_t> starts_of(const Array<std::uint64_t>& keys, std::size_t n_prefixes, std::size_t n_threads,
                                    Control& control) {
    Array<std::size_t> starts(n_prefixes + 1);
    const auto next_prefix = [&](std::size_t i) { return i == 0 ? 0 : std::size_t{prefix_of(keys[i - 1])} + 1; };
    parallel_ranges(keys.size(), n_threads, control, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            for (std::size_t prefix = next_prefix(i); prefix <= prefix_of(keys[i]); ++prefix) starts[prefix] = i;
        }
    });
    for (std::size_t prefix = next_prefix(keys.size()); prefix <= n_prefixes; ++prefix) starts[prefix] = keys.size();
    return starts;
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
    // starts: see starts_of; values[i] belongs to keys[i], and is i if there are none.
    PairTable(const Array<std::uint64_t>& keys, const Array<std::size_t>& starts, const std::uint32_t* values,
              std::size_t n_threads, Control& control)
        : runs_(starts.size() - 1, false) {
        std::size_t n_slots = 0;
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            const std::size_t n = starts[i + 1] - starts[i];
            // A third of the slots is free, and at least one, which ends a search.
            runs_[i] = {static_cast<std::uint32_t>(n_slots), static_cast<std::uint32_t>(n > 0 ? n + n / 2 + 1 : 0)};
            n_slots += runs_[i].size;
        }
        slots_ = Buffer<Slot>(n_slots, false);
        parallel_ranges(runs_.size(), n_threads, control, [&](std::size_t begin, std::size_t end) {
            for (std::size_t prefix = begin; prefix < end; ++prefix) {
                const Run run = runs_[prefix];
                for (std::size_t i = 0; i < run.size; ++i) slots_[run.first + i].term = none;
                for (std::size_t i = starts[prefix]; i < starts[prefix + 1]; ++i) {
                    std::uint32_t place = place_in(run, last_of(keys[i]));
                    while (slots_[run.first + place].term != none) place = place + 1 == run.size ? 0 : place + 1;
                    slots_[run.first + place] = {last_of(keys[i]), values == nullptr ? static_cast<std::uint32_t>(i) : values[i]};
                }
            }
        });
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

}  // namespace rankplane::text
