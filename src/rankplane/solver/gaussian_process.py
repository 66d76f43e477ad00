"""Gaussian process ordinal regression: Laplace's approximation, its evidence, and what maximises it.

The latent values of the rows are normal with mean zero and the covariance ``k(x, x') = exp(-1/2 sum_j (x_j - x'_j)^2 / l_j^2)``,
with one length scale for all columns or one each. Given these, ranks have the likelihood of ``ordinal_likelihood``. The latent
variance is one, since only its ratio to the noise counts.

**Inducing points.** With m points Z, rows have the covariance ``K = V'V + diag(D)``, where ``V = L^-1 k(Z, X)``, L is the Cholesky
factor of ``k(Z, Z)``, and D makes the diagonal one (Snelson and Ghahramani, "Sparse Gaussian Processes using Pseudo-inputs",
NeurIPS 2005). Memory is m times n. If all rows are points, D is zero and K is the covariance itself, so that the exact model is the
same code.

**The mode** of the posterior is found by Newton's method. With the gradient g and minus the second derivatives W of the log
likelihood, the step goes to ``f = K a`` with ``a = b - R K b``, ``b = W f + g`` and ``R = (K + W^-1)^-1``. By Woodbury, with
``A = I + V diag(c) V'`` and ``c = W / (1 + W D)``, ``R = diag(c) - c V' A^-1 V c``; no row is divided by its W, which may be tiny.

**The evidence** is ``log p(y | f) - 1/2 f.a - 1/2 log |I + K W|`` at the mode. By a parameter of the kernel its derivative is the
product of dK with ``G = 1/2 a a' + u a' - 1/2 R``, where ``u = s - R K s`` and s is half the posterior variances times the third
derivatives: it stands for the move of the mode (Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, 5.5.1).
The diagonal of K is constant, so the diagonal of G does not count, and the rest is the product with dQ, ``Q = V'V``.

**Held-out rows.** At the mode, row i has the likelihood of a normal value with precision W_i. Without it, the posterior of its
latent value has the variance ``v = S_i / (1 - W_i S_i)`` and the mean ``f_i - v g_i``, S being the posterior variances (Vehtari,
Mononen, Tolvanen, Sivula and Winther, "Bayesian Leave-one-out Cross-validation Approximations for Gaussian Latent Variable Models",
Journal of Machine Learning Research 17, 2016). Length scales, noise and thresholds are not learnt again. Of several maxima of the
evidence, the one that predicts these rows best is taken.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, solve_triangular
from scipy.optimize import minimize
from scipy.special import ndtri

from rankplane.solver.blas import one_thread
from rankplane.solver.kernels import FixedRows, Kernel
from rankplane.solver.ordinal_likelihood import Ends, Floats, Likelihood, Terms, log_probabilities

JITTER = 1e-8  # of the latent variance, which is one
MAX_STEPS = 100  # of Newton's method
# Steps of the mode, squared and per row, in deviations of its likelihood: where it has arrived, and where the objective is flat.
LEAST_MOVE, NEAR = 1e-20, 1e-10
FIRST_ROWS = 500  # on which starts are compared
LENGTHS, NOISES, FIRST_THRESHOLDS, WIDTHS = (1e-2, 1e3), (1e-2, 1e2), (-8.0, 8.0), (1e-4, 16.0)  # bounds, lengths in typical ones
LEAST_GAIN, LEAST_SLOPE = 1e-8, 1e-5  # of the evidence per row, at which the search ends


def cholesky(A: Floats) -> Floats:
    return np.asarray(np.linalg.cholesky(A), dtype=np.float64)


@dataclass(frozen=True)
class Rows:
    """Training rows: dense columns, rank numbers, and how often each row counts."""

    X: Floats
    ranks: NDArray[np.intp]
    weights: Floats
    n_ranks: int

    def __len__(self) -> int:
        return len(self.X)

    @classmethod
    def of(cls, X: Floats, ranks: NDArray[Any], weights: Floats, n_ranks: int) -> tuple[Self, NDArray[np.intp]]:
        """Equal rows of the same rank become one with the sum of their weights; returns also which one each row became."""
        _, first, place = np.unique(np.column_stack([X, ranks]), axis=0, return_index=True, return_inverse=True)
        place = place.ravel()
        sums = np.bincount(place, weights).astype(np.float64)
        return cls(X[first], ranks[first].astype(np.intp), sums, n_ranks), place

    def take(self, rows: NDArray[np.intp]) -> "Rows":
        return replace(self, X=self.X[rows], ranks=self.ranks[rows], weights=self.weights[rows])

    @cached_property
    def typical_lengths(self) -> Floats:
        """At which two rows have a squared distance of about two; one for constant columns."""
        mean = self.weights @ self.X / self.weights.sum()
        variances = self.weights @ np.square(self.X - mean) / self.weights.sum()
        is_constant = np.ptp(self.X, axis=0) == 0
        return np.where(is_constant, 1.0, np.sqrt(np.maximum(variances, 1e-300) * max(1, np.sum(~is_constant))))


@dataclass(frozen=True)
class Parameters:
    """Length scales (one per column), noise, and thresholds."""

    lengths: Floats
    likelihood: Likelihood


@dataclass(frozen=True)
class Chart:
    """Parameters as a vector for the optimiser: logarithms of lengths and noise, then thresholds.

    Thresholds are divided by the deviation of value and noise together, so that the shares of the ranks stay as they are when the
    noise changes: the first one, and logarithms of the differences.
    """

    typical: Floats
    has_own_lengths: bool
    shares: Floats  # of the ranks below each threshold

    @classmethod
    def of(cls, rows: Rows, has_own_lengths: bool) -> Self:
        counts = np.bincount(rows.ranks, rows.weights, minlength=rows.n_ranks)
        own = rows.typical_lengths
        typical = own if has_own_lengths else np.full(len(own), np.sqrt(np.sum(own**2) / len(own)))
        return cls(typical, has_own_lengths, (np.cumsum(counts)[:-1] + 0.5) / (counts.sum() + 1))

    @property
    def n_lengths(self) -> int:
        return len(self.typical) if self.has_own_lengths else 1

    def start(self, generator: np.random.Generator | None = None) -> Floats:
        """The usual start, or one by chance."""
        placed = ndtri(self.shares)
        widths = np.log(np.clip(np.diff(placed), *WIDTHS))
        if generator is None:
            return np.concatenate([np.zeros(self.n_lengths + 1), placed[:1], widths])
        lengths, noise = generator.normal(size=self.n_lengths), generator.uniform(np.log(0.1), np.log(3))
        return np.concatenate([lengths, [noise], placed[:1], widths])

    def bounds(self) -> list[tuple[float, float]]:
        lengths, noises, widths = ((math.log(low), math.log(high)) for low, high in (LENGTHS, NOISES, WIDTHS))
        return [*[lengths] * self.n_lengths, noises, FIRST_THRESHOLDS, *[widths] * (len(self.shares) - 1)]

    def parameters(self, vector: Floats) -> Parameters:
        lengths, rest = self.typical * np.exp(vector[: self.n_lengths]), vector[self.n_lengths :]
        noise = float(np.exp(rest[0]))
        placed = rest[1] + np.concatenate([[0.0], np.cumsum(np.exp(rest[2:]))])
        return Parameters(lengths, Likelihood(noise, np.hypot(1.0, noise) * placed))

    def gradient(self, vector: Floats, by_length: Floats, by_noise: float, by_threshold: Floats) -> Floats:
        """By the vector, from those by log lengths, log noise and thresholds."""
        rest = vector[self.n_lengths :]
        noise = float(np.exp(rest[0]))
        scale = float(np.hypot(1.0, noise))
        placed = rest[1] + np.concatenate([[0.0], np.cumsum(np.exp(rest[2:]))])
        of_lengths = by_length if self.has_own_lengths else by_length.sum(keepdims=True)
        of_noise = by_noise + by_threshold @ placed * noise**2 / scale
        above = np.cumsum(by_threshold[::-1])[::-1] * scale  # a difference moves all thresholds above it
        return np.concatenate([of_lengths, [of_noise], above[:1], above[1:] * np.exp(rest[2:])])


@dataclass(frozen=True)
class Covariance:
    """The covariance of the rows by way of the points."""

    factor: Floats  # L, of the points
    V: Floats
    D: Floats
    among: Floats  # of the points, without the jitter
    across: Floats  # of points and rows

    @classmethod
    def of(cls, points: Floats, X: Floats, lengths: Floats) -> Self:
        fixed = FixedRows(Kernel("rbf", 0.5), X / lengths)
        across = fixed.against(points / lengths)
        among = FixedRows(Kernel("rbf", 0.5), points / lengths).against(points / lengths)
        factor = cholesky(among + JITTER * np.eye(len(points)))
        V = solve_triangular(factor, across, lower=True, check_finite=False)
        return cls(factor, V, np.maximum(1.0 - np.einsum("ij,ij->j", V, V), 0.0), among, across)

    def times(self, a: Floats) -> Floats:
        return np.asarray(self.D * a + self.V.T @ (self.V @ a))


@dataclass(frozen=True)
class Mode:
    """The mode of the posterior and, there, the terms of the likelihood and the factor of A."""

    covariance: Covariance
    f: Floats
    a: Floats
    ends: Ends
    terms: Terms
    c: Floats
    factor: Floats

    @classmethod
    def at(cls, covariance: Covariance, f: Floats, a: Floats, likelihood: Likelihood, rows: Rows) -> Self:
        ends = likelihood.ends(f, rows.ranks)
        terms = likelihood.terms(ends, rows.weights)
        c = terms.curvature / (1.0 + terms.curvature * covariance.D)
        scaled = covariance.V * np.sqrt(c)
        return cls(covariance, f, a, ends, terms, c, cholesky(scaled @ scaled.T + np.eye(len(scaled))))

    @classmethod
    def find(cls, covariance: Covariance, likelihood: Likelihood, rows: Rows, a: Floats) -> Self:
        """Newton's method from ``a``, with steps halved until the objective grows, as long as that shows."""
        f = covariance.times(a)
        value = likelihood.log(f, rows.ranks, rows.weights) - 0.5 * float(a @ f)
        if not value > likelihood.log(np.zeros_like(f), rows.ranks, rows.weights):
            f, a = np.zeros_like(f), np.zeros_like(a)
            value = likelihood.log(f, rows.ranks, rows.weights)
        size = np.inf
        for _ in range(MAX_STEPS):
            found = cls.at(covariance, f, a, likelihood, rows)
            b = found.terms.curvature * f + found.terms.first
            move = b - found.resolved(covariance.times(b)) - a
            shift = covariance.times(move)
            before, size = size, float(found.terms.curvature @ shift**2) / len(f)
            if size <= LEAST_MOVE or (size <= NEAR and size >= before):
                break
            share = 1.0
            while True:
                tried = likelihood.log(f + share * shift, rows.ranks, rows.weights)
                tried -= 0.5 * float((a + share * move) @ (f + share * shift))
                if tried >= value or size * share**2 <= NEAR:
                    break
                share /= 2
            f, a, value = f + share * shift, a + share * move, tried
        return found

    def resolved(self, values: Floats) -> Floats:
        """R times values."""
        scaled = self.c * values
        inner = cho_solve((self.factor, True), self.covariance.V @ scaled, check_finite=False)
        return np.asarray(scaled - self.c * (self.covariance.V.T @ inner))

    @property
    def log_evidence(self) -> float:
        determinant = np.sum(np.log1p(self.terms.curvature * self.covariance.D)) + 2 * np.sum(np.log(np.diag(self.factor)))
        return float(np.sum(self.terms.value) - 0.5 * self.a @ self.f - 0.5 * determinant)

    @cached_property
    def inner_variances(self) -> Floats:
        """``V_i' A^-1 V_i`` of each row."""
        found = solve_triangular(self.factor, self.covariance.V, lower=True, check_finite=False)
        return np.asarray(np.einsum("ij,ij->j", found, found))

    @property
    def variances(self) -> Floats:
        """Posterior variances of the latent values."""
        shrunk = 1.0 + self.terms.curvature * self.covariance.D
        return np.asarray(self.covariance.D / shrunk + self.inner_variances / shrunk**2)

    def left_out(self) -> tuple[Floats, Floats]:
        """Mean and variance of each row's latent value without the row itself."""
        variances = self.variances
        without = variances / np.maximum(1.0 - self.terms.curvature * variances, 1e-9)
        return self.f - without * self.terms.first, without

    def left_out_value(self, likelihood: Likelihood, rows: Rows) -> float:
        """The log probability of the ranks, each without its row."""
        means, variances = self.left_out()
        scores = np.pad(-likelihood.scores(means, variances), ((0, 0), (1, 1)), constant_values=(-np.inf, np.inf))
        each = np.arange(len(rows))
        return float(rows.weights @ log_probabilities(scores[each, rows.ranks], scores[each, rows.ranks + 1]))

    def slopes(self, likelihood: Likelihood, rows: Rows, points: Floats, lengths: Floats) -> tuple[Floats, float, Floats]:
        """Derivatives of the evidence by log lengths, by the log noise and by the thresholds."""
        covariance, a, variances = self.covariance, self.a, self.variances
        s = 0.5 * variances * self.terms.third
        u = s - self.resolved(covariance.times(s))
        # T = P G0 with P = L^-T V, whose product with R is L^-T A^-1 V c.
        P = solve_triangular(covariance.factor, covariance.V, lower=True, trans=1, check_finite=False)
        T = cho_solve((self.factor, True), covariance.V * self.c, check_finite=False)
        T = -0.5 * solve_triangular(covariance.factor, T, lower=True, trans=1, check_finite=False)
        Pa, Pu = P @ a, P @ u
        T += np.outer(Pa, 0.5 * a + 0.5 * u) + np.outer(Pu, 0.5 * a)
        T -= P * (0.5 * a**2 + a * u - 0.5 * (self.c - self.c**2 * self.inner_variances))
        among = (T @ P.T) * covariance.among
        T *= covariance.across
        by_length = 2 * squared_sums(T, points, rows.X) - squared_sums(among, points, points)
        moved = covariance.times(u)

        def total(slopes: Any) -> Floats:
            found = slopes.value + 0.5 * variances * slopes.second + moved * slopes.first
            return np.asarray(rows.weights * found)

        highs = np.bincount(rows.ranks, total(likelihood.of_high(self.ends)), minlength=rows.n_ranks)
        lows = np.bincount(rows.ranks, total(likelihood.of_low(self.ends)), minlength=rows.n_ranks)
        by_noise = float(np.sum(total(likelihood.of_log_noise(self.ends))))
        return by_length / lengths**2, by_noise, np.asarray(highs[:-1] + lows[1:], dtype=np.float64)


def squared_sums(weights: Floats, Z: Floats, X: Floats) -> Floats:
    """Of each column the sum of ``weights_ij (z_i - x_j)^2``."""
    centre = X.mean(axis=0)
    Z, X = Z - centre, X - centre
    crossed = np.einsum("ij,ij->j", Z, weights @ X)
    return np.asarray(weights.sum(axis=1) @ np.square(Z) + weights.sum(axis=0) @ np.square(X) - 2 * crossed)


class Evidence:
    """Minus the log evidence per row and its gradient, as functions of the vector. Remembers the last mode, to start from."""

    def __init__(self, rows: Rows, chart: Chart, points: Floats) -> None:
        self.rows, self.chart, self.points = rows, chart, points
        self.a = np.zeros(len(rows))

    def mode(self, vector: Floats) -> tuple[Mode, Parameters]:
        parameters = self.chart.parameters(vector)
        covariance = Covariance.of(self.points, self.rows.X, parameters.lengths)
        found = Mode.find(covariance, parameters.likelihood, self.rows, self.a)
        self.a = found.a
        return found, parameters

    def __call__(self, vector: Floats) -> tuple[float, Floats]:
        found, parameters = self.mode(vector)
        slopes = found.slopes(parameters.likelihood, self.rows, self.points, parameters.lengths)
        return -found.log_evidence / len(self.rows), -self.chart.gradient(vector, *slopes) / len(self.rows)

    def maximised(self, start: Floats, max_iter: int) -> Any:
        options = {"maxiter": max_iter, "ftol": LEAST_GAIN, "gtol": LEAST_SLOPE}
        bounds = self.chart.bounds()
        begun = np.clip(start, *np.array(bounds).T)
        return minimize(self, begun, jac=True, method="L-BFGS-B", bounds=bounds, options=options)


class Process(NamedTuple):
    """What was learnt: predictions need the points, the kernel and two products with it."""

    points: Floats
    lengths: Floats
    likelihood: Likelihood
    weights: Floats  # of k(x, points) in the mean
    spread: Floats  # its product with k(x, points) has the square that the variance lacks to one

    def scores(self, X: Floats) -> Floats:
        across = FixedRows(Kernel("rbf", 0.5), self.points / self.lengths).against(X / self.lengths)
        variances = np.maximum(1.0 - np.sum(np.square(across @ self.spread.T), axis=1), 0.0)
        return self.likelihood.scores(across @ self.weights, variances)


class Learnt(NamedTuple):
    """A process, with the scores of training rows, each without itself."""

    process: Process
    held_out: Floats
    log_evidence: float
    n_iter: int
    has_converged: bool


def spread_points(X: Floats, n_points: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Rows far from each other, as k-means++ starts: each next one with a probability that grows with its squared distance."""
    chosen = [int(generator.integers(len(X)))]
    distances = np.sum(np.square(X - X[chosen[0]]), axis=1)
    while len(chosen) < n_points and distances.sum() > 0:
        chosen.append(int(generator.choice(len(X), p=distances / distances.sum())))
        np.minimum(distances, np.sum(np.square(X - X[chosen[-1]]), axis=1), out=distances)
    return np.sort(np.array(chosen))


def learn(
    rows: Rows,
    n_points: int,
    *,
    has_own_lengths: bool,
    n_restarts: int,
    max_iter: int,
    seed: int,
    n_threads: int,
) -> Learnt:
    """Maximise the evidence: on some rows from several starts, then on all rows from the best of these."""
    generator = np.random.default_rng(seed)
    chart = Chart.of(rows, has_own_lengths)
    is_small = len(rows) <= min(n_points, FIRST_ROWS)
    few = rows if is_small else rows.take(np.sort(generator.permutation(len(rows))[: min(FIRST_ROWS, n_points)]))
    starts = [chart.start(), *(chart.start(generator) for _ in range(n_restarts))]

    def maximised(start: Floats) -> tuple[float, Any]:
        evidence = Evidence(few, chart, few.X)
        found = evidence.maximised(start, max_iter)
        mode, parameters = evidence.mode(found.x)
        return mode.left_out_value(parameters.likelihood, few), found

    with one_thread():
        if n_threads == 1:  # on this thread, so that an interruption ends it
            tried = [maximised(start) for start in starts]
        else:
            with ThreadPoolExecutor(n_threads) as pool:
                tried = list(pool.map(maximised, starts))
        # Not by the evidence: where rows are nearly independent and the noise is small, Laplace's is far too high.
        _, best = max(tried, key=lambda pair: pair[0])
        points = rows.X
        if n_points < len(rows):
            points = rows.X[spread_points(rows.X / chart.parameters(best.x).lengths, n_points, generator)]
        evidence = Evidence(rows, chart, points)
        if not is_small:
            best = evidence.maximised(best.x, max_iter)
        mode, parameters = evidence.mode(best.x)
        process = process_of(mode, points, parameters)
    held_out = parameters.likelihood.scores(*mode.left_out())
    return Learnt(process, held_out, mode.log_evidence, int(best.nit), bool(best.nit < max_iter))


def process_of(mode: Mode, points: Floats, parameters: Parameters) -> Process:
    """The values at the points, whitened by L, have the mean ``V a`` and the covariance ``A^-1``."""
    factor = mode.covariance.factor
    mean = solve_triangular(factor, mode.covariance.V @ mode.a, lower=True, trans=1, check_finite=False)
    values, vectors = np.linalg.eigh(mode.factor @ mode.factor.T)
    root = vectors * np.sqrt(np.maximum(1.0 - 1.0 / values, 0.0))  # of I - A^-1
    spread = solve_triangular(factor, root, lower=True, trans=1, check_finite=False).T
    return Process(points, parameters.lengths, parameters.likelihood, mean, np.ascontiguousarray(spread))
