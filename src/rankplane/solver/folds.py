"""Cross-validation as one wider table: folds are lanes.

Lane ``(fold, plane)`` demands nothing of the rows that the fold holds out. So one solve trains the planes of all folds, and every
row gets scores from planes that were not trained on it.
"""

import math
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
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

    def without_zero_weights(self, weights: NDArray[np.float64] | None) -> "Folds":
        """Drop held-out rows of weight zero, and folds that hold out no others."""
        if weights is None:
            return self
        tests = [test[weights[test] > 0] for test in self.test]
        kept = [fold for fold, test in enumerate(tests) if len(test)]
        return Folds(self.is_train[kept], [tests[fold] for fold in kept])

    def one_by_one(self) -> list["Folds"]:
        return [Folds(self.is_train[[fold]], [test]) for fold, test in enumerate(self.test)]


def make_folds(cv: Any, X: Any, rank_numbers: NDArray[np.int32], groups: Any, seed: int) -> Folds:
    """Folds from a number (stratified and shuffled, or by groups if given), a splitter, or pairs of index arrays."""
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
        # A rank with fewer rows than folds is missing from some folds, which the models allow.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        pairs = list(splitter.split(X, rank_numbers, groups))
    is_train = np.zeros((len(pairs), n_rows), dtype=bool)
    for fold, (train, _) in enumerate(pairs):
        is_train[fold, train] = True
    return Folds(is_train, [np.asarray(test) for _, test in pairs])


def folds_of_groups(n_folds: int, rank_numbers: NDArray[np.int32], groups: NDArray[Any], seed: int) -> Folds:
    """Folds that keep groups together, at most as many as there are groups."""
    if len(groups) != len(rank_numbers):
        raise ValueError(f"groups must have one entry per row, {len(rank_numbers)}. Got {len(groups)}.")
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ValueError("groups must hold at least two different values, which folds can keep apart. Got one.")
    n_folds = min(n_folds, n_groups)
    shares = np.full(n_folds, 1 / n_folds)
    fold_of = assign_parts(groups, rank_numbers, shares, seed)
    if np.all(fold_of == fold_of[0]):  # where each group is a whole rank, one fold may get them all; then split by size only
        fold_of = assign_parts(groups, np.zeros_like(rank_numbers), shares, seed)
    return folds_of_parts(fold_of, np.unique(fold_of))


def folds_of_parts(part_of: NDArray[np.intp], held_out: Sequence[int] | NDArray[np.intp]) -> Folds:
    """A fold for each of these parts, which holds it out."""
    return Folds(np.array([part_of != part for part in held_out]), [np.flatnonzero(part_of == part) for part in held_out])


def enough_folds(n_folds: int, n_enough: int, X: Any, rank_numbers: NDArray[np.int32], groups: Any, seed: int) -> Folds:
    """Of ``n_folds`` folds only the first few, where these hold out enough rows; of very many rows a single fold of just these.

    So the rows that planes are trained on are never fewer than with all folds, and as many are held out as are needed: up to
    ``n_enough`` all of them, then ``n_enough`` in one fold after the other, up to a fifth of the rows in one.
    """
    n_rows = len(rank_numbers)
    n_in_fold = min(n_rows / n_folds, n_enough)
    n_kept = min(n_folds, math.ceil(n_enough / n_in_fold))
    if n_kept == n_folds:
        return make_folds(n_folds, X, rank_numbers, groups, seed)
    shares = np.full(n_kept, n_in_fold / n_rows)
    part_of = assign_parts(
        np.arange(n_rows) if groups is None else np.asarray(groups), rank_numbers, np.append(shares, 1 - shares.sum()), seed
    )
    sizes = np.bincount(part_of, minlength=n_kept)[:n_kept]
    if np.any(np.abs(sizes - n_in_fold) > n_in_fold / 2):  # large groups do not fall into parts of a given size
        return make_folds(n_folds, X, rank_numbers, groups, seed)
    return folds_of_parts(part_of, range(n_kept))


def assign_parts(groups: NDArray[Any], rank_numbers: NDArray[Any], shares: NDArray[np.float64], seed: int) -> NDArray[np.intp]:
    """Assign every row to a part, such that groups stay together and every part gets about its share of every rank.

    Groups of several rows are assigned first, in order of decreasing size, each to the part that lacks its ranks most. Groups of
    one row, which may be many, then fill the parts up.
    """
    rng = np.random.default_rng(seed)
    _, group_of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    lacking = shares[:, None] * np.bincount(rank_numbers)
    wanted = np.maximum(lacking, 1e-9)
    by_group, ends_of_group = np.argsort(group_of, kind="stable"), np.cumsum(sizes)
    part_of = np.zeros(len(rank_numbers), dtype=np.intp)
    shuffled = rng.permutation(np.flatnonzero(sizes > 1))
    for group in shuffled[np.argsort(-sizes[shuffled], kind="stable")].tolist():
        rows = by_group[ends_of_group[group] - sizes[group] : ends_of_group[group]]
        ranks = rank_numbers[rows]
        part = int(np.argmax((lacking[:, ranks] / wanted[:, ranks]).sum(axis=1)))
        part_of[rows] = part
        np.subtract.at(lacking[part], ranks, 1)
    singles = rng.permutation(np.flatnonzero(sizes[group_of] == 1))
    # Rounding errors are carried over from one rank to the next, so that they do not add up.
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
    """For each row of X its row of the wide table, and for each pattern the folds that are trained on it.

    A pattern is a set of folds that train on a row. Row ``pattern * n + r`` of the wide table is row ``r`` of the model's table on
    the lanes of those folds.
    """
    n_copies = len(table_rows) // folds.is_train.shape[1]
    # As bytes, so that up to eight folds are one number per row, which is far quicker to sort than a row of a table.
    packed = np.packbits(folds.is_train, axis=0)
    _, first, of_row = np.unique(packed[0] if len(packed) == 1 else packed.T, axis=0, return_index=True, return_inverse=True)
    patterns = folds.is_train[:, first].T
    wide_rows = np.tile(of_row.ravel(), n_copies) * table.shape[0] + table_rows
    always = np.ones((len(patterns), int(keeps_all)), dtype=bool)
    return wide_rows.astype(np.int32), np.column_stack([always, patterns])


def wide_table(table: Table, patterns: NDArray[Any], factors: NDArray[np.float64]) -> Table:
    """The model's table on the lanes of a pattern's folds, zero on the others. C is multiplied by the factor of each fold."""
    n_patterns, n_copies = patterns.shape
    n_rows, n_cuts, n_lanes, n_fields = table.shape
    scaled = np.repeat(table[:, :, None], n_copies, axis=2)
    scaled[..., :2] *= factors[:, None, None]
    scaled[..., 4] /= factors[:, None]
    wide = np.where(patterns.astype(bool)[:, None, None, :, None, None], scaled[None], 0.0)
    return wide.reshape(n_patterns * n_rows, n_cuts, n_copies * n_lanes, n_fields)


@dataclass(frozen=True)
class FoldScores:
    """Results at one point of a path: held-out scores by fold, sweeps, and whether the solution is that of a smaller C."""

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
    """The planes of all folds, and with ``keeps_all`` also those of all rows, in one solve.

    ``scales_C`` divides C of a fold by its share of the rows, so that the sum of all losses has the same weight as in a fit of all
    rows. While C is so small that most duals are at their bounds, scores grow with the number of rows, so a calibrator of the
    scores of folds would not fit the scores of the final planes.
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
        scales_C: bool = False,
    ) -> None:
        self.folds = folds
        self.n_planes = table.shape[2]
        self.n_first = int(keeps_all)
        wide_rows, self.patterns = widen(table, table_rows, folds, keeps_all=keeps_all)
        shares = folds.is_train.mean(axis=1) if scales_C else np.ones(len(folds))
        self.factors = np.concatenate([np.ones(self.n_first), 1 / shares])
        shape = wide_table(table, self.patterns, self.factors).shape
        self.lanes = Lanes(X, wide_rows, shape, row_weights, options)

    def run(self, table: Table, frozen: Sequence[bool] = (), on_report: OnReport | None = None) -> None:
        """Solve. Planes of all rows, if kept, get a certificate."""
        n_certified = self.n_first * self.n_planes
        self.lanes.run(wide_table(table, self.patterns, self.factors), frozen=frozen, n_certified=n_certified, on_report=on_report)

    def take_planes(self) -> Planes:
        """The planes of all rows. They are moved out of the solver, which cannot be used afterwards."""
        return self.lanes.take_planes(self.n_first * self.n_planes)

    def held_out(self) -> list[NDArray[Any]]:
        """Plane scores of the held-out rows, by fold."""
        n_planes = self.n_planes
        offsets = self.lanes.solver.offsets()
        found = []
        for fold, test in enumerate(self.folds.test):
            first = (fold + self.n_first) * n_planes
            # Add the bias of each lane, or make one column per threshold.
            found.append(self.lanes.score(test.astype(np.uint32), first, n_planes) + offsets[:, first : first + n_planes].ravel())
        return found

    def walk(self, tables: list[Table], factors: list[float], on_report: OnReport | None = None) -> Iterator[FoldScores]:
        """Solve the tables in turn, whose bounds are each wider by ``factor`` than those of the table before.

        A solve starts from the solution of the one before, stretched as far as that helps. A lane none of whose duals is at a bound
        is also the solution of every wider table and is left alone; when that holds for all lanes, so is the rest of the path.
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
                sweeps = self.lanes.n_sweeps
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
    on_part: Callable[[float], None] = lambda share: None,
) -> Generator[FoldScores, None, None]:
    """Walk all folds along a path, point by point: as lanes of one solve if they share X, else side by side.

    Closing the iterator ends the solves. ``on_part`` is called with every share of a point that is done.
    """
    alone = [folds] if is_shared else folds.one_by_one()
    is_abandoned = threading.Event()

    def stop_if_abandoned(*_: Any) -> None:
        if is_abandoned.is_set():
            raise KeyboardInterrupt

    def walk(some: Folds, n_threads: int) -> Iterator[FoldScores]:
        for point in make(some, replace(options, n_threads=n_threads)).walk(tables, factors, stop_if_abandoned):
            on_part(1 / len(alone))
            yield point

    # Threads beyond one per fold go to the solves. The result depends on how many each solve has.
    threads = np.array_split(np.arange(options.n_threads), len(alone))
    walks = [walk(some, max(1, len(own))) for some, own in zip(alone, threads, strict=True)]
    if options.n_threads == 1 or len(alone) == 1:
        yield from map(FoldScores.joined, zip(*walks, strict=True))
        return
    found: list[deque[FoldScores]] = [deque() for _ in walks]
    with ThreadPoolExecutor(options.n_threads) as pool:
        running: dict[Future[FoldScores | None], int] = {pool.submit(next, walk, None): fold for fold, walk in enumerate(walks)}
        try:
            for _ in tables:
                while not all(found):
                    for done in wait(running, return_when=FIRST_COMPLETED).done:
                        fold, point = running.pop(done), done.result()
                        if point is not None:
                            found[fold].append(point)
                            # The fold goes on to its next point before the others have finished this one, so that no thread waits.
                            # If the walk ends here, a solve or two were for nothing.
                            running[pool.submit(next, walks[fold], None)] = fold
                yield FoldScores.joined([points.popleft() for points in found])
        finally:
            # Running solves stop after their next sweep, also after Ctrl-C, which reaches this thread only.
            is_abandoned.set()
            pool.shutdown(wait=False, cancel_futures=True)
