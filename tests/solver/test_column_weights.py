"""Weights of columns: the formula, what they do to a solve, and that held-out rows stay unseen."""

import os
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import make_ranked
from rankplane import NPSVOR, Committee, CSearchCV, load_model, save_model
from rankplane.solver.column_weights import BASE, log_ratio_weights, scale_columns
from rankplane.solver.folds import make_folds

TIGHT = {"tol": 1e-6, "max_iter": 10_000}


def plain_weights(X, numbers, n_ranks):
    """The formula, column by column and boundary by boundary."""
    is_there = X.toarray() != 0
    squares = np.zeros(X.shape[1])
    for k in range(n_ranks - 1):
        above, below = is_there[numbers > k].sum(axis=0) + 1.0, is_there[numbers <= k].sum(axis=0) + 1.0
        squares += np.log((above / above.sum()) / (below / below.sum())) ** 2
    weights = BASE + np.sqrt(squares / (n_ranks - 1))
    return weights * np.sqrt(X.power(2).sum() / X.multiply(weights).power(2).sum())


@pytest.mark.parametrize("form", [sp.csr_matrix, lambda X: X.toarray()], ids=["sparse", "dense"])
def test_formula(form):
    X, y = make_ranked()
    every = np.ones(len(y), dtype=bool)
    found = log_ratio_weights(form(X), (y - 1).astype(np.int32), 4, every)
    np.testing.assert_allclose(found, plain_weights(X, y - 1, 4))


def test_rows_not_used_have_no_say():
    X, y = make_ranked()
    numbers = (y - 1).astype(np.int32)
    is_used = np.arange(len(y)) % 3 > 0
    before = log_ratio_weights(X, numbers, 4, is_used)
    changed = np.where(is_used, numbers, 3 - numbers).astype(np.int32)
    np.testing.assert_array_equal(before, log_ratio_weights(X, changed, 4, is_used))
    assert not np.allclose(before, log_ratio_weights(X, numbers, 4, ~is_used))


def test_a_column_that_separates_ranks_weighs_more():
    rng = np.random.default_rng(0)
    y = np.repeat([1, 2, 3], 100)
    X = (rng.random((300, 12)) < np.column_stack([y / 4, 1 - y / 4, np.full((300, 10), 0.5)])).astype(float)
    weights = log_ratio_weights(X, (y - 1).astype(np.int32), 3, np.ones(300, dtype=bool))
    assert weights[:2].min() > 1.3 * weights[2:].max()


def test_is_the_solve_of_scaled_columns(model, ranked):
    X, y = ranked
    weights = np.linspace(0.5, 2, X.shape[1])
    found = model(column_weight=weights, **TIGHT).fit(X, y)
    expected = model(**TIGHT).fit(scale_columns(X, weights), y)
    np.testing.assert_array_equal(found.coef_, expected.coef_ * weights)
    np.testing.assert_allclose(found.plane_scores(X), expected.plane_scores(scale_columns(X, weights)), atol=1e-9)


def test_learnt_weights_are_those_of_all_rows(ranked):
    X, y = ranked
    weights = log_ratio_weights(X, (y - 1).astype(np.int32), 4, np.ones(len(y), dtype=bool))
    found, given = (NPSVOR(column_weight=w, **TIGHT).fit(X, y) for w in ("ranks", weights))
    np.testing.assert_array_equal(found.coef_, given.coef_)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_every_fold_learns_its_own(n_jobs):
    """Held-out scores of the search are those of models that were fitted, weights and all, without the held-out rows."""
    X, y = make_ranked(n_rows=200)
    search = CSearchCV(NPSVOR(column_weight="ranks", **TIGHT), Cs=[0.5, 2.0], cv=4, n_jobs=n_jobs).fit(X, y)
    folds = make_folds(4, X, (y - 1).astype(np.int32), None, 0)
    for i, C in enumerate([0.5, 2.0]):
        for fold, test in enumerate(folds.test):
            train = np.flatnonzero(folds.is_train[fold])
            weights = log_ratio_weights(X, (y - 1).astype(np.int32), 4, folds.is_train[fold])
            alone = NPSVOR(C=C, column_weight=weights, **TIGHT).fit(X[train], y[train])
            error = np.mean(np.abs(alone.predict(X[test]) - y[test]))
            assert search.cv_results_[f"split{fold}_test_score"][i] == pytest.approx(error, abs=1.1 / len(test))
    assert search.best_estimator_.column_weight == "ranks"


@pytest.mark.parametrize("column_weight", ["ranks", "given"])
def test_probabilities(column_weight):
    X, y = make_ranked(n_rows=400)
    weights = np.linspace(0.5, 2, X.shape[1]) if column_weight == "given" else column_weight
    model = NPSVOR(column_weight=weights, probability=True, decision="mae").fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    plain = NPSVOR(column_weight=weights).fit(X, y)
    np.testing.assert_allclose(model.plane_scores(X), plain.plane_scores(X), atol=0.2)
    assert np.mean(np.abs(model.predict(X) - y)) < 0.5


def test_predicts_better_where_most_columns_are_noise():
    """Texts are like that: many rare columns, some of them found in praise or in blame only."""
    rng = np.random.default_rng(1)
    n_rows = 2000
    y = rng.integers(1, 5, n_rows)
    praise = rng.random((n_rows, 100)) < 0.03 * (y[:, None] - 1) / 3
    blame = rng.random((n_rows, 100)) < 0.03 * (4 - y[:, None]) / 3
    noise = rng.random((n_rows, 600)) < 0.05
    X = sp.csr_matrix(np.column_stack([praise, blame, noise]).astype(np.float64))
    X = sp.csr_matrix(X / np.sqrt(X.sum(axis=1)).reshape(-1, 1))
    train, test = np.arange(1000), np.arange(1000, n_rows)
    errors = []
    for column_weight in (None, "ranks"):
        search = CSearchCV(NPSVOR(column_weight=column_weight)).fit(X[train], y[train])
        errors.append(np.mean(np.abs(search.predict(X[test]) - y[test])))
    assert errors[1] < 0.95 * errors[0]


@pytest.mark.parametrize("column_weight", ["ranks", "given"])
def test_is_kept_in_a_file(tmp_path, column_weight):
    X, y = make_ranked()
    weights = np.linspace(0.5, 2, X.shape[1]) if column_weight == "given" else column_weight
    model = Committee(column_weight=weights).fit(X, y)
    save_model(model, tmp_path / "model.rankplane")
    loaded = load_model(tmp_path / "model.rankplane")
    np.testing.assert_array_equal(loaded.column_weight, weights)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("column_weight", "found"),
    [
        ("rank", "Got 'rank'."),
        (np.ones(3), r"Got an array of shape \(3,\)."),
        (np.r_[np.ones(29), -1.0], "Got -1.0 for column 29."),
    ],
)
def test_bad_weights(ranked, column_weight, found):
    with pytest.raises(ValueError, match=rf"^column_weight must be None, 'ranks' or 30 positive numbers, one per column. {found}$"):
        NPSVOR(column_weight=column_weight).fit(*ranked)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_stops_folds_that_run_side_by_side(answers_to_ctrl_c):
    X, y = make_ranked(n_rows=20_000, n_columns=300)
    search = CSearchCV(NPSVOR(column_weight="ranks", tol=1e-12, max_iter=10**9, shrinking=False), Cs=[1.0], n_jobs=2)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    # Without an answer to Ctrl-C this would run for hours.
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    timer.join()
    assert not hasattr(search, "cv_results_")
