"""A fitted model as one file: no pickle, nothing executed on load, weights read where they lie.

    64 bytes    magic, format, check sum of all that follows, length of the header, length of the file
    header      JSON: the tree of the model, the table of arrays (type, shape, place), and what the caller wants remembered
    arrays      raw, little-endian, each starting at a multiple of 64 bytes

The tree names classes of a fixed list and holds plain values; arrays are referred to by number. Texts, such as a vocabulary,
are two arrays: the joined UTF-8, and where each one ends. Loading maps the file and makes views of it, so a million columns
cost what the check sum costs. The sum finds accidents, not intent.
"""

import json
import math
import mmap
import os
import struct
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankplane import estimators
from rankplane._core import Vocabulary
from rankplane.calibration import Curved, Multinomial
from rankplane.files import replacing
from rankplane.options import MODEL_NAMES
from rankplane.ordinal import LinearOrdinal
from rankplane.search import CSearchCV
from rankplane.tabular import ColumnEncoder
from rankplane.text import TextVectorizer

# A first byte that no text has, and a line end that a transfer as text would change.
MAGIC = b"\x93RPLANE\n"
FORMAT = 2  # 2: models with a kernel, sparse matrices
PREAMBLE = struct.Struct("<8sIIQQ")
ALIGNMENT = 64
STORED_TYPES = ("<f4", "<f8", "<i4", "<i8", "<u4", "<u8", "|u1", "|i1", "|b1", "<i2", "<u2", "<f2")
MODELS: dict[str, type[LinearOrdinal]] = {name: getattr(estimators, name) for name in MODEL_NAMES}
CALIBRATORS: dict[str, type[Multinomial]] = {"Multinomial": Multinomial, "Curved": Curved}
NO_COLUMN = 2**32 - 1


class Writer:
    """Gathers arrays while a model becomes a tree."""

    def __init__(self, compact: float | None) -> None:
        self.arrays: list[NDArray[Any]] = []
        self.compact = compact

    def array(self, values: NDArray[Any]) -> dict[str, int]:
        values = np.ascontiguousarray(values)
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        if values.dtype.str not in STORED_TYPES:
            raise ValueError(f"A model file holds arrays of numbers only. Got an array of {values.dtype}.")
        self.arrays.append(values)
        return {"array": len(self.arrays) - 1}

    def strings(self, texts: list[str]) -> dict[str, Any]:
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        joined = np.frombuffer(b"".join(parts), dtype=np.uint8)
        return {"strings": [self.array(joined)["array"], self.array(ends)["array"]]}

    def value(self, name: str, value: Any) -> Any:
        """A parameter or attribute: plain values, arrays, and lists, tuples, sets and mappings of them."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.ndarray):
            if value.dtype.kind in "OUT":
                items = value.tolist()
                if value.ndim == 1 and all(isinstance(item, str) for item in items):
                    return self.strings(items) | {"dtype": "O" if value.dtype.kind in "OT" else value.dtype.str}
                return {"objects": [self.value(name, item) for item in items]}
            return self.array(value)
        if sp.issparse(value):
            csr = value.tocsr()
            return {"csr": [self.array(part)["array"] for part in (csr.data, csr.indices, csr.indptr)] + [csr.shape[1]]}
        if isinstance(value, list):
            return [self.value(name, item) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self.value(name, item) for item in value]}
        if isinstance(value, set | frozenset):
            return {"set": [self.value(name, item) for item in sorted(value)]}
        if isinstance(value, dict):
            return {"dict": [[self.value(name, key), self.value(name, item)] for key, item in value.items()]}
        raise ValueError(f"{name} must be a plain value to be stored in a model file, which holds no code. Got {value!r}.")

    def node(self, model: Any) -> dict[str, Any]:
        if isinstance(model, CSearchCV):
            return self.node(model._best())
        if isinstance(model, Pipeline):
            return {"kind": "Pipeline", "steps": [[name, self.node(step)] for name, step in model.steps]}
        kind = type(model).__name__
        fitted: Callable[[Any], dict[str, Any]]
        if type(model) is TextVectorizer:
            fitted = self.vectorizer
        elif type(model) is ColumnEncoder:
            fitted = self.encoder
        elif MODELS.get(kind) is type(model):
            fitted = self.model
        else:
            known = ", ".join([*MODELS, "CSearchCV", "TextVectorizer", "ColumnEncoder", "Pipeline"])
            raise ValueError(f"A model file holds {known}. Got {kind}.")
        params = {name: self.value(name, value) for name, value in model.get_params(deep=False).items()}
        check_is_fitted(model)
        return {"kind": kind, "params": params, "fitted": fitted(model)}

    def vectorizer(self, vectorizer: TextVectorizer) -> dict[str, Any]:
        if not hasattr(vectorizer, "_vocabulary"):
            return {}
        terms, ends, levels = vectorizer._vocabulary.__getstate__()
        fitted: dict[str, Any] = {
            "terms": self.array(np.frombuffer(terms, dtype=np.uint8)),
            "ends": self.array(ends),
            "levels": [[self.array(part) for part in level] for level in levels],
            "is_joined": bool(vectorizer._is_joined),
            "n_documents": int(vectorizer.n_documents_),
        }
        if hasattr(vectorizer, "idf_"):
            fitted["idf"] = self.array(vectorizer.idf_)
        return fitted

    def encoder(self, encoder: ColumnEncoder) -> dict[str, Any]:
        return {name: self.value(name, getattr(encoder, name)) for name in encoder.fitted}

    def model(self, model: LinearOrdinal) -> dict[str, Any]:
        held = [name for name in model.fitted if hasattr(model, name)]
        fitted = {name: self.value(name, getattr(model, name)) for name in held if name not in ("coef_", "calibrator_")}
        if "coef_" in held:
            fitted["weights"] = self.weights(np.ascontiguousarray(model.coef_.T))
        elif self.compact is not None:
            raise ValueError(f"compact drops weights of columns, so it needs a linear model. This one has kernel={model.kernel!r}.")
        if "calibrator_" in held:
            kind = type(model.calibrator_).__name__
            if CALIBRATORS.get(kind) is not type(model.calibrator_):
                raise ValueError(f"A model file holds calibrators of the kinds {', '.join(CALIBRATORS)}. Got {kind}.")
            fitted["calibrator"] = {"kind": kind, "weights": self.array(model.calibrator_.weights)}
        return fitted

    def weights(self, weights: NDArray[Any]) -> dict[str, Any]:
        if self.compact is None:
            return self.array(weights)
        weights = compact_weights(weights, self.compact)
        kept = np.flatnonzero(weights.any(axis=1)).astype(np.int32)
        with np.errstate(over="ignore"):
            halves = weights.astype(np.float16)
        values = halves if np.array_equal(halves, weights) else weights
        dtype = {"dtype": weights.dtype.newbyteorder("<").str}
        if len(kept) * (values.itemsize * values.shape[1] + kept.itemsize) >= values.nbytes:
            # Their numbers would take more room than the dropped columns leave.
            return self.array(values) | dtype
        parts = {"columns": self.array(kept)["array"], "values": self.array(values[kept])["array"]}
        return {"sparse": parts, "n_columns": len(weights)} | dtype


def compact_weights(weights: NDArray[Any], bound: float) -> NDArray[Any]:
    """Weights that take less room: small columns are zero, the others rounded to half precision if the bound allows.

    A row x of length one and weights that differ by d change a score by |x . d| <= |d|. So columns go, least first, while what
    dropping and rounding change of every plane is no longer than the bound.
    """
    squares = weights.astype(np.float64) ** 2
    order = np.argsort(squares.max(axis=1), kind="stable")
    largest = float(np.finfo(np.float16).max)
    halves = np.clip(weights, -largest, largest).astype(np.float16).astype(weights.dtype)
    for rounded in (halves, weights):
        lost = (weights.astype(np.float64) - rounded) ** 2
        # By the number of dropped columns: what is lost by rounding all, and more for every dropped one.
        more = np.cumsum((squares - lost)[order], axis=0)
        change = np.sqrt(np.vstack([lost.sum(axis=0), lost.sum(axis=0) + more])).max(axis=1)
        if change[0] <= bound:
            break
    compacted = np.array(rounded)
    compacted[order[: int(np.searchsorted(change, bound, side="right")) - 1]] = 0
    return compacted


def compact_model(model: LinearOrdinal, bound: float) -> int:
    """Give a fitted model the weights that its compact file will hold; returns how many columns were dropped."""
    model.coef_ = compact_weights(np.ascontiguousarray(model.coef_.T), bound).T
    return int(np.sum(~model.coef_.any(axis=0)))


def save_model(
    model: Any, path: str | os.PathLike[str], *, compact: float | None = None, metadata: dict[str, Any] | None = None
) -> None:
    """Write a fitted model to one file, whole or not at all.

    Parameters
    ----------
    model : estimator of this package, TextVectorizer, or Pipeline of them
        Of a CSearchCV, the best estimator is kept. Parameters must be plain values: a callable tokenizer or stemmer, or a random
        generator, is refused.
    path : str or path
        By custom ending in ``.rankplane``.
    compact : float, optional
        Store weights in half precision and drop small ones, as long as no plane score of any row of length one (as TextVectorizer
        makes them) changes by more than this. 0.02, a fiftieth of the margin, does for texts.
    metadata : dict of plain values, optional
        What else to remember, such as metrics; `read_metadata` returns it with the version and the date.
    """
    if compact is not None and (isinstance(compact, bool) or not isinstance(compact, int | float) or not 0 <= compact < math.inf):
        raise ValueError(f"compact must be None or a number from 0 up. Got {compact!r}.")
    writer = Writer(None if compact is None else float(compact))
    tree = writer.node(model)
    remembered = {"version": version("rankplane"), "date": datetime.now(UTC).isoformat(timespec="seconds")} | (metadata or {})
    table, place = [], 0
    for array in writer.arrays:
        table.append({"dtype": array.dtype.str, "shape": list(array.shape), "offset": place})
        place += padded(array.nbytes)
    header = {"model": tree, "arrays": table, "metadata": remembered, "compact": compact}
    try:
        text = json.dumps(header, allow_nan=False, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata must hold plain finite values: {error}.") from None
    text += b" " * (padded(len(text)) - len(text))
    parts = [memoryview(text)]
    for array in writer.arrays:
        parts += [array.reshape(-1).view(np.uint8).data, memoryview(bytes(padded(array.nbytes) - array.nbytes))]
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    with replacing(path) as file:
        file.write(PREAMBLE.pack(MAGIC, FORMAT, check, len(text), ALIGNMENT + len(text) + place).ljust(ALIGNMENT, b"\0"))
        for part in parts:
            file.write(part)


def padded(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save_model` wrote. Its large arrays are read-only views of the mapped file.

    A file that is truncated, damaged, foreign or of a newer format is refused with a ``ValueError`` that names it.
    """
    return open_model(path)[0]


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file remembers: version, date, and what the caller of `save_model` added."""
    return dict(map_file(path)[0]["metadata"])


def open_model(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """The model and its metadata."""
    header, data = map_file(path)
    try:
        return Reader(header["arrays"], data).node(header["model"]), dict(header["metadata"])
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError, MemoryError) as error:
        raise ValueError(f"{os.fspath(path)} is damaged or was written by another version of rankplane: {error}.") from None


def map_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], NDArray[np.uint8]]:
    """The header and the bytes after it, once the file has proved to be whole."""
    name = os.fspath(path)
    with open(path, "rb") as file:
        start = file.read(ALIGNMENT)
        length = os.fstat(file.fileno()).st_size
        if start[: len(MAGIC)] != MAGIC[: len(start)] or not start:
            raise ValueError(f"{name} is not a model file of rankplane.")
        if len(start) < ALIGNMENT:
            raise ValueError(f"{name} is truncated: it has {length} bytes, fewer than its preamble.")
        _, file_format, check, n_header, n_bytes = PREAMBLE.unpack_from(start)
        if file_format > FORMAT:
            raise ValueError(
                f"{name} has format {file_format}, newer than format {FORMAT} that this version reads: update rankplane."
            )
        if length < n_bytes:
            raise ValueError(f"{name} is truncated: it has {length} bytes of {n_bytes}.")
        if length != n_bytes or n_header > length - ALIGNMENT:
            raise ValueError(f"{name} is damaged: its length is not what it says.")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    view = memoryview(mapped)[ALIGNMENT:]
    if zlib.crc32(view) != check:
        raise ValueError(f"{name} is damaged: its check sum does not match.")
    try:
        header = json.loads(bytes(view[:n_header]).decode("utf-8", "surrogatepass"))
        if not {"model", "arrays", "metadata"} <= header.keys():
            raise ValueError
    except (ValueError, AttributeError, RecursionError):
        raise ValueError(f"{name} is damaged: its header cannot be read.") from None
    return header, np.frombuffer(view[n_header:], dtype=np.uint8)


class Reader:
    """Makes a model of its tree."""

    def __init__(self, table: list[dict[str, Any]], data: NDArray[np.uint8]) -> None:
        self.table = table
        self.data = data

    def array(self, number: Any) -> NDArray[Any]:
        entry = self.table[number["array"] if isinstance(number, dict) else number]
        if entry["dtype"] not in STORED_TYPES:
            raise ValueError(f"unknown type {entry['dtype']}")
        dtype = np.dtype(entry["dtype"])
        shape = tuple(int(n) for n in entry["shape"])
        offset, n_bytes = int(entry["offset"]), dtype.itemsize * math.prod(shape)
        if min((*shape, 0)) < 0 or not 0 <= offset <= offset + n_bytes <= len(self.data):
            raise ValueError("an array lies outside of the file")
        return np.asarray(self.data[offset : offset + n_bytes].view(dtype).reshape(shape))

    def strings(self, numbers: list[int]) -> list[str]:
        joined, ends = bytes(self.array(numbers[0])), self.array(numbers[1]).tolist()
        starts = [0, *ends[:-1]]
        return [joined[start:end].decode("utf-8", "surrogatepass") for start, end in zip(starts, ends, strict=True)]

    def value(self, stored: Any) -> Any:
        if isinstance(stored, list):
            return [self.value(item) for item in stored]
        if not isinstance(stored, dict):
            return stored
        if "strings" in stored:
            return np.array(self.strings(stored["strings"]), dtype=stored["dtype"])
        if "array" in stored:
            return self.array(stored)
        readers: dict[str, Callable[[Any], Any]] = {
            "float": float,
            "csr": self.csr,
            "tuple": lambda items: tuple(self.value(item) for item in items),
            "set": lambda items: {self.value(item) for item in items},
            "dict": lambda items: {self.value(key): self.value(item) for key, item in items},
            "objects": lambda items: np.array([self.value(item) for item in items], dtype=object),
        }
        [(kind, content)] = stored.items()
        return readers[kind](content)

    def csr(self, stored: list[int]) -> sp.csr_matrix:
        data, indices, indptr = (self.array(number) for number in stored[:3])
        shape = (len(indptr) - 1, int(stored[3]))
        is_whole = len(indptr) > 0 and indptr[0] == 0 and indptr[-1] == len(indices) == len(data) and np.all(np.diff(indptr) >= 0)
        # The core indexes by these without looking.
        if not is_whole or (len(indices) and not (indices.min() >= 0 and indices.max() < shape[1])):
            raise ValueError("a sparse matrix has entries outside of its columns")
        return sp.csr_matrix((data, indices, indptr), shape=shape)

    def node(self, node: dict[str, Any]) -> Any:
        kind = node["kind"]
        if kind == "Pipeline":
            return Pipeline([(name, self.node(step)) for name, step in node["steps"]])
        params = {name: self.value(value) for name, value in node["params"].items()}
        fitted = node["fitted"]
        if kind == "TextVectorizer":
            return self.vectorizer(TextVectorizer(**params), fitted)
        if kind == "ColumnEncoder":
            encoder = ColumnEncoder(**params)
            for name in encoder.fitted:
                setattr(encoder, name, self.value(fitted[name]))
            return encoder
        return self.model(MODELS[kind](**params), fitted)

    def vectorizer(self, vectorizer: TextVectorizer, fitted: dict[str, Any]) -> TextVectorizer:
        if not fitted:
            return vectorizer
        levels = [(self.array(keys), self.array(counts), self.array(columns)) for keys, counts, columns in fitted["levels"]]
        columns = np.concatenate([level[2] for level in levels])
        columns = columns[columns != NO_COLUMN]
        # The core indexes by these without looking.
        if len(columns) and not (columns.max() < len(columns) and np.all(np.bincount(columns) == 1)):
            raise ValueError("the columns of the vocabulary are not numbered one by one")
        vocabulary = Vocabulary.__new__(Vocabulary)
        vocabulary.__setstate__((bytes(self.array(fitted["terms"])), self.array(fitted["ends"]), levels))
        vectorizer._vocabulary = vocabulary
        vectorizer._column_of = None
        vectorizer._is_joined = bool(fitted["is_joined"])
        vectorizer.n_documents_ = int(fitted["n_documents"])
        if "idf" in fitted:
            vectorizer.idf_ = self.array(fitted["idf"])
            if vectorizer.idf_.shape != columns.shape:
                raise ValueError("the vocabulary and its frequencies do not match")
        return vectorizer

    def model(self, model: LinearOrdinal, fitted: dict[str, Any]) -> LinearOrdinal:
        for name, stored in fitted.items():
            if name in model.fitted:
                setattr(model, name, self.value(stored))
        if "weights" in fitted:
            model.coef_ = self.weights(fitted["weights"]).T
        if "calibrator" in fitted:
            stored = fitted["calibrator"]
            setattr(model, "calibrator_", CALIBRATORS[stored["kind"]](self.array(stored["weights"])))  # noqa: B010
        needed = ["classes_", "intercept_", "n_features_in_", *(["calibrator_", "conformity_"] if model.probability else [])]
        missing = next((name for name in needed if not hasattr(model, name)), None)
        if missing:
            raise ValueError(f"{missing} is missing")
        columns = model.coef_ if "weights" in fitted else model.support_vectors_
        if columns.ndim != 2 or columns.shape[1] != model.n_features_in_:
            raise ValueError("the weights do not match the number of columns")
        if "weights" not in fitted:
            n_rows = len(model.support_) if model.kernel == "precomputed" else columns.shape[0]
            if model.dual_coef_.ndim != 2 or model.dual_coef_.shape[1] != n_rows:
                raise ValueError("the support rows do not match their coefficients")
        return model

    def weights(self, stored: dict[str, Any]) -> NDArray[Any]:
        dtype = np.dtype(stored.get("dtype", "<f8"))
        if dtype.kind != "f":
            raise ValueError("weights are not numbers")
        if "sparse" not in stored:
            weights = self.array(stored)
            return weights.astype(dtype) if "dtype" in stored else weights
        columns, values = self.array(stored["sparse"]["columns"]), self.array(stored["sparse"]["values"])
        weights = np.zeros((int(stored["n_columns"]), values.shape[1]), dtype=dtype if "dtype" in stored else values.dtype)
        weights[columns] = values
        return weights
