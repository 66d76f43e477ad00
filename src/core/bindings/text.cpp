// The text part of the core as Python sees it.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/documents.hpp"
#include "bindings/topics.hpp"
#include "bindings/vocabulary.hpp"
#include "bindings/watch.hpp"
#include "text/corpus.hpp"
#include "text/hashing.hpp"
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

// Runs work that can be interrupted, and passes its progress on to Python.
template <class Work> void watch(Control& control, const nb::object& on_progress, const Work& work, std::size_t n_done_before = 0) {
    const auto pass_on = [&] {
        if (!on_progress.is_none()) on_progress(n_done_before + control.n_done());
    };
    run_interruptibly(control, pass_on, work);
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

// A corpus on its way from documents to terms.
class BoundCorpus {
  public:
    BoundCorpus(const CodePoints& code_points, const TokenRules& rules, std::size_t n_threads)
        : corpus_(code_points, rules, std::min(n_threads, max_threads)) {}

    Corpus& corpus() { return corpus_; }
    const Interner& strings() const { return merged_.strings; }
    std::size_t n_documents() const { return corpus_.n_documents(); }

    // Views of about this many bytes are gathered at a time, to bound the memory of those that had to be copied.
    void add(const nb::list& documents, const std::string& encoding, const std::string& errors, const nb::object& on_progress) {
        constexpr std::size_t n_bytes_at_once = std::size_t{1} << 24;
        check_stage(Stage::reading);
        Documents gathered(encoding.c_str(), errors.c_str());
        for (std::size_t i = 0; i < nb::len(documents); ++i) {
            gathered.add(documents[i]);
            if (gathered.n_bytes() >= n_bytes_at_once) add_gathered(gathered, on_progress);
        }
        add_gathered(gathered, on_progress);
    }

    // False if the column does not hold text.
    bool add_arrow_stream(const nb::capsule& capsule, const nb::object& on_progress) {
        auto* const stream = static_cast<ArrowStream*>(PyCapsule_GetPointer(capsule.ptr(), "arrow_array_stream"));
        if (stream == nullptr) throw nb::python_error();
        check_stage(Stage::reading);
        check_unused(*stream);
        Released<ArrowSchema> schema;
        check(*stream, stream->get_schema(stream, &schema));
        const ArrowText kind = text_of(schema);
        if (kind == ArrowText::none) return false;
        while (true) {
            Released<ArrowArray> array;
            check(*stream, stream->get_next(stream, &array));
            if (array.release == nullptr) return true;
            add_views(arrow_views(array, kind), on_progress);
        }
    }

    bool add_arrow_array(const nb::capsule& schema_capsule, const nb::capsule& array_capsule, const nb::object& on_progress) {
        const auto* const schema = static_cast<ArrowSchema*>(PyCapsule_GetPointer(schema_capsule.ptr(), "arrow_schema"));
        if (schema == nullptr) throw nb::python_error();
        const auto* const array = static_cast<ArrowArray*>(PyCapsule_GetPointer(array_capsule.ptr(), "arrow_array"));
        if (array == nullptr) throw nb::python_error();
        check_stage(Stage::reading);
        check_unused(*schema);
        check_unused(*array);
        const ArrowText kind = text_of(*schema);
        if (kind == ArrowText::none) return false;
        add_views(arrow_views(*array, kind), on_progress);
        return true;
    }

    void add_tokens(const nb::list& documents) {
        check_stage(Stage::reading);
        Documents tokens("utf-8", "strict");
        std::vector<std::size_t> ends;
        for (nb::handle document : documents) {
            for (nb::handle token : document) {
                if (!PyUnicode_Check(token.ptr())) throw nb::type_error("tokenizer must return a list of str.");
                tokens.add_str(token);
            }
            ends.push_back(tokens.views().size());
        }
        is_merged_ = false;
        corpus_.add_tokens(tokens.views(), std::move(ends));
    }

    // Brings the tokens of all threads together and returns them.
    nb::list tokens() {
        check_stage(Stage::reading);
        merge();
        nb::list all;
        for (std::size_t i = 0; i < merged_.strings.size(); ++i) {
            hear_signals(i);
            all.append(to_str(merged_.strings[i]));
        }
        return all;
    }

    // Tokens become terms: those in stop_words vanish; token i of tokens() becomes terms[i], or vanishes for None.
    void map_tokens(const std::vector<std::string>& stop_words, const std::optional<nb::list>& terms) {
        check_stage(Stage::reading);
        merge();
        std::vector<std::uint32_t> term_of(merged_.strings.size());
        for (std::uint32_t i = 0; i < term_of.size(); ++i) term_of[i] = i;
        for (const std::string& word : stop_words) {
            const std::uint32_t found = merged_.strings.find(word);
            if (found != none) term_of[found] = dropped;
        }
        if (terms) {
            if (nb::len(*terms) != term_of.size()) throw std::invalid_argument("There must be one term per token.");
            Interner strings;
            for (std::size_t i = 0; i < term_of.size(); ++i) {
                hear_signals(i);
                const nb::object term = (*terms)[i];
                if (term_of[i] == dropped) continue;
                term_of[i] = intern_term(term, strings);
            }
            merged_.strings = std::move(strings);
        }
        for (std::vector<std::uint32_t>& map : merged_.number_of) {
            for (std::uint32_t& number : map) number = term_of[number];
        }
        stage_ = Stage::mapped;
    }

    // Whether some term holds a character that sorts before, or is, the blank that joins n-grams.
    bool has_blanks() const {
        for (const std::vector<std::uint32_t>& map : merged_.number_of) {
            for (const std::uint32_t term : map) {
                if (term == dropped) continue;
                for (const char c : merged_.strings[term]) {
                    if (static_cast<unsigned char>(c) <= ' ') return true;
                }
            }
        }
        return false;
    }

    void join_ngrams(std::size_t min_n, std::size_t max_n, const nb::object& on_progress) {
        leave(Stage::mapped);
        Control control;
        watch(control, on_progress, [&] { corpus_.join_ngrams(term_of(), strings(), min_n, max_n, control); });
        is_merged_ = false;
        merge();
        stage_ = Stage::mapped;
    }

    // Work on the documents begins in a stage and, should it fail, ends in none: they are half done then.
    enum class Stage { reading, mapped, rewritten, used };
    void leave(Stage stage) {
        check_stage(stage);
        stage_ = Stage::used;
    }
    // Its tokens now are terms of a vocabulary of so many.
    void become_terms(std::size_t n_terms) {
        stage_ = Stage::rewritten;
        n_terms_ = n_terms;
    }
    std::size_t n_terms() const { return n_terms_; }

    // [owner][token] -> term, dropped or none.
    std::vector<std::vector<std::uint32_t>>& term_of() { return merged_.number_of; }

  private:
    void check_stage(Stage stage) const {
        if (stage_ != stage)
            throw std::invalid_argument("A corpus must be read, mapped, learnt from or applied, and written, in turn.");
    }

    template <class Structure> static void check_unused(const Structure& structure) {
        if (structure.release == nullptr) throw std::invalid_argument("The Arrow data must not have been released.");
    }

    void merge() {
        if (is_merged_) return;
        run_interruptibly([&](Control& control) { merged_ = corpus_.merge(control); });
        is_merged_ = true;
    }

    static std::uint32_t intern_term(const nb::object& term, Interner& strings) {
        if (term.is_none()) return dropped;
        if (!PyUnicode_Check(term.ptr())) throw nb::type_error("stemmer must return a str or None for every token.");
        Documents text("utf-8", "strict");
        text.add_str(term);
        return text.views()[0].empty() ? dropped : strings.intern(text.views()[0]);
    }

    void add_gathered(Documents& gathered, const nb::object& on_progress) {
        add_views(gathered.views(), on_progress);
        gathered.clear();
    }

    void add_views(const std::vector<std::string_view>& views, const nb::object& on_progress) {
        if (views.empty()) return;
        // Many short pieces of work, none of which is long enough to look for itself.
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        is_merged_ = false;
        Control control;
        watch(control, on_progress, [&] { corpus_.add(views, control); }, corpus_.n_documents());
        if (!on_progress.is_none()) on_progress(corpus_.n_documents());
    }

    static void check(ArrowStream& stream, int code) {
        if (code == 0) return;
        const char* const message = stream.get_last_error(&stream);
        throw std::runtime_error(message == nullptr ? "The Arrow stream could not be read." : message);
    }

    Corpus corpus_;
    Merged merged_;
    bool is_merged_ = false;
    Stage stage_ = Stage::reading;
    std::size_t n_terms_ = 0;
};

Weighting make_weighting(bool is_sublinear, const std::optional<Vector<double>>& idf, const std::string& norm,
                         std::size_t n_columns) {
    if (idf && idf->shape(0) != n_columns) throw std::invalid_argument("idf must have one entry per column.");
    return {is_sublinear, idf ? idf->data() : nullptr, norm == "l2" ? Norm::l2 : norm == "l1" ? Norm::l1 : Norm::none};
}

nb::tuple to_csr(Rows& rows) {
    const auto n_entries = static_cast<std::size_t>(rows.starts.back());
    return nb::make_tuple(to_numpy(std::move(rows.starts)), take_numpy(rows.columns, n_entries),
                          take_numpy(rows.values, n_entries));
}

void learn(Vocabulary& vocabulary, BoundCorpus& corpus, std::size_t max_n, std::size_t min_documents, bool counts_occurrences,
           const nb::object& on_progress) {
    corpus.leave(BoundCorpus::Stage::mapped);
    Control control;
    watch(control, on_progress, [&] {
        vocabulary.learn(corpus.corpus(), std::move(corpus.term_of()), corpus.strings(), max_n, min_documents, counts_occurrences,
                         control);
#if defined(__GLIBC__)
        // The tables of the count are freed; the matrix is about to need as much.
        malloc_trim(0);
#endif
    });
    corpus.become_terms(vocabulary.terms().size());
}

// Terms of the corpus become terms of the vocabulary; what it does not know stands between them.
void apply(Vocabulary& vocabulary, BoundCorpus& corpus, const nb::object& on_progress) {
    corpus.leave(BoundCorpus::Stage::mapped);
    // With the GIL, since several threads may transform with the same vocabulary.
    const Interner& terms = vocabulary.searchable_terms();
    Control control;
    watch(control, on_progress, [&] {
        std::vector<std::uint32_t> known(corpus.strings().size());
        for (std::size_t i = 0; i < known.size(); ++i) {
            if (i % 0x10000 == 0) control.check();
            known[i] = terms.find(corpus.strings()[i]);
        }
        for (std::vector<std::uint32_t>& map : corpus.term_of()) {
            for (std::uint32_t& term : map) term = term == dropped ? dropped : known[term];
        }
        corpus.corpus().rewrite(corpus.term_of(), control);
    });
    corpus.become_terms(terms.size());
}

nb::tuple rows_of(const Vocabulary& vocabulary, BoundCorpus& corpus, bool is_sublinear, const std::optional<Vector<double>>& idf,
                  const std::string& norm, bool is_learned, const nb::object& on_progress) {
    const Weighting weighting = make_weighting(is_sublinear, idf, norm, vocabulary.n_columns());
    if (!vocabulary.has_columns() || corpus.n_terms() > vocabulary.levels()[0].size()) {
        throw std::invalid_argument("The columns of the vocabulary must be chosen, and the corpus be in its terms.");
    }
    corpus.leave(BoundCorpus::Stage::rewritten);
    const std::size_t capacity =
        is_learned ? vocabulary.n_entries() : corpus.corpus().n_tokens() * std::max<std::size_t>(1, vocabulary.levels().size());
    std::optional<Rows> rows;
    Control control;
    watch(control, on_progress,
          [&] { rows.emplace(build_rows(corpus.corpus(), VocabularyColumns(vocabulary), weighting, capacity, control)); });
    return to_csr(*rows);
}

nb::tuple hashed_rows(BoundCorpus& corpus, std::size_t min_n, std::size_t max_n, unsigned n_bits, bool is_sublinear,
                      const std::string& norm, const nb::object& on_progress) {
    if (min_n < 1 || min_n > max_n) throw std::invalid_argument("min_n and max_n must be a range from 1 on.");
    if (n_bits < 1 || n_bits > 30) throw std::invalid_argument("n_bits must be from 1 to 30.");
    corpus.leave(BoundCorpus::Stage::mapped);
    const Weighting weighting = make_weighting(is_sublinear, std::nullopt, norm, 0);
    std::optional<Rows> rows;
    Control control;
    watch(control, on_progress, [&] {
        corpus.corpus().rewrite(corpus.term_of(), control);
        const HashedColumns columns(corpus.strings(), min_n, max_n, n_bits);
        std::size_t capacity = 0;
        for (const Block& block : corpus.corpus().blocks()) {
            for (std::size_t d = 0; d < block.n_documents(); ++d) capacity += columns.count(block.ends[d] - block.begin_of(d));
        }
        rows.emplace(build_rows(corpus.corpus(), columns, weighting, capacity, control));
    });
    return to_csr(*rows);
}

nb::list names_of(const Vocabulary& vocabulary) {
    const auto places = vocabulary.by_column<std::pair<std::size_t, std::size_t>>(
        [](std::size_t level, std::size_t i) { return std::pair{level, i}; });
    nb::list names;
    for (const auto& [level, i] : places) {
        hear_signals(nb::len(names));
        names.append(to_str(vocabulary.name(level, i)));
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
        .def("add", &BoundCorpus::add, nb::arg("documents"), nb::arg("encoding"), nb::arg("errors"), nb::arg("on_progress").none())
        .def("add_arrow_stream", &BoundCorpus::add_arrow_stream, nb::arg("stream"), nb::arg("on_progress").none())
        .def("add_arrow_array", &BoundCorpus::add_arrow_array, nb::arg("schema"), nb::arg("array"), nb::arg("on_progress").none())
        .def("add_tokens", &BoundCorpus::add_tokens, nb::arg("documents"))
        .def("tokens", &BoundCorpus::tokens)
        .def("map_tokens", &BoundCorpus::map_tokens, nb::arg("stop_words"), nb::arg("terms").none())
        .def("has_blanks", &BoundCorpus::has_blanks)
        .def("join_ngrams", &BoundCorpus::join_ngrams, nb::arg("min_n"), nb::arg("max_n"), nb::arg("on_progress").none())
        .def("hashed_rows", &hashed_rows, nb::kw_only(), nb::arg("min_n"), nb::arg("max_n"), nb::arg("n_bits"),
             nb::arg("sublinear_tf"), nb::arg("norm"), nb::arg("on_progress").none())
        .def_prop_ro("n_documents", &BoundCorpus::n_documents);
    nb::class_<Vocabulary>(module, "Vocabulary")
        .def(nb::init<>())
        .def("learn", &learn, nb::arg("corpus"), nb::kw_only(), nb::arg("max_n"), nb::arg("min_documents"),
             nb::arg("counts_occurrences"), nb::arg("on_progress").none())
        .def("apply", &apply, nb::arg("corpus"), nb::arg("on_progress").none())
        .def("rows", &rows_of, nb::arg("corpus"), nb::kw_only(), nb::arg("sublinear_tf"), nb::arg("idf").noconvert().none(),
             nb::arg("norm"), nb::arg("is_learned"), nb::arg("on_progress").none())
        .def(
            "choose_columns",
            [](Vocabulary& self, std::size_t min_n, double max_documents) {
                run_interruptibly([&](Control& control) { self.choose_columns(min_n, max_documents, control); });
            },
            nb::arg("min_n"), nb::arg("max_documents"))
        .def("keep_columns",
             [](Vocabulary& self, const Vector<std::uint8_t>& kept) {
                 if (!self.has_columns()) throw std::invalid_argument("The columns of the vocabulary must be chosen first.");
                 if (kept.shape(0) != self.n_columns()) throw std::invalid_argument("There must be one entry per column.");
                 run_interruptibly([&](Control& control) { self.keep_columns(kept.data(), control); });
             })
        .def("document_counts",
             [](const Vocabulary& self) {
                 return to_numpy(self.by_column<std::uint32_t>(
                     [&](std::size_t level, std::size_t i) { return self.levels()[level].n_documents[i]; }));
             })
        .def("occurrence_counts",
             [](const Vocabulary& self) {
                 return to_numpy(self.by_column<std::uint64_t>(
                     [&](std::size_t level, std::size_t i) { return self.levels()[level].n_occurrences.at(i); }));
             })
        .def("names", &names_of)
        .def_prop_ro("n_columns", &Vocabulary::n_columns)
        .def_prop_ro("n_terms", [](const Vocabulary& self) { return self.terms().size(); })
        .def("__getstate__", &state_of)
        .def("__setstate__", [](Vocabulary& self, const nb::tuple& state) { restore(&self, state); });
}

}  // namespace rankplane
