"""From probabilities of the ranks to a predicted rank or a set of ranks.

A decision is a cost matrix, ``cost[true, predicted]``. The rank with the lowest expected cost is predicted: the most likely rank
for accuracy, the median for the absolute error, the rank nearest to the mean for the squared error.

Two decisions depend on how frequent the ranks are. The macro-averaged absolute error is the mean over ranks of their errors, so
the error of a rank is divided by its share. The quadratic weighted kappa is ``1 - N / E``: N is the sum of squared errors, and E
what it would be if predictions were independent of the true ranks, a sum over predictions j of ``e_j``, the mean squared distance
of j from all true ranks. So both are sums over rows, and the kappa is highest where ``N - r E`` is lowest, with ``r`` the lowest
ratio that can be reached (Dinkelbach, "On Nonlinear Fractional Programming", Management Science 13, 1967). That is a cost
matrix again: ``(i - j)^2 - r e_j``, which moves predictions away from the mean.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankplane.docstrings import documented

Floats = NDArray[np.float64]

NAMED = ("mae", "mse", "accuracy", "macro_mae", "qwk")
BY_SHARES = ("macro_mae", "qwk")  # which depend on how frequent the ranks are
MAX_STEPS = 50
SCORES = ("before", "after")  # of ranks, for sets
DEFAULT_SCORE = "before"


class Basis(NamedTuple):
    """What decisions need to know of the rows that probabilities were learnt from: the shares of the ranks, and the ratio r that
    the quadratic weighted kappa reaches on them.
    """

    shares: Floats
    ratio: float
    order: NDArray[Any] | None = None  # the labels of the ranks

    @classmethod
    def of(cls, probabilities: Floats, ranks: NDArray[Any], n_ranks: int, weights: Floats | None = None) -> Self:
        even = np.ones(len(ranks)) if weights is None else weights / weights.mean()
        shares = np.bincount(ranks, even, minlength=n_ranks) / even.sum()
        squares = squared_distances(n_ranks)
        errors, by_chance, ratio = probabilities @ squares, shares @ squares, 1.0
        predicted = np.argmin(errors, axis=1)
        for _ in range(MAX_STEPS):
            expected = float(even @ by_chance[predicted])
            reached = float(even @ errors[np.arange(len(errors)), predicted]) / expected if expected > 0 else 1.0
            if reached >= ratio:
                break
            ratio = reached
            predicted = np.argmin(errors - ratio * by_chance, axis=1)
        return cls(shares, ratio)


def squared_distances(n_ranks: int) -> Floats:
    return np.subtract.outer(np.arange(n_ranks), np.arange(n_ranks)).astype(np.float64) ** 2


def kappa_cost(shares: Floats, ratio: float) -> Floats:
    squares = squared_distances(len(shares))
    return np.asarray(squares - ratio * (shares @ squares))


def is_by_cost(decision: Any) -> bool:
    """Whether predictions are made from probabilities, not by the ranker of the model."""
    return not (isinstance(decision, str) and decision == "ranker")


def needs_probability(decision: Any) -> str:
    """The message for a decision by cost of a model without probabilities."""
    return f"decision must be 'ranker' unless probability=True. Got {decision!r}."


def needs_shares(decision: Any) -> str:
    """The message for a decision by shares of a model that was saved before there were any."""
    return (
        f"decision must not be {decision!r} for a model of an older version, which does not say how frequent the ranks were. "
        "Fit it again."
    )


def is_by_shares(decision: Any) -> bool:
    return isinstance(decision, str) and decision in BY_SHARES


def cost_matrix(decision: Any, n_ranks: int, basis: Basis | None = None) -> Floats:
    """The costs of a named decision, or the user's own matrix after checks."""
    distance = np.abs(np.subtract.outer(np.arange(n_ranks), np.arange(n_ranks))).astype(np.float64)
    if isinstance(decision, str) and decision in NAMED:
        if is_by_shares(decision):
            if basis is None:
                raise ValueError(needs_shares(decision))
            return by_share(distance, basis.shares) if decision == "macro_mae" else kappa_cost(basis.shares, basis.ratio)
        return {"mae": distance, "mse": distance**2, "accuracy": (distance > 0).astype(np.float64)}[decision]
    cost = None if isinstance(decision, str) else np.asarray(decision, dtype=np.float64)
    if cost is None or cost.shape != (n_ranks, n_ranks) or not np.all(np.isfinite(cost)):
        got = repr(decision) if cost is None else f"shape {cost.shape}"
        listed = ", ".join(f'"{name}"' for name in ("ranker", *NAMED))
        raise ValueError(f"decision must be {listed} or a finite cost matrix, shape ({n_ranks}, {n_ranks}). Got {got}.")
    return cost


def check_decision(decision: Any, n_ranks: int) -> None:
    """Raise ``ValueError`` unless the decision is a name or a cost matrix of so many ranks."""
    cost_matrix(decision, n_ranks, Basis(np.full(n_ranks, 1 / n_ranks), 1.0))


def by_share(cost: Floats, shares: Floats) -> Floats:
    """Costs divided by the share of the true rank; ranks that do not occur have the probability zero."""
    n_present = np.count_nonzero(shares)
    return np.asarray(cost / (n_present * np.where(shares > 0, shares, 1.0))[:, None])


def least_cost(probabilities: Floats, cost: Floats) -> NDArray[np.intp]:
    """The rank with the lowest expected cost; of ties, the lowest rank."""
    return np.asarray(np.argmin(probabilities @ cost, axis=1))


def entry_mass(probabilities: Floats) -> Floats:
    """The probability of a growing set of ranks at the moment each rank is added to it.

    The set starts with the most likely rank and grows by the more likely of its two neighbours, so it is always an interval. The
    probability at which the true rank is added is the score of conformal prediction.
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


class Conformity(NamedTuple):
    """How well held-out rows conform: the score of each row's true rank, and that rank.

    The score is the probability of the set when the rank enters it, ``after`` with the rank itself and ``before`` without. With
    ``after``, sets need much probability to reach a rank that is itself likely, and where most of it is needed, ranks that enter
    last tie at one; with ``before``, sets are smaller.
    """

    after: Floats
    before: Floats | None  # None of models of an older version
    ranks: NDArray[np.int32] | None

    @classmethod
    def of(cls, probabilities: Floats, ranks: NDArray[np.int32]) -> Self:
        rows = np.arange(len(ranks))
        entered = entry_mass(probabilities)[rows, ranks]
        return cls(entered, entered - probabilities[rows, ranks], ranks)

    def rule(self, coverage: float, score: str | None = None, *, per_rank: bool = False, n_ranks: int) -> "SetRule":
        """Sets with this coverage; of each rank if ``per_rank``. Without a score, the default one."""
        score = score or (DEFAULT_SCORE if self.before is not None else "after")
        of_rows = self.after if score == "after" else self.before
        if of_rows is None or (per_rank and self.ranks is None):
            raise ValueError(
                "score and per_rank must be left out for a model of an older version, which has no record of what they need. "
                "Fit it again."
            )
        if not per_rank:
            return SetRule(score, np.full(n_ranks, conformal_threshold(of_rows, coverage)))
        assert self.ranks is not None
        return SetRule(score, np.array([conformal_threshold(of_rows[self.ranks == rank], coverage) for rank in range(n_ranks)]))


class SetRule(NamedTuple):
    """Which ranks belong to a set: those whose score is at most a threshold, one per rank."""

    score: str
    thresholds: Floats

    def sets(self, probabilities: Floats, thresholds: Floats | None = None) -> NDArray[np.bool_]:
        """The set of each row: an interval that is never empty. Rows may have thresholds of their own, ``(rows, ranks)``."""
        entered = entry_mass(probabilities)
        scores = entered if self.score == "after" else entered - probabilities
        limits = self.thresholds if thresholds is None else thresholds
        # With a tolerance: the same sum in another order must not drop a rank.
        is_in = scores <= limits + 1e-12
        is_in[np.arange(len(is_in)), np.argmax(probabilities, axis=1)] = True
        # Thresholds that differ between ranks may leave one out between two others.
        from_low = np.logical_or.accumulate(is_in, axis=1)
        from_high = np.logical_or.accumulate(is_in[:, ::-1], axis=1)[:, ::-1]
        return np.asarray(from_low & from_high)


def conformal_threshold(true_scores: Floats, coverage: float) -> float:
    """The score up to which ranks are added, such that of n + 1 exchangeable rows, the rank of the last one is in its set with
    probability ``coverage``.
    """
    n_rows = len(true_scores)
    position = int(np.ceil((n_rows + 1) * coverage))
    return np.inf if position > n_rows else float(np.partition(true_scores, position - 1)[position - 1])


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
