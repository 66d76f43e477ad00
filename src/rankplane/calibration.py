"""From plane scores to probabilities of the ranks.

Both calibrators are trained on held-out scores, rows scored by planes that never saw them; scores of training rows would
promise too much. They have the same shape: ``fit(scores, ranks, n_ranks)``, ``probabilities(scores)``, and arrays that a model
file can hold.

``Multinomial`` is logistic regression on all scores: P(r) is proportional to exp(a_r . f + b_r), with a weak pull of ``a`` to
zero. A Newton step costs one product of the scores with themselves per pair of ranks, and a handful of steps suffice.

``Cumulative`` asks of each boundary how likely the row is above it, by a logistic curve of that boundary's score, and forces
the answers to fall from boundary to boundary.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Calibrator(Protocol):
    def probabilities(self, scores: NDArray[Any]) -> Floats: ...


def softmax(z: Floats) -> Floats:
    z = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(z / z.sum(axis=1, keepdims=True))


def spread(scores: Floats) -> Floats:
    """Standard deviations to divide by, one where there is none."""
    deviation = scores.std(axis=0)
    return np.where(deviation > 0, deviation, 1.0)


@dataclass(frozen=True)
class Multinomial:
    """``weights`` is ``(scores + 1, ranks)``, the last row the intercepts; minus infinity there marks a rank never seen."""

    weights: Floats

    PULL = 1e-3
    MAX_STEPS = 30
    ENOUGH = 1e-7

    @classmethod
    def fit(cls, scores: NDArray[Any], ranks: NDArray[np.int32], n_ranks: int, start: Self | None = None) -> Self:
        present = np.flatnonzero(np.bincount(ranks, minlength=n_ranks))
        scale = spread(scores.astype(np.float64))
        F = np.column_stack([scores / scale, np.ones(len(scores))])
        n_rows, n_inputs = F.shape
        target = (ranks[:, None] == present).astype(np.float64)
        # One rank's weights are held at zero: only differences between ranks count.
        n_free = len(present) - 1
        W = np.zeros((n_inputs, len(present)))
        if start is not None:
            W = start.weights[:, present] * np.append(scale, 1.0)[:, None]
            W -= W[:, -1:]
        pull = np.full(n_inputs, cls.PULL * n_rows / n_inputs)
        pull[-1] = 0.0

        def objective(weights: Floats) -> float:
            z = F @ weights
            top = z.max(axis=1)
            return float(
                np.sum(top + np.log(np.exp(z - top[:, None]).sum(axis=1)) - np.sum(z * target, axis=1))
                + 0.5 * np.sum(pull[:, None] * weights**2)
            )

        value = objective(W)
        for _ in range(cls.MAX_STEPS):
            P = softmax(F @ W)
            gradient = (F.T @ (P - target) + pull[:, None] * W)[:, :n_free]
            hessian = np.zeros((n_free, n_inputs, n_free, n_inputs))
            for r in range(n_free):
                for s in range(r, n_free):
                    curve = P[:, r] * ((r == s) - P[:, s])
                    hessian[r, :, s] = (F * curve[:, None]).T @ F
                    hessian[s, :, r] = hessian[r, :, s].T
                hessian[r, :, r] += np.diag(pull + 1e-9 * n_rows)
            size = n_free * n_inputs
            step = np.linalg.solve(hessian.reshape(size, size), gradient.T.ravel()).reshape(n_free, n_inputs).T
            length, before = 1.0, value
            while True:  # halve until it helps; far from the optimum a full Newton step may overshoot
                trial = W.copy()
                trial[:, :n_free] -= length * step
                value = objective(trial)
                if value <= before or length < 1e-6:
                    break
                length /= 2
            W = trial
            if before - value <= cls.ENOUGH * n_rows:
                break
        weights = np.zeros((n_inputs, n_ranks))
        weights[-1] = -np.inf
        weights[:, present] = W / np.append(scale, 1.0)[:, None]
        return cls(weights)

    def probabilities(self, scores: NDArray[Any]) -> Floats:
        return softmax(scores @ self.weights[:-1] + self.weights[-1])


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
