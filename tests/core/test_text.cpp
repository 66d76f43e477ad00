// The path from documents to a matrix, on several threads: the same matrix for any number of them.
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.hpp"
#include "common/control.hpp"
#include "problems.hpp"
#include "text/corpus.hpp"
#include "text/hashing.hpp"
#include "text/tfidf.hpp"
#include "text/vocabulary.hpp"

namespace rankplane::testing {
namespace {

using namespace text;

// ASCII as it is; every other character a letter.
CodePoints make_code_points() {
    std::vector<std::uint8_t> properties(n_code_points, property::word);
    std::vector<std::uint32_t> mapped(n_code_points);
    std::iota(mapped.begin(), mapped.end(), 0U);
    for (std::uint32_t c = 0; c < 0x80; ++c) {
        const bool is_word = text::detail::is_ascii_word(static_cast<unsigned char>(c));
        properties[c] = is_word ? property::word : c == ' ' ? property::space : 0;
    }
    return CodePoints(properties.data(), mapped.data(), {}, true);
}

// Several blocks of documents, so that all threads have something to do.
std::vector<std::string> make_documents() {
    Uniform uniform(3);
    std::vector<std::string> documents;
    for (std::size_t d = 0; d < 160; ++d) {
        std::string text;
        const std::size_t n_words = d % 7 == 3 ? 0 : 2500;
        for (std::size_t i = 0; i < n_words; ++i) {
            const auto word = static_cast<std::size_t>(uniform() * uniform() * 400.0);
            text += (word % 9 == 0 ? "\xC3\xA9w" : word % 11 == 0 ? "a_long_word" : "w") + std::to_string(word) + " ";
        }
        documents.push_back(std::move(text));
    }
    return documents;
}

struct Written {
    std::vector<std::string> names;
    std::vector<std::int64_t> starts;
    std::vector<std::int32_t> columns;
    std::vector<float> values;
    bool operator==(const Written&) const = default;
};

Written written(text::Rows rows, std::vector<std::string> names) {
    const auto n = static_cast<std::size_t>(rows.starts.back());
    Written all{std::move(names), std::move(rows.starts), {}, {}};
    all.columns.assign(rows.columns.data(), rows.columns.data() + n);
    all.values.assign(rows.values.data(), rows.values.data() + n);
    return all;
}

class Reader {
  public:
    explicit Reader(const CodePoints& code_points) : code_points_(code_points), documents_(make_documents()) {
        views_.assign(documents_.begin(), documents_.end());
    }

    // In two parts, as batches come.
    Corpus read(std::size_t n_threads, Control& control) const {
        Corpus corpus(code_points_, {}, n_threads);
        const auto middle = views_.begin() + 100;
        corpus.add({views_.begin(), middle}, control);
        corpus.add({middle, views_.end()}, control);
        return corpus;
    }

    Written learn(std::size_t n_threads, std::size_t max_n) const {
        Control control;
        Corpus corpus = read(n_threads, control);
        Merged merged = corpus.merge(control);
        Vocabulary vocabulary;
        vocabulary.learn(corpus, std::move(merged.number_of), merged.strings, max_n, 3, true, control);
        vocabulary.choose_columns(1, 100.0, control);
        text::Rows rows = build_rows(corpus, VocabularyColumns(vocabulary), {}, vocabulary.n_entries(), control);
        return written(std::move(rows),
                       vocabulary.by_column<std::string>([&](std::size_t l, std::size_t i) { return vocabulary.name(l, i); }));
    }

    Written hash(std::size_t n_threads) const {
        Control control;
        Corpus corpus = read(n_threads, control);
        Merged merged = corpus.merge(control);
        corpus.rewrite(merged.number_of, control);
        const HashedColumns columns(merged.strings, 1, 2, 10);
        return written(build_rows(corpus, columns, {}, corpus.n_tokens() * 2, control), {});
    }

    // The first thread that finds the room too small must release those that wait for their turn.
    void write_too_much(std::size_t n_threads) const {
        Control control;
        Corpus corpus = read(n_threads, control);
        Merged merged = corpus.merge(control);
        corpus.rewrite(merged.number_of, control);
        build_rows(corpus, HashedColumns(merged.strings, 1, 2, 10), {}, 1000, control);
    }

    // A stop in the middle leaves the corpus as it was.
    void stop(std::size_t n_threads) const {
        Control control;
        Corpus corpus = read(n_threads, control);
        const std::size_t n_blocks = corpus.blocks().size();
        control.request_stop();
        CHECK(throws<Stopped>([&] { corpus.add(views_, control); }), "reading");
        CHECK(corpus.blocks().size() == n_blocks && corpus.n_documents() == views_.size(), "what was read stays");
        CHECK(throws<Stopped>([&] { corpus.rewrite({}, control); }), "rewriting");
    }

  private:
    const CodePoints& code_points_;
    std::vector<std::string> documents_;
    std::vector<std::string_view> views_;
};

}  // namespace

void test_text() {
    const CodePoints code_points = make_code_points();
    const Reader reader(code_points);
    const Written learnt = reader.learn(1, 3), hashed = reader.hash(1);
    CHECK(learnt.names.size() > 400 && learnt.values.size() > 10000, "there is something to compare");
    CHECK(std::is_sorted(learnt.names.begin(), learnt.names.end()), "columns are in alphabetical order");
    CHECK(reader.learn(1, 1000000000) == reader.learn(1, 2500), "n-grams longer than any document");
    for (const std::size_t n_threads : {2, 3}) {
        CHECK(reader.learn(n_threads, 3) == learnt, std::to_string(n_threads) + " threads");
        CHECK(reader.hash(n_threads) == hashed, std::to_string(n_threads) + " threads");
        CHECK(throws<std::length_error>([&] { reader.write_too_much(n_threads); }), std::to_string(n_threads) + " threads");
        reader.stop(n_threads);
    }
}

}  // namespace rankplane::testing
