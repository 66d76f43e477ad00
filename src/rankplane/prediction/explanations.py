"""Why a row lies above or below a boundary, and which columns matter most there.

The score of a row at a boundary is a sum of one term per column and a bias. Explanations show the largest terms and the sum of the
rest, so that they always add up to the score.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from rankplane import validation
from rankplane.prediction.fitted import fitted_of
from rankplane.prediction.rankers import Scores

Terms = list[tuple[str, float]]


@dataclass(frozen=True)
class Boundary:
    """The score of one row at the boundary between two neighbouring ranks; positive above it."""

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
    """The scores of one row at all boundaries."""

    boundaries: list[Boundary]

    def __str__(self) -> str:
        return "\n".join(map(str, self.boundaries))


@dataclass(frozen=True)
class TopFeatures:
    """The columns with the largest weights for the upper and the lower rank of a boundary."""

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
    if len(values) > 2 * top:  # faster than sorting a million columns to get a few
        parted = np.argpartition(values, (top - 1, len(values) - top))
        candidates = np.sort(np.concatenate([parted[:top], parted[len(values) - top :]]))
    order = candidates[np.argsort(values[candidates], kind="stable")]
    return pick(order[::-1], True), pick(order, False)


def explain_rows(
    X: Any, planes_of: Callable[[Any], tuple[Any, Any]], labels: NDArray[Any], names: Sequence[Any] | None, top: int
) -> list[Explanation]:
    """``planes_of`` gives the weights of some columns at each boundary, and the offsets: a row has few of a million columns."""
    X = sp.csr_matrix(X)
    explanations = []
    for row in range(X.shape[0]):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        columns = X.indices[entries]
        weights, offsets = planes_of(columns)
        terms = X.data[entries, None].astype(np.float64) * weights
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


class ExplanationMixin(ABC):
    """The methods of a model that explain its predictions by its planes."""

    classes_: NDArray[Any]
    coef_: NDArray[Any]
    intercept_: NDArray[Any]

    @abstractmethod
    def _check_rows(self, X: Any, is_fit: bool) -> Any:
        """The samples as rows that the solver and the planes take."""

    def _boundaries(self, values: Scores, n_ranks: int, *, is_score: bool) -> Scores:
        """Scores (or column weights) of the boundaries between neighbouring ranks, from those of the planes. Scores are positive
        above a boundary.
        """
        return values

    def boundary_planes(self, features: ArrayLike | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Compute the planes between neighbouring ranks.

        Parameters
        ----------
        features : array-like of int
            Numbers of the features whose weights are returned. If None, all.

        Returns
        -------
        weights : ndarray of shape (n_features, n_ranks - 1)
            Feature weights of each boundary.
        offsets : ndarray of shape (n_ranks - 1,)
            Intercept of each boundary. Scores ``X @ weights + offsets`` are positive above a boundary.
        """
        check_is_fitted(self)
        n_ranks = len(self.classes_)
        held = fitted_of(self).column_weights()
        weights = self._boundaries(held if features is None else held[np.asarray(features)], n_ranks, is_score=False)
        offsets = self._boundaries(self.intercept_[None], n_ranks, is_score=True)[0]
        return np.broadcast_to(weights, (len(weights), n_ranks - 1)), offsets

    def explain(self, X: Any, feature_names: Any = None, top: int = 10) -> list[Explanation]:
        """Explain on which side of each boundary samples lie, by the contributions of their features.

        Only available with ``kernel='linear'``.

        Returns
        -------
        list of Explanation
            One explanation per sample, with the features that push it up and down at each boundary. ``print`` shows it as text.
        """
        check_is_fitted(self)
        rows = validation.merged(self._check_rows(np.atleast_2d(X) if isinstance(X, np.ndarray) else X, is_fit=False))
        return explain_rows(
            rows, self.boundary_planes, self.classes_, self._names(feature_names), validation.check_count("top", top)
        )

    def top_features(self, feature_names: Any = None, n: int = 10) -> list[TopFeatures]:
        """List the features with the largest weights at each boundary between neighbouring ranks.

        Only available with ``kernel='linear'``.

        Returns
        -------
        list of TopFeatures
            One entry per boundary, with the names and weights of the features that speak for the upper and the lower rank.
        """
        names, n = self._names(feature_names), validation.check_count("n", n)
        return top_columns(self.boundary_planes()[0], self.classes_, names, n)

    def _names(self, feature_names: Any) -> Any:
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        if names is not None and len(names) != self.coef_.shape[1]:
            raise ValueError(f"feature_names must have one name per feature, {self.coef_.shape[1]}. Got {len(names)}.")
        return names
