import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as theirs
from sklearn.model_selection import GridSearchCV

from rankplane import NPSVOR
from rankplane import metrics as ours

pairs = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=40).map(lambda p: np.array(p).T)


@given(pairs)
def test_against_scikit_learn_and_by_hand(pair):
    true, predicted = pair
    assert ours.mean_absolute_error(true, predicted) == pytest.approx(theirs.mean_absolute_error(true, predicted))
    assert ours.mean_squared_error(true, predicted) == pytest.approx(theirs.mean_squared_error(true, predicted))
    assert ours.accuracy(true, predicted) == pytest.approx(theirs.accuracy_score(true, predicted))
    by_rank = [np.mean([abs(t - p) for t, p in zip(true, predicted, strict=True) if t == r]) for r in set(true.tolist())]
    assert ours.macro_mean_absolute_error(true, predicted) == pytest.approx(np.mean(by_rank))
    if len(set(true.tolist()) | set(predicted.tolist())) > 1:
        kappa = theirs.cohen_kappa_score(true, predicted, weights="quadratic", labels=[1, 2, 3, 4, 5])
        assert ours.quadratic_weighted_kappa(true, predicted) == pytest.approx(kappa)


def test_labels_count_by_their_places():
    ranks = ["low", "medium", "high"]
    assert ours.mean_absolute_error(["low", "high"], ["high", "high"], ranks=ranks) == 1.0
    assert ours.mean_squared_error(["low", "high"], ["high", "high"], ranks=ranks) == 2.0
    assert ours.accuracy(["low", "high"], ["high", "high"]) == 0.5


def test_ranked_probability_score():
    perfect, spread = np.eye(3), np.full((3, 3), 1 / 3)
    assert ours.ranked_probability_score([1, 2, 3], perfect) == 0
    # By hand: the cumulative 1/3, 2/3 against the steps (1, 1), (0, 1), (0, 0).
    assert ours.ranked_probability_score([1, 2, 3], spread) == pytest.approx(np.mean([4 / 9 + 1 / 9, 1 / 9 + 1 / 9, 1 / 9 + 4 / 9]))
    assert ours.ranked_probability_score(["b", "b"], [[0, 1], [1, 0]], ranks=["a", "b"]) == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ours.mean_absolute_error([1, 2], [1]), r"y_true and y_pred must have the same length"),
        (lambda: ours.mean_absolute_error(["a"], ["b"]), r"ranks must give the order of labels that are not numbers"),
        (lambda: ours.mean_squared_error(["a"], ["z"], ranks=["a", "b"]), r"Got 'z'"),
        (
            lambda: ours.ranked_probability_score([1, 2], np.ones((2, 3))),
            r"probabilities must have a row per label .* Got \(2, 3\)",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_scorers_work_in_a_grid_search(ranked):
    X, y = ranked
    search = GridSearchCV(NPSVOR(), {"C": [0.01, 1.0]}, scoring=ours.scorers(), refit="mae", cv=3).fit(X, y)
    assert search.best_score_ < 0
    assert np.all(search.cv_results_["mean_test_accuracy"] > 0)


@pytest.mark.parametrize("name", ours.MEASURES)
def test_weights_count_as_copies_do(name):
    rng = np.random.default_rng(0)
    true, predicted, weights = rng.integers(0, 5, 60), rng.integers(0, 5, 60), rng.integers(0, 4, 60)
    measure, _ = ours.MEASURES[name]
    expected = measure(np.repeat(true, weights), np.repeat(predicted, weights))
    assert measure(true, predicted, sample_weight=weights) == pytest.approx(expected)
    shares = rng.dirichlet(np.ones(5), 60)
    expected = ours.ranked_probability_score(np.repeat(true, weights), np.repeat(shares, weights, axis=0), ranks=range(5))
    assert ours.ranked_probability_score(true, shares, ranks=range(5), sample_weight=weights) == pytest.approx(expected)
