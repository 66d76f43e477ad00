"""Folds are lanes: cross-validation as one wider table.

Lane ``(fold, plane)`` asks nothing of the rows that the fold holds out, so one solve trains the planes of all folds, and every
row gets scores from planes that never saw it.
"""

import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from rankplane.solver.lanes import Lanes, OnReport, Options
from rankplane.solver.planes import Planes
from rankplane.solver.tables import Table


@dataclass(frozen=True)
class Folds:
    """``is_train`` is ``(folds, rows)``; ``test`` has the held-out rows of each fold."""

    is_train: NDArray[np.bool_]
    test: list[NDArray[np.intp]]

    def __len__(self) -> int:
        return len(self.test)

    def counting(self, weights: NDArray[np.float64] | None) -> "Folds":
        """Without the held-out rows that count nothing, and without folds that hold out no others."""
        if weights is None:
            return self
        tests = [test[weights[test] > 0] for test in self.test]
        kept = [fold for fold, test in enumerate(tests) if len(test)]
        return Folds(self.is_train[kept], [tests[fold] for fold in kept])

    def one_by_one(self) -> list["Folds"]:
        return [Folds(self.is_train[[fold]], [test]) for fold, test in enumerate(self.test)]


def make_folds(cv: Any, X: Any, rank_numbers: NDArray[np.int32], groups: Any, seed: int) -> Folds:
    """Folds from a number (stratified, shuffled; whole groups if there are any), a splitter, or pairs of index arrays."""
    n_rows = len(rank_numbers)
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= n_rows:
            raise ValueError(f"cv must be a splitter or a number of folds from 2 to the number of rows, {n_rows}. Got {cv}.")
        if groups is not None:
            return folds_of_groups(int(cv), rank_numbers, np.asarray(groups), seed)
        if np.bincount(rank_numbers).max() >= cv:
            splitter = StratifiedKFold(int(cv), shuffle=True, random_state=seed)
        else:
            splitter = KFold(int(cv), shuffle=True, random_state=seed)
    else:
        splitter = check_cv(cv, rank_numbers, classifier=True)
    with warnings.catch_warnings():
        # A rank with fewer rows than folds is missing from some of them, which the models allow.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        pairs = list(splitter.split(X, rank_numbers, groups))
    is_train = np.zeros((len(pairs), n_rows), dtype=bool)
    for fold, (train, _) in enumerate(pairs):
        is_train[fold, train] = True
    return Folds(is_train, [np.asarray(test) for _, test in pairs])


def folds_of_groups(n_folds: int, rank_numbers: NDArray[np.int32], groups: NDArray[Any], seed: int) -> Folds:
    """As many folds as asked for, or as there are groups."""
    if len(groups) != len(rank_numbers):
        raise ValueError(f"groups must have one entry per row, {len(rank_numbers)}. Got {len(groups)}.")
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ValueError("groups must hold at least two different values, which folds can keep apart. Got one.")
    n_folds = min(n_folds, n_groups)
    shares = np.full(n_folds, 1 / n_folds)
    fold_of = deal(groups, rank_numbers, shares, seed)
    if np.all(fold_of == fold_of[0]):  # where groups are whole ranks, a fold may want them all; by size it does not
        fold_of = deal(groups, np.zeros_like(rank_numbers), shares, seed)
    tests = [np.flatnonzero(fold_of == fold) for fold in np.unique(fold_of)]
    return Folds(np.array([fold_of != fold for fold in np.unique(fold_of)]), tests)


def deal(groups: NDArray[Any], rank_numbers: NDArray[Any], shares: NDArray[np.float64], seed: int) -> NDArray[np.intp]:
    """A part for every row: rows of a group share theirs, and every part gets about its share of every rank.

    Groups of several rows are dealt first, large ones before small ones, each to the part that lacks its ranks most; groups of
    one row, which may be very many, then fill up what is lacking.
    """
    rng = np.random.default_rng(seed)
    _, group_of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    lacking = shares[:, None] * np.bincount(rank_numbers)
    wanted = np.maximum(lacking, 1e-9)
    rows_of_group = np.split(np.argsort(group_of, kind="stable"), np.cumsum(sizes)[:-1])
    part_of = np.zeros(len(rank_numbers), dtype=np.intp)
    shuffled = rng.permutation(np.flatnonzero(sizes > 1))
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")].tolist():
        rows = rows_of_group[group]
        ranks = rank_numbers[rows]
        part = int(np.argmax((lacking[:, ranks] / wanted[:, ranks]).sum(axis=1)))
        part_of[rows] = part
        np.subtract.at(lacking[part], ranks, 1)
    singles = rng.permutation(np.flatnonzero(sizes[group_of] == 1))
    # Where parts end among the single rows of all ranks so far: what rounding takes from a part in one rank, the next gives back.
    ends = np.zeros(len(shares))
    for rank in np.unique(rank_numbers[singles]).tolist():
        rows = singles[rank_numbers[singles] == rank]
        quotas = np.maximum(lacking[:, rank], 0)
        ends += np.cumsum(quotas) * len(rows) / max(quotas.sum(), 1e-9)
        last = np.clip(np.maximum.accumulate(np.round(ends)), 0, len(rows)).astype(np.intp)
        last[-1] = len(rows)
        ends -= last
        part_of[rows] = np.searchsorted(last, np.arange(len(rows)), side="right")
    return part_of


def widen(
    table: Table, table_rows: NDArray[np.int32], folds: Folds, *, keeps_all: bool
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Which table row each row of X has in the wide table, and which folds each pattern of the wide table trains on.

    A pattern is a set of folds that a row takes part in; wide table row ``pattern * n + r`` is row ``r`` of the model's table
    on the lanes of those folds.
    """
    n_copies = len(table_rows) // folds.is_train.shape[1]
    patterns, of_row = np.unique(folds.is_train.T, axis=0, return_inverse=True)
    wide_rows = np.tile(of_row.ravel(), n_copies) * table.shape[0] + table_rows
    always = np.ones((len(patterns), int(keeps_all)), dtype=bool)
    return wide_rows.astype(np.int32), np.column_stack([always, patterns])


def wide_table(table: Table, patterns: NDArray[Any], factors: NDArray[np.float64]) -> Table:
    """The model's table on the lanes of the folds that a pattern names, nothing on the others; C times each fold's factor."""
    n_patterns, n_copies = patterns.shape
    n_rows, n_cuts, n_lanes, n_fields = table.shape
    priced = np.repeat(table[:, :, None], n_copies, axis=2)
    priced[..., :2] *= factors[:, None, None]
    priced[..., 4] /= factors[:, None]
    wide = np.where(patterns.astype(bool)[:, None, None, :, None, None], priced[None], 0.0)
    return wide.reshape(n_patterns * n_rows, n_cuts, n_copies * n_lanes, n_fields)


@dataclass(frozen=True)
class FoldScores:
    """What one point of a path found: plane scores of each fold's held-out rows, sweeps made, and whether C was out of reach."""

    held_out: list[NDArray[Any]]
    n_sweeps: NDArray[np.intp]
    is_settled: bool
    seconds: float = 0.0

    @classmethod
    def joined(cls, parts: Sequence["FoldScores"]) -> "FoldScores":
        return cls(
            [scores for part in parts for scores in part.held_out],
            np.concatenate([part.n_sweeps for part in parts]),
            all(part.is_settled for part in parts),
            sum(part.seconds for part in parts),
        )


class FoldLanes:
    """The planes of all folds, and with ``keeps_all`` those of all rows too, in one solve.

    ``evens_out`` raises C where a fold has fewer rows, so that all rows together pull as hard as in a fit of all rows. While C
    is so small that most duals sit at their bound, scores grow with the number of rows, and a calibrator of the folds' scores
    would otherwise misread those of the fit.
    """

    def __init__(
        self,
        X: Any,
        table: Table,
        table_rows: NDArray[np.int32],
        row_weights: NDArray[Any] | None,
        folds: Folds,
        options: Options,
        *,
        keeps_all: bool = False,
        evens_out: bool = False,
    ) -> None:
        self.folds = folds
        self.n_planes = table.shape[2]
        self.n_first = int(keeps_all)
        wide_rows, self.patterns = widen(table, table_rows, folds, keeps_all=keeps_all)
        shares = folds.is_train.mean(axis=1) if evens_out else np.ones(len(folds))
        self.factors = np.concatenate([np.ones(self.n_first), 1 / shares])
        shape = wide_table(table, self.patterns, self.factors).shape
        self.lanes = Lanes(X, wide_rows, shape, row_weights, options)

    def run(self, table: Table, frozen: Sequence[bool] = (), on_report: OnReport | None = None) -> None:
        """Solve; planes of all rows, if kept, come with a certificate."""
        n_certified = self.n_first * self.n_planes
        self.lanes.run(wide_table(table, self.patterns, self.factors), frozen=frozen, n_certified=n_certified, on_report=on_report)

    def take_planes(self) -> Planes:
        """The planes of all rows, which were kept, for good."""
        return self.lanes.take_planes(self.n_first * self.n_planes)

    def held_out(self) -> list[NDArray[Any]]:
        """Per fold, the plane scores of the rows it holds out."""
        solver, n_planes = self.lanes.solver, self.n_planes
        offsets = solver.offsets()
        found = []
        for fold, test in enumerate(self.folds.test):
            first = (fold + self.n_first) * n_planes
            # Plus the bias of each lane, or one column per threshold.
            found.append(solver.score(test.astype(np.uint32), first, n_planes) + offsets[:, first : first + n_planes].ravel())
        return found

    def walk(self, tables: list[Table], factors: list[float], on_report: OnReport | None = None) -> Iterator[FoldScores]:
        """Solve for one table after the other, each a ``factor`` wider in its bounds than the one before.

        The solution of the last, stretched as far as that helps, is the first guess for the next. A lane none of whose duals
        touches a bound solves every wider table too and is left alone; when that holds for all, the rest of the path is the same.
        """
        n_lanes = self.lanes.n_lanes
        touches = [True] * n_lanes
        last: FoldScores | None = None
        for table, factor in zip(tables, factors, strict=True):
            start = time.perf_counter()
            if last is not None and not any(touches):
                last = FoldScores(last.held_out, np.zeros(n_lanes, dtype=np.intp), True)
            else:
                frozen = [not touching for touching in touches]
                if last is not None:
                    self.lanes.solver.stretch(factor, frozen)
                self.run(table, frozen, on_report)
                sweeps = np.array(self.lanes.solver.results()["n_sweeps"], dtype=np.intp)
                last = FoldScores(self.held_out(), sweeps, False)
                touches = self.lanes.solver.touch_bounds()
            last = replace(last, seconds=time.perf_counter() - start)
            yield last


def walk_folds(
    make: Callable[[Folds, Options], FoldLanes],
    folds: Folds,
    options: Options,
    tables: list[Table],
    factors: list[float],
    *,
    is_shared: bool,
    on_point: Callable[[int, int], None] = lambda place, n_parts: None,
) -> list[FoldScores]:
    """Walk all folds along a path: as lanes of one solve if they share X, else one by one, as many at a time as there are
    threads. ``on_point`` hears of the place of every point in the path, and one in how many parts of the folds it is for.
    """
    if is_shared:
        points = []
        for place, point in enumerate(make(folds, options).walk(tables, factors)):
            points.append(point)
            on_point(place, 1)
        return points
    is_abandoned = threading.Event()

    def stop_if_abandoned(*_: Any) -> None:
        if is_abandoned.is_set():
            raise KeyboardInterrupt

    def walk(fold: Folds) -> list[FoldScores]:
        walked = []
        for place, point in enumerate(make(fold, replace(options, n_threads=1)).walk(tables, factors, stop_if_abandoned)):
            walked.append(point)
            on_point(place, len(folds))
        return walked

    with ThreadPoolExecutor(options.n_threads) as pool:
        try:
            walks = list(pool.map(walk, folds.one_by_one()))
        except BaseException:
            # Ctrl-C reaches this thread only; those that solve hear of it after their next sweep.
            is_abandoned.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [FoldScores.joined(parts) for parts in zip(*walks, strict=True)]
