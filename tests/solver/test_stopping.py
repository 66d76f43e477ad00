"""When fits stop that are not told when: at the optimum on small data, at a small gap on large."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from conftest import MODELS, make_curved, make_ranked
from rankplane import KDLOR, NPSVOR, SVC, SVOR, SVOREX, CSearchCV
from rankplane.solver import stopping
from rankplane.solver.kernels import Gram, Kernel
from rankplane.solver.stopping import LARGEST_GAP, Stopping, stopping_for


def relative_gap(fitted):
    return fitted.duality_gap_ / (fitted.duality_gap_ - fitted.dual_objective_)


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(stopping, "FEW_VALUES", 0)


@pytest.mark.parametrize("tol", [0.1, 1e-7])
def test_does_what_it_is_told(tol):
    assert stopping_for(np.ones((3, 4)), tol, None) == Stopping(tol, 1000, None)
    assert stopping_for(np.ones((3, 4)), tol, 7) == Stopping(tol, 7, None)


def test_small_is_what_has_few_values():
    small, large = np.ones((500, 100)), np.ones((501, 100))
    assert stopping_for(small, None, None).tol < stopping_for(large, None, None).tol
    assert stopping_for(small, None, None).max_iter > stopping_for(np.ones((1000, 1000)), None, None).max_iter == 1000
    assert stopping_for(small, None, 7).max_iter == 7
    # Single precision gets no further.
    assert stopping_for(small, None, None).tol < stopping_for(small.astype(np.float32), None, None).tol
    # With a kernel, a value is one of the kernel matrix.
    gram = Gram(Kernel("rbf", 1.0), np.ones((300, 1)), 1e6, 1)
    assert stopping_for(gram, None, None).tol == pytest.approx(LARGEST_GAP**0.5)


def test_small_data_is_solved_to_the_optimum(model, ranked):
    fitted = model().fit(*ranked)
    assert np.all(relative_gap(fitted) < 1e-7)


@pytest.mark.parametrize("model", [*MODELS, KDLOR], ids=lambda model: model.__name__)
def test_small_kernels_are_solved_to_the_optimum(model, curved):
    fitted = model(kernel="rbf").fit(*curved)
    assert np.all(relative_gap(fitted) < 1e-7)


@pytest.mark.usefixtures("everything_is_large")
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_plane_reaches_the_gap(model, loss, monkeypatch):
    X, y = make_ranked(n_rows=400, seed=2)
    usual = model(loss=loss).fit(X, y)
    assert np.all(relative_gap(usual) <= LARGEST_GAP)
    # Also where violations say little about it.
    monkeypatch.setattr(stopping, "SMALL_VIOLATION", 0.3)
    early = model(loss=loss).fit(X, y)
    assert np.all(relative_gap(early) <= LARGEST_GAP)
    # Violations of soft duals say enough: such planes may need no further sweep.
    if loss != "logistic":
        assert np.all(early.n_iter_ > model(loss=loss, tol=0.3).fit(X, y).n_iter_)


@pytest.mark.usefixtures("everything_is_large")
@pytest.mark.parametrize("model", [*MODELS, KDLOR], ids=lambda model: model.__name__)
def test_kernels_reach_the_gap(model):
    assert np.all(relative_gap(model(kernel="rbf").fit(*make_curved())) <= LARGEST_GAP)


@pytest.mark.usefixtures("everything_is_large")
def test_planes_without_a_small_gap_are_told_of(monkeypatch):
    X, y = make_ranked(n_rows=400, seed=2)
    monkeypatch.setattr(stopping, "SMALL_VIOLATION", 0.9)
    with pytest.warns(ConvergenceWarning, match=r"stopped at max_iter=4 with a duality gap of [\d.]+ % of the objective\. Raise"):
        fitted = NPSVOR(max_iter=4).fit(X, y)
    assert np.max(fitted.n_iter_) == 4


@pytest.mark.parametrize("model", MODELS)
def test_threads_and_orders_do_not_matter(model):
    """More values than are few, and enough rows for a team of threads."""
    X, y = make_ranked(n_rows=6000, n_columns=2000, density=0.02, seed=3)
    one = model().fit(X, y)
    for other in (model(n_jobs=2), model(random_state=1)):
        scores, expected = other.fit(X, y).plane_scores(X), one.plane_scores(X)
        assert np.sqrt(np.mean((scores - expected) ** 2)) < 0.01 * np.sqrt(np.mean(expected**2))
        # A threshold between neighbouring ranks rests on the rows of these alone, and moves further at the same gap.
        most = 3e-3 if model is SVOREX else 2e-3
        assert abs(np.mean(np.abs(other.predict(X) - y)) - np.mean(np.abs(one.predict(X) - y))) < most


def test_searches_walk_at_the_tolerance_of_the_paper(ranked):
    """Values of C are told apart by noisy scores; only the final fit needs to be near the optimum."""
    found = CSearchCV(SVC(), Cs=[0.5, 2.0]).fit(*ranked)
    paper = CSearchCV(SVC(tol=0.1), Cs=[0.5, 2.0]).fit(*ranked)
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], paper.cv_results_["mean_test_score"])
    assert np.all(relative_gap(found.best_estimator_) < 1e-7)
    assert np.any(relative_gap(paper.best_estimator_) > 1e-3)


def test_calibrated_fits_reach_the_gap():
    X, y = make_ranked(n_rows=3000, n_columns=100, seed=4)
    assert np.all(relative_gap(SVOR(probability=True).fit(X, y)) <= LARGEST_GAP)
