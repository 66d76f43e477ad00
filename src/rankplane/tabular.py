"""Columns of a table as a matrix: numbers standardised, categories one column each."""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from rankplane.docstrings import Entry, documented
from rankplane.validation import check_choice
from rankplane.versions import Versioned

SKEWED = 1.0  # skewness
MISSING = ("", "na", "nan", "n/a", "null", "none")
LONGEST_MISSING = max(map(len, MISSING))
BOOLEANS = {"true": 1.0, "false": 0.0}
# Values that are neither numbers nor categories, and their names in messages.
UNFIT = {
    (list, tuple, set, frozenset, np.ndarray): "lists",
    (dict,): "objects",
    (bytes, bytearray, memoryview): "bytes",
    (date, time, timedelta, np.datetime64, np.timedelta64): "dates or times",
    (complex, np.complexfloating): "complex numbers",
}


class CellError(ValueError):
    """A cell that does not fit its column; ``row`` counts from 0, for whoever knows the lines of a file."""

    def __init__(self, sentence: str, row: int) -> None:
        super().__init__(sentence)
        self.row = row


class Frame(Protocol):
    """A data frame of any library: columns that have names."""

    @property
    def columns(self) -> Any: ...

    def __getitem__(self, name: Any, /) -> Any: ...


Columns = Mapping[Any, Iterable[Any]] | Frame | ArrayLike


def is_missing(value: Any) -> bool:
    if isinstance(value, str):
        word = value.strip()
        return len(word) <= LONGEST_MISSING and word.lower() in MISSING  # no letter has fewer in lower case
    if value is None:
        return True
    differs = value != value  # as NaN and NaT do; for the NA of pandas, the comparison is NA
    return bool(differs) if isinstance(differs, bool | np.bool_) else differs is value


def as_number(value: Any) -> float:
    """A number, 1 for true, 0 for false, NaN for a missing value; ``ValueError`` for anything else."""
    if isinstance(value, str):
        word = value.strip().lower()
        if word in BOOLEANS:
            return BOOLEANS[word]
        if "_" in word:  # Python reads 1_000 as a number, tables do not
            raise ValueError
    if is_missing(value):
        return np.nan
    if isinstance(value, bytes | bytearray | np.datetime64 | np.timedelta64):
        raise ValueError
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf


def is_number(value: Any) -> bool:
    try:
        as_number(value)
    except (TypeError, ValueError):
        return False
    return not is_missing(value)


def unfit(value: Any) -> str | None:
    """The name of this kind of values if they are neither numbers nor words; None otherwise."""
    if isinstance(value, str | int | float) or is_missing(value):
        return None
    return next((name for kinds, name in UNFIT.items() if isinstance(value, kinds)), None)


def unknown_column(name: str, known: Iterable[str]) -> str:
    """The end of a message about a missing column."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f'has no column "{name}": did you mean "{near[0]}"?'
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20:,} more" if len(names) > 20 else "")
    return f'has no column "{name}": its columns are {shown or "none"}.'


def unnamed(n_columns: int) -> list[str]:
    """How columns without names are named."""
    return [f"column {number}" for number in range(n_columns)]


@dataclass(frozen=True)
class NamedColumns:
    """Columns by position, and their names."""

    names: list[str]
    column: Callable[[int], Any]
    has_names: bool = True


def named_columns(X: Any, min_rows: int) -> NamedColumns:
    """Columns of any kind of table; an array must have at least ``min_rows``."""
    if isinstance(X, Mapping):
        columns = list(X.values())
        return NamedColumns([str(name) for name in X], lambda place: columns[place])
    if hasattr(X, "column_names") and hasattr(X, "column"):  # pyarrow
        return NamedColumns([str(name) for name in X.column_names], X.column)
    if hasattr(X, "collect_schema") and not hasattr(X, "height"):  # polars
        raise TypeError(f"X must be a table in memory: collect() it first. Got a {type(X).__name__}.")
    if hasattr(X, "columns"):
        labels = list(X.columns)
        # By place where that can be, since labels of pandas may occur twice.
        get = (lambda place: X.iloc[:, place]) if hasattr(X, "iloc") else (lambda place: X[labels[place]])
        return NamedColumns([str(label) for label in labels], get)
    array = check_array(X, dtype=None, ensure_all_finite=False, ensure_min_samples=min_rows, input_name="X")
    return NamedColumns(unnamed(array.shape[1]), lambda place: array[:, place], has_names=False)


def values_of(column: Any, name: str) -> NDArray[np.float64] | list[Any]:
    """Numbers as an array where they are one already, anything else as a list."""
    if isinstance(column, str | bytes) or not isinstance(column, Iterable):
        raise ValueError(f"Column {name!r} must be a list of values. Got {column!r}.")
    if not hasattr(column, "__array__"):
        return list(column)
    # Converted by numpy, a dictionary array would lose its missing values.
    if hasattr(column, "to_pylist") and "dictionary" in str(getattr(column, "type", "")):
        return list(column.to_pylist())
    array = np.asarray(column)
    if array.ndim != 1:
        raise ValueError(f"Column {name!r} must have one dimension. Got an array of shape {array.shape}.")
    if array.dtype.kind in "mM":
        return list(array)  # tolist would turn dates in nanoseconds into integers
    return array.astype(np.float64) if array.dtype.kind in "biuf" else list(array.tolist())


def values_by_name(asked: list[str], table: NamedColumns) -> dict[str, Any]:
    """Values of the columns, all of one length."""
    places = {name: place for place, name in enumerate(table.names)}
    if len(places) != len(table.names):
        raise ValueError(f'X has a column "{Counter(table.names).most_common(1)[0][0]}" twice.')
    found: dict[str, Any] = {}
    for name in asked:
        if name not in places:
            raise ValueError(f"X {unknown_column(name, table.names)}")
        found[name] = values_of(table.column(places[name]), name)
        if len(found[name]) != len(found[asked[0]]):
            raise ValueError(
                f"X must have columns of one length. Got {len(found[asked[0]])} values in {asked[0]!r}, "
                f"{len(found[name])} in {name!r}."
            )
    return found


def as_numbers(values: NDArray[np.float64] | list[Any]) -> NDArray[np.float64]:
    """An array with NaN for missing values; ``CellError`` for the first value that is no number."""
    if isinstance(values, np.ndarray):
        return values
    if set(map(type, values)) <= {float, int, bool, type(None)}:
        with suppress(OverflowError):
            return np.array(values, dtype=np.float64)
    numbers = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            numbers[row] = as_number(value)
        except (TypeError, ValueError):
            raise CellError("", row) from None
    return numbers


def check_finite(name: str, numbers: NDArray[np.float64], values: Any) -> None:
    """Refuse infinite numbers, and numbers such as 1e999, which are too large to be told from them."""
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        row = int(infinite[0])
        raise CellError(f"Column {name!r} must hold finite numbers. Got {shortened(values[row])}.", row)


def check_words(name: str, values: Iterable[Any]) -> None:
    """Refuse values that categories cannot be made of."""
    if set(map(type, values)) <= {str, float, int, bool, type(None)}:
        return
    for row, value in enumerate(values):
        if kind := unfit(value):
            raise CellError(f"Column {name!r} must hold numbers or words, not {kind}. Got {shortened(value)}.", row)


def shortened(value: Any) -> str:
    shown = repr(value.item() if isinstance(value, np.generic) else value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def mean_and_deviation(numbers: NDArray[np.float64]) -> tuple[float, float]:
    known = numbers[np.isfinite(numbers)]
    if not len(known) or known.min() == known.max():
        return (float(known[0]) if len(known) else 0.0), 1.0  # rounding would give equal numbers a tiny deviation
    # Squares of numbers near the largest one, or the smallest, are out of range.
    size = np.abs(known).max()
    unit = size if not 1e-100 < size < 1e100 else 1.0
    known = known / unit
    return float(known.mean() * unit), float(known.std() * unit) or 1.0


def median_and_spread(numbers: NDArray[np.float64]) -> tuple[float, float]:
    """The median and the median distance from it; an infinite one if the numbers are not skewed."""
    known = numbers[np.isfinite(numbers)]
    if not len(known) or known.min() == known.max():
        return 0.0, np.inf
    mean, deviation = mean_and_deviation(known)
    with np.errstate(over="ignore", invalid="ignore"):
        skewness = np.mean(((known - mean) / deviation) ** 3)
    median = float(np.median(known))
    distances = np.abs(known - median)
    spread = float(np.median(distances)) or float(distances[distances > 0].min())
    return (median, spread) if abs(skewness) > SKEWED else (0.0, np.inf)


def with_logarithm(numbers: NDArray[np.float64], median: float, spread: float) -> NDArray[np.float64]:
    """Signed logarithms of the distances from the median; the numbers themselves if the spread is infinite."""
    if np.isinf(spread):
        return numbers
    distances = numbers - median
    return np.asarray(np.sign(distances) * np.log1p(np.abs(distances) / spread))


PARAMETERS = {
    "X": Entry(
        "dict of columns, DataFrame, pyarrow.Table or array-like of shape (n_samples, n_columns)",
        "A table; data frames may be of pandas or polars. Columns are found by name, in any order; those of an array by position.",
    ),
    "y": Entry("None", "Ignored."),
}


class TableTransformer(Versioned, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What transformers of tables share: ``fitted`` names what a model file has of them."""

    fitted: ClassVar[tuple[str, ...]]
    n_features_in_: int

    def _check_n_columns(self, table: NamedColumns) -> None:
        """Refuse a table without names that has other columns than the one that was fitted."""
        if len(table.names) != self.n_features_in_:
            expected = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            raise ValueError(f"X has {len(table.names)} features, but {expected}.")

    def _to_values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.fitted}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


@documented(PARAMETERS)
class ColumnEncoder(TableTransformer):
    """Encode the columns of a table as a sparse matrix.

    Numeric columns are scaled to zero mean and unit variance; missing values are replaced by the mean, true counts as 1 and false
    as 0. All other columns are one-hot encoded; unknown and missing categories are encoded as zeros. Infinite numbers, and columns
    of lists, objects or dates, are refused.

    Parameters
    ----------
    columns : list of str
        Names of the columns to use. If None, all are used.
    skewed : 'log'
        Take logarithms of skewed numeric columns before scaling: ``sign(d) * log(1 + abs(d))``, with ``d`` the distance from the
        median in units of the median distance. A column is skewed if its skewness is above 1 or below -1. If None, columns stay
        as they are.
    sparse_output : bool
        Whether ``transform`` returns a csr matrix or an array. ``set_output`` needs an array.

    Attributes
    ----------
    names_ : list of str
        Names of the columns in use. Columns of an array are called ``column 0`` and so on.
    means_ : ndarray of shape (n_numeric,)
        Mean of each numeric column.
    deviations_ : ndarray of shape (n_numeric,)
        Standard deviation of each numeric column.
    medians_ : ndarray of shape (n_numeric,)
        Median of each numeric column. Only with ``skewed='log'``.
    spreads_ : ndarray of shape (n_numeric,)
        Median distance from the median of each numeric column; infinite for columns that are not skewed. Only with
        ``skewed='log'``.
    categories_ : dict of str to list of str
        Categories of each column that is one-hot encoded.
    n_features_in_ : int
        Number of columns in use.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns in use. Only if ``fit`` was given a table with column names.

    See Also
    --------
    TextVectorizer : Encode texts.
    sklearn.compose.ColumnTransformer : Combine any encoders of scikit-learn.

    Examples
    --------
    >>> from rankplane import ColumnEncoder
    >>> encoder = ColumnEncoder().fit({"size": [1, 3], "colour": ["red", "blue"]})
    >>> encoder.transform({"size": [5], "colour": ["red"]}).toarray().tolist()
    [[3.0, 0.0, 1.0]]
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'colour=blue', 'colour=red']
    """

    fitted: ClassVar[tuple[str, ...]] = ("names_", "means_", "deviations_", "categories_", "medians_", "spreads_")

    def __init__(self, *, columns: list[str] | None = None, skewed: str | None = None, sparse_output: bool = True) -> None:
        self.columns = columns
        self.skewed = skewed
        self.sparse_output = sparse_output

    def fit(self, X: Columns, y: Any = None) -> Self:
        """Learn the means, deviations and categories of the columns.

        Returns
        -------
        object
            The fitted encoder.
        """
        table = named_columns(X, min_rows=1)
        if isinstance(self.columns, str):
            raise ValueError(f"columns must be None or a list of names. Got {self.columns!r}.")
        asked = table.names if self.columns is None else [str(name) for name in self.columns]
        check_choice("skewed", self.skewed, (None, "log"))
        found = values_by_name(asked, table)
        if not found or not len(next(iter(found.values()))):
            raise ValueError(f"X must have at least one {'row' if found else 'column'}.")
        self.names_ = asked
        self.categories_: dict[str, list[str]] = {}
        moments, middles = [], []
        for name, values in found.items():
            try:
                numbers = as_numbers(values)
            except CellError:
                check_words(name, values)
                self.categories_[name] = sorted({str(value) for value in values if not is_missing(value)})
                continue
            check_finite(name, numbers, values)
            middles.append(median_and_spread(numbers) if self.skewed else (0.0, np.inf))
            moments.append(mean_and_deviation(with_logarithm(numbers, *middles[-1])))
        self.means_, self.deviations_ = np.array(moments).reshape(-1, 2).T.copy()
        self.medians_, self.spreads_ = np.array(middles).reshape(-1, 2).T.copy()
        return self

    def transform(self, X: Columns) -> Any:
        """Encode a table.

        Returns
        -------
        csr_matrix or ndarray of shape (n_samples, n_features_out)
            The encoded table.
        """
        check_is_fitted(self)
        table = named_columns(X, min_rows=0)
        are_places = self.columns is not None and all(re.fullmatch(r"column \d+", name) for name in self.names_)
        if not are_places and not (table.has_names and self._has_names()):
            self._check_n_columns(table)
            table = replace(table, names=self.names_)
        found = values_by_name(self.names_, table)
        n_rows = len(next(iter(found.values())))
        rows, entries, counts, n_numeric = [], [], [], 0
        for name, values in found.items():
            if name in self.categories_:
                places, sizes = self._one_hot(name, values)
                rows.append(places)
                entries.append(np.ones(len(places)))
                counts += sizes
                continue
            scaled = self._scaled(name, values, n_numeric)
            rows.append(np.flatnonzero(scaled))
            entries.append(scaled[rows[-1]])
            counts.append(len(rows[-1]))
            n_numeric += 1
        ends = np.cumsum([0, *counts])
        matrix = sp.csc_matrix((np.concatenate(entries), np.concatenate(rows), ends), shape=(n_rows, len(counts))).tocsr()
        return matrix if self.sparse_output else matrix.toarray()

    def _scaled(self, name: str, values: Any, number: int) -> NDArray[np.float64]:
        try:
            numbers = as_numbers(values)
        except CellError as error:
            shown = shortened(values[error.row])
            raise CellError(f"Column {name!r} must hold numbers, as it did in training. Got {shown}.", error.row) from None
        check_finite(name, numbers, values)
        mean, deviation = self.means_[number], self.deviations_[number]
        numbers = with_logarithm(numbers, self.medians_[number], self.spreads_[number])
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (numbers - mean) / deviation
            huge = ~np.isfinite(scaled)
            scaled[huge] = numbers[huge] / deviation - mean / deviation
        too_large = np.flatnonzero(np.isfinite(numbers) & ~np.isfinite(scaled))
        if len(too_large):
            row = int(too_large[0])
            shown = shortened(values[row])
            raise CellError(f"Column {name!r} must hold numbers of the size it held in training. Got {shown}.", row)
        return np.where(np.isfinite(numbers), scaled, 0.0)

    def _one_hot(self, name: str, values: Any) -> tuple[NDArray[np.intp], list[int]]:
        """Rows with a known category, category by category, and how many have each."""
        check_words(name, values)
        categories = self.categories_[name]
        place = {category: number for number, category in enumerate(categories)}
        numbers = np.array([-1 if is_missing(value) else place.get(str(value), -1) for value in values], dtype=np.intp)
        order = np.argsort(numbers, kind="stable")
        rows = order[np.searchsorted(numbers[order], 0) :]
        return rows, np.bincount(numbers[rows], minlength=len(categories)).tolist()

    @property
    def has_skewed_columns(self) -> bool:
        """Whether the logarithm of any column is taken."""
        return bool(np.any(np.isfinite(self.spreads_)))

    def _has_names(self) -> bool:
        return self.names_ != unnamed(len(self.names_))

    @property
    def n_features_in_(self) -> int:  # type: ignore[override]
        return len(self.names_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        if not self._has_names():
            raise AttributeError("feature_names_in_ is only available after fit with a table that has column names. Got an array.")
        return np.array(self.names_, dtype=object)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Get the names of the encoded columns.

        Parameters
        ----------
        input_features : array-like of str
            Names for the columns of an array. If columns had names in ``fit``, None or the same names.

        Returns
        -------
        ndarray of shape (n_features_out,)
            ``name`` for numeric columns, ``name=category`` for the others.
        """
        check_is_fitted(self)
        given = self.names_ if input_features is None else [str(name) for name in input_features]
        if len(given) != len(self.names_):
            raise ValueError(
                f"input_features should have length equal to number of features, {len(self.names_)}. Got {len(given)} names."
            )
        if self._has_names() and given != self.names_:
            raise ValueError("input_features is not equal to feature_names_in_.")
        named = [
            [f"{shown}={category}" for category in self.categories_[name]] if name in self.categories_ else [shown]
            for name, shown in zip(self.names_, given, strict=True)
        ]
        return np.array([name for names in named for name in names], dtype=object)

    def _from_values(self, values: dict[str, Any]) -> None:
        n_means = len(values["means_"])
        older = {"medians_": np.zeros(n_means), "spreads_": np.full(n_means, np.inf)}
        for name in self.fitted:
            setattr(self, name, (older | values)[name])
        names, categories = self.names_, self.categories_
        is_sound = isinstance(names, list) and all(isinstance(name, str) for name in names) and isinstance(categories, dict)
        is_sound = is_sound and all(isinstance(listed, list) for listed in categories.values())
        n_numbers = len([name for name in names if name not in categories])
        if not is_sound or not self.means_.shape == self.deviations_.shape == self.medians_.shape == self.spreads_.shape == (
            n_numbers,
        ):
            raise ValueError("the columns do not match their means or categories")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "names_")
