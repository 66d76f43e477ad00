// Strings that several interners numbered, each on its own, numbered together: by the range that their hash falls in, which
// threads share, then by the interner and the number they had there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/parallel.hpp"
#include "common/sharing.hpp"
#include "text/interner.hpp"

namespace rankplane::text {

// Two special numbers for a token besides that of a term: `none` stands between terms (an unknown word: no n-gram crosses it),
// `dropped` never was there (a stop word: its neighbours become neighbours).
inline constexpr std::uint32_t dropped = none - 1;

struct Merged {
    std::vector<Interner> shards;                       // the bytes of the strings; empty if an interner of the corpus has them
    std::vector<std::string_view> strings;              // all different
    std::vector<std::vector<std::uint32_t>> number_of;  // [interner][its number]

    // Other strings, which `number_of` is yet to be mapped to.
    void take_strings(Interner interner) {
        shards.clear();
        shards.push_back(std::move(interner));
        strings.clear();
        for (std::size_t i = 0; i < shards[0].size(); ++i) strings.push_back(shards[0][i]);
    }
};

inline Merged merge(const std::vector<const Interner*>& interners, std::size_t n_threads, Control& control) {
    constexpr std::size_t n_per_shard = 1024;
    const std::size_t n_interners = interners.size();
    Merged merged;
    merged.number_of.resize(n_interners);
    if (n_interners == 1) {
        merged.strings.resize(interners[0]->size());
        merged.number_of[0].resize(interners[0]->size());
        std::iota(merged.number_of[0].begin(), merged.number_of[0].end(), 0U);
        for (std::size_t i = 0; i < merged.strings.size(); ++i) merged.strings[i] = (*interners[0])[i];
        return merged;
    }
    std::size_t n_strings = 0;
    for (const Interner* const own : interners) n_strings += own->size();
    const std::size_t n_shards = std::clamp<std::size_t>(n_strings / n_per_shard, 1, 4 * n_threads);
    const auto shard_of = [&](std::string_view string) {
        return (Interner::key_of(string.data(), string.size()).hash >> 32) * n_shards >> 32;
    };
    // The numbers of each interner, shard by shard, and what becomes of them.
    std::vector<std::vector<std::uint32_t>> before(n_interners), after(n_interners);
    std::vector<std::vector<std::size_t>> ends(n_interners);
    parallel_for(n_interners, n_threads, control, [&](std::size_t o) {
        const Interner& own = *interners[o];
        std::vector<std::uint32_t> shards(own.size());
        std::vector<std::size_t> next(n_shards + 1);
        for (std::size_t i = 0; i < own.size(); ++i) {
            shards[i] = static_cast<std::uint32_t>(shard_of(own[i]));
            ++next[shards[i] + 1];
        }
        std::partial_sum(next.begin(), next.end(), next.begin());
        before[o].resize(own.size());
        after[o].resize(own.size());
        for (std::uint32_t i = 0; i < own.size(); ++i) before[o][next[shards[i]]++] = i;
        ends[o] = std::move(next);
    });
    const auto begin_of = [&](std::size_t o, std::size_t s) { return s == 0 ? 0 : ends[o][s - 1]; };
    merged.shards.resize(n_shards);
    parallel_for(n_shards, n_threads, control, [&](std::size_t s) {
        std::size_t n_most = 0;
        for (std::size_t o = 0; o < n_interners; ++o) n_most = std::max(n_most, ends[o][s] - begin_of(o, s));
        merged.shards[s].reserve(2 * n_most);
        for (std::size_t o = 0; o < n_interners; ++o) {
            const std::size_t begin = begin_of(o, s);
            merged.shards[s].intern_all(ends[o][s] - begin, after[o].data() + begin,
                                        [&](std::size_t i) { return (*interners[o])[before[o][begin + i]]; });
        }
    });
    std::vector<std::size_t> firsts(n_shards + 1);
    for (std::size_t s = 0; s < n_shards; ++s) firsts[s + 1] = firsts[s] + merged.shards[s].size();
    merged.strings.resize(firsts[n_shards]);
    parallel_for(n_shards, n_threads, control, [&](std::size_t s) {
        for (std::size_t i = 0; i < merged.shards[s].size(); ++i) merged.strings[firsts[s] + i] = merged.shards[s][i];
    });
    parallel_for(n_interners, n_threads, control, [&](std::size_t o) {
        merged.number_of[o].resize(interners[o]->size());
        for (std::size_t s = 0; s < n_shards; ++s) {
            for (std::size_t i = begin_of(o, s); i < ends[o][s]; ++i) {
                merged.number_of[o][before[o][i]] = static_cast<std::uint32_t>(firsts[s] + after[o][i]);
            }
        }
    });
    return merged;
}

}  // namespace rankplane::text
