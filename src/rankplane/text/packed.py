"""Texts as UTF-8 in a few buffers, which take no more memory than a file of them and are read by the core without a copy.

A ``str`` of Python takes some fifty bytes more than its letters, and twice the letters as soon as one of them is not Latin.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast, overload

import numpy as np
from numpy.typing import NDArray

LOSSLESS = "surrogatepass"  # halves of surrogate pairs are no characters, but a str may hold them

SHORT = 32  # bytes on average, below which numpy gathers pieces faster than Python joins them


@dataclass(frozen=True, eq=False)
class Part:
    """Pieces of one buffer; those that start at -1 are missing."""

    buffer: NDArray[np.uint8]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, values: Iterable[str | None]) -> "Part":
        values = list(values)
        if None not in values and (joined := "".join(cast(list[str], values))).isascii():
            ends = np.cumsum(np.fromiter(map(len, cast(list[str], values)), np.int64, len(values)))
            return cls(np.frombuffer(joined.encode(), dtype=np.uint8), ends - np.diff(ends, prepend=0), ends)
        encoded = [None if value is None else value.encode("utf-8", LOSSLESS) for value in values]
        present = [text for text in encoded if text is not None]
        ends = np.cumsum([0 if text is None else len(text) for text in encoded], dtype=np.int64)
        starts = np.concatenate([np.zeros(min(1, len(ends)), dtype=np.int64), ends[:-1]])
        if len(present) < len(encoded):
            starts[[text is None for text in encoded]] = -1
        return cls(np.frombuffer(b"".join(present), dtype=np.uint8), starts, ends)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.where(self.starts < 0, 0, self.ends - self.starts)

    @property
    def n_bytes(self) -> int:
        return int(self.sizes.sum())

    def take(self, rows: Any) -> "Part":
        return Part(self.buffer, self.starts[rows], self.ends[rows])

    def pieces(self) -> Iterator[memoryview | None]:
        view = self.buffer.data
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield None if start < 0 else view[start:end]

    def __iter__(self) -> Iterator[str | None]:
        return (None if piece is None else str(piece, "utf-8", LOSSLESS) for piece in self.pieces())

    def filled(self) -> "Part":
        """The same with empty pieces for those that are missing."""
        is_missing = self.starts < 0
        if not is_missing.any():
            return self
        return Part(self.buffer, np.where(is_missing, 0, self.starts), np.where(is_missing, 0, self.ends))

    def packed(self) -> "Part":
        """Its pieces in a buffer of their own, without what lies between them."""
        sizes = self.sizes
        ends = np.cumsum(sizes)
        starts = ends - sizes
        if len(self) and ends[-1] < SHORT * len(self):
            buffer = self.buffer[np.repeat(self.starts - starts, sizes) + np.arange(ends[-1])]
        else:
            buffer = np.frombuffer(b"".join(piece for piece in self.pieces() if piece is not None), dtype=np.uint8)
        return Part(buffer, np.where(self.starts < 0, -1, starts), ends)


class Texts(Sequence[Any]):
    """A column of texts, each a str or None. Rows that are taken from it share its buffers."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self.parts = [part for part in parts if len(part)]

    @classmethod
    def of(cls, values: Iterable[str | None]) -> "Texts":
        """Texts that Python holds, one by one."""
        return cls([Part.of(values)])

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self) -> Iterator[Any]:
        return itertools.chain.from_iterable(self.parts)

    @overload
    def __getitem__(self, row: int) -> Any: ...

    @overload
    def __getitem__(self, row: slice) -> "Texts": ...

    def __getitem__(self, row: int | slice) -> Any:
        if isinstance(row, slice):
            return self.take(np.arange(len(self))[row])
        place = range(len(self))[row]
        for part in self.parts:
            if place < len(part):
                return next(iter(part.take(slice(place, place + 1))))
            place -= len(part)
        raise IndexError(row)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, list | Texts) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Texts({list(self)!r})"

    @property
    def n_bytes(self) -> int:
        """Of the texts alone; their buffers may hold others too."""
        return sum(part.n_bytes for part in self.parts)

    def take(self, rows: NDArray[np.intp]) -> "Texts":
        """The texts of these rows, in ascending order."""
        if np.any(rows[1:] < rows[:-1]):
            raise ValueError("rows must be in ascending order.")
        firsts = np.cumsum([0, *map(len, self.parts)])
        cuts = np.searchsorted(rows, firsts)
        spans = zip(self.parts, firsts, itertools.pairwise(cuts), strict=False)
        return Texts([part.take(rows[start:end] - first) for part, first, (start, end) in spans])

    def packed(self) -> "Texts":
        """A copy that holds no other texts."""
        return Texts([part.packed() for part in self.parts])

    def filled(self) -> "Texts":
        """The texts with empty ones for those that are missing."""
        return Texts([part.filled() for part in self.parts])

    def keys(self) -> Iterator[bytes | None]:
        """The texts as bytes, which are equal where they are."""
        return (None if piece is None else bytes(piece) for part in self.parts for piece in part.pieces())

    def hashes(self) -> NDArray[np.int64]:
        """A number of each text, equal for equal ones, and but for accidents different for others. New in every process."""
        return np.fromiter(map(hash, self.keys()), dtype=np.int64, count=len(self))

    def alike(self) -> NDArray[np.intp]:
        """The number of each text, from 0 on in the order of their first rows; equal texts have the same one."""
        _, places, counts = np.unique(self.hashes(), return_inverse=True, return_counts=True)
        repeated = np.flatnonzero(counts[places.ravel()] > 1)  # only these are compared
        first_rows, first_of = np.arange(len(self)), dict[bytes | None, int]()
        for row, key in zip(repeated.tolist(), self.take(repeated).keys(), strict=True):
            first_rows[row] = first_of.setdefault(key, row)
        return np.unique(first_rows, return_inverse=True)[1].ravel()

    def n_shared(self, other: "Texts") -> int:
        """How many different texts occur in both, empty and missing ones aside."""
        own, others = self.hashes(), other.hashes()
        # Again only candidates are compared.
        in_both = set(self.take(np.flatnonzero(np.isin(own, others))).keys())
        in_both &= set(other.take(np.flatnonzero(np.isin(others, own))).keys())
        return len(in_both - {b"", None})

    def drained(self) -> "Parts":
        """Its parts for whoever reads them once; as they are read, the column forgets them, so that their memory is free."""
        return Parts(self, is_drained=True)


class Parts:
    """The parts of a column, one after another, without missing texts."""

    def __init__(self, texts: Texts, is_drained: bool) -> None:
        self.texts, self.is_drained = texts, is_drained
        self.n_texts = len(texts)

    def __len__(self) -> int:
        return self.n_texts

    def __iter__(self) -> Iterator[Part]:
        place = 0
        while place < len(self.texts.parts):
            yield (self.texts.parts.pop(0) if self.is_drained else self.texts.parts[place]).filled()
            place += not self.is_drained

    def at_once(self, n_bytes: int) -> Iterator[list[Part]]:
        """Lists of parts that have about so many bytes together."""
        gathered: list[Part] = []
        n_gathered = 0
        for part in self:
            gathered.append(part)
            n_gathered += part.n_bytes
            if n_gathered >= n_bytes:
                yield gathered
                gathered, n_gathered = [], 0
        if gathered:
            yield gathered


def concatenated(columns: Iterable[Texts]) -> Texts:
    """One column after another, sharing their buffers."""
    return Texts([part for column in columns for part in column.parts])
