"""What one fit gives back, and what it is worth: the objective of its problem, recomputed in double from the dual variables.

Bias and thresholds are free of penalty in all problems compared here, as scikit-learn and skordinal have them; our models
that penalise them are judged by their predictions alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.kernel.sets import KernelData
from lab.measures import measures

C = 1.0
EPSILON = 0.1
Array = NDArray[Any]


@dataclass
class Plane:
    """A function of rows: how much of each training row's kernel function it consists of, and its offset."""

    rows: Array
    coefficients: Array
    offset: float

    def scores(self, K: Array) -> tuple[Array, float]:
        """On the training rows, and half the square of its length."""
        of_rows = K[:, self.rows] @ self.coefficients
        return of_rows + self.offset, 0.5 * float(self.coefficients @ of_rows[self.rows])


@dataclass
class Outcome:
    """How long a fit took and what it found."""

    seconds: float
    problem: str  # svc, svr, svor or redsvm
    predictions: Array | None = None  # ranks of the test rows
    planes: list[Plane] | None = None  # where the problem is the one that everyone solves
    note: str = ""

    def check(self, data: KernelData, K: Array | None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.predictions is not None:
            found |= measures(self.predictions, data.y_test)
        if self.planes is not None and K is not None:
            found["primal"] = primal(self.problem, data, self.planes, K)
        return found


def kernel_matrix(data: KernelData) -> Array:
    return np.asarray(rbf_kernel(data.X, gamma=data.gamma))


def primal(problem: str, data: KernelData, planes: list[Plane], K: Array) -> float:
    total = 0.0
    for number, plane in enumerate(planes):
        z, half_square = plane.scores(K)
        side = np.where(data.y == number, 1, -1)
        losses = 1 - side * z if problem == "svc" else np.abs(z - (data.y + 1)) - EPSILON
        total += half_square + C * float(np.maximum(losses, 0).sum())
    return total
