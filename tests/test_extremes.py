"""Data and settings at the edge of what anybody would use."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from conftest import make_ranked
from rankplane import NPSVOR, SVC, SVMOP, SVOR, CSearchCV, RedSVM

MODELS = [NPSVOR, SVC, SVMOP, RedSVM, SVOR]


def assert_settled(model, most=1e-2):
    """The certificate: no plane is further from the optimum than this share of its objective."""
    assert np.all(np.isfinite(model.coef_))
    assert np.all(model.duality_gap_ <= most * np.maximum(np.abs(model.dual_objective_), 1e-9))


def test_more_threads_than_columns_rows_or_cores():
    for n_rows, n_columns in [(6, 2), (40, 1), (500, 3)]:
        X, y = make_ranked(n_rows=n_rows, n_columns=n_columns, n_ranks=3, density=0.9)
        alone, many = (NPSVOR(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 64))
        assert_settled(many)
        np.testing.assert_allclose(many.coef_, alone.coef_, atol=2e-3)


def test_sixty_four_threads_of_one_team():
    """Long rows in large batches, so that all of them have a part."""
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 20_000), density=0.03, rng=rng, dtype=np.float32).tocsr()
    y = 1 + (np.asarray(X[:, :4000].sum(axis=1)).ravel() > np.median(X[:, :4000].sum(axis=1)))
    one, again = (NPSVOR(C=0.01, n_jobs=64).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, again.coef_)
    assert_settled(one)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_one_row_per_rank(model):
    X = sp.identity(50, format="csr") + sp.csr_matrix(np.linspace(-1, 1, 50)[:, None] @ np.ones((1, 50)))
    fitted = model(n_jobs=3, ranks=range(50)).fit(X, np.arange(50))
    assert_settled(fitted)
    assert np.mean(np.abs(fitted.predict(X) - np.arange(50))) < 12.5  # a constant is off by as much


def test_two_hundred_ranks_of_many_rows():
    X, y = make_ranked(n_rows=1000, n_columns=40, n_ranks=200)
    fitted = NPSVOR(n_jobs=2).fit(X, y)
    assert_settled(fitted)
    assert np.mean(np.abs(fitted.predict(X) - y)) < np.mean(np.abs(np.median(y) - y))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_rows_without_entries(n_jobs):
    X, y = make_ranked(n_rows=300)
    X = sp.vstack([X, sp.csr_matrix((300, X.shape[1]))]).tocsr()
    y = np.concatenate([y, np.full(300, 2)])
    fitted = NPSVOR(n_jobs=n_jobs).fit(X, y)
    assert_settled(fitted)
    assert np.all(fitted.predict(sp.csr_matrix((5, X.shape[1]))) == 2)
    nothing = NPSVOR(n_jobs=n_jobs).fit(sp.csr_matrix((9, 4)), [1, 2, 2] * 3)
    assert_settled(nothing)
    assert np.all(nothing.coef_ == 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [1e-6, 1e6])
@pytest.mark.parametrize("model", [NPSVOR, SVC, RedSVM], ids=lambda model: model.__name__)
def test_c_from_tiny_to_huge(model, C, dtype):
    """Where single precision ends before the gap is small, the fit says so and still separates what can be separated."""
    X, y = make_ranked(n_rows=80, n_columns=200, dtype=dtype)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        fitted = model(C=C, n_jobs=2, max_iter=2000).fit(X, y)
    assert fitted.coef_.dtype == dtype
    assert np.all(np.isfinite(fitted.coef_))
    if not caught:
        assert_settled(fitted)
    if C < 1 or dtype == np.float64:
        assert not caught
    if C > 1:
        assert np.mean(fitted.predict(X) == y) > 0.95


def test_folds_that_hold_out_a_whole_rank():
    X, y = make_ranked(n_rows=150, n_ranks=3)
    search = CSearchCV(NPSVOR(probability=True), cv=3).fit(X, y, groups=y)  # a group per rank
    assert np.all(np.isfinite(search.predict_proba(X)))
    assert np.isfinite(search.best_score_)


def test_columns_in_every_row():
    X, y = make_ranked(n_rows=400)
    constant = sp.csr_matrix(np.full((400, 3), 2.0))
    one, two = (NPSVOR(n_jobs=n_jobs).fit(sp.hstack([X, constant]).tocsr(), y) for n_jobs in (1, 2))
    assert_settled(two)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=5e-3)
    # Constant columns share what one would have, as the regularisation wants it.
    np.testing.assert_allclose(two.coef_[:, -3:], two.coef_[:, -3:].mean(axis=1, keepdims=True).repeat(3, axis=1), atol=1e-4)
