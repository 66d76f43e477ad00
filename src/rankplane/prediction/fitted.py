"""What a solve leaves of a model, and the scores it gives to rows: planes, or with a kernel, rows that they rest on.

Both have the same methods, so that nobody else asks which of the two it is.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankplane.solver import planes
from rankplane.solver.blas import one_thread
from rankplane.solver.kernels import GAMMA_KERNELS, FixedRows, Gram, Kernel, is_linear, kernel_scores
from rankplane.solver.planes import Planes


class Fitted(Protocol):
    """What a model scores rows by."""

    def scores(self, X: Any, n_threads: int) -> NDArray[Any]:
        """Signed scores, shape (n_rows, n_planes): zero on a plane, positive above it."""
        ...

    def column_weights(self) -> NDArray[Any]:
        """Weights of the columns in the planes, shape (n_columns, n_planes)."""
        ...

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes of the model that hold it."""
        ...


@dataclass(frozen=True)
class FittedPlanes:
    """Weights of columns, (n_columns, n_planes), and offsets."""

    weights: NDArray[Any]
    offsets: NDArray[Any]

    @classmethod
    def of_model(cls, model: Any) -> Self:
        return cls(model.coef_.T, model.intercept_)

    def scores(self, X: Any, n_threads: int) -> NDArray[Any]:
        weights = np.ascontiguousarray(self.weights)
        return np.asarray(planes.scores(X.astype(weights.dtype, copy=False), weights, n_threads) + self.offsets)

    def column_weights(self) -> NDArray[Any]:
        return self.weights

    def attributes(self) -> dict[str, Any]:
        # A view: the weights stay column by column, as prediction reads them.
        return {"coef_": self.weights.T, "intercept_": self.offsets}


@dataclass(frozen=True)
class FittedKernel:
    """Training rows, and how much of each one's kernel function every plane consists of, (n_planes, n_support)."""

    kernel: Kernel
    support: NDArray[np.int32]
    rows: Any  # none with a precomputed kernel
    duals: NDArray[np.float64]
    offsets: NDArray[Any]

    @classmethod
    def of_model(cls, model: Any) -> Self:
        kernel = Kernel(model.kernel, getattr(model, "gamma_", 1.0), model.degree, model.coef0)
        return cls(kernel, model.support_, model.support_vectors_, model.dual_coef_, model.intercept_)

    @classmethod
    def of_solve(cls, gram: Gram, duals: NDArray[np.float64], offsets: NDArray[Any]) -> Self:
        """Of all rows only those that any plane rests on matter."""
        support = np.flatnonzero(np.any(duals != 0, axis=1)).astype(np.int32)
        kernel, rows = (Kernel("precomputed"), gram.X[:0]) if gram.fixed is None else (gram.fixed.kernel, gram.X[support])
        return cls(kernel, support, rows, np.ascontiguousarray(duals[support].T), offsets)

    def scores(self, X: Any, n_threads: int) -> NDArray[Any]:
        if self.kernel.name == "precomputed":
            with one_thread():
                return np.asarray(X[:, self.support] @ self.duals.T + self.offsets, dtype=np.float64)
        support = FixedRows(self.kernel, self.rows)
        found = kernel_scores(support, X.astype(support.rows.dtype, copy=False), self.duals.T, n_threads)
        return np.asarray(found + self.offsets)

    def column_weights(self) -> NDArray[Any]:
        raise ValueError(f"Explanations need feature weights, which only kernel='linear' has. Got kernel={self.kernel.name!r}.")

    def attributes(self) -> dict[str, Any]:
        held: dict[str, Any] = {"support_": self.support, "dual_coef_": self.duals, "support_vectors_": self.rows}
        if self.kernel.name in GAMMA_KERNELS:
            held["gamma_"] = self.kernel.gamma
        return held | {"intercept_": self.offsets}


def fitted_by(found: Planes, X: Any) -> Fitted:
    """What a solve on X has found."""
    offsets = found.offsets.ravel()
    return FittedKernel.of_solve(X, found.weights, offsets) if isinstance(X, Gram) else FittedPlanes(found.weights, offsets)


def fitted_of(model: Any) -> Fitted:
    """What the attributes of a fitted model hold."""
    return FittedPlanes.of_model(model) if is_linear(model.kernel) else FittedKernel.of_model(model)
