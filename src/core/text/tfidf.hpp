// From documents as lists of terms to the rows of a csr matrix of weights:
//
//     weight(column) = tf * idf(column)      tf: how often the column's n-gram occurs in the document, or 1 + ln of that
//
// divided by the row's norm, if one is asked for. Sums are in double, the result in float.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/parallel.hpp"
#include "text/corpus.hpp"
#include "text/vocabulary.hpp"

namespace rankplane::text {

enum class Norm { none, l1, l2 };

struct Weighting {
    bool is_sublinear = false;
    const double* idf = nullptr;  // by column; nullptr: 1
    Norm norm = Norm::l2;
};

// Memory for up to `capacity` numbers, of which the system provides only what is written. Little memory comes from the heap as it
// is: a huge page takes longer to clear than a short text takes in all.
template <class T> class Sheet {
  public:
    explicit Sheet(std::size_t capacity) {
        constexpr std::size_t page = std::size_t{1} << 21;
        if (capacity > std::numeric_limits<std::size_t>::max() / sizeof(T) - page) throw std::bad_alloc();
        const std::size_t n_bytes = std::max<std::size_t>(capacity, 1) * sizeof(T);
        const bool is_large = n_bytes >= page;
        const std::size_t n_rounded = (n_bytes + page - 1) / page * page;
        data_.reset(static_cast<T*>(is_large ? std::aligned_alloc(page, n_rounded) : std::malloc(n_bytes)));
        if (!data_) throw std::bad_alloc();
#if defined(__linux__)
        if (is_large) madvise(data_.get(), n_rounded, MADV_HUGEPAGE);
#endif
    }
    T* data() { return data_.get(); }
    // Hands over the first `size` numbers; the caller frees them.
    T* release(std::size_t size) {
        void* const all = data_.release();
        void* const cut = std::realloc(all, std::max<std::size_t>(size, 1) * sizeof(T));
        return static_cast<T*>(cut == nullptr ? all : cut);
    }

  private:
    std::unique_ptr<T, FreeMemory> data_;
};

struct Rows {
    std::vector<std::int64_t> starts;
    Sheet<std::int32_t> columns;
    Sheet<float> values;
};

// Sorts numbers below 2^n_bits; the documents of a corpus are too short for wide digits and too long for comparisons.
class ColumnSorter {
  public:
    void sort(std::vector<std::uint32_t>& numbers, unsigned n_bits) {
        const std::size_t n = numbers.size();
        if (n < 64) {
            std::sort(numbers.begin(), numbers.end());
            return;
        }
        const unsigned n_digits = (n_bits + 7) / 8;
        for (unsigned digit = 0; digit < n_digits; ++digit) counts_[digit].fill(0);
        for (const std::uint32_t number : numbers) {
            for (unsigned digit = 0; digit < n_digits; ++digit) ++counts_[digit][number >> (8 * digit) & 0xFFU];
        }
        other_.resize(n);
        for (unsigned digit = 0; digit < n_digits; ++digit) {
            std::array<std::uint32_t, 256>& place = counts_[digit];
            std::uint32_t sum = 0;
            for (std::uint32_t& count : place) sum += std::exchange(count, sum);
            for (const std::uint32_t number : numbers) other_[place[number >> (8 * digit) & 0xFFU]++] = number;
            numbers.swap(other_);
        }
    }

  private:
    std::array<std::array<std::uint32_t, 256>, 4> counts_;
    std::vector<std::uint32_t> other_;
};

// The columns of a document's n-grams, each as often as it occurs.
class VocabularyColumns {
  public:
    explicit VocabularyColumns(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}
    std::size_t n_columns() const { return vocabulary_->n_columns(); }

    void collect(const std::uint32_t* ids, std::size_t n, std::vector<std::uint32_t>& columns) {
        const std::vector<Vocabulary::Level>& levels = vocabulary_->levels();
        columns.resize(n * levels.size());
        std::uint32_t* out = columns.data();
        const auto keep = [&](std::uint32_t column) {
            *out = column;
            out += column != none;
        };
        const std::uint32_t* const first = levels[0].columns.data();
        for (std::size_t i = 0; i < n; ++i) {
            if (ids[i] != none) keep(first[ids[i]]);
        }
        const std::uint32_t* prefixes = ids;
        for (std::size_t l = 1; l < levels.size() && n > l; ++l) {
            const std::size_t n_ngrams = n - l;
            ngrams_.resize(n);
            levels[l].table.find_all(prefixes, ids + l, n_ngrams, ngrams_.data());
            prefixes = ngrams_.data();
            const bool is_last = l + 1 == levels.size();
            for (std::size_t i = 0; i < n_ngrams; ++i) {
                if (ngrams_[i] != none) keep(is_last ? ngrams_[i] : levels[l].columns[ngrams_[i]]);
            }
        }
        columns.resize(static_cast<std::size_t>(out - columns.data()));
    }

  private:
    const Vocabulary* vocabulary_;
    std::vector<std::uint32_t> ngrams_;
};

// Turns sorted columns into a row.
class RowWriter {
  public:
    explicit RowWriter(const Weighting& weighting) : weighting_(weighting) {
        for (std::size_t tf = 1; tf < frequency_.size(); ++tf) frequency_[tf] = weigh(tf);
    }

    // Appends at `columns` and `values`, which have room for sorted.size() entries, and returns the number of entries.
    std::size_t write(const std::vector<std::uint32_t>& sorted, std::int32_t* columns, float* values) const {
        std::size_t n = 0;
        double norm = 0;
        for (std::size_t i = 0; i < sorted.size(); ++n) {
            const std::uint32_t column = sorted[i];
            // Rare columns lie far apart.
            if (weighting_.idf != nullptr && i + ahead < sorted.size()) __builtin_prefetch(weighting_.idf + sorted[i + ahead]);
            std::size_t tf = 1;
            while (++i < sorted.size() && sorted[i] == column) ++tf;
            double weight = tf < frequency_.size() ? frequency_[tf] : weigh(tf);
            if (weighting_.idf != nullptr) weight *= weighting_.idf[column];
            norm += weighting_.norm == Norm::l2 ? weight * weight : weight;
            columns[n] = static_cast<std::int32_t>(column);
            values[n] = static_cast<float>(weight);
        }
        if (weighting_.norm == Norm::none || norm == 0) return n;
        const double scale = 1 / (weighting_.norm == Norm::l2 ? std::sqrt(norm) : norm);
        for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(static_cast<double>(values[i]) * scale);
        return n;
    }

  private:
    static constexpr std::size_t ahead = 24;

    double weigh(std::size_t tf) const {
        return weighting_.is_sublinear ? 1 + std::log(static_cast<double>(tf)) : static_cast<double>(tf);
    }

    Weighting weighting_;
    std::array<double, 64> frequency_{};
};

// Consumes the corpus: a block's tokens are freed once its rows are written. `capacity` bounds the number of entries.
template <class Columns>
Rows build_rows(Corpus& corpus, const Columns& source, const Weighting& weighting, std::size_t capacity, Control& control) {
    std::vector<Block>& blocks = corpus.blocks();
    Rows rows{std::vector<std::int64_t>(corpus.n_documents() + 1), Sheet<std::int32_t>(capacity), Sheet<float>(capacity)};
    unsigned n_bits = 1;
    while (source.n_columns() > std::size_t{1} << n_bits) ++n_bits;
    // Threads take blocks in order and, in the same order, their place in the matrix.
    std::atomic<std::size_t> next_block{0}, next_placed{0};
    std::atomic<bool> has_failed{false};
    std::size_t n_placed = 0;  // entries; owned by the thread whose block is next
    const std::size_t n_workers = corpus.n_workers();
    const auto work = [&] {
        Columns columns_of = source;
        ColumnSorter sorter;
        const RowWriter writer(weighting);
        std::vector<std::uint32_t> found;
        std::vector<std::int32_t> columns;
        std::vector<float> values;
        for (std::size_t b = next_block++; b < blocks.size(); b = next_block++) {
            Block& block = blocks[b];
            std::size_t n_entries = 0;
            std::vector<std::size_t> row_ends;
            row_ends.reserve(block.n_documents());
            for (std::size_t d = 0; d < block.n_documents(); ++d) {
                control.check();
                const std::size_t begin = block.begin_of(d);
                columns_of.collect(block.ids.data() + begin, block.ends[d] - begin, found);
                sorter.sort(found, n_bits);
                if (columns.size() < n_entries + found.size()) {
                    columns.resize((n_entries + found.size()) * 2);
                    values.resize(columns.size());
                }
                n_entries += writer.write(found, columns.data() + n_entries, values.data() + n_entries);
                row_ends.push_back(n_entries);
            }
            while (next_placed.load(std::memory_order_acquire) != b) {
                control.check();
                if (has_failed.load(std::memory_order_relaxed)) throw Stopped();
                std::this_thread::yield();
            }
            const std::size_t first_entry = n_placed;
            if (n_entries > capacity - first_entry) throw std::length_error("The matrix has more entries than were counted.");
            n_placed += n_entries;
            next_placed.store(b + 1, std::memory_order_release);
            for (std::size_t d = 0; d < row_ends.size(); ++d) {
                rows.starts[block.first_document + d + 1] = static_cast<std::int64_t>(first_entry + row_ends[d]);
            }
            std::copy_n(columns.data(), n_entries, rows.columns.data() + first_entry);
            std::copy_n(values.data(), n_entries, rows.values.data() + first_entry);
            control.add_done(block.n_documents());
            block.release();
        }
    };
    parallel_for(n_workers, n_workers, control, [&](std::size_t) {
        try {
            work();
        } catch (...) {
            has_failed = true;
            throw;
        }
    });
    return rows;
}

}  // namespace rankplane::text
