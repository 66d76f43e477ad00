"""What every model does with the scores of samples: ranks, probabilities and sets of ranks, and its form in a model file.

A model gives scores, one per plane or boundary, a ranker, and a calibrator that makes probabilities of scores.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from rankplane import validation
from rankplane.fold_predictions import has_probability
from rankplane.prediction import decisions, rankers
from rankplane.prediction.probabilities import Calibrated
from rankplane.prediction.rankers import Ranks, Scores
from rankplane.validation import only_if
from rankplane.versions import Versioned


class RankModel(Versioned, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of all models."""

    ranks: Any
    decision: Any
    n_jobs: int | None
    random_state: Any
    verbose: int
    probability: Any = True
    kernel: Any
    class_weight: Any = None

    without: ClassVar[tuple[str, ...]] = ()  # parameters of other models, which this one does not have

    classes_: NDArray[Any]
    calibrator_: Any
    n_features_in_: int

    @abstractmethod
    def _scores(self, X: Any) -> Scores:
        """The scores of rows that need no checks."""

    @abstractmethod
    def _check_rows(self, X: Any, is_fit: bool) -> Any:
        """Rows, checked."""

    @abstractmethod
    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        """The ranker: from scores to ranks."""

    @abstractmethod
    def _boundaries(self, values: Scores, n_ranks: int, *, is_score: bool) -> Scores:
        """Scores of the boundaries between ranks from scores of planes, or their weights from weights of planes."""

    @abstractmethod
    def _to_values(self) -> dict[str, Any]:
        """What was fitted, for a model file."""

    @abstractmethod
    def _from_values(self, values: dict[str, Any]) -> None:
        """Restore what was fitted, after checks."""

    def plane_scores(self, X: Any) -> NDArray[Any]:
        """Compute the score of each sample on each plane.

        Returns
        -------
        ndarray of shape (n_samples, n_planes)
            Signed scores: zero on a plane, positive above it. For threshold models, one score per boundary.
        """
        check_is_fitted(self)
        return np.asarray(self._scores(self._check_rows(X, is_fit=False)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the rank of each sample.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels, chosen as the parameter ``decision`` says.
        """
        check_is_fitted(self)
        found = self.plane_scores(X)
        return np.asarray(self.classes_[self._predict_ranks(found, self._deciding_probabilities(found), len(self.classes_))])

    def _predict_both(self, plane_scores: Scores) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """What ``predict`` and ``predict_proba`` return for samples with these scores."""
        probabilities = self.calibrator_.probabilities(plane_scores)
        deciding = probabilities if decisions.is_by_cost(self.decision) else None
        return np.asarray(self.classes_[self._predict_ranks(plane_scores, deciding, len(self.classes_))]), probabilities

    def _predict_ranks(
        self, plane_scores: Scores, probabilities: NDArray[np.float64] | None, n_ranks: int, basis: decisions.Basis | None = None
    ) -> Ranks:
        """Rank numbers; those of least expected cost if probabilities are given."""
        if probabilities is None:
            return self._rank(plane_scores, n_ranks)
        return decisions.least_cost(probabilities, self._costs(n_ranks, basis))

    def _confidences(
        self, plane_scores: Scores, probabilities: NDArray[np.float64] | None, n_ranks: int, basis: decisions.Basis | None = None
    ) -> Scores:
        """The scores of ``decision_function``."""
        if probabilities is None:
            boundaries = self._boundaries(plane_scores, n_ranks, is_score=True)
            confidences = rankers.confidences(boundaries, self._rank(plane_scores, n_ranks))
        else:
            confidences = -(probabilities @ self._costs(n_ranks, basis))
        return confidences[:, 1] - confidences[:, 0] if n_ranks == 2 else confidences

    def _deciding_probabilities(self, plane_scores: Scores) -> NDArray[np.float64] | None:
        """Probabilities if the decision needs them."""
        if not decisions.is_by_cost(self.decision):
            return None
        if not hasattr(self, "calibrator_"):  # the decision was set after the fit
            raise ValueError(decisions.needs_probability(self.decision))
        return np.asarray(self.calibrator_.probabilities(plane_scores))

    def _costs(self, n_ranks: int, basis: decisions.Basis | None = None) -> NDArray[np.float64]:
        """The cost matrix of the decision; by default with what the model knows of its held-out rows.

        Calibration cancels the effect that class weights have on the planes, so they multiply the costs.
        """
        basis = basis or self._basis()
        cost = decisions.cost_matrix(self.decision, n_ranks, basis)
        if basis is None or self.class_weight is None or decisions.is_by_shares(self.decision):
            return cost
        weights = validation.rank_weights(self.class_weight, basis.order, basis.shares)
        return cost if weights is None else cost * weights[:, None]

    def _basis(self) -> decisions.Basis | None:
        """None of models of older versions."""
        return decisions.Basis(self.class_prior_, 1 - self.expected_qwk_, self.classes_) if hasattr(self, "class_prior_") else None

    def _conformity(self) -> decisions.Conformity:
        before, ranks = getattr(self, "conformity_before_", None), getattr(self, "conformity_ranks_", None)
        return decisions.Conformity(self.conformity_, before, ranks)

    def _adopt_calibration(self, found: Calibrated) -> None:
        self.calibrator_ = found.calibrator
        self.conformity_, self.conformity_before_, self.conformity_ranks_ = found.conformity
        self.class_prior_, self.expected_qwk_ = found.basis.shares, 1 - found.basis.ratio

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Compute a confidence score for each rank.

        The score is minus the expected cost of predicting the rank or, with ``decision='ranker'``, minus the sum of the scores of
        the boundaries between it and the predicted rank.

        Returns
        -------
        ndarray of shape (n_samples, n_ranks) or (n_samples,)
            Confidence scores, highest for the predicted rank. With two ranks a single score, positive for the higher one, as in
            scikit-learn.
        """
        check_is_fitted(self)
        found = self.plane_scores(X)
        return self._confidences(found, self._deciding_probabilities(found), len(self.classes_))

    @only_if(has_probability)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict the probability of each rank.

        Only available with ``probability=True``.

        Returns
        -------
        ndarray of shape (n_samples, n_ranks)
            Calibrated probabilities, with ranks in the order of ``classes_``.
        """
        check_is_fitted(self)
        return np.asarray(self.calibrator_.probabilities(self.plane_scores(X)))

    @only_if(has_probability)
    def predict_set(self, X: Any, coverage: float = 0.9, *, per_rank: bool = False, score: str | None = None) -> NDArray[np.bool_]:
        """Predict sets of neighbouring ranks that contain the true rank with a given probability.

        Only available with ``probability=True``.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_ranks)
            True for the ranks in each set, which is never empty.

        See Also
        --------
        rankplane.set_in_words : Format the sets as intervals such as "3-4".

        Notes
        -----
        Sets are found by conformal prediction [1]_: starting at the most likely rank, neighbours are added until the set has as
        much probability as was needed to cover the true rank of the requested share of held-out training samples. The coverage
        holds for samples like those, as far as the final planes score new samples as the planes of the folds scored them. It is an
        average over all samples: with ``score='before'``, rare ranks are covered less often than frequent ones, unless
        ``per_rank=True``.

        References
        ----------
        .. [1] Romano, Sesia and Candès, "Classification with Valid and Adaptive Coverage", NeurIPS 2020.
        """
        return self._set_rule(coverage, per_rank=per_rank, score=score).sets(self.predict_proba(X))

    def _set_rule(self, coverage: float, *, per_rank: bool = False, score: str | None = None) -> decisions.SetRule:
        if isinstance(coverage, bool) or not isinstance(coverage, float) or not 0 < coverage < 1:
            raise ValueError(f"coverage must be a number between 0 and 1. Got {coverage!r}.")
        validation.check_choice("score", score, (None, *decisions.SCORES))
        validation.check_bool("per_rank", per_rank)
        return self._conformity().rule(coverage, score, per_rank=per_rank, n_ranks=len(self.classes_))
