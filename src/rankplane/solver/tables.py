"""What each rank demands of each plane: the only difference between the models.

A demand is six numbers ``(lo, hi, t, e, D, soft)``: the dual variable of a row on a plane lies in ``[lo, hi]`` and the plane's
score ``z`` costs the row, for residual ``r = t - z``,

    L(z) = max over a in [lo, hi] of  a r - e |a| - D a^2 / 2.

``[0, C], t = 1`` is the hinge loss ``C max(0, 1 - z)``; ``[-C, C], e`` is the epsilon-insensitive loss
``C max(0, |r| - e)``; an infinite bound with ``D = 1 / (2 C)`` squares either of them.

With ``soft = 1``, every ``max(0, x)`` becomes ``log(1 + exp(x))``: ``[0, C], t = 0`` is then the logistic loss, and
``[-C, C], e`` costs ``C (log(1 + exp(r - e)) + log(1 + exp(-r - e)))``.

A table, here and in the rest of the solver, is one of demands. It has the shape ``(table rows, cuts, lanes, 6)``. A table row is
what a row of X of that rank demands; a lane is a direction ``w``; a cut is an offset on it. Models with a plane per rank have one
cut, the bias; threshold models have one lane.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Loss = Literal["hinge", "squared_hinge", "logistic"]
Demand = tuple[float, float, float, float, float, float]
Table = NDArray[np.float64]

N_FIELDS = 6
NOTHING: Demand = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def lie_on(target: float, epsilon: float, C: float, loss: Loss) -> Demand:
    """Score within ``epsilon`` of the target."""
    if loss == "squared_hinge":
        return (-np.inf, np.inf, target, epsilon, 0.5 / C, 0.0)
    return (-C, C, target, epsilon, 0.0, float(loss == "logistic"))


def be_above(margin: float, C: float, loss: Loss) -> Demand:
    """Score at or above the margin."""
    if loss == "squared_hinge":
        return (0.0, np.inf, margin, 0.0, 0.5 / C, 0.0)
    return (0.0, C, margin, 0.0, 0.0, float(loss == "logistic"))


def be_below(margin: float, C: float, loss: Loss) -> Demand:
    """Score at or below the margin."""
    if loss == "squared_hinge":
        return (-np.inf, 0.0, margin, 0.0, 0.5 / C, 0.0)
    return (-C, 0.0, margin, 0.0, 0.0, float(loss == "logistic"))


def be_on_side(is_above: bool, C: float, loss: Loss) -> Demand:
    margin = 0.0 if loss == "logistic" else 1.0  # a soft loss needs none
    return be_above(margin, C, loss) if is_above else be_below(-margin, C, loss)


def npsvor(n_ranks: int, C1: float, C2: float, epsilon: float, loss: Loss) -> Table:
    """A plane through each rank: the own rank lies on it, lower ranks below, higher ranks above."""
    table = np.empty((n_ranks, 1, n_ranks, N_FIELDS))
    for rank in range(n_ranks):
        for plane in range(n_ranks):
            is_own = rank == plane
            table[rank, 0, plane] = lie_on(0.0, epsilon, C1, loss) if is_own else be_on_side(rank > plane, C2, loss)
    return table


def npsvor_split(n_ranks: int, C1: float, C2: float, epsilon: float, loss: Loss) -> Table:
    """NPSVOR with the two sides of "lie on it" as variables of their own, as the paper's DCD-1 has them.

    A row is visited twice: table row ``rank`` holds the lower side and all other planes, ``n_ranks + rank`` the upper side.
    """
    table = np.concatenate([npsvor(n_ranks, C1, C2, epsilon, loss), np.zeros((n_ranks, 1, n_ranks, N_FIELDS))])
    for rank in range(n_ranks):
        table[rank, 0, rank] = be_above(-epsilon, C1, loss)
        table[n_ranks + rank, 0, rank] = be_below(epsilon, C1, loss)
    return table


def one_against_rest(n_ranks: int, C: float, loss: Loss) -> Table:
    """A plane per rank with that rank above it and all others below."""
    table = np.empty((n_ranks, 1, n_ranks, N_FIELDS))
    for rank in range(n_ranks):
        for plane in range(n_ranks):
            table[rank, 0, plane] = be_on_side(rank == plane, C, loss)
    return table


def ordered_pairs(n_ranks: int, C: float, loss: Loss) -> Table:
    """A plane per boundary, each with a direction of its own: higher ranks above, the rest below."""
    table = np.empty((n_ranks, 1, n_ranks - 1, N_FIELDS))
    for rank in range(n_ranks):
        for plane in range(n_ranks - 1):
            table[rank, 0, plane] = be_on_side(rank > plane, C, loss)
    return table


def thresholds(n_ranks: int, C: float, loss: Loss) -> Table:
    """The boundaries of ``ordered_pairs`` as thresholds on one shared direction."""
    return np.ascontiguousarray(ordered_pairs(n_ranks, C, loss).transpose(0, 2, 1, 3))


def neighbours(n_ranks: int, C: float, loss: Loss) -> Table:
    """Thresholds on one direction, each of which separates no more than the two ranks beside it."""
    table = thresholds(n_ranks, C, loss)
    for rank in range(n_ranks):
        for cut in range(n_ranks - 1):
            if cut not in (rank - 1, rank):
                table[rank, cut] = NOTHING
    return table


def largest_of_others(n_ranks: int, C: float) -> Table:
    """Joined planes: the row's own rank is to score higher than all others, by one."""
    return largest_of(n_ranks, C, 1.0 - np.eye(n_ranks))


def largest_of(n_ranks: int, C: float, lead: NDArray[np.float64]) -> Table:
    """Joined planes: a row of rank r costs C times the largest ``score of k + lead[r, k] - score of r``, over all k."""
    table = np.zeros((n_ranks, 1, n_ranks, N_FIELDS))
    table[:, 0, :, 0] = -C
    table[:, 0, :, 1] = C * np.eye(n_ranks)
    table[:, 0, :, 2] = -lead
    return table


def adversarial(n_ranks: int, C: float) -> Table:
    """The adversarial loss for the absolute error, on a plane per rank.

    It is half the largest ``score + rank`` plus half the largest ``score - rank``, minus the score of the row's rank. A row is
    visited twice: table row ``rank`` holds the first half, ``n_ranks + rank`` the second.
    """
    ranks = np.arange(float(n_ranks))
    beyond = ranks[None, :] - ranks[:, None]
    return np.concatenate([largest_of(n_ranks, 0.5 * C, beyond), largest_of(n_ranks, 0.5 * C, -beyond)])


def adversarial_thresholds(n_ranks: int, C: float) -> Table:
    """The same loss where neighbouring ranks differ by the score of a boundary, and boundaries are in order.

    The largest ``score + rank`` is then reached by adding up boundary scores as long as they are above -1, so that each half is a
    hinge loss per boundary: the one with margin 1, the other with margin -1.
    """
    table = np.empty((2 * n_ranks, n_ranks - 1, 1, N_FIELDS))
    for rank in range(n_ranks):
        for cut in range(n_ranks - 1):
            for half, margin in enumerate((1.0, -1.0)):
                is_above = rank > cut
                demand = be_above(margin, 0.5 * C, "hinge") if is_above else be_below(-margin, 0.5 * C, "hinge")
                table[half * n_ranks + rank, cut, 0] = demand
    return table


def regression(n_ranks: int, C: float, epsilon: float, loss: Loss) -> Table:
    """One plane whose score is the rank, counted from 1."""
    table = np.empty((n_ranks, 1, 1, N_FIELDS))
    for rank in range(n_ranks):
        table[rank, 0, 0] = lie_on(rank + 1.0, epsilon, C, loss)
    return table


def soft_residual(duals: NDArray[np.float64], demands: Table) -> NDArray[np.float64]:
    """The residual at which the dual of a soft demand has this value, as in ``linear/soft.hpp``."""
    half = np.maximum(0.5 * (demands[..., 1] - demands[..., 0]), 1e-300)
    distance = np.clip(np.minimum(duals - demands[..., 0], demands[..., 1] - duals) / half, 1e-16, 1.0)
    c, middle = np.cosh(demands[..., 3]), 0.5 * (demands[..., 0] + demands[..., 1])
    size = np.log(((1 - distance) * c + np.sqrt(((1 - distance) * c) ** 2 + distance * (2 - distance))) / distance)
    return np.where(duals < middle, -size, size)


def dual_costs(duals: NDArray[Any], demands: Table, row_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """What duals ``(visits, cuts, lanes)`` cost but for the weights that they make, added up by lane. Weights are of rows."""
    a, demands, weights = duals.astype(np.float64), demands.copy(), np.where(row_weights > 0, row_weights, 1.0)
    demands[..., :2] *= weights[..., None]  # duals of rows of weight zero are zero
    lo, hi, t, e, D, soft = np.moveaxis(demands, -1, 0)
    costs = e * np.abs(a) - t * a + 0.5 * D * a**2 / weights
    if np.any(soft > 0):
        r = soft_residual(a, demands)
        loss = 0.5 * (lo + hi) * r + 0.5 * (hi - lo) * (np.logaddexp(0, r - e) + np.logaddexp(0, -r - e))
        costs = np.where(soft > 0, a * r - loss - t * a, costs)
    return np.asarray(costs.sum(axis=(0, 1)))
