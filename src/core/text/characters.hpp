// The n-grams of characters of a document: each once, in alphabetical order, with the number of times it occurs.
//
// What follows scikit-learn: white space of two and more becomes one blank; `character` takes every n-gram of the text,
// `word_characters` those of each word between two blanks of its own.
//
// All n-grams that start at a character are prefixes of the longest one there. So it is enough to sort the longest ones: equal
// n-grams of every length are then neighbours, and a text has a third as many different ones as it has n-grams. Characters are
// numbered within the document, so that the longest n-gram and its place fit into one integer.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/memory.hpp"
#include "text/normalize.hpp"
#include "text/sorting.hpp"
#include "text/unicode.hpp"

namespace rankplane::text {

struct Span {
    std::size_t begin, size;
};

// A number for each code point, 0 at first. Only blocks of 256 that are in use take memory.
class CodePointMap {
  public:
    CodePointMap() : page_of_(n_code_points / page_size), numbers_(page_size) {}

    std::uint32_t& operator[](std::uint32_t c) {
        std::uint16_t& page = page_of_[c / page_size];
        if (page == 0) {
            page = static_cast<std::uint16_t>(numbers_.size() / page_size);
            numbers_.resize(numbers_.size() + page_size);
        }
        return numbers_[std::size_t{page} * page_size + c % page_size];
    }

  private:
    static constexpr std::uint32_t page_size = 256;
    std::vector<std::uint16_t> page_of_;  // 0 stands for none
    std::vector<std::uint32_t> numbers_;
};

class CharacterNgrams {
  public:
    CharacterNgrams(const CodePoints& code_points, bool splits_words, std::size_t min_n, std::size_t max_n)
        : code_points_(&code_points), splits_words_(splits_words), min_n_(min_n), max_n_(max_n) {}

    void find(const Normalized& normalized) {
        spans_.clear();
        counts_.clear();
        gather(normalized.text(), normalized.text() + normalized.size());
        if (places() > 0) sort_and_walk();
    }

    // Of the spans; 8 bytes past the last one can be read.
    const char* text() const { return reinterpret_cast<const char*>(bytes_.data()); }
    const std::vector<Span>& spans() const { return spans_; }
    const std::vector<std::uint32_t>& counts() const { return counts_; }

  private:
    std::size_t places() const { return characters_.size(); }

    void add(const unsigned char* bytes, std::size_t n_bytes, std::uint32_t c) {
        starts_.push_back(bytes_.size());
        bytes_.insert(bytes_.end(), bytes, bytes + n_bytes);
        characters_.push_back(c);
    }

    void add_blank() {
        constexpr unsigned char blank = ' ';
        add(&blank, 1, blank);
    }

    // Where the words end that n-grams do not cross; the whole text is one if it is not split.
    void gather(const unsigned char* at, const unsigned char* const end) {
        bytes_.clear();
        starts_.clear();
        characters_.clear();
        word_ends_.clear();
        bool is_inside = false;
        const auto finish_word = [&] {
            if (!is_inside) return;
            add_blank();
            word_ends_.push_back(places());
            is_inside = false;
        };
        while (at < end) {
            const Decoded next = decode(at, end);
            if (!is_space(next.code_point)) {
                if (splits_words_ && !is_inside) add_blank();
                is_inside = splits_words_;
                add(at, next.n_bytes, next.code_point);
                at += next.n_bytes;
                continue;
            }
            const unsigned char* stop = at + next.n_bytes;
            std::size_t n_spaces = 1;
            while (stop < end) {
                const Decoded space = decode(stop, end);
                if (!is_space(space.code_point)) break;
                stop += space.n_bytes;
                ++n_spaces;
            }
            if (splits_words_) {
                finish_word();
            } else if (n_spaces > 1) {
                add_blank();
            } else {
                add(at, next.n_bytes, next.code_point);
            }
            at = stop;
        }
        finish_word();
        if (!splits_words_) word_ends_.push_back(places());
        starts_.push_back(bytes_.size());
        bytes_.resize(bytes_.size() + Normalized::padding);
    }

    bool is_space(std::uint32_t code_point) const {
        const CodePoints::Entry entry = (*code_points_)[code_point];
        return entry.is_space() && !entry.is_sequence();
    }

    // Replaces code points by numbers from 1 on in their order, and returns how many there are.
    std::size_t number_characters() {
        distinct_.clear();
        for (const std::uint32_t c : characters_) {
            std::uint32_t& number = number_of_[c];
            if (number == 0) distinct_.push_back(c);
            number = 1;
        }
        std::sort(distinct_.begin(), distinct_.end());
        for (std::size_t i = 0; i < distinct_.size(); ++i) number_of_[distinct_[i]] = static_cast<std::uint32_t>(i + 1);
        for (std::uint32_t& c : characters_) c = number_of_[c];
        for (const std::uint32_t c : distinct_) number_of_[c] = 0;
        return distinct_.size();
    }

    void sort_and_walk() {
        const std::size_t n = places();
        const auto n_bits = static_cast<std::size_t>(std::bit_width(number_characters()));
        const auto place_bits = static_cast<std::size_t>(std::bit_width(n - 1));
        std::size_t longest = 0;
        for (std::size_t w = 0; w < word_ends_.size(); ++w) {
            longest = std::max(longest, word_ends_[w] - (w == 0 ? 0 : word_ends_[w - 1]));
        }
        longest = std::min(longest, max_n_);
        if (longest == 0) return;  // n-grams of no characters
        const bool is_packed = n_bits * longest + place_bits <= 64;
        rooms_.resize(n);
        keys_.resize(n);
        shortest_.assign(n, static_cast<std::uint32_t>(min_n_));
        slots_.assign(longest + 1, none);
        // From the last character of each word: how many more an n-gram may take, and the longest one as an integer.
        std::size_t begin = 0;
        for (const std::size_t end : word_ends_) {
            std::uint32_t room = 0;
            std::uint64_t key = 0;
            for (std::size_t p = end; p-- > begin;) {
                room += room < longest;
                rooms_[p] = room;
                if (is_packed) key = std::uint64_t{characters_[p]} << (n_bits * (longest - 1)) | key >> n_bits;
                keys_[p] = is_packed ? key << place_bits | p : p;
            }
            // A word shorter than every n-gram counts once, whole.
            if (splits_words_ && room < min_n_) shortest_[begin] = room;
            begin = end;
        }
        if (is_packed) {
            sorter_.sort(keys_, place_bits, place_bits + n_bits * longest);
            const std::uint64_t place = (std::uint64_t{1} << place_bits) - 1;
            const auto n_unused = static_cast<int>(64 - n_bits * longest);
            walk([&](std::size_t i) { return static_cast<std::size_t>(keys_[i] & place); },
                 [&](std::size_t i) {
                     const std::uint64_t differing = (keys_[i - 1] ^ keys_[i]) >> place_bits;
                     return static_cast<std::uint32_t>(std::countl_zero(differing) - n_unused) / static_cast<std::uint32_t>(n_bits);
                 });
        } else {
            std::sort(keys_.begin(), keys_.end(), [&](std::uint64_t a, std::uint64_t b) {
                return std::lexicographical_compare(from(a), from(a) + rooms_[a], from(b), from(b) + rooms_[b]);
            });
            walk([&](std::size_t i) { return static_cast<std::size_t>(keys_[i]); },
                 [&](std::size_t i) {
                     const std::uint32_t *const a = from(keys_[i - 1]), *const b = from(keys_[i]);
                     const std::uint32_t room = std::min(rooms_[keys_[i - 1]], rooms_[keys_[i]]);
                     return static_cast<std::uint32_t>(std::mismatch(a, a + room, b).first - a);
                 });
        }
    }

    const std::uint32_t* from(std::uint64_t place) const { return characters_.data() + place; }

    // place_of(i): where the i-th n-gram in alphabetical order starts; n_shared(i): how much it has in common with the one before.
    template <class Place, class Shared> void walk(const Place& place_of, const Shared& n_shared) {
        for (std::size_t i = 0; i < keys_.size(); ++i) {
            const std::size_t place = place_of(i), room = rooms_[place],
                              n_same = i == 0 ? 0 : std::min<std::size_t>(n_shared(i), room);
            // Slots of short words are left from other n-grams unless all since then began with the same word.
            for (std::size_t n = n_same + 1; n < std::min(min_n_, slots_.size()); ++n) slots_[n] = none;
            std::size_t n = shortest_[place];
            for (; n <= n_same && slots_[n] != none; ++n) ++counts_[slots_[n]];
            for (; n <= room; ++n) {
                slots_[n] = spans_.size();
                spans_.push_back({starts_[place], starts_[place + n] - starts_[place]});
                counts_.push_back(1);
            }
        }
    }

    static constexpr auto none = static_cast<std::size_t>(-1);

    const CodePoints* code_points_;
    bool splits_words_;
    std::size_t min_n_, max_n_;
    std::vector<unsigned char> bytes_;
    std::vector<std::size_t> starts_, word_ends_;
    std::vector<std::uint32_t> characters_, distinct_, rooms_, counts_;
    std::vector<std::uint64_t> keys_;
    std::vector<std::uint32_t> shortest_;  // by place: the length of the shortest n-gram that starts there
    std::vector<std::size_t> slots_;       // by length: the span that counts for it
    std::vector<Span> spans_;
    CodePointMap number_of_;
    RadixSorter<std::uint64_t> sorter_;
};

}  // namespace rankplane::text
