// A vocabulary to and from plain arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/interruptible.hpp"
#include "common/memory.hpp"
#include "text/interner.hpp"
#include "text/pairs.hpp"
#include "text/unicode.hpp"
#include "text/vocabulary.hpp"

namespace rankplane::text {

namespace nb = nanobind;

template <class T> using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using NumpyVector = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <class T, class Allocator> NumpyVector<T> to_numpy(std::vector<T, Allocator> values) {
    using Values = std::vector<T, Allocator>;
    auto* const kept = new Values(std::move(values));
    const nb::capsule owner(kept, [](void* memory) noexcept { delete static_cast<Values*>(memory); });
    return NumpyVector<T>(kept->data(), {kept->size()}, owner);
}

template <class T> Array<T> to_array(const Vector<T>& values) {
    return {values.data(), values.data() + values.shape(0)};
}

// A fitted vocabulary as plain arrays, for pickle: (bytes of the terms, their ends, then keys, counts and columns per level).
inline nb::tuple state_of(const Vocabulary& vocabulary) {
    std::string bytes;
    std::vector<std::int64_t> ends;
    for (std::size_t i = 0; i < vocabulary.terms().size(); ++i) {
        bytes.append(vocabulary.terms()[i]);
        ends.push_back(static_cast<std::int64_t>(bytes.size()));
    }
    nb::list levels;
    for (const Vocabulary::Level& level : vocabulary.levels()) {
        levels.append(nb::make_tuple(to_numpy(level.keys), to_numpy(level.n_documents), to_numpy(level.columns)));
    }
    return nb::make_tuple(nb::bytes(bytes.data(), bytes.size()), to_numpy(std::move(ends)), levels);
}

inline constexpr const char* damaged = "The state of the vocabulary is damaged.";

// Without a cast, which could change numbers.
template <class T> Vector<T> array_in(nb::handle object) {
    Vector<T> array;
    if (!nb::try_cast(object, array, false)) throw std::invalid_argument(damaged);
    return array;
}

// Columns are numbered from 0, each once.
inline void check_column_numbers(const std::vector<Vocabulary::Level>& levels) {
    std::size_t n_columns = 0;
    for (const Vocabulary::Level& level : levels) {
        for (const std::uint32_t column : level.columns) n_columns += column != none;
    }
    std::vector<bool> is_there(n_columns);
    for (const Vocabulary::Level& level : levels) {
        for (const std::uint32_t column : level.columns) {
            if (column == none) continue;
            if (column >= n_columns || is_there[column]) throw std::invalid_argument("The columns are not numbered one by one.");
            is_there[column] = true;
        }
    }
}

inline void check_level(const Vocabulary::Level& level, std::size_t l, std::size_t n_above, std::size_t n_terms) {
    bool is_sound = level.columns.size() == level.size() && (l == 0 ? level.size() == n_terms : level.keys.size() == level.size());
    for (std::size_t i = 0; l > 0 && is_sound && i < level.keys.size(); ++i) {
        is_sound =
            prefix_of(level.keys[i]) < n_above && last_of(level.keys[i]) < n_terms && (i == 0 || level.keys[i - 1] < level.keys[i]);
    }
    if (!is_sound) throw std::invalid_argument(damaged);
}

inline void restore(Vocabulary* vocabulary, const nb::tuple& state) {
    const auto check_length = [](const nb::tuple& parts) {
        if (nb::len(parts) != 3) throw std::invalid_argument(damaged);
    };
    check_length(state);
    nb::bytes bytes;
    nb::list items;
    if (!nb::try_cast(state[0], bytes) || !nb::try_cast(state[2], items)) throw std::invalid_argument(damaged);
    const auto ends = array_in<std::int64_t>(state[1]);
    Interner terms;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < ends.shape(0); ++i) {
        const std::int64_t end = ends.data()[i];
        if (end < begin || static_cast<std::size_t>(end) > bytes.size()) throw std::invalid_argument("The terms are damaged.");
        const auto* const text = reinterpret_cast<const unsigned char*>(bytes.c_str());
        if (!is_utf8(text + begin, text + end, true)) throw std::invalid_argument("The terms are damaged.");
        terms.intern(std::string_view(bytes.c_str() + begin, static_cast<std::size_t>(end - begin)));
        begin = end;
    }
    std::vector<Vocabulary::Level> levels;
    for (nb::handle item : items) {
        nb::tuple parts;
        if (!nb::try_cast(item, parts)) throw std::invalid_argument(damaged);
        check_length(parts);
        Vocabulary::Level level;
        level.keys = to_array(array_in<std::uint64_t>(parts[0]));
        level.n_documents = to_array(array_in<std::uint32_t>(parts[1]));
        level.columns = to_array(array_in<std::uint32_t>(parts[2]));
        check_level(level, levels.size(), levels.empty() ? 0 : levels.back().size(), terms.size());
        levels.push_back(std::move(level));
    }
    check_column_numbers(levels);
    run_interruptibly([&](Control& control) { new (vocabulary) Vocabulary(std::move(terms), std::move(levels), control); });
}

}  // namespace rankplane::text
