"""The compiled solver against the plain one, against itself, and against its own certificate."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import reference
from conftest import make_ranked
from rankplane import _core
from rankplane.solver import tables
from rankplane.solver.lanes import Options
from rankplane.solver.lanes import solve_planes as solve_with_options

N_RANKS = 4
TABLES = {
    "npsvor": tables.npsvor(N_RANKS, 0.7, 1.3, 0.1, "hinge"),
    "npsvor squared": tables.npsvor(N_RANKS, 0.7, 1.3, 0.1, "squared_hinge"),
    "rest": tables.one_against_rest(N_RANKS, 1.0, "hinge"),
    "pairs": tables.ordered_pairs(N_RANKS, 1.0, "squared_hinge"),
    "regression": tables.regression(N_RANKS, 1.0, 0.1, "hinge"),
    "thresholds": tables.thresholds(N_RANKS, 1.0, "hinge"),
    "npsvor logistic": tables.npsvor(N_RANKS, 0.7, 1.3, 0.1, "logistic"),
    "thresholds logistic": tables.thresholds(N_RANKS, 2.0, "logistic"),
    "both": np.concatenate(
        [tables.npsvor(N_RANKS, 3.0, 3.0, 1.5, "logistic"), tables.one_against_rest(N_RANKS, 1.0, "hinge")], axis=2
    ),
}


def solve_planes(X, table, rows, *, row_weights=None, **options):
    return solve_with_options(X, table, rows, Options(**options), row_weights=row_weights)


@pytest.fixture(params=TABLES, ids=str)
def table(request):
    return TABLES[request.param]


def data(n_rows=60, dtype=np.float64, seed=1):
    X, y = make_ranked(n_rows=n_rows, n_columns=12, n_ranks=N_RANKS, seed=seed, dtype=dtype)
    X = X.tolil()
    X[3] = 0  # an empty row
    return sp.csr_matrix(X, dtype=dtype), (y - 1).astype(np.int32)


def tight(X, table, rows, **options):
    return solve_planes(X, table, rows, tol=1e-8, max_iter=2_000_000, **options)


@pytest.mark.parametrize("n_sweeps", [1, 3])
@pytest.mark.parametrize("has_offsets", [True, False])
def test_equals_the_reference_sweep_by_sweep(table, n_sweeps, has_offsets):
    X, rows = data()
    weights = np.random.default_rng(0).uniform(0.5, 2, X.shape[0])
    W, b, duals = reference.solve(X.toarray(), table, rows, n_sweeps, rho=float(has_offsets), weights=weights, seed=7)
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
        planes = solve_planes(
            X, table, rows, row_weights=weights, has_offsets=has_offsets, tol=1e-12, max_iter=n_sweeps, shrinking=False, seed=7
        )
    np.testing.assert_allclose(planes.weights, W, atol=1e-10)
    np.testing.assert_allclose(planes.offsets, b, atol=1e-10)
    # Soft duals are zero only by chance, where rounding decides.
    n_support = np.where(np.any(table[..., 5], axis=(0, 1)), X.shape[0], np.any(duals != 0, axis=1).sum(axis=0))
    np.testing.assert_array_equal(planes.n_support, n_support)


def test_certificate_is_what_it_says(table):
    X, rows = data()
    with pytest.warns(ConvergenceWarning):
        planes = solve_planes(X, table, rows, tol=1e-12, max_iter=2, shrinking=False, seed=3)
    primal = reference.primal(X.toarray(), planes.weights, planes.offsets, table, rows)
    np.testing.assert_allclose(planes.gap, primal + planes.dual_objective, rtol=1e-8)
    assert np.all(planes.gap > 0)


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_gap_closes_in_double(table, shrinking, n_threads):
    X, rows = make_ranked(n_rows=400, n_columns=200, density=0.25, n_ranks=N_RANKS, seed=2)
    planes = tight(X, table, (rows - 1).astype(np.int32), shrinking=shrinking, n_threads=n_threads)
    assert np.all(planes.has_converged)
    assert np.all(planes.gap <= 1e-6 * np.abs(planes.dual_objective))


def test_gap_is_small_in_single(table):
    X, rows = data(300, np.float32)
    planes = solve_planes(X, table, rows, tol=1e-4, max_iter=100_000)
    assert planes.weights.dtype == np.float32
    assert np.all(planes.gap <= 1e-3 * np.abs(planes.dual_objective))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_ranks", [2, 3, 5, 8, 12, 20, 24, 31])
def test_instruction_sets_agree(dtype, n_ranks, monkeypatch):
    X, y = make_ranked(n_rows=150, n_columns=40, n_ranks=n_ranks, seed=4, dtype=dtype)
    solved = {}
    for isa in _core.isas():
        monkeypatch.setenv("RANKPLANE_ISA", isa)
        assert _core.isa() == isa
        solved[isa] = solve_planes(X, tables.npsvor(n_ranks, 1, 1, 0.1, "hinge"), (y - 1).astype(np.int32), tol=1e-3, max_iter=9999)
    first, *others = solved.values()
    for other in others:
        np.testing.assert_allclose(other.weights, first.weights, atol=2e-2 if dtype == np.float32 else 1e-9)
        np.testing.assert_allclose(other.dual_objective, first.dual_objective, rtol=1e-3 if dtype == np.float32 else 1e-12)


def test_unknown_instruction_set_is_refused(monkeypatch):
    monkeypatch.setenv("RANKPLANE_ISA", "abacus")
    with pytest.raises(ValueError, match=r"RANKPLANE_ISA must be one that this machine has: .*portable. Got abacus."):
        _core.isa()


def test_layouts_agree():
    """Sparse and dense rows, and both widths of index, are one problem."""
    X, rows = data(200)
    table = TABLES["npsvor"]
    wide = sp.csr_matrix(X)
    wide.indptr, wide.indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
    solved = [solve_planes(A, table, rows, tol=1e-3, max_iter=9999) for A in (X, wide, X.toarray())]
    np.testing.assert_array_equal(solved[0].weights, solved[1].weights)
    np.testing.assert_allclose(solved[2].weights, solved[0].weights, atol=1e-9)


def test_many_lanes_equal_few():
    """A lane's result does not depend on which lanes share its block, nor on the threads that blocks are spread over."""
    X, y = make_ranked(n_rows=300, n_columns=50, n_ranks=40, seed=5)
    table, rows = tables.npsvor(40, 1, 1, 0.1, "hinge"), (y - 1).astype(np.int32)
    together = solve_planes(X, table, rows, tol=1e-2, max_iter=9999)
    spread = solve_planes(X, table, rows, tol=1e-2, max_iter=9999, n_threads=3)
    np.testing.assert_array_equal(together.weights, spread.weights)
    for lane in (0, 7, 39):
        alone = solve_planes(X, np.ascontiguousarray(table[:, :, [lane]]), rows, tol=1e-2, max_iter=9999)
        np.testing.assert_allclose(alone.weights[:, 0], together.weights[:, lane], atol=1e-9)
        assert alone.n_sweeps[0] == together.n_sweeps[lane]


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("make", [sp.csr_matrix, lambda X: X.toarray()], ids=["sparse", "dense"])
def test_same_bits_every_time(n_threads, make):
    X, y = make_ranked(n_rows=500, n_columns=300, density=0.3, seed=6, dtype=np.float32)
    X, rows = make(X), (y - 1).astype(np.int32)
    first, second = (
        solve_planes(X, TABLES["npsvor"], rows, tol=1e-3, max_iter=9999, seed=1, n_threads=n_threads) for _ in range(2)
    )
    np.testing.assert_array_equal(first.weights, second.weights)
    np.testing.assert_array_equal(first.gap, second.gap)


def test_threads_change_no_more_than_the_gaps_allow(table):
    """The primal is strongly convex, so a solution with gap g is within sqrt(2 g) of the optimum: the documented bound."""
    X, y = make_ranked(n_rows=2000, n_columns=400, density=0.2, seed=7)
    rows = (y - 1).astype(np.int32)
    one, two = (solve_planes(X, table, rows, tol=0.1, max_iter=9999, n_threads=n, batch=128) for n in (1, 2))
    distance = np.sqrt(np.sum((one.weights - two.weights) ** 2, axis=0) + np.sum((one.offsets - two.offsets) ** 2, axis=0))
    assert np.all(distance <= np.sqrt(2 * one.gap) + np.sqrt(2 * two.gap))
    assert np.any(distance > 0)


def test_split_variables_reach_the_same_optimum():
    X, rows = data(200)
    whole = tight(X, tables.npsvor(N_RANKS, 1, 1, 0.1, "hinge"), rows)
    halves = tight(X, tables.npsvor_split(N_RANKS, 1, 1, 0.1, "hinge"), np.concatenate([rows, rows + np.int32(N_RANKS)]))
    np.testing.assert_allclose(halves.dual_objective, whole.dual_objective, rtol=1e-7)
    np.testing.assert_allclose(halves.weights, whole.weights, atol=1e-4)


def test_lanes_that_end_early_keep_their_answer():
    """Lanes of very different difficulty: the block is narrowed under way."""
    X, y = make_ranked(n_rows=200, n_columns=30, n_ranks=16, seed=8)
    table = tables.npsvor(16, 1, 1, 0.1, "hinge")
    table[:, :, 3:, :2] *= 1e-3  # easy lanes: hardly any room for the duals
    rows = (y - 1).astype(np.int32)
    together = solve_planes(X, table, rows, tol=1e-8, max_iter=50_000)
    assert together.n_sweeps.max() > 2 * np.median(together.n_sweeps)
    assert np.all(together.gap <= 1e-6 * np.abs(together.dual_objective) + 1e-12)
    hard = solve_planes(X, np.ascontiguousarray(table[:, :, :3]), rows, tol=1e-8, max_iter=50_000)
    np.testing.assert_allclose(together.weights[:, :3], hard.weights, atol=1e-6)


def test_a_weight_of_zero_is_no_row():
    X, rows = data(100)
    weights = np.where(np.arange(100) % 3 == 0, 0.0, 1.5)
    kept = weights > 0
    for table in (TABLES["npsvor"], TABLES["npsvor squared"]):
        weighted = tight(X, table, rows, row_weights=weights)
        removed = tight(X[kept], table, rows[kept], row_weights=weights[kept])
        np.testing.assert_allclose(weighted.dual_objective, removed.dual_objective, rtol=1e-7)
        np.testing.assert_allclose(weighted.weights, removed.weights, atol=1e-4)


def test_empty_rows_cost_what_they_must():
    """Without offsets an empty row scores zero whatever the planes; the gap closes all the same."""
    X = sp.csr_matrix(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]))
    table = tables.regression(3, 1.0, 0.1, "hinge")
    planes = tight(X, table, np.array([2, 0, 1], dtype=np.int32), has_offsets=False)
    assert planes.gap[0] <= 1e-6 * abs(planes.dual_objective[0])


problems = st.integers(0, 2**31 - 1)


@settings(max_examples=25, deadline=None)
@given(problems, st.sampled_from(sorted(TABLES)))
def test_order_of_rows_and_columns_is_irrelevant(seed, name):
    X, rows = data(50, seed=seed)
    rng = np.random.default_rng(seed)
    table, by_row, by_column = TABLES[name], rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
    plain, shuffled = tight(X, table, rows), tight(sp.csr_matrix(X[by_row][:, by_column]).sorted_indices(), table, rows[by_row])
    np.testing.assert_allclose(shuffled.dual_objective, plain.dual_objective, rtol=1e-6)
    np.testing.assert_allclose(shuffled.weights, plain.weights[by_column], atol=1e-3)


@settings(max_examples=25, deadline=None)
@given(problems, st.sampled_from(sorted(TABLES)))
def test_a_row_twice_is_a_row_of_double_weight(seed, name):
    X, rows = data(40, seed=seed)
    twice = np.random.default_rng(seed).random(40) < 0.4
    doubled = tight(X, TABLES[name], rows, row_weights=np.where(twice, 2.0, 1.0))
    repeated = tight(sp.vstack([X, X[twice]]).tocsr(), TABLES[name], np.concatenate([rows, rows[twice]]))
    np.testing.assert_allclose(repeated.dual_objective, doubled.dual_objective, rtol=1e-6)
    np.testing.assert_allclose(repeated.weights, doubled.weights, atol=1e-3)


def test_entries_beyond_two_to_the_31():
    """One endless row of zeros, then ordinary rows, whose entries lie past what 32 bits can address.

    The zeros are mapped, never written, so they take no memory.
    """
    X, rows = data(20, np.float32)
    n_zeros = 2**31 + 12_345
    try:
        columns, values = np.zeros(n_zeros + X.nnz, dtype=np.int64), np.zeros(n_zeros + X.nnz, dtype=np.float32)
    except MemoryError:
        pytest.skip("this machine does not map 26 GB of zeros")
    columns[n_zeros:], values[n_zeros:] = X.indices, X.data
    starts = np.concatenate([[0], n_zeros + X.indptr.astype(np.int64)])
    options = Options(tol=1e-9, max_iter=2, shrinking=False).for_core()
    table = np.concatenate([TABLES["regression"], np.zeros((1, 1, 1, 6))])  # the endless row demands nothing
    long = _core.sparse_solver(
        starts, columns, values, X.shape[1], np.concatenate([[N_RANKS], rows]).astype(np.int32), None, 1, 1, options
    )
    long.run(table, [], 1, None)
    W, b = long.take_weights(1)
    expected = reference.solve(np.vstack([np.zeros((1, X.shape[1])), X.toarray()]), table, np.concatenate([[N_RANKS], rows]), 2)
    np.testing.assert_allclose(W, expected[0], atol=1e-4)
    np.testing.assert_allclose(b, expected[1], atol=1e-4)
