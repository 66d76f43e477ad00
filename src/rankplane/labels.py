"""Labels and their ranks."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankplane import validation


@dataclass(frozen=True)
class Labels:
    """The distinct labels in rank order, and the rank number (from 0) of each row."""

    order: NDArray[Any]
    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, y: Any, n_rows: int, ranks: Any) -> Self:
        """Check labels to train on: one per row, at least two different ranks."""
        labels = validation.as_labels(y, n_rows)
        order = validation.rank_order(labels, ranks)
        numbers = validation.rank_numbers(labels, order)
        found = cls(order, numbers)
        check_enough_ranks(order, found.counts)
        return found

    @property
    def n_ranks(self) -> int:
        return len(self.order)

    @property
    def counts(self) -> NDArray[np.intp]:
        """How many rows each rank has."""
        return np.bincount(self.numbers, minlength=self.n_ranks)

    def row_weights(
        self, class_weight: Any, sample_weights: NDArray[np.float64] | None, counts: NDArray[np.intp] | None = None
    ) -> NDArray[np.float64] | None:
        """Weight of each row: class weight times sample weight; None if there are neither.

        ``counts`` is how many rows each rank has, where these are only some of the rows.
        """
        by_rank = validation.rank_weights(class_weight, self.order, self.counts if counts is None else counts)
        if by_rank is None:
            return sample_weights
        return by_rank[self.numbers] * (1.0 if sample_weights is None else sample_weights)


def check_enough_ranks(order: NDArray[Any], counts: NDArray[np.intp]) -> None:
    """Refuse rows of a single rank."""
    present = np.flatnonzero(counts)
    if len(present) < 2:
        raise ValueError(
            f"y must contain at least two different ranks; a model can't learn from one class. Got only {order[present[0]]!r}."
        )
