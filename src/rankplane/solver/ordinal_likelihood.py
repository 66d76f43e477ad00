"""The likelihood of ranks given a latent value: noise that is normal, and thresholds.

A row with the latent value f has rank y if f plus noise lies between two thresholds, ``p(y | f) = Phi(high) - Phi(low)`` with
``high = (b_y - f) / s`` and ``low = (b_{y-1} - f) / s``, where s is the standard deviation of the noise, and the outermost
thresholds are infinite (Chu and Ghahramani, "Gaussian Processes for Ordinal Regression", Journal of Machine Learning Research 6,
2005).

Derivatives are those of ``L = log p`` along a shift of both ends, ``D = d/dlow + d/dhigh``, since ``dL/df = -D L / s``. With the
densities at the ends divided by p, ``u`` at the high end and ``l`` at the low one, and ``h = u - l``::

    D L = h                  D u = -high u - u h              D l = -low l - l h
    D D L = -q - h^2         with q = high u - low l          D q = h - q2 - h q,  q2 = high^2 u - low^2 l

A threshold moves one end only, so that its derivatives of L, D L and D D L are u, D u and D D u over s, or minus those of l.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

Floats = NDArray[np.float64]
HALF_LOG_TAU = 0.5 * np.log(2 * np.pi)
LEAST_CURVATURE = 1e-12


def log_probabilities(low: Floats, high: Floats) -> Floats:
    """``log(Phi(high) - Phi(low))``, also far in the tails: above zero, by the other tail."""
    is_above = low > 0
    nearer, farther = np.where(is_above, -low, high), np.where(is_above, -high, low)
    with np.errstate(invalid="ignore", divide="ignore"):
        tail = log_ndtr(nearer)
        return np.asarray(tail + np.log(-np.expm1(log_ndtr(farther) - tail)))


class Slopes(NamedTuple):
    """Derivatives by a parameter of each row: of the log likelihood, of its first and of its second derivative by f."""

    value: Floats
    first: Floats
    second: Floats


class Terms(NamedTuple):
    """Of each row, the log likelihood, its first derivative by f, minus its second and its third one; weighted."""

    value: Floats
    first: Floats
    curvature: Floats
    third: Floats


class Ends(NamedTuple):
    """The ends of each row's interval, and the densities there divided by its probability; zero at infinite ends."""

    low: Floats  # zero where infinite, as its products with a density are
    high: Floats
    l: Floats
    u: Floats
    log: Floats

    @property
    def h(self) -> Floats:
        return self.u - self.l

    @property
    def q(self) -> Floats:
        return self.high * self.u - self.low * self.l


@dataclass(frozen=True)
class Likelihood:
    """The noise and the thresholds between ranks."""

    noise: float
    thresholds: Floats

    def scores(self, f: Floats, variances: Floats) -> Floats:
        """How far normal latent values are above each threshold, in deviations of value and noise together."""
        return np.asarray((f[:, None] - self.thresholds) / np.sqrt(self.noise**2 + variances)[:, None])

    def ends(self, f: Floats, ranks: NDArray[np.intp]) -> Ends:
        edges = np.concatenate([[-np.inf], self.thresholds, [np.inf]])
        low, high = (edges[ranks] - f) / self.noise, (edges[ranks + 1] - f) / self.noise
        log = log_probabilities(low, high)
        with np.errstate(over="ignore"):
            l, u = (np.exp(-0.5 * end**2 - HALF_LOG_TAU - log) for end in (low, high))
        return Ends(np.where(np.isfinite(low), low, 0.0), np.where(np.isfinite(high), high, 0.0), l, u, log)

    def log(self, f: Floats, ranks: NDArray[np.intp], weights: Floats) -> float:
        edges = np.concatenate([[-np.inf], self.thresholds, [np.inf]])
        found = log_probabilities((edges[ranks] - f) / self.noise, (edges[ranks + 1] - f) / self.noise)
        return float(weights @ found)

    def terms(self, ends: Ends, weights: Floats) -> Terms:
        h, q, s = ends.h, ends.q, self.noise
        q2 = ends.high**2 * ends.u - ends.low**2 * ends.l
        curvature = np.maximum((q + h**2) / s**2, LEAST_CURVATURE)
        third = -(-h + q2 + 3 * h * q + 2 * h**3) / s**3
        return Terms(weights * ends.log, -weights * h / s, weights * curvature, weights * third)

    def of_log_noise(self, ends: Ends) -> Slopes:
        h, q, s, (low, high, l, u, _) = ends.h, ends.q, self.noise, ends
        du, dl, dh = -high * u - u * h, -low * l - l * h, -q - h**2
        q2 = high**2 * u - low**2 * l
        dq = h - q2 - h * q
        dq2 = 2 * q + high**2 * du - low**2 * dl
        return Slopes(-q, dq / s, -(dh - dq2 - h * dq - q * dh) / s**2)

    def of_high(self, ends: Ends) -> Slopes:
        """By the threshold above the row's rank."""
        return self._of_end(ends, ends.high, ends.u)

    def of_low(self, ends: Ends) -> Slopes:
        found = self._of_end(ends, ends.low, ends.l)
        return Slopes(-found.value, -found.first, -found.second)

    def _of_end(self, ends: Ends, end: Floats, density: Floats) -> Slopes:
        h, s = ends.h, self.noise
        once = -end * density - density * h
        twice = -density - end * once - h * once - density * (-ends.q - h**2)
        return Slopes(density / s, -once / s**2, twice / s**3)
