"""What an answer is worth, computed in double by plain numpy from the weights alone, for every competitor alike.

The problems, for row i of rank r on plane k with score z = w_k . x_i + b_k (the bias is the weight of a column of
ones):

    P(w) = 1/2 |w|^2 + C sum of  max(0, 1 - side z)           where a side (+1 above, -1 below) is asked
                                 max(0, |z - target| - eps)   where lying on the plane is asked (side 0)
    f(a) = 1/2 |sum a x|^2 + eps sum |a| - sum target a  (side 0)  - sum |a|  (side not 0),    to be minimised

P(w) >= -f(a) for any w and any a within bounds, so P + f bounds how far either is from the optimum: the duality
gap.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

C = 1.0
EPSILON = 0.1

Array = NDArray[Any]


def asked(model: str, n_ranks: int) -> tuple[Array, Array]:
    """Sides and targets by (rank, plane)."""
    rank, plane = np.arange(n_ranks)[:, None], np.arange(n_ranks)[None, :]
    if model == "npsvor":
        return np.sign(rank - plane), np.zeros((n_ranks, n_ranks))
    if model == "svc":
        return np.where(rank == plane, 1, -1), np.zeros((n_ranks, n_ranks))
    assert model == "svr"
    return np.zeros((n_ranks, 1), dtype=int), rank + 1.0


def primal(model: str, X: sp.csr_matrix, y: Array, n_ranks: int, weights: Array) -> Array:
    """P per plane. ``weights`` is (columns + 1, planes), the biases in the last row."""
    sides, targets = (table[y] for table in asked(model, n_ranks))
    z = X @ weights[:-1].astype(np.float64) + weights[-1]
    losses = np.where(sides == 0, np.abs(z - targets) - EPSILON, 1.0 - sides * z)
    return 0.5 * np.sum(weights.astype(np.float64) ** 2, axis=0) + C * np.sum(np.maximum(losses, 0.0), axis=0)


def dual(model: str, X: sp.csr_matrix, y: Array, n_ranks: int, duals: Array) -> Array:
    """f per plane. ``duals`` is (rows, planes), signed: w = sum a x."""
    sides, targets = (table[y] for table in asked(model, n_ranks))
    low = np.where(sides > 0, 0.0, -C)
    high = np.where(sides < 0, 0.0, C)
    assert np.all((low <= duals) & (duals <= high)), "dual variables out of their bounds"
    directions = X.T @ duals
    square = np.sum(directions**2, axis=0) + np.sum(duals, axis=0) ** 2
    own = EPSILON * np.abs(duals) - targets * duals
    return 0.5 * square + np.sum(np.where(sides == 0, own, -np.abs(duals)), axis=0)


def rank(model: str, X: sp.csr_matrix, n_ranks: int, weights: Array) -> Array:
    """The ranks that the weights give, each model with its usual ranker."""
    z = X @ weights[:-1].astype(np.float64) + weights[-1]
    if model == "npsvor":
        return np.sum(z[:, :-1] + z[:, 1:] > 0, axis=1)
    if model == "svc":
        return np.argmax(z, axis=1)
    return np.clip(np.rint(z[:, 0]).astype(int) - 1, 0, n_ranks - 1)
