"""Every long loop of the core hears signals: a handler that raises ends the call long before its work is done."""

import signal
import time

import numpy as np
import pytest
import scipy.sparse as sp

from rankplane import _core
from rankplane.solver.tables import npsvor
from rankplane.text.code_points import code_points

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")

OPTIONS = {"max_sweeps": 10**9, "shrinking": True, "seed": 0, "rho": 1.0, "free_offsets": False}


class AlarmError(Exception):
    pass


def raise_alarm(*_):
    raise AlarmError


def seconds_until_alarm(work, after):
    """Processor seconds of a call whose process gets a signal after some of them."""

    def work_and_wait():
        signal.setitimer(signal.ITIMER_VIRTUAL, after)
        work()
        # A call that is deaf ends before the signal is heard.
        while time.process_time() - started < 60:
            pass

    before = signal.signal(signal.SIGVTALRM, raise_alarm)
    try:
        started = time.process_time()
        with pytest.raises(AlarmError):
            work_and_wait()
        return time.process_time() - started
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def assert_hears(make_work):
    """Stopped early, a call takes a fraction of what the whole of it takes. `make_work` makes the same work anew."""
    work = make_work()
    started = time.process_time()
    work()
    whole = time.process_time() - started
    assert seconds_until_alarm(make_work(), whole / 20) < 0.6 * whole


def random_texts(n_texts=5000, n_words=400):
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(30_000)])
    return [" ".join(words[rng.integers(0, len(words), n_words)]) for _ in range(n_texts)]


def corpus_of(texts, n_threads, n=(1, 1), analyzer="word"):
    corpus = _core.Corpus(
        code_points(True, None), analyzer=analyzer, min_length=1, marks="", min_n=n[0], max_n=n[1], n_threads=n_threads
    )
    corpus.add(texts, "utf-8", "strict", None)
    corpus.map_tokens([], None)
    return corpus


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("analyzer", ["word", "char_wb"])
def test_reading_texts(n_threads, analyzer):
    texts = random_texts(50) * (4000 if analyzer == "word" else 400)
    assert_hears(lambda: lambda: corpus_of(texts, n_threads, (2, 3), analyzer))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_counting_ngrams(n_threads):
    texts = random_texts()

    def make_work():
        corpus = corpus_of(texts, n_threads)
        settings = {"max_n": 4, "min_documents": 1, "counts_occurrences": True, "on_progress": None}
        return lambda: _core.Vocabulary().learn(corpus, **settings)

    assert_hears(make_work)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_writing_rows(n_threads):
    texts = random_texts(500) * 30
    vocabulary = _core.Vocabulary()
    vocabulary.learn(corpus_of(texts, n_threads), max_n=3, min_documents=1, counts_occurrences=False, on_progress=None)
    vocabulary.choose_columns(1, 1e9)

    def make_work():
        corpus = corpus_of(texts, n_threads)
        vocabulary.apply(corpus, None)
        options = _core.MatrixOptions(sublinear_tf=True, norm="l2")
        settings = {"idf": None, "is_learned": False, "options": options, "on_progress": None}
        return lambda: _core.tfidf_rows([vocabulary], [corpus], **settings)

    assert_hears(make_work)


def test_writing_hashed_rows():
    texts = random_texts(500) * 20
    options = _core.MatrixOptions(sublinear_tf=True, norm="l2")
    settings = {"sizes": [(1, 12)], "n_bits": 18, "options": options, "on_progress": None}

    def make_work():
        corpus = corpus_of(texts, 1)
        return lambda: _core.hashed_rows([corpus], **settings)

    assert_hears(make_work)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_scores(n_threads):
    rng = np.random.default_rng(0)
    dense, weights = rng.random((60_000, 64), dtype=np.float32), rng.random((64, 400), dtype=np.float32)
    sparse = sp.csr_matrix(dense)
    assert_hears(lambda: lambda: _core.dense_scores(dense, weights, n_threads))
    assert_hears(lambda: lambda: _core.sparse_scores(sparse.indptr, sparse.indices, sparse.data, weights, n_threads))


def test_products_of_rows():
    X = sp.csr_matrix(np.random.default_rng(0).random((1500, 1000)))
    columns = X.tocsc()
    arrays = (X.indptr, X.indices, X.data, columns.indptr, columns.indices, columns.data)
    assert_hears(lambda: lambda: _core.row_products(*arrays, X.shape[0]))


# --- solvers: with a tolerance of zero they never end by themselves ------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 2])
def test_linear_solver(n_threads):
    rng = np.random.default_rng(0)
    X, ranks = rng.standard_normal((20_000, 64)), rng.integers(0, 4, 20_000).astype(np.int32)
    solver = _core.dense_solver(X, ranks, None, 4, 1, _core.Options(tol=0.0, n_threads=n_threads, **OPTIONS))
    table = npsvor(4, 10.0, 10.0, 0.1, "hinge")
    assert seconds_until_alarm(lambda: solver.run(table, [], 4, None), 0.2) < 20


@pytest.mark.parametrize("n_threads", [1, 2])
def test_kernel_solver(n_threads):
    rng = np.random.default_rng(0)
    X, ranks = rng.standard_normal((1500, 2)), rng.integers(0, 4, 1500).astype(np.int32)
    gram = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    solver = _core.KernelSolver(np.ones(len(X)), ranks, None, 4, 1, _core.Options(tol=0.0, n_threads=n_threads, **OPTIONS))
    solver.load(npsvor(4, 1e6, 1e6, 0.1, "hinge"), [])
    rows = np.arange(len(X), dtype=np.uint32)

    def work():
        while solver.measure()[0]:
            solver.improve(rows, gram, rows)

    assert seconds_until_alarm(work, 0.2) < 20
