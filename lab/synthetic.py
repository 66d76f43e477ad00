"""Data that looks like TF-IDF of rated texts and needs no files.

Columns are drawn as words are, by Zipf's law, and shuffled as an alphabetical vocabulary shuffles them. Each rank
has words of its own liking: a common direction along which the ranks are ordered, and a smaller private one, so
that no single direction explains it all.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def make_rated_rows(
    n_rows: int, n_columns: int, n_ranks: int, row_entries: int, seed: int = 0
) -> tuple[sp.csr_matrix, NDArray[np.int32]]:
    """A csr matrix of unit rows in float32, about ``row_entries`` entries each, and the ranks, numbered from 0."""
    rng = np.random.default_rng(seed)
    ranks = rng.permutation(np.arange(n_rows) % n_ranks).astype(np.int32)
    # Reviews differ in length by an order of magnitude. A lognormal's mean lies above its median, hence the factor.
    lengths = np.maximum(2, rng.lognormal(np.log(row_entries), 0.5, n_rows) * np.exp(-(0.5**2) / 2)).astype(np.int64)
    rows = np.repeat(np.arange(n_rows), lengths)
    columns = np.empty(len(rows), dtype=np.int64)

    # The offset flattens the head: stop words are usually gone.
    popularity = 1.0 / (np.arange(n_columns) + 50.0)
    order = rng.standard_normal(n_columns)
    for rank in range(n_ranks):
        level = 2.0 * rank / max(1, n_ranks - 1) - 1.0
        liking = np.exp(0.35 * level * order + 0.15 * rng.standard_normal(n_columns))
        edges = np.cumsum(popularity * liking)
        mine = ranks[rows] == rank
        drawn = np.searchsorted(edges, rng.random(int(mine.sum())) * edges[-1])
        columns[mine] = np.minimum(drawn, n_columns - 1)
    columns = rng.permutation(n_columns)[columns]

    # Building csr from triplets adds up repeated words: these are the term counts.
    X = sp.csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(n_rows, n_columns))
    frequency = np.bincount(X.indices, minlength=n_columns)
    idf = (np.log((1.0 + n_rows) / (1.0 + frequency)) + 1.0).astype(np.float32)
    X.data *= idf[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1))).ravel()
    X.data /= np.repeat(norms, np.diff(X.indptr)).astype(np.float32)
    X.sort_indices()
    return X, ranks
