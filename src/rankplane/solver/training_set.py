"""The training data in the form the solver takes, and the solves on it: of all rows, of folds, or both at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankplane.labels import Labels
from rankplane.solver.column_weights import log_ratio_weights, scale_columns
from rankplane.solver.coupling import chain
from rankplane.solver.folds import FoldLanes, Folds, enough_folds, walk_folds
from rankplane.solver.lanes import MAX_LANES, OnReport, Options, solve_planes
from rankplane.solver.planes import Planes
from rankplane.solver.tables import Table

FEW = 5  # folds, below which they are cut into parts
Part = tuple[int, slice]  # a fold, and which of its rows
Values = NDArray[Any]


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows by fold: scores by planes that were not trained on them, rank numbers, sample weights."""

    scores: list[NDArray[Any]]
    ranks: list[NDArray[np.int32]]
    weights: list[NDArray[np.float64]] | None
    n_ranks: int

    @property
    def parts(self) -> list[Part]:
        """Folds, or parts of them where they are fewer than ``FEW``, so that most rows are left when
        one part is left out.
        """
        n_folds = len(self.ranks)
        n_each = 1 if n_folds >= FEW else -(-2 * FEW // n_folds)
        return [(fold, slice(i, None, n_each)) for fold, ranks in enumerate(self.ranks) for i in range(min(n_each, len(ranks)))]

    def of_parts(self) -> "HeldOut":
        """The same with parts for folds."""
        return HeldOut(
            self.cut(self.scores), self.cut(self.ranks), None if self.weights is None else self.cut(self.weights), self.n_ranks
        )

    def thinned(self, n_enough: int) -> "HeldOut":
        """About as many rows as are enough, the same share of every fold, if there are more."""
        step = max(1, sum(map(len, self.ranks)) // n_enough)
        weights = None if self.weights is None else [of_fold[::step] for of_fold in self.weights]
        return HeldOut([scores[::step] for scores in self.scores], [ranks[::step] for ranks in self.ranks], weights, self.n_ranks)

    def cut(self, by_fold: Sequence[Values]) -> list[Values]:
        """Values of each fold's rows, split by part."""
        return [by_fold[fold][rows] for fold, rows in self.parts]

    def joined(self, by_part: Sequence[Values]) -> list[Values]:
        """Values of each part's rows, joined by fold."""
        found = [np.empty((len(ranks), *by_part[0].shape[1:]), dtype=by_part[0].dtype) for ranks in self.ranks]
        for (fold, rows), values in zip(self.parts, by_part, strict=True):
            found[fold][rows] = values
        return found


@dataclass(frozen=True)
class TrainingSet:
    """The checked arguments of ``fit``, in the form the solver takes."""

    X: Any
    labels: Labels
    table_rows: NDArray[np.int32]
    row_weights: NDArray[np.float64] | None
    options: Options
    column_weight: NDArray[Any] | Literal["ranks"] | None = None
    sample_weights: NDArray[np.float64] | None = None  # as passed by the user; row_weights includes class weights

    def held_out(self, folds: Folds, scores: list[NDArray[Any]]) -> HeldOut:
        """The held-out rows of the folds, with their scores."""
        weights = None if self.sample_weights is None else [self.sample_weights[test] for test in folds.test]
        return HeldOut(scores, [self.labels.numbers[test] for test in folds.test], weights, self.labels.n_ranks)

    def with_gamma(self, gamma: float | None) -> "TrainingSet":
        """The same with another gamma of the kernel; None leaves it unchanged."""
        return self if gamma is None else replace(self, X=self.X.with_gamma(gamma))

    def with_coupling(self, coupling: float | None, n_planes: int) -> "TrainingSet":
        """The same with another coupling of the planes; None leaves it unchanged."""
        return self if coupling is None else replace(self, options=replace(self.options, coupling=chain(n_planes, coupling)))

    @property
    def learns_column_weights(self) -> bool:
        return isinstance(self.column_weight, str)

    def weights_of_columns(self, is_used: NDArray[np.bool_], n_threads: int) -> NDArray[Any] | None:
        """Column factors for a solve on the used rows. Learnt from these rows only, so that held-out rows do not leak."""
        if not isinstance(self.column_weight, str):
            return self.column_weight
        if self.row_weights is not None:
            is_used = is_used & (self.row_weights > 0)
        return log_ratio_weights(self.X, self.labels.numbers, self.labels.n_ranks, is_used, n_threads)

    def solve(self, table: Table, options: Options, on_report: OnReport | None = None) -> Planes:
        """The planes of all rows."""
        weights = self.weights_of_columns(np.ones(len(self.labels.numbers), dtype=bool), options.n_threads)
        X = scale_columns(self.X, weights, options.n_threads)
        planes = solve_planes(X, table, self.table_rows, options, row_weights=self.row_weights, on_report=on_report)
        return planes.for_columns(weights)

    def folds(self, table: Table, folds: Folds, options: Options, *, keeps_all: bool = False, scales_C: bool) -> FoldLanes:
        """Cross-validation as one solve: of any number of folds, or of one if column weights are learnt."""
        X = scale_columns(self.X, self.weights_of_columns(folds.is_train[0], options.n_threads), options.n_threads)
        return FoldLanes(X, table, self.table_rows, self.row_weights, folds, options, keeps_all=keeps_all, scales_C=scales_C)

    def solve_with_folds(self, table: Table, n_enough: int, on_report: OnReport | None = None) -> tuple[Planes, HeldOut]:
        """The planes of all rows, and held-out scores of all rows or of enough of them."""
        n_planes, options = table.shape[2], self.options
        # As many folds as fit into one pass beside the planes of all rows.
        n_folds = min(5, max(3, MAX_LANES // n_planes - 1), len(self.labels.numbers))
        folds = enough_folds(n_folds, n_enough, self.X, self.labels.numbers, None, options.seed).without_zero_weights(
            self.sample_weights
        )
        if isinstance(self.column_weight, str):
            planes = self.solve(table, options, on_report)
            make = partial(self.folds, table, scales_C=True)
            found = next(walk_folds(make, folds, options, [table], [1.0], is_shared=False)).held_out
        else:
            lanes = self.folds(table, folds, options, keeps_all=True, scales_C=True)
            lanes.run(table, on_report=on_report)
            found = lanes.held_out()
            planes = lanes.take_planes().for_columns(self.column_weight)
        return planes, self.held_out(folds, found)
