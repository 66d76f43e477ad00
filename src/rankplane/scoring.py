"""The parameter ``scoring`` of a search, applied to held-out rows and to new ones.

It is the name of one of our measures, a function of true and predicted labels, or a scikit-learn scorer, which calls methods of a
model. Predictions for held-out rows exist already, so a scorer gets a model that returns them.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names

from rankplane.fold_predictions import FoldPredictions
from rankplane.metrics import MEASURES, Metric, ranked_probability_score
from rankplane.solver.training_set import HeldOut
from rankplane.validation import only_if, rank_numbers

NAMES = (*MEASURES, "rps")


def routes_metadata() -> bool:
    """Whether scikit-learn's metadata routing is on."""
    return bool(get_config()["enable_metadata_routing"])


def weighted(weights: Any) -> dict[str, Any]:
    return {} if weights is None else {"sample_weight": weights}


def weights_of(held_out: HeldOut) -> list[Any]:
    """Sample weights by fold; None where there are none."""
    return [None] * len(held_out.ranks) if held_out.weights is None else [*held_out.weights]


class Scoring(ABC):
    """A measure of predictions. Errors are not negated."""

    is_greater_better = True

    @abstractmethod
    def of_folds(self, predictions: FoldPredictions, rows: Iterable[Any]) -> list[float]:
        """The measure on each fold; ``rows`` are the rows of each, which are only taken out of X if the scoring looks at them."""

    @abstractmethod
    def of_model(self, model: Any, X: Any, y: Any, sample_weight: Any) -> float:
        """The measure of a fitted model on new rows."""


@dataclass(frozen=True)
class RankMeasure(Scoring):
    """One of our measures, on positions of the ranks in their order, with sample weights."""

    measure: Metric
    is_greater_better: bool

    def of_folds(self, predictions: FoldPredictions, rows: Iterable[Any]) -> list[float]:
        held_out = predictions.held_out
        weights = weights_of(held_out)
        found = zip(held_out.ranks, predictions.ranks, weights, strict=True)
        return [float(self.measure(true, answered, **weighted(w))) for true, answered, w in found]

    def of_model(self, model: Any, X: Any, y: Any, sample_weight: Any) -> float:
        true, answered = (rank_numbers(labels, model.classes_) for labels in (y, model.predict(X)))
        return float(self.measure(true, answered, **weighted(sample_weight)))


class ProbabilityMeasure(Scoring):
    """The ranked probability score."""

    is_greater_better = False

    def of_folds(self, predictions: FoldPredictions, rows: Iterable[Any]) -> list[float]:
        held_out, places = predictions.held_out, range(len(predictions.order))
        weights = weights_of(held_out)
        found = zip(held_out.ranks, predictions.probabilities, weights, strict=True)
        return [ranked_probability_score(true, p, ranks=places, **weighted(w)) for true, p, w in found]

    def of_model(self, model: Any, X: Any, y: Any, sample_weight: Any) -> float:
        return ranked_probability_score(y, model.predict_proba(X), ranks=model.classes_, **weighted(sample_weight))


@dataclass(frozen=True)
class LabelMeasure(Scoring):
    """A function of true and predicted labels."""

    measure: Callable[..., float]

    def of_folds(self, predictions: FoldPredictions, rows: Iterable[Any]) -> list[float]:
        order, found = predictions.order, zip(predictions.held_out.ranks, predictions.ranks, strict=True)
        return [float(self.measure(order[true], order[answered])) for true, answered in found]

    def of_model(self, model: Any, X: Any, y: Any, sample_weight: Any) -> float:
        return float(self.measure(np.asarray(y), model.predict(X), **weighted(sample_weight)))


@dataclass(frozen=True)
class Scorer(Scoring):
    """A scikit-learn scorer, or any callable of a model, X and y. It gets sample weights if it requests them."""

    scorer: Callable[..., float]

    def of_folds(self, predictions: FoldPredictions, rows: Iterable[Any]) -> list[float]:
        held_out = predictions.held_out
        weights = weights_of(held_out) if self._requests_weights() else [None] * len(held_out.ranks)
        found = zip(rows, held_out.ranks, weights, strict=True)
        return [
            float(self.scorer(by_sorted_label(FoldModel(predictions, fold)), X, predictions.order[true], **weighted(w)))
            for fold, (X, true, w) in enumerate(found)
        ]

    def of_model(self, model: Any, X: Any, y: Any, sample_weight: Any) -> float:
        return float(self.scorer(by_sorted_label(model), X, y, **weighted(sample_weight)))

    def _requests_weights(self) -> bool:
        routing = getattr(self.scorer, "get_metadata_routing", None)
        return routes_metadata() and routing is not None and bool(routing().consumes("score", ["sample_weight"]))


def has_probabilities(fold_model: Any) -> None:
    """Raises an AttributeError if not."""
    fold_model.predictions.probabilities  # noqa: B018


class FoldModel(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The model of one fold, as scorers use it: predicts the rows that the fold holds out, whatever X is."""

    def __init__(self, predictions: FoldPredictions, fold: int) -> None:
        self.predictions = predictions
        self.fold = fold
        self.classes_ = predictions.order

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.classes_[self.predictions.ranks[self.fold]])

    def decision_function(self, X: Any) -> NDArray[Any]:
        return self.predictions.confidences[self.fold]

    @only_if(has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return self.predictions.probabilities[self.fold]


def has_probability_of_each_label(view: Any) -> None:
    """Raises an AttributeError if not."""
    view.model.predict_proba  # noqa: B018


class SortedLabels(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A model with its labels, probabilities and decision function in sorted order.

    scikit-learn's scorers of probabilities take columns to be in that order. Ranks with names, such as low, medium and high, are
    not.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._places = np.argsort(model.classes_)
        self.classes_ = model.classes_[self._places]

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.model.predict(X))

    def decision_function(self, X: Any) -> NDArray[Any]:
        scores = np.asarray(self.model.decision_function(X))
        return -scores if scores.ndim == 1 else scores[:, self._places]  # of two labels, the other one is now the higher

    @only_if(has_probability_of_each_label)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self.model.predict_proba(X)[:, self._places])


def by_sorted_label(model: Any) -> Any:
    """The model as scikit-learn's scorers expect it."""
    labels = model.classes_
    return model if np.all(labels[:-1] <= labels[1:]) else SortedLabels(model)


def is_scorer(function: Callable[..., Any]) -> bool:
    """Whether a callable takes a model, X and y, not true and predicted labels."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # compiled functions may have no signature
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needed) == 3


def scoring_of(scoring: Any, estimator: Any) -> Scoring:
    """The scoring that the parameter asks for, checked against the estimator."""
    if callable(scoring):
        own = next((RankMeasure(*found) for found in MEASURES.values() if found[0] is scoring), None)
        if own is not None or is_scorer(scoring):
            return own or Scorer(scoring)
        name = getattr(scoring, "__name__", "")
        if name.endswith(("_error", "_loss")):  # scikit-learn's naming of functions to minimise
            raise ValueError(
                f"scoring must be a callable that is larger for better predictions. Got {name}: pass "
                f"make_scorer({name}, greater_is_better=False) instead."
            )
        return LabelMeasure(scoring)
    if not isinstance(scoring, str) or scoring not in (*NAMES, *get_scorer_names()):
        listed = ", ".join(map(repr, NAMES))
        raise ValueError(f"scoring must be one of {listed}, the name of a scikit-learn scorer or a callable. Got {scoring!r}.")
    if scoring in MEASURES:
        return RankMeasure(*MEASURES[scoring])
    if scoring != "rps":
        return Scorer(get_scorer(scoring))
    if not estimator.probability:
        raise ValueError("scoring must not be 'rps' unless the estimator has probability=True. Got 'rps'.")
    return ProbabilityMeasure()
