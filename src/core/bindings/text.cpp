// The text part of the core as Python sees it.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/corpus.hpp"
#include "bindings/interruptible.hpp"
#include "bindings/topics.hpp"
#include "bindings/vocabulary.hpp"
#include "common/memory.hpp"
#include "common/parallel.hpp"
#include "common/sharing.hpp"
#include "text/corpus.hpp"
#include "text/hashing.hpp"
#include "text/merged.hpp"
#include "text/tfidf.hpp"
#include "text/vocabulary.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace nb = nanobind;

namespace rankplane {
namespace {

using namespace text;

template <class T> NumpyVector<T> take_numpy(Sheet<T>& sheet, std::size_t size) {
    T* const data = sheet.release(size);
    const nb::capsule owner(data, [](void* memory) noexcept { std::free(memory); });
    return NumpyVector<T>(data, {size}, owner);
}

TokenRules make_rules(const std::string& analyzer, std::size_t min_length, const std::string& marks, std::size_t min_n,
                      std::size_t max_n) {
    TokenRules rules;
    rules.analyzer = analyzer == "char" ? Analyzer::character : analyzer == "char_wb" ? Analyzer::word_characters : Analyzer::word;
    rules.min_length = min_length;
    rules.min_n = min_n;
    rules.max_n = max_n;
    if (marks.size() > Marks::max_signs) throw std::invalid_argument("Too many marks.");
    for (const char mark : marks) rules.marks.signs[rules.marks.n_signs++] = static_cast<unsigned char>(mark);
    return rules;
}

// What all columns of a matrix have in common.
struct MatrixOptions {
    bool is_sublinear, is_binary, is_double;
    std::string norm;

    // For one of several analyzers.
    Weighting weighting(const double* idf, std::size_t n_sources) const {
        const auto n = static_cast<double>(n_sources);
        const Norm kind = norm == "l2" ? Norm::l2 : norm == "l1" ? Norm::l1 : Norm::none;
        return {is_sublinear, is_binary, idf, kind, kind == Norm::l2 ? 1 / std::sqrt(n) : 1 / n};
    }
};

template <class Value, class Columns>
nb::tuple csr_of(const std::vector<Source<Columns>>& sources, std::size_t capacity, const nb::object& on_progress) {
    std::optional<Rows<Value>> rows;
    Control control;
    run_with_progress(control, on_progress, [&] { rows.emplace(build_rows<Value>(sources, capacity, control)); });
    const auto n_entries = static_cast<std::size_t>(rows->starts.back());
    return nb::make_tuple(to_numpy(std::move(rows->starts)), take_numpy(rows->columns, n_entries),
                          take_numpy(rows->values, n_entries));
}

template <class Columns>
nb::tuple csr_of(const std::vector<Source<Columns>>& sources, std::size_t capacity, bool is_double, const nb::object& on_progress) {
    return is_double ? csr_of<double>(sources, capacity, on_progress) : csr_of<float>(sources, capacity, on_progress);
}

template <class Item> std::vector<Item*> items_of(const nb::list& list) {
    std::vector<Item*> items;
    for (nb::handle item : list) items.push_back(&nb::cast<Item&>(item));
    if (items.empty()) throw std::invalid_argument("There must be a corpus.");
    return items;
}

void learn(Vocabulary& vocabulary, BoundCorpus& corpus, std::size_t max_n, std::size_t min_documents, bool counts_occurrences,
           const nb::object& on_progress) {
    corpus.leave(BoundCorpus::Stage::mapped);
    Control control;
    run_with_progress(control, on_progress, [&] {
        vocabulary.learn(corpus.corpus(), std::move(corpus.merged()), max_n, min_documents, counts_occurrences, control);
#if defined(__GLIBC__)
        // The tables for counting are freed before the matrix needs as much memory.
        malloc_trim(0);
#endif
    });
    corpus.become_terms(vocabulary.terms().size());
}

// Maps terms of the corpus to terms of the vocabulary; unknown ones become separators.
void apply(Vocabulary& vocabulary, BoundCorpus& corpus, const nb::object& on_progress) {
    corpus.leave(BoundCorpus::Stage::mapped);
    // With the GIL, since several threads may transform with the same vocabulary.
    const Interner& terms = vocabulary.searchable_terms();
    Control control;
    run_with_progress(control, on_progress, [&] {
        Merged& merged = corpus.merged();
        std::vector<std::uint32_t> known(merged.strings.size());
        parallel_ranges(known.size(), corpus.n_threads(), control, [&](std::size_t begin, std::size_t end) {
            terms.find_all(end - begin, known.data() + begin, [&](std::size_t i) { return merged.strings[begin + i]; });
        });
        parallel_for(merged.number_of.size(), corpus.n_threads(), control, [&](std::size_t owner) {
            for (std::uint32_t& term : merged.number_of[owner]) term = term == dropped ? dropped : known[term];
        });
        corpus.corpus().rewrite(merged.number_of, control);
        merged = {};
        corpus.corpus().forget_strings();
    });
    corpus.become_terms(terms.size());
}

nb::tuple tfidf_rows(const nb::list& vocabulary_list, const nb::list& corpus_list, const std::optional<Vector<double>>& idf,
                     bool is_learned, const MatrixOptions& options, const nb::object& on_progress) {
    const auto vocabularies = items_of<Vocabulary>(vocabulary_list);
    const auto corpora = items_of<BoundCorpus>(corpus_list);
    if (vocabularies.size() != corpora.size()) throw std::invalid_argument("There must be a vocabulary for each corpus.");
    std::vector<Source<VocabularyColumns>> sources;
    std::size_t n_columns = 0, capacity = 0;
    for (std::size_t s = 0; s < corpora.size(); ++s) {
        const Vocabulary& vocabulary = *vocabularies[s];
        if (!vocabulary.has_columns() || corpora[s]->n_terms() > vocabulary.levels()[0].size()) {
            throw std::invalid_argument("The columns of the vocabulary must be chosen, and the corpus be in its terms.");
        }
        corpora[s]->leave(BoundCorpus::Stage::rewritten);
        Corpus& corpus = corpora[s]->corpus();
        capacity += is_learned ? vocabulary.n_entries() : corpus.n_tokens() * std::max<std::size_t>(1, vocabulary.levels().size());
        const double* const own_idf = idf ? idf->data() + n_columns : nullptr;
        sources.push_back({&corpus, VocabularyColumns(vocabulary), options.weighting(own_idf, corpora.size())});
        n_columns += vocabulary.n_columns();
    }
    if (idf && idf->shape(0) != n_columns) throw std::invalid_argument("idf must have one entry per column.");
    if (n_columns > std::numeric_limits<std::int32_t>::max())
        throw std::length_error("There are more columns than can be numbered.");
    return csr_of(sources, capacity, options.is_double, on_progress);
}

// sizes: the least and the largest number of terms of n-grams, for each corpus.
nb::tuple hashed_rows(const nb::list& corpus_list, const std::vector<std::pair<std::size_t, std::size_t>>& sizes, unsigned n_bits,
                      const MatrixOptions& options, const nb::object& on_progress) {
    const auto corpora = items_of<BoundCorpus>(corpus_list);
    if (sizes.size() != corpora.size()) throw std::invalid_argument("There must be a range of sizes for each corpus.");
    for (const auto& [min_n, max_n] : sizes) {
        if (min_n < 1 || min_n > max_n) throw std::invalid_argument("min_n and max_n must be a range from 1 on.");
    }
    if (n_bits < 1 || n_bits > 30 || corpora.size() > std::size_t{1} << 30 >> n_bits)
        throw std::invalid_argument("n_bits must be from 1 to 30.");
    std::vector<Source<HashedColumns>> sources;
    std::size_t capacity = 0;
    for (std::size_t s = 0; s < corpora.size(); ++s) {
        BoundCorpus& bound = *corpora[s];
        bound.leave(BoundCorpus::Stage::mapped);
        run_interruptibly([&](Control& control) { bound.corpus().rewrite(bound.merged().number_of, control); });
        const HashedColumns columns(bound.merged().strings, sizes[s].first, sizes[s].second, n_bits);
        for (const Block& block : bound.corpus().blocks()) {
            for (std::size_t d = 0; d < block.n_documents(); ++d) capacity += columns.count(block.ends[d] - block.begin_of(d));
        }
        sources.push_back({&bound.corpus(), columns, options.weighting(nullptr, corpora.size())});
    }
    return csr_of(sources, capacity, options.is_double, on_progress);
}

// One number per column, from get(level, n-gram).
template <class Out, class Get> Array<Out> by_column(const Vocabulary& vocabulary, std::size_t n_threads, const Get& get) {
    Array<Out> values;
    run_interruptibly([&](Control& control) { values = vocabulary.by_column<Out>(n_threads, control, get); });
    return values;
}

NumpyVector<std::uint32_t> document_counts(const Vocabulary& vocabulary) {
    return to_numpy(by_column<std::uint32_t>(
        vocabulary, 1, [&](std::size_t level, std::size_t i) { return vocabulary.levels()[level].n_documents[i]; }));
}

NumpyVector<std::uint64_t> occurrence_counts(const Vocabulary& vocabulary) {
    return to_numpy(by_column<std::uint64_t>(
        vocabulary, 1, [&](std::size_t level, std::size_t i) { return vocabulary.levels()[level].n_occurrences.at(i); }));
}

// A weight per column: weights[n - 1] for one that n documents have.
NumpyVector<double> weights_of(const Vocabulary& vocabulary, const Vector<double>& weights, std::size_t n_threads) {
    return to_numpy(by_column<double>(vocabulary, n_threads, [&](std::size_t level, std::size_t i) {
        const std::size_t n = vocabulary.levels()[level].n_documents[i];
        if (n < 1 || n > weights.shape(0)) throw std::invalid_argument("There must be a weight for every number of documents.");
        return weights.data()[n - 1];
    }));
}

nb::list names_of(const Vocabulary& vocabulary) {
    Array<Vocabulary::Place> places;
    run_interruptibly([&](Control& control) { places = vocabulary.places_of_columns(1, control); });
    nb::list names;
    for (const Vocabulary::Place place : places) {
        check_signals(nb::len(names));
        names.append(to_str(vocabulary.name(place)));
    }
    return names;
}

}  // namespace

void bind_text(nb::module_& module) {
    nb::class_<CodePoints>(module, "CodePoints")
        .def("__init__", [](CodePoints* self, const Vector<std::uint8_t>& properties, const Vector<std::uint32_t>& mapped,
                            const std::vector<std::vector<std::uint32_t>>& sequences, bool lowers) {
            if (properties.shape(0) != n_code_points || mapped.shape(0) != n_code_points) {
                throw std::invalid_argument("There must be one entry per code point.");
            }
            new (self) CodePoints(properties.data(), mapped.data(), sequences, lowers);
        });
    nb::class_<BoundCorpus>(module, "Corpus")
        .def(
            "__init__",
            [](BoundCorpus* self, const CodePoints& code_points, const std::string& analyzer, std::size_t min_length,
               const std::string& marks, std::size_t min_n, std::size_t max_n, std::size_t n_threads) {
                new (self) BoundCorpus(code_points, make_rules(analyzer, min_length, marks, min_n, max_n), n_threads);
            },
            nb::keep_alive<1, 2>(), nb::arg("code_points"), nb::kw_only(), nb::arg("analyzer"), nb::arg("min_length"),
            nb::arg("marks"), nb::arg("min_n"), nb::arg("max_n"), nb::arg("n_threads"))
        .def("add", &BoundCorpus::add, nb::arg("documents"), nb::arg("encoding"), nb::arg("errors"), nb::arg("on_progress").none(),
             nb::arg("as_one_block") = false)
        .def("add_arrow_stream", &BoundCorpus::add_arrow_stream, nb::arg("stream"), nb::arg("on_progress").none())
        .def("add_arrow_array", &BoundCorpus::add_arrow_array, nb::arg("schema"), nb::arg("array"), nb::arg("on_progress").none())
        .def("add_pieces", &BoundCorpus::add_pieces, nb::arg("parts"), nb::arg("on_progress").none())
        .def("add_tokens", &BoundCorpus::add_tokens, nb::arg("documents"))
        .def("tokens", &BoundCorpus::tokens)
        .def("map_tokens", &BoundCorpus::map_tokens, nb::arg("stop_words"), nb::arg("terms").none())
        .def("has_blanks", &BoundCorpus::has_blanks)
        .def("join_ngrams", &BoundCorpus::join_ngrams, nb::arg("min_n"), nb::arg("max_n"), nb::arg("on_progress").none())
        .def("read_beside", &BoundCorpus::read_beside, nb::arg("others"))
        .def_prop_ro("n_documents", &BoundCorpus::n_documents)
        .def_prop_ro("n_threads", &BoundCorpus::n_threads);
    nb::class_<Vocabulary>(module, "Vocabulary")
        .def(nb::init<>())
        .def("learn", &learn, nb::arg("corpus"), nb::kw_only(), nb::arg("max_n"), nb::arg("min_documents"),
             nb::arg("counts_occurrences"), nb::arg("on_progress").none())
        .def("apply", &apply, nb::arg("corpus"), nb::arg("on_progress").none())
        .def(
            "choose_columns",
            [](Vocabulary& self, std::size_t min_n, double max_documents, std::size_t n_threads) {
                run_interruptibly([&](Control& control) { self.choose_columns(min_n, max_documents, n_threads, control); });
            },
            nb::arg("min_n"), nb::arg("max_documents"), nb::arg("n_threads") = 1)
        .def(
            "keep_columns",
            [](Vocabulary& self, const Vector<std::uint8_t>& kept, std::size_t n_threads) {
                if (!self.has_columns()) throw std::invalid_argument("The columns of the vocabulary must be chosen first.");
                if (kept.shape(0) != self.n_columns()) throw std::invalid_argument("There must be one entry per column.");
                run_interruptibly([&](Control& control) { self.keep_columns(kept.data(), n_threads, control); });
            },
            nb::arg("kept"), nb::arg("n_threads") = 1)
        .def("document_counts", &document_counts)
        .def("occurrence_counts", &occurrence_counts)
        .def("weights", &weights_of, nb::arg("by_document_count").noconvert(), nb::arg("n_threads") = 1)
        .def("names", &names_of)
        .def_prop_ro("n_columns", &Vocabulary::n_columns)
        .def_prop_ro("n_terms", [](const Vocabulary& self) { return self.terms().size(); })
        .def("__getstate__", &state_of)
        .def("__setstate__", [](Vocabulary& self, const nb::tuple& state) { restore(&self, state); });
    nb::class_<MatrixOptions>(module, "MatrixOptions")
        .def(
            "__init__",
            [](MatrixOptions* self, bool sublinear_tf, bool binary, const std::string& norm, bool is_double) {
                new (self) MatrixOptions{sublinear_tf, binary, is_double, norm};
            },
            nb::kw_only(), nb::arg("sublinear_tf"), nb::arg("binary") = false, nb::arg("norm"), nb::arg("is_double") = false);
    module.def("tfidf_rows", &tfidf_rows, nb::arg("vocabularies"), nb::arg("corpora"), nb::kw_only(),
               nb::arg("idf").noconvert().none(), nb::arg("is_learned"), nb::arg("options"), nb::arg("on_progress").none());
    module.def("hashed_rows", &hashed_rows, nb::arg("corpora"), nb::kw_only(), nb::arg("sizes"), nb::arg("n_bits"),
               nb::arg("options"), nb::arg("on_progress").none());
}

}  // namespace rankplane
