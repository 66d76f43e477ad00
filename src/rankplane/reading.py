"""Tables from files, batch by batch, so that a file may be larger than memory.

csv, tsv and json lines are read by the standard library: it needs nothing else installed, streams, and knows the line that a
complaint is about. Parquet needs pyarrow; .zst needs zstandard or Python 3.14.
"""

import bz2
import csv
import difflib
import gzip
import hashlib
import importlib
import io
import json
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import numpy as np
import scipy.sparse as sp

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
LABEL = "label"  # the only named column of an svmlight file
OnRead = Callable[[float], None]  # hears the share of a file that has been read


class InputError(ValueError):
    """A file that cannot be used, in one sentence."""


@dataclass(frozen=True)
class Batch:
    """Some rows: named columns, the line that each row ends on, and what only some formats have."""

    columns: dict[str, list[Any]]
    lines: list[int]
    matrix: Any = None  # of an svmlight file
    schema: Any = None  # types of a parquet file's columns

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str, source: str) -> list[Any]:
        if name in self.columns:
            return self.columns[name]
        near = difflib.get_close_matches(name, self.columns, n=1, cutoff=0.5)
        known = ", ".join(self.columns) or "none"
        hint = f'did you mean "{near[0]}"?' if near else f"its columns are {known}."
        raise InputError(f'{source} has no column "{name}": {hint}')


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


def fingerprint(path: str) -> str:
    """What tells whether a file is still the same."""
    with open(path, "rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def zstandard_open(file: BinaryIO) -> BinaryIO:
    if sys.version_info >= (3, 14):
        return cast(BinaryIO, importlib.import_module("compression.zstd").open(file))
    try:
        return cast(BinaryIO, importlib.import_module("zstandard").open(file))
    except ImportError:
        raise InputError("Reading .zst files needs zstandard: pip install zstandard.") from None


UNPACKERS: dict[str, Callable[[BinaryIO], Any]] = {
    "": lambda file: file,
    ".gz": gzip.open,
    ".zst": zstandard_open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


def read_batches(path: str, size: int = BATCH, on_read: OnRead | None = None) -> Iterator[Batch]:
    """The rows of a file, some at a time; at least one batch."""
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder, not a file.")
    kind, compression = format_of(path)
    try:
        with open(path, "rb") as file:
            if not file.peek(1):
                raise InputError(f"{path} is empty.")
            n_bytes = os.fstat(file.fileno()).st_size if file.seekable() else 0
            with UNPACKERS[compression](file) as unpacked:
                if kind == "parquet":
                    yield from parquet_batches(unpacked, path, size, on_read)
                    return
                with as_text(unpacked, path) as text:
                    for batch in TEXT_READERS[kind](text, path, size):
                        yield batch
                        if on_read is not None and n_bytes:
                            on_read(min(file.tell() / n_bytes, 1.0))
    except UnicodeDecodeError:
        raise InputError(f"{path} line {first_bad_line(path, compression)} is not UTF-8 text: convert the file first.") from None
    except (zlib.error, lzma.LZMAError, EOFError, gzip.BadGzipFile) as error:
        raise InputError(f"{path} cannot be unpacked: {error}.") from None
    except Exception as error:
        if type(error).__name__ == "ZstdError" or (compression == ".bz2" and "data stream" in str(error)):
            raise InputError(f"{path} cannot be unpacked: {error}.") from None
        raise


def first_bad_line(path: str, compression: str) -> int:
    """Where text that is read block by block stops to be UTF-8."""
    with open(path, "rb") as file, UNPACKERS[compression](file) as unpacked:
        for number, line in enumerate(unpacked, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 0


@contextmanager
def as_text(file: BinaryIO, path: str) -> Iterator[io.TextIOWrapper]:
    """Text of a file; spreadsheet programs put a mark at its start."""
    buffered = file if hasattr(file, "peek") else io.BufferedReader(cast(Any, file))
    if b"\0" in buffered.peek(4096)[:4096]:
        raise InputError(f"{path} is binary, not text.")
    with io.TextIOWrapper(cast(Any, buffered), encoding="utf-8-sig", newline="") as text:
        yield text


def csv_batches(text: Iterable[str], path: str, size: int) -> Iterator[Batch]:
    csv.field_size_limit(2**31 - 1)
    delimiter = "\t" if format_of(path)[0] == "tsv" else ","
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    try:
        header = next(reader, None)
        if not header:
            raise InputError(f"{path} is empty.")
        if len(set(header)) != len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise InputError(f'{path} line 1: column "{twice}" occurs twice.')
        rows: list[list[str]] = []
        lines: list[int] = []
        n_batches = 0

        def batch() -> Batch:
            columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in header]
            return Batch(dict(zip(header, columns, strict=True)), lines)

        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise InputError(f"{path} line {reader.line_num}: {len(row)} fields, but the header has {len(header)}.")
            rows.append(row)
            lines.append(reader.line_num)
            if len(rows) == size:
                yield batch()
                rows, lines, n_batches = [], [], n_batches + 1
        if rows or not n_batches:
            yield batch()
    except csv.Error as error:
        raise InputError(f"{path} line {reader.line_num}: {error}.") from None


def jsonl_batches(text: Iterable[str], path: str, size: int) -> Iterator[Batch]:
    names: dict[str, None] = {}
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    n_batches = 0

    def batch() -> Batch:
        return Batch({name: [record.get(name) for record in records] for name in names}, lines)

    for number, line in enumerate(text, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise InputError(f"{path} line {number}: not JSON: {error}.") from None
        if not isinstance(record, dict):
            raise InputError(f"{path} line {number}: must be a JSON object, one per line.")
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
    # Parquet is read from its end, so a packed one has to be unpacked into memory.
    source = file if isinstance(file, io.BufferedReader) and file.seekable() else io.BytesIO(file.read())
    try:
        table = parquet.ParquetFile(source)
        schema = table.schema_arrow
        twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f'{path}: column "{twice}" occurs twice.')
        row = 0
        for part in table.iter_batches(batch_size=size):
            lines = list(range(row + 1, row + part.num_rows + 1))
            yield Batch({name: part.column(name).to_pylist() for name in schema.names}, lines, schema=schema)
            row += part.num_rows
            if on_read is not None:
                on_read(row / table.metadata.num_rows)
        if row == 0:
            yield Batch({name: [] for name in schema.names}, [], schema=schema)
    except arrow.ArrowException as error:
        raise InputError(f"{path} is not a parquet file: {str(error).splitlines()[0]}") from None


def svmlight_batches(text: Iterable[str], path: str, size: int) -> Iterator[Batch]:
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
        parts = line.partition("#")[0].split()
        if not parts:
            continue
        try:
            labels.append(parts[0])
            for part in parts[1:]:
                column, _, value = part.partition(":")
                if column == "qid":
                    continue
                columns.append(int(column) - 1)
                values.append(float(value))
                if columns[-1] < 0:
                    raise ValueError("columns are counted from 1")
        except ValueError as error:
            raise InputError(f"{path} line {number}: must be svmlight, label column:value ...: {error}.") from None
        starts.append(len(columns))
        lines.append(number)
        if len(labels) == size:
            yield batch()
            labels, starts, columns, values, lines, n_batches = [], [0], [], [], [], n_batches + 1
    if labels or not n_batches:
        yield batch()


TEXT_READERS = {"csv": csv_batches, "tsv": csv_batches, "jsonl": jsonl_batches, "svmlight": svmlight_batches}


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


def read_all(path: str, on_read: OnRead | None = None) -> Batch:
    """A whole file."""
    batches = list(read_batches(path, on_read=on_read))
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
