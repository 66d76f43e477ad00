"""The base class of the ordinal models: their parameters, and methods that combine parts from other modules.

Labels become ranks in ``labels``, a solve is ``solver.training_set``, scores come from ``prediction.fitted``, probabilities from
``prediction.probabilities``, predictions from ``prediction.decisions`` and explanations from ``prediction.explanations``. A model
adds its table (what each rank demands of each plane) and its ranker (how scores become ranks).
"""

import inspect
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from rankplane import validation
from rankplane.fold_predictions import FoldPredictions, has_probability
from rankplane.labels import Labels
from rankplane.parameters import check_parameters
from rankplane.prediction import decisions, rankers
from rankplane.prediction.calibration import rows_to_learn_from
from rankplane.prediction.explanations import ExplanationMixin
from rankplane.prediction.fitted import fitted_by, fitted_of
from rankplane.prediction.probabilities import Calibrated, calibrate, check_calibrated
from rankplane.prediction.rankers import Ranks, Scores
from rankplane.progress import solve_progress, working
from rankplane.solver import tables
from rankplane.solver.kernels import GAMMA_KERNELS, Gram, Kernel, gamma_of, is_linear
from rankplane.solver.lanes import OnReport, Options
from rankplane.solver.planes import Planes, check_finite
from rankplane.solver.stopping import stopping_for
from rankplane.solver.tables import Table
from rankplane.solver.training_set import HeldOut, TrainingSet
from rankplane.validation import OnlyIf, only_if
from rankplane.versions import Versioned

FLAT = 1e-3  # of a margin, by which scores differ that are the same but for the tolerance
# Fitted attributes that have other names in model files.
STORED_AS = {"coef_": "weights", "calibrator_": "calibrator"}


@dataclass(eq=False, repr=False, kw_only=True)
class OrdinalModel(Versioned, ExplanationMixin, ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of the models."""

    C: float = 1.0
    loss: tables.Loss = "hinge"
    ranks: Any = None
    class_weight: Any = None
    tol: float | None = None
    max_iter: int | None = None
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
    without: ClassVar[tuple[str, ...]] = ()  # parameters of other models, which this one does not have
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
        "conformity_before_",
        "conformity_ranks_",
        "class_prior_",
        "expected_qwk_",
        "n_features_in_",
        "feature_names_in_",
    )

    @abstractmethod
    def _table(self, n_ranks: int) -> Table:
        """The table: what each rank demands of each plane."""

    @abstractmethod
    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        """The ranker: from scores to ranks."""

    def _solver_options(self, n_ranks: int) -> dict[str, Any]:
        """Options of the solver that follow from the model."""
        return {}

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
        with solve_progress(bool(self.verbose), type(self).__name__, trainer.rows.options.tol) as on_report:
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

    def _check_rows(self, X: Any, is_fit: bool) -> Any:
        options = {
            "accept_sparse": "csr" if self.kernel != "precomputed" else False,
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": False,
            "reset": is_fit,
        }
        X = validation.as_rows(validate_data(self, X, **options))
        # Sums over the entries of a row need neither their order nor each column in one piece. Counts of entries and kernels do.
        if self.kernel != "linear" or (is_fit and isinstance(self.column_weight, str)):
            X = validation.merged(X)
        check_finite(X, validation.check_n_jobs(self.n_jobs))
        return X

    def _to_values(self) -> dict[str, Any]:
        check_parameters(self)  # they may have been set after the fit
        held = {name: getattr(self, name) for name in self.fitted if hasattr(self, name)}
        if "coef_" in held:
            held["coef_"] = held["coef_"].T
        return {STORED_AS.get(name, name): value for name, value in held.items()}

    def _from_values(self, values: dict[str, Any]) -> None:
        check_parameters(self)
        for name in self.fitted:
            stored = STORED_AS.get(name, name)
            if stored in values:
                setattr(self, name, values[stored].T if name == "coef_" else values[stored])
        check_fitted_parts(self)

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
        # scikit-learn's checks train on blobs whose labels have no order, so an ordinal model must score poorly on them.
        tags.classifier_tags.poor_score = True
        return tags


class Trainer:
    """Fits a model step by step: ``fit`` runs all steps in a row, a search runs them separately.

    ``rows`` is the training data, for solves of any kind. The model must not be changed elsewhere meanwhile.
    """

    def __init__(self, model: OrdinalModel, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        check_parameters(model)
        self.model = model
        self.rows = self._training_set(X, y, sample_weight)

    def _training_set(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> TrainingSet:
        """Check the parameters and the data."""
        model = self.model
        X = model._check_rows(X, is_fit=True)
        if not is_linear(model.kernel):
            X = gram_of(model, X, validation.check_n_jobs(model.n_jobs))
        options = options_of(model, X)
        labels = Labels.of(y, X.shape[0], model.ranks)
        check_decision(model, labels.n_ranks)
        given = None if sample_weight is None else validation.check_sample_weight(sample_weight, X.shape[0])
        by_row = labels.row_weights(model.class_weight, given)
        by_column = validation.check_column_weight(model.column_weight, X.shape[1], X.dtype)
        table_rows = model._table_rows(labels.numbers, labels.n_ranks)
        options = replace(options, **model._solver_options(labels.n_ranks))
        rows = TrainingSet(X, labels, table_rows, by_row, options, by_column, given)
        coupling = getattr(model, "coupling", 0.0)
        return rows.with_coupling(coupling, model._table(labels.n_ranks).shape[2]) if coupling else rows

    def table(self, **setting: float) -> Table:
        """The table of the model, with the parameters in ``setting`` changed."""
        model: OrdinalModel = clone(self.model).set_params(**setting) if setting else self.model
        return model._table(self.rows.labels.n_ranks)

    def solve(self, options: Options | None = None, on_report: OnReport | None = None) -> None:
        """Solve for the planes of the model."""
        self._adopt(self.rows.solve(self.table(), options or self.rows.options, on_report))

    def solve_with_folds(self, on_report: OnReport | None = None) -> HeldOut:
        """Solve for the planes of the model and of folds; returns the held-out rows with their scores."""
        planes, held_out = self.rows.solve_with_folds(self.table(), self.rows_to_calibrate(), on_report)
        self._adopt(planes)
        return held_out

    def rows_at(self, setting: dict[str, float]) -> TrainingSet:
        """The training data for solves with these parameters."""
        n_planes = self.table().shape[2]
        return self.rows.with_gamma(setting.get("gamma")).with_coupling(setting.get("coupling"), n_planes)

    def choose(self, setting: dict[str, float]) -> None:
        """Set these parameters for the next steps."""
        self.model.set_params(**setting)
        self.rows = self.rows_at(setting)

    def rows_to_calibrate(self) -> int:
        """How many held-out rows are enough for a calibrator of the model's scores."""
        _, n_cuts, n_lanes, _ = self.table().shape
        return rows_to_learn_from(n_cuts * n_lanes, self.rows.labels.n_ranks)

    def calibrate(self, held_out: HeldOut) -> None:
        """Fit the calibrator and the conformity scores of the model."""
        self.model._adopt_calibration(calibrate(held_out))
        warn_if_flat(self.model, self.rows.X)

    def fold_predictions(self, held_out: HeldOut) -> FoldPredictions:
        """Predictions for held-out rows."""
        return FoldPredictions(self.model, self.rows.labels.order, held_out, self.rows_to_calibrate())

    def _adopt(self, planes: Planes) -> None:
        adopt_planes(self.model, planes, self.rows.labels.order, self.rows.X)


def options_of(model: OrdinalModel, X: Any) -> Options:
    """How the parameters of a model say to solve, with rows like these."""
    return Options(
        **stopping_for(X, model.tol, model.max_iter)._asdict(),
        shrinking=model.shrinking,
        seed=validation.seed_of(model.random_state),
        n_threads=validation.check_n_jobs(model.n_jobs),
        has_offsets=getattr(model, "fit_intercept", True),
        free_offsets=model.free_offsets,
    )


def check_decision(model: OrdinalModel, n_ranks: int) -> None:
    """Refuse a decision that does not fit the ranks, or needs probabilities that there are not."""
    if decisions.is_by_cost(model.decision):
        decisions.check_decision(model.decision, n_ranks)
        if not model.probability:
            raise ValueError(decisions.needs_probability(model.decision))


def adopt_planes(model: OrdinalModel, planes: Planes, order: NDArray[Any], X: Any) -> None:
    """Give a model the planes that were found for the ranks in this order, on rows X."""
    model.classes_ = order
    for name, value in fitted_by(planes, X).attributes().items():
        setattr(model, name, value)
    model.n_iter_ = planes.n_sweeps
    model.dual_objective_ = planes.dual_objective
    model.duality_gap_ = planes.gap
    model.n_support_ = planes.n_support


def warn_if_flat(model: OrdinalModel, X: Any) -> None:
    """Warn if the hinge loss is lowest without any weights, so that all samples have the same probabilities.

    For threshold models, that is so at every C where, for each boundary, the mean of the samples on its rarer side lies among those
    of the other side. Weights that are zero but for the tolerance have a squared length of at most twice the duality gap.
    """
    if model.loss != "hinge" or "loss" in model.without or not is_linear(model.kernel):
        return
    squares = np.sum(np.square(model.coef_, dtype=np.float64), axis=1)
    if not np.all(squares <= 2 * model.duality_gap_):
        return
    if np.all(np.ptp(fitted_of(model).scores(X, validation.check_n_jobs(model.n_jobs)), axis=0) < FLAT):
        warnings.warn(
            f"All samples have the same probabilities: with loss='hinge', ranks that overlap this much cost {type(model).__name__} "
            "least without any weights, and a larger C does not help. Use loss='squared_hinge', or Committee.",
            UserWarning,
            stacklevel=4,
        )


def check_fitted_parts(model: OrdinalModel) -> None:
    """Raise ``ValueError`` unless all parts have the shapes that follow from the number of ranks, planes and columns."""
    needed = ["classes_", "intercept_", "n_features_in_", *(["calibrator_", "conformity_"] if model.probability else [])]
    missing = next((name for name in needed if not hasattr(model, name)), None)
    if missing:
        raise ValueError(f"{missing} is missing")
    classes, n_columns = model.classes_, model.n_features_in_
    if not (isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) >= 2):
        raise ValueError("the ranks are not a list of two and more")
    # The shape of a table is linear in the number of ranks. With very many ranks, the table itself would be too large to make.
    (cuts, lanes), (more_cuts, more_lanes) = (model._table(n).shape[1:3] for n in (2, 3))
    n_cuts, n_lanes = cuts + (len(classes) - 2) * (more_cuts - cuts), lanes + (len(classes) - 2) * (more_lanes - lanes)
    if is_linear(model.kernel) != ("coef_" in vars(model)):
        raise ValueError("the weights do not match the kernel")
    fitted_of(model).check(n_lanes, n_columns)
    if model.intercept_.shape != (n_cuts * n_lanes,) or model.intercept_.dtype.kind != "f":
        raise ValueError("the offsets do not match the number of ranks")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and names.shape != (n_columns,):
        raise ValueError("the names do not match the number of columns")
    if model.probability:
        check_calibrated(model.calibrator_, model._conformity(), model._basis(), n_cuts * n_lanes, len(classes))
    if decisions.is_by_cost(model.decision):
        decisions.check_decision(model.decision, len(classes))
        if not model.probability:
            raise ValueError("the decision needs probabilities")


def gram_of(model: OrdinalModel, X: Any, n_threads: int) -> Gram:
    """The kernel matrix of the training rows."""
    if model.kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X must be a square matrix with kernel='precomputed', the kernel of every row with every row. Got {X.shape}."
        )
    gamma = gamma_of(model.gamma, X) if model.kernel in GAMMA_KERNELS else 1.0
    return Gram(Kernel(model.kernel, gamma, model.degree, model.coef0), X, model.cache_size * 2**20, n_threads)
