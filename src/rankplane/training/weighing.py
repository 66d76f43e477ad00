"""What answers cost when ranks count differently, and what a model gains over the answer that knows nothing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane import validation
from rankplane.prediction.decisions import cost_matrix
from rankplane.search import CSearchCV
from rankplane.training import parsing

# How the error is called that an answer is to make least.
ERRORS = {"mae": "MAE", "mse": "MSE", "accuracy": "share of wrong answers", "ranker": "MAE"}
HARDLY = 0.05  # a gain that is worth little: this share of the constant answer's error


class Weighing:
    """A decision, perhaps with weights of the ranks, on training rows whose ranks are given by their places in the order."""

    def __init__(self, decision: str, class_weight: str | None, order: NDArray[Any], places: NDArray[Any]) -> None:
        self.decision, self.order, self.places = decision, order, places
        self.class_weight = parsing.class_weight(class_weight, order.tolist())
        weights = validation.rank_weights(self.class_weight, order, places)
        self.cost = cost_matrix("mae" if decision == "ranker" else decision, len(order))
        if weights is not None:
            self.cost = self.cost * weights[:, None]

    def options(self) -> dict[str, Any]:
        """For the models. Calibration undoes what weights of ranks do to the planes, so the weights go to the costs of answers
        instead, except for the rule of the model, which knows no costs.
        """
        if self.class_weight is None or self.decision == "ranker":
            return {"decision": self.decision, "class_weight": self.class_weight}
        return {"decision": self.cost}

    @property
    def measure(self) -> str:
        """What C is chosen by."""
        measure = "mae" if self.decision == "ranker" else self.decision
        return "macro_mae" if measure == "mae" and self.class_weight == "balanced" else measure

    @property
    def error_name(self) -> str:
        return ERRORS[self.decision] if self.class_weight is None else f"weighted {ERRORS[self.decision]}"

    @property
    def constant(self) -> int:
        """The place of the answer that costs least when nothing is known about a row."""
        return int(np.argmin(np.bincount(self.places, minlength=len(self.cost)) @ self.cost))

    def poor_gain(self, true: NDArray[Any], predicted: NDArray[Any]) -> str | None:
        """What is wrong, if answers are hardly better than the constant one; both are given by their places."""
        errors, of_constant = self.cost[true, predicted], self.cost[true, self.constant]
        noise = float(np.std(of_constant - errors)) / np.sqrt(len(true))
        return self._verdict(float(errors.mean()), float(of_constant.mean()), noise, f"on {len(true):,} rows")

    def poor_gain_in_folds(self, search: CSearchCV) -> str | None:
        """The same by cross-validation, where no rows are held out. Its measures know no weights of one's own."""
        if isinstance(self.class_weight, dict) or (self.class_weight and self.measure != "macro_mae"):
            return None
        error = 1 - search.best_score_ if self.measure == "accuracy" else search.best_score_
        of_constant = float(self.cost[self.places, self.constant].mean())
        return self._verdict(error, of_constant, float(spread_of(search)[search.best_index_]), "in cross-validation")

    def _verdict(self, error: float, of_constant: float, noise: float, where: str) -> str | None:
        gain = of_constant - error
        if gain > 2 * noise and gain > HARDLY * of_constant:
            return None
        verdict = "hardly better" if gain > 2 * noise else "no better" if gain <= 0 else "not measurably better"
        return (
            f"the model is {verdict} than always answering {self.order[self.constant]}: {self.error_name} {error:.3f} against "
            f"{of_constant:.3f} {where}"
        )


def spread_of(search: CSearchCV) -> NDArray[np.float64]:
    """Standard error over the folds of each mean score."""
    return np.asarray(search.cv_results_["std_test_score"] / np.sqrt(max(1, search.n_splits_ - 1)))
