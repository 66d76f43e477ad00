"""The solution of a fitted model, which gives scores: planes or, with a kernel, support rows.

Both have the same methods, so that no other module has to distinguish them.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankplane.solver import planes
from rankplane.solver.blas import one_thread
from rankplane.solver.kernels import GAMMA_KERNELS, FixedRows, Gram, Kernel, is_linear, kernel_scores
from rankplane.solver.planes import Planes
from rankplane.validation import check_positive


class Fitted(Protocol):
    """The solution of a fitted model."""

    def scores(self, X: Any, n_threads: int) -> NDArray[Any]:
        """Signed scores, shape (n_rows, n_planes): zero on a plane, positive above it."""
        ...

    def column_weights(self) -> NDArray[Any]:
        """Weights of the columns in the planes, shape (n_columns, n_planes)."""
        ...

    def attributes(self) -> dict[str, Any]:
        """The solution as fitted attributes of the model."""
        ...

    def check(self, n_lanes: int, n_columns: int) -> None:
        """Raise ``ValueError`` unless its parts fit together, as those of a forged model file need not."""
        ...


@dataclass(frozen=True)
class FittedPlanes:
    """Column weights, (n_columns, n_planes), and offsets."""

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

    def check(self, n_lanes: int, n_columns: int) -> None:
        check_matrix("weights", self.weights)
        if self.weights.shape != (n_columns, n_lanes):
            raise ValueError(f"the weights do not match {n_columns} columns and {n_lanes} directions")


@dataclass(frozen=True)
class FittedKernel:
    """Support rows and their coefficients, (n_planes, n_support), in the kernel expansion of each plane."""

    kernel: Kernel
    support: NDArray[np.int32]
    rows: Any  # without rows if the kernel is precomputed
    duals: NDArray[np.float64]
    offsets: NDArray[Any]

    @classmethod
    def of_model(cls, model: Any) -> Self:
        gamma = model.gamma_ if model.kernel in GAMMA_KERNELS else 1.0
        kernel = Kernel(model.kernel, gamma, model.degree, model.coef0)
        return cls(kernel, model.support_, model.support_vectors_, model.dual_coef_, model.intercept_)

    @classmethod
    def of_solve(cls, gram: Gram, duals: NDArray[np.float64], offsets: NDArray[Any]) -> Self:
        """Keep the rows with a nonzero coefficient in any plane."""
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

    def check(self, n_lanes: int, n_columns: int) -> None:
        is_precomputed = self.kernel.name == "precomputed"
        check_matrix("support rows", self.rows)
        if self.rows.shape[1] != n_columns:
            raise ValueError("the support rows do not match the number of columns")
        n_rows = len(self.support) if is_precomputed else self.rows.shape[0]
        if self.duals.shape != (n_lanes, n_rows) or self.duals.dtype.kind != "f":
            raise ValueError("the support rows do not match their coefficients")
        support = self.support
        if is_precomputed and not (support.dtype.kind in "iu" and np.all((support >= 0) & (support < n_columns))):
            raise ValueError("the support rows are not rows of training")
        check_positive("gamma_", self.kernel.gamma)


def check_matrix(name: str, values: Any) -> None:
    # The core has loops for these.
    if values.ndim != 2 or values.dtype.str not in ("<f4", "<f8"):
        raise ValueError(f"the {name} are not a matrix of numbers")


def fitted_by(found: Planes, X: Any) -> Fitted:
    """The result of a solve on X."""
    offsets = found.offsets.ravel()
    return FittedKernel.of_solve(X, found.weights, offsets) if isinstance(X, Gram) else FittedPlanes(found.weights, offsets)


def fitted_of(model: Any) -> Fitted:
    """The solution in the attributes of a fitted model."""
    return FittedPlanes.of_model(model) if is_linear(model.kernel) else FittedKernel.of_model(model)
