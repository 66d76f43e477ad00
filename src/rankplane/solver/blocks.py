"""Rows on disk, in blocks of which some are in memory at a time, and solves over them (after LIBLINEAR-CDBLOCK).

A block is a file with a csr matrix of the columns that occur in it. Solves put some blocks together, drawn at random, and take
several sweeps over their rows: the weights of their columns go into a solver, which starts from the duals of the rows, and come
back out. So each sweep sees the newest weights, as in memory.

**Other blocks together every time.** What all rows share, above all the offset, ties the duals of the rows together: their sum
must fit, however it is split among them. Rows that are swept together settle on a sum of their own and hold on to it, since giving
way alone would move the offset for all others. With m rows of equal length in each set, the error of a set's mean shrinks by
1 / (1 + m) of itself in a visit, where in memory each row's own shrinks by half. Among the same sets of rows it therefore takes
forever to even out. Where sets are drawn anew from small blocks, the means of blocks even out within each set, and what is left is
the means of random sets, which are k times closer together, for k blocks, in the mean square, after every round.
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
Sums = dict[str, NDArray[np.float64]]
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
    """Blocks in memory: their rows, of the columns that occur in them, and the numbers that both have in all blocks.

    Those of the rows are a slice if it is a single block.
    """

    X: sp.csr_matrix
    columns: NDArray[np.int32]
    rows: Any


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


class Room:
    """Arrays that are used again and again: new ones would be cleared by the system, which takes as long as a sweep."""

    def __init__(self) -> None:
        self.arrays = dict[str, NDArray[Any]]()

    def array(self, name: str, length: int, dtype: Any) -> NDArray[Any]:
        """The array of that name, with whatever it holds."""
        if name not in self.arrays or len(self.arrays[name]) < length or self.arrays[name].dtype != dtype:
            self.arrays.pop(name, None)
            self.arrays[name] = np.empty(length, dtype=dtype)
        return self.arrays[name][:length]


@dataclass(frozen=True)
class Blocks:
    """A csr matrix in the files of a folder. Solves have ``n_together`` blocks in memory at a time. ``column_weights`` are factors
    of its columns, applied when a block is read.
    """

    folder: Path
    facts: list[BlockFacts]
    n_columns: int
    dtype: Any
    n_together: int = 1
    column_weights: NDArray[Any] | None = None
    checked: set[int] = field(default_factory=set)
    room: Room = field(default_factory=Room)

    @classmethod
    def open(cls, folder: Path) -> "Blocks":
        """Those that ``save`` wrote about."""
        found = json.loads((folder / "blocks.json").read_text())
        facts = [BlockFacts(**facts) for facts in found["facts"]]
        return cls(folder, facts, found["n_columns"], np.dtype(found["dtype"]), found["n_together"])

    def save(self) -> None:
        """Write what is known of the blocks."""
        found: dict[str, Any] = {"facts": [asdict(facts) for facts in self.facts], "n_columns": self.n_columns}
        found |= {"dtype": np.dtype(self.dtype).str, "n_together": self.n_together}
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
        return replace(self, column_weights=own)

    def load(self, numbers: Sequence[int]) -> Loaded:
        """Read blocks, and put them together. The arrays are those of the load before: one is in memory at a time."""
        slices, known = self.slices, [self.facts[number] for number in numbers]
        n_rows, n_entries = sum(facts.n_rows for facts in known), sum(facts.n_entries for facts in known)
        data, indices = self.room.array("data", n_entries, self.dtype), self.room.array("indices", n_entries, np.int32)
        starts, columns, row, entry = np.zeros(n_rows + 1, dtype=np.int32), list[NDArray[np.int32]](), 0, 0
        for number, facts in zip(numbers, known, strict=True):
            of_block, own = np.empty(facts.n_rows + 1, dtype=np.int32), slice(entry, entry + facts.n_entries)
            columns.append(np.empty(facts.n_columns, dtype=np.int32))
            self._read(number, [data[own], of_block, indices[own], columns[-1]])
            np.add(of_block[1:], entry, out=starts[row + 1 : row + facts.n_rows + 1])
            row, entry = row + facts.n_rows, own.stop
        every = columns[0] if len(columns) == 1 else self._renumber(columns, known, indices)
        X = sp.csr_matrix((n_rows, len(every)), dtype=self.dtype)
        X.data, X.indices, X.indptr = data, indices, starts  # as they are, without the copies of its constructor
        if self.column_weights is not None:
            X = scale_columns(X, self.column_weights[every])
        rows = slices[numbers[0]] if len(numbers) == 1 else np.concatenate([np.r_[slices[number]] for number in numbers])
        return Loaded(X, every, rows)

    def _renumber(self, columns: list[NDArray[np.int32]], known: list[BlockFacts], indices: NDArray[np.int32]) -> NDArray[np.int32]:
        """Number the columns of several blocks together, and rename the indices of their entries; returns the columns."""
        is_there = np.zeros(self.n_columns, dtype=bool)
        for of_block in columns:
            is_there[of_block] = True
        places, entry = np.cumsum(is_there, dtype=np.int32) - np.int32(1), 0
        for of_block, facts in zip(columns, known, strict=True):
            own = slice(entry, entry + facts.n_entries)
            indices[own] = places[of_block][indices[own]]
            entry = own.stop
        return np.flatnonzero(is_there).astype(np.int32)

    def _read(self, number: int, arrays: list[NDArray[Any]]) -> None:
        """Fill the arrays of a block; it is checked the first time."""
        path = path_of(self.folder, number)
        with open(path, "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size != sum(array.nbytes for array in arrays):
                raise DamagedError(f"{path} is damaged: it has another size than when it was written. Remove {self.folder}.")
            for array in arrays:
                left = array.view(np.uint8).data
                while len(left) and (n_read := file.readinto(left)):
                    left = left[n_read:]
        if number not in self.checked:
            checksum = 0
            for array in arrays:
                checksum = zlib.crc32(array.view(np.uint8).data, checksum)
            if checksum != self.facts[number].checksum:
                raise DamagedError(f"{path} is damaged: its checksum is not that of what was written. Remove {self.folder}.")
            self.checked.add(number)

    def visit(self, groups: Sequence[Sequence[int]], work: Callable[[Loaded], None]) -> None:
        """Work on these groups of blocks, in this order. One is in memory at a time, while the system reads the next one ahead."""
        for numbers, following in zip(groups, [*groups[1:], []], strict=True):
            for number in following:
                self._read_ahead(number)
            work(self.load(numbers))

    @property
    def each(self) -> list[list[int]]:
        """Every block on its own."""
        return [[number] for number in range(len(self.facts))]

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

        self.visit(self.each, add)
        return total[0]

    def by_row(self, of_block: OfBlock) -> NDArray[Any]:
        """What a function finds for the rows of each block, below each other."""
        found: list[NDArray[Any]] = []
        self.visit(self.each, lambda block: found.append(of_block(block.X, block.rows)))
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

    def sweep(self, table: Table, n_sweeps: int) -> Sums:
        """So many sweeps over each block, in random order. Returns the sums of the certificate, each block's as it was before."""
        total: Sums = {}

        def work(block: Loaded, visits: Any, lanes: Lanes) -> None:
            add_to(total, lanes.certify(table))
            lanes.sweep(table, n_sweeps)
            self._weights[block.columns] = lanes.solver.weights()
            found = lanes.solver.duals()
            moved = found.sum(axis=0, dtype=np.float64) - self._duals[visits].sum(axis=0, dtype=np.float64)
            self._offsets = self._offsets + (self.options.rho * moved).astype(self._offsets.dtype)
            self._duals[visits] = found

        self._visit(table, work)
        return total

    def certify(self, table: Table) -> Sums:
        """The sums of the certificate over all blocks."""
        total: Sums = {}
        self._visit(table, lambda block, visits, lanes: add_to(total, lanes.certify(table)))
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
        self.X.visit([[number] for number in np.unique(np.searchsorted(firsts, ordered, side="right") - 1).tolist()], work)
        return found

    def _visit(self, table: Table, work: Callable[[Loaded, Any, Lanes], None]) -> None:
        """Work on the blocks whose rows demand anything, some at a time, with their visits and a solver in their state."""
        is_asked = np.any(table, axis=(1, 2, 3))
        n_rows = self.X.shape[0]
        firsts = range(0, len(self.table_rows), max(n_rows, 1))

        def visits_of(rows: Any) -> Any:
            if len(firsts) == 1:
                return rows
            numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            return np.concatenate([first + numbers for first in firsts])

        def with_solver(block: Loaded) -> None:
            visits = visits_of(block.rows)
            row_weights = None if self.row_weights is None else self.row_weights[block.rows]
            # Another order of the rows every time: with the same one, sweeps converge more slowly.
            options = replace(self.options, seed=int(self.random.integers(MAX_SEED)))
            lanes = Lanes(block.X, self.table_rows[visits], self.shape, row_weights, options)
            weights = self.X.room.array("weights", len(block.columns) * self.n_lanes, self.X.dtype).reshape(-1, self.n_lanes)
            np.take(self._weights, block.columns, axis=0, out=weights, mode="clip")
            lanes.solver.start_from(weights, self._offsets, np.ascontiguousarray(self._duals[visits]))
            work(block, visits, lanes)

        # Other blocks together every time: see the top of the file.
        order, slices = self.random.permutation(len(self.X.facts)).tolist(), self.X.slices
        wanted = [i for i in order if is_asked[self.table_rows[visits_of(slices[i])]].any()]
        n_groups = max(1, -(-len(wanted) // self.X.n_together))
        self.X.visit([wanted[first::n_groups] for first in range(n_groups)], with_solver)


def add_to(total: Sums, sums: Sums) -> None:
    for name, values in sums.items():
        total[name] = total[name] + values if name in total else values


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
