"""What ``scoring`` of a search stands for, on held-out rows and on new ones.

It is a measure of ours by name, a function of true and predicted labels, or a scorer of scikit-learn, which asks a model for its
answers. Held-out rows have their answers already, so a scorer gets a stand-in that hands them out.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names

from rankplane.base import Answers
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
    """How much the rows of each fold count; None where all count the same."""
    return [None] * len(held_out.ranks) if held_out.weights is None else [*held_out.weights]


class Scoring(ABC):
    """A measure of a model's answers, reported as it is, an error as an error."""

    is_greater_better = True
    looks_at_rows = False

    @abstractmethod
    def of_folds(self, answers: Answers, rows: Sequence[Any]) -> list[float]:
        """The measure on each fold; ``rows`` are its rows, if the scoring looks at them."""

    @abstractmethod
    def of_model(self, model: Any, X: Any, y: Any, sample_weight: Any) -> float:
        """The measure on rows that a fitted model has not seen."""


@dataclass(frozen=True)
class RankMeasure(Scoring):
    """A measure of ours. Ranks count by their places, as everywhere, and rows by their weights."""

    measure: Metric
    is_greater_better: bool

    def of_folds(self, answers: Answers, rows: Sequence[Any]) -> list[float]:
        held_out = answers.held_out
        weights = weights_of(held_out)
        found = zip(held_out.ranks, answers.ranks, weights, strict=True)
        return [float(self.measure(true, answered, **weighted(w))) for true, answered, w in found]

    def of_model(self, model: Any, X: Any, y: Any, sample_weight: Any) -> float:
        true, answered = (rank_numbers(labels, model.classes_) for labels in (y, model.predict(X)))
        return float(self.measure(true, answered, **weighted(sample_weight)))


class ProbabilityMeasure(Scoring):
    """The ranked probability score."""

    is_greater_better = False

    def of_folds(self, answers: Answers, rows: Sequence[Any]) -> list[float]:
        held_out, places = answers.held_out, range(len(answers.order))
        weights = weights_of(held_out)
        found = zip(held_out.ranks, answers.probabilities, weights, strict=True)
        return [ranked_probability_score(true, p, ranks=places, **weighted(w)) for true, p, w in found]

    def of_model(self, model: Any, X: Any, y: Any, sample_weight: Any) -> float:
        return ranked_probability_score(y, model.predict_proba(X), ranks=model.classes_, **weighted(sample_weight))


@dataclass(frozen=True)
class LabelMeasure(Scoring):
    """A function of true and predicted labels, which are the user's own."""

    measure: Callable[..., float]

    def of_folds(self, answers: Answers, rows: Sequence[Any]) -> list[float]:
        order, found = answers.order, zip(answers.held_out.ranks, answers.ranks, strict=True)
        return [float(self.measure(order[true], order[answered])) for true, answered in found]

    def of_model(self, model: Any, X: Any, y: Any, sample_weight: Any) -> float:
        return float(self.measure(np.asarray(y), model.predict(X), **weighted(sample_weight)))


@dataclass(frozen=True)
class Scorer(Scoring):
    """A scorer of scikit-learn, or any callable of a model, rows and labels. Weights go to it if it requests them."""

    scorer: Callable[..., float]
    looks_at_rows = True

    def of_folds(self, answers: Answers, rows: Sequence[Any]) -> list[float]:
        held_out = answers.held_out
        weights = weights_of(held_out) if self._requests_weights() else [None] * len(held_out.ranks)
        found = zip(rows, held_out.ranks, weights, strict=True)
        return [
            float(self.scorer(StandIn(answers, fold), X, answers.order[true], **weighted(w)))
            for fold, (X, true, w) in enumerate(found)
        ]

    def of_model(self, model: Any, X: Any, y: Any, sample_weight: Any) -> float:
        return float(self.scorer(model, X, y, **weighted(sample_weight)))

    def _requests_weights(self) -> bool:
        routing = getattr(self.scorer, "get_metadata_routing", None)
        return routes_metadata() and routing is not None and bool(routing().consumes("score", ["sample_weight"]))


def has_probabilities(stand_in: Any) -> None:
    """Raises an AttributeError if not."""
    stand_in.answers.probabilities  # noqa: B018


class StandIn(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The model of one fold, as far as scorers ask: it answers for the rows that the fold holds out, whatever X is."""

    def __init__(self, answers: Answers, fold: int) -> None:
        self.answers = answers
        self.fold = fold
        self.classes_ = answers.order

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.classes_[self.answers.ranks[self.fold]])

    def decision_function(self, X: Any) -> NDArray[Any]:
        return self.answers.leanings[self.fold]

    @only_if(has_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return self.answers.probabilities[self.fold]


def is_scorer(function: Callable[..., Any]) -> bool:
    """Whether it takes a model, rows and labels, not true and predicted labels."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # compiled functions need not say what they take
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needed) == 3


def scoring_of(scoring: Any, estimator: Any) -> Scoring:
    """What the parameter stands for, for an estimator that can be judged so."""
    if callable(scoring):
        return Scorer(scoring) if is_scorer(scoring) else LabelMeasure(scoring)
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
