"""Tables to files, batch by batch: csv, tsv, json lines, parquet. A file appears when it is whole."""

import csv
import gzip
import importlib
import io
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Protocol, cast

from rankplane.files import replacing
from rankplane.reading import InputError, format_of

Columns = dict[str, list[Any]]


class Sink(Protocol):
    def write(self, columns: Columns) -> None: ...

    def close(self) -> None: ...


class CsvSink:
    def __init__(self, file: BinaryIO, delimiter: str) -> None:
        self.file = file
        self.delimiter = delimiter
        self.names: list[str] | None = None

    def write(self, columns: Columns) -> None:
        # Not by a text layer over the file: it would close standard output with itself.
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=self.delimiter, lineterminator="\n")
        if self.names is None:
            self.names = list(columns)
            writer.writerow(self.names)
        writer.writerows(zip(*(columns[name] for name in self.names), strict=True))
        self.file.write(text.getvalue().encode("utf-8", "surrogateescape"))

    def close(self) -> None:
        self.file.flush()


class JsonSink:
    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def write(self, columns: Columns) -> None:
        for values in zip(*columns.values(), strict=True):
            record = dict(zip(columns, values, strict=True))
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

    def write(self, columns: Columns) -> None:
        if self.writer is None:
            table = self.arrow.table(columns)
            self.writer = self.parquet.ParquetWriter(self.file, table.schema)
        else:
            # The first batch settles the types.
            table = self.arrow.table(columns, schema=self.writer.schema)
        self.writer.write_table(table)

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


def write_batches(path: str | None, batches: Iterable[Columns]) -> int:
    """Write columns, some rows at a time, to a file or as csv to standard output; returns the number of rows."""
    n_rows = 0
    with sink_for(path) as sink:
        for columns in batches:
            sink.write(columns)
            n_rows += len(next(iter(columns.values()), []))
    return n_rows


@contextmanager
def sink_for(path: str | None) -> Iterator[Sink]:
    if path is None:
        sink = sink_of(sys.stdout.buffer, "csv")
        yield sink
        sink.close()
        return
    kind, compression = check_output(path)
    with replacing(path) as file:
        if compression:
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
                sink = sink_of(cast(BinaryIO, packed), kind)
                yield sink
                sink.close()
        else:
            sink = sink_of(file, kind)
            yield sink
            sink.close()
