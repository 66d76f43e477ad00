"""What is learnt from, and the solves on it: of all rows, of folds, of both at once."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankplane.labels import Labels
from rankplane.solver.column_weights import scale_columns, telling_weights
from rankplane.solver.folds import FoldLanes, Folds, make_folds, walk_folds
from rankplane.solver.lanes import MAX_LANES, OnReport, Options, solve_planes
from rankplane.solver.planes import Planes
from rankplane.solver.tables import Table


@dataclass(frozen=True)
class HeldOut:
    """Rows as planes saw them that were not trained on them, fold by fold: plane scores, places of the true ranks, weights."""

    scores: list[NDArray[Any]]
    ranks: list[NDArray[np.int32]]
    weights: list[NDArray[np.float64]] | None
    n_ranks: int


@dataclass(frozen=True)
class TrainingSet:
    """What ``fit`` was given, as the solver takes it."""

    X: Any
    labels: Labels
    table_rows: NDArray[np.int32]
    row_weights: NDArray[np.float64] | None
    options: Options
    column_weight: NDArray[Any] | Literal["ranks"] | None = None
    sample_weights: NDArray[np.float64] | None = None  # of the user; row_weights has those of the ranks in it too

    def held_out(self, folds: Folds, scores: list[NDArray[Any]]) -> HeldOut:
        """The rows that folds hold out, with the scores they got."""
        weights = None if self.sample_weights is None else [self.sample_weights[test] for test in folds.test]
        return HeldOut(scores, [self.labels.numbers[test] for test in folds.test], weights, self.labels.n_ranks)

    def with_gamma(self, gamma: float | None) -> "TrainingSet":
        """The same under another gamma of the kernel; None leaves everything as it is."""
        return self if gamma is None else replace(self, X=self.X.with_gamma(gamma))

    @property
    def learns_column_weights(self) -> bool:
        return isinstance(self.column_weight, str)

    def weights_of_columns(self, is_used: NDArray[np.bool_]) -> NDArray[Any] | None:
        """Factors on the columns for a solve of the used rows. Others have no say in them, so that they stay unseen."""
        if not isinstance(self.column_weight, str):
            return self.column_weight
        if self.row_weights is not None:
            is_used = is_used & (self.row_weights > 0)
        return telling_weights(self.X, self.labels.numbers, self.labels.n_ranks, is_used)

    def solve(self, table: Table, options: Options, on_report: OnReport | None = None) -> Planes:
        """The planes of all rows."""
        weights = self.weights_of_columns(np.ones(len(self.labels.numbers), dtype=bool))
        X = scale_columns(self.X, weights)
        planes = solve_planes(X, table, self.table_rows, options, row_weights=self.row_weights, on_report=on_report)
        return planes.for_columns(weights)

    def folds(self, table: Table, folds: Folds, options: Options, *, keeps_all: bool = False, evens_out: bool) -> FoldLanes:
        """Cross-validation as one solve: of any folds, or where column weights are learnt, of a single one."""
        X = scale_columns(self.X, self.weights_of_columns(folds.is_train[0]))
        return FoldLanes(X, table, self.table_rows, self.row_weights, folds, options, keeps_all=keeps_all, evens_out=evens_out)

    def solve_with_folds(self, table: Table, on_report: OnReport | None = None) -> tuple[Planes, HeldOut]:
        """The planes of all rows, and what planes of folds say of the rows they did not see."""
        n_planes, options = table.shape[2], self.options
        # As many folds as the planes leave room for in one pass.
        n_folds = min(5, max(3, MAX_LANES // n_planes - 1), len(self.labels.numbers))
        folds = make_folds(n_folds, self.X, self.labels.numbers, None, options.seed).counting(self.sample_weights)
        if isinstance(self.column_weight, str):
            planes = self.solve(table, options, on_report)
            make = partial(self.folds, table, evens_out=True)
            found = walk_folds(make, folds, options, [table], [1.0], is_shared=False)[0].held_out
        else:
            lanes = self.folds(table, folds, options, keeps_all=True, evens_out=True)
            lanes.run(table, on_report=on_report)
            found = lanes.held_out()
            planes = lanes.take_planes().for_columns(self.column_weight)
        return planes, self.held_out(folds, found)
