"""The base of the ordinal models: their parameters, and what they do, each part of it done elsewhere.

Labels become ranks in ``labels``, a solve is ``solver.training_set``, scores come from ``prediction.fitted``, probabilities from
``prediction.probabilities``, answers from ``prediction.decisions`` and reasons from ``prediction.explanations``. A model adds its
table, what each rank asks of each plane, and its ranker, how scores become ranks.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from rankplane import validation
from rankplane.labels import Labels
from rankplane.parameters import check_parameters
from rankplane.prediction import decisions, rankers
from rankplane.prediction.explanations import Explanation, TopFeatures, explain_rows, top_columns
from rankplane.prediction.fitted import fitted_by, fitted_of
from rankplane.prediction.probabilities import calibrate, held_out_probabilities
from rankplane.prediction.rankers import Ranks, Scores
from rankplane.progress import solve_progress, working
from rankplane.solver import tables
from rankplane.solver.kernels import GAMMA_KERNELS, Gram, Kernel, gamma_of, is_linear
from rankplane.solver.lanes import OnReport, Options
from rankplane.solver.planes import Planes
from rankplane.solver.tables import Table
from rankplane.solver.training_set import HeldOut, TrainingSet
from rankplane.validation import OnlyIf, only_if


def has_probability(estimator: Any) -> None:
    if not estimator.probability:
        name = type(estimator).__name__
        raise AttributeError(f"{name} has no probabilities: make it with {name}(probability=True) and fit it again.")


@dataclass(eq=False, repr=False, kw_only=True)
class OrdinalModel(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of the models: parameters, and methods that bring the parts together."""

    C: float = 1.0
    loss: tables.Loss = "hinge"
    ranks: Any = None
    class_weight: Any = None
    tol: float = 0.1
    max_iter: int = 1000
    shrinking: bool = True
    probability: bool = False
    decision: Any = "ranker"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    column_weight: Any = None
    kernel: Any = "linear"
    gamma: Any = "scale"
    degree: float = 3
    coef0: float = 0.0
    cache_size: float = 200

    free_offsets: ClassVar[bool] = False
    fitted: ClassVar[tuple[str, ...]] = (
        "classes_",
        "coef_",
        "support_",
        "support_vectors_",
        "dual_coef_",
        "gamma_",
        "intercept_",
        "n_iter_",
        "dual_objective_",
        "duality_gap_",
        "n_support_",
        "calibrator_",
        "conformity_",
        "n_features_in_",
        "feature_names_in_",
    )

    @abstractmethod
    def _table(self, n_ranks: int) -> Table:
        """What each rank asks of each plane."""

    @abstractmethod
    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        """The ranker: from scores to ranks."""

    def _boundaries(self, values: Scores, n_ranks: int, *, is_score: bool) -> Scores:
        """From planes to the boundaries between neighbouring ranks, which are positive above: scores, or the weights of a
        column.
        """
        return values

    def _table_rows(self, rank_numbers: NDArray[np.int32], n_ranks: int) -> NDArray[np.int32]:
        """The table row of each row of X."""
        return rank_numbers

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Returns
        -------
        object
            The fitted model.
        """
        for name in self.fitted:
            if hasattr(self, name):
                delattr(self, name)
        trainer = Trainer(self, X, y, sample_weight)
        with solve_progress(bool(self.verbose), type(self).__name__, self.tol) as on_report:
            if not self.probability:
                trainer.solve(on_report=on_report)
                return self
            held_out = trainer.solve_with_folds(on_report)
        with working(bool(self.verbose), "Calibrating"):
            trainer.calibrate(held_out)
        return self

    def plane_scores(self, X: Any) -> NDArray[Any]:
        """Compute the score of each sample on each plane.

        Returns
        -------
        ndarray of shape (n_samples, n_planes)
            Signed scores: zero on a plane, positive above it. For threshold models, one score per boundary.
        """
        check_is_fitted(self)
        return fitted_of(self).scores(self._check_rows(X, is_fit=False), validation.check_n_jobs(self.n_jobs))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the rank of each sample.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels, chosen as the parameter ``decision`` says.
        """
        check_is_fitted(self)
        found = self.plane_scores(X)
        return np.asarray(self.classes_[self._answers(found, self._deciding_probabilities(found), len(self.classes_))])

    def _answers(self, plane_scores: Scores, probabilities: NDArray[np.float64] | None, n_ranks: int) -> Ranks:
        """Ranks by their places; by least expected cost where probabilities are given."""
        if probabilities is None:
            return self._rank(plane_scores, n_ranks)
        return decisions.least_cost(probabilities, decisions.cost_matrix(self.decision, n_ranks))

    def _leanings(self, plane_scores: Scores, probabilities: NDArray[np.float64] | None, n_ranks: int) -> Scores:
        """What ``decision_function`` says."""
        if probabilities is None:
            boundaries = self._boundaries(plane_scores, n_ranks, is_score=True)
            leanings = rankers.leanings(boundaries, self._rank(plane_scores, n_ranks))
        else:
            leanings = -(probabilities @ decisions.cost_matrix(self.decision, n_ranks))
        return leanings[:, 1] - leanings[:, 0] if n_ranks == 2 else leanings

    def _deciding_probabilities(self, plane_scores: Scores) -> NDArray[np.float64] | None:
        """Probabilities if the decision asks for them."""
        return self.calibrator_.probabilities(plane_scores) if decisions.is_by_cost(self.decision) else None

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
        return self._leanings(found, self._deciding_probabilities(found), len(self.classes_))

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
    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
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
        holds for samples like those, as far as the final planes score new samples as the planes of the folds scored them.

        References
        ----------
        .. [1] Romano, Sesia and Candes, "Classification with Valid and Adaptive Coverage", NeurIPS 2020.
        """
        if isinstance(coverage, bool) or not isinstance(coverage, float) or not 0 < coverage < 1:
            raise ValueError(f"coverage must be a number between 0 and 1. Got {coverage!r}.")
        return decisions.rank_sets(self.predict_proba(X), decisions.conformal_threshold(self.conformity_, coverage))

    def boundary_planes(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Compute the planes between neighbouring ranks.

        Returns
        -------
        weights : ndarray of shape (n_features, n_ranks - 1)
            Feature weights of each boundary.
        offsets : ndarray of shape (n_ranks - 1,)
            Intercept of each boundary. Scores ``X @ weights + offsets`` are positive above a boundary.
        """
        check_is_fitted(self)
        n_ranks = len(self.classes_)
        weights = self._boundaries(fitted_of(self).column_weights(), n_ranks, is_score=False)
        offsets = self._boundaries(self.intercept_[None], n_ranks, is_score=True)[0]
        return np.broadcast_to(weights, (len(weights), n_ranks - 1)), offsets

    def explain(self, X: Any, feature_names: Any = None, top: int = 10) -> list[Explanation]:
        """Explain on which side of each boundary samples lie, by the contributions of their features.

        Only available with ``kernel='linear'``.

        Returns
        -------
        list of Explanation
            One explanation per sample, with the features that push it up and down at each boundary. ``print`` shows it as text.
        """
        check_is_fitted(self)
        rows = self._check_rows(np.atleast_2d(X) if isinstance(X, np.ndarray) else X, is_fit=False)
        weights, offsets = self.boundary_planes()
        return explain_rows(rows, weights, offsets, self.classes_, self._names(feature_names), validation.check_count("top", top))

    def top_features(self, feature_names: Any = None, n: int = 10) -> list[TopFeatures]:
        """List the features with the largest weights at each boundary between neighbouring ranks.

        Only available with ``kernel='linear'``.

        Returns
        -------
        list of TopFeatures
            One entry per boundary, with the names and weights of the features that speak for the upper and the lower rank.
        """
        names, n = self._names(feature_names), validation.check_count("n", n)
        return top_columns(self.boundary_planes()[0], self.classes_, names, n)

    def _names(self, feature_names: Any) -> Any:
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        if names is not None and len(names) != self.coef_.shape[1]:
            raise ValueError(f"feature_names must have one name per feature, {self.coef_.shape[1]}. Got {len(names)}.")
        return names

    def _check_rows(self, X: Any, is_fit: bool) -> Any:
        options = {
            "accept_sparse": "csr" if self.kernel != "precomputed" else False,
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": False,
            "reset": is_fit,
        }
        X = validation.as_rows(validate_data(self, X, **options))
        validation.check_finite(X)
        return X

    def __getattr__(self, name: str) -> Any:
        if name == "coef_" and "dual_coef_" in self.__dict__:
            raise AttributeError(f"coef_ is only available with kernel='linear'. Got kernel={self.kernel!r}.")
        method = inspect.getattr_static(type(self), name, None)
        if isinstance(method, OnlyIf):
            method.check(self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_") or hasattr(self, "dual_coef_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        # scikit-learn's checks train on blobs whose labels have no order, which a model of order is bound to score poorly on.
        tags.classifier_tags.poor_score = True
        return tags


class Trainer:
    """A model on its way to being fitted, step by step: ``fit`` takes the steps in a row, a search takes them apart.

    ``rows`` is what it learns from, for solves of any kind. The model must not be changed by others meanwhile.
    """

    def __init__(self, model: OrdinalModel, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        check_parameters(model)
        self.model = model
        self.rows = self._training_set(X, y, sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> TrainingSet:
        """Everything that a solve needs, checked."""
        model = self.model
        options = Options(
            tol=model.tol,
            max_iter=model.max_iter,
            shrinking=model.shrinking,
            seed=validation.seed_of(model.random_state),
            n_threads=validation.check_n_jobs(model.n_jobs),
            has_offsets=getattr(model, "fit_intercept", True),
            free_offsets=model.free_offsets,
        )
        X = model._check_rows(X, is_fit=True)
        if not is_linear(model.kernel):
            X = gram_of(model, X, options.n_threads)
        labels = Labels.of(y, X.shape[0], model.ranks)
        if decisions.is_by_cost(model.decision):
            decisions.cost_matrix(model.decision, labels.n_ranks)
            if not model.probability:
                raise ValueError(f"decision must be 'ranker' unless probability=True. Got {model.decision!r}.")
        given = None if sample_weight is None else validation.check_sample_weight(sample_weight, X.shape[0])
        by_row = labels.row_weights(model.class_weight, given)
        by_column = validation.check_column_weight(model.column_weight, X.shape[1], X.dtype)
        table_rows = model._table_rows(labels.numbers, labels.n_ranks)
        return TrainingSet(X, labels, table_rows, by_row, options, by_column, given)

    def table(self, **setting: float) -> Table:
        """The table of the model, with other parameters if a setting is given."""
        model: OrdinalModel = clone(self.model).set_params(**setting) if setting else self.model
        return model._table(self.rows.labels.n_ranks)

    def solve(self, options: Options | None = None, on_report: OnReport | None = None) -> None:
        """Give the model its planes."""
        self._adopt(self.rows.solve(self.table(), options or self.rows.options, on_report))

    def solve_with_folds(self, on_report: OnReport | None = None) -> HeldOut:
        """Give the model its planes, and return what planes of folds say of the rows they did not see."""
        planes, held_out = self.rows.solve_with_folds(self.table(), on_report)
        self._adopt(planes)
        return held_out

    def choose(self, setting: dict[str, float]) -> None:
        """Go on with these parameters."""
        self.model.set_params(**setting)
        self.rows = self.rows.with_gamma(setting.get("gamma"))

    def calibrate(self, held_out: HeldOut) -> None:
        """Give the model its probabilities and rank sets."""
        self.model.calibrator_, self.model.conformity_ = calibrate(held_out)

    def answers(self, held_out: HeldOut) -> "Answers":
        """What the model would say of held-out rows."""
        return Answers(self.model, self.rows.labels.order, held_out)

    def _adopt(self, planes: Planes) -> None:
        model = self.model
        model.classes_ = self.rows.labels.order
        for name, value in fitted_by(planes, self.rows.X).attributes().items():
            setattr(model, name, value)
        model.n_iter_ = planes.n_sweeps
        model.dual_objective_ = planes.dual_objective
        model.duality_gap_ = planes.gap
        model.n_support_ = planes.n_support


class Answers:
    """What a model would say of held-out rows, fold by fold; found out when asked for."""

    def __init__(self, model: OrdinalModel, order: NDArray[Any], held_out: HeldOut) -> None:
        self.model = model
        self.order = order
        self.held_out = held_out

    @cached_property
    def probabilities(self) -> list[NDArray[np.float64]]:
        has_probability(self.model)
        return held_out_probabilities(self.held_out)

    @cached_property
    def ranks(self) -> list[Ranks]:
        """By their places."""
        return self._by_fold(self.model._answers)

    @cached_property
    def leanings(self) -> list[Scores]:
        """As ``decision_function`` has them."""
        return self._by_fold(self.model._leanings)

    def _by_fold(self, say: Callable[[Scores, NDArray[np.float64] | None, int], NDArray[Any]]) -> list[NDArray[Any]]:
        by_cost = decisions.is_by_cost(self.model.decision)
        probabilities = self.probabilities if by_cost else [None] * len(self.held_out.scores)
        pairs = zip(self.held_out.scores, probabilities, strict=True)
        return [say(scores, of_fold, self.held_out.n_ranks) for scores, of_fold in pairs]


def gram_of(model: OrdinalModel, X: Any, n_threads: int) -> Gram:
    """The kernel matrix of the training rows."""
    if model.kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X must be a square matrix with kernel='precomputed', the kernel of every row with every row. Got {X.shape}."
        )
    gamma = gamma_of(model.gamma, X) if model.kernel in GAMMA_KERNELS else 1.0
    return Gram(Kernel(model.kernel, gamma, model.degree, model.coef0), X, model.cache_size * 2**20, n_threads)
