// A corpus as Python sees it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/documents.hpp"
#include "bindings/interruptible.hpp"
#include "bindings/vocabulary.hpp"
#include "common/parallel.hpp"
#include "common/sharing.hpp"
#include "text/corpus.hpp"
#include "text/merged.hpp"

namespace rankplane::text {

namespace nb = nanobind;

// Runs work that can be interrupted, and passes its progress on to Python.
template <class Work>
void run_with_progress(Control& control, const nb::object& on_progress, const Work& work, std::size_t n_done_before = 0) {
    const auto pass_on = [&] {
        if (!on_progress.is_none()) on_progress(n_done_before + control.n_done());
    };
    run_interruptibly(control, pass_on, work);
}

// A corpus with its stage on the way from documents to terms.
class BoundCorpus {
  public:
    BoundCorpus(const CodePoints& code_points, const TokenRules& rules, std::size_t n_threads)
        : corpus_(code_points, rules, std::min(n_threads, max_threads)) {}
    BoundCorpus(const BoundCorpus&) = delete;
    BoundCorpus& operator=(const BoundCorpus&) = delete;

    Corpus& corpus() { return corpus_; }
    std::size_t n_documents() const { return corpus_.n_documents(); }

    void add(const nb::list& documents, const std::string& encoding, const std::string& errors, const nb::object& on_progress,
             bool as_one_block) {
        check_stage(Stage::reading);
        read(ListSource(documents, encoding, errors, as_one_block ? std::numeric_limits<std::size_t>::max() : batch_bytes),
             on_progress);
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
        const auto next = [&]() -> std::shared_ptr<const ArrowArray> {
            // Batches keep the array, and whichever is the last to be freed may be on any thread.
            std::shared_ptr<Released<ArrowArray>> array(new Released<ArrowArray>(), [](Released<ArrowArray>* unused) {
                const nb::gil_scoped_acquire locked;
                delete unused;
            });
            check(*stream, stream->get_next(stream, array.get()));
            return array->release == nullptr ? nullptr : array;
        };
        read(ArrowSource(kind, next), on_progress);
        return true;
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
        // The capsule keeps it.
        std::shared_ptr<const ArrowArray> only(array, [](const ArrowArray*) {});
        read(ArrowSource(kind, [&] { return std::exchange(only, nullptr); }), on_progress);
        return true;
    }

    // Each part is a text and two arrays: its document i is the UTF-8 from starts[i] up to ends[i].
    void add_pieces(const nb::list& parts, const nb::object& on_progress) {
        check_stage(Stage::reading);
        std::vector<std::string_view> views;
        for (nb::handle part : parts) {
            const auto text = nb::cast<Vector<std::uint8_t>>(part[0], false);
            const auto starts = nb::cast<Vector<std::int64_t>>(part[1], false),
                       ends = nb::cast<Vector<std::int64_t>>(part[2], false);
            if (starts.shape(0) != ends.shape(0)) throw std::invalid_argument("There must be as many starts as ends.");
            for (std::size_t i = 0; i < starts.shape(0); ++i) {
                const std::int64_t start = starts.data()[i], end = ends.data()[i];
                if (start < 0 || end < start || static_cast<std::size_t>(end) > text.shape(0))
                    throw std::invalid_argument("Documents must lie within their text.");
                views.emplace_back(reinterpret_cast<const char*>(text.data()) + start, static_cast<std::size_t>(end - start));
            }
        }
        read(ViewSource(views), on_progress);
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

    // Merges the tokens of all threads and returns them.
    nb::list tokens() {
        check_stage(Stage::reading);
        merge();
        nb::list all;
        for (std::size_t i = 0; i < merged_.strings.size(); ++i) {
            check_signals(i);
            all.append(to_str(merged_.strings[i]));
        }
        return all;
    }

    // From now on, documents are added to these as well.
    void read_beside(const std::vector<nb::object>& others) {
        check_stage(Stage::reading);
        for (const nb::object& other : others) {
            auto& corpus = nb::cast<BoundCorpus&>(other);
            corpus.check_stage(Stage::reading);
            if (corpus.corpus_.n_threads() != corpus_.n_threads() || corpus.n_documents() != n_documents() || &corpus == this) {
                throw std::invalid_argument("Corpora that are read together must have as many threads and documents.");
            }
            beside_.push_back(other);
        }
    }

    // Turns tokens into terms: those in stop_words are dropped; token i of tokens() becomes terms[i], or is dropped for None.
    void map_tokens(const std::vector<std::string>& stop_words, const std::optional<nb::list>& terms) {
        check_stage(Stage::reading);
        merge();
        std::vector<std::uint32_t> term_of;
        if (!stop_words.empty()) {
            Interner stops;
            for (const std::string& word : stop_words) stops.intern(word);
            term_of.resize(merged_.strings.size());
            run_interruptibly([&](Control& control) {
                parallel_ranges(term_of.size(), n_threads(), control, [&](std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i) {
                        term_of[i] = stops.find(merged_.strings[i]) == none ? static_cast<std::uint32_t>(i) : dropped;
                    }
                });
            });
        }
        if (terms) {
            if (nb::len(*terms) != merged_.strings.size()) throw std::invalid_argument("There must be one term per token.");
            Interner strings;
            term_of.resize(merged_.strings.size());
            for (std::size_t i = 0; i < term_of.size(); ++i) {
                check_signals(i);
                const nb::object term = (*terms)[i];
                if (term_of[i] != dropped) term_of[i] = intern_term(term, strings);
            }
            merged_.take_strings(std::move(strings));
        }
        if (!term_of.empty()) {
            run_interruptibly([&](Control& control) {
                parallel_for(merged_.number_of.size(), n_threads(), control, [&](std::size_t owner) {
                    for (std::uint32_t& number : merged_.number_of[owner]) number = term_of[number];
                });
            });
        }
        stage_ = Stage::mapped;
    }

    // Whether any term has a character that sorts before, or is, the space that joins n-grams.
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
        run_with_progress(control, on_progress, [&] { corpus_.join_ngrams(merged_, min_n, max_n, control); });
        is_merged_ = false;
        merge();
        stage_ = Stage::mapped;
    }

    // Checks the stage before work on the documents. If the work fails, the corpus is left in no stage, since it is incomplete.
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

    // The terms; number_of: [owner][token] -> term or dropped.
    Merged& merged() { return merged_; }
    std::size_t n_threads() const { return corpus_.n_workers(); }

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

    template <class Source> void read(Source source, const nb::object& on_progress) {
        // Many short calls, none of which is long enough to check for Ctrl-C itself.
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        std::vector<Corpus*> corpora{&corpus_};
        is_merged_ = false;
        for (const nb::object& other : beside_) {
            auto& bound = nb::cast<BoundCorpus&>(other);
            bound.check_stage(Stage::reading);
            bound.is_merged_ = false;
            corpora.push_back(&bound.corpus_);
        }
        Control control;
        run_with_progress(control, on_progress, [&] { Corpus::read_together(corpora, source, control); }, corpus_.n_documents());
        if (!on_progress.is_none()) on_progress(corpus_.n_documents());
    }

    static void check(ArrowStream& stream, int code) {
        if (code == 0) return;
        const char* const message = stream.get_last_error(&stream);
        throw std::runtime_error(message == nullptr ? "The Arrow stream could not be read." : message);
    }

    Corpus corpus_;
    std::vector<nb::object> beside_;
    Merged merged_;
    bool is_merged_ = false;
    Stage stage_ = Stage::reading;
    std::size_t n_terms_ = 0;
};

}  // namespace rankplane::text
