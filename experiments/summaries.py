"""From lines to numbers: means over splits with their intervals, average ranks, and tests over data sets.

Splits of one data set share rows, so their results vary less than those of independent samples would. The variance of a mean of n
splits is taken as (1/n + test/train) times that of single splits (Nadeau and Bengio, *Inference for the generalization error*,
2003).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from experiments.notebook import Line
from lab.significance import LEVEL

LEAST_SPLITS = 3


@dataclass
class Sample:
    """A measure of one method on the splits of one data set, by seed."""

    values: dict[int, float] = field(default_factory=dict)
    test_per_train: float = 0.25

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.values.values())))

    @property
    def half_width(self) -> float | None:
        return half_width(list(self.values.values()), self.test_per_train)


def half_width(values: Sequence[float], test_per_train: float) -> float | None:
    """Of the interval that holds the mean with probability ``LEVEL``; None for fewer than three values, which say too little."""
    n = len(values)
    if n < LEAST_SPLITS:
        return None
    variance = float(np.var(values, ddof=1)) * (1 / n + test_per_train)
    return float(stats.t.ppf(0.5 + LEVEL / 2, n - 1) * np.sqrt(variance))


Place = tuple[str, str]  # a data set and how it is split
Samples = dict[Place, dict[str, Sample]]


def collect(lines: Iterable[Line], measure: str) -> Samples:
    """Samples by place and method; the last line of a seed counts."""
    found: Samples = {}
    for line in lines:
        if line.get(measure) is None:
            continue
        sample = found.setdefault((line["set"], line["split"]), {}).setdefault(line["method"], Sample())
        sample.values[line["seed"]] = line[measure]
        if line.get("train_rows"):
            sample.test_per_train = line["test_rows"] / line["train_rows"]
    return found


def difference(a: Sample, b: Sample) -> tuple[float, float | None]:
    """Mean of a - b over the seeds that both have, and the half-width of its interval: pairs see the same split."""
    shared = sorted(a.values.keys() & b.values.keys())
    differences = [a.values[seed] - b.values[seed] for seed in shared]
    return float(np.mean(differences)), half_width(differences, a.test_per_train)


@dataclass(frozen=True)
class Tally:
    """Of a claim that a difference is negative: on how many places it is, and where its interval leaves no doubt."""

    means: list[float]
    n_sure: int
    n_against: int

    @property
    def n_all(self) -> int:
        return len(self.means)

    @property
    def n_for(self) -> int:
        return sum(mean < 0 for mean in self.means)


def tally(differences: Iterable[tuple[float, float | None]]) -> Tally:
    """Without an interval there is doubt."""
    found = list(differences)
    n_sure = sum(half is not None and mean < -half for mean, half in found)
    n_against = sum(half is not None and mean > half for mean, half in found)
    return Tally([mean for mean, _ in found], n_sure, n_against)


def complete(samples: Samples, places: Iterable[Place], methods: Sequence[str]) -> list[Place]:
    """The places where no method is missing."""
    return [place for place in places if place in samples and all(method in samples[place] for method in methods)]


def errors_of(samples: Samples, places: Iterable[Place], methods: Sequence[str]) -> NDArray[np.float64]:
    """Means by (place, method) over the splits that all methods have; places where a method is missing are left out."""
    rows = []
    for place in complete(samples, places, methods):
        shared = set.intersection(*(set(samples[place][method].values) for method in methods))
        if shared:
            rows.append([float(np.mean([samples[place][method].values[seed] for seed in shared])) for method in methods])
    return np.array(rows).reshape(len(rows), len(methods))


def table_of(published: Mapping[str, Mapping[str, float]], methods: Sequence[str]) -> NDArray[np.float64]:
    return np.array([[row[method] for method in methods] for row in published.values()]).reshape(len(published), len(methods))
