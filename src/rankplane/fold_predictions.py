"""Predictions for rows that were held out, by what is known of the rows of other folds."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.prediction import decisions
from rankplane.prediction.probabilities import basis_of, held_out_probabilities
from rankplane.prediction.rankers import Ranks, Scores
from rankplane.solver.training_set import HeldOut


def has_probability(estimator: Any) -> None:
    if not estimator.probability:
        name = type(estimator).__name__
        raise AttributeError(f"{name} has no probabilities: make it with {name}(probability=True) and fit it again.")


class FoldPredictions:
    """Predictions for held-out rows, by fold; computed when first used."""

    def __init__(self, model: Any, order: NDArray[Any], held_out: HeldOut, n_to_calibrate: int) -> None:
        self.model = model
        self.order = order
        self.held_out = held_out
        self.n_to_calibrate = n_to_calibrate

    @cached_property
    def probabilities(self) -> list[NDArray[np.float64]]:
        has_probability(self.model)
        return held_out_probabilities(self.held_out, self.n_to_calibrate)

    @cached_property
    def basis(self) -> decisions.Basis | None:
        """What the decision needs to know of all held-out rows, if it does."""
        if not decisions.is_by_cost(self.model.decision):
            return None
        return basis_of(self.probabilities, self.held_out)._replace(order=self.order)

    @cached_property
    def ranks(self) -> list[Ranks]:
        """Positions in the order of the ranks."""
        return self._by_fold(self.model._predict_ranks)

    @cached_property
    def confidences(self) -> list[Scores]:
        """As returned by ``decision_function``."""
        return self._by_fold(self.model._confidences)

    def of_parts(self) -> "FoldPredictions":
        """The same by parts of folds. What was computed for the folds is reused."""
        parts = FoldPredictions(self.model, self.order, self.held_out.of_parts(), self.n_to_calibrate)
        vars(parts).update(
            {name: self.held_out.cut(vars(self)[name]) for name in ("probabilities", "ranks", "confidences") if name in vars(self)}
        )
        if "basis" in vars(self):
            vars(parts)["basis"] = self.basis
        return parts

    def _by_fold(self, predict: Callable[..., NDArray[Any]]) -> list[NDArray[Any]]:
        by_cost = decisions.is_by_cost(self.model.decision)
        probabilities = self.probabilities if by_cost else [None] * len(self.held_out.scores)
        pairs = zip(self.held_out.scores, probabilities, strict=True)
        return [predict(scores, of_fold, self.held_out.n_ranks, self.basis) for scores, of_fold in pairs]
