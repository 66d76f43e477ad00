"""When a walk over C has seen enough, and what is said of the values that it left out."""

import numpy as np
import pytest

from rankplane.solver.folds import FoldScores
from rankplane.trials import Trials

POINT = FoldScores([], np.array([3, 5]), False, 0.5)


def walked(errors, patience=2, noise=0.0, n_parts=5, sign=1):
    """A walk over errors of the folds, which differ from their mean by the noise, each time another fold."""
    trials = Trials(sign < 0, patience)
    walk = trials.new_walk()
    path = [{"C": float(2**i)} for i in range(len(errors))]
    for i, (setting, error) in enumerate(zip(path, errors, strict=True)):
        wobble = noise * np.roll(np.linspace(-1, 1, n_parts), i)
        scores = sign * (error + wobble)
        trials.add(setting, POINT, scores, scores)
        if walk.is_over:
            break
    trials.leave_out(path[len(trials.all) :])
    return trials


def n_tried(trials):
    return int(np.sum(trials.results()["why_not_tried"] == ""))


@pytest.mark.parametrize("sign", [1, -1])
def test_ends_after_as_many_worse_as_its_patience(sign):
    errors = [0.5, 0.4, 0.3, 0.35, 0.4, 0.45, 0.5]
    for patience, expected in ((1, 4), (2, 5), (3, 6), (None, 7)):
        trials = walked(errors, patience, sign=sign)
        assert n_tried(trials) == expected
        assert trials.best.setting == {"C": 4.0}


def test_only_worse_ones_in_a_row_count():
    assert n_tried(walked([0.3, 0.4, 0.3, 0.4, 0.3, 0.4, 0.3])) == 7
    assert n_tried(walked([0.3, 0.4, 0.29, 0.4, 0.41, 0.1, 0.1])) == 5


def test_a_difference_within_the_noise_ends_nothing():
    errors = [0.3, 0.301, 0.302, 0.303, 0.304]
    assert n_tried(walked(errors)) == 3
    assert n_tried(walked(errors, noise=0.05)) == 5


def test_noise_that_folds_share_is_none():
    """Folds differ much, but a value is worse on each of them: the same rows are compared."""
    trials = Trials(False, 2)
    walk = trials.new_walk()
    for i, loss in enumerate((0.0, 0.01, 0.02)):
        scores = np.linspace(0.1, 0.9, 5) + loss + 0.001 * np.arange(5)
        trials.add({"C": 2.0**i}, POINT, scores, scores)
    assert walk.is_over


def test_too_few_folds_show_no_noise():
    errors = [0.3, 0.4, 0.5, 0.6]
    assert n_tried(walked(errors, n_parts=4)) == 4
    assert n_tried(walked(errors, n_parts=5)) == 3


def test_equal_scores_are_not_worse_and_the_smallest_is_best():
    trials = walked([0.5, 0.3, 0.3, 0.3, 0.3])
    assert n_tried(trials) == 5
    assert trials.best.setting == {"C": 2.0}


def test_results_of_what_was_left_out():
    results = walked([0.5, 0.3, 0.4, 0.5, 0.2, 0.1]).results()
    assert results["why_not_tried"].tolist() == ["", "", "", "", *["C=4 and C=8 worse than C=2 by more than the noise"] * 2]
    assert results["rank_test_score"].tolist() == [3, 1, 2, 3, 5, 5]
    for name in ("mean_test_score", "std_test_score", "se_test_score", "split0_test_score", "fit_time"):
        assert np.isnan(results[name]).tolist() == [False] * 4 + [True] * 2
    assert np.ma.getmaskarray(results["n_iter"]).tolist() == [False] * 4 + [True] * 2
    assert len(results["params"]) == 6


def test_the_standard_error():
    trials = walked([0.5, 0.3], noise=0.1, n_parts=7)
    scores = np.array([trials.results()[f"split{fold}_test_score"] for fold in range(7)])
    np.testing.assert_allclose(trials.results()["se_test_score"], scores.std(axis=0, ddof=1) / np.sqrt(7))


def test_a_score_that_is_no_number_is_never_best():
    trials = walked([np.nan, 0.5, 0.4, np.nan])
    assert trials.best.setting == {"C": 4.0}
    assert trials.results()["rank_test_score"].tolist() == [3, 2, 1, 3]
