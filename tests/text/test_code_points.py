# ruff: noqa: RUF001 - letters that look alike are what is tested.
"""The tokenizer against Python's own rules: over all code points, and on arbitrary text and bytes."""

import re
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, strip_accents_ascii, strip_accents_unicode

from rankplane._core import CodePoints, Corpus, Vocabulary
from rankplane.text.code_points import code_points

STRIP = {None: str, "ascii": strip_accents_ascii, "unicode": strip_accents_unicode}
ALPHABET = st.one_of(st.characters(), st.sampled_from("aAzZ09_ !?\t\n.,éÉßİıΣσς\u0301\u00ad'·ﬁ½今😀\ud800\x00\x1c\u2028"))
TEXTS = st.text(ALPHABET, max_size=200)


def corpus_of(documents, lowercase=True, strip_accents=None, min_length=1, marks="", analyzer="word", n_range=(1, 1)):
    corpus = Corpus(
        code_points(lowercase, strip_accents),
        analyzer=analyzer,
        min_length=min_length,
        marks=marks,
        min_n=n_range[0],
        max_n=n_range[1],
        n_threads=1,
    )
    corpus.add(documents, "utf-8", "strict", None)
    return corpus


def tokens_of(document, **rules):
    """Distinct tokens in order of appearance."""
    return corpus_of([document], **rules).tokens()


def counts_of(corpus):
    """How often each token occurs in all documents."""
    corpus.map_tokens([], None)
    vocabulary = Vocabulary()
    vocabulary.learn(corpus, max_n=1, min_documents=1, counts_occurrences=True, on_progress=None)
    vocabulary.choose_columns(1, float("inf"))
    return dict(zip(vocabulary.names(), vocabulary.occurrence_counts().tolist(), strict=True))


def distinct(tokens):
    return list(dict.fromkeys(tokens))


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip_accents", STRIP)
def test_every_code_point(lowercase, strip_accents):
    # Characters keep what normalising makes of each code point; x and y on its sides show where words end.
    for first in range(0, sys.maxunicode + 1, 0x4000):
        documents = [f"x{chr(c)}y" for c in range(first, first + 0x4000)]
        expected, words = set(), set()
        for document in documents:
            text = document.lower() if lowercase else document
            text = STRIP[strip_accents](text)
            words.update(re.findall(r"\w+", text))
            expected.add(re.sub(r"\s\s+", " ", text))
        rules = {"lowercase": lowercase, "strip_accents": strip_accents}
        assert set(corpus_of(documents, **rules).tokens()) == words
        found = corpus_of(documents, analyzer="char", n_range=(2, 60), **rules).tokens()
        assert expected <= set(found)


@pytest.mark.parametrize("template", ["{}Σ", "a{}Σ", "aΣ{}", "aΣ{}b", "aΣ{}{}", "Σ{}Σ"])
def test_final_sigma_after_and_before_every_code_point(template):
    characters = [chr(c) for c in range(0x20000)] + [chr(c) for c in range(0xE0000, 0xE1000)]
    documents = [template.replace("{}", character) for character in characters]
    expected = {word for document in documents for word in re.findall(r"\w+", document.lower())}
    assert set(corpus_of(documents).tokens()) == expected


@settings(max_examples=1000, deadline=None)
@given(TEXTS, st.integers(1, 3), st.booleans(), st.sampled_from(list(STRIP)))
def test_words_are_those_of_re(document, min_length, lowercase, strip_accents):
    text = STRIP[strip_accents](document.lower() if lowercase else document)
    expected = re.findall(r"(?u)\b" + r"\w" * (min_length - 1) + r"\w+\b", text)
    rules = {"min_length": min_length, "lowercase": lowercase, "strip_accents": strip_accents}
    assert tokens_of(document, **rules) == distinct(expected)


@settings(max_examples=500, deadline=None)
@given(st.text(ALPHABET | st.sampled_from("!?！？⁉")), st.sampled_from(list(STRIP)))
def test_marks_are_tokens_in_their_place(document, strip_accents):
    text = STRIP[strip_accents](document.lower())
    expected = distinct(re.findall(r"(?u)\b\w+\b|[!?]", text))
    assert tokens_of(document, marks="!?", strip_accents=strip_accents) == expected


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab \n!é今"), min_size=1, max_size=60), st.integers(1, 900), st.integers(0, 70))
def test_words_across_blocks_and_pieces(part, n_times, n_before):
    document = "-" * n_before + part * n_times
    assert tokens_of(document, marks="!?") == distinct(re.findall(r"(?u)\b\w+\b|[!?]", document))


# A spacing mark decomposes to a blank and a combining mark.
BLANK_AND_MARK = [chr(c) for c in range(0x10000) if STRIP["unicode"](chr(c)) == " " != chr(c)]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text(st.sampled_from("aab .\n") | st.sampled_from(BLANK_AND_MARK), max_size=80), min_size=1, max_size=3),
    st.tuples(st.integers(1, 7), st.integers(0, 4)),
    st.sampled_from(list(STRIP)),
    st.sampled_from(["char", "char_wb"]),
)
def test_characters_that_decompose_to_blanks(documents, lengths, strip_accents, analyzer):
    n_range = lengths[0], sum(lengths)
    theirs = CountVectorizer(analyzer=analyzer, ngram_range=n_range, strip_accents=strip_accents)
    analyze = theirs.build_analyzer()
    expected = Counter(token for document in documents for token in analyze(document))
    assert counts_of(corpus_of(documents, strip_accents=strip_accents, analyzer=analyzer, n_range=n_range)) == expected


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("aab  \n"), max_size=80), st.tuples(st.integers(1, 7), st.integers(0, 4)))
def test_blanks_inside_words_start_none(document, lengths):
    # Only a line end is a space here, so that words hold blanks like those that are put around them.
    shortest, longest = lengths[0], sum(lengths)
    space, word = 2, 1
    properties = np.zeros(sys.maxunicode + 1, dtype=np.uint8)
    properties[[ord("\n"), ord("a"), ord("b")]] = space, word, word
    identity = np.arange(sys.maxunicode + 1, dtype=np.uint32)
    corpus = Corpus(
        CodePoints(properties, identity, [], False),
        analyzer="char_wb",
        min_length=1,
        marks="",
        min_n=shortest,
        max_n=longest,
        n_threads=1,
    )
    corpus.add([document], "utf-8", "strict", None)
    expected = Counter()
    for part in filter(None, document.split("\n")):
        padded = f" {part} "
        expected.update(padded[at : at + n] for n in range(shortest, longest + 1) for at in range(len(padded) - n + 1))
        if len(padded) < shortest:
            expected[padded] += 1
    assert counts_of(corpus) == expected


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=300))
def test_bytes_are_those_that_python_decodes(data):
    text = data.decode("utf-8", "replace")
    corpus = Corpus(code_points(True, None), analyzer="word", min_length=1, marks="", min_n=1, max_n=1, n_threads=1)
    corpus.add([data], "utf-8", "replace", None)
    assert corpus.tokens() == distinct(re.findall(r"\w+", text.lower()))


@settings(max_examples=200, deadline=None)
@given(st.lists(TEXTS, max_size=40), st.integers(1, 4))
def test_tokens_do_not_depend_on_threads(documents, n_threads):
    corpus = Corpus(code_points(True, None), analyzer="word", min_length=1, marks="", min_n=1, max_n=1, n_threads=n_threads)
    corpus.add(documents, "utf-8", "strict", None)
    expected = {word for document in documents for word in re.findall(r"\w+", document.lower())}
    assert set(corpus.tokens()) == expected
    assert corpus.n_documents == len(documents)


def test_tables_need_one_entry_per_code_point():
    with pytest.raises(ValueError, match="one entry per code point"):
        CodePoints(np.zeros(3, np.uint8), np.zeros(3, np.uint32), [], True)
