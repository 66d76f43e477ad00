// Strings to numbers: the n-th distinct string gets the number n.
//
// The table holds 16 bytes per slot, and a string of up to 8 bytes, nearly every word, lies in its slot: one cache line decides.
// A longer one leaves 64 bits of hash there and is compared in full where it is kept, so no collision can change an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "common/memory.hpp"

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
    // What the table knows a string by.
    struct Key {
        std::uint64_t bits;  // the bytes themselves, or a hash of more than 8
        std::uint64_t hash;
        std::uint32_t size;
    };

    static Key key_of(const char* text, std::size_t size) {
        if (size <= 8) {
            std::uint64_t bits = 0;
            if (size > 0) std::memcpy(&bits, text, size);  // an empty string may lie nowhere
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

    Interner(Interner&&) = default;
    Interner& operator=(Interner&&) = default;
    Interner copy() const {
        Interner other;
        other.slots_ = Buffer<Slot>(slots_.size());
        std::memcpy(other.slots_.data(), slots_.data(), slots_.size() * sizeof(Slot));
        other.mask_ = mask_;
        other.starts_ = starts_;
        other.bytes_ = bytes_;
        other.n_indexed_ = n_indexed_;
        return other;
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

    // Adds a string that is known to be new. It is not found until `index` is called.
    void append(std::string_view string) {
        bytes_.insert(bytes_.end(), string.begin(), string.end());
        starts_.push_back(bytes_.size());
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

    // ids[i] = number of get(i), for i < n, with slots fetched ahead.
    template <class Get> void intern_all(std::size_t n, std::uint32_t* ids, const Get& get) {
        constexpr std::size_t ahead = 8;
        Key keys[ahead];
        for (std::size_t i = 0; i < n + ahead; ++i) {
            if (i >= ahead) ids[i - ahead] = intern(keys[i % ahead], get(i - ahead).data());
            if (i < n) {
                const std::string_view string = get(i);
                keys[i % ahead] = key_of(string.data(), string.size());
                prefetch(keys[i % ahead]);
            }
        }
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
