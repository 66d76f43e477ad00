// Arbitrary bytes through the tokenizer and the whole path to a matrix. Each answer is compared with a slow, obvious one.
//
// Clang brings libFuzzer. For other compilers there is a main below that is guided by coverage too; it understands
// -max_total_time=, -seed= and the name of an input to repeat.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "text/corpus.hpp"
#include "text/hashing.hpp"
#include "text/tfidf.hpp"
#include "text/vocabulary.hpp"

using rankplane::Control;
using namespace rankplane::text;

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "failed: %s\n", what);
    std::abort();
}

// Made-up rules that exercise every kind of entry: letters of 1 to 4 bytes, expansions, deletions, spaces, cased and ignorable.
struct Table {
    std::vector<std::uint8_t> properties = std::vector<std::uint8_t>(n_code_points);
    std::vector<std::uint32_t> mapped = std::vector<std::uint32_t>(n_code_points);
    std::vector<std::vector<std::uint32_t>> sequences{
        {}, {'i', 0x307}, std::vector<std::uint32_t>(18, 0x1F600), {0x4E00, ' ', '!'}};

    Table() {
        for (std::uint32_t c = 0; c < n_code_points; ++c) {
            const bool is_letter = c < 0x80 ? detail::is_ascii_word(static_cast<unsigned char>(c)) : c % 5 != 0;
            const bool is_space = c == ' ' || (c >= 9 && c <= 13) || c == 0x2003;
            properties[c] = is_space ? property::space : is_letter ? property::word : 0;
            mapped[c] = c >= 'A' && c <= 'Z' ? c + 32 : c;
            if (c >= 0x80 && c % 7 == 1) properties[c] |= property::cased;
            if (c >= 0x80 && c % 7 == 2) properties[c] |= property::ignorable;
            if (c < 0x80 && is_letter) properties[c] |= property::cased;
            if (c >= 0x80 && c % 97 == 3) mapped[c] = n_code_points + c % 4;
        }
        mapped[capital_sigma] = small_sigma;
        mapped[0x212A] = 'k';
        mapped[0xFF01] = '!';
    }
};

const Table& table() {
    static const Table made;
    return made;
}

const CodePoints& code_points() {
    static const CodePoints made(table().properties.data(), table().mapped.data(), table().sequences, true);
    return made;
}

std::vector<std::uint32_t> decode_all(std::string_view text) {
    const auto* at = reinterpret_cast<const unsigned char*>(text.data());
    const unsigned char* const end = at + text.size();
    std::vector<std::uint32_t> all;
    while (at < end) {
        const Decoded next = decode(at, end);
        require(next.n_bytes >= 1 && next.n_bytes <= static_cast<std::size_t>(end - at), "a character stays inside the text");
        all.push_back(next.code_point);
        at += next.n_bytes;
    }
    return all;
}

bool is_final(const std::vector<std::uint32_t>& all, std::size_t i) {
    const auto has = [&](std::size_t k, std::uint8_t bit) { return (table().properties[all[k]] & bit) != 0; };
    std::size_t before = i;
    while (before > 0 && has(before - 1, property::ignorable)) --before;
    if (before == 0 || !has(before - 1, property::cased)) return false;
    std::size_t after = i + 1;
    while (after < all.size() && has(after, property::ignorable)) ++after;
    return after == all.size() || !has(after, property::cased);
}

std::vector<std::uint32_t> normalize_slowly(std::string_view text) {
    const std::vector<std::uint32_t> all = decode_all(text);
    std::vector<std::uint32_t> out;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::uint32_t c = all[i] == capital_sigma && is_final(all, i) ? final_sigma : all[i];
        const std::uint32_t to = table().mapped[c];
        if (to < n_code_points) {
            out.push_back(to);
        } else {
            for (const std::uint32_t part : table().sequences[to - n_code_points]) out.push_back(part);
        }
    }
    return out;
}

std::vector<std::string> words_slowly(std::string_view text, std::size_t min_length, const Marks& marks) {
    std::vector<std::string> words;
    std::string word;
    std::size_t length = 0;
    const auto finish = [&] {
        if (length >= min_length && length > 0) words.push_back(word);
        word.clear();
        length = 0;
    };
    for (const std::uint32_t c : normalize_slowly(text)) {
        unsigned char bytes[4];
        const std::uint32_t n = encode(c, bytes);
        if ((table().properties[c] & property::word) != 0) {
            word.append(reinterpret_cast<char*>(bytes), n);
            ++length;
            continue;
        }
        finish();
        if (c < 0x80 && marks.has(static_cast<unsigned char>(c))) words.emplace_back(1, static_cast<char>(c));
    }
    finish();
    return words;
}

void check_words(std::string_view text, std::size_t min_length, bool has_marks) {
    TokenRules rules;
    rules.min_length = min_length;
    if (has_marks) {
        rules.marks.signs[0] = '!';
        rules.marks.signs[1] = '?';
        rules.marks.n_signs = 2;
    }
    Tokenizer tokenizer(code_points(), rules);
    std::vector<std::string> found;
    Control control;
    tokenizer.tokenize(text, control, [&](const char* bytes, const std::vector<Span>& spans) {
        for (const Span span : spans) found.emplace_back(bytes + span.begin, span.size);
    });
    require(found == words_slowly(text, min_length, rules.marks), "words are those of the slow tokenizer");
}

void check_characters(std::string_view text, Analyzer analyzer) {
    TokenRules rules;
    rules.analyzer = analyzer;
    rules.min_n = 1 + text.size() % 7;  // words may be shorter
    rules.max_n = rules.min_n + text.size() % 3;
    Tokenizer tokenizer(code_points(), rules);
    Control control;
    std::vector<std::string> found;
    tokenizer.tokenize(text, control, [&](const char* bytes, const std::vector<Span>& spans) {
        for (const Span span : spans) {
            const std::size_t n = decode_all({bytes + span.begin, span.size}).size();
            require(n >= 1 && n <= rules.max_n, "an n-gram has at most n characters");
            found.emplace_back(bytes + span.begin, span.size);
        }
    });
    require(found.size() == tokenizer.counts().size(), "every n-gram has a count");
    require(std::adjacent_find(found.begin(), found.end(), std::greater_equal<>()) == found.end(), "n-grams rise, each once");
}

void check_matrix(std::string_view text) {
    std::vector<std::string_view> documents;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        documents.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    const std::size_t n_threads = 1 + text.size() % 3, max_n = 1 + text.size() % 4, min_documents = 1 + text.size() % 2;
    Control control;
    Corpus corpus(code_points(), {}, n_threads);
    corpus.add(documents, control);
    Vocabulary vocabulary;
    vocabulary.learn(corpus, corpus.merge(control), max_n, min_documents, true, control);
    vocabulary.choose_columns(1, 1e9, n_threads, control);

    // Columns and entries, counted with sets of joined strings.
    std::vector<std::set<std::string>> ngrams(documents.size());
    std::set<std::string> all;
    for (std::size_t d = 0; d < documents.size(); ++d) {
        const std::vector<std::string> words = words_slowly(documents[d], 1, {});
        for (std::size_t i = 0; i < words.size(); ++i) {
            std::string joined;
            for (std::size_t n = 0; n < max_n && i + n < words.size(); ++n) {
                joined += (n > 0 ? " " : "") + words[i + n];
                ngrams[d].insert(joined);
                all.insert(joined);
            }
        }
    }
    std::vector<std::string> expected;
    std::size_t n_entries = 0;
    for (const std::string& ngram : all) {
        const auto n = static_cast<std::size_t>(
            std::count_if(ngrams.begin(), ngrams.end(), [&](const std::set<std::string>& own) { return own.count(ngram) > 0; }));
        if (n < min_documents) continue;
        expected.push_back(ngram);
        n_entries += n;
    }
    std::vector<std::string> names;
    for (const Vocabulary::Place place : vocabulary.places_of_columns(1, control)) names.push_back(vocabulary.name(place));
    require(names == expected, "columns are the n-grams in alphabetical order");
    require(vocabulary.n_entries() == n_entries, "document counts are those of the slow count");
    const Rows<float> rows = build_rows(corpus, VocabularyColumns(vocabulary), {}, vocabulary.n_entries(), control);
    require(static_cast<std::size_t>(rows.starts.back()) == n_entries, "the matrix has one entry per n-gram and document");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check_words(text, 1 + size % 3, size % 2 == 0);
    check_characters(text, Analyzer::character);
    check_characters(text, Analyzer::word_characters);
    check_matrix(text);
    murmur3(text.data(), text.size());
    is_utf8(data, data + size);
    return 0;
}

#if defined(RANKPLANE_FUZZ_MAIN)
namespace {
std::uint8_t seen[1 << 16];
std::size_t n_seen = 0;
}  // namespace

extern "C" void __sanitizer_set_death_callback(void (*)());

extern "C" __attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc() {
    const auto place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
    std::uint8_t& slot = seen[(place ^ place >> 16) & 0xFFFFU];
    n_seen += slot == 0;
    slot = 1;
}

namespace {
std::string artifact = "crash", current;

// What the run that ends here was given.
void keep_current() {
    std::ofstream(artifact, std::ios::binary) << current;
    std::fprintf(stderr, "written to %s\n", artifact.c_str());
}

std::string option(int n_arguments, char** arguments, const std::string& name, const char* otherwise) {
    for (int i = 1; i < n_arguments; ++i) {
        const std::string argument = arguments[i];
        if (argument.rfind(name, 0) == 0) return argument.substr(name.size());
    }
    return otherwise;
}

void run(const std::string& input) {
    current = input;
    // An exact allocation lets the address sanitizer see a read of one byte too many.
    const std::vector<std::uint8_t> exact(input.begin(), input.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int n_arguments, char** arguments) {
    const char* const last = n_arguments > 1 ? arguments[n_arguments - 1] : "-";
    if (last[0] != '-' && std::filesystem::is_regular_file(last)) {
        std::ifstream file(last, std::ios::binary);
        run({std::istreambuf_iterator<char>(file), {}});
        return 0;
    }
    const double seconds = std::atof(option(n_arguments, arguments, "-max_total_time=", "10").c_str());
    std::mt19937_64 random(static_cast<std::uint64_t>(std::atoll(option(n_arguments, arguments, "-seed=", "1").c_str())));
    artifact = option(n_arguments, arguments, "-artifact_prefix=", "") + "crash";
    std::signal(SIGABRT, [](int) { keep_current(); });
    __sanitizer_set_death_callback(keep_current);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const std::vector<std::string> pieces{" ",
                                          "a",
                                          "B!",
                                          "?!",
                                          "\n",
                                          "word ",
                                          "\xC3\xA9",
                                          "\xCE\xA3",
                                          "a\xCE\xA3",
                                          "\xE4\xBB\x8A",
                                          "\xED\xA0\x80",
                                          "\xF0\x9F\x98\x80",
                                          "\xFF",
                                          "\xC2",
                                          "\xE2\x82",
                                          "\xF4\x90\x80\x80",
                                          "\xE2\x84\xAA",
                                          "\xEF\xBC\x81",
                                          std::string(64, 'x'),
                                          std::string(63, ' '),
                                          "_1"};
    std::vector<std::string> corpus{"", "The room, the room!\nthe ROOM"};
    const auto start = std::chrono::steady_clock::now();
    std::size_t n_runs = 0;
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
        std::string input = corpus[below(corpus.size())];
        for (std::size_t n_changes = 1 + below(8); n_changes > 0; --n_changes) {
            const std::size_t place = below(input.size() + 1);
            switch (below(5)) {
                case 0: input.insert(place, pieces[below(pieces.size())]); break;
                case 1: input.insert(place, 1, static_cast<char>(below(256))); break;
                case 2: input.erase(place, 1 + below(4)); break;
                case 3: input += corpus[below(corpus.size())]; break;
                default:
                    if (place < input.size()) input[place] = static_cast<char>(below(256));
            }
        }
        // Now and then longer than a piece of the tokenizer.
        if (below(500) == 0) {
            while (!input.empty() && input.size() < 40000) input += input;
        } else {
            input.resize(std::min<std::size_t>(input.size(), 4096));
        }
        const std::size_t n_before = n_seen;
        run(input);
        if (n_seen > n_before && input.size() <= 4096) corpus.push_back(input);
        ++n_runs;
    }
    std::printf("%zu runs, %zu inputs kept, %zu places covered\n", n_runs, corpus.size(), n_seen);
    return 0;
}
#endif
