"""What is measured on the rows of a page, as numbers: nothing here comes from other rows, but for the counts of training."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.prediction.decisions import conformal_threshold, rank_sets
from rankplane.training import measuring
from rankplane.training.model import EncodedRows, TrainedModel
from rankplane.validation import rank_numbers

COVERAGES = (0.8, 0.9, 0.95)


@dataclass(frozen=True)
class Coverage:
    """How often rank sets hold the true rank, and how many ranks they hold, on average over some rows."""

    held: float
    size: float


class Findings:
    """True and predicted ranks by their places in the order, probabilities, rank sets, and measures beside the baselines."""

    def __init__(self, model: TrainedModel, measured: EncodedRows) -> None:
        self.order = model.classes
        self.names = [str(label) for label in self.order.tolist()]
        self.X, labels = measured.X, measured.rows.labels
        answers = model.predict(self.X)
        self.true = rank_numbers(labels, self.order)
        self.predicted = rank_numbers(answers, self.order)
        self.probabilities = model.predict_proba(self.X)
        self.conformity = model.estimator.conformity_
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
    def found(self) -> NDArray[np.float64]:
        """The share of each rank's rows that get it; NaN for a rank without rows."""
        return shares(np.diag(self.matrix), self.n_true)

    @cached_property
    def right(self) -> NDArray[np.float64]:
        """The share of each answer that is right; NaN for a rank that is never answered."""
        return shares(np.diag(self.matrix), self.n_answered)

    @cached_property
    def off(self) -> NDArray[np.float64]:
        """How many ranks the answers are off, by true rank."""
        return shares(np.bincount(self.true, self.distance, len(self.names)), self.n_true)

    @cached_property
    def promised(self) -> NDArray[np.float64]:
        """The mean probability of each rank."""
        return np.asarray(self.probabilities.mean(axis=0))

    def gain_over_median(self) -> tuple[float, float] | None:
        """How much nearer the answers are than the median of training, in ranks, and the standard error of that."""
        if "median" not in self.constants:
            return None
        median = int(rank_numbers(np.array([self.constants["median"]]), self.order)[0])
        gains = np.abs(self.true - median) - self.distance
        return float(gains.mean()), float(gains.std() / np.sqrt(len(gains)))

    def coverage(self, asked: float) -> tuple[Coverage, list[Coverage | None]]:
        """Of all rows, and by true rank."""
        sets = rank_sets(self.probabilities, conformal_threshold(self.conformity, asked))
        holds, sizes = sets[np.arange(self.n_rows), self.true], sets.sum(axis=1)
        by_rank: list[Coverage | None] = []
        for place in range(len(self.names)):
            here = self.true == place
            by_rank.append(Coverage(float(holds[here].mean()), float(sizes[here].mean())) if here.any() else None)
        return Coverage(float(holds.mean()), float(sizes.mean())), by_rank

    def reliability(self) -> list[tuple[float, float, int]]:
        """Over all ranks and rows, probabilities in ten classes: the mean promise, how often it came true, and of how many."""
        happened = np.zeros(self.probabilities.shape, dtype=bool)
        happened[np.arange(self.n_rows), self.true] = True
        promised, observed = self.probabilities.ravel(), happened.ravel()
        classes = np.minimum((promised * 10).astype(np.intp), 9)
        members = [classes == number for number in range(10)]
        return [(float(promised[m].mean()), float(observed[m].mean()), int(m.sum())) for m in members if m.any()]

    def promises_off(self) -> float:
        """How far promised and observed shares are apart on average."""
        points = self.reliability()
        return sum(abs(promised - observed) * count for promised, observed, count in points) / sum(count for *_, count in points)

    def was_measured_in_training(self, metadata: dict[str, Any]) -> bool:
        """Whether these are the rows that the figures in the model file are of."""
        earlier = metadata.get("metrics") or {}
        return all(earlier.get(name) == value for name, value in self.metrics.items())


def shares(parts: NDArray[Any], wholes: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        return np.asarray(parts / np.where(wholes > 0, wholes, np.nan), dtype=np.float64)
