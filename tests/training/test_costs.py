"""Weights of ranks, and what a model gains over an answer that knows nothing."""

import numpy as np
import pytest

from rankplane import NPSVOR, CSearchCV
from rankplane.inputs.reading import InputError
from rankplane.training.costs import DecisionCosts

ORDER = np.array([1, 2, 3])
PLACES = np.repeat([0, 1, 2], [10, 20, 70])


def test_costs():
    plain = DecisionCosts("mae", None, ORDER, PLACES)
    np.testing.assert_array_equal(plain.cost, [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    assert plain.options() == {"decision": "mae", "class_weight": None}
    assert (plain.measure, plain.constant) == ("mae", 2)
    weighted = DecisionCosts("mse", "1=2,3.0=0.5", ORDER, PLACES)
    np.testing.assert_array_equal(weighted.options()["decision"], [[0, 2, 8], [1, 0, 1], [2, 0.5, 0]])
    assert weighted.measure == "mse"
    balanced = DecisionCosts("mae", "balanced", ORDER, PLACES)
    assert (balanced.measure, balanced.constant) == ("macro_mae", 1)
    rule = DecisionCosts("ranker", "1=2", ORDER, PLACES)
    assert rule.options() == {"decision": "ranker", "class_weight": {1: 2.0}}
    with pytest.raises(InputError, match=r'class_weight must name ranks of 1, 2, 3, each once. Got "4" in 4=2.'):
        DecisionCosts("mae", "4=2", ORDER, PLACES)


@pytest.mark.parametrize(
    ("n_right", "verdict"),
    [(0, "no better"), (2, "not measurably better"), (25, "hardly better"), (400, None)],
)
def test_a_gain_must_be_more_than_noise_and_worth_something(n_right, verdict):
    """The constant answer is wrong on a third of the rows, and the model right on some of those."""
    costs = DecisionCosts("mae", None, np.array([1, 2]), np.repeat([0, 1], [1000, 2000]))
    true = np.repeat([0, 1], [1000, 2000])
    predicted = np.ones_like(true)
    predicted[:n_right] = 0
    found = costs.poor_gain(true, predicted)
    if verdict is None:
        assert found is None
    else:
        assert found.startswith(f"the model is {verdict} than always predicting 2: MAE 0.")
        assert found.endswith("against 0.333 on 3,000 rows")


@pytest.mark.parametrize("decision", ["mae", "mse", "accuracy"])
def test_without_test_rows_the_folds_tell(decision):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    for y, is_poor in ((1 + (X[:, 0] > 0) + (X[:, 0] > 1), False), (rng.integers(1, 4, 300), True)):
        costs = DecisionCosts(decision, None, ORDER, y - 1)
        search = CSearchCV(NPSVOR(probability=True, decision=decision), Cs=[1.0], scoring=decision).fit(X, y)
        found = costs.poor_gain_in_folds(search)
        assert (found is not None) == is_poor
        assert not is_poor or found.endswith("in cross-validation")
