"""What goes in: kinds of data and labels that work, and sentences for those that do not."""

import os

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from command import interrupted_fit
from conftest import make_ranked
from rankplane import NPSVOR, SVC, SVR

SIZES = ["small", "medium", "large"]


@pytest.mark.parametrize("make", [sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.coo_array], ids=lambda f: f.__name__)
def test_sparse_kinds(make, model, ranked):
    X, y = ranked
    np.testing.assert_array_equal(model().fit(make(X), y).coef_, model().fit(X, y).coef_)
    np.testing.assert_array_equal(model().fit(X, y).predict(make(X)), model().fit(X, y).predict(X))


@pytest.mark.parametrize(
    "make",
    [
        np.asarray,
        np.asfortranarray,
        pd.DataFrame,
        lambda X: pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]),
        lambda X: pl.DataFrame(X, schema=[f"c{i}" for i in range(X.shape[1])]),
        lambda X: X[::-1][::-1],
        lambda X: X.tolist(),
    ],
    ids=["array", "fortran", "pandas", "pandas named", "polars", "strided", "lists"],
)
def test_dense_kinds(make, model, ranked):
    X, y = ranked
    dense = X.toarray()
    fitted = model().fit(make(dense), y)
    np.testing.assert_allclose(fitted.coef_, model().fit(X, y).coef_, atol=1e-9)
    np.testing.assert_array_equal(fitted.predict(make(dense)), model().fit(dense, y).predict(dense))


def test_dense_is_not_made_sparse(ranked, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("converted to sparse")

    X, y = ranked
    monkeypatch.setattr(sp, "csr_matrix", refuse)
    monkeypatch.setattr(sp, "csr_array", refuse)
    NPSVOR().fit(X.toarray(), y)


def test_csr_is_borrowed(ranked):
    """The arrays reach the core as they are, and come back unchanged."""
    X, y = ranked
    X.data.flags.writeable = X.indices.flags.writeable = X.indptr.flags.writeable = False
    assert NPSVOR(n_jobs=2).fit(X, y).coef_.shape == (4, 30)


def test_unsorted_and_repeated_entries_are_put_in_order(ranked):
    X, y = ranked
    messy = sp.csr_matrix(
        (
            np.tile(X.data / 2, 2)[(order := np.argsort(np.tile(np.repeat(np.arange(120), np.diff(X.indptr)), 2), kind="stable"))],
            np.tile(X.indices, 2)[order][::1],
            2 * X.indptr,
        ),
        shape=X.shape,
    )
    before = messy.indices.copy()
    np.testing.assert_allclose(NPSVOR().fit(messy, y).coef_, NPSVOR().fit(X, y).coef_, atol=1e-9)
    np.testing.assert_array_equal(messy.indices, before)


def test_float32_stays(model):
    X, y = make_ranked(dtype=np.float32)
    assert model().fit(X, y).coef_.dtype == np.float32
    assert model().fit(X.toarray(), y).plane_scores(X).dtype == np.float32
    assert model().fit(X.astype(np.float64), y).coef_.dtype == np.float64
    assert model().fit((X.toarray() > 0).astype(int), y).coef_.dtype == np.float64


def as_sizes(y):
    return np.array(SIZES)[np.minimum(y, 3) - 1]


@pytest.mark.parametrize(
    ("labels", "ranks", "expected"),
    [
        (lambda y: y.astype(float), None, [1.0, 2.0, 3.0, 4.0]),
        (lambda y: y * 0.5, None, [0.5, 1.0, 1.5, 2.0]),
        (lambda y: y > 2, None, [False, True]),
        (lambda y: y.astype(object), None, [1, 2, 3, 4]),
        (lambda y: y.tolist(), None, [1, 2, 3, 4]),
        (as_sizes, SIZES, SIZES),
        (lambda y: as_sizes(y).astype(object), tuple(SIZES), SIZES),
        (lambda y: pd.Series(as_sizes(y)), SIZES, SIZES),
        (lambda y: pl.Series(as_sizes(y)), SIZES, SIZES),
        (lambda y: pd.Series(pd.Categorical(as_sizes(y), categories=SIZES, ordered=True)), None, SIZES),
        (lambda y: pd.Categorical(as_sizes(y), categories=[*SIZES, "huge"], ordered=True), None, [*SIZES, "huge"]),
        (lambda y: pl.Series(as_sizes(y), dtype=pl.Enum(SIZES)), None, SIZES),
        (lambda y: y, [4, 3, 2, 1], [4, 3, 2, 1]),
        (lambda y: y, [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_labels(model, ranked, labels, ranks, expected):
    X, y = ranked
    fitted = model(ranks=ranks).fit(X, labels(y))
    assert fitted.classes_.tolist() == expected
    predicted = fitted.predict(X)
    assert set(predicted.tolist()) <= set(expected)
    assert np.mean(predicted == np.asarray(labels(y))) > 0.4


def test_reversed_ranks_reverse_the_planes(ranked):
    X, y = ranked
    up, down = NPSVOR(tol=1e-8, max_iter=9999).fit(X, y), NPSVOR(tol=1e-8, max_iter=9999, ranks=[4, 3, 2, 1]).fit(X, y)
    np.testing.assert_allclose(down.coef_, -up.coef_[::-1], atol=1e-4)


def replace(X, row, column, value):
    X = X.toarray()
    X[row, column] = value
    return X


BAD_DATA = {
    "nan in array": (
        lambda X, y: (replace(X, 3, 7, np.nan), y),
        r"X must contain only finite numbers. Got NaN .*in row 3, column 7",
    ),
    "inf in array": (lambda X, y: (replace(X, 0, 2, np.inf), y), r"Got infinity .*in row 0, column 2"),
    "nan in csr": (lambda X, y: (sp.csr_matrix(replace(X, 5, 1, np.nan)), y), r"Got NaN .*in row 5, column 1"),
    "no rows": (lambda X, y: (X[:0], y[:0]), r"0 sample\(s\)"),
    "no columns": (lambda X, y: (X[:, :0], y), r"0 feature\(s\)"),
    "one rank": (lambda X, y: (X, np.ones(120)), r"y must contain at least two different ranks.*Got only"),
    "short y": (lambda X, y: (X, y[:-1]), r"y must have one label per sample of X.*Got 119 labels, 120 samples"),
    "text labels": (lambda X, y: (X, as_sizes(y)), r"ranks must give the order of its labels, lowest first"),
    "unordered": (lambda X, y: (X, pd.Categorical(as_sizes(y))), r"y must be an ordered categorical"),
    "gap among words": (
        lambda X, y: (X, pd.Categorical([None, *as_sizes(y)[1:]], categories=SIZES, ordered=True)),
        r"^y must not contain missing labels. Got 1, the first in row 0.$",
    ),
    "gap among numbers": (
        lambda X, y: (X, pd.Series(pd.Categorical([*y[:-1], None], ordered=True))),
        r"^y must not contain missing labels. Got 1, the first in row \d+.$",
    ),
    "polars categorical": (
        lambda X, y: (X, pl.Series(as_sizes(y), dtype=pl.Categorical)),
        r"^y must contain numbers, or ranks must give the order of its labels",
    ),
    "continuous": (lambda X, y: (X, np.random.default_rng(0).random(120)), r"Unknown label type: y must contain ranks"),
    "missing label": (lambda X, y: (X, np.where(y == 1, np.nan, y)), r"y must not contain missing .* labels"),
    "text in X": (lambda X, y: ([["a", "b"]] * 120, y), r"could not convert string to float|dtype='numeric' is not compatible"),
    "one dimension": (lambda X, y: (X.toarray()[:, 0], y), r"Expected 2D array"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_is_refused(case, model, ranked):
    change, message = BAD_DATA[case]
    with pytest.raises(ValueError, match=message):
        model().fit(*change(*ranked))


BAD_PARAMETERS = [
    ({"C": -1}, r"^C must be a positive number. Got -1.$"),
    ({"C": np.nan}, r"^C must be a positive number. Got nan.$"),
    ({"C": "1"}, r"^C must be a positive number. Got '1'.$"),
    ({"C1": 0}, r"^C1 must be a positive number. Got 0.$"),
    ({"epsilon": -0.1}, r"^epsilon must be a non-negative number. Got -0.1.$"),
    ({"loss": "log"}, r"^loss must be one of 'hinge', 'squared_hinge', 'logistic'. Got 'log'.$"),
    ({"loss": "logistic", "epsilon": 41}, r"^epsilon must be at most 40 with loss='logistic'. Got 41.$"),
    ({"ranker": "oracle"}, r"^ranker must be one of 'ordered', 'nearest'. Got 'oracle'.$"),
    ({"solver": "dcd3"}, r"^solver must be one of 'dcd2', 'dcd1'. Got 'dcd3'.$"),
    ({"tol": 0}, r"^tol must be a positive number. Got 0.$"),
    ({"max_iter": 0}, r"^max_iter must be a positive integer. Got 0.$"),
    ({"max_iter": 2.5}, r"^max_iter must be a positive integer. Got 2.5.$"),
    ({"shrinking": "yes"}, r"^shrinking must be True or False. Got 'yes'.$"),
    ({"fit_intercept": 1}, r"^fit_intercept must be True or False. Got 1.$"),
    ({"n_jobs": 0}, r"^n_jobs must be None or a non-zero integer. Got 0.$"),
    ({"random_state": "dice"}, r"^random_state must be None, an integer from 0 to 4294967295, .* Got 'dice'.$"),
    ({"random_state": 2**40}, r"^random_state must be None, an integer from 0 to 4294967295, .* Got 1099511627776.$"),
    ({"n_jobs": 1_000_000}, r"^n_jobs must be at most 256. Got 1000000.$"),
    ({"ranks": "abc"}, r"^ranks must name at least two different labels, lowest first. Got 'abc'.$"),
    ({"class_weight": "fair"}, r"^class_weight must be None, \"balanced\" or a dict by label. Got 'fair'.$"),
    ({"class_weight": {9: 1.0}}, r"^class_weight must name labels of y, \[1, 2, 3, 4\]. Got 9.$"),
    ({"class_weight": {1: -1.0}}, r"^class_weight\[1\] must be a positive number. Got -1.0.$"),
    ({"ranks": [1, 2]}, r"^y must contain only the labels in ranks, \[1, 2\]. Got 3.$"),
    ({"ranks": [1]}, r"^ranks must name at least two different labels, lowest first. Got \[1\].$"),
    ({"ranks": [1, 1, 2, 3, 4]}, r"^ranks must name at least two different labels"),
]


@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS, ids=[str(p) for p, _ in BAD_PARAMETERS])
def test_bad_parameters_are_refused(ranked, parameters, message):
    with pytest.raises(ValueError, match=message):
        NPSVOR(**parameters).fit(*ranked)


def test_unknown_parameters_are_refused():
    with pytest.raises(TypeError, match="colour"):
        NPSVOR(colour="red")
    with pytest.raises(TypeError, match="epsilon"):
        SVC(epsilon=0.1)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(5), r"sample_weight must have one weight per sample, shape \(120,\). Got shape \(5,\)."),
        (np.r_[-1.0, np.ones(119)], r"sample_weight must contain only finite, non-negative numbers. Got -1.0 in row 0."),
        (np.r_[np.nan, np.ones(119)], r"Got nan in row 0"),
        (np.zeros(120), r"sample_weight must be positive for at least one sample. Got only zeros."),
    ],
)
def test_bad_weights_are_refused(ranked, weight, message):
    with pytest.raises(ValueError, match=message):
        NPSVOR().fit(*ranked, sample_weight=weight)


def test_other_columns_at_predict_are_refused(model, ranked):
    X, y = ranked
    with pytest.raises(ValueError, match=r"X has 29 features, but .* is expecting 30 features"):
        model().fit(X, y).predict(X[:, :29])


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_malformed_csr_is_refused(ranked, n_jobs):
    X, y = ranked
    too_large, negative, falling = X.copy(), X.copy(), X.copy()
    too_large.indices[-1] = 30
    negative.indices[0] = -1
    falling.indptr[5] = falling.indptr[8] + 1
    for bad in (too_large, negative):
        with pytest.raises(
            ValueError, match=r"column indices of a csr matrix must lie in \[0, n_columns\). Got index (30|-1) with 30 columns"
        ):
            NPSVOR(n_jobs=n_jobs).fit(bad, y)
        with pytest.raises(ValueError, match="column indices"):
            NPSVOR().fit(X, y).predict(bad)
    with pytest.raises(ValueError, match=r"X\.indptr must rise"):
        NPSVOR().fit(falling, y)


def test_failed_fit_leaves_nothing_behind(ranked):
    X, y = ranked
    estimator = NPSVOR().fit(X, y)
    with pytest.raises(ValueError, match="finite"):
        estimator.fit(replace(X, 0, 0, np.nan), y)
    with pytest.raises(ValueError, match="not fitted"):
        estimator.predict(X)


def test_random_state_decides(ranked):
    X, y = ranked
    first, again, other = (NPSVOR(random_state=s).fit(X, y).coef_ for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
    np.testing.assert_array_equal(NPSVOR().fit(X, y).coef_, NPSVOR(random_state=0).fit(X, y).coef_)


def test_verbose_shows_progress(terminal):
    X, y = make_ranked(n_rows=3000, n_columns=300, seed=3)
    NPSVOR(verbose=1, tol=1e-6, max_iter=100_000, probability=True).fit(X, y)
    shown = terminal()
    for words in ("NPSVOR", "violation", "Calibrating"):
        assert words in shown.ever
    assert shown.left == ""
    NPSVOR().fit(X, y)
    assert terminal().ever == ""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT to a child process")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_stops_within_a_second(n_jobs):
    assert interrupted_fit((20000, 100), f"NPSVOR(tol=1e-12, max_iter=10**9, n_jobs={n_jobs})", 1.0) == "unfitted\n"


def test_svr_counts_ranks_from_one():
    X = np.arange(1, 7, dtype=float)[:, None]
    y = np.array([10, 10, 20, 20, 30, 30])
    scores = SVR(C=100, epsilon=0.0, tol=1e-8, max_iter=100_000).fit(X, y).plane_scores(X)
    assert scores.min() > 0.3
    assert scores.max() < 3.7
