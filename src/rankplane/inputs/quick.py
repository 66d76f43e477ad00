"""csv by pyarrow, several times as fast as by the standard library, for as long as the file is one that both read alike.

Blocks of whole rows are cut from the bytes and looked at before pyarrow parses them: quoted fields begin and end where a field
does, quotes within them are doubled, rows end in line feeds, no letter is a NUL. Whatever else comes, even good csv of a rare kind,
is left to our own reader from that block on, which knows what to say about a bad line. So pyarrow changes no cell and no sentence.
"""

import codecs
import functools
import importlib
import io
from collections.abc import Collection, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.inputs.arrow import is_installed, texts_of_arrow
from rankplane.inputs.batches import MARK, Batch, InputError, Lines, wanted
from rankplane.inputs.delimited import Dialect, Header, parsed, read_header
from rankplane.text.packed import Texts

LIBRARY = ("pyarrow", "pyarrow.csv")
BLOCK = 1 << 21
SMALL = 1 << 20
LONGEST = 1 << 25  # of a row: beyond, a quote was not closed
QUOTE, LINE_FEED, RETURN = b'"\n\r'
MARKS = MARK.encode(), b"\n" + MARK.encode()


class Rest(io.RawIOBase):
    """What was read ahead, and then the rest of a file. Closing it leaves the file open."""

    def __init__(self, ahead: bytes, file: io.BufferedReader) -> None:
        self.ahead, self.file = memoryview(ahead), file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self.ahead[: len(buffer)] if self.ahead else memoryview(self.file.read1(len(buffer)))
        if self.ahead:
            self.ahead = self.ahead[len(found) :]
        buffer[: len(found)] = found
        return len(found)


@dataclass(frozen=True)
class Unread:
    """What is left to our own reader: bytes, the lines before them, and the header if that is among those."""

    file: Rest
    n_lines: int = 0
    header: Header | None = None


@dataclass(frozen=True)
class Layout:
    """Whole rows at the start of a block: how many bytes they have, how many lines, and the line that each ends on."""

    n_bytes: int
    n_lines: int
    lines: NDArray[np.intp]


def layout(block: bytes, delimiter: str) -> Layout | None:
    """Where the rows of a block are that begins with one; none of them if it is too short; None if it is not plain csv."""
    if b"\0" in block or block.startswith(MARKS[0]) or MARKS[1] in block:
        return None
    letters = np.frombuffer(block, dtype=np.uint8)
    quotes, feeds = np.flatnonzero(letters == QUOTE), np.flatnonzero(letters == LINE_FEED)
    # Quotes in runs: those of an odd number open or close a field, which quotes in pairs within it do not.
    is_first = np.diff(quotes, prepend=-2) > 1
    firsts, sizes = quotes[is_first], np.diff(np.flatnonzero(np.append(is_first, True)))
    n_changes = np.cumsum(np.append(0, sizes & 1))
    is_end = n_changes[np.searchsorted(firsts, feeds)] & 1 == 0
    ends = feeds[is_end]
    if not len(ends):
        return Layout(0, 0, ends)
    n_bytes = int(ends[-1]) + 1
    is_whole = firsts < n_bytes
    firsts, sizes, is_within = firsts[is_whole], sizes[is_whole], n_changes[:-1][is_whole] & 1 == 1
    opening = letters[firsts[~is_within] - 1]
    is_closed = is_within == (sizes & 1 == 1)
    closing = letters[(firsts + sizes)[is_closed]]
    at_start, at_end = [ord(delimiter), LINE_FEED], [ord(delimiter), LINE_FEED, RETURN]
    if not np.all(np.isin(opening, at_start) | (firsts[~is_within] == 0)) or not np.all(np.isin(closing, at_end)):
        return None
    feeds = feeds[: np.searchsorted(feeds, n_bytes)]
    if b"\r" in block:
        returns = np.flatnonzero(letters[:n_bytes] == RETURN)
        lone = returns[letters[returns + 1] != LINE_FEED]
        if np.any(n_changes[np.searchsorted(firsts, lone)] & 1 == 0):
            return None  # ends a line, but the header did not end so
        feeds = np.sort(np.concatenate([feeds, lone]))
    starts = np.append(0, ends[:-1] + 1)
    is_blank = (ends == starts) | ((ends == starts + 1) & (letters[starts] == RETURN))
    return Layout(n_bytes, len(feeds), np.searchsorted(feeds, ends[~is_blank]) + 1)


def header_of(block: bytes, path: str, delimiter: str) -> tuple[Header, int] | None:
    """The header, and where the rows begin; None if our own reader must say what is wrong, or right."""
    lines = Lines(io.TextIOWrapper(io.BytesIO(block), encoding="utf-8", newline=""), path, None)
    try:
        header = read_header(parsed(lines, delimiter), path)
    except InputError:
        return None
    n_bytes = 0
    for _ in range(header.line):
        n_bytes = block.find(b"\n", n_bytes) + 1
        if n_bytes == 0:
            return None
    is_plain = b"\r" not in block[:n_bytes].replace(b"\r\n", b"")
    return (header, n_bytes) if is_plain and len(header.names) > 1 else None


class Parser:
    """The call of pyarrow for whole rows under a header."""

    def __init__(self, names: list[str], kept: list[str], delimiter: str) -> None:
        self.arrow, self.csv, self.compute = (importlib.import_module(name) for name in (*LIBRARY, "pyarrow.compute"))
        self.names, self.kept = names, kept
        parse = self.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        types = dict.fromkeys(kept, self.arrow.string())
        convert = self.csv.ConvertOptions(column_types=types, include_columns=kept, strings_can_be_null=False)
        # pyarrow's own allocator keeps memory that is freed, which nobody needs who reads a file once.
        self.options = parse, convert, self.arrow.system_memory_pool()

    def columns(self, rows: memoryview, n_rows: int) -> dict[str, Texts] | None:
        """The columns of the rows; None if there is anything about them that our own reader should see."""
        if len(self.kept) < len(self.names) and not is_utf8(rows):  # pyarrow looks at the columns it keeps
            return None
        read = self.csv.ReadOptions(column_names=self.names, block_size=len(rows) + 1, use_threads=False)
        try:
            table = self.csv.read_csv(self.arrow.BufferReader(self.arrow.py_buffer(rows)), read, *self.options)
        except self.arrow.ArrowInvalid:
            return None
        is_header = [self.compute.equal(table.column(name), name) for name in self.kept]
        if len(table) != n_rows or self.compute.any(functools.reduce(self.compute.and_, is_header)).as_py():
            return None
        return {name: texts_of_arrow(table.column(name)) for name in self.kept}


def is_utf8(text: memoryview) -> bool:
    try:
        str(text, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def can_read(dialect: Dialect, delimiter: str) -> bool:
    """Whether this is text that pyarrow knows, and pyarrow is there."""
    is_utf8 = dialect.encoding is None or codecs.lookup(dialect.encoding).name == "utf-8"
    return is_utf8 and delimiter.isascii() and all(map(is_installed, LIBRARY))


def quick_batches(
    file: io.BufferedReader, path: str, size: int, delimiter: str, dialect: Dialect, keep: Collection[str] | None
) -> Generator[Batch, None, Unread | None]:
    """Batches of the rows for as long as these are plain; returns what is left, None if that is nothing."""
    if dialect.limit is not None:  # a pipe may have those rows long before it has a block
        return Unread(Rest(b"", file))
    block = file.read(BLOCK)
    # Importing pyarrow takes longer than reading a small file.
    found = header_of(block, path, delimiter) if len(block) >= SMALL and can_read(dialect, delimiter) else None
    if found is None:
        return Unread(Rest(block, file))
    header, n_bytes = found
    kept = wanted(header.names, keep)
    parser, n_lines, n_batches = Parser(header.names, kept, delimiter), header.line, 0
    block, is_end = block[n_bytes:], len(block) < BLOCK
    while True:
        # The last line may lack its end, but not half of it.
        is_open = is_end and block and not block.endswith((b"\n", b"\r"))
        whole = block + b"\n" if is_open else block
        rows = layout(whole, delimiter)
        if rows is None or (is_end and rows.n_bytes < len(whole)) or len(whole) - rows.n_bytes > LONGEST:
            return Unread(Rest(block, file), n_lines, header)
        columns = parser.columns(memoryview(whole)[: rows.n_bytes], len(rows.lines)) if len(rows.lines) else {}
        if columns is None:
            return Unread(Rest(block, file), n_lines, header)
        lines = (rows.lines + n_lines).tolist()
        for start in range(0, len(lines), size):
            part = slice(start, start + size)
            yield Batch({name: texts[part] for name, texts in columns.items()}, lines[part], names=header.names)
            n_batches += 1
        n_lines += rows.n_lines
        block = block[rows.n_bytes :]
        if is_end:
            break
        # At least as much again, so that a long field is not looked at again and again.
        more = file.read(max(BLOCK, len(block)))
        block, is_end = block + more, not more
    if not n_batches:
        yield Batch({name: Texts() for name in kept}, [], names=header.names)
    return None
