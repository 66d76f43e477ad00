"""The place of a search for models that choose their own parameters: how good they are on rows that they have not seen."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from rankplane import validation
from rankplane.gaussian_process import GPOR
from rankplane.metrics import MEASURES
from rankplane.prediction import decisions
from rankplane.prediction.rankers import Ranks, Scores
from rankplane.search import N_FOLDS

Pairs = Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]


class SelfTuned:
    """A model, fitted, with its measure on left-out rows, under the names that :class:`rankplane.CSearchCV` has for them.

    Without ``pairs`` of training and test rows, each row is predicted by the fit of all rows, without the row itself; the measure
    is then that of parts of the rows.
    """

    best_C_: None = None  # noqa: N815
    best_index_ = 0

    def __init__(self, estimator: GPOR, *, scoring: str, pairs: Pairs | None = None) -> None:
        self.estimator, self.scoring, self.pairs = estimator, scoring, pairs

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to all rows, or to the training rows of each pair."""
        found = self._without_each(X, y, sample_weight) if self.pairs is None else self._of_folds(X, y, sample_weight)
        measure, _ = MEASURES[self.scoring]
        scores = np.array([measure(true, predicted) for true, predicted in found])
        self.held_out_ranks = np.concatenate([predicted for _, predicted in found])
        self.best_params_: dict[str, float] = {}
        self.best_score_, self.n_splits_ = float(scores.mean()), len(scores)
        error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
        self.cv_results_: dict[str, Any] = {"mean_test_score": scores.mean(keepdims=True), "se_test_score": np.array([error])}
        self.cv_results_ |= {f"split{fold}_test_score": scores[[fold]] for fold in range(len(scores))}
        return self

    def _without_each(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> list[tuple[Ranks, Ranks]]:
        model: GPOR = clone(self.estimator)
        used, scores = model._fit(X, y, sample_weight)
        self.best_estimator_ = model
        true = validation.rank_numbers(np.asarray(y), model.classes_)[used].astype(np.intp)
        predicted = predicted_ranks(model, scores)
        n_parts = min(N_FOLDS, len(true))
        return [(true[part::n_parts], predicted[part::n_parts]) for part in range(n_parts)]

    def _of_folds(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> list[tuple[Ranks, Ranks]]:
        assert self.pairs is not None
        labels = validation.as_labels(y, X.shape[0])
        order = validation.rank_order(labels, self.estimator.ranks)
        numbers = validation.rank_numbers(labels, order).astype(np.intp)
        weights = None if sample_weight is None else validation.check_sample_weight(sample_weight, X.shape[0])
        found = []
        for train, test in self.pairs:
            model = clone(self.estimator).set_params(ranks=np.arange(len(order)))
            model.fit(X[train], numbers[train], None if weights is None else weights[train])
            found.append((numbers[test], predicted_ranks(model, model.plane_scores(X[test]))))
        return found


def predicted_ranks(model: GPOR, scores: Scores) -> Ranks:
    """Rank numbers, as the decision of the model says."""
    probabilities = model.calibrator_.probabilities(scores) if decisions.is_by_cost(model.decision) else None
    return model._predict_ranks(scores, probabilities, len(model.classes_))
