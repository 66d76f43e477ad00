"""Decisions and rank sets by what held-out rows say about all ranks, and how far few rows are trusted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankplane import NPSVOR, CSearchCV
from rankplane.metrics import MEASURES
from rankplane.prediction import decisions
from rankplane.prediction.calibration import strongest_within_noise


def test_ties_of_ranks_that_enter_last_do_not_make_sets_of_all_ranks():
    """Where the least likely rank is often true, all its scores ``after`` are one, and nothing below excludes it."""
    p = np.tile([0.5, 0.3, 0.2], (100, 1))
    conformity = decisions.Conformity.of(p, np.repeat([0, 1, 2], [50, 30, 20]).astype(np.int32))
    sizes = {score: conformity.rule(0.75, score, n_ranks=3).sets(p).sum(axis=1).mean() for score in decisions.SCORES}
    assert sizes == {"before": 2, "after": 2}
    peaked = np.tile([0.98, 0.01, 0.01], (100, 1))
    of_rank = decisions.Conformity.of(peaked, np.repeat([0, 1, 2], [70, 20, 10]).astype(np.int32)).rule(0.9, "before", n_ranks=3)
    assert of_rank.sets(peaked).all()


def skewed(n_rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 5))
    score = X[:, 0] + 0.5 * X[:, 1] + rng.standard_normal(n_rows)
    return X, np.digitize(score, [-2.5, -1.5, -0.5]) + 1  # the highest rank is the most frequent one


@pytest.mark.parametrize("measure", ["macro_mae", "qwk"])
def test_decisions_by_shares_are_best_at_their_measure(measure):
    X, y = skewed()
    model = NPSVOR(probability=True, decision="mae").fit(X[:1500], y[:1500])
    function, is_greater_better = MEASURES[measure]
    found = {}
    for decision in ("ranker", "mae", "mse", "accuracy", measure):
        found[decision] = function(y[1500:], model.set_params(decision=decision).predict(X[1500:]))
    best = max(found, key=lambda name: found[name] if is_greater_better else -found[name])
    assert best == measure
    if measure == "qwk":
        assert model.expected_qwk_ == pytest.approx(found["qwk"], abs=0.08)
    searched = CSearchCV(NPSVOR(probability=True, decision=measure), Cs=[0.1, 1.0], scoring=measure).fit(X[:1500], y[:1500])
    assert searched.best_score_ == pytest.approx(found[measure], abs=0.1)


def test_class_weights_count_in_decisions():
    X, y = skewed()
    plain = NPSVOR(probability=True, decision="mae").fit(X[:1500], y[:1500])
    balanced = NPSVOR(probability=True, decision="mae", class_weight="balanced").fit(X[:1500], y[:1500])
    error = {model: MEASURES["macro_mae"][0](y[1500:], model.predict(X[1500:])) for model in (plain, balanced)}
    assert error[balanced] < 0.9 * error[plain]
    # Probabilities stay those of the data.
    np.testing.assert_allclose(balanced.predict_proba(X[1500:]).mean(axis=0), np.bincount(y)[1:] / len(y), atol=0.03)
    # The shares of the ranks make the two decisions one.
    same = balanced.set_params(class_weight=None, decision="macro_mae").predict(X[1500:])
    np.testing.assert_array_equal(balanced.set_params(class_weight="balanced", decision="mae").predict(X[1500:]), same)
    doubled = plain.predict(X), plain.set_params(class_weight={1: 1.0, 4: 9.0}).predict(X)
    assert np.all(doubled[1] >= doubled[0])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000))
def test_kappa_is_the_best_that_costs_can_reach(seed):
    """No other ratio is better."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 0.4), 300)
    ranks = np.array([rng.choice(4, p=row) for row in p])
    basis = decisions.Basis.of(p, ranks, 4)

    def expected(ratio):
        """The kappa on average over ranks that are drawn by the probabilities."""
        cost = decisions.kappa_cost(basis.shares, ratio)
        predicted = decisions.least_cost(p, cost)
        squares = decisions.squared_distances(4)
        return 1 - (p @ squares)[np.arange(300), predicted].sum() / (basis.shares @ squares)[predicted].sum()

    assert expected(basis.ratio) == pytest.approx(1 - basis.ratio, abs=1e-9)
    assert expected(basis.ratio) >= max(expected(ratio) for ratio in np.linspace(0, 0.95, 30)) - 1e-9


def test_few_rows_know_how_little_they_say():
    """Log loss on new rows is no worse than that of the frequencies, also where columns say nothing at all."""
    gains = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((600, 6)), rng.choice(4, 600, p=[0.1, 0.2, 0.4, 0.3])
        y[:4] = range(4)
        fitted = NPSVOR(probability=True).fit(X[:40], y[:40])
        shares = np.bincount(y[:40], minlength=4) / 40
        of_truth = fitted.predict_proba(X[40:])[np.arange(560), y[40:]]
        gains.append(np.mean(np.log(of_truth)) - np.mean(np.log(shares[y[40:]])))
    assert np.mean(gains) > -0.005
    assert np.median(gains) > -1e-3


def test_strong_penalties_win_within_the_noise():
    rng = np.random.default_rng(0)
    losses = rng.standard_normal((3, 400)) * 0.01 + np.array([[1.0], [0.5], [0.4999]])
    assert strongest_within_noise(losses, None) == 1
    assert strongest_within_noise(losses[[0, 1]] + np.array([[0.0], [-1.0]]), None) == 1
    # Rows of weight zero say nothing.
    weights = (np.arange(400) < 200).astype(float)
    losses[0, :200] = 0.4
    assert strongest_within_noise(losses, weights) == 0


def test_more_of_a_gain_is_given_up_on_fewer_rows():
    def chosen(n_rows):
        gains = np.array([[0.0], [0.4], [0.5]]) + np.array([[0.0], [1.5], [0.0]]) * np.resize([1.0, -1.0], n_rows)
        return strongest_within_noise(1.0 - gains, None)

    # The second has four fifths of the gain, and is within the noise of the third throughout.
    assert [chosen(n_rows) for n_rows in (40, 98, 102, 400)] == [1, 1, 2, 2]
    assert strongest_within_noise(np.resize([1.0, -1.0], (1, 40)) * np.array([[0.0], [3.0]]) - [[0.0], [0.9]], None) == 0


def test_bad_sets(ranked):
    fitted = NPSVOR(probability=True).fit(*ranked)
    with pytest.raises(ValueError, match=r"score must be one of None, 'before', 'after'. Got 'mass'."):
        fitted.predict_set(ranked[0], score="mass")
    with pytest.raises(ValueError, match=r"per_rank must be True or False. Got 1."):
        fitted.predict_set(ranked[0], per_rank=1)


def test_models_of_older_versions_have_sets_as_before(ranked):
    X, y = ranked
    fitted = NPSVOR(probability=True).fit(X, y)
    expected = fitted.predict_set(X, 0.8, score="after")
    for name in ("conformity_before_", "conformity_ranks_", "class_prior_", "expected_qwk_"):
        delattr(fitted, name)
    np.testing.assert_array_equal(fitted.predict_set(X, 0.8), expected)
    with pytest.raises(ValueError, match="score and per_rank must be left out for a model of an older version"):
        fitted.predict_set(X, 0.8, per_rank=True)
    with pytest.raises(ValueError, match="decision must not be 'qwk' for a model of an older version"):
        fitted.set_params(decision="qwk").predict(X)
