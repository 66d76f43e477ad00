// SIMD packs of lanes, and what all loops do with them. Included once per instruction set (see isa.cpp), inside a namespace and a
// target region of its own, with RANKPLANE_PACK_BYTES set to the width of a register. As in all files named *_lanes.hpp: no include
// guard, no other include, and nothing from the standard library that could be instantiated here: inline code from these files must
// never be linked elsewhere.

template <class T, std::size_t N> struct PackOf {
    typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
// A single lane rides in a pack of two. As a plain number the compiler would branch where it selects, and fuse other products with
// other sums than in the packs: a lane that ends up alone would no longer get the bits that it gets in company.
template <class T> struct PackOf<T, 1> : PackOf<T, 2> {};

template <class T> using BitsOf = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// `Count` packs of `N` lanes each are one block row. Sums, products and selections are the compiler's vector operators.
template <class T, std::size_t Width> struct Block {
    using Value = T;
    static constexpr std::size_t native = RANKPLANE_PACK_BYTES / sizeof(T);
    static constexpr std::size_t N = Width < native ? Width : native;
    static constexpr std::size_t Count = Width / N;
    using Pack = typename PackOf<T, N>::type;
    using Integers = typename PackOf<BitsOf<T>, N>::type;

    static Pack load(const T* from) { return widen(from); }
    template <class From> static Pack widen(const From* from) {
        if constexpr (N == 1) {
            return Pack{static_cast<T>(*from)};
        } else {
            typename PackOf<From, N>::type narrow;
            __builtin_memcpy(&narrow, from, sizeof narrow);
            return __builtin_convertvector(narrow, Pack);
        }
    }
    static void store(T* to, Pack pack) {
        if constexpr (N == 1) {
            *to = pack[0];
        } else {
            __builtin_memcpy(to, &pack, sizeof pack);
        }
    }

    static Integers lane_bit() {
        Integers bit{};
        for (std::size_t lane = 0; lane < N; ++lane) bit[lane] = BitsOf<T>{1} << lane;
        return bit;
    }
    // All lanes of a pack or-ed together, by way of memory: a wide store and a few word loads beat extracting lane after lane.
    static BitsOf<T> fold(Integers values) {
        std::uint64_t words[(sizeof values + 7) / 8] = {};
        __builtin_memcpy(words, &values, sizeof values);
        std::uint64_t folded = 0;
        for (const std::uint64_t word : words) folded |= word;
        if constexpr (sizeof(T) == 4) folded |= folded >> 32;
        return static_cast<BitsOf<T>>(folded);
    }
    static T sum(Pack pack) {
        T total = 0;
        for (std::size_t lane = 0; lane < N; ++lane) total += pack[lane];
        return total;
    }
    static bool any_nonzero(const Pack (&packs)[Count]) {
        Integers nonzero{};
        for (std::size_t c = 0; c < Count; ++c) nonzero |= (packs[c] != Pack{}) ? Integers{} - 1 : Integers{};
        return fold(nonzero) != 0;
    }
};

template <class Pack> inline Pack larger(Pack a, Pack b) {
    return a > b ? a : b;
}
template <class Pack> inline Pack smaller(Pack a, Pack b) {
    return a < b ? a : b;
}

// exp(-x) for x >= 0, to the last bit or two. Beyond what T can hold, the smallest normal number does as well.
template <class B> inline typename B::Pack exp_of_minus(typename B::Pack x) {
    using T = typename B::Value;
    using Integers = typename B::Integers;
    constexpr bool is_float = sizeof(T) == 4;
    constexpr int n_terms = is_float ? 7 : 13, mantissa = is_float ? 23 : 52, bias = is_float ? 127 : 1023;
    constexpr T most = is_float ? T(87) : T(708);
    constexpr T ln2_high = is_float ? T(0.693359375) : T(0x1.62e42fefap-1), ln2_low = T(0.69314718055994530942 - double(ln2_high));
    const typename B::Pack bounded = smaller(x, typename B::Pack{} + most);
    const Integers n = __builtin_convertvector(bounded * T(1.44269504088896340736) + T(0.5), Integers);
    const typename B::Pack whole = __builtin_convertvector(n, typename B::Pack);
    const typename B::Pack rest = (whole * ln2_high - bounded) + whole * ln2_low;
    typename B::Pack sum = typename B::Pack{} + T(1);
    for (int k = n_terms; k > 0; --k) sum = rest * sum * (T(1) / static_cast<T>(k)) + T(1);
    return sum * reinterpret_cast<typename B::Pack>((bias - n) << mantissa);
}

// Ask for what a row that comes soon will need. Into the second level only: the first is too small to hold it until then, and its
// few outstanding misses are better left to the row at hand. Always inlined: GCC takes a function that only prefetches for one
// without effect and drops the call.
template <class T, std::size_t Width, class Row>
__attribute__((always_inline)) inline void prefetch_weights(const T* weights, const Row& row) {
    constexpr std::size_t line = 64 / sizeof(T);
    for (std::size_t q = 0; q < row.size; ++q) {
        const T* first = weights + row.column(q) * Width;
        for (std::size_t lane = 0; lane < Width; lane += line) __builtin_prefetch(first + lane, 0, 2);
    }
}

// The ends of a row apart from what lies between: parts of rows are short, and a loop that ends here and there is mispredicted.
template <class Row> __attribute__((always_inline)) inline void prefetch_row(const Row& row) {
    constexpr std::size_t entries_per_line = 64 / sizeof(row.values[0]);
    if (row.size == 0) return;
    __builtin_prefetch(row.column_bytes(0), 0, 2);
    __builtin_prefetch(row.values, 0, 2);
    for (std::size_t q = entries_per_line; q + entries_per_line < row.size; q += entries_per_line) {
        __builtin_prefetch(row.column_bytes(q), 0, 2);
        __builtin_prefetch(row.values + q, 0, 2);
    }
    __builtin_prefetch(row.column_bytes(row.size - 1), 0, 2);
    __builtin_prefetch(row.values + row.size - 1, 0, 2);
}

template <class T, std::size_t Width, class Row>
inline void dot(const T* weights, const Row& row, typename Block<T, Width>::Pack (&sums)[Block<T, Width>::Count]) {
    using B = Block<T, Width>;
    typename B::Pack odd[B::Count] = {};
    for (std::size_t c = 0; c < B::Count; ++c) sums[c] = typename B::Pack{};
    std::size_t q = 0;
    for (; q + 1 < row.size; q += 2) {
        const T* w0 = weights + row.column(q) * Width;
        const T* w1 = weights + row.column(q + 1) * Width;
        const T x0 = row.value(q), x1 = row.value(q + 1);
        for (std::size_t c = 0; c < B::Count; ++c) {
            sums[c] += x0 * B::load(w0 + c * B::N);
            odd[c] += x1 * B::load(w1 + c * B::N);
        }
    }
    if (q < row.size) {
        const T* w0 = weights + row.column(q) * Width;
        for (std::size_t c = 0; c < B::Count; ++c) sums[c] += row.value(q) * B::load(w0 + c * B::N);
    }
    for (std::size_t c = 0; c < B::Count; ++c) sums[c] += odd[c];
}

// The same in double, for the certificate.
template <class T, std::size_t Width, class Row>
inline void dot_widened(const T* weights, const Row& row,
                        typename Block<double, Width>::Pack (&sums)[Block<double, Width>::Count]) {
    using B = Block<double, Width>;
    for (std::size_t c = 0; c < B::Count; ++c) sums[c] = typename B::Pack{};
    for (std::size_t q = 0; q < row.size; ++q) {
        const T* w = weights + row.column(q) * Width;
        const double x = static_cast<double>(row.value(q));
        for (std::size_t c = 0; c < B::Count; ++c) sums[c] += x * B::widen(w + c * B::N);
    }
}

// Adds to the scores of coupled lanes what lane k contributes with this score of its own.
template <class T, std::size_t Width, class As>
inline void add_coupled(const T* coupling, std::size_t k, As score,
                        typename Block<As, Width>::Pack (&scores)[Block<As, Width>::Count]) {
    using B = Block<As, Width>;
    for (std::size_t c = 0; c < B::Count; ++c) scores[c] += score * B::widen(coupling + k * Width + c * B::N);
}
// The scores of coupled lanes, from their own.
template <class T, std::size_t Width, class As>
inline void couple(const T* coupling, typename Block<As, Width>::Pack (&scores)[Block<As, Width>::Count]) {
    using B = Block<As, Width>;
    As own[Width];
    for (std::size_t c = 0; c < B::Count; ++c) B::store(own + c * B::N, scores[c]);
    for (std::size_t c = 0; c < B::Count; ++c) scores[c] = typename B::Pack{};
    for (std::size_t k = 0; k < Width; ++k) add_coupled<T, Width, As>(coupling, k, own[k], scores);
}

template <class T, std::size_t Width, class Row>
inline void add_scaled(T* weights, const Row& row, const typename Block<T, Width>::Pack (&steps)[Block<T, Width>::Count]) {
    using B = Block<T, Width>;
    for (std::size_t q = 0; q < row.size; ++q) {
        T* w = weights + row.column(q) * Width;
        const T x = row.value(q);
        for (std::size_t c = 0; c < B::Count; ++c) B::store(w + c * B::N, B::load(w + c * B::N) + x * steps[c]);
    }
}
