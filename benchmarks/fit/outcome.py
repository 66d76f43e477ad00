"""The result of one fit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import answers
from lab.data import Data
from lab.measures import measures


@dataclass
class Outcome:
    """How long a fit took and what it found. ``weights`` is (columns + 1, planes), biases last."""

    seconds: float
    model: str  # the problem it solves: npsvor, svc, svr or another
    predictions: NDArray[Any] | None = None  # ranks of the test rows
    weights: NDArray[Any] | None = None
    dual_objective: float | None = None  # f, summed over planes; None if the competitor does not return it
    sweeps: list[int] | None = None
    note: str = ""

    def check(self, data: Data) -> dict[str, Any]:
        """Objective, gap and test measures, all from the weights."""
        found: dict[str, Any] = {}
        if self.predictions is not None:
            found |= measures(self.predictions, data.y_test)
        if self.weights is not None:
            found["primal"] = float(answers.primal(self.model, data.X, data.y, data.n_ranks, self.weights).sum())
            if self.dual_objective is not None:
                found["dual"] = -self.dual_objective
                found["relative_gap"] = (found["primal"] - found["dual"]) / found["dual"]
        if self.sweeps is not None:
            found["sweeps"] = self.sweeps
        return found


def from_weights(seconds: float, model: str, data: Data, weights: NDArray[Any], **fields: Any) -> Outcome:
    """An outcome whose predictions follow from the weights."""
    predictions = answers.rank(model, data.X_test, data.n_ranks, weights)
    return Outcome(seconds, model, predictions, np.asarray(weights), **fields)
