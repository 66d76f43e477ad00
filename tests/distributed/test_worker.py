"""Fits over workers against fits in one place. Their certificates bound how far the planes may differ."""

from dataclasses import asdict

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from conftest import make_ranked
from rankplane import (
    KDLOR,
    NPSVOR,
    SVC,
    SVMOP,
    SVOR,
    SVOREX,
    SVR,
    AdversarialOrdinal,
    Committee,
    CrammerSinger,
    CSearchCV,
    RedSVM,
    load_model,
    save_model,
)
from rankplane.distributed import FitInterruptedError, PeerLostError, Threads, fit_shard
from rankplane.distributed.comm import Alone
from rankplane.distributed.rounds import Columns
from rankplane.distributed.shard import read_shard

LOSSES = ["hinge", "squared_hinge", "logistic"]
LONG = {"max_rounds": 2000, "sweeps": 5}


def deal(size, *arrays):
    """Shards of equal size, row by row in turn."""
    return [tuple(array[rank::size] for array in arrays) for rank in range(size)]


def fit(model, shards, **options):
    def work(comm):
        X, y, *weights = shards[comm.rank]
        return fit_shard(model, X, y, comm, sample_weight=weights[0] if weights else None, **options)

    return Threads(len(shards)).run(work)[0]


def assert_same_planes(one, other):
    """No farther apart than the gaps allow: the documented bound."""
    distance = np.sqrt(np.sum((one.coef_ - other.coef_) ** 2, axis=1))
    assert np.all(distance <= np.sqrt(2 * one.duality_gap_) + np.sqrt(2 * other.duality_gap_) + 1e-6)


@pytest.mark.parametrize("model", [NPSVOR, SVC, SVR, SVMOP, RedSVM, SVOR], ids=lambda model: model.__name__)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_planes_are_those_of_one_place(model, size):
    X, y = make_ranked(n_rows=500, n_columns=300, density=0.05, seed=1)
    apart = fit(model(tol=0.03), deal(size, X, y), holdout=0, **LONG)
    alone = model(tol=1e-4, max_iter=100_000).fit(X, y)
    assert apart.rounds_[-1].why_last == "gap"
    assert np.all(apart.duality_gap_ <= 0.03**2 * np.abs(apart.dual_objective_) * 1.01)
    assert_same_planes(apart, alone)
    np.testing.assert_allclose(apart.dual_objective_, alone.dual_objective_, rtol=2e-3)
    assert np.mean(apart.predict(X) == alone.predict(X)) > 0.98
    assert apart.coef_.dtype == X.dtype


@pytest.mark.parametrize("model", [CrammerSinger(), AdversarialOrdinal(), AdversarialOrdinal(form="thresholds")], ids=str)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_joined_planes_are_those_of_one_place(model, size):
    X, y = make_ranked(n_rows=500, n_columns=300, density=0.05, seed=1)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    alone = clone(model).set_params(tol=1e-5, max_iter=100_000).fit(X, y, weights)
    apart = fit(model.set_params(tol=0.03), deal(size, X, y, weights), holdout=0, **LONG)
    assert apart.rounds_[-1].why_last == "gap"
    assert np.all(apart.duality_gap_ <= 0.03**2 * np.abs(apart.dual_objective_) * 1.01)
    np.testing.assert_allclose(np.sum(apart.dual_objective_), np.sum(alone.dual_objective_), rtol=2e-3)
    assert np.mean(apart.predict(X) == alone.predict(X)) > 0.98


def test_joined_planes_over_workers_with_a_search_and_probabilities():
    """Bounds become wider along the path, and duals are put back between those of the best C for the final planes."""
    X, y = make_ranked(n_rows=1000, n_columns=60, density=0.2, seed=1)
    X, y, X_test, y_test = X[:500], y[:500], X[500:], y[500:]
    search = CSearchCV(CrammerSinger(probability=True, random_state=0), Cs=[0.01, 0.1, 1.0, 10.0])
    apart = fit(search, deal(3, X, y), holdout=0.3)
    alone = clone(search).fit(X, y)
    errors = [np.mean(np.abs(model.predict(X_test) - y_test)) for model in (apart, alone)]
    assert errors[0] == pytest.approx(errors[1], abs=0.1)
    assert errors[0] < 0.6 * np.mean(np.abs(np.median(y) - y_test))


@pytest.mark.parametrize("model", [SVOREX, KDLOR], ids=lambda model: model.__name__)
def test_models_whose_rows_must_be_together_are_refused(model):
    X, y = make_ranked(n_rows=40)
    with pytest.raises(ValueError, match=f"model must be one that can be fitted over workers, .* Got {model.__name__}"):
        fit(model(), deal(2, X, y))


@pytest.mark.parametrize("loss", LOSSES)
def test_both_losses_and_all_weights(loss):
    X, y = make_ranked(n_rows=400, n_columns=100, seed=2)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = NPSVOR(tol=0.03, loss=loss, class_weight="balanced", column_weight="ranks")
    apart = fit(model, deal(3, X, y, weights), holdout=0, **LONG)
    alone = model.set_params(tol=1e-4, max_iter=100_000).fit(X, y, weights)
    np.testing.assert_allclose(apart.dual_objective_, alone.dual_objective_, rtol=2e-3)
    np.testing.assert_allclose(apart.plane_scores(X), alone.plane_scores(X), atol=0.15)


def test_dense_rows_and_split_variables():
    X, y = make_ranked(n_rows=200, n_columns=20, density=0.5, seed=3)
    for model, rows in ((NPSVOR(tol=0.03), X.toarray()), (NPSVOR(tol=0.03, solver="dcd1", fit_intercept=False), X)):
        apart = fit(model, deal(2, rows, y), holdout=0, **LONG)
        alone = model.set_params(tol=1e-4, max_iter=100_000).fit(rows, y)
        np.testing.assert_allclose(apart.dual_objective_, alone.dual_objective_, rtol=2e-3)


def test_same_bits_every_time():
    X, y = make_ranked(n_rows=400, n_columns=300, seed=4, dtype=np.float32)
    model = NPSVOR(probability=True, random_state=3)
    first, second = (fit(model, deal(3, X, y), sweeps=5) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert first.coef_.dtype == np.float32
    assert not np.array_equal(first.coef_, fit(model.set_params(random_state=4), deal(3, X, y), sweeps=5).coef_)


def test_weights_are_the_sum_of_the_duals():
    """The certificate of the final planes belongs to them: it is the primal plus the dual objective."""
    import reference

    X, y = make_ranked(n_rows=200, n_columns=60, seed=5)
    model = fit(NPSVOR(tol=0.3), deal(3, X, y), holdout=0, **LONG)
    table, rows = model._table(4), (y - 1).astype(np.int32)
    primal = reference.primal(X.toarray(), model.coef_.T, model.intercept_[None], table, rows)
    np.testing.assert_allclose(model.duality_gap_, primal + model.dual_objective_, rtol=1e-6)


@settings(max_examples=6, deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(2, 6),
    st.sampled_from(LOSSES),
    st.sampled_from([NPSVOR, SVC, SVOR]),
)
def test_every_round_improves_the_objective_and_closes_the_gap(seed, size, loss, kind):
    """Whatever the shards are like: shards of one rank, of hardly any rows, of none."""
    random = np.random.default_rng(seed)
    X, y = make_ranked(n_rows=120, n_columns=int(random.integers(2, 60)), density=0.4, seed=seed)
    worker = np.where(random.random(120) < 0.5, y % size, random.integers(0, size - 1, 120))
    shards = [(X[worker == rank], y[worker == rank]) for rank in range(size)]
    model = kind(tol=0.1, loss=loss, C=float(2.0 ** random.integers(-4, 4)))
    found = fit(model, shards, holdout=0, max_rounds=3000, sweeps=3)
    assert found.rounds_[-1].why_last == "gap"
    objectives = [one.objective for one in found.rounds_]
    if kind is not SVOR:
        assert np.all(np.diff(objectives) <= 1e-5 * np.abs(objectives[:-1]))
    alone = kind(tol=1e-4, loss=loss, C=model.C, max_iter=1_000_000).fit(X, y)
    np.testing.assert_allclose(found.dual_objective_, alone.dual_objective_, rtol=0.02, atol=1e-6)


# --- shards --------------------------------------------------------------------------------------------------------------------


def uneven():
    """A worker without rows, one with a single rank that nobody else has, and one with almost everything."""
    X, y = make_ranked(n_rows=300, n_columns=100, seed=6)
    top = y == 4
    return [(X[~top], y[~top]), (None, None), (X[top][:0], y[:0]), (X[top], y[top])], X, y


def test_workers_may_have_no_rows_and_ranks_of_their_own():
    shards, X, y = uneven()
    found = fit(NPSVOR(tol=0.1), shards, holdout=0, **LONG)
    assert found.classes_.tolist() == [1, 2, 3, 4]
    assert_same_planes(found, NPSVOR(tol=1e-3, max_iter=100_000).fit(X, y))


def test_only_worker_0_has_the_model():
    X, y = make_ranked()
    found = Threads(3).run(lambda comm: fit_shard(NPSVOR(), *deal(3, X, y)[comm.rank], comm))
    assert isinstance(found[0], NPSVOR)
    assert found[1:] == [None, None]


def test_labels_of_all_workers_are_ranks():
    X, y = make_ranked(n_rows=120)
    names = np.array(["low", "mid", "high", "top"])
    found = fit(NPSVOR(ranks=names), deal(2, X, names[y - 1]), sweeps=5)
    assert found.classes_.tolist() == names.tolist()
    assert set(found.predict(X)) <= set(names)
    halves = fit(NPSVOR(), [(X[y < 3], y[y < 3] / 2), (X[y > 2], (y[y > 2] / 2).astype(np.float32))], max_rounds=300)
    assert halves.classes_.tolist() == [0.5, 1.0, 1.5, 2.0]
    assert fit(NPSVOR(), deal(2, X, y.astype(np.int8)), sweeps=5).classes_.dtype == np.int8


def test_types_are_those_that_hold_all_rows():
    X, y = make_ranked(n_rows=100)
    shards = [(X[:50].astype(np.float32), y[:50]), (X[50:].toarray(), y[50:])]
    assert fit(NPSVOR(), shards, sweeps=5).coef_.dtype == np.float64


def test_columns_that_only_one_worker_has():
    X, y = make_ranked(n_rows=200, n_columns=40, seed=7)
    apart = sp.block_diag([X[:100], X[100:]]).tocsr()
    shards = [(apart[:100], y[:100]), (apart[100:], y[100:])]
    columns = Threads(2).run(lambda comm: Columns.of(read_shard(NPSVOR(), *shards[comm.rank], None, comm), comm))
    assert len(columns[0].shared) == 0
    assert np.all(columns[0].factors(0.03) == 1)
    found = fit(NPSVOR(tol=0.03), shards, holdout=0, **LONG)
    assert found.rounds_[0].n_bytes == 0
    assert_same_planes(found, NPSVOR(tol=1e-4, max_iter=100_000).fit(apart, y))


@pytest.mark.parametrize(
    ("shards", "message"),
    [
        (
            [(np.ones((3, 2)), [1, 2, 3]), (np.ones((3, 3)), [1, 2, 3])],
            r"the same number of features on all workers. Got 2 on worker 0, 3",
        ),
        ([(np.ones((3, 2)), [1, 2, 3]), (np.full((3, 2), np.nan), [1, 2, 3])], r"^Worker 1: X must contain only finite numbers"),
        ([(np.ones((3, 2)), [1, 1, 1]), (np.ones((3, 2)), [1, 1, 1])], r"at least two different ranks"),
        ([(np.ones((3, 2)), [1, 2, 3]), (np.ones((3, 2)), [1, 2])], r"^Worker 1: y must have one label per sample"),
        ([(np.ones((3, 2)), [1, 2, 3]), (np.ones((3, 2)), ["a", "b", "c"])], r"^Worker 1: y must contain numbers"),
        ([(None, None), (None, None)], r"at least one sample. Got none on any worker"),
    ],
)
def test_what_one_worker_refuses_all_refuse(shards, message):
    def work(comm):
        with pytest.raises(ValueError, match=message):
            fit_shard(NPSVOR(), *shards[comm.rank], comm)

    Threads(2).run(work)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (NPSVOR(kernel="rbf"), {}, "kernel must be 'linear' for a fit over workers. Got 'rbf'"),
        (NPSVOR(C=-1), {}, "C must be a positive number. Got -1"),
        ("NPSVOR", {}, "model must be a model of this package"),
        (NPSVOR(), {"sweeps": 0}, "sweeps must be a positive integer. Got 0"),
        (NPSVOR(), {"holdout": 0.7}, "holdout must be a share of at most 0.5 of the samples. Got 0.7"),
        (CSearchCV(NPSVOR(), cv=5), {}, "cv must be 'auto' for a fit over workers"),
    ],
)
def test_what_makes_no_sense_is_refused(model, options, message):
    X, y = make_ranked()
    with pytest.raises(ValueError, match=message):
        fit_shard(model, X, y, **options)


def test_too_few_rounds_are_a_warning():
    X, y = make_ranked(n_rows=300)
    with pytest.warns(ConvergenceWarning, match="stopped after max_rounds=1 rounds with a gap of"):
        fit_shard(NPSVOR(tol=1e-3), X, y, max_rounds=1, holdout=0)


# --- held-out rows -------------------------------------------------------------------------------------------------------------


def test_held_out_rows_are_a_share_of_every_rank():
    X, y = make_ranked(n_rows=1000, seed=8)
    weights = (np.arange(1000) % 7 > 0).astype(float)
    shard = read_shard(NPSVOR(), X, y, weights, Alone())
    held = shard.hold_out(200)
    np.testing.assert_allclose(np.bincount(y[held])[1:] / np.bincount(y)[1:], 0.2 * 6 / 7, atol=0.04)
    assert np.all(weights[held] > 0)
    np.testing.assert_array_equal(shard.hold_out(200), held)
    more = shard.hold_out(200, held[:600])
    np.testing.assert_array_equal(more[:600], held[:600])
    assert more[600:].sum() == pytest.approx(80, abs=15)
    assert not shard.hold_out(0).any()


def test_probabilities_are_learnt_from_the_held_out_rows_of_all_workers():
    X, y = make_ranked(n_rows=2000, n_columns=200, seed=9)
    new, labels = make_ranked(n_rows=2000, n_columns=200, seed=9)
    found = fit(Committee(), deal(3, X[:1500], y[:1500]), sweeps=5)
    alone = Committee().fit(X[:1500], y[:1500])
    for model in (found, alone):
        p = model.predict_proba(new[1500:])
        np.testing.assert_allclose(p.sum(axis=1), 1)
    errors = [np.abs(model.predict(new[1500:]) - labels[1500:]).mean() for model in (found, alone)]
    assert errors[0] < errors[1] + 0.05
    assert found.predict_set(new[1500:]).shape == (500, 4)


@pytest.fixture(scope="module")
def searched():
    X, y = make_ranked(n_rows=2000, n_columns=200, seed=10)
    model = CSearchCV(NPSVOR(probability=True, decision="mae"), Cs=[0.03, 0.1, 0.3, 1, 3, 10, 30])
    return fit(model, deal(3, X, y), sweeps=5), X, y


def test_search_on_one_holdout(searched):
    found, X, y = searched
    alone = CSearchCV(NPSVOR(probability=True, decision="mae"), Cs=found.Cs).fit(X, y)
    assert abs(np.log(found.best_C_ / alone.best_C_)) < 1.3
    assert found.best_score_ == pytest.approx(alone.best_score_, abs=0.1)
    assert found.n_splits_ == 1
    assert found.best_C_ == found.best_estimator_.C
    assert found.score(X, y) == pytest.approx(alone.score(X, y), abs=0.05)
    phases = {one.phase for one in found.rounds_}
    assert {f"C={C:.4g}" for C, why in zip(found.Cs, found.cv_results_["why_not_tried"], strict=True) if not why} < phases
    assert "final planes" in phases


def test_the_result_is_an_ordinary_estimator(searched, tmp_path):
    found, X, _ = searched
    for model in (found.best_estimator_, found):
        save_model(model, tmp_path / "m.rankplane")
        np.testing.assert_array_equal(load_model(tmp_path / "m.rankplane").predict(X), model.predict(X))
    assert len(found.explain(X[:3])) == 3


def test_search_of_two_prices_and_scorers():
    X, y = make_ranked(n_rows=600, seed=11)
    found = fit(CSearchCV(NPSVOR(), Cs=[0.1, 1], C1s=[0.1, 1], scoring="balanced_accuracy"), deal(2, X, y), sweeps=5)
    assert found.best_params_.keys() == {"C1", "C2"}
    assert len(found.cv_results_["params"]) == 4


# --- reports and interruptions -------------------------------------------------------------------------------------------------


def test_rounds_report_how_it_goes():
    X, y = make_ranked(n_rows=600, seed=12)
    heard = []

    def work(comm):
        own = heard.append if comm.rank == 1 else None
        return fit_shard(NPSVOR(), *deal(2, X, y)[comm.rank], comm, on_round=own)

    found = Threads(2).run(work)[0]
    assert repr(heard) == repr(found.rounds_)
    assert [one.number for one in heard] == list(range(1, len(heard) + 1))
    watched = [one for one in heard if one.phase != "final planes"]
    assert watched[-1].why_last in ("gap", "error settled")
    assert all(0 <= one.error < 3 for one in watched)
    assert all(one.n_bytes == 30 * 4 * 8 for one in heard)
    assert heard[0].n_sweeps == 5
    assert str(heard[0]).startswith("round 1  without held-out rows  objective")


class Failing:
    """A worker whose peers are lost in the n-th call."""

    def __init__(self, comm, n_calls):
        self.comm, self.n_left = comm, n_calls
        self.rank, self.size = comm.rank, comm.size

    def _count(self):
        self.n_left -= 1
        if self.n_left < 0:
            raise PeerLostError("Worker 9 is gone.")

    def allreduce(self, array):
        self._count()
        return self.comm.allreduce(array)

    def broadcast(self, array, root):
        self._count()
        return self.comm.broadcast(array, root)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.8, 0.97])
@pytest.mark.parametrize("kind", [NPSVOR, SVOR])
def test_an_interrupted_fit_goes_on(share, kind):
    """All workers are interrupted; then worker 1 is replaced by one that knows nothing, and has a row more."""
    X, y = make_ranked(n_rows=900, n_columns=150, seed=13)
    model = CSearchCV(kind(probability=True), Cs=[0.1, 0.3, 1, 3])
    shards = deal(3, X, y)
    calls = Threads(3).run(lambda comm: count_calls(model, shards[comm.rank], comm))

    def interrupted(comm):
        with pytest.raises(FitInterruptedError, match="Worker 9 is gone") as error:
            fit_shard(model, *shards[comm.rank], Failing(comm, int(share * calls[0])), sweeps=3)
        return error.value.checkpoint

    checkpoints = Threads(3).run(interrupted)
    n_before = 0 if checkpoints[0] is None else len(checkpoints[0].common["reports"])
    assert (share > 0.1) == (n_before > 0)
    more = [*shards]
    more[1] = (sp.vstack([shards[1][0], X[:1]]).tocsr(), np.append(shards[1][1], y[0]))

    def go_on(comm):
        known = None if comm.rank == 1 else checkpoints[comm.rank]
        return fit_shard(model, *more[comm.rank], comm, sweeps=3, checkpoint=known)

    found = Threads(3).run(go_on)[0]
    whole = fit(model, more, sweeps=3)
    known = [] if n_before == 0 else checkpoints[0].common["reports"]
    assert repr([asdict(one) for one in found.rounds_[:n_before]]) == repr(known)
    assert [one.number for one in found.rounds_] == list(range(1, len(found.rounds_) + 1))
    assert len(found.rounds_) <= len(whole.rounds_) + 15
    assert found.rounds_[-1].why_last == "gap"
    assert found.best_score_ == pytest.approx(whole.best_score_, abs=0.1)
    # A choice that was made before the interruption stays, though with the new row another might have been made.
    if found.best_C_ != whole.best_C_:
        whole = fit(CSearchCV(kind(probability=True), Cs=[found.best_C_]), more, sweeps=3)
    assert np.abs(found.predict(X) - y).mean() == pytest.approx(np.abs(whole.predict(X) - y).mean(), abs=0.05)


def count_calls(model, shard, comm):
    counting = Failing(comm, 10**9)
    fit_shard(model, *shard, counting, sweeps=3)
    return 10**9 - counting.n_left


def test_checkpoints_travel():
    import pickle

    X, y = make_ranked(n_rows=200)

    def work(comm):
        with pytest.raises(FitInterruptedError) as error:
            fit_shard(NPSVOR(), *deal(2, X, y)[comm.rank], Failing(comm, 60), sweeps=3)
        return pickle.loads(pickle.dumps(error.value))

    found = Threads(2).run(work)[0]
    assert str(found) == "Worker 9 is gone."
    assert found.checkpoint.duals.shape == (100, 1, 4)
