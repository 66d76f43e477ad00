"""From plane scores to probabilities of the ranks.

The calibrators are trained on held-out scores, of rows scored by planes that were not trained on them; on scores of training rows
they would be overconfident. All have ``fit(scores, ranks, n_ranks)``, ``probabilities(scores)``, and arrays that a model file can
hold.

``Multinomial`` is logistic regression on all scores: P(r) is proportional to exp(a_r . f + b_r), with a weak L2 penalty on ``a``.
A Newton step costs one product of the scores with themselves per pair of ranks, and a handful of steps suffice.

With more than ten ranks, neighbouring ranks share parameters: the scores of neighbouring planes are averaged to at most ten inputs,
and ``a_r`` is a smooth function of r, a sum of the ten slowest cosines over the ranks. The number of parameters is then linear in
the ranks, and so are time and memory. It also overfits less: beyond ten ranks, log loss is lower than with a weight for every plane
and rank. Up to ten ranks, all inputs and cosines are used, which is the plain model.

``Curved`` is the same on twice the inputs: each score and its distance from the plane. The odds of a rank may then fall on both
sides of its plane, where a linear function can only rise or fall.

``Probit`` has nothing to learn: it is for scores that are probabilities already.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rankplane.solver.blas import one_thread
from rankplane.solver.ordinal_likelihood import log_probabilities

Floats = NDArray[np.float64]
EXCESS = 0.002  # nats per row that a calibrator may lose because it is fitted to few rows
MAX_SCORE = 1e6  # larger scores would overflow
MANY = 10  # ranks; with more, neighbours share parameters
FEW_ROWS = 1000  # up to which the strength of the penalty is learnt too
ROWS_TO_LOSE = 20  # whose part of the gain over the frequencies may be given up for a stronger penalty
STRENGTHS = (1e6, 1024.0, 256.0, 64.0, 16.0, 4.0, 1.0)  # the first leaves the frequencies of the ranks


class Calibrator(Protocol):
    def probabilities(self, scores: NDArray[Any]) -> Floats: ...


@dataclass(frozen=True)
class Probit:
    """Of a model whose scores are normal deviations from each threshold, and therefore probabilities already."""

    @staticmethod
    def probabilities(scores: NDArray[Any]) -> Floats:
        ends = np.pad(-np.asarray(scores, dtype=np.float64), ((0, 0), (1, 1)), constant_values=(-np.inf, np.inf))
        return np.exp(log_probabilities(ends[:, :-1], ends[:, 1:]))


def count_parameters(n_planes: int, n_ranks: int) -> int:
    """How many parameters a calibrator has."""
    n_inputs, n_weighted = 2 * min(n_planes, -(-n_planes // -(-n_ranks // MANY))), min(n_ranks - 1, MANY)
    return n_inputs * n_weighted + n_ranks - 1


def rows_to_learn_from(n_planes: int, n_ranks: int) -> int:
    """How many held-out rows are enough for a calibrator.

    A model of u unknowns that is fitted to n rows has a log loss that is u / 2n higher than the best model of its kind, since
    each unknown costs half a nat (Wilks).
    """
    return math.ceil(count_parameters(n_planes, n_ranks) / (2 * EXCESS))


def spread(scores: Floats) -> Floats:
    """Standard deviations to divide by, at least a tenth of the largest one: a plane whose scores hardly vary on held-out rows
    would otherwise dominate as soon as its scores of new rows vary a little more. Scores that vary by rounding only are constant.
    """
    deviation = np.maximum(scores.std(axis=0), 0.1 * scores.std(axis=0).max(initial=0.0))
    return np.where(deviation > 1e-7 * np.abs(scores).max(axis=0, initial=0.0), deviation, 1.0)


def log_losses(probabilities: Floats, ranks: NDArray[np.int32]) -> Floats:
    """Of each row; zero where its rank is impossible, whatever the strength, since no other row has it."""
    of_truth = probabilities[np.arange(len(ranks)), ranks]
    return np.where(of_truth > 0, -np.log(np.maximum(of_truth, 1e-300)), 0.0)


def strongest_within_noise(losses: Floats, weights: Floats | None) -> int:
    """The first strength (row of ``losses``) that is worse than the best by at most two standard errors of the difference.

    These are the frequencies, the first, unless the best is clearly better. Then no more of that gain may be lost than its part of
    ``ROWS_TO_LOSE`` rows: all of it if there are no more, since what is best on so few may be so by chance, and little of many.
    """
    even = np.ones(losses.shape[1]) if weights is None else weights
    shares = even / even.sum()
    worse = losses - losses[np.argmin(losses @ shares)]
    means = worse @ shares
    errors = np.sqrt((worse - means[:, None]) ** 2 @ shares**2)
    gain, noise = means[0], errors[0]
    if gain <= 2 * noise:
        return 0
    return int(np.argmax(means <= np.minimum(2 * errors, ROWS_TO_LOSE * (shares @ shares) * gain)))


def softmax(scores: NDArray[Any]) -> Floats:
    """Probabilities of each row. That of scipy is written for arrays of all kinds, which takes longer than a row of five ranks."""
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    return np.asarray(odds)


def cosines(n_ranks: int) -> Floats:
    """Cosines over the ranks, slowest first, without the constant: an orthonormal basis of the differences between ranks."""
    places = (np.arange(n_ranks) + 0.5) / n_ranks
    return np.asarray(np.sqrt(2 / n_ranks) * np.cos(np.pi * np.outer(places, np.arange(1, n_ranks))))


def rows_of_products(A: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    """The outer product of each pair of rows, flattened."""
    return np.asarray((A[:, :, None] * B[:, None, :]).reshape(len(A), A.shape[1] * B.shape[1]))


def averaged(scores: NDArray[Any], n_ranks: int) -> NDArray[Any]:
    """Means over runs of neighbouring planes, so that one plane per rank makes at most ``MANY`` inputs."""
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

    The parameters ``T`` are weights of cosines over the ranks, ``(inputs, cosines)``: rank r has the weights ``T @ cosines[r]``.
    Inputs use the first ``MANY`` cosines, which are all of them for few ranks; intercepts, in the last row, always use all.
    """

    F: Floats
    ranks: NDArray[np.intp]  # positions in ``present``
    weights: Floats  # of the rows, with mean 1
    penalty: Floats
    scale: Floats
    present: NDArray[np.intp]
    cosines: Floats

    PENALTY = 1e-3  # per row, divided among the weights of a rank
    LEAST_PENALTY = 1.0  # in total, so that a few hundred rows do not lead to overconfidence
    LEAST_CURVED_PENALTY = 10.0
    MAX_STEPS = 30
    MIN_GAIN = 1e-7  # in the objective, per row; a step that gains less is the last
    SAMPLE = 4096

    @classmethod
    def of(
        cls, inputs: NDArray[Any], ranks: NDArray[np.int32], n_ranks: int, n_straight: int, weights: Floats | None = None
    ) -> Self:
        """Inputs after the first ``n_straight`` are penalised more: few rows say little about curvature."""
        present = np.flatnonzero(np.bincount(ranks, minlength=n_ranks))
        scale = np.append(spread(inputs.astype(np.float64)), 1.0)
        F = np.column_stack([inputs, np.ones(len(inputs))]) / scale
        penalty = np.full(F.shape[1], cls.PENALTY * len(F) / F.shape[1])
        penalty = np.maximum(penalty, np.where(np.arange(F.shape[1]) < n_straight, cls.LEAST_PENALTY, cls.LEAST_CURVED_PENALTY))
        # The sum over ranks of squared weights grows with the number of ranks, though neighbours have similar weights.
        penalty *= MANY / max(MANY, len(present))
        penalty[-1] = 0.0
        even = np.ones(len(F)) if weights is None else weights / weights.mean()
        return cls(F, np.searchsorted(present, ranks), even, penalty, scale, present, cosines(len(present)))

    @property
    def n_slow(self) -> int:
        """Number of cosines that inputs have weights for."""
        return min(MANY, len(self.present) - 1)

    def unscaled(self, T: Floats, n_ranks: int) -> Floats:
        """Weights of all ranks on inputs that are not scaled."""
        weights = np.zeros((len(T), n_ranks))
        weights[-1] = -np.inf
        weights[:, self.present] = T @ self.cosines.T / self.scale[:, None]
        return weights

    def as_vector(self, gradient: Floats) -> Floats:
        """The parameters in ``(inputs, cosines)`` as a vector: slow cosines of all inputs, then fast ones of the intercept."""
        return np.concatenate([gradient[:, : self.n_slow].T.ravel(), gradient[-1, self.n_slow :]])

    def take_step(self, T: Floats, step: Floats) -> Floats:
        moved = T.copy()
        n_slow = self.n_slow * len(T)
        moved[:, : self.n_slow] += step[:n_slow].reshape(self.n_slow, len(T)).T
        moved[-1, self.n_slow :] += step[n_slow:]
        return moved

    def penalty_gradient(self, T: Floats) -> Floats:
        """The penalty pulls towards equal weights of all ranks, since cosines represent differences between ranks only."""
        return np.asarray(self.penalty[:, None] * T)

    def probabilities(self, T: Floats, rows: Any = slice(None)) -> Floats:
        return softmax(self.F[rows] @ (T @ self.cosines.T))

    def objective(self, T: Floats) -> tuple[float, Floats]:
        """The value, and the probabilities, which the gradient needs too."""
        z = self.F @ (T @ self.cosines.T)
        z -= z.max(axis=1, keepdims=True)
        of_truth = z[np.arange(len(z)), self.ranks]
        odds = np.exp(z, out=z)
        sums = odds.sum(axis=1)
        value = np.sum(self.weights * (np.log(sums) - of_truth)) + 0.5 * np.sum(self.penalty_gradient(T) * T)
        odds /= sums[:, None]
        return float(value), odds

    def gradient(self, P: Floats, rows: slice = slice(None)) -> Floats:
        """The gradient of some rows with probabilities P, without the penalty."""
        error = self.weights[rows, None] * P
        error[np.arange(len(P)), self.ranks[rows]] -= self.weights[rows]
        return np.asarray(self.F[rows].T @ error @ self.cosines)

    def curvature(self, T: Floats) -> Floats:
        """The Hessian: summed over rows, the covariance of the cosines under the row's probabilities, times the outer product of
        its inputs.

        Computed on a sample if there are many rows, and in single precision: it only gives the direction of steps, whose effect on
        the objective is computed exactly.
        """
        n_rows, n_inputs = self.F.shape
        rows = self.sample() if n_rows > 2 * self.SAMPLE else np.arange(n_rows)
        F = (self.F[rows] * np.sqrt(self.weights[rows, None])).astype(np.float32)
        P = self.probabilities(T, rows).astype(np.float32)
        slow, fast = np.split(self.cosines.astype(np.float32), [self.n_slow], axis=1)
        n_slow = self.n_slow * n_inputs
        hessian = np.zeros((n_slow + fast.shape[1],) * 2)
        # Mean of the products of cosines minus the product of their means; fast cosines go with the column of ones only.
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
        hessian[np.arange(n_slow), np.arange(n_slow)] += np.tile(self.penalty, self.n_slow)
        return np.asarray(hessian + 1e-9 * n_rows * np.eye(len(hessian)))

    def sample(self) -> NDArray[np.intp]:
        return np.random.default_rng(0).choice(len(self.F), self.SAMPLE, replace=False)

    def minimum(self, start: Floats | None = None) -> Floats:
        """Newton's method, first on a sample of the rows, which yields all but the last digits at little cost."""
        T = np.zeros((self.F.shape[1], self.cosines.shape[1])) if start is None else start
        n_rows = len(self.F)
        if n_rows > 2 * self.SAMPLE:
            some, share = self.sample(), self.SAMPLE / n_rows
            sample = replace(self, F=self.F[some], ranks=self.ranks[some], weights=self.weights[some], penalty=share * self.penalty)
            if len(np.unique(sample.ranks)) == len(self.present):
                T = sample.minimum()
        value, P = self.objective(T)
        for _ in range(self.MAX_STEPS):
            gradient = self.gradient(P) + self.penalty_gradient(T)
            step: Floats = -np.linalg.solve(self.curvature(T), self.as_vector(gradient)).astype(np.float64)
            before = value
            while True:  # halve the step until the objective decreases; far from the minimum a full step may overshoot
                trial = self.take_step(T, step)
                value, P = self.objective(trial)
                if value <= before or np.max(np.abs(step)) < 1e-9:
                    break
                step /= 2
            T = trial
            if before - value <= self.MIN_GAIN * n_rows:
                break
        return T


@dataclass(frozen=True)
class Multinomial:
    """``weights`` is ``(inputs + 1, ranks)``. The last row has the intercepts: minus infinity for a rank without training rows."""

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
        """A calibrator of all parts, and for each part one of all others.

        Few rows also say how much they may be trusted: the penalty is the strongest of ``STRENGTHS`` whose log loss on the parts
        that are left out is hardly worse than the best. At the strongest, all rows have the frequencies of the ranks.
        """
        if len(ranks) < 2 or sum(map(len, ranks)) > FEW_ROWS:
            return cls.near(scores, ranks, n_ranks, weights)
        left_out = []
        some = [[k for k in range(len(ranks)) if k != out] for out in range(len(ranks))]
        with one_thread():
            for of_parts in [*some, list(range(len(ranks)))]:
                given = None if weights is None else np.concatenate([weights[k] for k in of_parts])
                S, r = (np.concatenate([values[k] for k in of_parts]) for values in (scores, ranks))
                left_out.append(cls.shrunk(cls.problem(S, r, n_ranks, given), n_ranks))
        *of_others, of_all = left_out
        losses = np.column_stack(
            [[log_losses(c.probabilities(S), r) for c in fitted] for fitted, S, r in zip(of_others, scores, ranks, strict=True)]
        )
        chosen = strongest_within_noise(losses, None if weights is None else np.concatenate(weights))
        return of_all[chosen], [fitted[chosen] for fitted in of_others]

    @classmethod
    def shrunk(cls, problem: LogisticProblem, n_ranks: int) -> list[Self]:
        """Calibrators by strength of the penalty, the strongest first; each starts from the one before."""
        T, found = None, []
        for strength in STRENGTHS:
            T = replace(problem, penalty=strength * problem.penalty).minimum(T)
            found.append(cls(problem.unscaled(T, n_ranks)))
        return found

    @classmethod
    def near(
        cls, scores: list[NDArray[Any]], ranks: list[NDArray[np.int32]], n_ranks: int, weights: list[Floats] | None = None
    ) -> tuple[Self, list[Self]]:
        """The same of many rows, at the usual strength. Those that leave out a part are one Newton step away from the first:
        removing a part adds its gradient, and takes its share of the curvature.
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
                step: Floats = factor @ problem.as_vector(gradient) / float(max(share, 0.1))
                left_out.append(cls(problem.unscaled(problem.take_step(T, step), n_ranks)))
            return cls(problem.unscaled(T, n_ranks)), left_out

    def probabilities(self, scores: NDArray[Any]) -> Floats:
        inputs = self.inputs(np.clip(scores, -MAX_SCORE, MAX_SCORE))
        if inputs.shape[1] != len(self.weights) - 1:  # many ranks, unless the model file is of an older version
            inputs = self.inputs(averaged(np.clip(scores, -MAX_SCORE, MAX_SCORE), self.weights.shape[1]))
        with one_thread():
            return softmax(inputs @ self.weights[:-1] + self.weights[-1])


@dataclass(frozen=True)
class Curved(Multinomial):
    """Multinomial on the scores and their distances from the planes: ``sqrt(1 + score^2) - 1``, quadratic near the plane and linear
    far from it, so that outliers are not squared.
    """

    @staticmethod
    def inputs(scores: NDArray[Any]) -> NDArray[Any]:
        scores = scores.astype(np.float64)
        return np.column_stack([scores, np.sqrt(1 + scores**2) - 1])
