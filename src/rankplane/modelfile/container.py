"""The bytes of a model file: a preamble, a header and arrays, written atomically and checked when read.

    64 bytes    magic, format, checksum of all that follows, length of the header, length of the file
    header      JSON: the tree of the model, the list of arrays (type, shape, offset), and metadata of the caller
    arrays      raw, little-endian, each starting at a multiple of 64 bytes, in the order of the list, without gaps

A file is read into memory, not mapped: it may be overwritten, truncated or deleted afterwards, and a process with a mapping of a
truncated file would crash at its next prediction. ARCHITECTURE.md has the cost in time and memory. The checksum detects accidental
damage only.
"""

import json
import math
import os
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.files import is_special, replacing

# Starts with a byte that is not text, and ends with a line end, which a transfer in text mode would change.
MAGIC = b"\x93RPLANE\n"
FORMAT = 3  # 2: models with a kernel, sparse matrices; 3: classes of scikit-learn
PREAMBLE = struct.Struct("<8sIIQQ")
ALIGNMENT = 64
STORED_TYPES = ("<f4", "<f8", "<i4", "<i8", "<u4", "<u8", "|u1", "|i1", "|b1", "<i2", "<u2", "<f2")
CHUNK = 2**22


def check_path(path: Any) -> str:
    """Refuse numbers, which ``open`` would take for file descriptors."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise TypeError(f"path must be a str or a path. Got {path!r}.")
    return name


def padded(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


def write_file(path: str, content: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
    """Write ``content`` and the list of arrays as the header, and the arrays."""
    listed, place = [], 0
    for array in arrays:
        listed.append({"dtype": array.dtype.str, "shape": list(array.shape), "offset": place})
        place += padded(array.nbytes)
    text = json.dumps(content | {"arrays": listed}, allow_nan=False, ensure_ascii=False).encode("utf-8", "surrogatepass")
    text += b" " * (padded(len(text)) - len(text))
    parts = [memoryview(text)]
    for array in arrays:
        parts += [array.reshape(-1).view(np.uint8).data, memoryview(bytes(padded(array.nbytes) - array.nbytes))]
    check = 0
    for part in parts:
        check = zlib.crc32(part, check)
    with replacing(path) as file:
        file.write(PREAMBLE.pack(MAGIC, FORMAT, check, len(text), ALIGNMENT + len(text) + place).ljust(ALIGNMENT, b"\0"))
        for part in parts:
            file.write(part)


def read_file(path: Any) -> tuple[dict[str, Any], list[NDArray[Any]]]:
    """Check that the file is complete; returns its header and its arrays, read-only."""
    name = check_path(path)
    if is_special(name):
        raise ValueError(f"{name} is a device or a pipe, but a model is read from a file.")
    with open(name, "rb", buffering=0) as file:
        before = os.fstat(file.fileno())
        n_header, check, body = read_preamble(name, file, before.st_size)
        n_read, found = read_body(file, body)
        after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns) or n_read < len(body):
        raise ValueError(f"{name} changed while it was read: write a new file beside it and rename that, as save_model does.")
    if found != check:
        raise ValueError(f"{name} is damaged: its checksum does not match.")
    body.flags.writeable = False
    try:
        header = json.loads(bytes(body[:n_header]).decode("utf-8", "surrogatepass"), parse_constant=refuse_constant)
        if not {"model", "arrays", "metadata"} <= header.keys() or not isinstance(header["metadata"], dict):
            raise ValueError
        return header, views_of_arrays(header["arrays"], body[n_header:])
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, MemoryError):
        raise ValueError(f"{name} is damaged: its header cannot be read.") from None


def refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def read_preamble(name: str, file: Any, length: int) -> tuple[int, int, NDArray[np.uint8]]:
    """Length of the header, checksum, and memory for the rest of the file."""
    start = file.read(ALIGNMENT)
    if start[: len(MAGIC)] != MAGIC[: len(start)] or not start:
        raise ValueError(f"{name} is not a model file of rankplane.")
    if len(start) < ALIGNMENT:
        raise ValueError(f"{name} is truncated: it has {length} bytes, fewer than its preamble.")
    _, file_format, check, n_header, n_bytes = PREAMBLE.unpack_from(start)
    if file_format > FORMAT:
        raise ValueError(f"{name} has format {file_format}, newer than format {FORMAT} that this version reads: update rankplane.")
    if length < n_bytes:
        raise ValueError(f"{name} is truncated: it has {length} bytes of {n_bytes}.")
    if length != n_bytes or n_header > length - ALIGNMENT or n_header % ALIGNMENT:
        raise ValueError(f"{name} is damaged: its length is not what it says.")
    try:
        # Arrays are aligned to 64 bytes in the file, and so in memory. numpy asks for huge pages.
        room = np.empty(n_bytes, dtype=np.uint8)
    except MemoryError:
        raise MemoryError(f"{name} has {n_bytes} bytes, more than there is memory for.") from None
    first = -room.ctypes.data % ALIGNMENT
    return n_header, check, room[first : first + n_bytes - ALIGNMENT]


def read_body(file: Any, body: NDArray[np.uint8]) -> tuple[int, int]:
    """Fill the array; returns the number of bytes read and their checksum."""
    view, done, check = body.data, 0, 0
    while n_read := file.readinto(view[done : done + CHUNK]):
        check = zlib.crc32(view[done : done + n_read], check)
        done += n_read
    return done, check


def views_of_arrays(entries: list[dict[str, Any]], data: NDArray[np.uint8]) -> list[NDArray[Any]]:
    """Views of the arrays, which must be adjacent, so that their total size is at most that of the file."""
    arrays, place = [], 0
    for entry in entries:
        if entry["dtype"] not in STORED_TYPES:
            raise ValueError(f"unknown type {entry['dtype']}")
        dtype, shape = np.dtype(entry["dtype"]), entry["shape"]
        if not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError("a shape is not made of counts")
        n_bytes = dtype.itemsize * math.prod(shape)
        if entry["offset"] != place or place + n_bytes > len(data):
            raise ValueError("an array lies outside of its place")
        arrays.append(np.asarray(data[place : place + n_bytes].view(dtype).reshape(shape)))
        place += padded(n_bytes)
    return arrays
