"""Columns of a table as a matrix: numbers standardised, categories one column each."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

MISSING = ("", "na", "nan", "n/a", "null", "none")


class CellError(ValueError):
    """A cell that does not fit its column; ``row`` counts from 0, for whoever knows the lines of a file."""

    def __init__(self, sentence: str, row: int) -> None:
        super().__init__(sentence)
        self.row = row


def is_missing(value: Any) -> bool:
    return value is None or value != value or (isinstance(value, str) and value.strip().lower() in MISSING)


def as_number(value: Any) -> float:
    """A number, NaN for a missing value; ``ValueError`` for anything else."""
    try:
        return np.nan if is_missing(value) else float(value)
    except OverflowError:  # a whole number, as long as JSON allows
        return np.inf


def is_number(value: Any) -> bool:
    try:
        float(value)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        return False
    return True


class ColumnEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Make a sparse matrix of named columns.

    A column whose values are all numbers, missing ones aside, is scaled to mean zero and deviation one; a missing number counts as
    the mean. Any other column has a column per category that `fit` saw; an unknown or missing category is zero in all of them.

    Parameters
    ----------
    columns : list of str, default=None
        The columns to use, None for all.

    Examples
    --------
    >>> from rankplane.tabular import ColumnEncoder
    >>> encoder = ColumnEncoder().fit({"size": [1, 3], "colour": ["red", "blue"]})
    >>> encoder.transform({"size": [5], "colour": ["red"]}).toarray().tolist()
    [[3.0, 0.0, 1.0]]
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'colour=blue', 'colour=red']
    """

    fitted: ClassVar[tuple[str, ...]] = ("names_", "means_", "deviations_", "categories_")

    def __init__(self, columns: list[str] | None = None) -> None:
        self.columns = columns

    def fit(self, X: Mapping[str, Iterable[Any]], y: Any = None) -> Self:
        """Learn means, deviations and categories of a mapping from names to columns, such as a data frame."""
        self.names_ = [str(name) for name in (self.columns if self.columns is not None else list(X.keys()))]
        self.categories_: dict[str, list[str]] = {}
        means, deviations = [], []
        for name in self.names_:
            values = list(X[name])
            try:
                numbers = np.array([as_number(value) for value in values], dtype=np.float64)
            except (TypeError, ValueError):
                self.categories_[name] = sorted({str(value) for value in values if not is_missing(value)})
                continue
            known = numbers[np.isfinite(numbers)]
            unit = 2.0 ** max(0, int(np.frexp(np.abs(known).max(initial=0.0))[1]) - 500)  # squares of larger ones overflow
            known = known / unit
            means.append(float(known.mean() * unit) if len(known) else 0.0)
            deviations.append(float(known.std() * unit) or 1.0 if len(known) else 1.0)
        self.means_, self.deviations_ = np.array(means), np.array(deviations)
        return self

    def transform(self, X: Mapping[str, Iterable[Any]]) -> sp.csr_matrix:
        """The matrix of a mapping from names to columns."""
        check_is_fitted(self, "names_")
        blocks, n_numeric = [], 0
        for name in self.names_:
            values = list(X[name])
            if name in self.categories_:
                blocks.append(self._one_hot(values, self.categories_[name]))
                continue
            blocks.append(self._scaled(name, values, n_numeric))
            n_numeric += 1
        return sp.csr_matrix(sp.hstack(blocks, format="csr", dtype=np.float64))

    def _scaled(self, name: str, values: list[Any], number: int) -> sp.csr_matrix:
        scaled = np.zeros((len(values), 1))
        for row, value in enumerate(values):
            try:
                x = as_number(value)
            except (TypeError, ValueError):
                raise CellError(f"Column {name!r} must hold numbers, as it did in training. Got {value!r}.", row) from None
            if np.isfinite(x):
                with np.errstate(over="ignore"):
                    scaled[row] = (x - self.means_[number]) / self.deviations_[number]
                if not np.isfinite(scaled[row]):
                    raise CellError(f"Column {name!r} must hold numbers of the size it held in training. Got {value!r}.", row)
        return sp.csr_matrix(scaled)

    @staticmethod
    def _one_hot(values: list[Any], categories: list[str]) -> sp.csr_matrix:
        place = {category: column for column, category in enumerate(categories)}
        columns = np.array([-1 if is_missing(value) else place.get(str(value), -1) for value in values], dtype=np.int64)
        rows = np.flatnonzero(columns >= 0)
        return sp.csr_matrix((np.ones(len(rows)), (rows, columns[rows])), shape=(len(values), len(categories)))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the matrix's columns: ``name``, or ``name=category``."""
        check_is_fitted(self, "names_")
        named = [
            [f"{name}={category}" for category in self.categories_[name]] if name in self.categories_ else [name]
            for name in self.names_
        ]
        return np.array([name for names in named for name in names], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "names_")
