"""From data and tables to planes: the one place where Python calls the compiled solver."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankplane import _core
from rankplane.solver.kernels import Gram
from rankplane.solver.planes import Planes
from rankplane.solver.tables import Table

MAX_LANES = _core.max_lanes  # that one pass over X can serve
WORKING_ROWS = 1024  # rows of a kernel that are worked on at a time
OnReport = Callable[[int, int, list[int], list[float]], None]


@dataclass(frozen=True)
class Options:
    """How to solve. Offsets are penalised like a column of ones, or not at all (``free_offsets``), or absent."""

    tol: float
    max_iter: int
    shrinking: bool = True
    seed: int = 0
    n_threads: int = 1
    has_offsets: bool = True
    free_offsets: bool = False

    def for_core(self) -> _core.Options:
        return _core.Options(
            tol=self.tol,
            max_sweeps=self.max_iter,
            shrinking=self.shrinking,
            seed=self.seed,
            n_threads=self.n_threads,
            rho=1.0 if self.has_offsets else 0.0,
            free_offsets=self.free_offsets,
        )


class Lanes:
    """Data and the table row of each of its rows, ready to be solved for one table after another.

    ``X`` is a canonical csr matrix, a C-ordered array or a ``Gram``; ``table_rows`` names the table row of each of its rows, or,
    twice as long, of the two halves that each row is split into. ``row_weights`` scales C row by row. ``shape`` is that of the
    tables.
    """

    def __init__(
        self,
        X: Any,
        table_rows: NDArray[np.int32],
        shape: tuple[int, ...],
        row_weights: NDArray[Any] | None,
        options: Options,
    ) -> None:
        n_table_rows, n_cuts, n_lanes, _ = shape
        self.X = X
        self.n_lanes = n_lanes
        self.options = options
        # A weight of zero is no demand at all: zero times an infinite bound is not a number. Such rows get a table row of
        # their own.
        self.has_empty_row = row_weights is not None and not np.all(row_weights)
        if row_weights is not None:
            if self.has_empty_row:
                is_out = np.tile(row_weights == 0, len(table_rows) // X.shape[0])
                table_rows = np.where(is_out, n_table_rows, table_rows).astype(np.int32)
            row_weights = np.where(row_weights == 0, 1, row_weights).astype(np.float64 if isinstance(X, Gram) else X.dtype)
        if isinstance(X, Gram):
            self.solver: Any = KernelRounds(X, options, table_rows, row_weights, n_lanes, n_cuts)
        elif sp.issparse(X):
            self.solver = _core.sparse_solver(
                X.indptr, X.indices, X.data, X.shape[1], table_rows, row_weights, n_lanes, n_cuts, options.for_core()
            )
        else:
            self.solver = _core.dense_solver(X, table_rows, row_weights, n_lanes, n_cuts, options.for_core())

    def run(self, table: Table, *, frozen: Sequence[bool] = (), n_certified: int = 0, on_report: OnReport | None = None) -> None:
        """Solve from where the last run ended, all lanes but the frozen ones; the first few get a certificate."""
        if self.has_empty_row:
            table = np.concatenate([table, np.zeros_like(table[:1])])
        self.solver.run(np.ascontiguousarray(table), list(frozen), n_certified, on_report)

    def take_planes(self, n_wanted: int) -> Planes:
        """The first lanes, for good: the lanes cannot be solved again afterwards."""
        results = self.solver.results()
        weights, offsets = self.solver.take_weights(n_wanted)
        planes = Planes(
            weights=weights,
            offsets=offsets[:, :n_wanted],
            n_sweeps=np.array(results["n_sweeps"][:n_wanted], dtype=np.intp),
            has_converged=np.array(results["has_converged"][:n_wanted], dtype=bool),
            violation=np.array(results["violation"][:n_wanted]),
            dual_objective=np.array(results["dual_objective"][:n_wanted]),
            gap=np.array(results["gap"][:n_wanted]),
            n_support=np.array(results["n_support"][:n_wanted], dtype=np.intp),
        )
        warn_if_unfinished(planes, self.options)
        return planes


class KernelRounds:
    """The compiled solver for kernels, driven round by round: it asks for the kernel rows of a few rows at a time.

    It has the methods of the solver for planes. Its weights are those of the rows: how much of each row's kernel function a
    lane consists of.
    """

    def __init__(
        self,
        gram: Gram,
        options: Options,
        table_rows: NDArray[np.int32],
        row_weights: NDArray[Any] | None,
        n_lanes: int,
        n_cuts: int,
    ) -> None:
        self.gram = gram
        self.options = options
        self.n_lanes = n_lanes
        # Without shrinking, all rows at a time, if there is room for them.
        self.n_picks = min(WORKING_ROWS if options.shrinking else gram.n_rows, gram.n_rows, len(gram.cache))
        self.random = np.random.default_rng(options.seed)
        self.core = _core.KernelSolver(gram.diagonal(), table_rows, row_weights, n_lanes, n_cuts, options.for_core())
        self.stretch, self.touch_bounds, self.results = self.core.stretch, self.core.touch_bounds, self.core.results
        self.score, self.offsets = self.core.score, self.core.offsets

    def run(self, table: Table, frozen: list[bool], n_certified: int, on_report: OnReport | None) -> None:
        self.core.load(table, frozen)
        is_running, urgency = self.core.measure()
        while is_running:
            rows = self.pick(urgency)
            slots = self.gram.slots(rows)
            self.core.improve(rows.astype(np.uint32), self.gram.cache, slots.astype(np.uint32))
            is_running, urgency = self.core.measure()
            if on_report is not None:
                results = self.core.results()
                on_report(max(results["n_sweeps"]), int(np.count_nonzero(urgency)), list(range(self.n_lanes)), results["violation"])

    def pick(self, urgency: NDArray[np.float64]) -> NDArray[np.intp]:
        """Rows drawn with odds by their violations.

        The most violated rows alone are much alike: settling them upsets their opposites, and the other way round, for ever.
        """
        if self.n_picks == len(urgency):
            return np.arange(len(urgency))
        waits = self.random.exponential(size=len(urgency)) / np.maximum(urgency, 1e-300)
        return np.argpartition(waits, self.n_picks - 1)[: self.n_picks]

    def take_weights(self, n_wanted: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.core.duals()[:, :n_wanted], self.core.offsets()


def solve_planes(
    X: Any,
    table: Table,
    table_rows: NDArray[np.int32],
    options: Options,
    *,
    row_weights: NDArray[Any] | None = None,
    on_report: OnReport | None = None,
) -> Planes:
    """Solve all lanes of a table together."""
    lanes = Lanes(X, table_rows, table.shape, row_weights, options)
    lanes.run(table, n_certified=lanes.n_lanes, on_report=on_report)
    return lanes.take_planes(lanes.n_lanes)


def warn_if_unfinished(planes: Planes, options: Options) -> None:
    n_open = int(np.sum(~planes.has_converged))
    if n_open > 0:
        worst = float(np.max(planes.violation[~planes.has_converged]))
        warnings.warn(
            f"{n_open} of {len(planes.has_converged)} planes stopped at max_iter={options.max_iter} with violation {worst:.2g} "
            f"(tol={options.tol:g}). Raise max_iter or tol, or scale the columns of X.",
            ConvergenceWarning,
            stacklevel=4,
        )
