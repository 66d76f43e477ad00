"""Rows as dicts, one by one, as programs and servers have them: what the first step of a model makes of their values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankplane.docstrings import documented
from rankplane.inputs.batches import Batch
from rankplane.inputs.reading import InputError, widened
from rankplane.inputs.schema import Inputs
from rankplane.tabular import CellError, as_number, is_number, shortened, unknown_column
from rankplane.training.model import TrainedModel
from rankplane.validation import check_choice

METHODS = ("predict", "predict_proba")
MAX_COLUMN = 2**31 - 1


def batch_of_rows(rows: Sequence[Mapping[Any, Any]], inputs: Inputs, source: str) -> Batch:
    """The rows as a batch with the columns of the model; other keys are ignored, like other columns of a file."""
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"{source}[{place}] must be a dict with a value for each column. Got {shortened(row)}.")
    places, form = list(range(len(rows))), "{source}[{line}]"
    if inputs.kind == "svmlight":
        return Batch({}, places, numbered_columns(rows, source), form=form)
    names = [*inputs.text, *inputs.columns]
    for place, row in enumerate(rows):
        for name in names:
            if name not in row:
                raise InputError(f"{source}[{place}] {unknown_column(name, map(str, row))}")
    return Batch({name: [row[name] for row in rows] for name in names}, places, form=form)


def numbered_columns(rows: Sequence[Mapping[Any, Any]], source: str) -> sp.csr_matrix:
    """A matrix of rows whose keys are column numbers, from 1, as in svmlight files."""
    ends, columns, values = [0], [], []
    for place, row in enumerate(rows):
        for key, value in row.items():
            number = int(key) if str(key).isdecimal() else 0
            if not 1 <= number <= MAX_COLUMN:
                raise InputError(f"{source}[{place}] must have column numbers as keys, from 1. Got {shortened(key)}.")
            if not is_number(value) or not np.isfinite(as_number(value)):
                raise InputError(f"{source}[{place}]: column {number} must hold a finite number. Got {shortened(value)}.")
            columns.append(number - 1)
            values.append(as_number(value))
        ends.append(len(columns))
    width = max(columns, default=0) + 1
    matrix = sp.csr_matrix((np.array(values), np.array(columns, dtype=np.int32), np.array(ends)), shape=(len(rows), width))
    matrix.sum_duplicates()
    return widened(matrix, width)


def features_of_rows(model: TrainedModel, rows: Sequence[Mapping[Any, Any]], source: str = "rows") -> Any:
    """What the first step of the model takes: texts joined as in training, columns, or a matrix."""
    return model.inputs.features(batch_of_rows(rows, model.inputs, source), source)


def transformed_rows(model: TrainedModel, features: Any, source: str = "rows") -> Any:
    """The matrix of the features. Errors in a row name its place."""
    try:
        return model.transform(features)
    except CellError as error:
        raise InputError(f"{source}[{error.row}]: {error}") from None


@documented()
def predict_rows(model: Any, rows: Sequence[Mapping[Any, Any]], *, method: str = "predict") -> NDArray[Any]:
    """Predict rows that are given as dicts.

    Columns of texts are joined as in training, other columns are encoded as in training, and keys that the model does not use are
    ignored. A key that it does use must be there; None is a missing value.

    Parameters
    ----------
    model : object
        A pipeline that ``load_model`` returned, of a file that says which columns the model takes, as ``rankplane train`` writes.
    rows : sequence of dict
        One dict per sample, from column names to values. For a model of svmlight files, from column numbers to values.
    method : str
        ``"predict"`` for ranks, ``"predict_proba"`` for the probability of each rank.

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_ranks)
        Predicted ranks, or probabilities with ranks in the order of ``classes_``.

    Raises
    ------
    ValueError
        If the model does not say which columns it takes, or if a row lacks one or has a value that does not fit.

    See Also
    --------
    load_model : Load a model.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from rankplane import NPSVOR, TextVectorizer, load_model, predict_rows, save_model
    >>> texts = ["Bad.\\nBroke at once.", "Good.\\nWorks as it should."] * 5
    >>> model = make_pipeline(TextVectorizer(), NPSVOR()).fit(texts, [1, 5] * 5)
    >>> columns = {"target": "stars", "text": ["title", "review"]}  # as rankplane train writes them
    >>> save_model(model, "stars.rankplane", metadata={"inputs": columns})
    >>> model = load_model("stars.rankplane")
    >>> predict_rows(model, [{"title": "Good", "review": "It works."}])
    array([5])
    """
    check_choice("method", method, METHODS)
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Sequence):
        raise TypeError(f"rows must be a list of dicts, one per sample. Got a {type(rows).__name__}.")
    trained = model if isinstance(model, TrainedModel) else TrainedModel.of_loaded(model)
    if not rows:
        return np.empty(0, trained.classes.dtype) if method == "predict" else np.empty((0, len(trained.classes)))
    X = transformed_rows(trained, features_of_rows(trained, rows))
    return trained.predict(X) if method == "predict" else trained.predict_proba(X)
