"""Parquet files, by pyarrow."""

import importlib
import io
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, BinaryIO, cast

from rankplane.inputs.arrow import texts_of_arrow
from rankplane.inputs.batches import Batch, InputError, OnRead, wanted
from rankplane.inputs.packing import packed_again


def parquet_batches(file: BinaryIO, path: str, size: int, keep: Collection[str] | None, on_read: OnRead | None) -> Iterator[Batch]:
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
        kept = wanted(names, keep)
        for part in table.iter_batches(batch_size=size, columns=kept):
            lines = range(row + 1, row + part.num_rows + 1)
            columns = {name: as_values(part.column(name), name, path) for name in kept}
            yield Batch(columns, lines, schema=schema, names=names)
            row += part.num_rows
            if on_read is not None:
                on_read(row / table.metadata.num_rows)
        if row == 0:
            yield Batch({name: [] for name in kept}, [], schema=schema, names=names)
    except (arrow.ArrowException, UnicodeError) as error:  # names need not be UTF-8
        raise InputError(f"{path} is not a parquet file: {first_line(error)}.") from None
    except OSError as error:
        if error.errno is not None:  # of the file system; what pyarrow cannot read has none
            raise
        raise InputError(f"{path} is a damaged parquet file: {first_line(error)}.") from None


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def as_values(column: Any, name: str, path: str) -> Sequence[Any]:
    """Values as Python has them, which has no year 10,000 and, without pandas, no billionths of a second."""
    if str(column.type) in ("string", "large_string"):
        return texts_of_arrow(column)
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError) as error:
        raise InputError(f'{path}: column "{name}" cannot be read: {first_line(error)}.') from None
