"""Two models on the same rows: by how much their measures differ, and by how much that may be chance.

Both models see the same rows, so the rows that are hard for one are mostly hard for the other, and the difference varies much less
than either measure. Intervals are by the bootstrap on whole rows: as often as wanted, as many rows are drawn again, with
replacement, and both models are measured on them. All that the measures depend on is how often each triple (true rank, rank by the
one, rank by the other) occurs, so that a draw of rows is one multinomial draw of these counts.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.metrics import MEASURES

N_DRAWS = 1000
CONFIDENCE = 0.95
FEW = 30  # rows, with fewer of which the bootstrap says little

Numbers = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Difference:
    """A measure of two models, and an interval for their difference, other minus model."""

    model: float
    other: float
    low: float
    high: float
    is_more_better: bool

    @property
    def value(self) -> float:
        return self.other - self.model

    @property
    def verdict(self) -> str:
        """Which way the other model differs, if it does by more than chance."""
        if self.low <= 0 <= self.high:
            return "no clear difference"
        return "better" if (self.value > 0) == self.is_more_better else "worse"


def differences(true: Numbers, model: Numbers, other: Numbers, seed: int = 0, n_draws: int = N_DRAWS) -> dict[str, Difference]:
    """Of rank numbers, by measure."""
    cells, counts = np.unique(np.column_stack([true, model, other]), axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    shares = counts / len(true)

    def measured(weights: NDArray[np.int64]) -> NDArray[np.float64]:
        """Both models by all measures, on rows of which there are so many of each kind."""
        is_there = weights > 0
        y, of_rows = cells[is_there], weights[is_there]
        found = [[measure(y[:, 0], y[:, k], sample_weight=of_rows) for k in (1, 2)] for measure, _ in MEASURES.values()]
        return np.array(found)

    drawn = np.array([measured(rng.multinomial(len(true), shares)) for _ in range(n_draws)])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn[:, :, 1] - drawn[:, :, 0], [tail, 1 - tail], axis=0)
    values = measured(counts)
    return {
        name: Difference(float(values[place, 0]), float(values[place, 1]), float(low[place]), float(high[place]), is_more_better)
        for place, (name, (_, is_more_better)) in enumerate(MEASURES.items())
    }


@dataclass(frozen=True)
class Changed:
    """How many rows have another rank, and how many of these are nearer to the truth or further from it with the other model."""

    rows: int
    nearer: int
    further: int

    @classmethod
    def of(cls, true: Numbers, model: Numbers, other: Numbers) -> "Changed":
        gain = np.abs(model - true) - np.abs(other - true)
        return cls(int(np.sum(model != other)), int(np.sum(gain > 0)), int(np.sum(gain < 0)))


def most_changed(true: Numbers, model: Numbers, other: Numbers, n: int) -> NDArray[np.intp]:
    """Rows whose rank differs most, those whose error changed most first; of ties, the first ones."""
    gain = np.abs(np.abs(model - true) - np.abs(other - true))
    order = np.lexsort((np.arange(len(true)), -np.abs(model - other), -gain))
    return np.asarray(order[model[order] != other[order]][:n])
