"""How far predicted ranks are from true ones.

Ranks are numbers, or labels whose order ``ranks`` gives, lowest first; distances are counted in ranks. Except for ``accuracy``
and ``quadratic_weighted_kappa``, less is better. ``sample_weight`` says how much each row counts. ``scorers`` has all of them in
the form that scikit-learn's searches take.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import make_scorer

from rankplane.validation import check_sample_weight, rank_numbers

Metric = Callable[..., float]
Weights = ArrayLike | None


def as_positions(y_true: ArrayLike, y_pred: ArrayLike, ranks: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both as numbers whose differences count: themselves, or their places in ``ranks``."""
    true, predicted = np.asarray(y_true), np.asarray(y_pred)
    if true.ndim != 1 or true.shape != predicted.shape or len(true) == 0:
        raise ValueError(
            f"y_true and y_pred must be as long as each other, and not empty. Got shapes {true.shape} and {predicted.shape}."
        )
    if ranks is not None:
        order = np.asarray(list(ranks))
        return rank_numbers(true, order), rank_numbers(predicted, order)
    if true.dtype.kind not in "biuf" or predicted.dtype.kind not in "biuf":
        raise ValueError(
            f"ranks must give the order of labels that are not numbers, lowest first. Got labels of type {true.dtype}."
        )
    return true.astype(np.float64), predicted.astype(np.float64)


def mean(values: NDArray[Any], sample_weight: Weights) -> float:
    weights = None if sample_weight is None else check_sample_weight(sample_weight, len(values))
    return float(np.average(values, weights=weights))


def mean_absolute_error(y_true: ArrayLike, y_pred: ArrayLike, *, ranks: Any = None, sample_weight: Weights = None) -> float:
    """Mean distance in ranks."""
    true, predicted = as_positions(y_true, y_pred, ranks)
    return mean(np.abs(true - predicted), sample_weight)


def mean_squared_error(y_true: ArrayLike, y_pred: ArrayLike, *, ranks: Any = None, sample_weight: Weights = None) -> float:
    """Mean squared distance in ranks."""
    true, predicted = as_positions(y_true, y_pred, ranks)
    return mean((true - predicted) ** 2, sample_weight)


def accuracy(y_true: ArrayLike, y_pred: ArrayLike, *, ranks: Any = None, sample_weight: Weights = None) -> float:
    """Share of rows with the right rank."""
    true, predicted = (np.asarray(y_true), np.asarray(y_pred)) if ranks is None else as_positions(y_true, y_pred, ranks)
    if true.shape != predicted.shape or len(true) == 0:
        raise ValueError(
            f"y_true and y_pred must be as long as each other, and not empty. Got shapes {true.shape} and {predicted.shape}."
        )
    return mean(true == predicted, sample_weight)


def macro_mean_absolute_error(y_true: ArrayLike, y_pred: ArrayLike, *, ranks: Any = None, sample_weight: Weights = None) -> float:
    """Mean over the true ranks of the mean distance, so that rare ranks count as much as common ones."""
    true, predicted = as_positions(y_true, y_pred, ranks)
    weights = np.ones(len(true)) if sample_weight is None else check_sample_weight(sample_weight, len(true))
    of_ranks = [true == rank for rank in np.unique(true[weights > 0])]
    return float(np.mean([mean(np.abs(true - predicted)[chosen], weights[chosen]) for chosen in of_ranks]))


def quadratic_weighted_kappa(y_true: ArrayLike, y_pred: ArrayLike, *, ranks: Any = None, sample_weight: Weights = None) -> float:
    """Agreement beyond chance, disagreements weighted by squared distance: 1 is perfect, 0 is chance."""
    true, predicted = as_positions(y_true, y_pred, ranks)
    observed = mean((true - predicted) ** 2, sample_weight)
    centre, other = mean(true, sample_weight), mean(predicted, sample_weight)
    # Of all pairs of a true and a predicted rank, as if they had nothing to do with each other.
    by_chance = mean((true - centre) ** 2, sample_weight) + mean((predicted - other) ** 2, sample_weight) + (centre - other) ** 2
    return 1.0 if by_chance == 0 else float(1 - observed / by_chance)


def ranked_probability_score(
    y_true: ArrayLike, probabilities: ArrayLike, *, ranks: Any = None, sample_weight: Weights = None
) -> float:
    """Mean over rows of the squared distance between the cumulative probabilities and the step at the true rank.

    ``probabilities`` has a column per rank, in rank order; without ``ranks``, y_true holds the distinct labels of those columns.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    order = np.unique(np.asarray(y_true)) if ranks is None else np.asarray(list(ranks))
    true = rank_numbers(y_true, order)
    if p.shape != (len(true), len(order)):
        raise ValueError(
            f"probabilities must have a row per label and a column per rank, {(len(true), len(order))}. Got {p.shape}."
        )
    steps = true[:, None] <= np.arange(len(order) - 1)
    return mean(np.sum((np.cumsum(p, axis=1)[:, :-1] - steps) ** 2, axis=1), sample_weight)


# Name, measure, and whether more is better.
MEASURES: dict[str, tuple[Metric, bool]] = {
    "mae": (mean_absolute_error, False),
    "mse": (mean_squared_error, False),
    "accuracy": (accuracy, True),
    "macro_mae": (macro_mean_absolute_error, False),
    "qwk": (quadratic_weighted_kappa, True),
}


def scorers(ranks: Any = None) -> dict[str, Any]:
    """Scorers by name, more is better, for ``scoring`` of GridSearchCV and cross_validate."""
    return {name: make_scorer(partial(measure, ranks=ranks), greater_is_better=sign) for name, (measure, sign) in MEASURES.items()}
