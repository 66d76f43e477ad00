"""A fitted model as one file: no pickle, nothing executed on load.

``container`` has the bytes and their checks, ``values`` plain values and arrays, ``codecs`` the models, ``sklearn_codecs`` the
classes of scikit-learn that may be among them, ``compact`` weights that take less room.
"""

import json
import math
import os
import textwrap
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
import sklearn
from numpy.typing import NDArray

from rankplane.modelfile.codecs import MODELS, Reader, Writer
from rankplane.modelfile.compact import compact_model, compact_weights
from rankplane.modelfile.container import FORMAT, check_path, read_file, write_file

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
    """What `load_model` returns, for type checkers: a model or a pipeline. What only some have, such as ``explain``, is Any."""

    @property
    def classes_(self) -> NDArray[Any]: ...

    def predict(self, X: Any) -> NDArray[Any]: ...

    def predict_proba(self, X: Any) -> NDArray[np.float64]: ...

    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...

    def __getitem__(self, step: Any, /) -> Any: ...

    def __getattr__(self, name: str, /) -> Any: ...


def save_model(
    model: Any, path: str | os.PathLike[str], *, compact: float | None = None, metadata: dict[str, Any] | None = None
) -> None:
    """Write a fitted model to one file, whole or not at all.

    Parameters
    ----------
    model : estimator of this package, TextVectorizer, ColumnEncoder, or Pipeline of them and of classes of scikit-learn
        Of a search, such as CSearchCV or GridSearchCV, the best estimator is kept. Of scikit-learn, scalers, encoders, imputers,
        text vectorizers, ColumnTransformer, FeatureUnion and some more are taken; any other is refused by its name. Parameters
        must be plain values: a callable tokenizer or stemmer, or a random generator, is refused.
    path : str or path
        By custom ending in ``.rankplane``. The new file takes the place of an old one in one step, so that it can be replaced while
        it is in use.
    compact : float, optional
        Store weights in half precision and drop small ones, as long as no plane score of any row of length one (as TextVectorizer
        makes them) changes by more than this. 0.02, a fiftieth of the margin, does for texts.
    metadata : dict of plain values, optional
        What else to remember, such as metrics; `read_metadata` returns it with the version and the date.
    """
    write_model(model, path, compact=compact, metadata=metadata)


def write_model(
    model: Any, path: str | os.PathLike[str], *, compact: float | None = None, metadata: dict[str, Any] | None = None
) -> dict[str, Any]:
    """`save_model` that returns what `read_metadata` would find in the file."""
    name = check_path(path)
    if compact is not None and (isinstance(compact, bool) or not isinstance(compact, int | float) or not 0 <= compact < math.inf):
        raise ValueError(f"compact must be None or a number from 0 up. Got {compact!r}.")
    if metadata is not None and not isinstance(metadata, dict):
        raise ValueError(f"metadata must be None or a dict. Got {metadata!r}.")
    writer = Writer(None if compact is None else float(compact))
    tree = writer.node(model)
    remembered = {"version": version("rankplane"), "date": datetime.now(UTC).isoformat(timespec="seconds")} | (metadata or {})
    try:
        json.dumps(remembered, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"metadata must hold plain finite values: {error}.") from None
    content = {"model": tree, "metadata": remembered, "compact": compact, "scikit-learn": sklearn.__version__}
    write_file(name, content, writer.arrays)
    return remembered


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model that `save_model` wrote. What happens to the file afterwards does not matter. Its large arrays are read-only.

    A file that is truncated, damaged, foreign or of a newer format is refused with a ``ValueError`` that names it. One that holds
    classes of another minor version of scikit-learn is read with a ``UserWarning``.
    """
    model: Model = open_model(path)[0]
    return model


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file remembers: version, date, and what the caller of `save_model` added."""
    return dict(read_file(path)[0]["metadata"])


def open_model(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """The model and its metadata."""

    def in_short(error: Exception) -> str:
        """On one line, whatever the file had in the place of a value."""
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
        warnings.warn(f"{versions}: its {listed} may answer differently.", UserWarning, stacklevel=2)
    return model, dict(header["metadata"])
