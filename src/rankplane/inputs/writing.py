"""Tables to files, batch by batch: csv, tsv, json lines, parquet. A file appears when it is whole."""

import gzip
import importlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, BinaryIO, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from rankplane.files import replacing
from rankplane.inputs.arrow import arrow_of, is_installed
from rankplane.inputs.reading import Batch, InputError, format_of
from rankplane.streams import output_bytes
from rankplane.text.packed import Part, Texts


class Sink(Protocol):
    def write(self, batch: Batch) -> None: ...

    def close(self) -> None: ...


def check_names(batch: Batch, names: list[str]) -> None:
    """Records of json lines may bring new fields late; a table cannot."""
    new = next((name for name in batch.columns if name not in names), None)
    if new is not None:
        raise InputError(f'field "{new}" first occurs after line {batch.lines[0] - 1}, too late for a table: write jsonl instead.')


def flat(value: Any) -> Any:
    """Lists and objects of json lines as JSON; all else as it is."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def shares_in_words(values: NDArray[np.float64]) -> Texts:
    """Numbers from 0 to 1 with one to six decimals, without the exponents that Python writes for small ones."""
    millionths = np.rint(values * 1e6).astype(np.int64)[:, None]
    digits = (millionths // 10 ** np.arange(6, -1, -1) % 10).astype(np.uint8)
    places = np.where(digits[:, 1:] > 0, np.arange(1, 7), 1).max(axis=1)  # of the last decimal
    letters = np.insert(digits + ord("0"), 1, ord("."), axis=1).astype(np.uint8)
    starts = np.arange(len(values), dtype=np.int64) * letters.shape[1]
    return Texts([Part(letters.ravel(), starts, starts + 2 + places)])


def as_cells(values: Sequence[Any] | NDArray[Any]) -> Sequence[str]:
    """The cells of a column in a text table. Arrays are predictions, and those of floating point probabilities."""
    if isinstance(values, Texts):
        return values.filled()
    if not isinstance(values, np.ndarray):
        return ["" if value is None else str(flat(value)) for value in values]
    if values.dtype.kind == "f":
        return shares_in_words(values)
    distinct, places = np.unique(values, return_inverse=True)
    return Texts([Part.of(map(str, distinct.tolist())).take(places.ravel())])


def plain(values: Sequence[Any] | NDArray[Any]) -> Sequence[Any]:
    """Values of Python."""
    return values.tolist() if isinstance(values, np.ndarray) else values


class CsvSink:
    def __init__(self, file: BinaryIO, delimiter: str) -> None:
        self.file = file
        self.delimiter = delimiter
        self.names: list[str] | None = None

    def write(self, batch: Batch) -> None:
        if self.names is None:
            self.names = list(batch.columns)
            self.file.write(rows_of([[name] for name in self.names], self.delimiter))
        check_names(batch, self.names)
        columns = [batch.columns[name] for name in self.names]
        # Texts that were packed come from pyarrow.
        is_quick = any(isinstance(values, Texts) for values in columns) and is_installed("pyarrow.compute")
        self.file.write((quick_rows_of if is_quick else rows_of)(columns, self.delimiter))

    def close(self) -> None:
        self.file.flush()


def rows_of(columns: list[Any], delimiter: str) -> bytes:
    """Rows of csv. Not by the standard library, which leaves carriage returns unquoted before Python 3.13, and takes longer."""
    special = re.compile(f'["\n\r{re.escape(delimiter)}]')

    def quoted(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if special.search(cell) else cell

    rows = zip(*(map(quoted, as_cells(values)) for values in columns), strict=True)
    return "".join(f"{delimiter.join(row)}\n" for row in rows).encode("utf-8", "surrogateescape")


def quick_rows_of(columns: list[Any], delimiter: str) -> memoryview:
    """The same by pyarrow, in a tenth of the time."""
    arrow, compute = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.compute")
    comma, quote, end, nothing = (arrow.scalar(text, arrow.large_string()) for text in (delimiter, '"', "\n", ""))
    special = f'["\n\r{re.escape(delimiter)}]'

    def quoted(values: Any) -> Any:
        texts = as_cells(values)
        cells = arrow_of(texts if isinstance(texts, Texts) else Texts.of(texts))
        doubled = compute.replace_substring(cells, '"', '""')
        is_special = compute.match_substring_regex(cells, special)
        return compute.if_else(is_special, compute.binary_join_element_wise(quote, doubled, quote, nothing), cells)

    rows = compute.binary_join_element_wise(*map(quoted, columns), comma)
    lines = compute.binary_join_element_wise(rows, end, nothing)
    _, places, letters = lines.buffers()
    ends = np.frombuffer(places, dtype=np.int64)[lines.offset : lines.offset + len(lines) + 1]
    return memoryview(letters or b"")[ends[0] : ends[-1]]


class JsonSink:
    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def write(self, batch: Batch) -> None:
        for values in zip(*map(plain, batch.columns.values()), strict=True):
            record = dict(zip(batch.columns, values, strict=True))
            self.file.write(json.dumps(record, ensure_ascii=False, default=str).encode() + b"\n")

    def close(self) -> None:
        self.file.flush()


class ParquetSink:
    def __init__(self, file: BinaryIO) -> None:
        try:
            self.arrow = importlib.import_module("pyarrow")
            self.parquet = importlib.import_module("pyarrow.parquet")
        except ImportError:
            raise InputError("Writing parquet files needs pyarrow: pip install pyarrow.") from None
        self.file = file
        self.writer: Any = None

    def write(self, batch: Batch) -> None:
        if self.writer is None:
            self.writer = self.parquet.ParquetWriter(self.file, self.types(batch))
        check_names(batch, self.writer.schema.names)
        # The first batch settles the types.
        schema = self.writer.schema
        columns = [self.array(name, batch.columns[name], schema.field(name).type) for name in schema.names]
        self.writer.write_table(self.arrow.table(columns, schema=schema))

    def types(self, batch: Batch) -> Any:
        """Of a parquet file its own; else what the first rows show, text where they show nothing."""
        known = set() if batch.schema is None else set(batch.schema.names)
        fields = []
        for name, values in batch.columns.items():
            if name in known:
                fields.append(batch.schema.field(name))
                continue
            found = self.array(name, values, None).type
            fields.append(self.arrow.field(name, self.arrow.string() if found == self.arrow.null() else found))
        return self.arrow.schema(fields)

    def array(self, name: str, values: Any, kind: Any) -> Any:
        try:
            if isinstance(values, Texts):
                return arrow_of(values).cast(kind or self.arrow.string())
            return self.arrow.array(plain(values), type=kind)
        except (self.arrow.ArrowException, OverflowError, TypeError, ValueError):
            raise InputError(f'column "{name}" holds values of several types, or too large for one: write jsonl instead.') from None

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


def sink_of(file: BinaryIO, kind: str) -> Sink:
    if kind == "parquet":
        return ParquetSink(file)
    return JsonSink(file) if kind == "jsonl" else CsvSink(file, "\t" if kind == "tsv" else ",")


def check_output(path: str) -> tuple[str, str]:
    """Format and compression of an output, before any work is done."""
    kind, compression = format_of(path)
    if kind == "svmlight" or compression not in ("", ".gz"):
        raise InputError(f"{path} cannot be written: use csv, tsv, jsonl or parquet, also with .gz.")
    return kind, compression


def write_batches(path: str | None, batches: Iterable[Batch]) -> int:
    """Write rows, some at a time, to a file or as csv to standard output; returns their number."""
    n_rows = 0
    with sink_for(path) as sink:
        for batch in batches:
            sink.write(batch)
            n_rows += len(batch)
    return n_rows


@contextmanager
def sink_for(path: str | None) -> Iterator[Sink]:
    if path is None:
        sink = sink_of(output_bytes(), "csv")
        yield sink
        sink.close()
        return
    kind, compression = check_output(path)
    with replacing(path) as file:
        packing = gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if compression else nullcontext(file)
        with packing as packed:
            sink = sink_of(cast(BinaryIO, packed), kind)
            try:
                yield sink
            except BaseException:
                with suppress(Exception):  # the file goes away anyhow, but a writer of parquet left open complains
                    sink.close()
                raise
            sink.close()
