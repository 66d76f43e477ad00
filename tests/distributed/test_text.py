"""The vocabulary of many workers' documents against that of all documents in one place."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankplane import TextVectorizer
from rankplane.distributed import Threads, fit_vectorizer
from reviews import BAD, GOOD, PLAIN

WORDS = [*PLAIN, *GOOD, *BAD, "größer", "本", "a", "!", "don't"]


def make_documents(n, seed=0):
    random = np.random.default_rng(seed)
    odds = 1 / np.arange(1, len(WORDS) + 1)
    return [" ".join(random.choice(WORDS, random.integers(0, 12), p=odds / odds.sum())) for _ in range(n)]


def shards_of(documents, size):
    """Unequal ones, one of which is empty."""
    ends = [*sorted(int(len(documents) * share) for share in np.linspace(0, 1, size) ** 2), len(documents)]
    return [documents[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)][-size:] if size > 1 else [documents]


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"preset": "paper"},
        {"ngram_range": (1, 4), "min_df": 3},
        {"ngram_range": (2, 3), "min_df": 0.01, "max_df": 0.2},
        {"max_features": 40},
        {"analyzer": "char", "ngram_range": (2, 4)},
        {"analyzer": "char_wb", "ngram_range": (1, 3), "max_features": 100},
        {"min_df": 1, "stop_words": "english", "stemmer": "english", "smooth_idf": False, "norm": "l1"},
        {"use_idf": False, "sublinear_tf": False},
        {"hashing": 10},
        {"analyzer": {"word": (1, 2), "char_wb": (2, 4)}, "max_features": 50},
    ],
    ids=str,
)
def test_matrix_is_that_of_one_place(parameters, size):
    documents = make_documents(300)
    shards = shards_of(documents, size)
    assert list(itertools.chain(*shards)) == documents
    vectorizer = TextVectorizer(**parameters)
    expected = vectorizer.fit_transform(documents)

    def work(comm):
        fitted = fit_vectorizer(vectorizer, shards[comm.rank], comm)
        return fitted, fitted.transform(shards[comm.rank])

    found = Threads(size).run(work)
    for fitted, rows in found:
        if "hashing" not in parameters:
            assert fitted.get_feature_names_out().tolist() == vectorizer.get_feature_names_out().tolist()
            assert fitted.n_documents_ == 300
        if hasattr(vectorizer, "idf_"):
            np.testing.assert_array_equal(fitted.idf_, vectorizer.idf_)
        assert rows.shape[1] == expected.shape[1]
    rows = np.concatenate([rows.toarray() for _, rows in found])
    np.testing.assert_array_equal(rows, expected.toarray())


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.text(alphabet="ab ", max_size=8), max_size=6), min_size=1, max_size=4), st.integers(1, 3))
def test_any_documents_on_any_workers(shards, min_df):
    documents = list(itertools.chain(*shards))
    vectorizer = TextVectorizer(min_df=min_df, ngram_range=(1, 3))
    try:
        expected = vectorizer.fit(documents).get_feature_names_out().tolist()
    except ValueError as error:
        expected = str(error)

    def work(comm):
        try:
            return fit_vectorizer(vectorizer, shards[comm.rank], comm).get_feature_names_out().tolist()
        except ValueError as error:
            return str(error)

    for found in Threads(len(shards)).run(work):
        assert found == expected


def test_what_one_worker_refuses_all_refuse():
    documents = [["good"], [3.5]]

    def work(comm):
        with pytest.raises(ValueError, match=r"^Worker 1: "):
            fit_vectorizer(TextVectorizer(), documents[comm.rank], comm)

    Threads(2).run(work)
