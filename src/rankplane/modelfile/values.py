"""Values of parameters and fitted attributes as JSON, with their arrays stored separately.

Arrays are referred to by number. Lists of strings, such as a vocabulary, are two arrays: the joined UTF-8, and the ends of the
strings.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankplane.modelfile.container import STORED_TYPES


class ValueWriter(ABC):
    """Turns values into JSON, and collects their arrays."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []

    @abstractmethod
    def node(self, model: Any) -> dict[str, Any]:
        """The tree of an estimator."""

    def array(self, values: NDArray[Any]) -> dict[str, Any]:
        values = np.ascontiguousarray(values).reshape(values.shape)
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        if values.dtype.str not in STORED_TYPES:
            raise ValueError(f"A model file holds arrays of numbers only. Got an array of {values.dtype}.")
        self.arrays.append(values)
        return {"array": len(self.arrays) - 1}

    def strings(self, texts: Sequence[str]) -> dict[str, Any]:
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
        joined = np.frombuffer(b"".join(parts), dtype=np.uint8)
        return {"strings": [self.array(joined)["array"], self.array(ends)["array"]]}

    def value(self, name: str, value: Any) -> Any:
        """A parameter or attribute: plain values, arrays, estimators, and lists, tuples, sets and mappings of them."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
            return np.dtype(value).name
        if isinstance(value, np.ndarray):
            return self.objects(name, value) if value.dtype.kind in "OUT" else self.array(value)
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
        if isinstance(value, slice):
            return {"slice": [self.value(name, end) for end in (value.start, value.stop, value.step)]}
        if isinstance(value, BaseEstimator):
            return {"estimator": self.node(value)}
        raise ValueError(f"{name} must be a plain value to be stored in a model file, which holds no code. Got {value!r}.")

    def objects(self, name: str, values: NDArray[Any]) -> dict[str, Any]:
        items = values.ravel().tolist()
        if values.ndim == 1 and all(isinstance(item, str) for item in items):
            return self.strings(items) | {"dtype": "O" if values.dtype.kind in "OT" else values.dtype.str}
        return {"objects": [self.value(name, item) for item in items], "shape": list(values.shape)}


class ValueReader(ABC):
    """Turns JSON and arrays into values."""

    def __init__(self, arrays: list[NDArray[Any]]) -> None:
        self.arrays: list[NDArray[Any] | None] = list(arrays)

    @abstractmethod
    def node(self, stored: Any) -> Any:
        """The estimator of a tree."""

    def array(self, stored: Any) -> NDArray[Any]:
        """An array, to be used once only: otherwise a small file could need any amount of memory by repeating a large one."""
        number = stored["array"] if isinstance(stored, dict) else stored
        found = self.arrays[number]
        if found is None:
            raise ValueError(f"array {number} is used twice")
        self.arrays[number] = None
        return found

    def strings(self, numbers: list[int]) -> list[str]:
        joined, ends = bytes(self.array(numbers[0])), self.array(numbers[1])
        starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        if ends.dtype.kind not in "iu" or ends.ndim != 1 or np.any(ends < starts) or (len(ends) and ends[-1] != len(joined)):
            raise ValueError("texts do not end where they say")
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        return [joined[start:end].decode("utf-8", "surrogatepass") for start, end in pairs]

    def value(self, stored: Any) -> Any:
        if isinstance(stored, list):
            return [self.value(item) for item in stored]
        if not isinstance(stored, dict):
            return stored
        if "strings" in stored:
            # The width is computed, since that in a file could be anything.
            return np.array(self.strings(stored["strings"]), dtype=object if stored["dtype"] == "O" else np.str_)
        if "objects" in stored:
            return self.objects(stored)
        readers: dict[str, Callable[[Any], Any]] = {
            "array": self.array,
            "float": float,
            "csr": self.csr,
            "tuple": lambda items: tuple(self.value(item) for item in items),
            "set": lambda items: {self.value(item) for item in items},
            "dict": lambda items: {self.value(key): self.value(item) for key, item in items},
            "slice": lambda ends: slice(*(self.value(end) for end in ends)),
            "estimator": self.node,
        }
        [(kind, content)] = stored.items()
        return readers[kind](content)

    def objects(self, stored: dict[str, Any]) -> NDArray[np.object_]:
        items = stored["objects"]
        found = np.empty(len(items), dtype=object)
        for place, item in enumerate(items):
            found[place] = self.value(item)
        return found.reshape(stored.get("shape", len(items)))

    def csr(self, stored: list[int]) -> sp.csr_matrix:
        data, indices, indptr = (self.array(number) for number in stored[:3])
        shape = (len(indptr) - 1, int(stored[3]))
        is_whole = data.ndim == indices.ndim == indptr.ndim == 1 and indices.dtype.kind == indptr.dtype.kind == "i"
        is_whole = is_whole and len(indptr) > 0 and indptr[0] == 0 and indptr[-1] == len(indices) == len(data)
        # Compiled code indexes by these without checks.
        if not (is_whole and np.all(indptr[1:] >= indptr[:-1])) or (
            len(indices) and not 0 <= indices.min() <= indices.max() < shape[1]
        ):
            raise ValueError("a sparse matrix has entries outside of its columns")
        return sp.csr_matrix((data, indices, indptr), shape=shape)
