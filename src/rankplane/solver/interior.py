"""An interior-point method for tables of few columns, where coordinate descent is slow.

With few columns and many rows, all rows pull at the same few weights, and a step on one dual undoes most of the last one: at a
large C, sweeps go on for tens of thousands. The dual has a matrix of low rank there, so a step on all duals at once is cheap:
some twenty steps, each of which solves for as many unknowns as there are columns and cuts (Ferris and Munson, "Interior-Point
Methods for Massive Support Vector Machines", SIAM Journal on Optimization 13, 2002). It takes the tables of ``tables.py`` as they
are; what it finds is only where sweeps start from, so that convergence and the gap are judged as ever.

A dual ``a`` in ``[lo, hi]`` is split into its two sides, ``a = v`` above zero and ``a = -v`` below, with ``s`` the sign:

    minimise over v in [0, u]:   1/2 |A v|^2 + 1/2 D v^2 + c v,      c = e - s t,     A v = sum of s v (x, sqrt(rho))

With ``theta = (w, b)`` and the score ``z`` of a row, and multipliers ``low`` and ``high`` of the two bounds, the solution has

    s z + c + D v - low + high = 0,     w = sum s v x,     b = rho sum s v,     low v = 0,     high (u - v) = 0

and free offsets have ``sum s v = 0`` instead. Every step is one of Newton's method on these equations with the products set to a
``mu`` that falls to zero (Mehrotra's predictor and corrector).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

Floats = NDArray[np.float64]
MAX_STEPS = 60
NEVER = np.iinfo(np.int64).max
MAX_COLUMNS, MAX_VALUES = 300, 1 << 26
SMALL_PRODUCTS, NEAR = 1e-15, 1e-9  # of bounds and multipliers, relative to the objective
SMALL_RESIDUAL = 1e-9
RIDGE = 1e-14
TO_BOUND = 0.995  # how much of the way to the nearest bound a step may go


def sweeps_before(shape: tuple[int, ...]) -> int:
    """How many sweeps to take first: about as many as cost what the interior-point method does."""
    n_rows, n_columns = shape
    return 100 + 4 * n_columns if n_columns <= MAX_COLUMNS and n_rows * n_columns <= MAX_VALUES else NEVER


def takes(table: NDArray[Any]) -> bool:
    """Whether the costs of a table are quadratic; soft ones are not."""
    return not np.any(table[..., 5])


class Solution(NamedTuple):
    """Of a lane: duals ``(visits, cuts)`` that lie on their bounds where they should, weights, and offsets, one per cut."""

    duals: NDArray[Any]
    weights: Floats
    offsets: Floats


@dataclass(frozen=True)
class Sides:
    """The sides of all duals of a lane that are not held at zero: which row, cut and visit each belongs to."""

    row: NDArray[np.intp]
    cut: NDArray[np.intp]
    place: NDArray[np.intp]  # in the duals (visits, cuts)
    sign: Floats
    bound: Floats
    D: Floats
    c: Floats

    @classmethod
    def of(cls, demands: NDArray[Any], n_rows: int) -> "Sides":
        """Of demands ``(visits, cuts, 6)``, which include the weights of rows."""
        n_cuts = demands.shape[1]
        lo, hi, t, e, D = np.moveaxis(demands.reshape(-1, demands.shape[-1])[:, :5], 1, 0).astype(np.float64)
        places = [np.flatnonzero(hi > 0), np.flatnonzero(lo < 0)]
        place = np.concatenate(places)
        sign = np.repeat([1.0, -1.0], [len(part) for part in places])
        bound = np.where(sign > 0, hi[place], -lo[place])
        return cls(place // n_cuts % n_rows, place % n_cuts, place, sign, bound, D[place], e[place] - sign * t[place])

    def has_both_signs(self, n_cuts: int) -> bool:
        """Whether each cut that has any demands pulls its offset both ways, so that a free offset has a finite optimum."""
        up, down = (np.bincount(self.cut[self.sign == sign], minlength=n_cuts) for sign in (1.0, -1.0))
        return bool(np.all((up > 0) == (down > 0)))


class Lane:
    """One lane: a direction and its cuts. ``rho`` is 0 without offsets, infinite where they are free."""

    def __init__(self, X: Floats, sides: Sides, n_cuts: int, rho: float) -> None:
        self.X, self.sides, self.n_cuts, self.rho = X, sides, n_cuts, rho
        self.flat = sides.row * n_cuts + sides.cut
        self.n_columns = X.shape[1]
        # Offsets that nothing depends on stay where they are.
        is_used = np.bincount(sides.cut, minlength=n_cuts) > 0
        of_offsets = np.where(is_used & (rho > 0), 1 / rho if rho > 0 else 0.0, 1.0)
        self.penalty = np.concatenate([np.ones(self.n_columns), of_offsets])

    def margins(self, theta: Floats) -> Floats:
        """``s z``, for each side."""
        offsets = theta[self.n_columns :]
        if self.rho == 0:
            offsets = np.zeros_like(offsets)
        z = (self.X @ theta[: self.n_columns])[:, None] + offsets
        return np.asarray(self.sides.sign * z.ravel()[self.flat])

    def by_row(self, values: Floats) -> Floats:
        """Sums over the sides of each row and cut."""
        sums = np.bincount(self.flat, values, minlength=len(self.X) * self.n_cuts)
        return np.asarray(sums.reshape(-1, self.n_cuts), dtype=np.float64)

    def gathered(self, values: Floats) -> Floats:
        """``sum s v (x, 1)``: what values of the sides add to weights and offsets."""
        sums = self.by_row(self.sides.sign * values)
        offsets = sums.sum(axis=0) if self.rho > 0 else np.zeros(self.n_cuts)
        return np.concatenate([self.X.T @ sums.sum(axis=1), offsets])

    def factorised(self, of_side: Floats) -> Callable[[Floats], Floats]:
        """What solves for weights and offsets, where each side counts this much."""
        matrix = self.curvature(of_side)
        scale = 1 / np.sqrt(np.diag(matrix))
        scaled = matrix * scale * scale[:, None] + RIDGE * np.eye(len(scale))
        factor = cho_factor(scaled, check_finite=False)
        return lambda right: scale * cho_solve(factor, scale * right, check_finite=False)

    def curvature(self, of_side: Floats) -> Floats:
        by_row, d = self.by_row(of_side), self.n_columns
        matrix = np.diag(self.penalty)
        scaled = self.X * np.sqrt(by_row.sum(axis=1))[:, None]
        matrix[:d, :d] += scaled.T @ scaled
        if self.rho > 0:
            matrix[:d, d:] = self.X.T @ by_row
            matrix[d:, :d] = matrix[:d, d:].T
            matrix[d:, d:] += np.diag(by_row.sum(axis=0))
        return matrix

    def solve(self) -> tuple[Floats, Floats] | None:
        """The duals of the sides, on their bounds where they should be, and ``theta``; None where that fails."""
        sides = self.sides
        u, D, c = sides.bound, sides.D, sides.c
        is_bounded = np.isfinite(u)
        v = np.where(is_bounded, 0.5 * np.where(is_bounded, u, 0.0), 0.5 / np.where(D > 0, D, 1.0))
        size = v.copy()  # what is large for a dual
        room = np.where(is_bounded, v, 1.0)  # to the upper bound; kept, since u - v would round to zero
        theta = np.zeros(len(self.penalty))
        low, high = np.ones(len(v)), is_bounded.astype(np.float64)
        n_products = len(v) + np.count_nonzero(is_bounded)
        products = np.inf
        for _ in range(MAX_STEPS):
            before, products = products, float(low @ v + high @ room)
            residual = self.margins(theta) + c + D * v - low + high
            uneven = self.penalty * theta - self.gathered(v)
            objective = float(np.abs(c) @ v) + 0.5 * float(theta @ (self.penalty * theta))
            off = max(np.abs(residual).max(), np.abs(uneven).max() / (1 + np.abs(self.penalty * theta).max()))
            is_near = products <= NEAR * objective and off <= SMALL_RESIDUAL
            if products <= SMALL_PRODUCTS * objective or (is_near and products > 0.5 * before):
                break
            of_side = 1 / (D + low / v + high / room)
            try:
                factor = self.factorised(of_side)
            except LinAlgError:  # as far as rounding lets it go
                break
            wanted_low, wanted_high = np.zeros(len(v)), np.zeros(len(v))
            for is_last in (False, True):
                g = wanted_low / v - low - (wanted_high / room - high) - residual
                move = factor(self.gathered(of_side * g) - uneven)
                dv = of_side * (g - self.margins(move))
                dlow = (wanted_low - low * dv) / v - low
                dhigh = np.where(is_bounded, (wanted_high + high * dv) / room - high, 0.0)
                length = longest((v, dv), (room, np.where(is_bounded, -dv, 0.0)), (low, dlow), (high, dhigh))
                if is_last:
                    break
                after = float((low + length * dlow) @ (v + length * dv))
                after += float((high + length * dhigh)[is_bounded] @ (room - length * dv)[is_bounded])
                mu = products / n_products * (after / products) ** 3
                wanted_low, wanted_high = mu - dlow * dv, np.where(is_bounded, mu + dhigh * dv, 0.0)
            length *= TO_BOUND
            v, room, theta = v + length * dv, np.where(is_bounded, room - length * dv, 1.0), theta + length * move
            low, high = low + length * dlow, high + length * dhigh
        if not np.all(np.isfinite(theta)):
            return None
        # At the optimum, of a dual and its multiplier one is zero; scores, and so multipliers, are about one.
        v = np.where(v / size < low, 0.0, v)
        return np.where(is_bounded & (room / size < high), u, v), theta


def longest(*steps: tuple[Floats, Floats]) -> float:
    """How far, at most 1, values may move along their steps and stay positive."""
    length = 1.0
    for values, moves in steps:
        is_falling = moves < 0
        if is_falling.any():
            length = min(length, float(np.min(values[is_falling] / -moves[is_falling])))
    return length


def solve_lane(X: Floats, demands: NDArray[Any], rho: float) -> Solution | None:
    """Solve one lane, whose visits make these demands; None where there is nothing to solve, or no finite optimum."""
    n_cuts = demands.shape[1]
    sides = Sides.of(demands, len(X))
    if len(sides.place) == 0 or (np.isinf(rho) and not sides.has_both_signs(n_cuts)):
        return None
    lane = Lane(X, sides, n_cuts, rho)
    found = lane.solve()
    if found is None:
        return None
    v, theta = found
    flat = np.zeros(demands.shape[0] * n_cuts)
    np.add.at(flat, sides.place, sides.sign * v)
    duals = flat.reshape(-1, n_cuts).astype(demands.dtype)
    # The weights of just these duals, as sweeps would have them.
    by_row = duals.astype(np.float64).reshape(-1, len(X), n_cuts).sum(axis=0)
    offsets = theta[lane.n_columns :] if np.isinf(rho) else rho * by_row.sum(axis=0)
    return Solution(duals, X.T @ by_row.sum(axis=1), offsets)
