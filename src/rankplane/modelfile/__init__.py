"""A fitted model as one file: no pickle, nothing executed on load.

``container`` has the bytes and their checks, ``values`` plain values and arrays, ``codecs`` the models, ``sklearn_codecs`` the
supported classes of scikit-learn, ``compact`` smaller weights.
"""

import json
import math
import os
import textwrap
import warnings
from datetime import UTC, datetime
from typing import Any, Protocol

import numpy as np
import sklearn
from numpy.typing import NDArray

from rankplane.docstrings import documented
from rankplane.modelfile.codecs import MODELS, Reader, Writer
from rankplane.modelfile.compact import compact_model, compact_weights
from rankplane.modelfile.container import FORMAT, check_path, read_file, write_file
from rankplane.versions import this_version

__all__ = [
    "FORMAT",
    "MODELS",
    "Model",
    "compact_model",
    "compact_weights",
    "load_model",
    "open_model",
    "read_metadata",
    "save_model",
    "write_model",
]


class Model(Protocol):
    """The type of a loaded model or pipeline, for type checkers. Methods that only some have, such as ``explain``, are Any."""

    @property
    def classes_(self) -> NDArray[Any]: ...

    def predict(self, X: Any) -> NDArray[Any]: ...

    def predict_proba(self, X: Any) -> NDArray[np.float64]: ...

    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...

    def __getitem__(self, step: Any, /) -> Any: ...

    def __getattr__(self, name: str, /) -> Any: ...


@documented()
def save_model(
    model: Any, path: str | os.PathLike[str], *, compact: float | None = None, metadata: dict[str, Any] | None = None
) -> None:
    """Save a fitted model to one file.

    The file contains data only: nothing is executed when it is loaded.

    Parameters
    ----------
    model : object
        A model of this package, a TextVectorizer, a ColumnEncoder, or a scikit-learn Pipeline of these. Of a search, such as
        CSearchCV or GridSearchCV, the best estimator is saved. Pipelines may also contain scalers, encoders, imputers, text
        vectorizers, ColumnTransformer, FeatureUnion and some more classes of scikit-learn; any other is refused by name.
        Parameters must be plain values: callables and random generators are refused.
    path : str or os.PathLike
        File to write, by convention ending in ``.rankplane``. An existing file is replaced in one step, so that it can be in use
        meanwhile, and is kept if writing fails.
    compact : float
        Make the file smaller by storing weights in half precision and dropping small ones, such that no plane score of a
        sample of unit norm (as TextVectorizer makes them) changes by more than this. 0.02, a fiftieth of the margin, suits texts.
        If None, weights are stored as they are.
    metadata : dict
        Plain values to store with the model, such as metrics.

    See Also
    --------
    load_model : Load the model.
    read_metadata : Read the metadata only.

    Examples
    --------
    >>> from rankplane import NPSVOR, load_model, save_model
    >>> model = NPSVOR(C=10).fit([[1.0], [2.0], [3.0]], [1, 2, 3])
    >>> save_model(model, "stars.rankplane")
    >>> load_model("stars.rankplane").predict([[3.0]])
    array([3])
    """
    write_model(model, path, compact=compact, metadata=metadata)


def write_model(
    model: Any, path: str | os.PathLike[str], *, compact: float | None = None, metadata: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Like `save_model`, but returns the metadata in the file."""
    name = check_path(path)
    if compact is not None and (isinstance(compact, bool) or not isinstance(compact, int | float) or not 0 <= compact < math.inf):
        raise ValueError(f"compact must be None or a non-negative number. Got {compact!r}.")
    if metadata is not None and not isinstance(metadata, dict):
        raise ValueError(f"metadata must be None or a dict. Got {metadata!r}.")
    writer = Writer(None if compact is None else float(compact))
    tree = writer.node(model)
    remembered = {"version": this_version(), "date": datetime.now(UTC).isoformat(timespec="seconds")} | (metadata or {})
    try:
        json.dumps(remembered, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"metadata must hold plain finite values: {error}.") from None
    content = {"model": tree, "metadata": remembered, "compact": compact, "scikit-learn": sklearn.__version__}
    write_file(name, content, writer.arrays)
    return remembered


@documented()
def load_model(path: str | os.PathLike[str]) -> Model:
    """Load a model that ``save_model`` saved.

    Nothing in the file is executed. The file may be changed or removed afterwards.

    Parameters
    ----------
    path : str or os.PathLike
        File to read.

    Returns
    -------
    object
        The fitted model or pipeline. Its large arrays are read-only. Its attribute ``metadata_`` has what `read_metadata` returns.

    Raises
    ------
    ValueError
        If the file is truncated, damaged, not a model file, or of a newer format.

    Warns
    -----
    UserWarning
        If it contains classes of another minor version of scikit-learn.

    See Also
    --------
    save_model : Save a model.
    read_metadata : Read the metadata only.

    Examples
    --------
    >>> from rankplane import NPSVOR, load_model, save_model
    >>> save_model(NPSVOR().fit([[1.0], [2.0], [3.0]], [1, 2, 3]), "stars.rankplane")
    >>> load_model("stars.rankplane").classes_
    array([1, 2, 3])
    """
    model: Model
    model, metadata = open_model(path)
    model.metadata_ = metadata  # type: ignore[attr-defined]
    return model


@documented()
def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the metadata of a model file.

    Parameters
    ----------
    path : str or os.PathLike
        File to read.

    Returns
    -------
    dict
        The version of rankplane that wrote the file, the date, and what was passed to ``save_model`` as ``metadata``.

    See Also
    --------
    load_model : Load the model itself.

    Examples
    --------
    >>> from rankplane import NPSVOR, read_metadata, save_model
    >>> model = NPSVOR().fit([[1.0], [2.0], [3.0]], [1, 2, 3])
    >>> save_model(model, "stars.rankplane", metadata={"product": "toaster"})
    >>> read_metadata("stars.rankplane")["product"]
    'toaster'
    """
    return dict(read_file(path)[0]["metadata"])


def open_model(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """The model and its metadata."""

    def in_short(error: Exception) -> str:
        """A value from a file as short text on one line."""
        return textwrap.shorten(str(error), 200, placeholder=" ...").removesuffix(".") or type(error).__name__

    name = check_path(path)
    header, arrays = read_file(name)
    there, here = str(header.get("scikit-learn", sklearn.__version__)), sklearn.__version__
    is_other = there.split(".")[:2] != here.split(".")[:2]
    reader = Reader(arrays)
    versions = f"{name} was written with scikit-learn {there}, this is {here}"
    try:
        model = reader.node(header["model"])
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError, MemoryError) as error:
        if is_other and reader.foreign:
            raise ValueError(f"{versions}, which cannot read its {reader.foreign[-1]}: {in_short(error)}.") from None
        raise ValueError(f"{name} is damaged or was written by another version of rankplane: {in_short(error)}.") from None
    if is_other and reader.foreign:
        listed = ", ".join(dict.fromkeys(reader.foreign))
        warnings.warn(f"{versions}: its {listed} may give other results.", UserWarning, stacklevel=2)
    return model, dict(header["metadata"])
