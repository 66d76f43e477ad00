"""Kernel discriminant learning: the direction along which the ranks lie in order, far apart and each close to its mean.

With the mean ``m_k`` of rank k, ``d_k = m_{k+1} - m_k``, and the scatter S of the rows around the means of their ranks, the model
(Sun, Li, Wu, Zhang and Li, 2010) is

    minimise over w:   1/2 w.(I + C S) w - min over k of w.d_k

whose dual has one variable per pair of neighbouring ranks: minimise 1/2 a.G a over a >= 0, sum a = 1, with G_kl = d_k.v_l and
``(I + C S) v_k = d_k``. Then ``w = sum a_k v_k``. Only the ``v_k`` take time. All of them, of all lanes, are found together by
conjugate gradients, in the space of the rows: nothing but products with the kernel matrix K is needed, which is ``X (X' .)`` for
planes, so that no matrix of columns x columns is formed. With weights c of the rows and Q the map that centres scores by rank and
scales them by the roots of c, ``S = X' Q'Q X``, and ``v = X' u`` for

    u = e - Q'q,     (I + C Q K Q') q = C Q K e,     d = X' e.

The certificate allows for what is left of the residual r of ``v``: as ``I + C S`` is no smaller than I, the gap is at most
``w.d - min over k of w.d_k + |r|^2 / 2``.
"""

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import nnls

from rankplane.solver.kernels import Gram
from rankplane.solver.planes import scores
from rankplane.solver.tables import Table

Floats = NDArray[np.float64]
STEPS_AT_ONCE = 8  # of conjugate gradients, before gaps are measured, which takes as long as one
LEAST_GAP = 1e-11  # relative; smaller ones are rounding errors
SPENT = 1e-20  # share of the square of the first residual, below which conjugate gradients begin anew


class Discriminant:
    """One direction for every lane. It has the methods of the solver for planes; a sweep is a step of conjugate gradients.

    What a lane's rows demand says which rank they have, and whether they belong to the lane; the bounds are C.
    """

    def __init__(
        self, X: Any, table_rows: NDArray[np.int32], row_weights: NDArray[Any] | None, n_lanes: int, n_cuts: int, options: Any
    ) -> None:
        self.X = X
        self.table_rows = table_rows
        self.row_weights = np.ones(len(table_rows)) if row_weights is None else row_weights.astype(np.float64)
        self.n_lanes, self.n_cuts = n_lanes, n_cuts
        self.options = options
        self.q: Floats | None = None
        self.found = [Lane.empty(n_cuts) for _ in range(n_lanes)]
        self.coefficients = np.zeros((len(table_rows), n_lanes))
        self.scores = np.zeros((len(table_rows), n_lanes))

    def run(self, table: Table, frozen: list[bool], n_certified: int, on_report: Any, max_sweeps: int | None = None) -> None:
        problem = Problem.of(table, self.table_rows, self.row_weights)
        lanes = [lane for lane in range(self.n_lanes) if not (frozen and frozen[lane])]
        q = np.zeros_like(problem.ends) if self.q is None else self.q
        u, images = problem.ends - problem.spread(q), np.empty_like(q)
        of_ends, of_q = self.times(problem.ends), np.empty_like(q)
        residual, direction, square, spent = q, q, np.zeros(q.shape[1]), np.full(q.shape[1], np.inf)
        columns = np.zeros(q.shape[1], dtype=bool)
        # As of planes, a small violation is not enough by default; that of kernels is the root of the gap.
        is_default = self.options.gap is not None and not isinstance(self.X, Gram)
        limit = min(self.options.tol, self.options.gap) if is_default else self.options.tol**2
        n_steps, before = 0, {lane: replace(self.found[lane], n_sweeps=0) for lane in range(self.n_lanes)}
        most = self.options.max_iter if max_sweeps is None else max_sweeps
        while True:
            # Beyond that, residuals of the recurrence are rounding errors, and steps lead away: it begins anew from here.
            if not np.any(columns & (square > spent)):
                of_q = self.times(problem.spread(q))
                residual = problem.C * problem.centred(of_ends - of_q) - q
                direction, square = residual.copy(), np.sum(residual**2, axis=0)
                spent = SPENT * square
            images = of_ends - of_q
            u = problem.ends - problem.spread(q)
            left = self.times(problem.spread(residual))
            for lane in lanes:
                self.found[lane] = problem.direction(lane, images, q, residual, left, n_steps, limit)
            is_open = np.zeros(self.n_lanes, dtype=bool)
            is_open[lanes] = [not self.found[lane].has_converged for lane in lanes]
            if on_report is not None and lanes:
                on_report(n_steps, len(q), lanes, [self.found[lane].violation for lane in lanes])
            if not is_open.any() or n_steps >= most:
                break
            columns = np.repeat(is_open, self.n_cuts)
            for _ in range(min(STEPS_AT_ONCE, most - n_steps)):
                is_moving = columns & (square > spent)
                product = self.times(problem.spread(direction))
                change = direction + problem.C * problem.centred(product)
                curvature = np.sum(direction * change, axis=0)
                step = np.where(is_moving & (curvature > 0), square / np.where(curvature > 0, curvature, 1.0), 0.0)
                q, of_q, residual = q + step * direction, of_q + step * product, residual - step * change
                last, square = square, np.sum(residual**2, axis=0)
                direction = residual + np.where(is_moving, square / np.where(last > 0, last, 1.0), 0.0) * direction
                n_steps += 1
        self.q = q
        for lane in range(self.n_lanes):
            if lane in lanes:
                own = slice(lane * self.n_cuts, (lane + 1) * self.n_cuts)
                self.coefficients[:, lane] = u[:, own] @ self.found[lane].mix
                self.scores[:, lane] = images[:, own] @ self.found[lane].mix
            else:
                self.found[lane] = before[lane]

    def times(self, V: Floats) -> Floats:
        """The kernel matrix times V."""
        if isinstance(self.X, Gram):
            return self.X.times(V)
        dtype, n_threads = self.X.dtype, self.options.n_threads
        weights = np.ascontiguousarray(self.X.T @ V.astype(dtype, copy=False))
        return np.asarray(scores(self.X, weights, n_threads), dtype=np.float64)

    def stretch(self, factor: float, frozen: list[bool]) -> None:
        """The solution for one C is the first guess for the next as it is."""

    def touch_bounds(self) -> list[bool]:
        return [True] * self.n_lanes

    def results(self) -> dict[str, list[Any]]:
        fields = ("n_sweeps", "n_support", "has_converged", "violation", "dual_objective", "gap")
        return {name: [getattr(lane, name) for lane in self.found] for name in fields}

    def score(self, picks: NDArray[np.uint32], first_lane: int, n_wanted: int) -> Floats:
        return self.scores[picks, first_lane : first_lane + n_wanted]

    def offsets(self) -> Floats:
        return np.column_stack([lane.offsets for lane in self.found])

    def take_weights(self, n_wanted: int) -> tuple[NDArray[Any], Floats]:
        coefficients = self.coefficients[:, :n_wanted]
        if isinstance(self.X, Gram):
            return coefficients, self.offsets()
        weights = self.X.T @ coefficients.astype(self.X.dtype)
        return np.ascontiguousarray(weights), self.offsets().astype(self.X.dtype)


@dataclass(frozen=True)
class Lane:
    """The solution of a lane: shares of its ``v_k`` in the direction, offsets, and how good it is."""

    mix: Floats
    offsets: Floats
    n_sweeps: int = 0
    n_support: int = 0
    has_converged: bool = True
    violation: float = 0.0
    dual_objective: float = 0.0
    gap: float = 0.0

    @classmethod
    def empty(cls, n_cuts: int) -> "Lane":
        return cls(np.zeros(n_cuts), np.zeros(n_cuts))


@dataclass(frozen=True)
class Problem:
    """The ranks and weights of all rows on all lanes. Columns are pairs of neighbouring ranks of a lane, lane by lane."""

    by_rank: Any  # (ranks, rows), one where a row has the rank
    ranks: NDArray[np.intp]
    weights: Floats  # (rows, lanes)
    roots: Floats  # (rows, columns)
    sizes: Floats  # (ranks, lanes): sums of weights
    ends: Floats  # (rows, columns): e
    C: Floats  # (columns,)
    n_cuts: int

    @classmethod
    def of(cls, table: Table, table_rows: NDArray[np.int32], row_weights: Floats) -> "Problem":
        _, n_cuts, n_lanes, _ = table.shape
        lo, hi = table[..., 0], table[..., 1]
        ranks = np.max(np.sum(hi > 0, axis=1), axis=1)[table_rows]
        weights = row_weights[:, None] * np.any(hi > lo, axis=1)[table_rows]
        by_rank = sp.csr_array((np.ones(len(ranks)), (ranks, np.arange(len(ranks)))), shape=(n_cuts + 1, len(ranks)))
        sizes = by_rank @ weights
        ends = np.zeros((len(ranks), n_lanes * n_cuts))
        for lane in range(n_lanes):
            shares = weights[:, lane] / np.where(sizes[:, lane] > 0, sizes[:, lane], 1.0)[ranks]
            present = np.flatnonzero(sizes[:, lane] > 0)
            for k, (low, high) in enumerate(itertools.pairwise(present)):
                ends[:, lane * n_cuts + k] = shares * (1.0 * (ranks == high) - (ranks == low))
        C = np.max(np.maximum(hi, -lo), axis=(0, 1))
        return cls(by_rank, ranks, weights, np.repeat(np.sqrt(weights), n_cuts, axis=1), sizes, ends, np.repeat(C, n_cuts), n_cuts)

    def means(self, values: Floats) -> Floats:
        """Means by rank."""
        n_each = values.shape[1] // self.sizes.shape[1]
        sums = self.by_rank @ (np.repeat(self.weights, n_each, axis=1) * values)
        return np.asarray(sums / np.repeat(np.where(self.sizes > 0, self.sizes, 1.0), n_each, axis=1))

    def centred(self, values: Floats) -> Floats:
        """Q: scores centred by rank, times the roots of the weights."""
        return np.asarray(self.roots * (values - self.means(values)[self.ranks]))

    def spread(self, values: Floats) -> Floats:
        """Q', of values that Q has made."""
        return np.asarray(self.roots * values)

    def direction(self, lane: int, images: Floats, q: Floats, residual: Floats, left: Floats, n_steps: int, limit: float) -> Lane:
        """The best mix of the ``v_k`` of a lane, whose scores are ``images``; ``left`` is K times the residuals of the rows."""
        own = slice(lane * self.n_cuts, (lane + 1) * self.n_cuts)
        present = np.flatnonzero(self.sizes[:, lane] > 0)
        n_pairs = len(present) - 1
        if n_pairs < 1:
            return Lane.empty(self.n_cuts)
        v, ends = images[:, own][:, :n_pairs], self.ends[:, own][:, :n_pairs]
        rest = self.spread(residual)[:, own]
        products = ends.T @ v  # d_k.v_l
        # (I + C S) v_k = d_k + r_k before the end, and v_k.(I + C S) v_l has no negative eigenvalue; d_k.v_l may have large ones.
        energy = products + rest[:, :n_pairs].T @ v
        mix = np.zeros(self.n_cuts)
        mix[:n_pairs] = least_on_simplex(0.5 * (energy + energy.T))
        at_ends = products @ mix[:n_pairs]
        rest = rest @ mix
        square = max(0.0, float(np.sum(rest[:, None] * left[:, own] * mix)))
        gap = max(0.0, float(mix[:n_pairs] @ at_ends - at_ends.min())) + 0.5 * square
        value = 0.5 * float(mix[:n_pairs] @ at_ends)
        scale = value + gap
        return Lane(
            mix=mix,
            offsets=self.offsets(lane, v @ mix[:n_pairs], present),
            n_sweeps=n_steps,
            n_support=int(np.count_nonzero(self.weights[:, lane])),
            has_converged=bool(gap <= max(limit, LEAST_GAP) * scale),
            violation=float(np.sqrt(gap / scale)) if scale > 0 else 0.0,
            dual_objective=-value,
            gap=gap,
        )

    def offsets(self, lane: int, scores: Floats, present: NDArray[np.intp]) -> Floats:
        """Boundaries halfway between the means of neighbouring ranks. Ranks without rows are beyond the outermost rows, or share
        the boundary of the ranks around them.
        """
        is_used = self.weights[:, lane] > 0
        weights = np.where(is_used, self.weights[:, lane], 0.0)
        means = (self.by_rank @ (weights * scores))[present] / self.sizes[present, lane]
        used = scores[is_used]
        margin = 1e-3 * (used.max() - used.min())
        found = np.empty(self.n_cuts)
        for cut in range(self.n_cuts):
            above = int(np.searchsorted(present, cut, side="right"))
            if above == 0:
                found[cut] = margin - used.min()
            elif above == len(present):
                found[cut] = -margin - used.max()
            else:
                found[cut] = -0.5 * (means[above - 1] + means[above])
        return found


def least_on_simplex(G: Floats) -> Floats:
    """The minimum of ``a.G a`` over ``a >= 0`` with sum one.

    It is a multiple of the minimum of ``b.G b / 2 - sum b`` over ``b >= 0``, which is a least-squares problem.
    """
    n = len(G)
    if n == 1:
        return np.ones(1)
    scale = float(np.trace(G)) / n
    if scale <= 0:
        return np.full(n, 1.0 / n)
    values, vectors = np.linalg.eigh(G / scale)
    roots = np.sqrt(np.maximum(values, 1e-12))  # negative ones are rounding errors
    found, _ = nnls(roots[:, None] * vectors.T, vectors.sum(axis=0) / roots)
    return np.asarray(found / found.sum())
