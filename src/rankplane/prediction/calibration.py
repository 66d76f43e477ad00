"""From plane scores to probabilities of the ranks.

The calibrators are trained on held-out scores, rows scored by planes that never saw them; scores of training rows would
promise too much. They have the same shape: ``fit(scores, ranks, n_ranks)``, ``probabilities(scores)``, and arrays that a model
file can hold.

``Multinomial`` is logistic regression on all scores: P(r) is proportional to exp(a_r . f + b_r), with a weak pull of ``a`` to
zero. A Newton step costs one product of the scores with themselves per pair of ranks, and a handful of steps suffice.

With more than ten ranks, neighbours have much in common: the scores of neighbouring planes are averaged to at most ten inputs, and
``a_r`` is a smooth function of r, a sum of the ten slowest cosines over the ranks. So the unknowns do not multiply with the ranks,
time and memory are linear in them, and there is less to learn by heart: beyond ten ranks log loss is lower than with a weight
for every plane and rank. Up to ten ranks, inputs and cosines are all there are, and the model is the plain one.

``Curved`` is the same on twice the inputs: each score and its distance from the plane. The odds of a rank may then fall on both
sides of its plane, where a straight line can only rise or fall.

``Cumulative`` asks of each boundary how likely the row is above it, by a logistic curve of that boundary's score, and forces
the answers to fall from boundary to boundary.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankplane.solver.blas import one_thread

Floats = NDArray[np.float64]
FARTHEST = 1e6  # scores beyond any of training tell no more, but would overflow
MANY = 10  # ranks, beyond which neighbours share what they know


class Calibrator(Protocol):
    def probabilities(self, scores: NDArray[Any]) -> Floats: ...


def softmax(z: Floats) -> Floats:
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(z / z.sum(axis=1, keepdims=True))


def spread(scores: Floats) -> Floats:
    """Standard deviations to divide by. A plane that hardly tells held-out rows apart counts as no finer than a tenth of the rest:
    blown up to their size, it would drown them as soon as it told new rows apart a little better.
    """
    deviation = np.maximum(scores.std(axis=0), 0.1 * scores.std(axis=0).max(initial=0.0))
    return np.where(deviation > 0, deviation, 1.0)


def waves(n_ranks: int) -> Floats:
    """Cosines over the ranks, slowest first, without the constant: an orthonormal basis of all that differs between ranks."""
    places = (np.arange(n_ranks) + 0.5) / n_ranks
    return np.asarray(np.sqrt(2 / n_ranks) * np.cos(np.pi * np.outer(places, np.arange(1, n_ranks))))


def rows_of_products(A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    """Row by row, all entries of one times all entries of the other."""
    return np.asarray((A[:, :, None] * B[:, None, :]).reshape(len(A), A.shape[1] * B.shape[1]))


def averaged(scores: NDArray[Any], n_ranks: int) -> NDArray[Any]:
    """Means over runs of neighbouring planes, so that no more than ``MANY`` inputs come from one plane per rank."""
    width = -(-n_ranks // MANY)
    if width == 1:
        return scores
    n_planes = scores.shape[1]
    # A committee has one set of planes after the other; runs do not cross from one to the next.
    starts = [first for kind in range(0, n_planes, n_ranks) for first in range(kind, min(kind + n_ranks, n_planes), width)]
    return np.asarray(np.add.reduceat(scores, starts, axis=1) / np.diff([*starts, n_planes]))


@dataclass(frozen=True)
class LogisticProblem:
    """Logistic regression on scaled inputs with a column of ones, ``F``.

    The unknowns ``T`` are weights of waves over the ranks, ``(inputs, waves)``: rank r has the weights ``T @ waves[r]``. Inputs
    have the first ``MANY`` waves, which is all of them for few ranks; intercepts, in the last row, always have all.
    """

    F: Floats
    ranks: NDArray[np.intp]  # their places among those present
    weights: Floats  # of the rows, 1 in the mean
    pull: Floats
    scale: Floats
    present: NDArray[np.intp]
    waves: Floats

    PULL = 1e-3  # towards zero, per row, shared by the weights of a rank
    LEAST_PULL = 1.0  # in all, so that a few hundred rows do not promise too much
    LEAST_CURVED_PULL = 10.0
    MAX_STEPS = 30
    ENOUGH = 1e-7  # objective per row that a further step would have to gain
    SAMPLE = 4096

    @classmethod
    def of(
        cls, inputs: NDArray[Any], ranks: NDArray[np.int32], n_ranks: int, n_straight: int, weights: Floats | None = None
    ) -> Self:
        """Inputs after the first ``n_straight`` are held back more firmly: few rows do not show how scores bend."""
        present = np.flatnonzero(np.bincount(ranks, minlength=n_ranks))
        scale = np.append(spread(inputs.astype(np.float64)), 1.0)
        F = np.column_stack([inputs, np.ones(len(inputs))]) / scale
        pull = np.full(F.shape[1], cls.PULL * len(F) / F.shape[1])
        pull = np.maximum(pull, np.where(np.arange(F.shape[1]) < n_straight, cls.LEAST_PULL, cls.LEAST_CURVED_PULL))
        # The sum over ranks of squared weights grows with the ranks, though neighbours tell the same.
        pull *= MANY / max(MANY, len(present))
        pull[-1] = 0.0
        even = np.ones(len(F)) if weights is None else weights / weights.mean()
        return cls(F, np.searchsorted(present, ranks), even, pull, scale, present, waves(len(present)))

    @property
    def n_slow(self) -> int:
        """Waves that inputs have weights for."""
        return min(MANY, len(self.present) - 1)

    def unscaled(self, T: Floats, n_ranks: int) -> Floats:
        """Weights of all ranks on plain inputs."""
        weights = np.zeros((len(T), n_ranks))
        weights[-1] = -np.inf
        weights[:, self.present] = T @ self.waves.T / self.scale[:, None]
        return weights

    def flat(self, gradient: Floats) -> Floats:
        """The unknowns among ``(inputs, waves)`` as a vector: slow waves of all inputs, then fast ones of the intercept."""
        return np.concatenate([gradient[:, : self.n_slow].T.ravel(), gradient[-1, self.n_slow :]])

    def stepped(self, T: Floats, step: Floats) -> Floats:
        moved = T.copy()
        n_slow = self.n_slow * len(T)
        moved[:, : self.n_slow] += step[:n_slow].reshape(self.n_slow, len(T)).T
        moved[-1, self.n_slow :] += step[n_slow:]
        return moved

    def pulled(self, T: Floats) -> Floats:
        """The gradient of the pull, towards equal weights of all ranks: what differs between ranks is what waves are made of."""
        return np.asarray(self.pull[:, None] * T)

    def probabilities(self, T: Floats, rows: Any = slice(None)) -> Floats:
        return softmax(self.F[rows] @ (T @ self.waves.T))

    def objective(self, T: Floats) -> tuple[float, Floats]:
        """Its value, and the probabilities, which the gradient needs too."""
        z = self.F @ (T @ self.waves.T)
        z -= z.max(axis=1, keepdims=True)
        of_truth = z[np.arange(len(z)), self.ranks]
        odds = np.exp(z, out=z)
        sums = odds.sum(axis=1)
        value = np.sum(self.weights * (np.log(sums) - of_truth)) + 0.5 * np.sum(self.pulled(T) * T)
        odds /= sums[:, None]
        return float(value), odds

    def gradient(self, P: Floats, rows: slice = slice(None)) -> Floats:
        """Of some rows with the probabilities P, without the pull."""
        error = self.weights[rows, None] * P
        error[np.arange(len(P)), self.ranks[rows]] -= self.weights[rows]
        return np.asarray(self.F[rows].T @ error @ self.waves)

    def curvature(self, T: Floats) -> Floats:
        """The Hessian: over rows, the covariance of the waves under the row's probabilities, times its inputs with themselves.

        From a sample of many rows, and in single precision: it only steers the steps, whose worth is measured exactly.
        """
        n_rows, n_inputs = self.F.shape
        rows = self.sample() if n_rows > 2 * self.SAMPLE else np.arange(n_rows)
        F = (self.F[rows] * np.sqrt(self.weights[rows, None])).astype(np.float32)
        P = self.probabilities(T, rows).astype(np.float32)
        slow, fast = np.split(self.waves.astype(np.float32), [self.n_slow], axis=1)
        n_slow = self.n_slow * n_inputs
        hessian = np.zeros((n_slow + fast.shape[1],) * 2)
        # Mean of the products of waves less the product of their means; of the fast waves with the column of ones only.
        slow_means = rows_of_products(P @ slow, F)
        fast_means = (P @ fast) * F[:, -1:]
        by_rank = rows_of_products(F, F).T @ P
        products = (by_rank @ rows_of_products(slow, slow)).reshape(n_inputs, n_inputs, self.n_slow, self.n_slow)
        hessian[:n_slow, :n_slow] = products.transpose(2, 0, 3, 1).reshape(n_slow, n_slow) - slow_means.T @ slow_means
        with_ones = by_rank[-n_inputs:]
        products = (with_ones @ rows_of_products(slow, fast)).reshape(n_inputs, self.n_slow, fast.shape[1])
        hessian[:n_slow, n_slow:] = products.transpose(1, 0, 2).reshape(n_slow, fast.shape[1]) - slow_means.T @ fast_means
        hessian[n_slow:, :n_slow] = hessian[:n_slow, n_slow:].T
        hessian[n_slow:, n_slow:] = (fast.T * with_ones[-1]) @ fast - fast_means.T @ fast_means
        hessian *= n_rows / len(rows)
        hessian[np.arange(n_slow), np.arange(n_slow)] += np.tile(self.pull, self.n_slow)
        return np.asarray(hessian + 1e-9 * n_rows * np.eye(len(hessian)))

    def sample(self) -> NDArray[np.intp]:
        return np.random.default_rng(0).choice(len(self.F), self.SAMPLE, replace=False)

    def minimum(self) -> Floats:
        """Newton's method, first on a sample of the rows, which settles all but the last digits at little cost."""
        T = np.zeros((self.F.shape[1], self.waves.shape[1]))
        n_rows = len(self.F)
        if n_rows > 2 * self.SAMPLE:
            some, share = self.sample(), self.SAMPLE / n_rows
            sample = replace(self, F=self.F[some], ranks=self.ranks[some], weights=self.weights[some], pull=share * self.pull)
            if len(np.unique(sample.ranks)) == len(self.present):
                T = sample.minimum()
        value, P = self.objective(T)
        for _ in range(self.MAX_STEPS):
            gradient = self.gradient(P) + self.pulled(T)
            step: Floats = -np.linalg.solve(self.curvature(T), self.flat(gradient)).astype(np.float64)
            before = value
            while True:  # halve until it helps; far from the minimum a full step may overshoot
                trial = self.stepped(T, step)
                value, P = self.objective(trial)
                if value <= before or np.max(np.abs(step)) < 1e-9:
                    break
                step /= 2
            T = trial
            if before - value <= self.ENOUGH * n_rows:
                break
        return T


@dataclass(frozen=True)
class Multinomial:
    """``weights`` is ``(inputs + 1, ranks)``, the last row the intercepts; minus infinity there marks a rank never seen."""

    weights: Floats

    @staticmethod
    def inputs(scores: NDArray[Any]) -> NDArray[Any]:
        return scores

    @classmethod
    def problem(
        cls, scores: NDArray[Any], ranks: NDArray[np.int32], n_ranks: int, weights: Floats | None = None
    ) -> LogisticProblem:
        straight = averaged(scores, n_ranks)
        return LogisticProblem.of(cls.inputs(straight), ranks, n_ranks, straight.shape[1], weights)

    @classmethod
    def fit(cls, scores: NDArray[Any], ranks: NDArray[np.int32], n_ranks: int) -> Self:
        with one_thread():
            problem = cls.problem(scores, ranks, n_ranks)
            return cls(problem.unscaled(problem.minimum(), n_ranks))

    @classmethod
    def fit_leaving_out(
        cls, scores: list[NDArray[Any]], ranks: list[NDArray[np.int32]], n_ranks: int, weights: list[Floats] | None = None
    ) -> tuple[Self, list[Self]]:
        """A calibrator of all parts, and for each part one of the others; rows count by their weights.

        Those are one Newton step away from the first: removing a part adds its gradient, and takes its share of the curvature.
        """
        of_rows = None if weights is None else np.concatenate(weights)
        ends = np.cumsum([len(part) for part in scores])
        left_out = []
        with one_thread():
            problem = cls.problem(np.concatenate(scores), np.concatenate(ranks), n_ranks, of_rows)
            T = problem.minimum()
            factor: Floats = np.linalg.inv(problem.curvature(T)).astype(np.float64)
            for first, last in zip(np.concatenate([[0], ends[:-1]]), ends, strict=True):
                part = slice(first, last)
                gradient = problem.gradient(problem.probabilities(T, part), part)
                share = 1 - problem.weights[part].sum() / ends[-1]
                step: Floats = factor @ problem.flat(gradient) / float(max(share, 0.1))
                left_out.append(cls(problem.unscaled(problem.stepped(T, step), n_ranks)))
            return cls(problem.unscaled(T, n_ranks)), left_out

    def probabilities(self, scores: NDArray[Any]) -> Floats:
        inputs = self.inputs(np.clip(scores, -FARTHEST, FARTHEST))
        if inputs.shape[1] != len(self.weights) - 1:  # always so for many ranks, but not in the files of older versions
            inputs = self.inputs(averaged(np.clip(scores, -FARTHEST, FARTHEST), self.weights.shape[1]))
        with one_thread():
            return softmax(inputs @ self.weights[:-1] + self.weights[-1])


@dataclass(frozen=True)
class Curved(Multinomial):
    """Multinomial on the scores and their distances from the planes: ``sqrt(1 + score^2) - 1``, a parabola near the plane that
    goes on straight far from it, so that no outlier is squared.
    """

    @staticmethod
    def inputs(scores: NDArray[Any]) -> NDArray[Any]:
        scores = scores.astype(np.float64)
        return np.column_stack([scores, np.sqrt(1 + scores**2) - 1])


@dataclass(frozen=True)
class Cumulative:
    """``slopes`` and ``offsets`` have an entry per boundary."""

    slopes: Floats
    offsets: Floats

    @classmethod
    def fit(cls, boundaries: NDArray[Any], ranks: NDArray[np.int32], n_ranks: int) -> Self:
        slopes, offsets = np.zeros(n_ranks - 1), np.zeros(n_ranks - 1)
        for k in range(n_ranks - 1):
            binary = Multinomial.fit(boundaries[:, [k]], (ranks > k).astype(np.int32), 2)
            with np.errstate(invalid="ignore"):
                slopes[k], offsets[k] = binary.weights[:, 1] - binary.weights[:, 0]
        return cls(slopes, offsets)

    def probabilities(self, boundaries: NDArray[Any]) -> Floats:
        above = 1 / (1 + np.exp(-np.clip(boundaries * self.slopes + self.offsets, -700, 700)))
        above = np.minimum.accumulate(above, axis=1)
        n_rows = len(above)
        return np.asarray(-np.diff(np.column_stack([np.ones(n_rows), above, np.zeros(n_rows)]), axis=1))
