"""Joint planes: the plain solver, independent ones, the models at both ends, and what must not change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import reference
from conftest import make_ranked
from rankplane import NPSVOR, SVMOP, CSearchCV, RedSVM
from rankplane.distributed import fit_shard
from rankplane.solver import tables
from rankplane.solver.coupling import chain, mixed
from rankplane.solver.folds import make_folds
from rankplane.solver.lanes import Options, solve_planes

TIGHT = {"tol": 1e-9, "max_iter": 1_000_000}
TABLES = {
    "npsvor": tables.npsvor(4, 0.7, 1.3, 0.1, "hinge"),
    "npsvor squared": tables.npsvor(4, 0.7, 1.3, 0.1, "squared_hinge"),
    "npsvor logistic": tables.npsvor(4, 0.7, 1.3, 0.1, "logistic"),
    "pairs": tables.ordered_pairs(4, 1.0, "hinge"),
}
LOSSES = ["hinge", "squared_hinge", "logistic"]


@pytest.mark.parametrize("strength", [0.1, 2.0, 1e6])
def test_the_chain_pulls_neighbours_most(strength):
    T = chain(5, strength)
    laplacian = np.diag([1, 2, 2, 2, 1]) - np.eye(5, k=1) - np.eye(5, k=-1)
    expected = np.linalg.inv(np.eye(5) + strength * laplacian)
    np.testing.assert_allclose(T, expected * 5 / np.trace(expected), rtol=1e-7)
    assert np.all(np.diff(T[0]) < 0)
    assert np.trace(T) == pytest.approx(5)


def test_both_ends_of_the_chain():
    assert chain(4, 0) is None
    np.testing.assert_array_equal(chain(4, np.inf), np.ones((4, 4)))
    np.testing.assert_allclose(chain(4, 1e9), np.ones((4, 4)), atol=1e-6)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("n_sweeps", [1, 3])
def test_equals_the_reference_sweep_by_sweep(name, n_sweeps):
    table = TABLES[name]
    T = chain(table.shape[2], 1.5)
    X, y = make_ranked(n_rows=60, n_columns=12, n_ranks=4)
    rows = (y - 1).astype(np.int32)
    weights = np.random.default_rng(0).uniform(0.5, 2, X.shape[0])
    W, b, _ = reference.solve(X.toarray(), table, rows, n_sweeps, weights=weights, seed=7, coupling=T)
    options = Options(tol=1e-12, max_iter=n_sweeps, shrinking=False, seed=7, coupling=T, batch=1)
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
        planes = solve_planes(X, table, rows, options, row_weights=weights)
    np.testing.assert_allclose(planes.weights, W, atol=1e-10)
    np.testing.assert_allclose(planes.offsets, b, atol=1e-10)


def joint_primal(fitted, X, y, coupling):
    """Of all planes together, with the penalty as it is defined."""
    W, table = fitted.coef_.T, fitted._table(len(fitted.classes_))
    penalty = 0.5 * np.trace(W @ np.linalg.inv(coupling) @ W.T) + 0.5 * np.sum(fitted.intercept_**2)
    scores = X @ W + fitted.intercept_
    return penalty + sum(
        reference.loss(scores[i, lane], table[y[i] - 1, 0, lane]) for i in range(len(y)) for lane in range(table.shape[2])
    )


@pytest.mark.parametrize("estimator", [NPSVOR, SVMOP])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_is_that_of_the_joint_problem(estimator, loss):
    """No objective lies below the dual, so where the two meet is the optimum."""
    X, y = make_ranked(n_rows=100, n_columns=15, density=0.5, n_ranks=4, seed=2)
    for tol in (0.3, 1e-9):
        fitted = estimator(coupling=2.0, loss=loss, tol=tol, max_iter=1_000_000).fit(X, y)
        primal, dual = joint_primal(fitted, X, y, chain(len(fitted.coef_), 2.0)), -fitted.dual_objective_.sum()
        assert fitted.duality_gap_.sum() == pytest.approx(primal - dual, abs=1e-9 * primal)
    assert primal - dual <= 1e-6 * primal


def test_an_independent_solver_finds_the_same():
    X, y = make_ranked(n_rows=50, n_columns=6, density=0.6, n_ranks=3, seed=4)
    fitted = NPSVOR(coupling=1.0, loss="logistic", **TIGHT).fit(X, y)
    inverse, table = np.linalg.inv(chain(3, 1.0)), fitted._table(3)[y - 1, 0]
    lo, hi, t, e, *_ = np.moveaxis(table, -1, 0)

    def objective(v):
        W, b = v[:18].reshape(6, 3), v[18:]
        r = t - X @ W - b
        losses = (lo + hi) / 2 * r + (hi - lo) / 2 * (np.logaddexp(0, r - e) + np.logaddexp(0, -r - e))
        duals = reference.soft_dual(r, (lo, hi, e))
        slope = np.concatenate([(W @ inverse - X.T @ duals).ravel(), b - duals.sum(axis=0)])
        return 0.5 * np.trace(W @ inverse @ W.T) + 0.5 * b @ b + losses.sum(), slope

    found = minimize(objective, np.zeros(21), jac=True, method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(fitted.coef_.T.ravel(), found.x[:18], atol=1e-4)
    np.testing.assert_allclose(fitted.intercept_, found.x[18:], atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_svmop_fully_coupled_is_redsvm(ranked, loss):
    X, y = ranked
    coupled, shared = SVMOP(coupling=np.inf, loss=loss, **TIGHT).fit(X, y), RedSVM(loss=loss, **TIGHT).fit(X, y)
    np.testing.assert_allclose(coupled.coef_, np.tile(shared.coef_, (3, 1)), atol=1e-4)
    np.testing.assert_allclose(coupled.intercept_, shared.intercept_, atol=1e-4)
    assert coupled.dual_objective_.sum() == pytest.approx(shared.dual_objective_[0], rel=1e-7)


def test_no_coupling_changes_no_bit(ranked):
    X, y = ranked
    np.testing.assert_array_equal(NPSVOR(coupling=0).fit(X, y).coef_, NPSVOR().fit(X, y).coef_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_any_number_of_threads_and_precision(dtype, n_jobs):
    X, y = make_ranked(n_rows=500, n_columns=300, density=0.3, n_ranks=5, seed=6, dtype=dtype)
    first, second = (NPSVOR(coupling=2.0, n_jobs=n_jobs, max_iter=10_000).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.duality_gap_.sum() <= 2e-3 * (first.duality_gap_ - first.dual_objective_).sum()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([0.3, 3.0, np.inf]), st.sampled_from(LOSSES))
def test_neither_order_nor_shrinking_matter(seed, coupling, loss):
    X, y = make_ranked(n_rows=60, n_columns=10, seed=seed % 7)
    order = np.random.default_rng(seed).permutation(len(y))
    one = NPSVOR(coupling=coupling, loss=loss, **TIGHT).fit(X, y)
    other = NPSVOR(coupling=coupling, loss=loss, shrinking=False, **TIGHT).fit(X[order], y[order])
    np.testing.assert_allclose(other.plane_scores(X), one.plane_scores(X), atol=1e-4)


@pytest.mark.parametrize("n_ranks", [3, 11])
def test_folds_are_groups_of_lanes(n_ranks):
    """In blocks of several folds, and of one."""
    X, y = make_ranked(n_rows=120, n_columns=30, n_ranks=n_ranks, seed=8)
    model = NPSVOR(coupling=1.0, C=0.5, ranks=range(1, n_ranks + 1), tol=1e-6, max_iter=100_000)
    folds = list(make_folds(4, X, y - 1, None, 0).test)
    pairs = [(np.setdiff1d(np.arange(len(y)), test), test) for test in folds]
    found = CSearchCV(model, Cs=[0.1, 0.5], cv=pairs, refit=False, patience=None).fit(X, y)
    errors = [np.mean(np.abs(model.fit(X[train], y[train]).predict(X[test]) - y[test])) for train, test in pairs]
    assert found.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(errors), abs=0.011)


def test_is_searched_beside_c():
    X, y = make_ranked(n_rows=300, n_columns=200, density=0.1, seed=5)
    search = CSearchCV(NPSVOR(coupling=7.0), Cs=[0.25, 1.0], couplings=[0, 2], cv=3, patience=None).fit(X, y)
    assert [setting["coupling"] for setting in search.cv_results_["params"]] == [0, 0, 2, 2]
    assert search.best_estimator_.coupling == search.best_params_["coupling"]
    for coupling in (0, 2):
        alone = CSearchCV(NPSVOR(coupling=coupling), Cs=[0.25, 1.0], cv=3, patience=None).fit(X, y)
        tried = search.cv_results_["mean_test_score"][np.array([2, 3]) if coupling else np.array([0, 1])]
        np.testing.assert_array_equal(tried, alone.cv_results_["mean_test_score"])
    fitted = NPSVOR(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(fitted.coef_, search.best_estimator_.coef_)


def test_scores_are_mixed_like_weights():
    T, gathered = chain(3, 2.0), np.random.default_rng(0).normal(size=(4, 6))
    np.testing.assert_allclose(mixed(gathered, T), np.hstack([gathered[:, :3] @ T, gathered[:, 3:] @ T]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NPSVOR(coupling=-1), r"^coupling must be a non-negative number or infinity. Got -1.$"),
        (lambda: NPSVOR(coupling=2.0, kernel="rbf"), r"^coupling must be 0 with a kernel. Got 2.0 with kernel='rbf'.$"),
        (lambda: NPSVOR(coupling=2.0, ranks=range(33)), r"^coupling must be 0 with more than 32 planes. Got 2 with 33 planes.$"),
        (lambda: CSearchCV(RedSVM(), couplings=[1]), r"^couplings must be None for RedSVM, which has no coupling. Got \[1\].$"),
        (lambda: CSearchCV(NPSVOR(), couplings=[-1]), r"^couplings must be a non-negative number or infinity. Got -1.$"),
        (lambda: CSearchCV(NPSVOR(kernel="rbf"), couplings=[1]), r"^couplings must be None with kernel='rbf'. Got \[1\].$"),
    ],
)
def test_what_cannot_be_coupled_is_refused(ranked, make, message):
    with pytest.raises(ValueError, match=message):
        make().fit(*ranked)


def test_workers_refuse_it(ranked):
    with pytest.raises(ValueError, match=r"^coupling must be 0 for a fit over workers. Got 2.0.$"):
        fit_shard(NPSVOR(coupling=2.0), *ranked)
