"""The result of a solve: weights, offsets, and how accurate they are."""

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
        """The same planes for unscaled columns, if the solve was on columns multiplied by these factors."""
        return self if factors is None else replace(self, weights=self.weights * factors[:, None])


def scores(X: Any, weights: NDArray[Any], n_threads: int) -> NDArray[Any]:
    """``X @ weights`` for a csr matrix or a C-ordered array, both of the same floating type."""
    if sp.issparse(X):
        return _core.sparse_scores(X.indptr, X.indices, X.data, weights, n_threads)
    return _core.dense_scores(X, weights, n_threads)


def check_finite(X: Any, n_threads: int = 1) -> None:
    """Refuse NaN and infinity, naming the position of the first one."""
    values = np.ascontiguousarray(X.data if sp.issparse(X) else X)
    first = _core.first_not_finite(values.reshape(-1), n_threads)
    if first < 0:
        return
    if sp.issparse(X):
        row, column = int(np.searchsorted(X.indptr, first, side="right")) - 1, int(X.indices[first])
    else:
        row, column = divmod(first, X.shape[1])
    found = "NaN" if np.isnan(values.ravel()[first]) else "infinity"
    raise ValueError(f"X must contain only finite numbers. Got {found} (inf or NaN) in row {row}, column {column}.")
