"""The numbers of a report. All are measured on its rows, except for the counts of training rows."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.training import measuring
from rankplane.training.model import EncodedRows, TrainedModel
from rankplane.validation import rank_numbers

COVERAGES = (0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Coverage:
    """How often rank sets contain the true rank, and their mean size, over some rows."""

    rate: float
    size: float


class Findings:
    """True and predicted rank numbers, probabilities, rank sets, and measures of the model and the baselines."""

    def __init__(self, model: TrainedModel, measured: EncodedRows) -> None:
        self.order = model.classes
        self.names = [str(label) for label in self.order.tolist()]
        self.X, labels = measured.X, measured.rows.labels
        answers = model.predict(self.X)
        self.true = rank_numbers(labels, self.order)
        self.predicted = rank_numbers(answers, self.order)
        self.probabilities = model.predict_proba(self.X)
        self.set_rule = model.estimator._set_rule
        self.counts = measuring.trained_ranks(model.metadata)
        self.constants = measuring.constant_answers(self.order, self.counts)
        self.metrics = measuring.compared(labels, {"model": answers}, self.order, self.counts)
        self.matrix = measuring.confusion(labels, answers, self.order)

    @property
    def n_rows(self) -> int:
        return int(self.metrics["rows"])

    @cached_property
    def distance(self) -> NDArray[np.intp]:
        return np.asarray(np.abs(self.true - self.predicted))

    @cached_property
    def n_true(self) -> NDArray[np.intp]:
        return np.asarray(self.matrix.sum(axis=1))

    @cached_property
    def n_answered(self) -> NDArray[np.intp]:
        return np.asarray(self.matrix.sum(axis=0))

    @cached_property
    def recall(self) -> NDArray[np.float64]:
        """The share of each rank's rows that are predicted correctly; NaN for a rank without rows."""
        return shares(np.diag(self.matrix), self.n_true)

    @cached_property
    def precision(self) -> NDArray[np.float64]:
        """The share of each rank's predictions that are correct; NaN for a rank that is never predicted."""
        return shares(np.diag(self.matrix), self.n_answered)

    @cached_property
    def distance_by_rank(self) -> NDArray[np.float64]:
        """Mean distance of predictions, by true rank."""
        return shares(np.bincount(self.true, self.distance, len(self.names)), self.n_true)

    @cached_property
    def mean_probability(self) -> NDArray[np.float64]:
        """The mean probability of each rank."""
        return np.asarray(self.probabilities.mean(axis=0))

    def gain_over_median(self) -> tuple[float, float] | None:
        """How much closer predictions are than the median of training, in ranks, and its standard error."""
        if "median" not in self.constants:
            return None
        median = int(rank_numbers(np.array([self.constants["median"]]), self.order)[0])
        gains = np.abs(self.true - median) - self.distance
        return float(gains.mean()), float(gains.std() / np.sqrt(len(gains)))

    def coverage(self, asked: float) -> tuple[Coverage, list[Coverage | None]]:
        """Of all rows, and by true rank."""
        sets = self.set_rule(asked).sets(self.probabilities)
        holds, sizes = sets[np.arange(self.n_rows), self.true], sets.sum(axis=1)
        by_rank: list[Coverage | None] = []
        for place in range(len(self.names)):
            here = self.true == place
            by_rank.append(Coverage(float(holds[here].mean()), float(sizes[here].mean())) if here.any() else None)
        return Coverage(float(holds.mean()), float(sizes.mean())), by_rank

    def reliability(self) -> list[tuple[float, float, int]]:
        """Over all ranks and rows, probabilities in ten bins: mean probability, observed share, and count."""
        happened = np.zeros(self.probabilities.shape, dtype=bool)
        happened[np.arange(self.n_rows), self.true] = True
        predicted, observed = self.probabilities.ravel(), happened.ravel()
        bin_of = np.minimum((predicted * 10).astype(np.intp), 9)
        members = [bin_of == number for number in range(10)]
        return [(float(predicted[m].mean()), float(observed[m].mean()), int(m.sum())) for m in members if m.any()]

    def calibration_error(self) -> float:
        """Mean absolute difference between predicted probabilities and observed shares."""
        points = self.reliability()
        return sum(abs(predicted - observed) * count for predicted, observed, count in points) / sum(count for *_, count in points)

    def was_measured_in_training(self, metadata: dict[str, Any]) -> bool:
        """Whether the measures in the model file are of these rows."""
        earlier = metadata.get("metrics") or {}
        return all(earlier.get(name) == value for name, value in self.metrics.items())


def shares(parts: NDArray[Any], wholes: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        return np.asarray(parts / np.where(wholes > 0, wholes, np.nan), dtype=np.float64)
