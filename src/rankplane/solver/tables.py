"""What each rank asks of each plane: the whole difference between the models.

A demand is five numbers ``(lo, hi, t, e, D)``: the dual variable of a row on a plane lies in ``[lo, hi]`` and the plane's score
``z`` costs the row, for residual ``r = t - z``,

    L(z) = max over a in [lo, hi] of  a r - e |a| - D a^2 / 2.

``[0, C], t = 1`` is the hinge loss ``C max(0, 1 - z)``; ``[-C, C], e`` is the epsilon-insensitive loss
``C max(0, |r| - e)``; an infinite bound with ``D = 1 / (2 C)`` squares either of them.

A table has the shape ``(table rows, cuts, lanes, 5)``. A table row is what a row of X of that rank demands; a lane is a direction
``w``; a cut is an offset on it. Models with a plane per rank have one cut, the bias; threshold models have one lane.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Loss = Literal["hinge", "squared_hinge"]
Demand = tuple[float, float, float, float, float]
Table = NDArray[np.float64]

N_FIELDS = 5
NOTHING: Demand = (0.0, 0.0, 0.0, 0.0, 0.0)


def lie_on(target: float, epsilon: float, C: float, loss: Loss) -> Demand:
    """Score within ``epsilon`` of the target."""
    if loss == "hinge":
        return (-C, C, target, epsilon, 0.0)
    return (-np.inf, np.inf, target, epsilon, 0.5 / C)


def be_above(margin: float, C: float, loss: Loss) -> Demand:
    """Score at or above the margin."""
    if loss == "hinge":
        return (0.0, C, margin, 0.0, 0.0)
    return (0.0, np.inf, margin, 0.0, 0.5 / C)


def be_below(margin: float, C: float, loss: Loss) -> Demand:
    """Score at or below the margin."""
    if loss == "hinge":
        return (-C, 0.0, margin, 0.0, 0.0)
    return (-np.inf, 0.0, margin, 0.0, 0.5 / C)


def be_on_side(is_above: bool, C: float, loss: Loss) -> Demand:
    return be_above(1.0, C, loss) if is_above else be_below(-1.0, C, loss)


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


def regression(n_ranks: int, C: float, epsilon: float, loss: Loss) -> Table:
    """One plane whose score is the rank, counted from 1."""
    table = np.empty((n_ranks, 1, 1, N_FIELDS))
    for rank in range(n_ranks):
        table[rank, 0, 0] = lie_on(rank + 1.0, epsilon, C, loss)
    return table
