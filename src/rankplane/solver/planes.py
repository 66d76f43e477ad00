"""The product of a solve: weights and offsets, and how good they are."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankplane import _core


@dataclass(frozen=True)
class Planes:
    """Solved lanes. ``weights`` is ``(columns, lanes)``, ``offsets`` is ``(cuts, lanes)``; the rest has one entry per lane."""

    weights: NDArray[Any]
    offsets: NDArray[Any]
    n_sweeps: NDArray[np.intp]
    has_converged: NDArray[np.bool_]
    violation: NDArray[np.float64]
    dual_objective: NDArray[np.float64]
    gap: NDArray[np.float64]
    n_support: NDArray[np.intp]

    def for_columns(self, factors: NDArray[Any] | None) -> "Planes":
        """The same planes for columns that have not been multiplied by these factors, as those of the solve were."""
        return self if factors is None else replace(self, weights=self.weights * factors[:, None])


def scores(X: Any, weights: NDArray[Any], n_threads: int) -> NDArray[Any]:
    """``X @ weights`` for a csr matrix or a C-ordered array, both of the same floating type."""
    if sp.issparse(X):
        return _core.sparse_scores(X.indptr, X.indices, X.data, weights, n_threads)
    return _core.dense_scores(X, weights, n_threads)
