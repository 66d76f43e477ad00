"""When threads are started: never for one text or one row, and never with n_jobs=1."""

import ctypes
import pickle

import numpy as np
import pytest

from rankplane import NPSVOR
from rankplane.text import TextVectorizer

TEXTS = ["the room was good", "the food was not good!", "never again"] * 5


@pytest.fixture
def no_new_threads():
    """Whoever starts a thread gets an error: new threads are to have a stack larger than any address space."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "pthread_setattr_default_np"):
        pytest.skip("only glibc lets the size of new stacks be set for a whole process")
    before, impossible = ctypes.create_string_buffer(256), ctypes.create_string_buffer(256)
    assert libc.pthread_getattr_default_np(before) == 0
    assert libc.pthread_getattr_default_np(impossible) == 0
    assert libc.pthread_attr_setstacksize(impossible, ctypes.c_size_t(2**60)) == 0
    assert libc.pthread_setattr_default_np(impossible) == 0
    yield
    assert libc.pthread_setattr_default_np(before) == 0


def long_texts():
    """Enough for several threads to have something to do."""
    return [" ".join(f"w{i % 997}" for i in range(start, start + 2000)) for start in range(0, 400_000, 2000)]


def test_threads_that_cannot_be_started_are_an_error_in_one_sentence(no_new_threads):
    with pytest.raises(RuntimeError, match=r"^n_jobs must be a number of threads that the system lets us start. Got 2\.$"):
        TextVectorizer(n_jobs=2).fit(long_texts())
    X, y = np.random.default_rng(0).standard_normal((10_000, 4)), np.arange(10_000) % 3
    with pytest.raises(RuntimeError, match="n_jobs must be a number of threads"):
        NPSVOR(n_jobs=2).fit(X, y)


def test_one_job_starts_no_thread(no_new_threads):
    texts = long_texts()
    X = TextVectorizer(preset="paper", n_jobs=1, min_df=1, max_df=1.0).fit_transform(texts)
    assert (
        TextVectorizer(n_jobs=1, min_df=1).fit(texts).transform(texts) != TextVectorizer(min_df=1).fit_transform(texts)
    ).nnz == 0
    assert TextVectorizer(n_jobs=1, hashing=10).transform(texts).shape == (len(texts), 1024)
    model = NPSVOR(n_jobs=1).fit(X, np.arange(len(texts)) % 3)
    assert model.predict(X).shape == (len(texts),)
    dense = np.random.default_rng(0).standard_normal((40, 3))
    kernel_model = NPSVOR(kernel="rbf", n_jobs=1).fit(dense, np.arange(40) % 3)
    assert kernel_model.predict(dense).shape == (40,)


def test_few_texts_and_rows_start_no_thread_whatever_n_jobs(no_new_threads):
    vectorizer = TextVectorizer(n_jobs=8, min_df=1, ngram_range=(1, 3)).fit(TEXTS)
    assert vectorizer.transform(["good room"]).nnz == 2
    assert TextVectorizer(preset="paper", n_jobs=8, min_df=1, max_df=1.0).fit_transform(TEXTS).shape[0] == len(TEXTS)
    assert TextVectorizer(n_jobs=8, hashing=10).transform(TEXTS).shape == (len(TEXTS), 1024)
    X = vectorizer.transform(TEXTS)
    model = NPSVOR(n_jobs=1).fit(X, np.arange(len(TEXTS)) % 3).set_params(n_jobs=8)
    assert model.predict(X[:1]).shape == (1,)


# --- what is kept between calls ------------------------------------------------------------------------------------------------


def test_every_changed_parameter_counts_in_the_next_call():
    vectorizer = TextVectorizer(min_df=1, norm=None, sublinear_tf=False, use_idf=False).fit(TEXTS)
    twice = ["good good"]
    assert vectorizer.transform(twice).max() == 2
    assert vectorizer.set_params(norm="l2").transform(twice).max() == 1
    vectorizer.norm = None
    vectorizer.sublinear_tf = True
    assert vectorizer.transform(twice).max() == pytest.approx(1 + np.log(2))
    with pytest.raises(ValueError, match="norm must be one of"):
        vectorizer.set_params(norm="l3").transform(twice)
    with pytest.raises(ValueError, match=r"n_jobs must be .* Got 0\."):
        vectorizer.set_params(norm=None, n_jobs=0).transform(twice)
    # Equal, and yet another thing.
    with pytest.raises(ValueError, match="ngram_range"):
        vectorizer.set_params(n_jobs=1, ngram_range=(1.0, 2.0)).transform(twice)


def test_a_list_of_stop_words_may_be_changed_in_place():
    words = ["room"]
    vectorizer = TextVectorizer(min_df=1, stop_words=words, ngram_range=(1, 1))
    assert "room" not in vectorizer.fit(TEXTS).vocabulary_
    words[0] = "good"
    assert "room" in vectorizer.fit(TEXTS).vocabulary_
    assert "good" not in vectorizer.vocabulary_


def test_what_is_kept_does_not_travel():
    vectorizer = TextVectorizer(min_df=1).fit(TEXTS)
    before = pickle.dumps(vectorizer)
    vectorizer.transform(TEXTS)
    assert pickle.dumps(vectorizer) == before
    assert (pickle.loads(before).transform(TEXTS) != vectorizer.transform(TEXTS)).nnz == 0


def test_idf_may_be_changed_in_place():
    vectorizer = TextVectorizer(min_df=1, norm=None).fit(TEXTS)
    before = vectorizer.transform(["good"]).sum()
    vectorizer.idf_ *= 2
    assert vectorizer.transform(["good"]).sum() == pytest.approx(2 * before)
