"""TableVectorizer: texts and columns of a table in one matrix.

The columns of the matrix are those of the texts, by `TextVectorizer`, and then those of everything else, by `ColumnEncoder`. Rows
of texts have length one. The other columns are multiplied by one number, so that their rows have the length ``column_scale`` on
average: otherwise twenty standardised numbers, whose rows have a length of more than four, would leave little to the words.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from rankplane import validation
from rankplane.docstrings import documented
from rankplane.spreading import Spread, check_spread, spread_column, spread_names, spread_of
from rankplane.tabular import (
    PARAMETERS,
    ColumnEncoder,
    Columns,
    NamedColumns,
    TableTransformer,
    named_columns,
    unknown_column,
    values_by_name,
)
from rankplane.text import TextVectorizer


@documented(PARAMETERS)
class TableVectorizer(TableTransformer, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Turn a table of texts, numbers, categories, dates and lists of numbers into one sparse matrix.

    Texts become TF-IDF features, as by :class:`TextVectorizer`; several columns of texts are joined by line breaks. Numbers and
    categories are encoded as by :class:`ColumnEncoder`. A date becomes its number of days and, one-hot encoded, its month, weekday
    and hour. A list of numbers, such as an embedding, becomes one column per place; its columns have a mean square length of one
    together, like a single number or category. Then all columns that are not of texts are scaled together.

    Parameters
    ----------
    text : str or list of str
        Names of the columns of texts. An empty list if there are none.
    columns : list of str
        Names of the other columns to use. If None, all are used.
    vectorizer : TextVectorizer
        Encodes the texts. If None, a ``TextVectorizer()``.
    column_scale : float
        Mean length of the part of a row that is not of texts; that of the texts is 1. Larger values regularise columns less, and so
        give them more weight compared with words. Not used without texts.

    Attributes
    ----------
    text_names_ : list of str
        Names of the columns of texts.
    names_ : list of str
        Names of the other columns in use.
    spread_ : dict of str to list of str or int
        What columns of dates and of lists of numbers became: the parts of a date beside its days, or the number of places.
    vectorizer_ : TextVectorizer or None
        The fitted vectorizer. None without texts.
    encoder_ : ColumnEncoder or None
        The fitted encoder of all other columns. None if there are none.
    factors_ : ndarray of shape (n_encoded,)
        What each column of ``encoder_`` is multiplied by.
    n_features_in_ : int
        Number of columns in use, texts included.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns in use, texts first.

    See Also
    --------
    TextVectorizer : Encode texts.
    ColumnEncoder : Encode numbers and categories.

    Examples
    --------
    >>> from rankplane import TableVectorizer, TextVectorizer
    >>> reviews = {"review": ["Works well", "Broke at once"], "price": [20, 10], "shop": ["A", "B"]}
    >>> vectorizer = TableVectorizer(text="review", vectorizer=TextVectorizer(min_df=1, ngram_range=(1, 1)))
    >>> vectorizer.fit(reviews).get_feature_names_out().tolist()
    ['at', 'broke', 'once', 'well', 'works', '[price]', '[shop=A]', '[shop=B]']
    """

    fitted: ClassVar[tuple[str, ...]] = ("text_names_", "names_", "spread_", "vectorizer_", "encoder_", "factors_")

    def __init__(
        self,
        *,
        text: str | Sequence[str],
        columns: Sequence[str] | None = None,
        vectorizer: TextVectorizer | None = None,
        column_scale: float = 1.0,
    ) -> None:
        self.text = text
        self.columns = columns
        self.vectorizer = vectorizer
        self.column_scale = column_scale

    def fit(self, X: Columns, y: Any = None) -> Self:
        """Learn the vocabulary of the texts, and the means, deviations and categories of the other columns.

        Returns
        -------
        object
            The fitted vectorizer.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Columns, y: Any = None) -> sp.csr_matrix:
        """Learn as ``fit`` does, and transform the table.

        Returns
        -------
        csr_matrix of shape (n_samples, n_features_out)
            The encoded table.
        """
        validation.check_positive("column_scale", self.column_scale)
        texts, table = text_names(self.text), named_columns(X, min_rows=1)
        self.text_names_ = texts
        self.names_ = [name for name in table.names if name not in texts] if self.columns is None else list(map(str, self.columns))
        if (both := next((name for name in self.names_ if name in texts), None)) is not None:
            raise ValueError(f'columns must not name "{both}", which text names.')
        if not texts and not self.names_:
            raise ValueError("X must have at least one column.")
        self.vectorizer_, self.encoder_ = None, None
        self.spread_: dict[str, Spread] = {}
        self.factors_ = np.empty(0)
        words = None
        if texts:
            self.vectorizer_ = TextVectorizer() if self.vectorizer is None else clone(self.vectorizer)
            words = self.vectorizer_.fit_transform(joined_texts(texts, table))
        encoded = None
        if self.names_:
            found = values_by_name(self.names_, with_lists(table))
            self.spread_ = {name: spread for name, values in found.items() if (spread := spread_of(values)) is not None}
            self.encoder_ = ColumnEncoder()
            encoded = self.encoder_.fit_transform(self._spread(found))
            self.factors_ = self._factors(encoded)
        return self._beside(words, encoded)

    def transform(self, X: Columns) -> sp.csr_matrix:
        """Encode a table.

        Returns
        -------
        csr_matrix of shape (n_samples, n_features_out)
            The encoded table.
        """
        check_is_fitted(self)
        table = named_columns(X, min_rows=0)
        if self.columns is None and not table.has_names:
            self._check_n_columns(table)
        words = None if self.vectorizer_ is None else self.vectorizer_.transform(joined_texts(self.text_names_, table))
        encoded = None
        if self.encoder_ is not None:
            encoded = self.encoder_.transform(self._spread(values_by_name(self.names_, with_lists(table))))
        return self._beside(words, encoded)

    def _spread(self, found: dict[str, Any]) -> dict[str, Any]:
        """The columns for the encoder."""
        columns: dict[str, Any] = {}
        for name, values in found.items():
            parts = spread_column(name, values, self.spread_[name]) if name in self.spread_ else {name: values}
            for part, its_values in parts.items():
                if part in columns:
                    raise ValueError(f'X has a column "{part}", which is also a part of another column: rename it.')
                columns[part] = its_values
        return columns

    def _factors(self, encoded: sp.csr_matrix) -> NDArray[np.float64]:
        """What the encoded columns are multiplied by."""
        names = self.encoder_.get_feature_names_out().tolist()  # type: ignore[union-attr]
        of_list = {
            place: len(places)
            for name, spread in self.spread_.items()
            if isinstance(spread, int)
            for places in [spread_names(name, spread)]
            for place in places
        }
        factors = np.array([of_list.get(name, 1) for name in names], dtype=np.float64) ** -0.5
        if self.text_names_:
            squares = encoded.multiply(encoded).sum(axis=0)
            mean_square = float(np.asarray(squares).ravel() @ factors**2) / encoded.shape[0]
            factors *= self.column_scale / np.sqrt(mean_square) if mean_square > 0 else 1.0
        return factors

    def _beside(self, words: sp.csr_matrix | None, encoded: sp.csr_matrix | None) -> sp.csr_matrix:
        """Texts and columns in one matrix, in the type of the texts."""
        if encoded is None:
            return words
        columns = sp.csr_matrix((encoded.data * self.factors_[encoded.indices], encoded.indices, encoded.indptr), encoded.shape)
        if words is None:
            return columns
        if words.shape[0] != columns.shape[0]:
            raise ValueError(f"X must have columns of one length. Got {words.shape[0]} texts and {columns.shape[0]} other values.")
        return sp.hstack([words, columns.astype(words.dtype)], format="csr")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Get the names of the features: n-grams, and in square brackets what other columns became.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of shape (n_features_out,)
            Names such as ``good value``, ``[price]`` and ``[shop=A]``. Without texts, there are no brackets.
        """
        check_is_fitted(self)
        words = [] if self.vectorizer_ is None else self.vectorizer_.get_feature_names_out().tolist()
        columns = [] if self.encoder_ is None else self.encoder_.get_feature_names_out().tolist()
        return np.array([*words, *(map(bracketed, columns) if self.text_names_ else columns)], dtype=object)

    @property
    def n_features_in_(self) -> int:  # type: ignore[override]
        return len(self.text_names_) + len(self.names_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        return np.array([*self.text_names_, *self.names_], dtype=object)

    def _from_values(self, values: dict[str, Any]) -> None:
        for name in self.fitted:
            setattr(self, name, values[name])
        check_spread(self.spread_)
        texts, encoder = self.text_names_, self.encoder_
        parts = [part for name in self.names_ for part in spread_names(name, self.spread_.get(name, []))]
        is_sound = text_names(self.text) == texts and isinstance(self.vectorizer_, TextVectorizer) == bool(texts)
        is_sound = is_sound and isinstance(encoder, ColumnEncoder) == bool(self.names_) and self.spread_.keys() <= set(self.names_)
        if is_sound and encoder is not None:
            is_sound = encoder.names_ == parts and self.factors_.shape == encoder.get_feature_names_out().shape
        if not is_sound or not (self.text_names_ or self.names_):
            raise ValueError("the columns do not match the parts that encode them")
        if self.vectorizer_ is not None:
            self.vectorizer = clone(self.vectorizer_)  # not stored twice

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "factors_")


def text_names(given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"text must be the name of a column, or a list of different names. Got {given!r}.")
    return list(names)


def bracketed(name: str) -> str:
    """How a column is named beside words."""
    return f"[{name}]"


def with_lists(table: NamedColumns) -> NamedColumns:
    """The table with columns of arrays as lists of rows."""

    def column(place: int) -> Any:
        values = table.column(place)
        is_matrix = getattr(values, "ndim", 1) == 2 or str(getattr(values, "dtype", "")).startswith("Array(")
        return list(values) if is_matrix else values

    return replace(table, column=column)


def joined_texts(names: Sequence[str], table: NamedColumns) -> Any:
    """The texts of each row, those of several columns joined by line breaks."""
    places = {name: place for place, name in enumerate(table.names)}
    for name in names:
        if name not in places:
            raise ValueError(f"X {unknown_column(name, table.names)}")
    columns = [table.column(places[name]) for name in names]
    if len(columns) == 1:
        return columns[0]
    return ["\n".join("" if is_blank(part) else str(part) for part in parts) for parts in zip(*columns, strict=True)]


def is_blank(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
