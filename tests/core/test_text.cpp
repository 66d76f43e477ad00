// The path from documents to a matrix, on several threads: the same matrix for any number of them. And its parts, against slow
// ones.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
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
#include "text/interner.hpp"
#include "text/merged.hpp"
#include "text/pair_counts.hpp"
#include "text/pairs.hpp"
#include "text/reading.hpp"
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

Written written(text::Rows<float> rows, std::vector<std::string> names) {
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
        Vocabulary vocabulary;
        vocabulary.learn(corpus, corpus.merge(control), max_n, 3, true, control);
        vocabulary.choose_columns(1, 100.0, n_threads, control);
        text::Rows<float> rows = build_rows(corpus, VocabularyColumns(vocabulary), {}, vocabulary.n_entries(), control);
        std::vector<std::string> names;
        for (const Vocabulary::Place place : vocabulary.places_of_columns(n_threads, control))
            names.push_back(vocabulary.name(place));
        return written(std::move(rows), std::move(names));
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

// Batches of one to three numbers as text, which it counts as they come back.
struct CountingSource {
    struct Batch {
        std::vector<std::string> texts;
        std::vector<std::string_view> views() const { return {texts.begin(), texts.end()}; }
    };
    std::size_t n_batches, fails_at, n_made = 0, n_released = 0;

    void fill(std::vector<Batch>& batches, std::size_t n) {
        for (std::size_t i = 0; i < n && n_made < n_batches; ++i, ++n_made) {
            if (n_made == fails_at) throw std::domain_error("the source fails");
            batches.push_back({std::vector<std::string>(1 + n_made % 3, std::to_string(n_made))});
        }
    }
    void release(std::vector<Batch>& batches) {
        n_released += batches.size();
        batches.clear();
    }
};

void test_batches(std::size_t n_threads) {
    const std::string where = std::to_string(n_threads) + " threads";
    constexpr std::size_t never = 1000000;
    for (const std::size_t n_batches : {0, 1, 5, 300}) {
        Control control;
        CountingSource source{n_batches, never};
        std::vector<std::string> found(n_batches);
        read_batches(source, n_threads, control, [&](std::size_t number, const auto& views, std::size_t thread) {
            CHECK(thread < n_threads && views.size() == 1 + number % 3, where);
            return [&found, number, text = std::string(views[0])] { found[number] = text; };
        });
        bool is_each = true;
        for (std::size_t i = 0; i < n_batches; ++i) is_each = is_each && found[i] == std::to_string(i);
        CHECK(is_each && source.n_released == n_batches, where + ", " + std::to_string(n_batches) + " batches");
    }
    const auto read = [&](std::size_t source_fails_at, std::size_t work_fails_at) {
        Control control;
        CountingSource source{300, source_fails_at};
        read_batches(source, n_threads, control, [&](std::size_t number, const auto&, std::size_t) {
            if (number == work_fails_at) throw std::out_of_range("the work fails");
            return [] {};
        });
    };
    for (const std::size_t at : {0, 1, 150, 299}) {
        CHECK(throws<std::domain_error>([&] { read(at, never); }), where + ", failing source");
        CHECK(throws<std::out_of_range>([&] { read(never, at); }), where + ", failing work");
    }
}

void test_merge(std::size_t n_threads) {
    Control control;
    std::vector<Interner> interners(5);
    Uniform uniform(11);
    for (std::size_t o = 0; o < interners.size(); ++o) {
        // Also none at all, and long ones, which tables hold by their hash.
        for (std::size_t i = 0; i < o * 2000; ++i) {
            const std::string number = std::to_string(static_cast<std::size_t>(uniform() * 6000));
            interners[o].intern(i % 3 == 0 ? "a long word " + number : number);
        }
    }
    std::vector<const Interner*> pointers;
    for (const Interner& interner : interners) pointers.push_back(&interner);
    const Merged merged = merge(pointers, n_threads, control);
    const std::set<std::string_view> distinct(merged.strings.begin(), merged.strings.end());
    CHECK(distinct.size() == merged.strings.size(), "each string once");
    bool is_right = true;
    std::set<std::uint32_t> used;
    for (std::size_t o = 0; o < interners.size(); ++o) {
        for (std::size_t i = 0; i < interners[o].size(); ++i) {
            const std::uint32_t number = merged.number_of[o][i];
            is_right = is_right && merged.strings.at(number) == interners[o][i];
            used.insert(number);
        }
    }
    CHECK(is_right && used.size() == merged.strings.size(), std::to_string(n_threads) + " threads");
}

// Enough tokens for several rounds, with pairs far more frequent than others.
void test_pair_counts(const CodePoints& code_points, std::size_t n_threads) {
    Control control;
    Corpus corpus(code_points, {}, n_threads);
    Uniform uniform(5);
    std::vector<std::string> documents(90);
    for (std::string& document : documents) {
        for (std::size_t i = 0; i < 12000; ++i) {
            document += std::to_string(static_cast<std::size_t>(uniform() * uniform() * uniform() * 60)) + " ";
        }
    }
    corpus.add({documents.begin(), documents.end()}, control);
    Merged merged = corpus.merge(control);
    // One term in ten is unknown.
    for (std::vector<std::uint32_t>& map : merged.number_of) {
        for (std::uint32_t& number : map) number = number % 10 == 3 ? none : number;
    }
    corpus.rewrite(merged.number_of, control);
    struct Count {
        std::uint32_t last_document = none, n_documents = 0;
        std::uint64_t n_occurrences = 0;
    };
    std::map<std::uint64_t, Count> expected;
    std::vector<const std::uint32_t*> prefixes;
    for (const text::Block& block : corpus.blocks()) {
        prefixes.push_back(block.ids.data());
        for (std::size_t d = 0; d < block.n_documents(); ++d) {
            const auto document = static_cast<std::uint32_t>(block.first_document + d);
            for (std::size_t i = block.begin_of(d); i + 1 < block.ends[d]; ++i) {
                if (block.ids[i] == none || block.ids[i + 1] == none) continue;
                Count& count = expected[pair_key(block.ids[i], block.ids[i + 1])];
                count.n_documents += count.last_document != document;
                count.last_document = document;
                ++count.n_occurrences;
            }
        }
    }
    std::erase_if(expected, [](const auto& item) { return item.second.n_documents < 3; });
    const PairCounts found = count_pairs(corpus, prefixes, merged.strings.size(), 2, 3, true, control);
    bool is_right = found.keys.size() == expected.size();
    std::size_t i = 0;
    for (const auto& [key, count] : expected) {
        is_right = is_right && found.keys[i] == key && found.n_documents[i] == count.n_documents &&
                   found.n_occurrences[i] == count.n_occurrences;
        ++i;
    }
    CHECK(corpus.n_tokens() > std::size_t{1} << 20 && is_right, std::to_string(n_threads) + " threads");
}

void test_places() {
    Places places(4, 100);
    places.finish(2, 30);
    CHECK(places.of(2) == Places::unknown, "blocks before it are not finished");
    places.finish(0, 20);
    CHECK(places.of(0) == 0 && places.of(1) == Places::unknown && places.of(2) == Places::unknown, "the first is");
    places.finish(1, 0);
    CHECK(places.of(1) == 20 && places.of(2) == 20 && places.of(3) == Places::unknown, "then those that waited");
    CHECK(throws<std::length_error>([&] { places.finish(3, 51); }), "one entry too many");
}

}  // namespace

void test_text() {
    const CodePoints code_points = make_code_points();
    const Reader reader(code_points);
    const Written learnt = reader.learn(1, 3), hashed = reader.hash(1);
    CHECK(learnt.names.size() > 400 && learnt.values.size() > 10000, "there is something to compare");
    CHECK(std::is_sorted(learnt.names.begin(), learnt.names.end()), "columns are in alphabetical order");
    CHECK(reader.learn(1, 1000000000) == reader.learn(1, 2500), "n-grams longer than any document");
    test_places();
    for (const std::size_t n_threads : {1, 2, 7}) {
        test_batches(n_threads);
        test_merge(n_threads);
    }
    for (const std::size_t n_threads : {1, 3}) test_pair_counts(code_points, n_threads);
    // More threads than blocks, too.
    for (const std::size_t n_threads : {2, 3, 40}) {
        CHECK(reader.learn(n_threads, 3) == learnt, std::to_string(n_threads) + " threads");
        CHECK(reader.hash(n_threads) == hashed, std::to_string(n_threads) + " threads");
        CHECK(throws<std::length_error>([&] { reader.write_too_much(n_threads); }), std::to_string(n_threads) + " threads");
        reader.stop(n_threads);
    }
}

}  // namespace rankplane::testing
