"""New probabilities for fitted models, and decisions that change after the fit."""

import pickle

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conftest import make_curved, make_ranked
from rankplane import NPSVOR, SVC, Committee, CSearchCV, load_model, recalibrate, save_model


def make_shifted(n_rows, shift=0.0, seed=0):
    """Ranks by a noisy direction; a shift raises all of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3))
    return X, 1 + np.digitize(X[:, 0] + 0.5 * rng.standard_normal(n_rows) + shift, [-1, 0, 1])


@pytest.fixture(scope="module")
def fitted():
    return NPSVOR(probability=True, decision="mae").fit(*make_shifted(600))


def test_probabilities_come_near_the_true_ones(fitted):
    X, y = make_shifted(4000, shift=1.0, seed=1)
    new = recalibrate(fitted, X, y)
    X, y = make_shifted(2000, shift=1.0, seed=2)
    edges = np.array([-np.inf, -1, 0, 1, np.inf])
    true = np.diff(norm.cdf((edges - X[:, :1] - 1) / 0.5), axis=1)
    assert np.abs(new.predict_proba(X) - true).mean() < 0.02 < 0.1 < np.abs(fitted.predict_proba(X) - true).mean()
    assert log_loss(y, new.predict_proba(X)) < log_loss(y, fitted.predict_proba(X)) - 0.3
    assert new.score(X, y) > fitted.score(X, y) + 0.1
    rows, covered = np.arange(len(y)), new.predict_set(X, 0.95)
    assert fitted.predict_set(X, 0.95)[rows, y - 1].mean() < 0.9 < 0.94 < covered[rows, y - 1].mean()


def test_planes_and_the_given_model_stay(fitted):
    X, y = make_shifted(600, shift=1.0, seed=1)
    before = fitted.predict_proba(X)
    new = recalibrate(fitted, X, y)
    np.testing.assert_array_equal(fitted.predict_proba(X), before)
    np.testing.assert_array_equal(new.plane_scores(X), fitted.plane_scores(X))
    assert new.coef_ is fitted.coef_
    assert new.get_params() == fitted.get_params()
    np.testing.assert_array_equal(new.set_params(decision="ranker").predict(X), NPSVOR().fit(*make_shifted(600)).predict(X))


@pytest.mark.parametrize("make", [NPSVOR, SVC, Committee])
def test_a_calibrator_of_held_out_rows_is_that_of_training(make):
    """With rows and planes of a search's folds, the calibrator of training would be learnt in the same way."""
    X, y = make_ranked(400)
    model = make(probability=True).fit(X[:200], y[:200])
    with pytest.warns(UserWarning, match="200 samples are few"):
        new = recalibrate(model, X[200:], y[200:])
    assert type(new.calibrator_) is type(model.calibrator_)
    assert new.calibrator_.weights.shape == model.calibrator_.weights.shape
    assert len(new.conformity_) == 200
    np.testing.assert_allclose(new.predict_proba(X).sum(axis=1), 1)


def test_a_model_without_probabilities_gets_them():
    X, y = make_shifted(1600)
    model = NPSVOR().fit(X[:300], y[:300])
    new = recalibrate(model, X[300:], y[300:])
    assert not model.probability
    assert new.probability
    np.testing.assert_array_equal(new.predict(X), model.predict(X))  # the decision is still the ranker
    assert new.set_params(decision="mae").score(X, y) >= model.score(X, y) - 0.01


def test_kernels(tmp_path):
    X, y = make_curved(1500)
    model = NPSVOR(kernel="rbf").fit(X[:200], y[:200])
    new = recalibrate(model, X[200:], y[200:])
    save_model(new, tmp_path / "m")
    np.testing.assert_array_equal(load_model(tmp_path / "m").predict_proba(X), new.predict_proba(X))


def test_pipelines_searches_and_pickles(tmp_path):
    X, y = make_shifted(1600)
    pipeline = make_pipeline(StandardScaler(), NPSVOR(probability=True)).fit(X[:300], y[:300])
    new = recalibrate(pipeline, X[300:], y[300:])
    assert [name for name, _ in new.steps] == ["standardscaler", "npsvor"]
    assert new[0] is pipeline[0]
    alone = recalibrate(pipeline[-1], pipeline[0].transform(X[300:]), y[300:])
    np.testing.assert_array_equal(new.predict_proba(X), alone.predict_proba(pipeline[0].transform(X)))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(new)).predict_proba(X), new.predict_proba(X))
    for search in (CSearchCV(NPSVOR(), Cs=[0.1, 1]), GridSearchCV(NPSVOR(), {"C": [0.1, 1]}, cv=2)):
        search.fit(X[:300], y[:300])
        found = recalibrate(search, X[300:], y[300:])
        assert type(found) is NPSVOR
        np.testing.assert_array_equal(found.coef_, search.best_estimator_.coef_)


def test_weights_count_like_copies(fitted):
    X, y = make_shifted(800, shift=0.5, seed=1)
    weights = np.random.default_rng(0).integers(0, 3, 800)
    weighted = recalibrate(fitted, X, y, sample_weight=weights)
    copies = np.repeat(np.arange(800), weights)
    copied = recalibrate(fitted, X[copies], y[copies])
    np.testing.assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=0.03)
    assert len(weighted.conformity_) == np.count_nonzero(weights)


def test_ranks_that_are_words():
    X, y = make_shifted(1600)
    names = np.array(["bad", "fair", "good", "best"])
    model = NPSVOR(probability=True, ranks=names).fit(X[:300], names[y[:300] - 1])
    new = recalibrate(model, X[300:], names[y[300:] - 1].tolist())
    plain = recalibrate(NPSVOR(probability=True).fit(X[:300], y[:300]), X[300:], y[300:])
    np.testing.assert_array_equal(new.predict_proba(X), plain.predict_proba(X))
    assert new.predict(X).tolist() == names[plain.predict(X) - 1].tolist()


def test_few_samples_and_absent_ranks_are_warned_of(fitted):
    X, y = make_shifted(900, seed=1)
    with pytest.warns(UserWarning, match=r"^No sample has rank 1, so the model gives it the probability 0\.$"):
        new = recalibrate(fitted, X[y > 1], y[y > 1])
    assert np.all(new.predict_proba(X)[:, 0] == 0)
    with pytest.warns(UserWarning, match=r"^20 samples are few for a calibrator with 27 parameters: .* fewer than 270\.$"):
        recalibrate(fitted, X[:20], y[:20])
    with pytest.warns(UserWarning, match="2 samples are few|No sample has rank 2, 3, so the model gives them"):
        np.testing.assert_allclose(recalibrate(fitted, X[:2], [1, 4]).predict_proba(X).sum(axis=1), 1)


def test_bad_input(fitted):
    X, y = make_shifted(100)
    with pytest.raises(ValueError, match=r"^model must be a model of this package .* Got LogisticRegression\.$"):
        recalibrate(LogisticRegression().fit(X, y), X, y)
    with pytest.raises(NotFittedError):
        recalibrate(NPSVOR(), X, y)
    with pytest.raises(ValueError, match=r"^y must contain only the labels in ranks, \[1, 2, 3, 4\]. Got 7.$"):
        recalibrate(fitted, X, np.where(y == 1, 7, y))
    with pytest.raises(ValueError, match=r"^y must have one label per sample"):
        recalibrate(fitted, X, y[1:])
    with pytest.raises(ValueError, match=r"^y must contain at least two different ranks of \[1, 2, 3, 4\]. Got 1.$"):
        recalibrate(fitted, X, np.ones(100, dtype=int))
    with pytest.raises(ValueError, match="features"):
        recalibrate(fitted, X[:, :2], y)
    with pytest.raises(ValueError, match="sample_weight must be positive for at least one"):
        recalibrate(fitted, X, y, np.zeros(100))


# Decisions after the fit.


@pytest.mark.parametrize("decision", ["ranker", "mae", "mse", "accuracy", np.arange(16.0).reshape(4, 4) % 5])
def test_a_decision_may_be_changed_after_the_fit(fitted, decision):
    X, y = make_shifted(600)
    asked = NPSVOR(probability=True, decision=decision).fit(X, y)
    changed = pickle.loads(pickle.dumps(fitted)).set_params(decision=decision)
    np.testing.assert_array_equal(changed.predict(X), asked.predict(X))
    np.testing.assert_array_equal(changed.decision_function(X), asked.decision_function(X))


def test_a_changed_decision_is_checked(fitted):
    X, y = make_shifted(600)
    model = NPSVOR().fit(X, y).set_params(decision="mae")
    for method in (model.predict, model.decision_function):
        with pytest.raises(ValueError, match=r"^decision must be 'ranker' unless probability=True. Got 'mae'.$"):
            method(X)
    with pytest.raises(ValueError, match=r"^decision must be .* Got 'median'\.$"):
        pickle.loads(pickle.dumps(fitted)).set_params(decision="median").predict(X)
