"""From data and tables to planes: the one place where Python calls the compiled solver."""

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankplane import _core
from rankplane.solver import interior
from rankplane.solver.blas import one_thread
from rankplane.solver.coupling import mixed, pooled
from rankplane.solver.discriminant import Discriminant
from rankplane.solver.interior import NEVER
from rankplane.solver.kernels import Gram
from rankplane.solver.planes import Planes
from rankplane.solver.stopping import VIOLATION_OF_FOLDS, VIOLATION_OF_TIED_FOLDS
from rankplane.solver.tables import Table

MAX_LANES = _core.max_lanes  # that one pass over X can serve
WORKING_ROWS = 1024  # of a kernel, optimised at a time
UNEVEN = 10.0  # the largest of columns that need no scaling, relative to the smallest
OnReport = Callable[[int, int, list[int], list[float]], None]


@dataclass(frozen=True)
class Options:
    """How to solve. Offsets are penalised like a column of ones, or not at all (``free_offsets``), or absent.

    Lanes stop at ``tol``. With ``gap``, certified lanes go on until their duality gap is at most ``gap`` times their objective, and
    have converged if it is, even if they stop at ``max_iter``.
    """

    tol: float
    max_iter: int
    gap: float | None = None
    shrinking: bool = True
    seed: int = 0
    n_threads: int = 1
    has_offsets: bool = True
    free_offsets: bool = False
    rho: float = 1.0  # how far an offset moves per unit of dual, if there are offsets
    batch: int = 0  # samples that the linear solver scores at once; 0 leaves the choice to it
    tol_in_words: str = ""  # for warnings, where it is not what the user passed
    coupling: NDArray[np.float64] | None = None  # between the planes of a model
    ordered_offsets: bool = False  # free offsets that never rise from one cut to the next
    n_joined: int = 0  # lanes of a group, whose duals of a sample sum to zero; 0 for lanes on their own
    is_discriminant: bool = False  # directions by the means and the scatter of the ranks, not by demands on scores

    def for_folds(self) -> "Options":
        """For the folds of a search. A walk measures violations relative to its first sweep, at the smallest C, where they are
        largest. With half the tolerance its planes are as accurate as those of single fits.
        """
        by_default = VIOLATION_OF_TIED_FOLDS if self.ordered_offsets or self.n_joined else VIOLATION_OF_FOLDS
        return replace(self, tol=0.5 * self.tol if self.gap is None else by_default, gap=None)

    def for_core(self) -> _core.Options:
        return _core.Options(
            tol=self.tol,
            max_sweeps=self.max_iter,
            shrinking=self.shrinking,
            seed=self.seed,
            n_threads=self.n_threads,
            rho=self.rho if self.has_offsets else 0.0,
            free_offsets=self.free_offsets,
            batch=self.batch,
            coupling=[] if self.coupling is None else self.coupling.ravel().tolist(),
            ordered_offsets=self.ordered_offsets,
            n_joined=self.n_joined,
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
        # Rows of weight zero get a table row without demands: zero times an infinite bound would be NaN.
        self.has_empty_row = row_weights is not None and not np.all(row_weights)
        if row_weights is not None:
            if self.has_empty_row:
                is_out = np.tile(row_weights == 0, len(table_rows) // X.shape[0])
                table_rows = np.where(is_out, n_table_rows, table_rows).astype(np.int32)
            row_weights = np.where(row_weights == 0, 1, row_weights).astype(np.float64 if isinstance(X, Gram) else X.dtype)
        self.table_rows, self.row_weights = table_rows, row_weights
        is_alone = options.coupling is None and not (options.ordered_offsets or options.n_joined or options.is_discriminant)
        self.patience = interior.sweeps_before(X.shape) if is_alone and not isinstance(X, Gram) else NEVER
        self.is_slow = np.zeros(n_lanes, dtype=bool)
        if options.is_discriminant:
            self.solver: Any = Discriminant(X, table_rows, row_weights, n_lanes, n_cuts, options)
        elif isinstance(X, Gram):
            self.solver = KernelRounds(X, options, table_rows, row_weights, n_lanes, n_cuts)
        elif sp.issparse(X):
            self.solver = _core.sparse_solver(
                X.indptr, X.indices, X.data, X.shape[1], table_rows, row_weights, n_lanes, n_cuts, options.for_core()
            )
        else:
            self.solver = _core.dense_solver(X, table_rows, row_weights, n_lanes, n_cuts, options.for_core())

    def run(self, table: Table, *, frozen: Sequence[bool] = (), n_certified: int = 0, on_report: OnReport | None = None) -> None:
        """Solve from where the last run ended, all lanes but the frozen ones; the first few get a certificate.

        Lanes end by ``tol``. With ``gap``, certified lanes sweep on, a sweep or a few at a time, until their gap is small too.
        Where columns are few, lanes that take many sweeps go on from the solution of an interior-point method.
        """
        table = self._whole(table)
        is_open = ~np.array(frozen, dtype=bool) if len(frozen) else np.ones(self.n_lanes, dtype=bool)
        self.n_sweeps = np.zeros(self.n_lanes, dtype=np.intp)
        most, patience = self.options.max_iter, self.patience if interior.takes(table) else NEVER
        jumps = is_open & self.is_slow  # at a smaller C, and the more so now
        while is_open.any():
            if jumps.any():
                self._jump(table, np.flatnonzero(jumps))
            limit = most if np.all(self.is_slow[is_open]) else min(most, patience)
            left = max(1, limit - int(self.n_sweeps[is_open].min()))
            self.solver.run(table, (~is_open).tolist(), n_certified, on_report, max_sweeps=left)
            results = self.solver.results()
            ran = np.array(results["n_sweeps"], dtype=np.intp)
            self.n_sweeps += ran
            is_done = np.array(results["has_converged"], dtype=bool)
            is_done[:n_certified] &= has_small_gap(results, n_certified, self.options)
            is_open &= (ran > 0) & ~is_done & (self.n_sweeps < most)
            jumps = is_open & ~self.is_slow & (self.n_sweeps >= patience)
            self.is_slow |= jumps

    def _jump(self, table: Table, lanes: NDArray[np.intp]) -> None:
        """Move some lanes to their solutions by the interior-point method."""
        dtype = self.X.dtype
        X = np.asarray(self.X.toarray() if sp.issparse(self.X) else self.X, dtype=np.float64)
        rho = np.inf if self.options.free_offsets else self.options.rho if self.options.has_offsets else 0.0
        weights, offsets, duals = self.solver.weights(), self.solver.offsets(), self.solver.duals()

        def solved(lane: int) -> interior.Solution | None:
            demands = table[:, :, lane].astype(dtype)[self.table_rows]
            if self.row_weights is not None:
                by_visit = np.tile(self.row_weights, len(self.table_rows) // len(X))[:, None]
                demands[..., :2] *= by_visit[..., None]
                demands[..., 4] /= by_visit
            return interior.solve_lane(X, demands, rho)

        with one_thread(), ThreadPoolExecutor(self.options.n_threads) as pool:
            for lane, found in zip(lanes.tolist(), pool.map(solved, lanes.tolist()), strict=True):
                if found is not None:
                    duals[:, :, lane], weights[:, lane], offsets[:, lane] = found
        self.solver.start_from(weights, offsets, duals)

    def sweep(self, table: Table, n_sweeps: int) -> None:
        """So many sweeps, from where the last run ended. Planes only."""
        self.solver.run(self._whole(table), [], 0, None, max_sweeps=n_sweeps)

    def certify(self, table: Table) -> dict[str, NDArray[np.float64]]:
        """The sums of the certificate, by lane, or by cut and lane. Planes only."""
        sums = self.solver.certify(self._whole(table), self.n_lanes)
        return {name: np.array(values) for name, values in sums.items()}

    def _whole(self, table: Table) -> Table:
        """With the row of those that demand nothing."""
        if self.has_empty_row:
            table = np.concatenate([table, np.zeros_like(table[:1])])
        return np.ascontiguousarray(table)

    def score(self, rows: NDArray[np.uint32], first_lane: int, n_wanted: int) -> NDArray[Any]:
        """Scores of some of the rows on neighbouring lanes, whole groups of them if they are coupled, without offsets."""
        return mixed(self.solver.score(rows, first_lane, n_wanted), self.options.coupling)

    def take_planes(self, n_wanted: int) -> Planes:
        """The planes of the first lanes, moved out of the solver: it cannot be run again."""
        results = self.solver.results()
        weights, offsets = self.solver.take_weights(n_wanted)
        planes = Planes(
            weights=mixed(weights, self.options.coupling),
            offsets=offsets[:, :n_wanted],
            n_sweeps=self.n_sweeps[:n_wanted],
            has_converged=has_small_gap(results, n_wanted, self.options),
            violation=np.array(results["violation"][:n_wanted]),
            dual_objective=np.array(results["dual_objective"][:n_wanted]),
            gap=np.array(results["gap"][:n_wanted]),
            n_support=np.array(results["n_support"][:n_wanted], dtype=np.intp),
        )
        warn_if_unfinished(planes, self.options, self.X)
        return planes


def has_small_gap(results: "_core.Results", n_certified: int, options: Options) -> NDArray[np.bool_]:
    """Which of the first lanes have converged: by their gap if there is a limit to it, else by the solver's own rule."""
    if options.gap is None:
        return np.array(results["has_converged"][:n_certified], dtype=bool)
    gap, dual = (pooled(np.array(results[name][:n_certified]), options.coupling) for name in ("gap", "dual_objective"))
    return np.asarray(gap <= options.gap * (gap - dual))


class KernelRounds:
    """The compiled solver for kernels, driven round by round: it needs the kernel rows of a few rows at a time.

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

    def run(
        self, table: Table, frozen: list[bool], n_certified: int, on_report: OnReport | None, max_sweeps: int | None = None
    ) -> None:
        """Solve; ``max_iter`` is the only limit of sweeps."""
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
        """Draw rows with probabilities that grow with their violations.

        The most violated rows alone are much alike: optimising them increases the violations of others, and so on for ever.
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


def warn_if_unfinished(planes: Planes, options: Options, X: Any) -> None:
    n_open = int(np.sum(~planes.has_converged))
    if n_open > 0:
        is_open = ~planes.has_converged
        if options.gap is None:
            reached = f"violation {np.max(planes.violation[is_open]):.2g} ({options.tol_in_words or f'tol={options.tol:g}'})"
        else:
            gap, dual = (pooled(values, options.coupling)[is_open] for values in (planes.gap, planes.dual_objective))
            shares = gap / (gap - dual)
            reached = f"a duality gap of {100 * np.max(shares):.2g} % of the objective"
        ways = ["raise max_iter", *(["raise tol"] if options.gap is None else []), "lower C"]
        if has_uneven_columns(X):
            ways = ["scale the columns of X", *ways]
        advice = f"{', '.join(ways[:-1])} or {ways[-1]}"
        warnings.warn(
            f"{n_open} of {len(planes.has_converged)} planes stopped at max_iter={options.max_iter} with {reached}. "
            f"{advice[0].upper()}{advice[1:]}.",
            ConvergenceWarning,
            stacklevel=4,
        )


def has_uneven_columns(X: Any) -> bool:
    """Whether some column is much larger than another. Rare terms of a sparse matrix are not small for that."""
    if isinstance(X, Gram) or sp.issparse(X):
        return False
    sizes = np.sqrt(np.mean(np.square(X, dtype=np.float64), axis=0))
    return bool(np.any(sizes > UNEVEN * np.min(sizes[sizes > 0], initial=np.inf)))
