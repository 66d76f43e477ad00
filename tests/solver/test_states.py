"""A solver whose state is set and read from outside, as those do who hold only some of the rows."""

import numpy as np
import pytest
import scipy.sparse as sp

import reference
from conftest import make_ranked
from rankplane import _core
from rankplane.solver import tables
from rankplane.solver.lanes import Lanes, Options

N_RANKS = 4
TABLES = {
    "npsvor": tables.npsvor(N_RANKS, 0.7, 1.3, 0.1, "hinge"),
    "thresholds": tables.thresholds(N_RANKS, 1.0, "squared_hinge"),
    "more than a block": tables.npsvor(40, 1.0, 1.0, 0.1, "hinge"),
}


@pytest.fixture(params=TABLES, ids=str)
def table(request):
    return np.ascontiguousarray(TABLES[request.param])


def make_lanes(X, y, table, **options):
    rows = ((y - 1) % len(table)).astype(np.int32)
    return Lanes(X, rows, table.shape, None, Options(**{"tol": 1e-9, "max_iter": 3, "shrinking": False} | options))


def state_of(solver):
    return solver.weights(), solver.offsets(), solver.duals()


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_state_that_is_read_can_be_set(table, n_threads):
    X, y = make_ranked(n_rows=200, n_columns=2000, density=0.03, seed=1)
    one, other = (make_lanes(X, y, table, n_threads=n_threads).solver for _ in range(2))
    one.run(table, [], 0, None)
    state = state_of(one)
    assert all(np.any(part) for part in state)
    np.testing.assert_allclose(state[0], np.einsum("ij,ikl->jl", X.toarray(), state[2]), atol=1e-10)
    other.start_from(*state)
    for set_part, part in zip(state_of(other), state, strict=True):
        np.testing.assert_array_equal(set_part, part)
    other.start_from(*state[:2], None)
    assert not np.any(other.duals())


def test_sweeps_go_on_from_the_state_that_was_set(table):
    """The steps are those of one solver that never stopped, but for the order of the rows, which is that of a first run."""
    X, y = make_ranked(n_rows=40, n_columns=30, seed=2)
    table, y = table[:N_RANKS, :, :N_RANKS], (y - 1) % N_RANKS + 1
    W, b, duals = reference.solve(X.toarray(), table, (y - 1).astype(np.int32), 1)
    lanes = make_lanes(X, y, np.ascontiguousarray(table))
    lanes.solver.start_from(W, b, duals)
    lanes.solver.run(np.ascontiguousarray(table), [], 0, None, max_sweeps=1)
    order = reference.next_order(np.arange(40), 0, 0)
    for i in order:
        for lane in range(table.shape[2]):
            for cut in range(table.shape[1]):
                a = duals[i, cut, lane]
                row, demand = X[[i]].toarray()[0], table[y[i] - 1, cut, lane]
                new = reference.step(a, row @ W[:, lane], b[cut, lane], demand, 1.0, row @ row, 1.0)
                W[:, lane] += (new - a) * row
                b[cut, lane] += new - a
                duals[i, cut, lane] = new
    for found, expected in zip(state_of(lanes.solver), (W, b, duals), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_each_run_may_have_its_own_number_of_sweeps(table):
    X, y = make_ranked(n_rows=300, n_columns=400, seed=3)
    lanes = make_lanes(X, y, table)
    for max_sweeps, expected in ((5, 5), (None, 3), (1, 1)):
        lanes.solver.run(table, [], 0, None, max_sweeps=max_sweeps)
        assert set(lanes.solver.results()["n_sweeps"]) == {expected}


@pytest.mark.parametrize("n_threads", [1, 2])
def test_certificates_of_shards_add_up(table, n_threads):
    X, y = make_ranked(n_rows=300, n_columns=400, density=0.2, seed=4)
    whole = make_lanes(X, y, table, n_threads=n_threads)
    n_lanes = whole.n_lanes
    whole.run(table, n_certified=n_lanes)
    results, (W, b, duals) = whole.solver.results(), state_of(whole.solver)
    at_once = whole.solver.certify(table, n_lanes)
    cut = 130
    sums = []
    for rows in (slice(0, cut), slice(cut, None)):
        shard = make_lanes(X[rows], y[rows], table)
        shard.solver.start_from(W, b, np.ascontiguousarray(duals[rows]))
        sums.append(shard.solver.certify(table, n_lanes))
        np.testing.assert_array_equal(shard.solver.weights(), W)
    for name, found in at_once.items():
        np.testing.assert_allclose(np.add(sums[0][name], sums[1][name]), found, rtol=1e-8, atol=1e-10, err_msg=name)
    np.testing.assert_allclose(at_once["gap"], results["gap"], rtol=1e-8)
    np.testing.assert_array_equal(at_once["support"], results["n_support"])
    np.testing.assert_allclose(np.reshape(at_once["positive"], b.shape), np.maximum(duals, 0).sum(axis=0))
    np.testing.assert_allclose(np.reshape(at_once["negative"], b.shape), np.minimum(duals, 0).sum(axis=0))
    squares = np.sum(W**2, axis=0) - np.sum(b**2, axis=0)
    np.testing.assert_allclose(at_once["dual"] - 0.5 * squares, results["dual_objective"], rtol=1e-8)


def test_only_some_lanes_are_certified():
    X, y = make_ranked(n_rows=60, n_columns=40, seed=5)
    table = TABLES["npsvor"]
    lanes = make_lanes(X, y, table)
    lanes.run(table)
    assert len(lanes.solver.certify(table, 2)["gap"]) == 2
    assert lanes.solver.certify(table, 2)["gap"] == lanes.solver.certify(table, 4)["gap"][:2]


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        (0, np.zeros((30, 4), dtype=np.float32), "weights must be a C-ordered array of the type of X"),
        (0, np.zeros((31, 4)), "weights must have the shape"),
        (1, np.zeros((1, 3)), "offsets must have the shape"),
        (2, np.zeros((50, 1, 4)), "duals must have the shape"),
        (2, np.zeros((60, 4)), "duals must be a C-ordered array"),
    ],
)
def test_states_of_another_shape_are_refused(part, value, message):
    X, y = make_ranked(n_rows=60, n_columns=30, seed=6)
    solver = make_lanes(X, y, TABLES["npsvor"]).solver
    state = [np.zeros((30, 4)), np.zeros((1, 4)), np.zeros((60, 1, 4))]
    state[part] = value
    with pytest.raises(ValueError, match=message):
        solver.start_from(*state)


def test_free_offsets_go_on_from_their_state():
    X, y = make_ranked(n_rows=60, n_columns=30, seed=7)
    table = np.ascontiguousarray(TABLES["thresholds"])
    first, second = (make_lanes(X, y, table, free_offsets=True, max_iter=n) for n in (100_000, 3))
    first.run(table, n_certified=1)
    solver = first.solver
    second.solver.start_from(solver.weights(), solver.offsets(), solver.duals())
    second.run(table, n_certified=1)
    np.testing.assert_allclose(second.solver.offsets(), solver.offsets(), atol=1e-4)
    assert second.solver.results()["gap"][0] < 1e-6


def test_solvers_that_are_done_take_no_state():
    X, y = make_ranked(n_rows=60, n_columns=30, seed=7)
    table = np.ascontiguousarray(TABLES["thresholds"])
    state = np.zeros((30, 1)), np.zeros((3, 1)), None
    solver = make_lanes(X, y, table).solver
    solver.run(table, [], 0, None)
    solver.take_weights(1)
    for call in (lambda: solver.start_from(*state), solver.weights, solver.duals, lambda: solver.certify(table, 1)):
        with pytest.raises(ValueError, match="its weights be taken last"):
            call()


def test_dense_rows_have_a_state_too():
    X, y = make_ranked(n_rows=60, n_columns=30, seed=8)
    table = TABLES["npsvor"]
    states = []
    for rows in (X, X.toarray()):
        solver = make_lanes(rows, y, table).solver
        solver.run(table, [], 0, None)
        states.append(state_of(solver))
    for sparse, dense in zip(*states, strict=True):
        np.testing.assert_allclose(sparse, dense, atol=1e-9)
    assert sp.issparse(X)
    assert isinstance(solver, _core.LaneSolver)
