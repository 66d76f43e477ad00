"""Measures of how far predicted ranks are from true ones.

Ranks are numbers, or labels in an order given by ``ranks``; distances are counted in ranks. Lower is better, except for
``accuracy`` and ``quadratic_weighted_kappa``. ``scorers`` has the measures in the form that scikit-learn's searches take.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import make_scorer

from rankplane.docstrings import Entry, documented
from rankplane.validation import check_sample_weight, rank_numbers

__all__ = [
    "accuracy",
    "macro_mean_absolute_error",
    "mean_absolute_error",
    "mean_squared_error",
    "quadratic_weighted_kappa",
    "ranked_probability_score",
    "scorers",
]
Metric = Callable[..., float]
Weights = ArrayLike | None

# What the measures take, described once.
PARAMETERS = {
    "y_true": Entry("array-like of shape (n_samples,)", "True labels."),
    "y_pred": Entry("array-like of shape (n_samples,)", "Predicted labels."),
    "probabilities": Entry("array-like of shape (n_samples, n_ranks)", "Probability of each rank, in rank order."),
    "ranks": Entry(
        "array-like of shape (n_ranks,)",
        "The labels in order, lowest first. If None, labels must be numbers, and distances are their differences.",
    ),
    "sample_weight": Entry("array-like of shape (n_samples,)", "Sample weights. If None, all samples have weight one."),
}


def as_positions(y_true: ArrayLike, y_pred: ArrayLike, ranks: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Both as numbers: as they are, or as positions in ``ranks``."""
    true, predicted = np.asarray(y_true), np.asarray(y_pred)
    if true.ndim != 1 or true.shape != predicted.shape or len(true) == 0:
        raise ValueError(
            f"y_true and y_pred must have the same length, and not be empty. Got shapes {true.shape} and {predicted.shape}."
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


@documented(PARAMETERS)
def mean_absolute_error(y_true: ArrayLike, y_pred: ArrayLike, *, ranks: Any = None, sample_weight: Weights = None) -> float:
    """Compute the mean absolute error, in ranks.

    Returns
    -------
    float
        Mean distance between the true and the predicted rank. 0 is perfect.

    See Also
    --------
    macro_mean_absolute_error : The same, with equal weight for every rank.

    Examples
    --------
    >>> from rankplane.metrics import mean_absolute_error
    >>> mean_absolute_error(["low", "high"], ["low", "low"], ranks=["low", "medium", "high"])
    1.0
    """
    true, predicted = as_positions(y_true, y_pred, ranks)
    return mean(np.abs(true - predicted), sample_weight)


@documented(PARAMETERS)
def mean_squared_error(y_true: ArrayLike, y_pred: ArrayLike, *, ranks: Any = None, sample_weight: Weights = None) -> float:
    """Compute the mean squared error, in ranks.

    Returns
    -------
    float
        Mean squared distance between the true and the predicted rank. 0 is perfect.

    See Also
    --------
    mean_absolute_error : The mean distance, not squared.

    Examples
    --------
    >>> from rankplane.metrics import mean_squared_error
    >>> mean_squared_error([1, 3], [1, 1])
    2.0
    """
    true, predicted = as_positions(y_true, y_pred, ranks)
    return mean((true - predicted) ** 2, sample_weight)


@documented(PARAMETERS)
def accuracy(y_true: ArrayLike, y_pred: ArrayLike, *, ranks: Any = None, sample_weight: Weights = None) -> float:
    """Compute the proportion of samples whose rank is predicted exactly.

    Returns
    -------
    float
        Proportion of correct predictions, from 0 to 1. 1 is perfect.

    See Also
    --------
    mean_absolute_error : Also takes into account how far off predictions are.

    Examples
    --------
    >>> from rankplane.metrics import accuracy
    >>> accuracy([1, 3], [1, 1])
    0.5
    """
    true, predicted = (np.asarray(y_true), np.asarray(y_pred)) if ranks is None else as_positions(y_true, y_pred, ranks)
    if true.shape != predicted.shape or len(true) == 0:
        raise ValueError(
            f"y_true and y_pred must have the same length, and not be empty. Got shapes {true.shape} and {predicted.shape}."
        )
    return mean(true == predicted, sample_weight)


@documented(PARAMETERS)
def macro_mean_absolute_error(y_true: ArrayLike, y_pred: ArrayLike, *, ranks: Any = None, sample_weight: Weights = None) -> float:
    """Compute the mean absolute error of each true rank, and average over the ranks.

    Rare ranks count as much as common ones.

    Returns
    -------
    float
        Mean over the true ranks of their mean absolute error. 0 is perfect.

    See Also
    --------
    mean_absolute_error : The mean over all samples.

    Examples
    --------
    >>> from rankplane.metrics import macro_mean_absolute_error
    >>> macro_mean_absolute_error([1, 1, 1, 3], [1, 1, 1, 2])
    0.5
    """
    true, predicted = as_positions(y_true, y_pred, ranks)
    weights = np.ones(len(true)) if sample_weight is None else check_sample_weight(sample_weight, len(true))
    of_ranks = [true == rank for rank in np.unique(true[weights > 0])]
    return float(np.mean([mean(np.abs(true - predicted)[chosen], weights[chosen]) for chosen in of_ranks]))


@documented(PARAMETERS)
def quadratic_weighted_kappa(y_true: ArrayLike, y_pred: ArrayLike, *, ranks: Any = None, sample_weight: Weights = None) -> float:
    """Compute Cohen's kappa with quadratic weights.

    Agreement between true and predicted ranks, corrected for chance, with disagreements weighted by their squared distance [1]_.

    Returns
    -------
    float
        1 is perfect, 0 is chance.

    See Also
    --------
    sklearn.metrics.cohen_kappa_score : The same measure with ``weights='quadratic'``, by position.

    References
    ----------
    .. [1] Cohen, "Weighted Kappa: Nominal Scale Agreement with Provision for Scaled Disagreement or Partial Credit",
       Psychological Bulletin 70, 1968.

    Examples
    --------
    >>> from rankplane.metrics import quadratic_weighted_kappa
    >>> quadratic_weighted_kappa([1, 2, 3], [1, 2, 3])
    1.0
    """
    true, predicted = as_positions(y_true, y_pred, ranks)
    observed = mean((true - predicted) ** 2, sample_weight)
    centre, other = mean(true, sample_weight), mean(predicted, sample_weight)
    # Expected under independence of true and predicted ranks.
    by_chance = mean((true - centre) ** 2, sample_weight) + mean((predicted - other) ** 2, sample_weight) + (centre - other) ** 2
    return 1.0 if by_chance == 0 else float(1 - observed / by_chance)


@documented(PARAMETERS)
def ranked_probability_score(
    y_true: ArrayLike, probabilities: ArrayLike, *, ranks: Any = None, sample_weight: Weights = None
) -> float:
    """Compute the ranked probability score.

    Mean over the samples of the squared distance between the cumulative probabilities and the step at the true rank [1]_.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    probabilities : array-like of shape (n_samples, n_ranks)
        Probability of each rank, in rank order.
    ranks : array-like of shape (n_ranks,)
        The labels of the columns of ``probabilities``. If None, the sorted distinct labels of ``y_true``.
    sample_weight : array-like of shape (n_samples,)
        Sample weights. If None, all samples have weight one.

    Returns
    -------
    float
        Mean score, from 0 to ``n_ranks - 1``. 0 is perfect.

    See Also
    --------
    mean_absolute_error : Its value when every probability is 0 or 1.

    References
    ----------
    .. [1] Epstein, "A Scoring System for Probability Forecasts of Ranked Categories", Journal of Applied Meteorology 8, 1969.

    Examples
    --------
    >>> from rankplane.metrics import ranked_probability_score
    >>> ranked_probability_score([1, 2, 3], [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5]], sample_weight=[1, 1, 2])
    0.125
    """
    p = np.asarray(probabilities, dtype=np.float64)
    order = np.unique(np.asarray(y_true)) if ranks is None else np.asarray(list(ranks))
    true = rank_numbers(y_true, order)
    if p.shape != (len(true), len(order)):
        raise ValueError(
            f"probabilities must have a row per label and a column per rank, {(len(true), len(order))}. Got {p.shape}."
        )
    return mean(ranked_probability_scores(true, p), sample_weight)


def ranked_probability_scores(true: NDArray[Any], probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """The score of each row, whose true rank is a number from 0."""
    steps = true[:, None] <= np.arange(probabilities.shape[1] - 1)
    return np.asarray(np.sum((np.cumsum(probabilities, axis=1)[:, :-1] - steps) ** 2, axis=1))


# Name, measure, and whether more is better.
MEASURES: dict[str, tuple[Metric, bool]] = {
    "mae": (mean_absolute_error, False),
    "mse": (mean_squared_error, False),
    "accuracy": (accuracy, True),
    "macro_mae": (macro_mean_absolute_error, False),
    "qwk": (quadratic_weighted_kappa, True),
}


@documented(PARAMETERS)
def scorers(ranks: Any = None) -> dict[str, Any]:
    """Make scorers for the parameter ``scoring`` of scikit-learn's searches and ``cross_validate``.

    Returns
    -------
    dict of str to callable
        Scorers ``mae``, ``mse``, ``accuracy``, ``macro_mae`` and ``qwk``. Higher is better: errors have a minus sign.

    See Also
    --------
    CSearchCV : A search that takes the names of these measures.

    Examples
    --------
    >>> from rankplane.metrics import scorers
    >>> sorted(scorers())
    ['accuracy', 'macro_mae', 'mae', 'mse', 'qwk']
    """
    return {name: make_scorer(partial(measure, ranks=ranks), greater_is_better=sign) for name, (measure, sign) in MEASURES.items()}
