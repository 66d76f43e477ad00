"""The solver again, in plain numpy: one lane, one row, one cut at a time. Slow and obvious; the core must agree with it."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

MASK = (1 << 64) - 1


def next_order(order, seed, n_sweeps):
    """The core's random order of a sweep, from the order of the one before: splitmix64 and a backwards shuffle."""
    state = (seed * 0xD6E8FEB86659FD93 + n_sweeps * 0xA0761D6478BD642F) & MASK
    order = order.copy()
    for i in range(len(order), 1, -1):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        bits = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
        j = (((bits ^ (bits >> 31)) >> 32) * i) >> 32
        order[i - 1], order[j] = order[j], order[i - 1]
    return order


def step(a, score, offset, demand, weight, square_norm, rho):
    """The exact minimum along one dual variable."""
    lo, hi, t, e, d, soft = demand
    if soft:
        return soft_step(a, score + offset - t, (weight * lo, weight * hi, e), square_norm + rho)
    lo, hi, d = lo * weight, hi * weight, d / weight
    curvature = max(square_norm + rho + d, 1e-30)
    u = a - (score + offset + d * a - t) / curvature
    return np.clip(np.sign(u) * max(abs(u) - e / curvature, 0.0), lo, hi)


def soft_dual(r, demand):
    """The slope of a soft loss at residual r."""
    lo, hi, e = demand
    return (lo + hi) / 2 + (hi - lo) / 2 * (expit(r - e) - expit(-r - e))


def soft_step(a, gradient, demand, curvature):
    """Where the dual is what its residual asks for, by bisection."""

    def excess(step):
        return a + step - soft_dual(-gradient - curvature * step, demand)

    target = -excess(0.0)
    return a if target == 0 else a + brentq(excess, *sorted((0.0, target)), xtol=1e-16)


def solve(X, table, table_rows, n_sweeps, *, rho=1.0, weights=None, seed=0, coupling=None):
    """Weights, offsets and duals after some sweeps without shrinking. ``coupling`` mixes the scores of the lanes."""
    X = np.asarray(X, dtype=float)
    n_rows, n_visits = len(X), len(table_rows)
    _, n_cuts, n_lanes, _ = table.shape
    weights = np.ones(n_rows) if weights is None else weights
    coupling = np.eye(n_lanes) if coupling is None else coupling
    W, b, duals = np.zeros((X.shape[1], n_lanes)), np.zeros((n_cuts, n_lanes)), np.zeros((n_visits, n_cuts, n_lanes))
    order = np.arange(n_visits)
    for sweep in range(n_sweeps):
        order = next_order(order, seed, sweep)
        for visit in order:
            i = visit % n_rows
            for lane in range(n_lanes):
                for cut in range(n_cuts):
                    a, demand = duals[visit, cut, lane], table[table_rows[visit], cut, lane]
                    score, square_norm = X[i] @ W @ coupling[lane], coupling[lane, lane] * (X[i] @ X[i])
                    new = step(a, score, b[cut, lane], demand, weights[i], square_norm, rho)
                    W[:, lane] += (new - a) * X[i]
                    b[cut, lane] += rho * (new - a)
                    duals[visit, cut, lane] = new
    return W @ coupling, b, duals


def loss(z, demand):
    """What a score costs: the conjugate of the dual's own terms."""
    lo, hi, t, e, d, soft = demand
    if soft:
        r = t - z
        return (lo + hi) / 2 * r + (hi - lo) / 2 * (np.logaddexp(0, r - e) + np.logaddexp(0, -r - e))
    pull = np.sign(t - z) * max(abs(t - z) - e, 0.0)
    if d > 0:
        best = np.clip(pull / d, lo, hi)
        return best * pull - 0.5 * d * best**2
    return (hi if pull > 0 else lo) * pull


def primal(X, W, b, table, table_rows, *, rho=1.0):
    """The primal objective of every lane, offsets penalised unless rho is infinite."""
    scores = np.asarray(X) @ W
    values = 0.5 * np.sum(W**2, axis=0) + (0 if rho == 0 else 0.5 * np.sum(b**2, axis=0) / rho)
    for visit, row in enumerate(table_rows):
        for cut in range(table.shape[1]):
            for lane in range(table.shape[2]):
                values[lane] += loss(scores[visit % len(scores), lane] + b[cut, lane], table[row, cut, lane])
    return values
