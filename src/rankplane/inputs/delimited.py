"""Text tables with a delimiter, csv and tsv, and what is wrong with those that cannot be read.

The standard library parses; it stops where it cannot go on, which for a quote that is never closed is the end of the file. What
a reader wants to know is where the mistake was made, so the lines of the row at hand are kept until it is whole.
"""

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from rankplane.inputs.batches import MARK, Batch, InputError, Lines, wanted
from rankplane.options import named

DELIMITERS = {"csv": ",", "tsv": "\t"}
NAMED = {"tab": "\t", "\\t": "\t"}
# A quote that is never closed takes the rest of the file for one field: it must not take all memory too.
MAX_FIELD = 2**27
LINE_FEED = "a line feed"


@dataclass(frozen=True)
class Dialect:
    """How a file is written, as far as its name does not show it, and how many of its rows are wanted."""

    delimiter: str | None = None
    encoding: str | None = None
    format: str | None = None  # as an ending without its point, such as csv.gz
    limit: int | None = None

    def check(self, path: str, kind: str) -> None:
        """Refuse what does not exist, or does not apply to this kind of file."""
        if self.limit is not None and self.limit < 1:
            raise InputError(f"{named('limit')} must be a positive number of rows. Got {self.limit}.")
        if self.delimiter is not None:
            if kind not in DELIMITERS:
                raise InputError(f"{named('delimiter')} is for csv and tsv files. {path} is {kind}.")
            character = NAMED.get(self.delimiter, self.delimiter)
            if len(character) != 1 or character in '"\r\n\0' or "\ud800" <= character <= "\udfff":
                rule = "must be one character, no quote, or the word tab"
                raise InputError(f"{named('delimiter')} {rule}. Got {self.delimiter!r}.")
        if self.encoding is not None:
            if kind == "parquet":
                raise InputError(f"{named('encoding')} is for text files. {path} is parquet.")
            try:
                io.TextIOWrapper(io.BytesIO(), encoding=self.encoding)
            except (LookupError, ValueError):
                rule = "must name a text encoding, such as latin-1, cp1252 or utf-16"
                raise InputError(f"{named('encoding')} {rule}. Got {self.encoding!r}.") from None

    def delimiter_of(self, kind: str) -> str:
        return DELIMITERS[kind] if self.delimiter is None else NAMED.get(self.delimiter, self.delimiter)


PLAIN = Dialect()


def decoded_as(start: bytes) -> str | None:
    """The encoding that the first bytes of a file show, if it is one of wide characters."""
    for name in ("utf-32", "utf-16"):  # the mark of the one begins as that of the other
        if start.startswith((MARK.encode(f"{name}-le"), MARK.encode(f"{name}-be"))):
            return name
    # Of Latin letters, every other byte is zero.
    for place, name in enumerate(("utf-16-be", "utf-16-le")):
        zeros, others = start[place::2].count(0), start[1 - place :: 2].count(0)
        if zeros > len(start) // 4 and not others:
            return name
    return None


class Row:
    """Lines for the parser, and those of the row that it is at."""

    def __init__(self, lines: Lines, end: str) -> None:
        self.source = lines
        self.lines: list[str] = []
        self.end = end  # of the header's line; LF stands for CRLF too

    def __iter__(self) -> Iterator[str]:
        for line in self.source:
            if not self.lines and line[0] == MARK:
                line = line[1:]
            self.lines.append(line)
            yield line

    def finish(self) -> None:
        """Check that the row ended as the header did, and forget its lines."""
        last = self.lines[-1]
        end = LINE_FEED if last[-1:] == "\n" else "a carriage return" if last[-1:] == "\r" else ""
        self.end = self.end or end
        if end and end != self.end:
            raise InputError(
                f"{self.source.path} line {self.source.number}: the line ends in {end}, but the header in {self.end}; "
                "line ends within a field must be quoted."
            )
        self.lines.clear()

    def opening(self, delimiter: str) -> int:
        """The line on which the last quoted field of the row begins."""
        text = "".join(self.lines)
        place, opened = 0, 0
        while place < len(text):
            if text[place] == '"':
                opened = place
                place = end_of_quoted(text, place)
            while place < len(text) and text[place] not in (delimiter, "\n", "\r"):
                place += 1
            place += 1
        first = self.source.number - len(self.lines) + 1
        before = text[:opened]
        return first + before.count("\n") + before.replace("\r\n", "").count("\r")


def end_of_quoted(text: str, place: int) -> int:
    """The place after a quoted field that starts here; quotes within it are doubled."""
    place = text.find('"', place + 1)
    while place >= 0 and text[place + 1 : place + 2] == '"':
        place = text.find('"', place + 2)
    return len(text) if place < 0 else place + 1


def parsed(lines: Lines, delimiter: str, end: str = "") -> Iterator[tuple[int, list[str]]]:
    """Rows, but for empty lines, each with the line that it ends on. They must end as the first one does, or as is said."""
    csv.field_size_limit(MAX_FIELD)
    row = Row(lines, end)
    reader = csv.reader(row, delimiter=delimiter, strict=True)
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{lines.path} {misquoted(row, delimiter, str(error))}") from None
        row.finish()
        if fields:
            yield lines.number, fields


def misquoted(row: Row, delimiter: str, error: str) -> str:
    """The parser's complaint, with the line that the mistake is on."""
    opened, last = row.opening(delimiter), row.source.number
    if "end of data" in error:
        return f"line {opened}: a quote is opened and never closed."
    if "expected after" in error:
        where = "" if opened == last else f" on line {last}"
        return f"line {opened}: a quote is opened whose closing quote{where} has text after it; quotes within a field are doubled."
    if "field limit" in error:
        return f"line {opened}: a field is longer than {MAX_FIELD:,} characters; is a quote never closed?"
    return f"line {last}: {error}."


def check_header(header: list[str], path: str, line: int) -> None:
    if len(set(header)) == len(header):
        return
    n_unnamed = sum(not name for name in header)
    if n_unnamed > 1:
        raise InputError(f"{path} line {line}: {n_unnamed} columns have no name.")
    twice = Counter(header).most_common(1)[0][0]
    raise InputError(f'{path} line {line}: column "{twice}" occurs twice.')


def check_delimiter(header: str, row: str | None, delimiter: str, path: str) -> None:
    """Refuse a header of one field that another delimiter would part, and the first row likewise."""
    for other in (",", ";", "\t", "|"):
        names = header.split(other)
        is_parted = len(names) > 1 and all(name.strip() for name in names) and other != delimiter
        if is_parted and (row is None or row.count(other) >= len(names) - 1):
            option = "tab" if other == "\t" else f'"{other}"'
            remedy = named("delimiter", "tab" if other == "\t" else other)
            shown = header if len(header) <= 60 else f"{header[:57]}..."
            raise InputError(f'{path} has only one column, "{shown}": if its columns are separated by {option}, use {remedy}.')


def wrong_width(row: list[str], header: list[str], delimiter: str) -> str:
    name = {",": "comma", "\t": "tab", ";": "semicolon"}.get(delimiter, f'"{delimiter}"')
    hint = f": a trailing {name}?" if len(row) > len(header) and not any(row[len(header) :]) else "."
    return f"{len(row)} field{'s' * (len(row) != 1)}, but the header has {len(header)}{hint}"


def is_blank(row: list[str]) -> bool:
    return len(row) == 1 and not row[0].strip()


@dataclass(frozen=True)
class Header:
    """The names of the columns, and the line that they end on."""

    names: list[str]
    line: int


def read_header(table: Iterator[tuple[int, list[str]]], path: str) -> Header:
    line, names = next(((line, row) for line, row in table if not is_blank(row)), (0, []))
    if not names:
        raise InputError(f"{path} is empty.")
    check_header(names, path, line)
    return Header(names, line)


def csv_batches(
    lines: Lines, path: str, size: int, delimiter: str, dialect: Dialect, keep: Collection[str] | None, given: Header | None
) -> Iterator[Batch]:
    """The rows of a text; a header that is given has been read before."""
    table = parsed(lines, delimiter, "" if given is None else LINE_FEED)
    found = given or read_header(table, path)
    header = found.names
    if len(header) > 1:
        table = ((line, row) for line, row in table if not is_blank(row))
    elif dialect.delimiter is None:  # whoever names the delimiter knows that there is one column only
        first = list(islice(table, 1))
        check_delimiter(header[0], delimiter.join(first[0][1]) if first else None, delimiter, path)
        table = chain(first, table)
    rows: list[list[str]] = []
    numbers: list[int] = []
    n_batches = 0
    kept = set(wanted(header, keep))

    def batch() -> Batch:
        columns = zip(header, zip(*rows, strict=True) if rows else [()] * len(header), strict=True)
        return Batch({name: list(column) for name, column in columns if name in kept}, numbers, names=header)

    for number, row in table:
        if len(row) != len(header):
            raise InputError(f"{path} line {number}: {wrong_width(row, header, delimiter)}")
        if len(row) > 1 and row == header:
            raise InputError(f"{path} line {number}: the header occurs again; were files joined?")
        rows.append(row)
        numbers.append(number)
        if len(rows) == size:
            yield batch()
            rows, numbers, n_batches = [], [], n_batches + 1
    if rows or not n_batches:
        yield batch()
