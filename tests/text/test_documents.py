"""Where documents come from, and what is refused."""

import os
import re
import signal
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer

from conftest import words
from rankplane.text import TextVectorizer
from rankplane.text.packed import Texts

DOCUMENTS = [
    "One two, two three",
    "",
    None,
    "Ünïcode 今天 two",
    "a longer document of more than twelve bytes: one",
    "two",
]
TEXTS = ["" if document is None else document for document in DOCUMENTS]

CONTAINERS = {
    "tuple": tuple,
    "generator": iter,
    "numpy object": lambda documents: np.array(documents, dtype=object),
    "pandas object": lambda documents: pd.Series(documents, dtype=object),
    "pandas str": lambda documents: pd.Series(documents, dtype="str"),
    "pandas string[pyarrow]": lambda documents: pd.Series(documents, dtype="string[pyarrow]"),
    "pandas string[python]": lambda documents: pd.Series(documents, dtype="string[python]"),
    "pandas arrow": lambda documents: pd.Series(documents, dtype=pd.ArrowDtype(pa.large_string())),
    "pandas category": lambda documents: pd.Series(documents, dtype="category"),
    "pandas array": lambda documents: pd.array(documents, dtype="string[pyarrow]"),
    "polars": lambda documents: pl.Series(documents),
    "polars sliced": lambda documents: pl.Series(["skipped", *documents, "skipped"])[1:-1],
    "pyarrow string": lambda documents: pa.array(documents, pa.string()),
    "pyarrow large": lambda documents: pa.array(documents, pa.large_string()),
    "pyarrow view": lambda documents: pa.array(documents, pa.string_view()),
    "pyarrow sliced": lambda documents: pa.array(["skipped", *documents, "skipped"])[1:-1],
    "pyarrow chunked": lambda documents: pa.chunked_array([documents[:2], [], documents[2:]], pa.string()),
    "pyarrow dictionary": lambda documents: pa.array(documents).dictionary_encode(),
    "packed": Texts.of,
    "packed and drained": lambda documents: Texts.of(["skipped", *documents]).take(np.arange(1, 1 + len(documents))).drained(),
    "batches": lambda documents: iter([documents[:2], np.array(documents[2:4], dtype=object), pl.Series(documents[4:])]),
    "list of batches": lambda documents: [documents[:3], documents[3:]],
    "nan": lambda documents: [float("nan") if document is None else document for document in documents],
    "pandas na": lambda documents: [pd.NA if document is None else document for document in documents],
    "bytes": lambda documents: [None if document is None else document.encode() for document in documents],
}


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("tokenizer", [None, re.compile(r"\w+").findall])
def test_containers_give_the_same_matrix(name, tokenizer):
    expected = TextVectorizer(min_df=1, tokenizer=tokenizer, n_jobs=2).fit_transform(TEXTS)
    vectorizer = TextVectorizer(min_df=1, tokenizer=tokenizer, n_jobs=2)
    matrix = vectorizer.fit_transform(CONTAINERS[name](DOCUMENTS))
    assert matrix.shape == expected.shape
    assert (matrix != expected).nnz == 0
    assert (vectorizer.transform(CONTAINERS[name](DOCUMENTS)) != expected).nnz == 0


def test_numpy_str_array():
    expected = TextVectorizer(min_df=1).fit_transform(TEXTS)
    assert (TextVectorizer(min_df=1).fit_transform(np.array(TEXTS)) != expected).nnz == 0


def test_str_is_not_made_to_keep_its_utf8():
    # The UTF-8 form that a str caches counts into its size.
    document = "ünïcode " * 1000
    size = document.__sizeof__()
    TextVectorizer(min_df=1).fit_transform([document])
    assert document.__sizeof__() == size


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_bytes_are_decoded(encoding):
    documents = ["Über café", "naïve ÀÉ"]
    vectorizer = TextVectorizer(min_df=1, encoding=encoding)
    matrix = vectorizer.fit_transform([document.encode(encoding) for document in documents])
    assert (matrix != TextVectorizer(min_df=1).fit_transform(documents)).nnz == 0


INVALID = [
    b"ab\xffcd ok",
    b"\xc3",
    b"\xe2\x82 x",
    b"\xed\xa0\x80 y",
    b"\xf4\x90\x80\x80",
    b"fine \xc0\xaf",
    b"\xf0\x9f\x98",
    b"\x80\x80 end",
]


@pytest.mark.parametrize("decode_error", ["ignore", "replace"])
def test_invalid_utf8_equals_scikit_learn(decode_error):
    theirs = TfidfVectorizer(decode_error=decode_error)
    expected = theirs.fit_transform(INVALID)
    vectorizer = TextVectorizer(
        token_pattern=r"(?u)\b\w\w+\b", decode_error=decode_error, min_df=1, ngram_range=(1, 1), sublinear_tf=False
    )
    matrix = vectorizer.fit_transform(INVALID)
    assert vectorizer.vocabulary_ == theirs.vocabulary_
    np.testing.assert_allclose(matrix.toarray(), expected.toarray(), atol=1e-6)


@pytest.mark.parametrize("document", INVALID)
def test_invalid_utf8_is_refused_by_default(document):
    with pytest.raises(UnicodeDecodeError):
        TextVectorizer(min_df=1).fit([document])


def test_invalid_utf8_inside_an_arrow_column_is_walked_over():
    offsets, text = pa.py_buffer(np.array([0, 6, 8], np.int32)), pa.py_buffer(b"ok \xff\xc3 \xe2z")
    column = pa.Array.from_buffers(pa.string(), 2, [None, offsets, text])
    assert TextVectorizer(min_df=1).fit(column).get_feature_names_out().tolist() == ["ok", "z"]


def test_an_iterator_of_batches_is_read_once_and_one_at_a_time():
    alive = []

    class Batch(list):
        def __del__(self):
            alive.remove(id(self))

    def batches():
        for _ in range(20):
            batch = Batch(["some words here", "more words"])
            alive.append(id(batch))
            yield batch
            del batch
            assert len(alive) <= 2

    assert TextVectorizer().fit_transform(batches()).shape[0] == 40


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("one document", ValueError, "X must be an iterable of documents. Got a single str."),
        (b"one document", ValueError, "Got a single bytes."),
        (3, TypeError, "X must be an iterable of documents. Got int."),
        ([1, 2], TypeError, "documents must be str, bytes, None or NaN. Got int."),
        (["a", 1.5], TypeError, "Got float."),
        (np.array([["a"]]), ValueError, "X must have one dimension"),
        (pd.DataFrame({"text": ["a"]}), TypeError, "X must be one column of documents. Got a DataFrame."),
        (pl.DataFrame({"text": ["a"]}), TypeError, "X must be one column of documents. Got a DataFrame."),
        ([], ValueError, "no column remains"),
        (["", " . "], ValueError, "no column remains"),
    ],
)
@pytest.mark.parametrize("tokenizer", [None, re.compile(r"\w+").findall])
def test_wrong_documents_are_refused(X, error, message, tokenizer):
    with pytest.raises(error, match=re.escape(message)):
        TextVectorizer(min_df=1, tokenizer=tokenizer).fit(X)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"preset": "papers"}, ValueError, "preset must be one of 'default', 'paper', 'sklearn'. Got 'papers'."),
        ({"min_df": -1}, ValueError, "min_df must be a number of documents (int) of at least 1 or a share"),
        ({"min_df": 1.5}, ValueError, "Got 1.5."),
        ({"max_df": float("nan")}, ValueError, "Got nan."),
        ({"min_df": "2"}, ValueError, "min_df must be"),
        ({"min_df": True}, ValueError, "Got True."),
        ({"min_df": 4, "max_df": 2}, ValueError, "max_df must allow as many documents as min_df asks for."),
        ({"max_features": 0}, ValueError, "max_features must be a positive integer. Got 0."),
        (
            {"ngram_range": (2, 1)},
            ValueError,
            "ngram_range must be a pair of integers with 1 <= first <= second. Got (2, 1).",
        ),
        ({"ngram_range": 2}, ValueError, "Got 2."),
        ({"ngram_range": (0, 1)}, ValueError, "Got (0, 1)."),
        ({"stop_words": "klingon"}, ValueError, "Got 'klingon'."),
        ({"stop_words": [1]}, ValueError, "stop_words must hold str. Got 1."),
        ({"stop_words": 3}, ValueError, "Got 3."),
        ({"stemmer": "klingon"}, ValueError, "Got 'klingon'."),
        ({"stemmer": 3}, ValueError, "Got 3."),
        ({"stemmer": lambda token: 3}, TypeError, "stemmer must return a str or None"),
        ({"tokenizer": 3}, ValueError, "tokenizer must be a callable"),
        ({"tokenizer": lambda text: [3]}, TypeError, "tokenizer must return a list of str."),
        ({"tokenizer": str.split, "segmenter": "chinese"}, ValueError, "segmenter must be left out with a tokenizer"),
        ({"preprocessor": "lower"}, ValueError, "preprocessor must be a callable that takes a text. Got 'lower'."),
        ({"strip_accents": "all"}, ValueError, "strip_accents must be one of None, 'ascii', 'unicode'. Got 'all'."),
        ({"binary": 1}, ValueError, "binary must be True or False. Got 1."),
        ({"input": "url"}, ValueError, "input must be one of"),
        ({"dtype": "text"}, ValueError, "dtype must be float32 or float64. Got 'text'."),
        ({"vocabulary": []}, ValueError, "vocabulary must have at least one n-gram. Got none."),
        ({"vocabulary": ["a", "b", "a"]}, ValueError, "vocabulary must have each n-gram once. Got 'a' more than once."),
        ({"vocabulary": {"a": 0, "b": 2}}, ValueError, "vocabulary must number its columns from 0 to 1, each once."),
        ({"vocabulary": {"a": "0"}}, TypeError, "vocabulary must have whole numbers as columns. Got '0' for 'a'."),
        ({"vocabulary": [1]}, TypeError, "vocabulary must be of str. Got 1."),
        ({"vocabulary": ["a"], "min_df": 2}, ValueError, "min_df must be left out with a vocabulary"),
        ({"vocabulary": ["a"], "hashing": 8}, ValueError, "hashing must be left out with a vocabulary"),
        ({"token_pattern": "("}, ValueError, "token_pattern must be a regular expression"),
        ({"token_pattern": "(a)(b)"}, ValueError, "token_pattern must have at most one group."),
        ({"token_pattern": 3}, ValueError, "Got 3."),
        ({"min_token_length": 0}, ValueError, "min_token_length must be a positive integer. Got 0."),
        ({"analyzer": "words"}, ValueError, "analyzer must be one of"),
        ({"analyzer": "char", "stemmer": "english"}, ValueError, "stemmer must be left out with analyzer='char'"),
        ({"analyzer": "char", "stemmer": "english"}, ValueError, "stemmer must be left out"),
        ({"analyzer": "char", "min_token_length": 2}, ValueError, "min_token_length must be left out"),
        ({"hashing": 10, "min_df": 2}, ValueError, "min_df must be left out with hashing"),
        ({"hashing": 10, "max_features": 2}, ValueError, "max_features must be left out with hashing"),
        ({"hashing": 10, "use_idf": True}, ValueError, "use_idf must be False or left out with hashing"),
        ({"hashing": 31}, ValueError, "hashing must be a number of bits from 1 to 30. Got 31."),
        ({"use_idf": False, "smooth_idf": True}, ValueError, "smooth_idf must be left out without idf"),
        ({"use_idf": 1}, ValueError, "use_idf must be True or False. Got 1."),
        ({"norm": "l3"}, ValueError, "norm must be one of None, 'l1', 'l2'. Got"),
        ({"norm": 2}, ValueError, "norm must be one of None, 'l1', 'l2'. Got"),
        ({"strip_accents": "all"}, ValueError, "strip_accents must be one of"),
        ({"encoding": "utf-9"}, ValueError, "encoding must be the name of a text encoding. Got 'utf-9'."),
        ({"decode_error": "skip"}, ValueError, "decode_error must be one of"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be None or a non-zero integer. Got 0."),
        ({"n_jobs": 1.5}, ValueError, "n_jobs must be"),
        ({"n_jobs": 10**6}, ValueError, "n_jobs must be at most 256. Got 1000000."),
        ({"verbose": -1}, ValueError, "verbose must be a non-negative number. Got -1."),
        ({"lowercase": "yes"}, ValueError, "lowercase must be True or False. Got 'yes'."),
        ({"segmenter": "thai"}, ValueError, "segmenter must be one of"),
    ],
    ids=words,
)
def test_wrong_parameters_are_refused(settings, error, message):
    with pytest.raises(error, match=re.escape(message)):
        TextVectorizer(**settings).fit_transform(["some words", "more words"])


def test_transform_before_fit_is_refused():
    with pytest.raises(NotFittedError):
        TextVectorizer().transform(["a"])


def test_transform_of_no_documents():
    assert TextVectorizer(min_df=1).fit(["a"]).transform([]).shape == (0, 1)


@pytest.mark.parametrize("language", ["german", "french", "spanish", "russian"])
def test_stop_words_and_stemmers_by_language(language):
    vectorizer = TextVectorizer(preset="paper", stop_words=language, stemmer=language, min_df=1, max_df=1.0)
    documents = {"german": "und Häuser", "french": "et maisons", "spanish": "y casas", "russian": "и дома"}
    assert len(vectorizer.fit([documents[language]]).get_feature_names_out()) == 1


def test_progress_bar_shows_every_phase(terminal):
    TextVectorizer(verbose=1, min_df=1).fit_transform(["some words"] * 100)
    shown = terminal()
    for phase in ("Reading texts", "Counting terms", "Making columns"):
        assert phase in shown.ever
    assert shown.left == ""


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_interrupt_arrives_within_a_second(answers_to_ctrl_c):
    generator = np.random.default_rng(0)
    words = [f"w{i}" for i in range(50_000)]
    documents = [" ".join(generator.choice(words, 20_000)) for _ in range(100)] * 40
    TextVectorizer(min_df=1).fit(["the tables of code points are made on first use"])
    started = []

    def interrupt():
        time.sleep(0.3)
        started.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        TextVectorizer(n_jobs=2, min_df=1).fit_transform(documents)
    seconds = time.perf_counter() - started[0]
    thread.join()
    # A bound on a hang rather than a timing: the promise is a second, a loaded machine gets more.
    assert seconds < 10


@pytest.mark.parametrize("options", [{"hashing": 8}, {"min_df": 1}, {"analyzer": "char", "min_df": 1}], ids=str)
def test_ngrams_longer_than_any_document_add_nothing(options):
    """Room is made, and levels are counted, by what documents hold: a product with the asked length would overflow."""
    documents = ["one two three four", "five", ""] * 30
    longest = TextVectorizer(ngram_range=(1, 18), **options).fit_transform(documents)
    for asked in (10**6, 2**61, 2**64 - 1):
        found = TextVectorizer(ngram_range=(1, asked), **options).fit_transform(documents)
        assert (found != longest).nnz == 0
    assert TextVectorizer(ngram_range=(20, 2**61), hashing=8).transform(documents).nnz == 0
