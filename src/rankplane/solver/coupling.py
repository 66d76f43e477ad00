"""Planes that share weights: neighbouring ranks pull their planes together.

With a matrix T between planes, the penalty of all weights is ``tr(W' T^-1 W) / 2`` instead of ``tr(W' W) / 2``. Then ``W = V T``,
where V is what the planes gather from their duals: a solver works on V as on any weights, and T mixes the scores of a row.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_PLANES = 32  # that a block of the core holds


def chain(n_planes: int, strength: float) -> NDArray[np.float64] | None:
    """``(I + strength L)^-1``, L the Laplacian of a path through the planes, scaled to a diagonal of mean one.

    None stands for no coupling. With infinite strength all planes have the same weights.
    """
    if strength == 0 or n_planes == 1:
        return None
    if n_planes > MOST_PLANES:
        raise ValueError(f"coupling must be 0 with more than {MOST_PLANES} planes. Got {strength:g} with {n_planes} planes.")
    if np.isinf(strength):
        return np.ones((n_planes, n_planes))
    laplacian = np.zeros((n_planes, n_planes))
    for plane in range(n_planes - 1):
        laplacian[plane : plane + 2, plane : plane + 2] += [[1, -1], [-1, 1]]
    values, vectors = np.linalg.eigh(laplacian)
    inverse = 1 / (1 + strength * np.maximum(values, 0))
    return np.asarray((vectors * inverse) @ vectors.T * (n_planes / np.sum(inverse)))


def mixed(gathered: NDArray[Any], coupling: NDArray[np.float64] | None) -> NDArray[Any]:
    """Weights, or scores, of coupled planes from what each has gathered. Planes are the last axis, group after group."""
    if coupling is None:
        return gathered
    groups = gathered.reshape(*gathered.shape[:-1], -1, len(coupling))
    return np.asarray((groups @ coupling.astype(gathered.dtype)).reshape(gathered.shape))


def pooled(of_planes: NDArray[np.float64], coupling: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """The sum over the planes that are coupled, for each of them."""
    if coupling is None:
        return of_planes
    return np.repeat(of_planes.reshape(-1, len(coupling)).sum(axis=1), len(coupling))
