"""Rows on disk, in blocks of which one is in memory at a time, and solves over them (LIBLINEAR-CDBLOCK).

A block is a file with a csr matrix of the columns that occur in it. Solves map one block after another, in random order, and take
several sweeps over each: the weights of its columns go into a solver of the block, which starts from the duals of its rows, and
come back out. So each sweep sees the newest weights, as in memory, only that rows of a block are swept several times in a row.
"""

import json
import mmap
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankplane.solver.column_weights import scale_columns
from rankplane.solver.lanes import Lanes, Options
from rankplane.solver.tables import Table
from rankplane.validation import MAX_SEED

MOST_ENTRIES = 2**31 - 1  # of a block, whose row starts are 32 bits wide
CHUNK = 1 << 24  # bytes whose checksum is computed together
OfBlock = Callable[[sp.csr_matrix, slice], NDArray[Any]]


class DamagedError(ValueError):
    """A block that is not what was written."""


@dataclass(frozen=True)
class BlockFacts:
    """What is known of a block without reading it."""

    n_rows: int
    n_columns: int
    n_entries: int
    checksum: int


@dataclass(frozen=True)
class Loaded:
    """A block in memory: its rows, of its own columns, and the numbers that these have in all blocks."""

    X: sp.csr_matrix
    columns: NDArray[np.int32]
    rows: slice


def path_of(folder: Path, number: int) -> Path:
    return folder / f"block-{number:05d}"


def write_block(folder: Path, number: int, X: sp.csr_matrix) -> BlockFacts:
    """Write rows as a block; the file is there when it is complete."""
    path = path_of(folder, number)
    is_there = np.zeros(X.shape[1], dtype=bool)
    is_there[X.indices] = True
    columns = np.flatnonzero(is_there).astype(np.int32)
    places = np.cumsum(is_there, dtype=np.int32) - np.int32(1)
    parts = [X.data, X.indptr.astype(np.int32), places[X.indices], columns]
    draft, checksum = path.with_name(f"{path.name}.partial"), 0
    with open(draft, "wb") as file:
        for part in parts:
            content = np.ascontiguousarray(part).view(np.uint8).data
            checksum = zlib.crc32(content, checksum)
            file.write(content)
    os.replace(draft, path)
    return BlockFacts(X.shape[0], len(columns), len(X.data), checksum)


@dataclass(frozen=True)
class Blocks:
    """A csr matrix in the files of a folder. ``column_weights`` are factors of its columns, applied when a block is read."""

    folder: Path
    facts: list[BlockFacts]
    n_columns: int
    dtype: Any
    column_weights: NDArray[Any] | None = None
    checked: set[int] = field(default_factory=set)

    @classmethod
    def open(cls, folder: Path) -> "Blocks":
        """Those that ``save`` wrote about."""
        found = json.loads((folder / "blocks.json").read_text())
        return cls(folder, [BlockFacts(**facts) for facts in found["facts"]], found["n_columns"], np.dtype(found["dtype"]))

    def save(self) -> None:
        """Write what is known of the blocks."""
        found = {"facts": [asdict(facts) for facts in self.facts], "n_columns": self.n_columns, "dtype": np.dtype(self.dtype).str}
        draft = self.folder / "blocks.json.partial"
        draft.write_text(json.dumps(found))
        os.replace(draft, self.folder / "blocks.json")

    @property
    def shape(self) -> tuple[int, int]:
        return sum(facts.n_rows for facts in self.facts), self.n_columns

    @property
    def size(self) -> int:
        """The number of stored values."""
        return sum(facts.n_entries for facts in self.facts)

    @property
    def slices(self) -> list[slice]:
        """The rows of each block."""
        ends = np.cumsum([facts.n_rows for facts in self.facts]).tolist()
        return [slice(end - facts.n_rows, end) for end, facts in zip(ends, self.facts, strict=True)]

    def scaled(self, weights: NDArray[Any] | None) -> "Blocks":
        """The same with its columns multiplied."""
        if weights is None:
            return self
        own = weights if self.column_weights is None else self.column_weights * weights
        return Blocks(self.folder, self.facts, self.n_columns, self.dtype, own, self.checked)

    def load(self, number: int) -> Loaded:
        """Map a block; it is checked the first time."""
        facts, path, rows = self.facts[number], path_of(self.folder, number), self.slices[number]
        dtypes = (self.dtype, np.int32, np.int32, np.int32)
        lengths = (facts.n_entries, facts.n_rows + 1, facts.n_entries, facts.n_columns)
        sizes = [length * np.dtype(dtype).itemsize for length, dtype in zip(lengths, dtypes, strict=True)]
        if path.stat().st_size != sum(sizes):
            raise DamagedError(f"{path} is damaged: it has another size than when it was written. Remove {self.folder}.")
        content = np.memmap(path, mode="r")
        if number not in self.checked:
            checksum = 0
            for first in range(0, len(content), CHUNK):
                checksum = zlib.crc32(content[first : first + CHUNK].data, checksum)
            if checksum != facts.checksum:
                raise DamagedError(f"{path} is damaged: its checksum is not that of what was written. Remove {self.folder}.")
            self.checked.add(number)
        ends = np.cumsum(sizes)
        pieces = [np.asarray(content[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
        data, starts, places, columns = (piece.view(dtype) for piece, dtype in zip(pieces, dtypes, strict=True))
        X = sp.csr_matrix((data, places, starts), shape=(facts.n_rows, facts.n_columns), copy=False)
        if self.column_weights is not None:
            X = scale_columns(X, self.column_weights[columns])
        return Loaded(X, columns, rows)

    def visit(self, numbers: Sequence[int], work: Callable[[Loaded], None]) -> None:
        """Work on these blocks, in this order. One is in memory at a time, while the system reads the next one ahead."""
        for number, following in zip(numbers, [*numbers[1:], None], strict=True):
            if following is not None:
                self._read_ahead(following)
            work(self.load(number))

    def _read_ahead(self, number: int) -> None:
        if not hasattr(mmap, "MADV_WILLNEED") or not self.facts[number].n_rows:
            return
        with open(path_of(self.folder, number), "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            content.madvise(mmap.MADV_WILLNEED)

    def sum_by_column(self, of_block: OfBlock) -> NDArray[Any]:
        """Add up what a function finds for the columns of each block."""
        total: list[NDArray[Any]] = []

        def add(block: Loaded) -> None:
            found = of_block(block.X, block.rows)
            if not total:
                total.append(np.zeros((self.n_columns, *found.shape[1:]), dtype=found.dtype))
            total[0][block.columns] += found

        self.visit(range(len(self.facts)), add)
        return total[0]

    def by_row(self, of_block: OfBlock) -> NDArray[Any]:
        """What a function finds for the rows of each block, below each other."""
        found: list[NDArray[Any]] = []
        self.visit(range(len(self.facts)), lambda block: found.append(of_block(block.X, block.rows)))
        return np.concatenate(found)

    def mapped(self, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
        """Zeros in a file beside the blocks, which need not fit into memory."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        if 0 in shape:
            return np.zeros(shape, dtype=self.dtype)
        return np.memmap(path, mode="w+", dtype=self.dtype, shape=shape)


class BlockLanes:
    """As ``Lanes``, on blocks. It is its own solver, and works on the very arrays that it starts from."""

    def __init__(
        self,
        X: Blocks,
        table_rows: NDArray[np.int32],
        shape: tuple[int, ...],
        row_weights: NDArray[Any] | None,
        options: Options,
    ) -> None:
        self.X, self.table_rows, self.shape, self.row_weights, self.options = X, table_rows, shape, row_weights, options
        self.n_lanes = shape[2]
        self.random = np.random.default_rng(options.seed)
        self.solver = self

    def start_from(self, weights: NDArray[Any], offsets: NDArray[Any], duals: NDArray[Any]) -> None:
        self._weights, self._offsets, self._duals = weights, offsets, duals

    def weights(self) -> NDArray[Any]:
        return self._weights

    def duals(self) -> NDArray[Any]:
        return self._duals

    def sweep(self, table: Table, n_sweeps: int) -> None:
        """So many sweeps over each block, in random order."""

        def work(block: Loaded, visits: Any, lanes: Lanes) -> None:
            lanes.sweep(table, n_sweeps)
            self._weights[block.columns] = lanes.solver.weights()
            found = lanes.solver.duals()
            moved = found.sum(axis=0, dtype=np.float64) - self._duals[visits].sum(axis=0, dtype=np.float64)
            self._offsets = self._offsets + (self.options.rho * moved).astype(self._offsets.dtype)
            self._duals[visits] = found

        self._visit(table, work)

    def certify(self, table: Table) -> dict[str, NDArray[np.float64]]:
        """The sums of the certificate over all blocks."""
        total = dict[str, NDArray[np.float64]]()

        def work(block: Loaded, visits: Any, lanes: Lanes) -> None:
            for name, values in lanes.certify(table).items():
                total[name] = total[name] + values if name in total else values

        self._visit(table, work)
        return total

    def score(self, rows: NDArray[np.uint32], first_lane: int, n_wanted: int) -> NDArray[Any]:
        """Scores of some rows, without offsets."""
        found = np.zeros((len(rows), n_wanted), dtype=self.X.dtype)
        order = np.argsort(rows, kind="stable")
        ordered = rows[order].astype(np.intp)

        def work(block: Loaded) -> None:
            own = slice(*np.searchsorted(ordered, [block.rows.start, block.rows.stop]))
            weights = self._weights[block.columns, first_lane : first_lane + n_wanted]
            found[order[own]] = block.X[ordered[own] - block.rows.start] @ weights

        firsts = [rows_of.start for rows_of in self.X.slices]
        self.X.visit(np.unique(np.searchsorted(firsts, ordered, side="right") - 1).tolist(), work)
        return found

    def _visit(self, table: Table, work: Callable[[Loaded, Any, Lanes], None]) -> None:
        """Work on the blocks whose rows demand anything, in random order, each with its visits and a solver in its state."""
        is_asked = np.any(table, axis=(1, 2, 3))
        n_rows = self.X.shape[0]
        firsts = range(0, len(self.table_rows), max(n_rows, 1))

        def visits_of(rows: slice) -> Any:
            if len(firsts) == 1:
                return rows
            return np.concatenate([np.arange(first + rows.start, first + rows.stop) for first in firsts])

        def with_solver(block: Loaded) -> None:
            visits = visits_of(block.rows)
            weights = None if self.row_weights is None else self.row_weights[block.rows]
            # Another order of the rows every time: with the same one, sweeps converge more slowly.
            options = replace(self.options, seed=int(self.random.integers(MAX_SEED)))
            lanes = Lanes(block.X, self.table_rows[visits], self.shape, weights, options)
            lanes.solver.start_from(self._weights[block.columns], self._offsets, np.ascontiguousarray(self._duals[visits]))
            work(block, visits, lanes)

        order = self.random.permutation(len(self.X.facts)).tolist()
        slices = self.X.slices
        self.X.visit([i for i in order if is_asked[self.table_rows[visits_of(slices[i])]].any()], with_solver)


Rows = Any  # a csr matrix, an array or Blocks


def sum_by_column(X: Rows, of_rows: OfBlock) -> NDArray[Any]:
    """What a function of some rows finds for their columns, added up over all rows."""
    return X.sum_by_column(of_rows) if isinstance(X, Blocks) else of_rows(X, slice(None))


def by_row(X: Rows, of_rows: OfBlock) -> NDArray[Any]:
    """What a function of some rows finds for each of them."""
    return X.by_row(of_rows) if isinstance(X, Blocks) else of_rows(X, slice(None))


def scaled(X: Rows, weights: NDArray[Any] | None) -> Rows:
    """X with its columns multiplied by the weights, if there are any."""
    return X.scaled(weights) if isinstance(X, Blocks) else scale_columns(X, weights)


def lanes_of(X: Rows, *arguments: Any) -> Any:
    """A solver for these rows."""
    return BlockLanes(X, *arguments) if isinstance(X, Blocks) else Lanes(X, *arguments)


def zero_duals(X: Rows, shape: tuple[int, ...]) -> NDArray[Any]:
    """Duals of all visits: of rows on disk, on disk too."""
    return X.mapped("duals", shape) if isinstance(X, Blocks) else np.zeros(shape, dtype=X.dtype)


def kept_duals(X: Rows, duals: NDArray[Any]) -> NDArray[Any]:
    """A copy of the duals, where they are."""
    if not isinstance(X, Blocks):
        return duals.copy()
    found = X.mapped("best", duals.shape)
    found[:] = duals
    return found
