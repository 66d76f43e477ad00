// From documents as lists of terms to the rows of a csr matrix of weights:
//
//     weight(column) = tf * idf(column)      tf: how often the column's n-gram occurs in the document, or 1 + ln of that, or 1
//
// divided by the norm of the row, if requested. Sums are in double. Several analyzers of the same documents have their columns side
// by side, and each has the same share of the norm.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "common/control.hpp"
#include "common/memory.hpp"
#include "common/parallel.hpp"
#include "text/corpus.hpp"
#include "text/sorting.hpp"
#include "text/vocabulary.hpp"

namespace rankplane::text {

enum class Norm { none, l1, l2 };

struct Weighting {
    bool is_sublinear = false;
    bool is_binary = false;
    const double* idf = nullptr;  // by column; nullptr: 1
    Norm norm = Norm::l2;
    double scale = 1;  // the norm of a row, if there is any
};

// Memory for up to `capacity` numbers, of which the system provides only what is written to. Small arrays come from the heap, since
// clearing a huge page takes longer than processing a short text.
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

template <class Value> struct Rows {
    std::vector<std::int64_t> starts;
    Sheet<std::int32_t> columns;
    Sheet<Value> values;
};

// The columns of a document's n-grams, each as often as it occurs.
class VocabularyColumns {
  public:
    explicit VocabularyColumns(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}
    std::size_t n_columns() const { return vocabulary_->n_columns(); }
    std::uint32_t of_term(std::uint32_t id) const { return vocabulary_->levels()[0].columns[id]; }

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

    // Appends at `columns` and `values`, which have room for n_found entries, and returns the number of entries. What was found at
    // place i is column_of(i), times_of(i) times.
    template <class Value, class ColumnOf, class TimesOf>
    std::size_t write(std::size_t n_found, const ColumnOf& column_of, const TimesOf& times_of, std::size_t first_column,
                      std::int32_t* columns, Value* values) const {
        std::size_t n = 0;
        double norm = 0;
        for (std::size_t i = 0; i < n_found; ++n) {
            const std::uint32_t column = column_of(i);
            // Rare columns are far apart.
            if (weighting_.idf != nullptr && i + ahead < n_found) __builtin_prefetch(weighting_.idf + column_of(i + ahead));
            std::size_t tf = times_of(i);
            while (++i < n_found && column_of(i) == column) tf += times_of(i);
            double weight = tf < frequency_.size() ? frequency_[tf] : weigh(tf);
            if (weighting_.idf != nullptr) weight *= weighting_.idf[column];
            norm += weighting_.norm == Norm::l2 ? weight * weight : std::abs(weight);
            columns[n] = static_cast<std::int32_t>(first_column + column);
            values[n] = static_cast<Value>(weight);
        }
        if (weighting_.norm == Norm::none || norm == 0) return n;
        const double scale = weighting_.scale / (weighting_.norm == Norm::l2 ? std::sqrt(norm) : norm);
        for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<Value>(static_cast<double>(values[i]) * scale);
        return n;
    }

  private:
    static constexpr std::size_t ahead = 24;

    double weigh(std::size_t tf) const {
        if (weighting_.is_binary) return 1;
        return weighting_.is_sublinear ? 1 + std::log(static_cast<double>(tf)) : static_cast<double>(tf);
    }

    Weighting weighting_;
    std::array<double, 64> frequency_{};
};

// The places of blocks in the matrix, which follow each other in the order of the blocks, whichever is finished first.
class Places {
  public:
    // `capacity` bounds the number of entries.
    Places(std::size_t n_blocks, std::size_t capacity) : n_entries_(n_blocks, unknown), places_(n_blocks), capacity_(capacity) {
        for (std::atomic<std::size_t>& place : places_) place.store(unknown, std::memory_order_relaxed);
    }

    void finish(std::size_t block, std::size_t n_entries) {
        const std::lock_guard lock(mutex_);
        n_entries_[block] = n_entries;
        for (; n_placed_ < places_.size() && n_entries_[n_placed_] != unknown; ++n_placed_) {
            if (n_entries_[n_placed_] > capacity_ - next_) {
                throw std::length_error("The matrix has more entries than were counted.");
            }
            places_[n_placed_].store(next_, std::memory_order_release);
            next_ += n_entries_[n_placed_];
        }
    }

    // `unknown` until this block and all before it are finished.
    std::size_t of(std::size_t block) const { return places_[block].load(std::memory_order_acquire); }

    static constexpr std::size_t unknown = std::numeric_limits<std::size_t>::max();

  private:
    std::mutex mutex_;
    std::vector<std::size_t> n_entries_;
    std::vector<std::atomic<std::size_t>> places_;
    std::size_t n_placed_ = 0, next_ = 0, capacity_;
};

// One analyzer's share of a matrix.
template <class Columns> struct Source {
    Corpus* corpus;
    Columns columns;
    Weighting weighting;
};

// Writes a document's entries in the columns of one source.
template <class Columns> class SourceWriter {
  public:
    SourceWriter(const Source<Columns>& source, std::size_t first_column)
        : blocks_(&source.corpus->blocks()),
          columns_(source.columns),
          writer_(source.weighting),
          first_column_(first_column),
          n_bits_(static_cast<std::size_t>(std::bit_width(source.columns.n_columns()))) {}

    // Looks up a document's columns, and returns how many entries it has at most.
    std::size_t find(std::size_t b, std::size_t document) {
        const Block& block = (*blocks_)[b];
        const std::size_t begin = block.begin_of(document), n = block.ends[document] - begin;
        is_counted_ = block.is_counted();
        if (!is_counted_) {
            columns_.collect(block.ids.data() + begin, n, found_);
            sorter_.sort(found_, 0, n_bits_);
            return found_.size();
        }
        counted_.clear();
        for (std::size_t i = begin; i < begin + n; ++i) {
            const std::uint32_t column = columns_.of_term(block.ids[i]);
            if (column != none) counted_.push_back(std::uint64_t{column} << 32 | block.counts[i]);
        }
        // N-grams of characters come in alphabetical order, which columns nearly always have too.
        if (!std::ranges::is_sorted(counted_)) counted_sorter_.sort(counted_, 32, 32 + n_bits_);
        return counted_.size();
    }

    // Writes the entries of the document that was looked up last, and returns how many there are.
    template <class Value> std::size_t write(std::int32_t* columns, Value* values) const {
        if (!is_counted_) {
            const auto column_of = [&](std::size_t i) { return found_[i]; };
            const auto once = [](std::size_t) { return std::size_t{1}; };
            return writer_.write(found_.size(), column_of, once, first_column_, columns, values);
        }
        const auto column_of = [&](std::size_t i) { return static_cast<std::uint32_t>(counted_[i] >> 32); };
        const auto times_of = [&](std::size_t i) { return static_cast<std::size_t>(counted_[i] & 0xFFFFFFFFU); };
        return writer_.write(counted_.size(), column_of, times_of, first_column_, columns, values);
    }

  private:
    std::vector<Block>* blocks_;
    Columns columns_;
    RowWriter writer_;
    std::size_t first_column_, n_bits_;
    bool is_counted_ = false;
    std::vector<std::uint32_t> found_;
    std::vector<std::uint64_t> counted_;
    RadixSorter<std::uint32_t> sorter_;
    RadixSorter<std::uint64_t> counted_sorter_;
};

// Consumes the corpora, which were read together: a block's tokens are freed once its rows are written. `capacity` bounds the
// number of entries.
template <class Value, class Columns>
Rows<Value> build_rows(const std::vector<Source<Columns>>& sources, std::size_t capacity, Control& control) {
    const std::vector<Block>& blocks = sources[0].corpus->blocks();
    const std::size_t n_documents = sources[0].corpus->n_documents(), n_workers = sources[0].corpus->n_workers();
    for (const Source<Columns>& source : sources) {
        const auto is_same = [](const Block& a, const Block& b) { return a.n_documents() == b.n_documents(); };
        if (!std::ranges::equal(source.corpus->blocks(), blocks, is_same)) {
            throw std::invalid_argument("Corpora whose columns are side by side must be read together.");
        }
    }
    Rows<Value> rows{std::vector<std::int64_t>(n_documents + 1), Sheet<std::int32_t>(capacity), Sheet<Value>(capacity)};
    // Threads take blocks in order. A thread whose rows cannot be placed yet goes on with the next block, but not for long.
    constexpr std::size_t most_waiting = 4;
    struct Waiting {
        std::size_t block = 0, n_entries = 0;
        std::vector<std::size_t> row_ends;
        std::vector<std::int32_t> columns;
        std::vector<Value> values;
    };
    Places places(blocks.size(), capacity);
    std::atomic<std::size_t> next_block{0};
    std::atomic<bool> has_failed{false};
    const auto work = [&] {
        std::vector<SourceWriter<Columns>> writers;
        for (std::size_t first = 0; const Source<Columns>& source : sources) {
            writers.emplace_back(source, first);
            first += source.columns.n_columns();
        }
        std::array<Waiting, most_waiting> ring;
        std::size_t first = 0, last = 0;  // those waiting, modulo the size of the ring
        const auto is_placed = [&] { return places.of(ring[first % most_waiting].block) != Places::unknown; };
        const auto write_first = [&] {
            while (!is_placed()) {
                control.check();
                if (has_failed.load(std::memory_order_relaxed)) throw Stopped();
                std::this_thread::yield();
            }
            const Waiting& made = ring[first++ % most_waiting];
            const std::size_t place = places.of(made.block);
            std::int64_t* const starts = rows.starts.data() + blocks[made.block].first_document + 1;
            for (std::size_t d = 0; d < made.row_ends.size(); ++d) starts[d] = static_cast<std::int64_t>(place + made.row_ends[d]);
            std::copy_n(made.columns.data(), made.n_entries, rows.columns.data() + place);
            std::copy_n(made.values.data(), made.n_entries, rows.values.data() + place);
        };
        for (std::size_t b = next_block++; b < blocks.size(); b = next_block++) {
            Waiting& made = ring[last++ % most_waiting];
            made.block = b;
            made.n_entries = 0;
            made.row_ends.clear();
            for (std::size_t d = 0; d < blocks[b].n_documents(); ++d) {
                control.check();
                for (SourceWriter<Columns>& writer : writers) {
                    const std::size_t n_most = made.n_entries + writer.find(b, d);
                    if (made.columns.size() < n_most) {
                        made.columns.resize(n_most + n_most / 2);
                        made.values.resize(made.columns.size());
                    }
                    made.n_entries += writer.write(made.columns.data() + made.n_entries, made.values.data() + made.n_entries);
                }
                made.row_ends.push_back(made.n_entries);
            }
            control.add_done(blocks[b].n_documents());
            for (const Source<Columns>& source : sources) source.corpus->blocks()[b].release();
            places.finish(b, made.n_entries);
            while (first < last && (is_placed() || last - first == most_waiting)) write_first();
        }
        while (first < last) write_first();
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

// The columns of one analyzer.
template <class Columns>
Rows<float> build_rows(Corpus& corpus, const Columns& columns, const Weighting& weighting, std::size_t capacity, Control& control) {
    return build_rows<float>(std::vector<Source<Columns>>{{&corpus, columns, weighting}}, capacity, control);
}

}  // namespace rankplane::text
