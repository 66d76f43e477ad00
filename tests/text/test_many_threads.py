"""The same on any number of threads: from every container, with all settings, and when something fails in the middle.

Texts are enough for several batches per thread, since a batch is the least that a thread takes.
"""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rankplane.text import TextVectorizer


def make_documents():
    """Two megabytes: long and short ones, empty and missing ones, ASCII and others."""
    generator = np.random.default_rng(0)
    words = np.array([f"{start}{i}" for i in range(900) for start in ("good", "é", "room", "今天", "w")])
    ranks = np.minimum(generator.zipf(1.25, size=400_000) - 1, len(words) - 1)
    ends = np.cumsum(generator.integers(0, 300, 2_500))
    documents = [" ".join(part) for part in np.split(words[ranks], ends[ends < len(ranks)])]
    documents[1::50] = [None] * len(documents[1::50])
    return [*documents, " ".join(words[ranks])]


DOCUMENTS = make_documents()
TEXTS = ["" if document is None else document for document in DOCUMENTS]

CONTAINERS = {
    "list": list,
    "bytes": lambda documents: [None if document is None else document.encode() for document in documents],
    "other encoding": lambda documents: [None if document is None else document.encode("utf-16") for document in documents],
    "generator": iter,
    "pandas": lambda documents: pd.Series(documents, dtype="str"),
    "polars": pl.Series,
    "pyarrow": lambda documents: pa.array(documents, pa.string()),
    "pyarrow view": lambda documents: pa.array(documents, pa.string_view()),
    "pyarrow chunked": lambda documents: pa.chunked_array([documents[i : i + 300] for i in range(0, len(documents), 300)]),
    "batches": lambda documents: iter([documents[:1000], pa.array(documents[1000:1001]), pl.Series(documents[1001:])]),
}

SETTINGS = {
    "default": {},
    "paper": {"preset": "paper"},
    "every trigram": {"ngram_range": (1, 3), "min_df": 1},
    "most frequent": {"max_features": 5000, "ngram_range": (1, 3)},
    "pairs only": {"ngram_range": (2, 2), "max_df": 0.1},
    "characters": {"analyzer": "char_wb", "ngram_range": (2, 4)},
    "hashed": {"hashing": 12, "ngram_range": (1, 2)},
    "tokenizer": {"tokenizer": str.split},
    "joints in terms": {"stemmer": lambda token: f"{token[:1]} {token[1:]}", "ngram_range": (1, 2)},
    "not smooth": {"smooth_idf": False, "norm": "l1"},
    "no idf": {"use_idf": False},
}


def assert_equal(found, expected):
    assert found.shape == expected.shape
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.fixture(scope="module")
def expected():
    return TextVectorizer(n_jobs=1).fit_transform(TEXTS)


@pytest.mark.parametrize("n_jobs", [2, 9])
@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container(name, n_jobs, expected):
    encoding = "utf-16" if name == "other encoding" else "utf-8"
    vectorizer = TextVectorizer(n_jobs=n_jobs, encoding=encoding)
    assert_equal(vectorizer.fit_transform(CONTAINERS[name](DOCUMENTS)), expected)
    assert_equal(vectorizer.transform(CONTAINERS[name](DOCUMENTS)), expected)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting(name):
    texts = TEXTS[:-1]
    new = [*texts[::3], "words nobody has seen", *texts[1::7]]
    one = TextVectorizer(n_jobs=1, **SETTINGS[name])
    matrix, transformed = one.fit_transform(texts), one.transform(new)
    for n_jobs in (2, 5, 64):
        many = TextVectorizer(n_jobs=n_jobs, **SETTINGS[name])
        assert_equal(many.fit_transform(texts), matrix)
        assert_equal(many.transform(new), transformed)
        if name != "hashed":
            assert many.get_feature_names_out().tolist() == one.get_feature_names_out().tolist()
        if hasattr(one, "idf_"):
            np.testing.assert_array_equal(many.idf_, one.idf_)


@pytest.mark.parametrize("n_jobs", [1, 5])
@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        (7, TypeError, r"^documents must be str, bytes, None or NaN\. Got int\.$"),
        (b"\xff\xfe", UnicodeDecodeError, "'utf-8' codec can't decode byte 0xff in position 0"),
    ],
)
@pytest.mark.parametrize("place", [0, 1200, len(TEXTS) - 1])
def test_a_bad_document_in_the_middle(bad, error, message, place, n_jobs, expected):
    documents = list(DOCUMENTS)
    documents[place] = bad
    n_references = [sys.getrefcount(document) for document in documents[2:4]]
    vectorizer = TextVectorizer(n_jobs=n_jobs).fit(TEXTS)
    with pytest.raises(error, match=message):
        vectorizer.fit(documents)
    assert_equal(vectorizer.transform(TEXTS), expected)
    assert [sys.getrefcount(document) for document in documents[2:4]] == n_references, "batches on their way are freed, too"
