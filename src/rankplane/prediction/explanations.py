"""Why a row lies above or below a boundary, and what a boundary looks for.

The score of a row on a boundary is a sum: what each column adds, plus the bias. Explanations show the largest terms and the
sum of the rest, so what is shown always adds up to the score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Terms = list[tuple[str, float]]


@dataclass(frozen=True)
class Boundary:
    """One row against the boundary between two neighbouring ranks; ``score`` is positive above it."""

    lower: Any
    upper: Any
    score: float
    bias: float
    up: Terms
    down: Terms
    rest: float

    def __str__(self) -> str:
        def listed(terms: Terms) -> str:
            return ", ".join(f"{name} {value:+.3f}" for name, value in terms) or "nothing"

        side = "above" if self.score > 0 else "below"
        return (
            f"{side} {self.lower}|{self.upper} ({self.score:+.3f}): up {listed(self.up)}; down {listed(self.down)}; "
            f"rest {self.rest:+.3f}, bias {self.bias:+.3f}"
        )


@dataclass(frozen=True)
class Explanation:
    """One row, boundary by boundary."""

    boundaries: list[Boundary]

    def __str__(self) -> str:
        return "\n".join(map(str, self.boundaries))


@dataclass(frozen=True)
class TopFeatures:
    """The columns that speak most strongly for the upper and for the lower rank of a boundary, with their weights."""

    lower: Any
    upper: Any
    up: Terms
    down: Terms


def name_of(column: int, names: Sequence[Any] | None) -> str:
    return f"column {column}" if names is None else str(names[column])


def extremes(values: NDArray[Any], columns: NDArray[Any], top: int, names: Sequence[Any] | None) -> tuple[Terms, Terms]:
    """The largest positive and the largest negative values, largest first."""

    def pick(order: NDArray[np.intp], is_up: bool) -> Terms:
        return [
            (name_of(int(columns[i]), names), float(values[i])) for i in order[:top] if (values[i] > 0) == is_up and values[i] != 0
        ]

    candidates = np.arange(len(values))
    if len(values) > 2 * top:  # sorting a million columns for a handful takes longer than finding them
        parted = np.argpartition(values, (top - 1, len(values) - top))
        candidates = np.sort(np.concatenate([parted[:top], parted[len(values) - top :]]))
    order = candidates[np.argsort(values[candidates], kind="stable")]
    return pick(order[::-1], True), pick(order, False)


def explain_rows(
    X: Any, weights: NDArray[Any], offsets: NDArray[Any], labels: NDArray[Any], names: Sequence[Any] | None, top: int
) -> list[Explanation]:
    X = sp.csr_matrix(X)
    explanations = []
    for row in range(X.shape[0]):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        columns = X.indices[entries]
        terms = X.data[entries, None].astype(np.float64) * weights[columns]
        boundaries = []
        for k in range(weights.shape[1]):
            up, down = extremes(terms[:, k], columns, top, names)
            total, bias = float(np.sum(terms[:, k])), float(offsets[k])
            shown = sum(value for _, value in up) + sum(value for _, value in down)
            boundaries.append(Boundary(labels[k], labels[k + 1], total + bias, bias, up, down, total - shown))
        explanations.append(Explanation(boundaries))
    return explanations


def top_columns(weights: NDArray[Any], labels: NDArray[Any], names: Sequence[Any] | None, n: int) -> list[TopFeatures]:
    every = np.arange(len(weights))
    return [TopFeatures(labels[k], labels[k + 1], *extremes(weights[:, k], every, n, names)) for k in range(weights.shape[1])]
