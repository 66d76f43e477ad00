"""Tables from files, batch by batch, so that a file may be larger than memory.

csv, tsv and json lines are read by the standard library: it needs nothing else installed, streams, and knows the line that a
complaint is about. Where pyarrow is installed, it reads plain csv in a fraction of the time (``quick.py``). Parquet needs pyarrow;
.zst needs zstandard or Python 3.14.
"""

import glob
import io
import os
import sys
from array import array
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast

import scipy.sparse as sp

from rankplane.files import errors_naming
from rankplane.inputs.batches import Batch, InputError, Lines, OnRead, first_rows, printable
from rankplane.inputs.delimited import DELIMITERS, PLAIN, Dialect, csv_batches, decoded_as
from rankplane.inputs.fingerprints import FileFingerprint, Fingerprint
from rankplane.inputs.jsonl import jsonl_batches
from rankplane.inputs.packing import UNPACKERS, UNPACKING_ERRORS, UnpackError, no_text
from rankplane.inputs.parquet import parquet_batches
from rankplane.inputs.quick import quick_batches
from rankplane.inputs.svmlight import LABEL, svmlight_batches
from rankplane.options import named
from rankplane.text.packed import Texts, concatenated

# Other packages import only this file.
__all__ = ["LABEL", "Batch", "Dialect", "Fingerprint", "InputError", "OnRead", "format_of", "line_batches"]
__all__ += ["STDIN", "printable", "read_all", "read_batches", "source_name", "text_batches", "widened"]

STDIN = "-"
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


def format_of(path: str) -> tuple[str, str]:
    """The format and the compression, by the endings of a name."""
    stem, compression = path, ""
    ending = os.path.splitext(path)[1].lower()
    if ending in COMPRESSIONS:
        stem, compression = path[: -len(ending)], ending
        ending = os.path.splitext(stem)[1].lower()
    if ending not in FORMATS:
        raise InputError(f"{path} has an unknown extension: use one of {' '.join(FORMATS)}, also with {' '.join(COMPRESSIONS)}.")
    return FORMATS[ending], compression


def format_in(path: str, dialect: Dialect) -> tuple[str, str]:
    """The format and the compression: as given, or else by the endings of the name, or csv for standard input."""
    if dialect.format is None:
        return ("csv", "") if path == STDIN else format_of(path)
    try:
        return format_of(f"{STDIN}.{dialect.format}")
    except InputError:
        known, packed = (" ".join(ending[1:] for ending in endings) for endings in (FORMATS, COMPRESSIONS))
        raise InputError(
            f"{named('format')} must be one of {known}, also compressed, such as csv.gz, by {packed}. Got {dialect.format}."
        ) from None


def source_name(path: str) -> str:
    """What messages call a file."""
    return "standard input" if path == STDIN else path


@contextmanager
def opened(path: str) -> Iterator[io.BufferedReader]:
    if path != STDIN:
        with open(path, "rb") as file:
            yield file
        return
    with errors_naming(source_name(path)), open(sys.stdin.fileno(), "rb", closefd=False) as file:
        yield file


@dataclass(frozen=True)
class Reading:
    """How the rows of files are read: the largest batch, how the text is written, the columns that are needed (None for all)."""

    size: int = BATCH
    dialect: Dialect = PLAIN
    keep: Collection[str] | None = None


def file_batches(path: str, how: Reading, on_read: OnRead | None, fingerprint: FileFingerprint | None) -> Generator[Batch]:
    """The rows of one file."""
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder, not a file.")
    kind, compression = format_in(path, how.dialect)
    name, path = path, source_name(path)
    how.dialect.check(path, kind)
    with opened(name) as file:
        if not file.peek(1):
            raise InputError(f"{path} is empty.")
        n_bytes = os.fstat(file.fileno()).st_size if file.seekable() else 0
        is_in_order = kind != "parquet" or compression != ""
        source = file if fingerprint is None else fingerprint.watching(file, is_in_order=is_in_order)
        try:
            with UNPACKERS[compression](source) as unpacked:
                if kind == "parquet":
                    yield from parquet_batches(unpacked, path, how.size, how.keep, on_read)
                else:
                    for batch in text_batches(unpacked, path, kind, how):
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


def text_batches(file: BinaryIO, path: str, kind: str, how: Reading) -> Generator[Batch]:
    """The rows of a text that has been unpacked."""
    buffered = cast(io.BufferedReader, file if hasattr(file, "peek") else io.BufferedReader(cast(Any, file)))
    check_start(buffered.peek(4096)[:4096], path, how.dialect)
    if kind not in DELIMITERS:
        with as_lines(buffered, path, how.dialect) as lines:
            if kind == "jsonl":
                yield from jsonl_batches(lines, path, how.size, how.keep)
            else:
                yield from svmlight_batches(lines, path, how.size)
        return
    delimiter = how.dialect.delimiter_of(kind)
    left = yield from quick_batches(buffered, path, how.size, delimiter, how.dialect, how.keep)
    if left is not None:
        with as_lines(io.BufferedReader(left.file), path, how.dialect) as lines:
            lines.number = left.n_lines
            yield from csv_batches(lines, path, how.size, delimiter, how.dialect, how.keep, left.header)


def check_start(start: bytes, path: str, dialect: Dialect) -> None:
    """Refuse first bytes that do not look like text."""
    if sentence := no_text(start, path):
        raise InputError(sentence)
    if dialect.encoding is None:
        if encoding := decoded_as(start):
            raise InputError(f"{path} is {encoding.upper()} text: use {named('encoding', encoding)}.")
        if b"\0" in start:
            raise InputError(f"{path} is binary, not text.")


@contextmanager
def as_lines(buffered: io.BufferedReader, path: str, dialect: Dialect) -> Iterator[Lines]:
    with io.TextIOWrapper(buffered, encoding=dialect.encoding or "utf-8", newline="") as text:
        yield Lines(text, path, dialect.encoding)


def line_batches(file: io.BufferedReader, size: int = 1 << 20) -> Generator[Batch]:
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


def files_of(given: Sequence[str]) -> list[str]:
    """The files of names and patterns, such as reviews-*.csv, in the order of the names; of a pattern in alphabetical order."""
    found: list[str] = []
    for name in given:
        is_pattern = glob.has_magic(name) and not os.path.exists(name)
        matches = sorted(glob.glob(name, recursive=True)) if is_pattern else [name]
        if not matches:
            raise InputError(f"{name} matches no file.")
        found += matches
    # Rows that are read twice would be in training and test.
    for path, n_times in Counter(map(os.path.realpath, found)).items():
        if n_times > 1:
            twice = next(name for name in found if os.path.realpath(name) == path)
            raise InputError(f"{source_name(twice)} is given {n_times} times.")
    return found


def called(paths: Sequence[str]) -> str:
    """What several files are called together."""
    first = source_name(paths[0])
    return first if len(paths) == 1 else f"{first} and {len(paths) - 1} other file{'s' * (len(paths) > 2)}"


def read_batches(
    paths: str | Sequence[str],
    size: int = BATCH,
    on_read: OnRead | None = None,
    dialect: Dialect = PLAIN,
    fingerprint: Fingerprint | None = None,
    keep: Collection[str] | None = None,
) -> Generator[Batch]:
    """The rows of a file, or of several one after another, some at a time; at least one batch of each, but none after the limit.

    The fingerprint is there when all have been read. Only the columns to keep are read, by default all.
    """
    files = [paths] if isinstance(paths, str) else list(paths)
    if dialect.limit is None:
        yield from batches_of(files, Reading(size, dialect, keep), on_read, fingerprint)
    else:  # a fingerprint of the first rows would not identify the files
        how = Reading(min(size, dialect.limit), dialect, keep)
        yield from first_rows(batches_of(files, how, on_read, None), dialect.limit)


def batches_of(files: Sequence[str], how: Reading, on_read: OnRead | None, fingerprint: Fingerprint | None) -> Generator[Batch]:
    """The rows of files that must have the same columns."""
    sizes = [os.path.getsize(path) if os.path.isfile(path) else 0 for path in files] if len(files) > 1 else [1]
    is_watched = on_read is not None and all(sizes)
    columns: Columns | None = None
    for number, path in enumerate(files):
        before, share = sum(sizes[:number]) / max(sum(sizes), 1), sizes[number] / max(sum(sizes), 1)

        def on_share(done: float, before: float = before, share: float = share) -> None:
            assert on_read is not None
            on_read(before + share * done)

        own = None if fingerprint is None else fingerprint.of_file()
        name = source_name(path)
        for batch in file_batches(path, how, on_share if is_watched else None, own):
            has_fields = format_in(path, how.dialect)[0] == "jsonl"
            columns = columns or Columns.of(batch, name, has_fields)
            columns.check(batch, name, has_fields)
            yield replace(batch, files=((0, name),))
        # Lines of json may lack a field, but not all of them.
        if how.keep is not None and len(files) > 1 and batch.matrix is None:
            for column in how.keep:
                batch.column(column, name)


@dataclass(frozen=True)
class Columns:
    """What the first of several files is like."""

    path: str
    names: frozenset[str]
    is_matrix: bool
    has_fields: bool

    @classmethod
    def of(cls, batch: Batch, path: str, has_fields: bool) -> "Columns":
        return cls(path, frozenset(batch.names or batch.columns), batch.matrix is not None, has_fields)

    def check(self, batch: Batch, path: str, has_fields: bool) -> None:
        """Refuse a file with other columns, in whatever order. Fields of json lines may come late, or not at all."""
        if path == self.path:
            return
        if self.is_matrix != (batch.matrix is not None):
            raise InputError(f"{path} and {self.path} cannot be read together: only one of them is svmlight.")
        if has_fields or self.has_fields:
            return
        names = set(batch.names or batch.columns)
        for holder, others, lacking in ((self.path, names, path), (path, self.names, self.path)):
            missing = sorted((self.names if holder == self.path else names) - set(others))
            if missing:
                raise InputError(
                    f'{lacking} has no column "{missing[0]}", but {holder} does: all files must have the same columns.'
                )


def read_all(
    paths: str | Sequence[str],
    on_read: OnRead | None = None,
    dialect: Dialect = PLAIN,
    fingerprint: Fingerprint | None = None,
    keep: Collection[str] | None = None,
) -> Batch:
    """A whole file, or several as one table. Columns of texts are packed, batch by batch."""
    parts: dict[str, list[Sequence[Any]]] = {}
    lines, matrices, files, names = array("q"), [], list[tuple[int, str]](), dict[str, None]()
    for batch in read_batches(paths, on_read=on_read, dialect=dialect, fingerprint=fingerprint, keep=keep):
        for name in dict.fromkeys([*parts, *batch.columns]):
            if name not in parts:  # fields of json lines may come late
                parts[name] = [Texts.of([None] * len(lines))]
            parts[name].append(packed(batch.columns[name]) if name in batch.columns else Texts.of([None] * len(batch)))
        if batch.files[0][1] not in (path for _, path in files[-1:]):
            files.append((len(lines), batch.files[0][1]))
        lines.extend(batch.lines)
        matrices.append(batch.matrix)
        names |= dict.fromkeys(batch.names)
    if not lines:
        raise InputError(f"{called([paths] if isinstance(paths, str) else paths)} has no rows.")
    columns = {name: combined(parts.pop(name)) for name in list(parts)}
    matrix = None
    if matrices[0] is not None:
        width = max(found.shape[1] for found in matrices)
        matrix = sp.vstack([widened(found, width) for found in matrices], format="csr")
    return Batch(columns, lines, matrix, files=files, names=list(names))


def packed(values: Sequence[Any]) -> Sequence[Any]:
    """Texts in less memory; other values as they are."""
    is_packed = isinstance(values, Texts)
    return Texts.of(values) if not is_packed and set(map(type, values)) <= {str, type(None)} else values


def combined(parts: list[Sequence[Any]]) -> Sequence[Any]:
    """One column of the parts."""
    if all(isinstance(part, Texts) for part in parts):
        return concatenated(cast(list[Texts], parts))
    return [value for part in parts for value in part]


def widened(matrix: Any, width: int) -> Any:
    """The matrix with empty columns added, or with columns that nobody knows dropped."""
    if matrix.shape[1] > width:
        return matrix[:, :width]
    return sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], width))
