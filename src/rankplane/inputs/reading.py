"""Tables from files, batch by batch, so that a file may be larger than memory.

csv, tsv and json lines are read by the standard library: it needs nothing else installed, streams, and knows the line that a
complaint is about. Parquet needs pyarrow; .zst needs zstandard or Python 3.14.
"""

import importlib
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

import numpy as np
import scipy.sparse as sp

from rankplane.inputs.batches import MARK, Batch, InputError, Lines
from rankplane.inputs.delimited import PLAIN, Dialect, csv_batches, decoded_as
from rankplane.inputs.fingerprints import Fingerprint
from rankplane.inputs.packing import UNPACKERS, UNPACKING_ERRORS, UnpackError, no_text, packed_again
from rankplane.options import named

# Users of tables need know one file only.
__all__ = ["LABEL", "Batch", "Dialect", "Fingerprint", "InputError", "OnRead", "format_of", "line_batches"]
__all__ += ["read_all", "read_batches", "text_batches", "widened"]

BATCH = 8192
FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
}
COMPRESSIONS = (".gz", ".zst", ".bz2", ".xz")
MAX_DEPTH = 100  # of lists and objects in a line of JSON
DEEP = f"lists and objects are nested deeper than {MAX_DEPTH} levels"
MAX_COLUMN = 2**31 - 1  # what column numbers of a matrix can hold
LABEL = "label"  # the only named column of an svmlight file
OnRead = Callable[[float], None]  # hears the share of a file that has been read


def format_of(path: str) -> tuple[str, str]:
    """The format and the compression that a name's endings tell."""
    stem, compression = path, ""
    ending = os.path.splitext(path)[1].lower()
    if ending in COMPRESSIONS:
        stem, compression = path[: -len(ending)], ending
        ending = os.path.splitext(stem)[1].lower()
    if ending not in FORMATS:
        raise InputError(f"{path} has an unknown extension: use one of {' '.join(FORMATS)}, also with {' '.join(COMPRESSIONS)}.")
    return FORMATS[ending], compression


def read_batches(
    path: str, size: int = BATCH, on_read: OnRead | None = None, dialect: Dialect = PLAIN, fingerprint: Fingerprint | None = None
) -> Iterator[Batch]:
    """The rows of a file, some at a time; at least one batch. The fingerprint is there when all have been read."""
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder, not a file.")
    kind, compression = format_of(path)
    dialect.check(path, kind)
    with open(path, "rb") as file:
        if not file.peek(1):
            raise InputError(f"{path} is empty.")
        n_bytes = os.fstat(file.fileno()).st_size if file.seekable() else 0
        is_in_order = kind != "parquet" or compression != ""
        source = file if fingerprint is None else fingerprint.watching(file, is_in_order=is_in_order)
        try:
            with UNPACKERS[compression](source) as unpacked:
                if kind == "parquet":
                    yield from parquet_batches(unpacked, path, size, on_read)
                else:
                    for batch in text_batches(unpacked, path, size, dialect):
                        yield batch
                        if on_read is not None and n_bytes:
                            on_read(min(file.tell() / n_bytes, 1.0))
            if fingerprint is not None and not file.closed:
                fingerprint.finish(file)
        except (*UNPACKING_ERRORS, UnpackError) as error:
            raise InputError(f"{path} cannot be unpacked: {error}.") from None
        except Exception as error:
            if type(error).__name__ == "ZstdError" or (compression == ".bz2" and "data stream" in str(error)):
                raise InputError(f"{path} cannot be unpacked: {error}.") from None
            raise


def text_batches(file: BinaryIO, path: str, size: int = BATCH, dialect: Dialect = PLAIN) -> Iterator[Batch]:
    """The rows of a text that has been unpacked."""
    kind, _ = format_of(path)
    with as_lines(file, path, dialect) as lines:
        if kind in ("csv", "tsv"):
            yield from csv_batches(lines, path, size, kind, dialect)
        else:
            yield from (jsonl_batches if kind == "jsonl" else svmlight_batches)(lines, path, size)


@contextmanager
def as_lines(file: BinaryIO, path: str, dialect: Dialect) -> Iterator[Lines]:
    """The lines of a file, once its first bytes look like text."""
    buffered = file if hasattr(file, "peek") else io.BufferedReader(cast(Any, file))
    start = buffered.peek(4096)[:4096]
    if sentence := no_text(start, path):
        raise InputError(sentence)
    if dialect.encoding is None:
        if encoding := decoded_as(start):
            raise InputError(f"{path} is {encoding.upper()} text: use {named('encoding', encoding)}.")
        if b"\0" in start:
            raise InputError(f"{path} is binary, not text.")
    with io.TextIOWrapper(cast(Any, buffered), encoding=dialect.encoding or "utf-8", newline="") as text:
        yield Lines(text, path, dialect.encoding)


def without_copies(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise KeyError(f'key "{twice}" occurs twice')
    return record


SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
DECODER = json.JSONDecoder(object_pairs_hook=without_copies)


def record_of(line: str) -> dict[str, Any]:
    """The object of a line; ``ValueError`` with what is wrong."""
    try:
        record = DECODER.decode(line)
    except KeyError as error:
        raise ValueError(error.args[0]) from None
    except RecursionError:
        raise ValueError(DEEP) from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise ValueError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
        raise ValueError("a whole number has too many digits") from None
    if not isinstance(record, dict):
        raise ValueError("must be a JSON object, one per line")
    # Only a line of many brackets can be deep, and whoever writes it again needs the room.
    if line.count("[") + line.count("{") > MAX_DEPTH and depth_of(record) > MAX_DEPTH:
        raise ValueError(DEEP)
    if SURROGATE.search(line):
        try:
            json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])[1:-1]
            raise ValueError(f"{half} is half of a pair of surrogates, which is no character") from None
    return record


def depth_of(value: Any) -> int:
    """Levels of lists and objects within each other."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [part for item in level for part in (item.values() if isinstance(item, dict) else item)]
    return depth


def jsonl_batches(text: Lines, path: str, size: int) -> Iterator[Batch]:
    names: dict[str, None] = {}
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    n_batches = 0

    def batch() -> Batch:
        return Batch({name: [record.get(name) for record in records] for name in names}, lines)

    for number, line in enumerate(text, start=1):
        line = line.removeprefix(MARK)
        if not line.strip():
            continue
        try:
            record = record_of(line.rstrip())
        except ValueError as error:
            raise InputError(f"{path} line {number}: {error}.") from None
        names |= dict.fromkeys(record)
        records.append(record)
        lines.append(number)
        if len(records) == size:
            yield batch()
            records, lines, n_batches = [], [], n_batches + 1
    if records or not n_batches:
        yield batch()


def parquet_batches(file: BinaryIO, path: str, size: int, on_read: OnRead | None) -> Iterator[Batch]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
        arrow = importlib.import_module("pyarrow")
    except ImportError:
        raise InputError("Reading parquet files needs pyarrow: pip install pyarrow.") from None
    buffered = file if hasattr(file, "peek") else io.BufferedReader(cast(Any, file))
    if sentence := packed_again(buffered.peek(16), path):
        raise InputError(sentence)
    # Parquet is read from its end, so a packed one has to be unpacked into memory.
    source = file if isinstance(file, io.BufferedReader) and file.seekable() else io.BytesIO(buffered.read())
    try:
        table = parquet.ParquetFile(source)
        schema = table.schema_arrow
        names = schema.names
        if len(set(names)) != len(names):
            raise InputError(f'{path}: column "{Counter(names).most_common(1)[0][0]}" occurs twice.')
        row = 0
        for part in table.iter_batches(batch_size=size):
            lines = list(range(row + 1, row + part.num_rows + 1))
            yield Batch({name: as_list(part.column(name), name, path) for name in names}, lines, schema=schema)
            row += part.num_rows
            if on_read is not None:
                on_read(row / table.metadata.num_rows)
        if row == 0:
            yield Batch({name: [] for name in names}, [], schema=schema)
    except (arrow.ArrowException, UnicodeError) as error:  # names need not be UTF-8
        raise InputError(f"{path} is not a parquet file: {first_line(error)}.") from None
    except OSError as error:
        if error.errno is not None:  # of the file system; what pyarrow cannot read has none
            raise
        raise InputError(f"{path} is a damaged parquet file: {first_line(error)}.") from None


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def as_list(column: Any, name: str, path: str) -> list[Any]:
    """Values as Python has them, which has no year 10,000 and, without pandas, no billionths of a second."""
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError) as error:
        raise InputError(f'{path}: column "{name}" cannot be read: {first_line(error)}.') from None


def svmlight_batches(text: Lines, path: str, size: int) -> Iterator[Batch]:
    """Lines ``label column:value ...``, columns counted from 1."""
    labels: list[str] = []
    starts, lines = [0], list[int]()
    columns, values = list[int](), list[float]()
    n_batches = 0

    def batch() -> Batch:
        width = max(columns, default=-1) + 1
        matrix = sp.csr_matrix((np.array(values), np.array(columns, dtype=np.int64), np.array(starts)), shape=(len(labels), width))
        return Batch({LABEL: list(labels)}, list(lines), matrix)

    for number, line in enumerate(text, start=1):
        parts = line.removeprefix(MARK).partition("#")[0].split()
        if not parts:
            continue
        try:
            if ":" in parts[0]:
                raise ValueError("the label is missing")
            entries = svmlight_entries([part for part in parts[1:] if not part.startswith("qid:")])
        except ValueError as error:
            raise InputError(f"{path} line {number}: must be svmlight, label column:value ...: {error}.") from None
        labels.append(parts[0])
        columns += entries.keys()
        values += entries.values()
        starts.append(len(columns))
        lines.append(number)
        if len(labels) == size:
            yield batch()
            labels, starts, columns, values, lines, n_batches = [], [0], [], [], [], n_batches + 1
    if labels or not n_batches:
        yield batch()


def svmlight_entries(parts: list[str]) -> dict[int, float]:
    """Values by column, counted from 0; ``ValueError`` with what is wrong."""
    cells = [part.partition(":") for part in parts]
    digits = "".join([column for column, _, _ in cells])
    # Most lines are good, which can be seen at once; for the others, entry by entry is soon enough.
    if digits.isascii() and digits.isdigit() and len(digits) < 19 * len(cells):
        with suppress(ValueError):
            found = {int(column) - 1: float(value) for column, _, value in cells}
            if len(found) == len(cells) and min(found) >= 0 and max(found) < MAX_COLUMN and math.isfinite(sum(found.values())):
                return found
    entries = [svmlight_entry(part) for part in parts]
    if len(dict(entries)) != len(entries):
        twice = Counter(column for column, _ in entries).most_common(1)[0][0]
        raise ValueError(f"column {twice + 1} occurs twice")
    return dict(entries)


def svmlight_entry(part: str) -> tuple[int, float]:
    """Column, counted from 0, and value; ``ValueError`` with what is wrong."""
    column, colon, value = part.partition(":")
    if not colon:
        raise ValueError(f'"{part}" has no colon')
    if not (column.isascii() and column.isdigit()):
        raise ValueError(f'"{column}" is no column number')
    # Nobody needs more digits, and Python has a limit for them.
    number = int(column) if len(column) < 20 else MAX_COLUMN + 1
    if not 1 <= number <= MAX_COLUMN:
        raise ValueError(f"columns are counted from 1 to {MAX_COLUMN}")
    found = float(value)
    if not math.isfinite(found):
        raise ValueError(f'the value "{value}" of column {column} is not a finite number')
    return number - 1, found


def line_batches(file: io.BufferedReader, size: int = 1 << 20) -> Iterator[Batch]:
    """One text per line, as a pipe brings them: whatever has arrived is a batch, so that nobody waits for more."""
    n_lines = 0

    def batch(lines: list[bytes]) -> Batch:
        texts = [line.decode("utf-8", "replace").rstrip("\r") for line in lines]
        if n_lines == 0:
            texts[0] = texts[0].removeprefix("\ufeff")
        return Batch({"text": texts}, list(range(n_lines + 1, n_lines + len(texts) + 1)))

    pending: list[bytes] = []
    while chunk := file.read1(size):
        whole, end_of_line, rest = chunk.rpartition(b"\n")
        if not end_of_line:
            pending.append(rest)
            continue
        lines = b"".join([*pending, whole]).split(b"\n")
        yield batch(lines)
        n_lines, pending = n_lines + len(lines), [rest]
    if any(pending):
        yield batch([b"".join(pending)])


def read_all(path: str, on_read: OnRead | None = None, dialect: Dialect = PLAIN, fingerprint: Fingerprint | None = None) -> Batch:
    """A whole file."""
    batches = list(read_batches(path, on_read=on_read, dialect=dialect, fingerprint=fingerprint))
    lines = [line for batch in batches for line in batch.lines]
    if not lines:
        raise InputError(f"{path} has no rows.")
    names: dict[str, None] = {}
    for batch in batches:
        names |= dict.fromkeys(batch.columns)
    columns = {name: [value for batch in batches for value in batch.columns.get(name, [None] * len(batch))] for name in names}
    if batches[0].matrix is None:
        return Batch(columns, lines)
    width = max(batch.matrix.shape[1] for batch in batches)
    return Batch(columns, lines, sp.vstack([widened(batch.matrix, width) for batch in batches], format="csr"))


def widened(matrix: Any, width: int) -> Any:
    """The matrix with empty columns added, or with columns that nobody knows dropped."""
    if matrix.shape[1] > width:
        return matrix[:, :width]
    return sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))
