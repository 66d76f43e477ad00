"""Column weights: columns that separate the ranks are penalised less.

Multiplying column j of X by ``s_j`` is the same as penalising its weight in a plane by ``1 / s_j^2``. For the boundary between
ranks k and k + 1, let ``p_jk`` be the share of column j among all entries of the rows above it, and ``q_jk`` among those below,
each count plus one. Then ``log(p_jk / q_jk)`` measures how much the column speaks for "above", and

    s_j = BASE + sqrt(mean over k of log(p_jk / q_jk)^2).

For two ranks and BASE = 0 these are the log-count ratios of Wang and Manning, *Baselines and Bigrams* (2012). All are then divided
by the same number, so that the mean square length of rows, and with it the meaning of C, stays the same.
"""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankplane import _core

BASE = 0.5  # the factor of a column that does not separate the ranks
ENTRIES = 1 << 22  # of X, that are looked at together


def chunks(X: Any) -> Iterator[slice]:
    """Rows of a csr matrix, few at a time, so that temporary arrays stay small compared with X."""
    ends = np.searchsorted(X.indptr, np.arange(ENTRIES, X.nnz + ENTRIES, ENTRIES), side="right")
    for first, last in itertools.pairwise([0, *np.unique(np.minimum(ends, X.shape[0])).tolist()]):
        yield slice(first, last)


def counts_by_rank(
    X: Any, rank_numbers: NDArray[np.int32], n_ranks: int, is_used: NDArray[np.bool_], n_threads: int = 1
) -> NDArray[np.float64]:
    """``(columns, ranks)``: in how many of the used rows of a rank a column is not zero. csr rows must be sorted."""
    if not sp.issparse(X):
        is_rank = (rank_numbers[:, None] == np.arange(n_ranks)) & is_used[:, None]
        return np.asarray((X != 0).T.astype(np.float64) @ is_rank)
    groups = np.where(is_used, rank_numbers, -1).astype(np.int32)
    return np.asarray(_core.count_by_group(X.indptr, X.indices, X.data, X.shape[1], groups, n_ranks, n_threads))


def squared_lengths(X: Any, n_threads: int = 1) -> NDArray[np.float64]:
    """The squared length of each column. csr rows must be sorted."""
    if not sp.issparse(X):
        return np.asarray(np.square(X).sum(axis=0), dtype=np.float64)
    return np.asarray(_core.sum_squares(X.indptr, X.indices, X.data, X.shape[1], n_threads))


def log_ratio_weights(
    X: Any, rank_numbers: NDArray[np.int32], n_ranks: int, is_used: NDArray[np.bool_], n_threads: int = 1
) -> NDArray[Any]:
    """Weights by how well each column separates the ranks of the used rows."""
    counts = counts_by_rank(X, rank_numbers, n_ranks, is_used, n_threads)
    return weights_of_counts(counts, squared_lengths(X, n_threads), X.dtype)


def weights_of_counts(counts: NDArray[np.float64], squares: NDArray[np.float64], dtype: Any) -> NDArray[Any]:
    """The weights, from sums over the rows: how often a column occurs with each rank, and its squared length."""
    below = np.cumsum(counts, axis=1)[:, :-1]
    above = counts.sum(axis=1, keepdims=True) - below
    ratios = np.log((above + 1) / (above + 1).sum(axis=0)) - np.log((below + 1) / (below + 1).sum(axis=0))
    weights = BASE + np.sqrt(np.mean(ratios**2, axis=1))
    before, after = squares.sum(), np.sum(squares * weights**2)  # not by the threads of a linear algebra library
    return np.asarray(weights * np.sqrt(before / after) if after > 0 else weights, dtype=dtype)


def scale_columns(X: Any, weights: NDArray[Any] | None, n_threads: int = 1) -> Any:
    """X with its columns multiplied by the weights, if there are any."""
    if weights is None:
        return X
    if not sp.issparse(X):
        return np.ascontiguousarray(X * weights)
    values = _core.scale_by_column(X.indptr, X.indices, X.data, np.asarray(weights, dtype=X.dtype), n_threads)
    return sp.csr_matrix((values, X.indices, X.indptr), shape=X.shape)
