"""A calibrator to compare with: for each boundary, a logistic curve of its score to whether the rank is above it. The probabilities
are made monotone over the boundaries.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankplane.prediction.calibration import Floats, Multinomial


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
