"""Labels and the ranks they stand for."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankplane import validation


@dataclass(frozen=True)
class Labels:
    """The distinct labels in rank order, and the place in it of each row's label."""

    order: NDArray[Any]
    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, y: Any, n_rows: int, ranks: Any) -> Self:
        """Labels to learn from: one per row, of at least two ranks."""
        labels = validation.as_labels(y, n_rows)
        order = validation.rank_order(labels, ranks)
        numbers = validation.rank_numbers(labels, order)
        if len(np.unique(numbers)) < 2:
            raise ValueError(
                f"y must contain at least two different ranks; a model can't learn from one class. Got only {order[numbers[0]]!r}."
            )
        return cls(order, numbers)

    @property
    def n_ranks(self) -> int:
        return len(self.order)

    def row_weights(self, class_weight: Any, sample_weights: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
        """Weights of the rows: those of their ranks times their own; None if there are neither."""
        by_rank = validation.rank_weights(class_weight, self.order, self.numbers)
        if by_rank is None:
            return sample_weights
        return by_rank[self.numbers] * (1.0 if sample_weights is None else sample_weights)
