"""What readers hand on: rows in batches, lines that know their number, and one sentence for what is wrong with a file."""

import io
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from rankplane.options import Wording, named
from rankplane.tabular import unknown_column

OnRead = Callable[[float], None]  # called with the share that has been read
MARK = "\ufeff"  # what some programs put at the start of a text file; files that were joined have it further down


class InputError(ValueError):
    """A file that cannot be used, in one sentence, whose names and values may come from the file."""

    def __init__(self, sentence: str) -> None:
        worded = Wording(sentence)
        super().__init__(printable(worded))
        self.with_options = printable(worded.with_options)  # for the command line


def printable(sentence: str) -> str:
    """A terminal takes characters that cannot be printed for commands."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in sentence)


@dataclass(frozen=True)
class Batch:
    """Some rows: named columns, the line that each row ends on, and what only some formats have."""

    columns: Mapping[str, Sequence[Any]]
    lines: Sequence[int]
    matrix: Any = None  # of an svmlight file
    schema: Any = None  # types of a parquet file's columns
    files: Sequence[tuple[int, str]] = ()  # the first row of each file that the rows come from
    names: Collection[str] = ()  # of all columns of the file, where only some were asked for
    form: str = "{source} line {line}"  # of the place of a row in a sentence

    def __len__(self) -> int:
        return len(self.lines)

    def column(self, name: str, source: str) -> Sequence[Any]:
        if name in self.columns:
            return self.columns[name]
        raise InputError(f"{source} {unknown_column(name, self.names or self.columns)}")

    def file_of(self, row: int, source: str) -> str:
        """The file of a row; the source if that is all that is known."""
        return next((path for first, path in reversed(self.files) if first <= row), source)

    def where(self, row: int, source: str) -> str:
        """The file and the line of a row, for a sentence."""
        return self.form.format(source=self.file_of(row, source), line=self.lines[row])

    def first(self, n_rows: int) -> "Batch":
        """The first rows."""
        columns = {name: values[:n_rows] for name, values in self.columns.items()}
        return replace(
            self, columns=columns, lines=self.lines[:n_rows], matrix=None if self.matrix is None else self.matrix[:n_rows]
        )


def wanted(names: list[str], keep: Collection[str] | None) -> list[str]:
    """The columns to read: those to keep, or else the first one, so that there are rows to count."""
    return [name for name in names if keep is None or name in keep] or names[:1]


def first_rows(batches: Generator[Batch], limit: int | None) -> Iterator[Batch]:
    """The batches up to this number of rows; no more is read than that takes."""
    n_left = limit
    with closing(batches):
        for batch in batches:
            if n_left is None or len(batch) < n_left:
                yield batch
                n_left = None if n_left is None else n_left - len(batch)
            else:
                yield batch.first(n_left)
                return


class Lines:
    """The lines of a text, each with its end, counted from 1 so that a complaint can name one."""

    def __init__(self, text: io.TextIOWrapper, path: str, encoding: str | None) -> None:
        self.text = text
        self.path = path
        self.encoding = encoding
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        try:
            for line in self.text:
                self.number += 1
                if "\0" in line:
                    raise InputError(f"{self.path} line {self.number} holds a NUL byte, which no text does.")
                yield line
        except UnicodeError as error:
            raise InputError(self.undecoded(error)) from None

    def undecoded(self, error: UnicodeError) -> str:
        number = self.number + 1
        if isinstance(error, UnicodeDecodeError):
            # The text is decoded block by block; whole lines before this block have all been counted.
            before = error.object[: error.start].decode(error.encoding, "ignore")
            number += before.count("\n") + before.replace("\r\n", "").count("\r")
        if self.encoding is None:
            return f"{self.path} line {number} is not UTF-8 text: name its encoding, such as {named('encoding', 'latin-1')}."
        return f"{self.path} line {number} is not {self.encoding} text: name another {named('encoding')}."
