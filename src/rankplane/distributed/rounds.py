"""Rounds: every worker takes local sweeps over its rows, then all add up how their weights have changed.

In its local sweeps a worker lets its own changes count ``s_c`` times on column c, as if others made them too. The sum of m numbers
squared is at most m times the sum of their squares, so with s_c the number of workers that have column c the dual objective
improves at least as much as the workers believe (CoCoA+, with a factor for every column). That is what an ordinary solve does on
columns multiplied by ``sqrt(s_c)``: with

    x'_c = x_c sqrt(s_c)        V_c = W_c / sqrt(s_c)        x' . V = x . W,

a local sweep that changes V by dV has changed W by ``sqrt(s_c) dV_c / s_c``. An offset is a column too, with ``s_b rho`` for rho.

The bound is far too careful for most columns: changes that different workers make to a rare word have hardly anything in common.
Let the changes of one row in a column have mean mu and variance sigma^2, and N rows have it, on s workers. Then the square of the
sum over the sum of the squares is about

    (1 + N u) / (1 + N u / s),     u = (mu / sigma)^2,

which is 1 for rare columns and s for those in every row. That is the factor used, with ``AGREEMENT`` for u. It is no bound, so the
dual objective is watched: where a round makes it worse, only part of the round is taken, and u is raised for good, which leads to
the safe factor.

Duals of different workers that pull against each other move slowly, since each worker sees only its own side. So a round starts
from where the last one was heading (Nesterov's momentum): from ``a + beta (a - a_before)``, put back between the bounds. Weights
are linear in the duals, so all know where that is, but for what each worker's bounds took away, which only it knows, until the
round is added up. A lane that gets worse starts again without momentum.

Free offsets are multipliers: after every round they move by rho times the sum of their duals, which must become zero. The
certificate scales the duals so that it is, and counts how far that moved them.

Joined lanes (see ``add_levels`` in the core) are one problem: objectives and gaps are sums over a group, and whatever changes duals
keeps the sum of each row's at zero.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankplane.distributed.comm import Comm
from rankplane.distributed.shard import Shard
from rankplane.solver import blocks
from rankplane.solver.column_weights import chunks
from rankplane.solver.planes import Planes
from rankplane.solver.tables import Table, dual_costs, soft_residual

AGREEMENT = 0.03  # measured, see docs/scale.md
RAISE = 4.0
LIKELY = 2.0  # times the gap before a round is likely to be that after it
ROUNDING = 1e-6  # of the objective
VISITS = 1 << 16  # that are worked on together
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Certificate:
    """Of all workers, by lane. ``own_terms`` is the dual objective without those of weights and offsets."""

    objective: Floats
    gap: Floats
    support: Floats
    own_terms: Floats
    dual_sums: Floats  # [cut][lane]

    @property
    def relative_gap(self) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.gap <= 0, 0.0, self.gap / np.abs(self.objective))


@dataclass(frozen=True)
class Columns:
    """What is known of the columns of all workers: which are this worker's alone, and which several share."""

    is_own: NDArray[np.bool_]
    shared: NDArray[np.intp]
    counts: NDArray[np.int64]  # rows of all workers
    n_workers: NDArray[np.int64]
    shares: Floats  # of what all columns add up to: all of this worker's own, and as much of the shared ones as others take

    @classmethod
    def of(cls, shard: Shard, comm: Comm) -> "Columns":
        own, counts, n_workers = shard.column_counts(comm)
        is_own, is_shared = (own > 0) & (n_workers == 1), n_workers > 1
        return cls(is_own, np.flatnonzero(is_shared), counts, n_workers, is_own + is_shared / comm.size)

    def factors(self, agreement: float) -> Floats:
        """``s_c``."""
        expected = self.counts * agreement
        return np.asarray((1 + expected) / (1 + expected / np.maximum(self.n_workers, 1)))


@dataclass
class Costs:
    """What a round took: seconds of the slowest worker, seconds of waiting and exchanging, bytes that this worker gave away."""

    computing: float = 0.0
    exchanging: float = 0.0
    n_bytes: int = 0


@dataclass
class Before:
    """Where a round began."""

    V: NDArray[Any]
    offsets: Floats
    duals: NDArray[Any]
    dual_sums: Floats


@dataclass
class State:
    """What a worker must keep to go on: its duals. Weights and offsets are sums of them over all workers; free offsets are not."""

    duals: NDArray[Any]  # [visit][cut][lane]
    free_offsets: Floats | None = None
    agreement: float = AGREEMENT
    n_sweeps: int = 0


class Rounds:
    """The planes of all workers, as one of them sees them, at some table and column weights.

    ``table_rows`` are those of the shard's rows; what the tables ask for may change from round to round, not their shape.
    """

    def __init__(
        self,
        shard: Shard,
        comm: Comm,
        columns: Columns,
        table_rows: NDArray[np.int32],
        shape: tuple[int, ...],
        column_weights: NDArray[Any] | None,
        state: State | None = None,
    ) -> None:
        self.shard, self.comm, self.columns = shard, comm, columns
        self.table_rows, self.shape, self.column_weights = table_rows, shape, column_weights
        _, self.n_cuts, self.n_lanes, _ = shape
        self.costs = Costs()
        self.forget()
        options = shard.options
        self.is_free = options.free_offsets
        # Nobody pulls against the sweeps of a single worker, which need neither a guard nor momentum.
        self.is_plain = comm.size == 1 and not self.is_free
        weighted = blocks.scaled(shard.X, column_weights)
        self.norms = np.sqrt(blocks.by_row(weighted, square_norms)) if self.is_free else np.zeros(0)
        self.rho = self._mean_square_norm() if self.is_free else float(options.has_offsets)
        given = state or State(blocks.zero_duals(weighted, (len(table_rows), self.n_cuts, self.n_lanes)))
        self.agreement, self.n_sweeps = given.agreement, given.n_sweeps
        self._make_lanes(weighted)
        self.duals = given.duals
        self.offsets = np.zeros((self.n_cuts, self.n_lanes))
        self.collect(given.free_offsets)

    def _mean_square_norm(self) -> float:
        total, n_rows = self.comm.allreduce(np.array([np.sum(self.norms**2), self.shard.n_rows]))
        return float(total / n_rows) if total > 0 else 1.0

    def _make_lanes(self, weighted: Any) -> None:
        """The solver of this worker, on columns multiplied by the roots of their factors."""
        self.factors = self.columns.factors(self.agreement)
        self.roots = np.sqrt(self.factors).astype(weighted.dtype)
        self.X = blocks.scaled(weighted, self.roots) if self.comm.size > 1 else weighted
        options = self.shard.options.__class__(
            tol=0.0,
            max_iter=1,
            shrinking=self.shard.options.shrinking,
            seed=self.shard.options.seed,
            n_threads=self.shard.options.n_threads,
            has_offsets=self.shard.options.has_offsets,
            rho=self.rho * self.comm.size,
            n_joined=self.shard.options.n_joined,
        )
        self.lanes = blocks.lanes_of(self.X, self.table_rows, self.shape, self.shard.row_weights, options)

    # --- the state -----------------------------------------------------------------------------------------------------------

    def state(self) -> State:
        return State(self.duals, self.offsets.copy() if self.is_free else None, self.agreement, self.n_sweeps)

    def collect(self, free_offsets: Floats | None = None) -> None:
        """Compute the weights, and offsets that are not free, from the duals of all workers, without the rounding of many steps."""
        self.V = np.zeros((self.X.shape[1], self.n_lanes), dtype=self.X.dtype)
        if self.comm.allreduce(np.array([self.duals.any()], dtype=np.int64))[0]:
            own = self._products(self.duals)
            self.V[self.columns.is_own] = own[self.columns.is_own]
            self._add_shared(own)
        if free_offsets is not None:
            self.offsets = free_offsets.copy()
        if not self.is_free:
            self.offsets = self.rho * self.comm.allreduce(self.duals.sum(axis=0, dtype=np.float64))
        self._load(self.duals)

    def _products(self, duals: NDArray[Any]) -> Floats:
        """What these rows add to V: each worker's change of W, divided by the roots of the factors."""
        by_row = duals.sum(axis=1, dtype=np.float64)
        by_row = by_row.reshape(self.shard.n_copies, self.shard.n_rows, self.n_lanes).sum(axis=0)

        def of_rows(X: Any, own: slice) -> Floats:
            total, wanted = np.zeros((X.shape[1], self.n_lanes)), by_row[own]
            used = np.flatnonzero(wanted.any(axis=1))
            if 2 * len(used) < len(wanted):
                X, wanted = X[used], wanted[used]
            for rows in chunks(X) if sp.issparse(X) and X.nnz else [slice(None)]:
                total += X[rows].T.astype(np.float64) @ wanted[rows]
            return total

        return blocks.sum_by_column(self.X, of_rows) / self.factors[:, None]

    def _add_shared(self, change: NDArray[Any]) -> NDArray[Any]:
        """Add the changes of all workers to the shared columns of V; returns their sum."""
        shared = self.columns.shared
        total = self.comm.allreduce(np.ascontiguousarray(change[shared]))
        if self.comm.size > 1:
            self.costs.n_bytes += total.nbytes
        self.V[shared] += total.astype(self.V.dtype, copy=False)
        return total

    def _load(self, duals: NDArray[Any]) -> None:
        offsets = np.ascontiguousarray(self.offsets, dtype=self.V.dtype)
        # Rows on disk are solved in the very arrays that are passed, which a round that may be taken back must keep.
        V = self.V if self.is_plain else self.V.copy()
        self.lanes.solver.start_from(V, offsets, np.ascontiguousarray(duals) if self.is_plain else np.array(duals))

    def stretch(self, table: Table, factor: float) -> None:
        """Scale all lanes as far as that helps where bounds become wider by a factor; see the core's function of that name."""
        sums = self.comm.allreduce(np.stack(self._ray(table, factor)))
        square = sums[1] + self._square_weights()
        if self.rho > 0 and not self.is_free:
            square = square + np.sum(self.offsets**2, axis=0) / self.rho
        linear, square = self._of_groups(sums[0]), self._of_groups(square)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_lane = np.where(square > 0, np.clip(-linear / square, 1.0, factor), 1.0)
        self.duals *= by_lane.astype(self.duals.dtype)
        self.collect(self.offsets * by_lane if self.is_free else None)

    def _ray(self, table: Table, price: float) -> tuple[Floats, Floats]:
        """The dual objective of these rows along the ray through their duals: linear and square sums."""
        linear, square = np.zeros(self.n_lanes), np.zeros(self.n_lanes)
        for visits, weights in self._visits():
            demands, duals = table[self.table_rows[visits]], self.duals[visits].astype(np.float64)
            weights = np.where(weights > 0, weights, 1.0)
            is_soft = demands[..., 5] > 0
            linear += np.sum(np.where(is_soft, 0.0, demands[..., 3]) * np.abs(duals) - demands[..., 2] * duals, axis=(0, 1))
            square += np.sum(demands[..., 4] * duals**2 / (weights * price), axis=(0, 1))
            if price > 1 and np.any(is_soft):
                demands[..., :2] *= weights[..., None]
                at_one = soft_residual(duals, demands)
                demands[..., :2] /= price
                now = soft_residual(duals, demands)
                bend = (now - at_one) / (price - 1)
                linear += np.sum(np.where(is_soft, duals * (at_one - bend), 0.0), axis=(0, 1))
                square += np.sum(np.where(is_soft, duals * bend, 0.0), axis=(0, 1))
        return linear, square

    def _visits(self) -> Iterator[tuple[slice, Floats]]:
        """Some of the visits at a time, with their weights, as factors of duals."""
        weights = np.ones(self.shard.n_rows) if self.shard.row_weights is None else self.shard.row_weights
        weights = np.tile(weights, self.shard.n_copies)[:, None, None]
        for first in range(0, len(self.table_rows), VISITS):
            visits = slice(first, first + VISITS)
            yield visits, weights[visits]

    def _bounded(self, duals: NDArray[Any], table: Table, found: NDArray[Any]) -> NDArray[Any]:
        """Duals put back between the bounds of a table, in another array or in the same."""
        bounds = table[..., :2]
        for visits, weights in self._visits():
            of_visits = bounds[self.table_rows[visits]]
            with np.errstate(invalid="ignore"):
                of_visits = np.where(weights[..., None] > 0, of_visits * weights[..., None], 0.0)
            np.clip(duals[visits], of_visits[..., 0], of_visits[..., 1], out=found[visits], casting="unsafe")
            if n_joined := self.shard.options.n_joined:
                # Those of other ranks are not above zero; with the opposite sign, their sum is the dual of the row's own rank.
                groups, most = (values.reshape(-1, n_joined) for values in (found[visits], of_visits[..., 1]))
                others = np.where(most > 0, 0.0, groups)
                sums = -others.sum(axis=1, keepdims=True)
                others *= np.where(sums > (top := most.max(axis=1, keepdims=True)), top / np.where(sums > 0, sums, 1.0), 1.0)
                groups = np.where(most > 0, -others.sum(axis=1, keepdims=True), others)
                found[visits] = groups.reshape(found[visits].shape)
        return found

    def _of_groups(self, values: Floats) -> Floats:
        """Of joined lanes, the mean over their group; of others, the values as they are."""
        n_joined = self.shard.options.n_joined
        return np.repeat(values.reshape(-1, n_joined).mean(axis=1), n_joined) if n_joined else values

    def clip(self, table: Table) -> None:
        """Put duals back between the bounds, which those of an interrupted fit need not be."""
        self._bounded(self.duals, table, self.duals)
        self.collect(self.offsets if self.is_free else None)

    # --- a round -------------------------------------------------------------------------------------------------------------

    def certify(self, table: Table) -> Certificate:
        """How good the planes are that all workers hold now."""
        sums = self.lanes.certify(table)
        parts = [sums["gap"], sums["dual"], sums["support"], sums["positive"], sums["negative"]]
        ends = np.cumsum([len(part) for part in parts])[:-1]
        gap, dual, support, positive, negative = np.split(self.comm.allreduce(np.concatenate(parts)), ends)
        square, dual_sums = self._square_weights(), (positive + negative).reshape(self.n_cuts, self.n_lanes)
        own_terms = dual - square  # the sum of a s is |w|^2
        if self.is_free:
            gap, dual = self._feasible(table, positive, negative)
            objective = dual - 0.5 * square
        else:
            objective = dual - 0.5 * square + 0.5 * self.rho * np.sum(dual_sums**2, axis=0)
        return Certificate(self._of_groups(objective), self._of_groups(gap), support, own_terms, dual_sums)

    def _feasible(self, table: Table, positive: Floats, negative: Floats) -> tuple[Floats, Floats]:
        """Gap and dual sums of the duals with the larger side of each cut scaled down, so that they sum to zero."""
        up, down = (part.reshape(self.n_cuts, self.n_lanes) for part in (positive, negative))
        with np.errstate(divide="ignore", invalid="ignore"):
            of_positive, of_negative = np.where(up > -down, -down / up, 1.0), np.where(-down > up, -up / down, 1.0)
        feasible = np.where(self.duals > 0, of_positive * self.duals, of_negative * self.duals).astype(self.duals.dtype)
        moved = np.abs(self.duals - feasible).sum(axis=1, dtype=np.float64)
        repair = np.tile(self.norms, self.shard.n_copies) @ moved
        self._load(feasible)
        sums = self.lanes.certify(table)
        self._load(self.duals)
        gap, dual, repair = self.comm.allreduce(np.stack([sums["gap"], sums["dual"], repair]))
        return gap + 0.5 * repair**2, dual

    def _square_weights(self) -> Floats:
        """|w|^2 of each lane."""
        return self._products_of_lanes(self.V, self.V)

    def _products_of_lanes(self, A: NDArray[Any], B: NDArray[Any]) -> Floats:
        """The inner product of two sets of weights, as V has them, lane by lane. Each worker adds its share of shared columns."""
        shares = self.columns.shares * self.factors
        return self.comm.allreduce(np.asarray(np.einsum("cl,cl,c->l", A, B, shares, dtype=np.float64)))

    def step(self, table: Table, n_sweeps: int, enough: float) -> Certificate:
        """One round; returns the certificate of the planes after it. Gaps above ``enough`` of the objective may be estimates."""
        self.costs = Costs()
        if self.is_plain:
            return self._step_alone(table, n_sweeps, enough)
        before = self.last or self.certify(table)
        start = time.perf_counter()
        ahead = self._head_start(table, before)
        self.lanes.sweep(table, n_sweeps)
        self.n_sweeps += n_sweeps
        duals, V = self.lanes.solver.duals(), self.lanes.solver.weights()
        seconds = np.zeros(self.comm.size)
        seconds[self.comm.rank] = time.perf_counter() - start
        old = Before(self.V, self.offsets, self.duals, before.dual_sums)
        change = (V - ahead) / self.factors[:, None].astype(V.dtype)
        self.V = ahead
        own = self.columns.is_own
        self.V[own] += change[own]
        self._add_shared(change)
        sums = self.comm.allreduce(duals.sum(axis=0, dtype=np.float64))
        moved = self.rho * (sums - before.dual_sums)
        self.offsets, self.duals = self.offsets + moved if self.is_free else self.rho * sums, duals
        self.costs.computing = float(np.max(self.comm.allreduce(seconds)))
        self.costs.exchanging = max(0.0, time.perf_counter() - start - self.costs.computing)
        self._load(duals)
        after = self.certify(table)
        share = self._best_share(before, after, old, moved)
        self.before = old
        is_worse = share < 1
        had_momentum = self.momentum > 1
        self.momentum = np.where(is_worse, 1.0, 0.5 * (1 + np.sqrt(1 + 4 * self.momentum**2)))
        if np.any(is_worse):
            part = share.astype(duals.dtype)
            self.V, self.offsets = old.V + part * (self.V - old.V), old.offsets + share * moved
            self.duals = old.duals + part * (duals - old.duals)
            if np.any(is_worse & ~had_momentum):
                self.agreement *= RAISE
                self._rescale(old)
            self._load(self.duals)
            after = self.certify(table)
        if self.is_free:
            self.offsets = self.offsets + self.rho * np.where(is_worse, 0.0, after.dual_sums)
            self._load(self.duals)
        self.last = after
        return after

    def _step_alone(self, table: Table, n_sweeps: int, enough: float) -> Certificate:
        """Sweeps that nobody pulls against: all of them count, and go on from where they are.

        A certificate takes another pass over all rows. On disk that is expensive, and until the gap is small, the one that blocks
        had when they were visited will do.
        """
        start = time.perf_counter()
        seen = self.lanes.sweep(table, n_sweeps)
        self.n_sweeps += n_sweeps
        self.V, self.duals = self.lanes.solver.weights(), self.lanes.solver.duals()
        dual_sums = self.duals.sum(axis=0, dtype=np.float64)
        self.offsets = self.rho * dual_sums
        self.costs.computing = time.perf_counter() - start
        self._load(self.duals)
        self.last = None
        if seen is not None and np.max((estimate := self._estimate(table, seen, dual_sums)).relative_gap) > LIKELY * enough:
            return estimate
        self.last = self.certify(table)
        return self.last

    def _estimate(self, table: Table, seen: dict[str, Floats], dual_sums: Floats) -> Certificate:
        """The objective of now, with the gap that was seen."""
        own_terms = np.zeros(self.n_lanes)
        for visits, weights in self._visits():
            own_terms += dual_costs(self.duals[visits], table[self.table_rows[visits]], weights)
        objective = own_terms + 0.5 * self._square_weights() + 0.5 * self.rho * np.sum(dual_sums**2, axis=0)
        return Certificate(objective, seen["gap"], seen["support"], own_terms, dual_sums)

    def _head_start(self, table: Table, now: Certificate) -> NDArray[Any]:
        """Let the solver start ahead of where all workers are; returns V there, but for what the bounds took away."""
        following = 0.5 * (1 + np.sqrt(1 + 4 * self.momentum**2))
        beta = (self.momentum - 1) / following
        if self.before is None or not np.any(beta):
            return self.V.copy()
        part = beta.astype(self.V.dtype)
        ahead: NDArray[Any] = self.V + part * (self.V - self.before.V)
        wanted = self.duals + part * (self.duals - self.before.duals)
        duals = self._bounded(wanted, table, np.empty_like(wanted))
        taken = duals - wanted
        offsets = self.offsets + beta * self.rho * (now.dual_sums - self.before.dual_sums)
        offsets += self.comm.size * self.rho * taken.sum(axis=0, dtype=np.float64)
        weights = ahead + (self._products(taken) * self.factors[:, None]).astype(ahead.dtype)
        self.lanes.solver.start_from(weights, np.ascontiguousarray(offsets, dtype=weights.dtype), duals)
        return ahead

    def _best_share(self, before: Certificate, after: Certificate, old: "Before", moved: Floats) -> Floats:
        """How much of the round each lane should take: all of it unless the dual objective became worse. Along the way that is a
        parabola, or below one.
        """
        change = self.V - old.V
        linear = after.own_terms - before.own_terms + self._products_of_lanes(old.V, change)
        square = self._products_of_lanes(change, change)
        if self.rho > 0:
            linear = linear + np.sum(old.offsets * moved, axis=0) / self.rho
            square = square + np.sum(moved**2, axis=0) / self.rho
        linear, square = self._of_groups(linear), self._of_groups(square)
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.clip(np.where(square > 0, -linear / square, 1.0), 0.0, 1.0)
        is_worse = linear + 0.5 * square > ROUNDING * np.abs(before.objective)
        # All must decide alike, whatever machines they are.
        return np.asarray(self.comm.broadcast(np.where(is_worse, best, 1.0), 0))

    def _rescale(self, old: "Before") -> None:
        """Take over another agreement."""
        roots = self.roots
        self._make_lanes(blocks.scaled(self.shard.X, self.column_weights))
        self.V, old.V = (V * (roots / self.roots)[:, None] for V in (self.V, old.V))

    # --- results -------------------------------------------------------------------------------------------------------------

    last: Certificate | None
    before: Before | None
    momentum: Floats  # [lane]

    def forget(self) -> None:
        """What is known of the last round holds for another table no more."""
        self.last = self.before = None
        self.momentum = np.ones(self.n_lanes)

    def scores(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Plane scores of some of the rows: one column per lane, or per cut."""
        found = self.lanes.solver.score(rows.astype(np.uint32), 0, self.n_lanes)
        return np.asarray(found + self.offsets.ravel().astype(self.V.dtype))

    def planes(self, table: Table, *, has_converged: bool) -> Planes:
        """The planes, which worker 0 needs and all compute, from the duals alone."""
        if not self.is_plain:
            self.collect(self.offsets if self.is_free else None)
        found = self.last if self.is_plain and self.last is not None else self.certify(table)
        weights = self.V if self.comm.size == 1 else self.V * self.roots[:, None]
        others = np.ones(len(weights), dtype=bool)
        others[self.columns.shared] = False
        weights[others & ~self.columns.is_own] = 0
        weights[others] = self.comm.allreduce(np.ascontiguousarray(weights[others]))
        return Planes(
            weights=weights,
            offsets=self.offsets.astype(self.V.dtype),
            n_sweeps=np.full(self.n_lanes, self.n_sweeps, dtype=np.intp),
            has_converged=np.full(self.n_lanes, has_converged),
            violation=np.zeros(self.n_lanes),
            dual_objective=found.objective,
            gap=found.gap,
            n_support=found.support.astype(np.intp),
        ).for_columns(self.column_weights)


def square_norms(X: Any, rows: slice) -> Floats:
    """Of the rows, which are these of all."""
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    return np.asarray(np.square(X, dtype=np.float64).sum(axis=1))
