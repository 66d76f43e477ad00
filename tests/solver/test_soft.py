"""The logistic loss: the same models elsewhere, an independent solver, and invariants."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from conftest import make_ranked
from rankplane import NPSVOR, SVC, SVMOP, SVOR, SVR, RedSVM
from reference import soft_dual

TIGHT = {"loss": "logistic", "tol": 1e-9, "max_iter": 1_000_000}
MODELS = [NPSVOR, SVC, SVR, SVMOP, RedSVM, SVOR]


def test_svc_is_logistic_regression(ranked):
    """One against the rest, with the intercept as a column of ones."""
    X, y = ranked
    with_ones = np.column_stack([X.toarray(), np.ones(len(y))])
    ours = SVC(C=0.7, **TIGHT).fit(X, y)
    for plane, rank in enumerate(ours.classes_):
        theirs = LogisticRegression(C=0.7, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(with_ones, y == rank)
        np.testing.assert_allclose(ours.coef_[plane], theirs.coef_[0, :-1], atol=1e-4)
        np.testing.assert_allclose(ours.intercept_[plane], theirs.coef_[0, -1], atol=1e-4)


@pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")  # of mord
def test_svor_is_logistic_at(ranked):
    mord = pytest.importorskip("mord", reason="mord is not installed")
    X, y = ranked
    ours = SVOR(C=0.7, **TIGHT).fit(X, y)
    theirs = mord.LogisticAT(alpha=1 / 0.7).fit(X, y - 1)
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=2e-3)
    np.testing.assert_allclose(-ours.intercept_, theirs.theta_, atol=2e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X) + 1)


def least_primal(X, table, rows, rho):
    """The primal of one lane by BFGS: minimum, weights and offsets."""
    n_columns = X.shape[1]
    lo, hi, t, e, *_ = np.moveaxis(table[rows, :, 0], -1, 0)
    middle, half = (lo + hi) / 2, (hi - lo) / 2

    def objective(v):
        w, b = v[:n_columns], v[n_columns:]
        r = t - (X @ w)[:, None] - b
        duals = soft_dual(r, (lo, hi, e))
        value = np.sum(middle * r + half * (np.logaddexp(0, r - e) + np.logaddexp(0, -r - e)))
        penalty = 0.0 if rho == np.inf else 0.5 * b @ b
        slope = np.concatenate([w - X.T @ duals.sum(axis=1), (0 if rho == np.inf else b) - duals.sum(axis=0)])
        return value + 0.5 * w @ w + penalty, slope

    start = np.zeros(n_columns + table.shape[1])
    found = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 10_000})
    return found.fun, found.x[:n_columns], found.x[n_columns:]


@pytest.mark.parametrize("estimator", MODELS, ids=lambda model: model.__name__)
@pytest.mark.parametrize(("C", "epsilon"), [(0.2, 0.1), (5.0, 1.8)])
def test_an_independent_solver_finds_the_same(estimator, C, epsilon):
    X, y = make_ranked(n_rows=60, n_columns=8, density=0.6, n_ranks=3, seed=4)
    parameters = {"C": C} | ({"epsilon": epsilon} if hasattr(estimator, "epsilon") else {})
    fitted = estimator(**parameters, **TIGHT).fit(X, y)
    table = fitted._table(3)
    for lane in range(table.shape[2]):
        rho = np.inf if fitted.free_offsets else 1.0
        minimum, weights, offsets = least_primal(X.toarray(), table[:, :, [lane]], y - 1, rho)
        assert -fitted.dual_objective_[lane] == pytest.approx(minimum, rel=1e-6)
        np.testing.assert_allclose(fitted.coef_[lane], weights, atol=1e-3)
        np.testing.assert_allclose(fitted.intercept_.reshape(table.shape[1:3])[:, lane], offsets, atol=1e-3)


def test_two_variables_for_the_own_rank_or_one(ranked):
    X, y = ranked
    one, two = (NPSVOR(C1=0.5, C2=2.0, epsilon=0.3, solver=solver, **TIGHT).fit(X, y) for solver in ("dcd2", "dcd1"))
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [1e-4, 1.0, 300.0])
def test_the_gap_closes_for_any_bound(dtype, C):
    """Also where most duals are so close to a bound that single precision cannot tell."""
    X, y = make_ranked(n_rows=200, n_columns=30, seed=3, dtype=dtype)
    for estimator in (NPSVOR, RedSVM):
        fitted = estimator(C=C, loss="logistic", max_iter=100_000).fit(X, y)
        assert np.all(fitted.duality_gap_ <= 2e-3 * (fitted.duality_gap_ - fitted.dual_objective_))
        assert np.all(fitted.duality_gap_ >= 0)


def test_a_weight_of_two_is_two_rows():
    X, y = make_ranked(n_rows=80, seed=2)
    weights = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(len(y)), weights.astype(int))
    weighted, repeated = NPSVOR(**TIGHT).fit(X, y, weights), NPSVOR(**TIGHT).fit(X[twice], y[twice])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([NPSVOR, SVC, SVOR]), st.sampled_from([0.05, 1.0, 30.0]), st.integers(1, 3))
def test_neither_order_nor_threads_matter(seed, estimator, C, n_jobs):
    X, y = make_ranked(n_rows=60, n_columns=10, seed=seed % 10)
    order = np.random.default_rng(seed).permutation(len(y))
    given_order = estimator(C=C, **TIGHT).fit(X, y)
    other = estimator(C=C, n_jobs=n_jobs, **TIGHT).fit(X[order], y[order])
    np.testing.assert_allclose(other.plane_scores(X), given_order.plane_scores(X), atol=1e-4)


def test_steps_from_one_end_to_the_other_do_not_swing():
    """Newton steps between two saturated ends must not go to and fro for ever."""
    X, y = make_ranked(n_rows=60, n_columns=10, seed=8)
    fitted = SVC(C=30.0, **TIGHT).fit(X, y)
    assert np.all(fitted.duality_gap_ <= 1e-8 * np.abs(fitted.dual_objective_))


def test_a_large_margin_costs_nothing_more():
    """With scores far apart the logistic loss is a hinge at 0, so both have the same planes up to the width of the corner."""
    X = np.array([[-1.0], [1.0]])
    fitted = SVC(C=1e4, fit_intercept=False, **TIGHT).fit(X, [1, 2])
    w = float(fitted.coef_[1, 0])
    assert w == pytest.approx(2e4 * expit(-w), rel=1e-6)  # where the slope of the objective is zero
