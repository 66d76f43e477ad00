"""Weights of columns: those that tell the ranks apart are penalised less.

Multiplying column j of X by ``s_j`` is the same as penalising its weight in a plane by ``1 / s_j^2``. For the boundary between
ranks k and k + 1, let ``p_jk`` be the share of column j among all entries of the rows above it, and ``q_jk`` among those below,
each count plus one. Then ``log(p_jk / q_jk)`` says how much the column speaks for "above", and

    s_j = BASE + sqrt(mean over k of log(p_jk / q_jk)^2).

For two ranks and BASE = 0 these are the log-count ratios of Wang and Manning, *Baselines and Bigrams* (2012). All of them are then
divided by one number, so that rows keep their mean square length and C its meaning.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

BASE = 0.5  # what a column that tells nothing is left with


def counts_by_rank(X: Any, rank_numbers: NDArray[np.int32], n_ranks: int, is_used: NDArray[np.bool_]) -> NDArray[np.float64]:
    """``(columns, ranks)``: in how many of the used rows of a rank a column is not zero."""
    n_columns = X.shape[1]
    if not sp.issparse(X):
        is_rank = (rank_numbers[:, None] == np.arange(n_ranks)) & is_used[:, None]
        return np.asarray((X != 0).T.astype(np.float64) @ is_rank)
    bins = np.where(is_used, rank_numbers, n_ranks).astype(np.intp)  # rows not used fill a bin that is thrown away
    places = np.repeat(bins * n_columns, np.diff(X.indptr))
    places += X.indices
    counts = np.bincount(places, minlength=(n_ranks + 1) * n_columns)
    return counts.reshape(n_ranks + 1, n_columns)[:n_ranks].T.astype(np.float64)


def telling_weights(X: Any, rank_numbers: NDArray[np.int32], n_ranks: int, is_used: NDArray[np.bool_]) -> NDArray[Any]:
    """How well each column tells the ranks of the used rows apart."""
    counts = counts_by_rank(X, rank_numbers, n_ranks, is_used)
    below = np.cumsum(counts, axis=1)[:, :-1]
    above = counts.sum(axis=1, keepdims=True) - below
    ratios = np.log((above + 1) / (above + 1).sum(axis=0)) - np.log((below + 1) / (below + 1).sum(axis=0))
    weights = BASE + np.sqrt(np.mean(ratios**2, axis=1))
    squares = np.asarray((X.multiply(X) if sp.issparse(X) else np.square(X)).sum(axis=0), dtype=np.float64).ravel()
    before, after = squares.sum(), np.sum(squares * weights**2)  # not by the threads of a linear algebra library
    return np.asarray(weights * np.sqrt(before / after) if after > 0 else weights, dtype=X.dtype)


def scale_columns(X: Any, weights: NDArray[Any] | None) -> Any:
    """X with its columns multiplied; X itself without weights."""
    if weights is None:
        return X
    if not sp.issparse(X):
        return np.ascontiguousarray(X * weights)
    scaled = sp.csr_matrix((X.data * weights[X.indices], X.indices, X.indptr), shape=X.shape)
    scaled.has_canonical_format = True  # as X is
    return scaled
