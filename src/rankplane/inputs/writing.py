"""Tables to files, batch by batch: csv, tsv, json lines, parquet. A file appears when it is whole."""

import csv
import gzip
import importlib
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, BinaryIO, Protocol, cast

from rankplane.files import replacing
from rankplane.inputs.reading import Batch, InputError, format_of
from rankplane.streams import output_bytes


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


class CsvSink:
    def __init__(self, file: BinaryIO, delimiter: str) -> None:
        self.file = file
        self.delimiter = delimiter
        self.names: list[str] | None = None

    def write(self, batch: Batch) -> None:
        # Not by a text layer over the file, which would close the file with itself.
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=self.delimiter, lineterminator="\n")
        if self.names is None:
            self.names = list(batch.columns)
            writer.writerow(self.names)
        check_names(batch, self.names)
        writer.writerows(zip(*(map(flat, batch.columns[name]) for name in self.names), strict=True))
        self.file.write(text.getvalue().encode("utf-8", "surrogateescape"))

    def close(self) -> None:
        self.file.flush()


class JsonSink:
    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def write(self, batch: Batch) -> None:
        for values in zip(*batch.columns.values(), strict=True):
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
            return self.arrow.array(values, type=kind)
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
