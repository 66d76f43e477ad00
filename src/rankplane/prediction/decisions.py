"""From probabilities of the ranks to the rank, or the set of ranks, to answer with.

A decision is a cost matrix: ``cost[true, answered]``. The answer is the rank of least expected cost: the most likely rank for
accuracy, the median for absolute error, the rank nearest to the mean for squared error.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.docstrings import documented

Floats = NDArray[np.float64]

NAMED = ("mae", "mse", "accuracy")


def is_by_cost(decision: Any) -> bool:
    """Whether answers come from probabilities, not from the ranker of the model."""
    return not (isinstance(decision, str) and decision == "ranker")


def cost_matrix(decision: Any, n_ranks: int) -> Floats:
    """The costs of a named decision, or of the user's own matrix, checked."""
    distance = np.abs(np.subtract.outer(np.arange(n_ranks), np.arange(n_ranks))).astype(np.float64)
    if isinstance(decision, str) and decision in NAMED:
        return {"mae": distance, "mse": distance**2, "accuracy": (distance > 0).astype(np.float64)}[decision]
    cost = None if isinstance(decision, str) else np.asarray(decision, dtype=np.float64)
    if cost is None or cost.shape != (n_ranks, n_ranks) or not np.all(np.isfinite(cost)):
        got = repr(decision) if cost is None else f"shape {cost.shape}"
        raise ValueError(
            f'decision must be "ranker", "mae", "mse", "accuracy" or a finite cost matrix, shape ({n_ranks}, {n_ranks}). Got {got}.'
        )
    return cost


def least_cost(probabilities: Floats, cost: Floats) -> NDArray[np.intp]:
    """The rank of least expected cost; of equal ones the lowest."""
    return np.asarray(np.argmin(probabilities @ cost, axis=1))


def entry_mass(probabilities: Floats) -> Floats:
    """How much probability a set of ranks holds by the time each rank has entered it.

    The set starts at the most likely rank and grows, rank by rank, to the more likely of its two neighbours: always an
    interval. The mass at which the true rank enters is what conformal prediction compares.
    """
    n_rows, n_ranks = probabilities.shape
    rows = np.arange(n_rows)
    low = high = np.argmax(probabilities, axis=1)
    mass = probabilities[rows, low]
    entered = np.empty_like(probabilities)
    entered[rows, low] = mass
    padded = np.column_stack([np.full(n_rows, -1.0), probabilities, np.full(n_rows, -1.0)])
    for _ in range(n_ranks - 1):
        goes_down = padded[rows, low] >= padded[rows, high + 2]
        low, high = low - goes_down, high + ~goes_down
        new = np.where(goes_down, low, high)
        mass = mass + probabilities[rows, new]
        entered[rows, new] = mass
    return entered


def conformal_threshold(true_entry_mass: Floats, coverage: float) -> float:
    """The mass up to which ranks are let in so that, of n + 1 exchangeable rows, the last one's rank is in with the asked
    probability.
    """
    n_rows = len(true_entry_mass)
    position = int(np.ceil((n_rows + 1) * coverage))
    return np.inf if position > n_rows else float(np.partition(true_entry_mass, position - 1)[position - 1])


def rank_sets(probabilities: Floats, threshold: float) -> NDArray[np.bool_]:
    """Which ranks each row's set holds; never none."""
    entered = entry_mass(probabilities)
    # A hair of room: the same sum in another order must not drop a rank.
    return np.asarray(entered <= np.maximum(threshold, entered.min(axis=1, keepdims=True)) + 1e-12)


@documented()
def set_in_words(members: NDArray[np.bool_], labels: Sequence[Any]) -> list[str]:
    """Format sets of neighbouring ranks as intervals.

    Parameters
    ----------
    members : array-like of bool of shape (n_samples, n_ranks)
        Which ranks each set contains, as returned by ``predict_set``.
    labels : sequence of length n_ranks
        The labels in rank order, as in ``classes_``.

    Returns
    -------
    list of str
        An interval such as ``"3-4"`` per sample, or a label such as ``"5"`` for a set of one rank.

    See Also
    --------
    NPSVOR.predict_set : Predict sets of ranks.

    Examples
    --------
    >>> from rankplane import set_in_words
    >>> set_in_words([[False, True, True], [False, False, True]], [1, 2, 3])
    ['2-3', '3']
    """
    words = []
    for row in np.asarray(members):
        inside = np.flatnonzero(row)
        first, last = labels[inside[0]], labels[inside[-1]]
        words.append(f"{first}" if len(inside) == 1 else f"{first}-{last}")
    return words
