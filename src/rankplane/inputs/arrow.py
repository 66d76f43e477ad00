"""Columns of texts from and to pyarrow, without a copy."""

import importlib
from typing import Any

import numpy as np

from rankplane.text.packed import Part, Texts


def is_installed(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def texts_of_arrow(column: Any) -> Texts:
    """An array of strings, or several."""
    parts = []
    for array in getattr(column, "chunks", [column]):
        _, places, letters = array.buffers()
        places = np.frombuffer(places, dtype=np.int64 if str(array.type) == "large_string" else np.int32)
        offsets = places[array.offset : array.offset + len(array) + 1].astype(np.int64)
        starts = offsets[:-1]
        if array.null_count:
            starts = np.where(array.is_valid().to_numpy(zero_copy_only=False), starts, -1)
        parts.append(Part(np.frombuffer(letters or b"", dtype=np.uint8), starts, offsets[1:]))
    return Texts(parts)


def arrow_of(texts: Texts) -> Any:
    """One array of strings; buffers are only copied where other texts lie between."""
    arrow = importlib.import_module("pyarrow")
    return arrow.concat_arrays([arrow.array([], arrow.large_string()), *(array_of(part, arrow) for part in texts.parts)])


def array_of(part: Part, arrow: Any) -> Any:
    is_missing = part.starts < 0
    if is_missing.any() or not np.array_equal(part.starts[1:], part.ends[:-1]):
        part = part.packed()
    places = np.append(part.ends[:1] - part.sizes[:1], part.ends)
    bits = arrow.py_buffer(np.packbits(~is_missing, bitorder="little")) if is_missing.any() else None
    return arrow.LargeStringArray.from_buffers(len(part), arrow.py_buffer(places), arrow.py_buffer(part.buffer), bits)
