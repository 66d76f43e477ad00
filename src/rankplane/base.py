"""The base class of the models that are tables: their parameters, and methods that combine parts from other modules.

Labels become ranks in ``labels``, a solve is ``solver.training_set``, scores come from ``prediction.fitted``, what is made of them
is in ``rank_model``, and explanations come from ``prediction.explanations``. A model adds its table of demands (what each rank
demands of each plane) and its ranker (how scores become ranks).
"""

import inspect
import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from rankplane import validation
from rankplane.fold_predictions import FoldPredictions
from rankplane.labels import Labels
from rankplane.parameters import check_parameters
from rankplane.prediction import decisions
from rankplane.prediction.calibration import rows_to_learn_from
from rankplane.prediction.explanations import ExplanationMixin
from rankplane.prediction.fitted import fitted_by, fitted_of
from rankplane.prediction.probabilities import calibrate, check_calibrated
from rankplane.prediction.rankers import Scores
from rankplane.progress import solve_progress, working
from rankplane.rank_model import RankModel
from rankplane.solver import tables
from rankplane.solver.kernels import GAMMA_KERNELS, Gram, Kernel, gamma_of, is_linear
from rankplane.solver.lanes import OnReport, Options
from rankplane.solver.planes import Planes, check_finite
from rankplane.solver.stopping import stopping_for
from rankplane.solver.tables import Table
from rankplane.solver.training_set import HeldOut, TrainingSet
from rankplane.validation import OnlyIf

FLAT = 1e-3  # of a margin, by which scores differ that are the same but for the tolerance
# Fitted attributes that have other names in model files.
STORED_AS = {"coef_": "weights", "calibrator_": "calibrator"}


@dataclass(eq=False, repr=False, kw_only=True)
class OrdinalModel(ExplanationMixin, RankModel):
    """Base class of the models that are tables."""

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
    is_joined: ClassVar[bool] = False  # whether the duals of a sample depend on each other
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
        """The table of demands: what each rank demands of each plane."""

    def _solver_options(self, n_ranks: int) -> dict[str, Any]:
        """Options of the solver that follow from the model."""
        return {}

    def _table_rows(self, rank_numbers: NDArray[np.int32], n_ranks: int) -> NDArray[np.int32]:
        """The row of the table of demands that each row of X has."""
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

    def _scores(self, X: Any) -> Scores:
        return fitted_of(self).scores(X, validation.check_n_jobs(self.n_jobs))

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
        """The table of demands of the model, with the parameters in ``setting`` changed."""
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
        **stopping_for(X, model.tol, model.max_iter, is_joined=model.is_joined)._asdict(),
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
    """Warn if the hinge loss of a threshold model is lowest without any weights, so that all samples have the same probabilities.

    That is so at every C where, for each boundary, the mean of the samples on its rarer side lies among those of the other side.
    Weights that are zero but for the tolerance have a squared length of at most twice the duality gap.
    """
    if model.loss != "hinge" or "loss" in model.without or not is_linear(model.kernel) or len(model.coef_) > 1:
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
    # The shape of a table of demands is linear in the number of ranks. With very many ranks, the table would be too large to make.
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
