"""The interior-point method for few columns: against the certificate, against sweeps alone, and where it takes over."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import reference
from rankplane import NPSVOR, SVOR, Committee, CSearchCV
from rankplane.solver import interior, lanes, tables
from rankplane.solver.lanes import Options, solve_planes

N_RANKS = 4
TABLES = {
    f"{name}, {loss}": table
    for loss in ("hinge", "squared_hinge")
    for name, table in {
        "npsvor": tables.npsvor(N_RANKS, 3.0, 20.0, 0.1, loss),
        "rest": tables.one_against_rest(N_RANKS, 20.0, loss),
        "pairs": tables.ordered_pairs(N_RANKS, 20.0, loss),
        "regression": tables.regression(N_RANKS, 20.0, 0.1, loss),
        "exact regression": tables.regression(N_RANKS, 20.0, 0.0, loss),
        "thresholds": tables.thresholds(N_RANKS, 20.0, loss),
    }.items()
}


def noisy_table(n_rows=150, n_columns=6, seed=0, noise=1.0):
    """Correlated columns and ranks that overlap, which sweeps take thousands of steps for."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns)) + rng.standard_normal((n_rows, 1))
    score = X @ rng.standard_normal(n_columns) + noise * rng.standard_normal(n_rows)
    ranks = np.searchsorted(np.quantile(score, [0.1, 0.5, 0.8]), score).astype(np.int32)
    return np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0)), ranks


@pytest.fixture(params=TABLES, ids=str)
def table(request):
    return TABLES[request.param]


@pytest.fixture
def sweeps_only(monkeypatch):
    monkeypatch.setattr(interior, "MAX_COLUMNS", 0)


@pytest.mark.parametrize("kind", ["penalised", "free", "none", "weighted", "single", "csr"])
def test_gap_closes_at_once(table, kind):
    X, ranks = noisy_table()
    weights = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if kind == "weighted" else None
    given = {"single": X.astype(np.float32), "csr": sp.csr_matrix(X)}.get(kind, X)
    options = Options(
        tol=1e-3,
        max_iter=2000,
        gap=1e-5,
        has_offsets=kind != "none",
        free_offsets=kind == "free",
        n_threads=2 if kind == "csr" else 1,
    )
    planes = solve_planes(given, table, ranks, options, row_weights=weights)
    assert np.all(planes.has_converged)
    assert planes.n_sweeps.max() < 400
    if kind in ("penalised", "csr"):  # what the certificate says is what the problem itself says
        primal = reference.primal(X, planes.weights, planes.offsets, table, ranks)
        np.testing.assert_allclose(primal, -planes.dual_objective, rtol=2e-5, atol=1e-8)


@pytest.mark.parametrize("free_offsets", [False, True])
def test_the_optimum_is_that_of_sweeps(table, free_offsets, monkeypatch):
    X, ranks = noisy_table(n_rows=60, n_columns=3)
    options = Options(tol=1e-9, max_iter=200_000, gap=1e-9, free_offsets=free_offsets)
    found = solve_planes(X, table, ranks, options)
    monkeypatch.setattr(interior, "MAX_COLUMNS", 0)
    expected = solve_planes(X, table, ranks, options)
    np.testing.assert_allclose(found.dual_objective, expected.dual_objective, rtol=1e-6)
    np.testing.assert_allclose(found.weights, expected.weights, atol=2e-3)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.floats(0.01, 100), st.sampled_from(["hinge", "squared_hinge"]))
def test_duals_are_feasible_and_make_the_weights(seed, n_columns, C, loss):
    X, ranks = noisy_table(40, n_columns, seed)
    for table, rho in ((tables.npsvor(N_RANKS, C, C, 0.1, loss), 1.0), (tables.thresholds(N_RANKS, C, loss), np.inf)):
        demands = table[:, :, 0][ranks]
        found = interior.solve_lane(X, demands, rho)
        assert np.all((found.duals >= demands[..., 0]) & (found.duals <= demands[..., 1]))
        np.testing.assert_allclose(X.T @ found.duals.sum(axis=1), found.weights, atol=1e-9 * C)
        sums = found.duals.sum(axis=0)
        if np.isinf(rho):
            np.testing.assert_allclose(sums, 0, atol=1e-5 * C)
        else:
            np.testing.assert_allclose(found.offsets, sums, atol=1e-9 * C)


def test_leaves_alone_what_has_no_optimum():
    X, ranks = noisy_table(30, 2)
    demands = tables.thresholds(N_RANKS, 1.0, "hinge")[:, :, 0][np.zeros(30, dtype=int)]
    assert interior.solve_lane(X, demands, np.inf) is None  # all rows below: free offsets may fall for ever
    assert interior.solve_lane(X, np.zeros_like(demands), 1.0) is None
    assert ranks.max() == N_RANKS - 1


def test_wide_data_is_left_to_sweeps():
    assert interior.sweeps_before((1000, interior.MAX_COLUMNS + 1)) == interior.NEVER
    assert interior.sweeps_before((1 << 30, 10)) == interior.NEVER
    assert interior.sweeps_before((1000, 10)) < interior.sweeps_before((1000, 100)) < 1000


@pytest.mark.parametrize("model", [NPSVOR, SVOR, Committee])
@pytest.mark.parametrize("tol", [0.1, None])
def test_searches_on_tables_converge(model, tol):
    """At the tolerance of the paper, too, and without a warning."""
    X, ranks = noisy_table(400, 8, noise=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = CSearchCV(model(tol=tol, probability=True), Cs=[1.0, 32.0, 1024.0], patience=None).fit(X, ranks)
    assert search.cv_results_["n_iter"].max() < 1000


@pytest.mark.usefixtures("sweeps_only")
def test_warnings_say_what_helps():
    X, ranks = noisy_table(noise=3.0)
    with pytest.warns(ConvergenceWarning, match=r"violation .* \(tol=0.001\)\. Raise max_iter, raise tol or lower C\.$"):
        NPSVOR(C=100, tol=1e-3, max_iter=20).fit(X, ranks)
    with pytest.warns(ConvergenceWarning, match=r"% of the objective\. Scale the columns of X, raise max_iter or lower C\.$"):
        NPSVOR(C=100, max_iter=20).fit(X * np.array([1, 1, 1, 1, 1, 1000.0]), ranks)
    # The final fit of a search is more accurate than it was asked for.
    with pytest.warns(ConvergenceWarning, match=r"\(a tenth of tol=0.1\)"):
        CSearchCV(NPSVOR(tol=0.1, max_iter=20, probability=True), Cs=[100.0]).fit(X, ranks)


def test_sparse_columns_need_no_scaling():
    assert not lanes.has_uneven_columns(sp.csr_matrix([[1.0, 0.001]]))
    assert lanes.has_uneven_columns(np.array([[1.0, 0.001, 0.0]]))
    assert not lanes.has_uneven_columns(np.array([[1.0, 0.5, 0.0]]))
