"""From plane scores to probabilities of the ranks.

The calibrators are trained on held-out scores, rows scored by planes that never saw them; scores of training rows would
promise too much. They have the same shape: ``fit(scores, ranks, n_ranks)``, ``probabilities(scores)``, and arrays that a model
file can hold.

``Multinomial`` is logistic regression on all scores: P(r) is proportional to exp(a_r . f + b_r), with a weak pull of ``a`` to
zero. A Newton step costs one product of the scores with themselves per pair of ranks, and a handful of steps suffice.

``Curved`` is the same on twice the inputs: each score and its distance from the plane. The odds of a rank may then fall on both
sides of its plane, where a straight line can only rise or fall.

``Cumulative`` asks of each boundary how likely the row is above it, by a logistic curve of that boundary's score, and forces
the answers to fall from boundary to boundary.
"""

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankplane.blas import one_thread

Floats = NDArray[np.float64]
FARTHEST = 1e6  # scores beyond any of training tell no more, but would overflow


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


@dataclass(frozen=True)
class LogisticProblem:
    """Logistic regression on scaled scores with a column of ones, ``F``; the last rank's weights are zero, since only
    differences count.
    """

    F: Floats
    target: Floats
    weights: Floats  # of the rows, 1 in the mean
    pull: Floats
    scale: Floats
    present: NDArray[np.intp]

    PULL = 1e-3  # towards zero, per row, shared by the weights of a rank
    LEAST_PULL = 1.0  # in all, so that a few hundred rows do not promise too much
    LEAST_CURVED_PULL = 10.0
    MAX_STEPS = 30
    ENOUGH = 1e-7  # objective per row that a further step would have to gain
    SAMPLE = 4096

    @classmethod
    def of(
        cls, scores: NDArray[Any], ranks: NDArray[np.int32], n_ranks: int, n_straight: int, weights: Floats | None = None
    ) -> Self:
        """Inputs after the first ``n_straight`` are held back more firmly: few rows do not show how scores bend."""
        present = np.flatnonzero(np.bincount(ranks, minlength=n_ranks))
        scale = np.append(spread(scores.astype(np.float64)), 1.0)
        F = np.column_stack([scores, np.ones(len(scores))]) / scale
        pull = np.full(F.shape[1], cls.PULL * len(F) / F.shape[1])
        pull = np.maximum(pull, np.where(np.arange(F.shape[1]) < n_straight, cls.LEAST_PULL, cls.LEAST_CURVED_PULL))
        pull[-1] = 0.0
        even = np.ones(len(F)) if weights is None else weights / weights.mean()
        return cls(F, (ranks[:, None] == present).astype(np.float64), even, pull, scale, present)

    def unscaled(self, W: Floats, n_ranks: int) -> Floats:
        """Weights of all ranks on plain scores."""
        weights = np.zeros((len(W), n_ranks))
        weights[-1] = -np.inf
        weights[:, self.present] = W / self.scale[:, None]
        return weights

    def flat(self, gradient: Floats) -> Floats:
        return gradient[:, :-1].T.ravel()

    def stepped(self, W: Floats, step: Floats) -> Floats:
        moved = W.copy()
        moved[:, :-1] += step.reshape(W.shape[1] - 1, len(W)).T
        return moved

    def pulled(self, W: Floats) -> Floats:
        """The gradient of the pull, towards equal weights of all ranks: no rank is special, not even the last."""
        return np.asarray(self.pull[:, None] * (W - W.mean(axis=1, keepdims=True)))

    def objective(self, W: Floats) -> tuple[float, Floats]:
        """Its value, and the probabilities, which the gradient needs too."""
        z = self.F @ W
        z -= z.max(axis=1, keepdims=True)
        odds = np.exp(z)
        sums = odds.sum(axis=1)
        value = np.sum(self.weights * (np.log(sums) - z[self.target > 0])) + 0.5 * np.sum(self.pulled(W) * W)
        return float(value), odds / sums[:, None]

    def gradient(self, P: Floats, rows: slice = slice(None)) -> Floats:
        """Of some rows with the probabilities P, without the pull."""
        return np.asarray(self.F[rows].T @ (self.weights[rows, None] * (P - self.target[rows])))

    def curvature(self, W: Floats) -> Floats:
        """The Hessian: one product of all (rank, input) pairs, less on the diagonal blocks.

        From a sample of many rows, and in single precision: it only steers the steps, whose worth is measured exactly.
        """
        n_rows, n_inputs = self.F.shape
        rows = self.sample() if n_rows > 2 * self.SAMPLE else np.arange(n_rows)
        F = (self.F[rows] * np.sqrt(self.weights[rows, None])).astype(np.float32)
        P = softmax(self.F[rows] @ W)[:, :-1].astype(np.float32)
        n_free = P.shape[1]
        pairs = (P[:, :, None] * F[:, None, :]).reshape(len(rows), n_free * n_inputs)
        hessian = -(pairs.T @ pairs).astype(np.float64)
        for rank in range(n_free):
            block = slice(rank * n_inputs, (rank + 1) * n_inputs)
            hessian[block, block] += pairs[:, block].T @ F
        hessian *= n_rows / len(rows)
        hessian += np.kron(np.eye(n_free) - 1 / (n_free + 1), np.diag(self.pull)) + 1e-9 * n_rows * np.eye(len(hessian))
        return np.asarray(hessian)

    def sample(self) -> NDArray[np.intp]:
        return np.random.default_rng(0).choice(len(self.F), self.SAMPLE, replace=False)

    def minimum(self) -> Floats:
        """Newton's method, first on a sample of the rows, which settles all but the last digits at little cost."""
        W = np.zeros((self.F.shape[1], len(self.present)))
        n_rows = len(self.F)
        if n_rows > 2 * self.SAMPLE:
            some, share = self.sample(), self.SAMPLE / n_rows
            sample = replace(self, F=self.F[some], target=self.target[some], weights=self.weights[some], pull=share * self.pull)
            if np.all(sample.target.any(axis=0)):
                W = sample.minimum()
        value, P = self.objective(W)
        for _ in range(self.MAX_STEPS):
            gradient = self.gradient(P) + self.pulled(W)
            step: Floats = -np.linalg.solve(self.curvature(W), self.flat(gradient)).astype(np.float64)
            before = value
            while True:  # halve until it helps; far from the minimum a full step may overshoot
                trial = self.stepped(W, step)
                value, P = self.objective(trial)
                if value <= before or np.max(np.abs(step)) < 1e-9:
                    break
                step /= 2
            W = trial
            if before - value <= self.ENOUGH * n_rows:
                break
        return W


@dataclass(frozen=True)
class Multinomial:
    """``weights`` is ``(inputs + 1, ranks)``, the last row the intercepts; minus infinity there marks a rank never seen."""

    weights: Floats

    @staticmethod
    def inputs(scores: NDArray[Any]) -> NDArray[Any]:
        return scores

    @classmethod
    def fit(cls, scores: NDArray[Any], ranks: NDArray[np.int32], n_ranks: int) -> Self:
        problem = LogisticProblem.of(cls.inputs(scores), ranks, n_ranks, scores.shape[1])
        with one_thread():
            return cls(problem.unscaled(problem.minimum(), n_ranks))

    @classmethod
    def fit_leaving_out(
        cls, scores: list[NDArray[Any]], ranks: list[NDArray[np.int32]], n_ranks: int, weights: list[Floats] | None = None
    ) -> tuple[Self, list[Self]]:
        """A calibrator of all parts, and for each part one of the others; rows count by their weights.

        Those are one Newton step away from the first: removing a part adds its gradient, and takes its share of the curvature.
        """
        inputs = cls.inputs(np.concatenate(scores))
        of_rows = None if weights is None else np.concatenate(weights)
        problem = LogisticProblem.of(inputs, np.concatenate(ranks), n_ranks, scores[0].shape[1], of_rows)
        with one_thread():
            W = problem.minimum()
            factor: Floats = np.linalg.inv(problem.curvature(W)).astype(np.float64)
        ends = np.cumsum([len(part) for part in scores])
        left_out = []
        for first, last in zip(np.concatenate([[0], ends[:-1]]), ends, strict=True):
            part = slice(first, last)
            gradient = problem.gradient(softmax(problem.F[part] @ W), part)
            share = 1 - problem.weights[part].sum() / ends[-1]
            step: Floats = factor @ problem.flat(gradient) / float(max(share, 0.1))
            left_out.append(cls(problem.unscaled(problem.stepped(W, step), n_ranks)))
        return cls(problem.unscaled(W, n_ranks)), left_out

    def probabilities(self, scores: NDArray[Any]) -> Floats:
        scores = np.clip(scores, -FARTHEST, FARTHEST)
        return softmax(self.inputs(scores) @ self.weights[:-1] + self.weights[-1])


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
