"""Kernels, and rows of the kernel matrix on demand.

A kernel is a function of two sets of rows. The matrix of all training rows need not fit into memory: a solve works on some rows at
a time, and as many kernel rows are kept as fit into the cache.

Every named kernel is a function of one number per pair of rows, its *argument*: the inner product or, for ``rbf``, the squared
distance. It does not depend on gamma, so a search over gamma computes it once.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankplane import _core
from rankplane.solver.blas import one_thread

GAMMA_KERNELS = ("rbf", "poly", "sigmoid")
KERNELS = ("linear", *GAMMA_KERNELS, "precomputed")
BLOCK_ROWS = 256
LEAST_ROWS = 64  # kernel rows that are kept however small the cache; rounds on fewer rows make too little progress


def is_linear(kernel: Any) -> bool:
    """Whether planes are given by column weights, so that no kernel matrix is needed."""
    return isinstance(kernel, str) and kernel == "linear"


def in_blocks(work: Callable[[slice], None], n_rows: int, n_threads: int) -> None:
    """Call ``work`` on each block of rows, on several threads."""
    blocks = [slice(first, min(first + BLOCK_ROWS, n_rows)) for first in range(0, n_rows, BLOCK_ROWS)]
    with one_thread():  # of BLAS per block, since there are many blocks
        if n_threads == 1 or len(blocks) == 1:
            for block in blocks:
                work(block)
            return
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, blocks))


def gamma_of(gamma: Any, X: Any) -> float:
    """``'scale'`` is ``1 / (n_columns * variance of X)``, ``'auto'`` is ``1 / n_columns``, as scikit-learn has them."""
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    if gamma != "scale":
        return float(gamma)
    mean = float(X.mean(dtype=np.float64))
    variance = float((X.multiply(X) if sp.issparse(X) else np.square(X)).mean(dtype=np.float64)) - mean**2
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def square_norms(X: Any) -> NDArray[np.float64]:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1, dtype=np.float64)).ravel()
    return np.asarray(np.einsum("ij,ij->i", X, X, dtype=np.float64))


class InnerProducts:
    """``A @ B.T`` in float64 with a fixed ``B``: by BLAS for dense rows, column by column for sparse rows."""

    def __init__(self, rows: Any) -> None:
        self.is_sparse = sp.issparse(rows)
        # Stored by column, so that only pairs of nonzero entries are visited.
        self.rows = rows.tocsc() if self.is_sparse else rows.astype(np.float64, copy=False)
        self.square_norms = square_norms(rows)

    def of(self, picks: Any) -> NDArray[np.float64]:
        if not self.is_sparse:
            picks = picks.toarray() if sp.issparse(picks) else picks
            return np.asarray(picks.astype(np.float64, copy=False) @ self.rows.T)
        picks, columns = sp.csr_matrix(picks), self.rows
        index = np.promote_types(picks.indices.dtype, columns.indices.dtype)
        return _core.row_products(
            picks.indptr.astype(index, copy=False),
            picks.indices.astype(index, copy=False),
            picks.data.astype(columns.dtype, copy=False),
            columns.indptr.astype(index, copy=False),
            columns.indices.astype(index, copy=False),
            columns.data,
            columns.shape[0],
        )


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters. ``name`` is one of ``KERNELS`` except ``linear``, or a callable of two sets of rows."""

    name: str | Callable[[Any, Any], Any]
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0

    def argument(self, products: NDArray[Any], squares: NDArray[Any], other_squares: NDArray[Any]) -> NDArray[Any]:
        """The argument of the kernel. Overwrites ``products``."""
        if self.name == "rbf":
            # In float64, since the distance of close rows is lost to cancellation in float32.
            products *= -2
            products += squares[:, None]
            products += other_squares
            np.maximum(products, 0, out=products)
        return products

    def of_argument(self, argument: NDArray[Any]) -> NDArray[Any]:
        """The kernel as a function of its argument. Overwrites ``argument``."""
        if self.name == "rbf":
            argument *= -self.gamma
            return np.asarray(np.exp(argument, out=argument))
        argument *= self.gamma
        argument += self.coef0
        if self.name == "poly":
            return np.asarray(np.power(argument, self.degree, out=argument))
        return np.asarray(np.tanh(argument, out=argument))

    def of_square_norms(self, squares: NDArray[np.float64]) -> NDArray[np.float64]:
        """The kernel of each row with itself."""
        return np.ones(len(squares)) if self.name == "rbf" else self.of_argument(squares.copy())

    def call(self, rows: Any, others: Any) -> NDArray[Any]:
        """Call a callable kernel on two sets of rows, and check its result."""
        assert callable(self.name)
        found = self.name(rows, others)
        found = np.asarray(found.toarray() if sp.issparse(found) else found, dtype=rows.dtype)
        expected = (rows.shape[0], others.shape[0])
        if found.shape != expected:
            raise ValueError(f"kernel must return an array of shape {expected} for these numbers of rows. Got {found.shape}.")
        if not np.isfinite(found).all():
            raise ValueError("kernel must return finite numbers. Got NaN or infinity.")
        return found


class FixedRows:
    """A kernel with one of its arguments fixed: ``against(X)`` is the kernel matrix of X with these rows."""

    def __init__(self, kernel: Kernel, rows: Any) -> None:
        self.kernel = kernel
        self.rows = rows
        self.products = None if callable(kernel.name) else InnerProducts(rows)

    def arguments(self, X: Any) -> NDArray[Any]:
        assert self.products is not None
        found = self.kernel.argument(self.products.of(X), square_norms(X), self.products.square_norms)
        return found.astype(self.rows.dtype, copy=False)

    def against(self, X: Any) -> NDArray[Any]:
        return self.kernel.call(X, self.rows) if self.products is None else self.kernel.of_argument(self.arguments(X))

    def diagonal(self) -> NDArray[np.float64]:
        """The kernel of each row with itself."""
        if self.products is not None:
            return self.kernel.of_square_norms(self.products.square_norms)
        n_rows = self.rows.shape[0]
        parts = [self.rows[first : first + BLOCK_ROWS] for first in range(0, n_rows, BLOCK_ROWS)]
        return np.concatenate([self.kernel.call(part, part).diagonal() for part in parts]).astype(np.float64)


class Gram:
    """The kernel matrix of the training rows, computed row by row on demand. Keeps the most recent rows, up to ``n_bytes``."""

    def __init__(self, kernel: Kernel, X: Any, n_bytes: float, n_threads: int) -> None:
        self.X = X
        self.shape = X.shape
        self.n_rows = X.shape[0]
        self.dtype = X.dtype
        self.n_bytes = n_bytes
        self.n_threads = n_threads
        self.fixed = None if kernel.name == "precomputed" else FixedRows(kernel, X)
        self.all_arguments: NDArray[Any] | None = None
        self._reset_cache()

    def __getitem__(self, rows: Any) -> Any:
        """Rows of X, for splitters that need X."""
        return self.X[rows]

    def _reset_cache(self) -> None:
        room = self.n_bytes - (0 if self.all_arguments is None else self.all_arguments.nbytes)
        n_kept = int(np.clip(room // (self.n_rows * self.dtype.itemsize), min(LEAST_ROWS, self.n_rows), self.n_rows))
        self.cache = self.X if self.fixed is None else np.empty((n_kept, self.n_rows), dtype=self.dtype)
        self.slot_of_row = np.arange(self.n_rows) if self.fixed is None else np.full(self.n_rows, -1)
        self.row_of_slot = np.full(len(self.cache), -1)
        self.last_use = np.zeros(len(self.cache), dtype=np.int64)
        self.n_uses = 0

    def with_gamma(self, gamma: float) -> "Gram":
        """The same kernel and rows with another gamma. The arguments are shared if the cache has room for them."""
        assert self.fixed is not None
        n_bytes = self.n_rows**2 * self.dtype.itemsize
        if self.all_arguments is None and 2 * n_bytes <= self.n_bytes:
            self.all_arguments = np.empty((self.n_rows, self.n_rows), dtype=self.dtype)
            in_blocks(self._fill_arguments, self.n_rows, self.n_threads)
        other = object.__new__(Gram)
        other.__dict__.update(self.__dict__)
        kernel = self.fixed.kernel
        other.fixed = object.__new__(FixedRows)
        other.fixed.__dict__.update(self.fixed.__dict__)
        other.fixed.kernel = Kernel(kernel.name, gamma, kernel.degree, kernel.coef0)
        # Cached rows depend on gamma.
        other._reset_cache()
        return other

    def times(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """The kernel matrix times V, block by block of as many rows as the cache holds."""
        found = np.empty((self.n_rows, V.shape[1]))
        for first in range(0, self.n_rows, len(self.cache)):
            rows = np.arange(first, min(first + len(self.cache), self.n_rows))
            slots = self.slots(rows)
            is_whole = len(slots) == len(self.cache) and bool(np.all(slots == np.arange(len(slots))))
            found[rows] = (self.cache if is_whole else self.cache[slots]) @ V
        return found

    def _fill_arguments(self, block: slice) -> None:
        assert self.all_arguments is not None
        assert self.fixed is not None
        self.all_arguments[block] = self.fixed.arguments(self.X[block])

    def diagonal(self) -> NDArray[np.float64]:
        return np.array(self.X.diagonal(), dtype=np.float64) if self.fixed is None else self.fixed.diagonal()

    def slots(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Positions in ``cache`` of the kernel rows of these rows, at most as many as it holds. Computes those that are missing."""
        if self.fixed is None:
            return rows
        self.n_uses += 1
        found = self.slot_of_row[rows]
        self.last_use[found[found >= 0]] = self.n_uses
        missing = rows[found < 0]
        if len(missing) > 0:
            oldest = np.argpartition(self.last_use, len(missing) - 1)[: len(missing)]
            evicted = self.row_of_slot[oldest]
            self.slot_of_row[evicted[evicted >= 0]] = -1
            in_blocks(lambda block: self._compute(missing[block], oldest[block]), len(missing), self.n_threads)
            self.slot_of_row[missing] = oldest
            self.row_of_slot[oldest] = missing
            self.last_use[oldest] = self.n_uses
        return self.slot_of_row[rows]

    def _compute(self, rows: NDArray[np.intp], slots: NDArray[np.intp]) -> None:
        assert self.fixed is not None
        if self.all_arguments is None:
            self.cache[slots] = self.fixed.against(self.X[rows])
        else:
            self.cache[slots] = self.fixed.kernel.of_argument(self.all_arguments[rows])


def kernel_scores(fixed: FixedRows, X: Any, coefficients: NDArray[Any], n_threads: int) -> NDArray[np.float64]:
    """Scores of rows by the kernel with the support rows, ``(n_rows, n_planes)``, computed in blocks of rows."""
    scores = np.empty((X.shape[0], coefficients.shape[1]))

    def score(block: slice) -> None:
        scores[block] = fixed.against(X[block]) @ coefficients

    in_blocks(score, X.shape[0], n_threads)
    return scores
