// Strings to numbers: the n-th distinct string gets the number n.
//
// The table has 16 bytes per slot, and strings of up to 8 bytes, nearly all words, are stored in their slot: a lookup reads one
// cache line. For a longer one the slot has a hash of 64 bits, and the string itself is compared too, so collisions are harmless.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/sharing.hpp"

namespace rankplane::text {

inline constexpr std::uint32_t none = 0xFFFFFFFFU;

inline std::uint64_t mix(std::uint64_t x) {
    x *= 0x9E3779B97F4A7C15U;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93U;
    return x ^ x >> 29;
}

class Interner {
  public:
    // The key of a string in the table.
    struct Key {
        std::uint64_t bits;  // the bytes themselves, or a hash of more than 8
        std::uint64_t hash;
        std::uint32_t size;
    };

    static Key key_of(const char* text, std::size_t size) {
        if (size <= 8) {
            std::uint64_t bits = 0;
            if (size > 0) std::memcpy(&bits, text, size);  // text may be null for an empty string
            return short_key(bits, size);
        }
        return long_key(text, size);
    }
    // The same, when 8 bytes can be read at `text` whatever the size.
    static Key padded_key_of(const char* text, std::size_t size) {
        if (size > 8) return long_key(text, size);
        if (size == 0) return short_key(0, 0);
        std::uint64_t bits;
        std::memcpy(&bits, text, sizeof bits);
        // Little-endian: the first bytes of the string are the low ones. On a big-endian machine both functions must mask
        // the other end; the bytes are only compared with each other, so copying them is always right.
        if constexpr (is_little_endian) {
            bits &= ~std::uint64_t{0} >> (64 - 8 * size);
        } else {
            bits = 0;
            std::memcpy(&bits, text, size);
        }
        return short_key(bits, size);
    }

    Interner() : slots_(first_n_slots), mask_(first_n_slots - 1) { starts_.push_back(0); }

    std::size_t size() const { return starts_.size() - 1; }
    std::string_view operator[](std::size_t id) const { return {bytes_.data() + starts_[id], starts_[id + 1] - starts_[id]}; }
    std::size_t n_bytes() const { return bytes_.size(); }

    // Makes room for so many strings, so that the table need not grow step by step.
    void reserve(std::size_t n_strings) {
        std::size_t n_slots = slots_.size();
        while (n_strings * 2 > n_slots) n_slots *= 2;
        if (n_slots > slots_.size()) resize(n_slots);
    }

    // Adds the strings get(i), i < n, which are known to be new. They are not found until `index` is called.
    template <class Get> void append_all(std::size_t n, std::size_t n_threads, Control& control, const Get& get) {
        const std::size_t n_before = size();
        starts_.resize(n_before + n + 1);
        std::size_t* const starts = starts_.data() + n_before;
        parallel_ranges(n, n_threads, control, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) starts[i + 1] = get(i).size();
        });
        std::partial_sum(starts, starts + n + 1, starts);
        bytes_.resize(starts[n]);
        parallel_ranges(n, n_threads, control, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i) std::ranges::copy(get(i), bytes_.data() + starts[i]);
        });
    }
    void index() {
        if (n_indexed_ == size()) return;
        reserve(size());
        for (; n_indexed_ < size(); ++n_indexed_) {
            const std::string_view string = (*this)[n_indexed_];
            const Key key = key_of(string.data(), string.size());
            std::size_t place = key.hash & mask_;
            while (slots_[place].id_plus_one != 0) place = (place + 1) & mask_;
            slots_[place] = {key.bits, key.size, static_cast<std::uint32_t>(n_indexed_ + 1)};
        }
    }

    void prefetch(const Key& key) const { __builtin_prefetch(slots_.data() + (key.hash & mask_)); }

    std::uint32_t find(const Key& key, const char* text) const {
        const Slot& slot = slots_[locate(key, text)];
        return slot.id_plus_one - 1U;
    }
    std::uint32_t find(std::string_view string) const { return find(key_of(string.data(), string.size()), string.data()); }

    std::uint32_t intern(const Key& key, const char* text) {
        std::size_t place = locate(key, text);
        if (slots_[place].id_plus_one == 0) {
            if ((size() + 1) * 2 > slots_.size()) {
                resize(slots_.size() * 2);
                place = locate(key, text);
            }
            bytes_.insert(bytes_.end(), text, text + key.size);
            starts_.push_back(bytes_.size());
            slots_[place] = {key.bits, key.size, static_cast<std::uint32_t>(size())};
            n_indexed_ = size();
        }
        return slots_[place].id_plus_one - 1U;
    }
    std::uint32_t intern(std::string_view string) { return intern(key_of(string.data(), string.size()), string.data()); }

    // ids[i] = number of get(i), for i < n.
    template <class Get> void intern_all(std::size_t n, std::uint32_t* ids, const Get& get) {
        with_slots_ahead(n, get, [&](std::size_t i, const Key& key, const char* text) { ids[i] = intern(key, text); });
    }
    // The same, or none for those that are not there.
    template <class Get> void find_all(std::size_t n, std::uint32_t* ids, const Get& get) const {
        with_slots_ahead(n, get, [&](std::size_t i, const Key& key, const char* text) { ids[i] = find(key, text); });
    }

  private:
    static constexpr std::size_t first_n_slots = std::size_t{1} << 10;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    static constexpr bool is_little_endian = true;
#else
    static constexpr bool is_little_endian = false;
#endif

    struct Slot {
        std::uint64_t bits;
        std::uint32_t size;
        std::uint32_t id_plus_one;  // 0: empty
    };

    // use(i, key, text) of get(i), for i < n, when the slot of the key has had time to be fetched.
    template <class Get, class Use> void with_slots_ahead(std::size_t n, const Get& get, const Use& use) const {
        constexpr std::size_t ahead = 8;
        Key keys[ahead];
        for (std::size_t i = 0; i < n + ahead; ++i) {
            if (i >= ahead) use(i - ahead, keys[i % ahead], get(i - ahead).data());
            if (i < n) {
                const std::string_view string = get(i);
                keys[i % ahead] = key_of(string.data(), string.size());
                prefetch(keys[i % ahead]);
            }
        }
    }

    static Key short_key(std::uint64_t bits, std::size_t size) {
        return {bits, mix(bits + size), static_cast<std::uint32_t>(size)};
    }
    static Key long_key(const char* text, std::size_t size) {
        std::uint64_t hash = size;
        std::size_t at = 0;
        for (; at + 8 < size; at += 8) {
            std::uint64_t bits;
            std::memcpy(&bits, text + at, sizeof bits);
            hash = mix(hash ^ bits);
        }
        std::uint64_t last;
        std::memcpy(&last, text + size - 8, sizeof last);
        hash = mix(hash ^ last);
        return {hash, mix(hash), static_cast<std::uint32_t>(size)};
    }

    std::size_t locate(const Key& key, const char* text) const {
        std::size_t place = key.hash & mask_;
        while (true) {
            const Slot& slot = slots_[place];
            if (slot.id_plus_one == 0) return place;
            if (slot.bits == key.bits && slot.size == key.size &&
                (key.size <= 8 || std::memcmp(bytes_.data() + starts_[slot.id_plus_one - 1], text, key.size) == 0)) {
                return place;
            }
            place = (place + 1) & mask_;
        }
    }

    void resize(std::size_t n_slots) {
        Buffer<Slot> old = std::move(slots_);
        slots_ = Buffer<Slot>(n_slots);
        mask_ = slots_.size() - 1;
        for (std::size_t i = 0; i < old.size(); ++i) {
            const Slot& slot = old[i];
            if (slot.id_plus_one == 0) continue;
            const std::uint64_t hash = slot.size <= 8 ? mix(slot.bits + slot.size) : mix(slot.bits);
            std::size_t place = hash & mask_;
            while (slots_[place].id_plus_one != 0) place = (place + 1) & mask_;
            slots_[place] = slot;
        }
    }

    Buffer<Slot> slots_;
    std::size_t mask_;
    std::vector<std::size_t> starts_;
    std::vector<char> bytes_;
    std::size_t n_indexed_ = 0;
};

}  // namespace rankplane::text
