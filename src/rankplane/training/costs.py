"""Costs of predictions when ranks have different weights, and how much better a model is than a constant prediction."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane import validation
from rankplane.inputs.reading import InputError
from rankplane.options import DECISIONS, named
from rankplane.prediction.decisions import cost_matrix, is_by_shares
from rankplane.search import CSearchCV
from rankplane.self_tuned import SelfTuned
from rankplane.training import measuring, parsing
from rankplane.training.choices import check_one_of
from rankplane.training.model import TrainedModel

# The name of the error that a decision minimises.
ERRORS = {
    "mae": "MAE",
    "mse": "MSE",
    "accuracy": "share of wrong predictions",
    "macro_mae": "macro MAE",
    "qwk": "MSE",
    "ranker": "MAE",
}
SUMMED = {"ranker": "mae", "macro_mae": "mae", "qwk": "mse"}  # the errors that rows add up to
LEAST_GAIN = 0.05  # share of the constant prediction's error; smaller gains are worth little


class DecisionCosts:
    """The cost matrix of a decision and the weights of ranks, for training rows given by their rank numbers."""

    def __init__(self, decision: str, class_weight: str | None, order: NDArray[Any], places: NDArray[Any]) -> None:
        self.decision, self.order, self.places = decision, order, places
        self.class_weight = parsing.class_weight(class_weight, order.tolist())
        counts = np.bincount(places, minlength=len(order))
        weights = validation.rank_weights("balanced" if decision == "macro_mae" else self.class_weight, order, counts)
        # The kappa is no sum over rows, but its errors are squared ones.
        self.cost = cost_matrix(SUMMED.get(decision, decision), len(order))
        if weights is not None:
            self.cost = self.cost * weights[:, None]

    def options(self) -> dict[str, Any]:
        """Parameters of the model. Calibration cancels the effect of class weights on the planes, so the weights are applied to
        the costs instead, except with the model's own rule, which has no costs.
        """
        if self.class_weight is None or self.decision == "ranker":
            return {"decision": self.decision, "class_weight": self.class_weight}
        return {"decision": self.cost}

    @property
    def measure(self) -> str:
        """The measure to choose C by."""
        measure = "mae" if self.decision == "ranker" else self.decision
        return "macro_mae" if measure == "mae" and self.class_weight == "balanced" else measure

    @property
    def error_name(self) -> str:
        return ERRORS[self.decision] if self.class_weight is None else f"weighted {ERRORS[self.decision]}"

    @property
    def constant(self) -> int:
        """The rank number with the lowest cost as a constant prediction."""
        return int(np.argmin(np.bincount(self.places, minlength=len(self.cost)) @ self.cost))

    def poor_gain(self, true: NDArray[Any], predicted: NDArray[Any]) -> str | None:
        """A warning if predictions are hardly better than the constant one. Both arrays are rank numbers."""
        errors, of_constant = self.cost[true, predicted], self.cost[true, self.constant]
        noise = float(np.std(of_constant - errors)) / np.sqrt(len(true))
        return self._verdict(float(errors.mean()), float(of_constant.mean()), noise, f"on {len(true):,} rows")

    def poor_gain_in_folds(self, search: CSearchCV | SelfTuned) -> str | None:
        """The same by cross-validation, if no rows are held out; its measures do not support user-defined weights."""
        if isinstance(self.class_weight, dict) or (self.class_weight and self.measure != "macro_mae"):
            return None
        if self.measure == "qwk":
            return None
        error = 1 - search.best_score_ if self.measure == "accuracy" else search.best_score_
        of_constant = float(self.cost[self.places, self.constant].mean())
        return self._verdict(
            error, of_constant, float(search.cv_results_["se_test_score"][search.best_index_]), "in cross-validation"
        )

    def _verdict(self, error: float, of_constant: float, noise: float, where: str) -> str | None:
        gain = of_constant - error
        if gain > 2 * noise and gain > LEAST_GAIN * of_constant:
            return None
        verdict = "hardly better" if gain > 2 * noise else "no better" if gain <= 0 else "not measurably better"
        return (
            f"the model is {verdict} than always predicting {self.order[self.constant]}: {self.error_name} {error:.3f} against "
            f"{of_constant:.3f} {where}"
        )


def deciding(model: TrainedModel, decision: str | None) -> TrainedModel:
    """The model with another decision and the class weights of its training; itself if None."""
    if decision is None:
        return model
    check_one_of("decision", decision, DECISIONS)
    chosen = model.metadata.get("choices") or {}
    # Decisions by the shares of the ranks have weights of their own.
    weights = None if is_by_shares(decision) else chosen.get("class_weight")
    before = chosen.get("decision")
    if weights is not None and decision == "ranker" != before:
        raise InputError(
            f"{named('decision', 'ranker')} ignores the class weights that the model was trained with, {weights}: train again "
            f"with {named('decision', 'ranker')}."
        )
    counts = measuring.weighed_ranks(model.metadata)
    places = np.repeat(np.arange(len(model.classes)), [counts.get(str(label), 0) for label in model.classes.tolist()])
    if weights == "balanced" and not len(places):
        raise InputError(f"{named('decision')} cannot be changed: the model file does not say how frequent the ranks were.")
    costs = DecisionCosts(decision, weights, model.classes, places)
    estimator = copy.copy(model.estimator).set_params(decision=costs.options()["decision"])
    return replace(model, estimator=estimator, metadata=model.metadata | {"choices": chosen | {"decision": decision}})
