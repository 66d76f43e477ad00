"""What the ordinal models share: parameters, checks, labels, the solve, scores, probabilities, explanations.

``fit`` is checks, then ``solve_planes``, then the compiled core.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from rankplane import validation
from rankplane.prediction import decisions, rankers
from rankplane.prediction.calibration import Curved
from rankplane.prediction.explanations import Explanation, TopFeatures, explain_rows, top_columns
from rankplane.prediction.rankers import Ranks, Scores
from rankplane.progress import solve_progress, working
from rankplane.solver import tables
from rankplane.solver.blas import one_thread
from rankplane.solver.column_weights import scale_columns, telling_weights
from rankplane.solver.folds import FoldLanes, Folds, make_folds, walk_folds
from rankplane.solver.kernels import GAMMA_KERNELS, KERNELS, FixedRows, Gram, Kernel, gamma_of, kernel_scores
from rankplane.solver.lanes import OnReport, Options, solve_planes
from rankplane.solver.planes import Planes, scores
from rankplane.solver.tables import Table
from rankplane.validation import OnlyIf, only_if

LOSSES = ("hinge", "squared_hinge")
BLOCK = 32  # lanes that the core sweeps in one pass


@dataclass(frozen=True)
class Problem:
    """What ``fit`` was given, as the solver takes it."""

    X: Any
    order: NDArray[Any]
    rank_numbers: NDArray[np.int32]
    table_rows: NDArray[np.int32]
    row_weights: NDArray[np.float64] | None
    options: Options
    column_weight: NDArray[Any] | Literal["ranks"] | None = None
    sample_weights: NDArray[np.float64] | None = None  # of the user; row_weights has those of the ranks in it too

    def held_out_weights(self, folds: Folds) -> list[NDArray[np.float64]] | None:
        """How much held-out rows count where probabilities and scores are learnt from them, fold by fold."""
        return None if self.sample_weights is None else [self.sample_weights[test] for test in folds.test]

    @property
    def n_ranks(self) -> int:
        return len(self.order)

    def with_gamma(self, gamma: float | None) -> "Problem":
        """The same under another gamma of the kernel; None leaves everything as it is."""
        return self if gamma is None else replace(self, X=self.X.with_gamma(gamma))

    @property
    def learns_column_weights(self) -> bool:
        return isinstance(self.column_weight, str)

    def weights_of_columns(self, is_used: NDArray[np.bool_]) -> NDArray[Any] | None:
        """Factors on the columns for a solve of the used rows. Others have no say in them, so that they stay unseen."""
        if not isinstance(self.column_weight, str):
            return self.column_weight
        if self.row_weights is not None:
            is_used = is_used & (self.row_weights > 0)
        return telling_weights(self.X, self.rank_numbers, self.n_ranks, is_used)

    def solve(self, table: Table, options: Options, on_report: OnReport | None = None) -> Planes:
        """The planes of all rows."""
        weights = self.weights_of_columns(np.ones(len(self.rank_numbers), dtype=bool))
        X = scale_columns(self.X, weights)
        planes = solve_planes(X, table, self.table_rows, options, row_weights=self.row_weights, on_report=on_report)
        return planes.for_columns(weights)

    def folds(self, table: Table, folds: Folds, options: Options, *, keeps_all: bool = False, evens_out: bool) -> FoldLanes:
        """Cross-validation as one solve: of any folds, or where column weights are learnt, of a single one."""
        X = scale_columns(self.X, self.weights_of_columns(folds.is_train[0]))
        return FoldLanes(X, table, self.table_rows, self.row_weights, folds, options, keeps_all=keeps_all, evens_out=evens_out)


def has_probability(estimator: Any) -> None:
    if not estimator.probability:
        name = type(estimator).__name__
        raise AttributeError(f"{name} has no probabilities: make it with {name}(probability=True) and fit it again.")


@dataclass(eq=False, repr=False, kw_only=True)
class LinearOrdinal(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What the models share: parameters, checks, labels, the solve, scores."""

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

    def _table(self, n_ranks: int) -> Table:
        raise AttributeError("A model is its table.")

    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        raise AttributeError("A model is its ranker.")

    def _boundaries(self, values: Scores, n_ranks: int, *, is_score: bool) -> Scores:
        """From planes to the boundaries between neighbouring ranks, which are positive above: scores, or the weights of a
        column.
        """
        return values

    def _table_rows(self, rank_numbers: NDArray[np.int32], n_ranks: int) -> NDArray[np.int32]:
        return rank_numbers

    def _check_parameters(self) -> None:
        checks: dict[str, Callable[[str, Any], Any]] = {
            "C": validation.check_positive,
            "C1": lambda name, value: value is None or validation.check_positive(name, value),
            "C2": lambda name, value: value is None or validation.check_positive(name, value),
            "epsilon": validation.check_non_negative,
            "loss": lambda name, value: validation.check_choice(name, value, LOSSES),
            "ranker": lambda name, value: validation.check_choice(name, value, ("ordered", "nearest")),
            "solver": lambda name, value: validation.check_choice(name, value, ("dcd2", "dcd1")),
            "fit_intercept": validation.check_bool,
            "tol": validation.check_positive,
            "max_iter": validation.check_count,
            "shrinking": validation.check_bool,
            "probability": validation.check_bool,
            "verbose": validation.check_non_negative,
            "kernel": lambda name, value: callable(value) or validation.check_choice(name, value, KERNELS),
            "gamma": validation.check_gamma,
            "degree": validation.check_non_negative,
            "coef0": validation.check_number,
            "cache_size": validation.check_positive,
        }
        for name, value in self.get_params(deep=False).items():
            if name in checks:
                checks[name](name, value)
        self._check_applicable()

    def _check_applicable(self) -> None:
        """A parameter that the kernel does not have must be left at its default."""
        kernels_with = {"gamma": GAMMA_KERNELS, "degree": ("poly",), "coef0": ("poly", "sigmoid")}
        for name, kernels in kernels_with.items():
            default = inspect.signature(type(self)).parameters[name].default
            if self.kernel not in kernels and getattr(self, name) != default:
                raise ValueError(
                    f"{name} must be left at {default!r} unless kernel is {' or '.join(map(repr, kernels))}. "
                    f"Got {getattr(self, name)!r} with kernel={self.kernel!r}."
                )
        if self._has_kernel and getattr(self, "solver", "dcd2") != "dcd2":
            raise ValueError(f"solver must be 'dcd2' with a kernel. Got {self.solver!r} with kernel={self.kernel!r}.")
        if self._has_kernel and self.column_weight is not None:
            raise ValueError(f"column_weight must be None with a kernel. Got {self.column_weight!r} with kernel={self.kernel!r}.")

    @property
    def _has_kernel(self) -> bool:
        return not (isinstance(self.kernel, str) and self.kernel == "linear")

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Find the planes.

        Parameters
        ----------
        X : csr, csc or coo matrix, array or data frame of shape (n_rows, n_columns)
            float32 is solved in float32, all else in float64.
        y : array of shape (n_rows,)
            Labels; see ``ranks``.
        sample_weight : array of shape (n_rows,), optional
            Factors on ``C``, and how much a row counts where probabilities are calibrated. A row of weight 0 is as good as absent.
        """
        self._forget()
        problem = self._prepare(X, y, sample_weight)
        table, options = self._table(problem.n_ranks), problem.options
        with solve_progress(bool(self.verbose), type(self).__name__, self.tol) as on_report:
            if not self.probability:
                self._adopt(problem, problem.solve(table, options, on_report))
                return self
            # As many folds as the planes leave room for in one pass.
            n_folds = min(5, max(3, BLOCK // table.shape[2] - 1), len(problem.rank_numbers))
            folds = make_folds(n_folds, problem.X, problem.rank_numbers, None, options.seed).counting(problem.sample_weights)
            if isinstance(problem.column_weight, str):
                planes = problem.solve(table, options, on_report)
                make = partial(problem.folds, table, evens_out=True)
                held_out = walk_folds(make, folds, options, [table], [1.0], is_shared=False)[0].held_out
            else:
                lanes = problem.folds(table, folds, options, keeps_all=True, evens_out=True)
                lanes.run(table, on_report=on_report)
                held_out = lanes.held_out()
                planes = lanes.lanes.take_planes(table.shape[2]).for_columns(problem.column_weight)
        self._adopt(problem, planes)
        with working(bool(self.verbose), "Calibrating"):
            self._calibrate(problem, folds, held_out)
        return self

    def _forget(self) -> None:
        for name in self.fitted:
            if hasattr(self, name):
                delattr(self, name)

    def _prepare(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> "Problem":
        """Everything that a solve needs, checked."""
        self._check_parameters()
        options = Options(
            tol=self.tol,
            max_iter=self.max_iter,
            shrinking=self.shrinking,
            seed=validation.seed_of(self.random_state),
            n_threads=validation.check_n_jobs(self.n_jobs),
            has_offsets=getattr(self, "fit_intercept", True),
            free_offsets=self.free_offsets,
        )
        X = self._check_rows(X, is_fit=True)
        if self._has_kernel:
            X = self._gram(X, options.n_threads)
        labels = validation.as_labels(y, X.shape[0])
        order = validation.rank_order(labels, self.ranks)
        numbers = validation.rank_numbers(labels, order)
        if len(np.unique(numbers)) < 2:
            raise ValueError(
                f"y must hold at least two different ranks; a model can't be trained on one class. Got only {order[numbers[0]]!r}."
            )
        if self._decides_by_cost:
            decisions.cost_matrix(self.decision, len(order))
            if not self.probability:
                raise ValueError(f"decision must be 'ranker' unless probability=True. Got {self.decision!r}.")
        given = weights = None if sample_weight is None else validation.check_sample_weight(sample_weight, X.shape[0])
        by_rank = validation.rank_weights(self.class_weight, order, numbers)
        if by_rank is not None:
            weights = by_rank[numbers] * (1.0 if weights is None else weights)
        by_column = validation.check_column_weight(self.column_weight, X.shape[1], X.dtype)
        return Problem(X, order, numbers, self._table_rows(numbers, len(order)), weights, options, by_column, given)

    def _adopt(self, problem: "Problem", planes: Planes) -> None:
        self.classes_ = problem.order
        if isinstance(problem.X, Gram):
            self._adopt_support(problem.X, planes.weights)
        else:
            # A view: the weights stay column by column, as prediction reads them.
            self.coef_ = planes.weights.T
        self.intercept_ = planes.offsets.ravel()
        self.n_iter_ = planes.n_sweeps
        self.dual_objective_ = planes.dual_objective
        self.duality_gap_ = planes.gap
        self.n_support_ = planes.n_support

    def _gram(self, X: Any, n_threads: int) -> Gram:
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X must be a square matrix with kernel='precomputed', the kernel of every row with every row. Got {X.shape}."
            )
        gamma = gamma_of(self.gamma, X) if self.kernel in GAMMA_KERNELS else 1.0
        return Gram(Kernel(self.kernel, gamma, self.degree, self.coef0), X, self.cache_size * 2**20, n_threads)

    def _adopt_support(self, gram: Gram, duals: NDArray[np.float64]) -> None:
        """Of all rows only those that any plane rests on matter."""
        self.support_ = np.flatnonzero(np.any(duals != 0, axis=1)).astype(np.int32)
        self.dual_coef_ = np.ascontiguousarray(duals[self.support_].T)
        self.support_vectors_ = gram.X[:0] if gram.fixed is None else gram.X[self.support_]
        if gram.fixed is not None and self.kernel in GAMMA_KERNELS:
            self.gamma_ = gram.fixed.kernel.gamma

    def _calibrate(self, problem: "Problem", folds: Folds, held_out: list[NDArray[Any]]) -> None:
        """Train the calibrator on held-out scores, and keep what rank sets need: how well held-out rows conform.

        A row's conformity comes from a calibrator of the other folds, so that no row judges itself.
        """
        ranks = [problem.rank_numbers[test] for test in folds.test]
        weights = problem.held_out_weights(folds)
        self.calibrator_, of_others = Curved.fit_leaving_out(held_out, ranks, problem.n_ranks, weights)
        conformity = []
        for calibrator, scores_there, ranks_there in zip(of_others, held_out, ranks, strict=True):
            entered = decisions.entry_mass(calibrator.probabilities(scores_there))
            conformity.append(entered[np.arange(len(ranks_there)), ranks_there])
        self.conformity_ = np.concatenate(conformity)

    def plane_scores(self, X: Any) -> NDArray[Any]:
        """Signed scores, shape (n_rows, n_planes): zero on a plane, positive above it."""
        check_is_fitted(self)
        X = self._check_rows(X, is_fit=False)
        n_threads = validation.check_n_jobs(self.n_jobs)
        if self._has_kernel:
            return np.asarray(self._kernel_scores(X, n_threads) + self.intercept_)
        weights = np.ascontiguousarray(self.coef_.T)
        X = X.astype(weights.dtype, copy=False)
        return np.asarray(scores(X, weights, n_threads) + self.intercept_)

    def _kernel_scores(self, X: Any, n_threads: int) -> NDArray[np.float64]:
        if self.kernel == "precomputed":
            with one_thread():
                return np.asarray(X[:, self.support_] @ self.dual_coef_.T, dtype=np.float64)
        kernel = Kernel(self.kernel, getattr(self, "gamma_", 1.0), self.degree, self.coef0)
        support = FixedRows(kernel, self.support_vectors_)
        return kernel_scores(support, X.astype(support.rows.dtype, copy=False), self.dual_coef_.T, n_threads)

    def predict(self, X: Any) -> NDArray[Any]:
        """The rank of each row, by ``decision``."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self._answers(self.plane_scores(X))])

    def _answers(self, plane_scores: Scores) -> Ranks:
        if not self._decides_by_cost:
            return self._rank(plane_scores, len(self.classes_))
        return np.asarray(np.argmin(self._expected_cost(plane_scores), axis=1))

    @property
    def _decides_by_cost(self) -> bool:
        return not (isinstance(self.decision, str) and self.decision == "ranker")

    def _expected_cost(self, plane_scores: Scores) -> NDArray[np.float64]:
        """Of answering with each rank, by the calibrated probabilities."""
        return self.calibrator_.probabilities(plane_scores) @ decisions.cost_matrix(self.decision, len(self.classes_))

    def decision_function(self, X: Any) -> NDArray[Any]:
        """How each row leans to every rank, shape (n_rows, n_ranks), largest for the predicted one: minus the expected cost of an
        answer, or with ``decision="ranker"`` minus the scores of the boundaries between it and the predicted one.

        With two ranks a single column that is positive for the higher one, as scikit-learn has it.
        """
        check_is_fitted(self)
        found = self.plane_scores(X)
        boundaries = self._boundaries(found, len(self.classes_), is_score=True)
        by_cost = self._decides_by_cost
        leanings: Scores = -self._expected_cost(found) if by_cost else rankers.leanings(boundaries, self._answers(found))
        return leanings[:, 1] - leanings[:, 0] if len(self.classes_) == 2 else leanings

    @only_if(has_probability)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the ranks, shape (n_rows, n_ranks), columns in rank order. Needs ``probability=True``."""
        check_is_fitted(self)
        return self.calibrator_.probabilities(self.plane_scores(X))

    @only_if(has_probability)
    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Sets of neighbouring ranks that hold the true one with the asked probability. Needs ``probability=True``.

        Conformal prediction: ranks enter a row's set from the most likely outwards, up to the mass of probability at which the
        asked share of held-out training rows had their true rank in. The promise holds for rows like the training rows, to the
        extent that planes of all rows score new rows as planes of the folds scored held-out ones.

        Returns
        -------
        ndarray of bool, shape (n_rows, n_ranks)
            ``rankplane.prediction.decisions.set_in_words`` turns it into intervals such as "3-4".
        """
        if isinstance(coverage, bool) or not isinstance(coverage, float) or not 0 < coverage < 1:
            raise ValueError(f"coverage must be a number between 0 and 1. Got {coverage!r}.")
        return decisions.rank_sets(self.predict_proba(X), decisions.conformal_threshold(self.conformity_, coverage))

    def boundary_planes(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Weights ``(n_columns, n_ranks - 1)`` and offsets of the boundaries between neighbouring ranks, positive above."""
        check_is_fitted(self)
        if self._has_kernel:
            raise ValueError(f"Explanations need weights of columns, so a linear model. This one has kernel={self.kernel!r}.")
        n_ranks = len(self.classes_)
        weights = self._boundaries(self.coef_.T, n_ranks, is_score=False)
        offsets = self._boundaries(self.intercept_[None], n_ranks, is_score=True)[0]
        return np.broadcast_to(weights, (len(weights), n_ranks - 1)), offsets

    def explain(self, X: Any, feature_names: Any = None, top: int = 10) -> list[Explanation]:
        """Why each row lies above or below each boundary between neighbouring ranks: which columns push it up and down, by how
        much.
        """
        check_is_fitted(self)
        rows = self._check_rows(np.atleast_2d(X) if isinstance(X, np.ndarray) else X, is_fit=False)
        weights, offsets = self.boundary_planes()
        return explain_rows(rows, weights, offsets, self.classes_, self._names(feature_names), validation.check_count("top", top))

    def top_features(self, feature_names: Any = None, n: int = 10) -> list[TopFeatures]:
        """For each boundary between neighbouring ranks, the columns of largest weight on either side."""
        names, n = self._names(feature_names), validation.check_count("n", n)
        return top_columns(self.boundary_planes()[0], self.classes_, names, n)

    def _names(self, feature_names: Any) -> Any:
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        if names is not None and len(names) != self.coef_.shape[1]:
            raise ValueError(f"feature_names must have one name per column, {self.coef_.shape[1]}. Got {len(names)}.")
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
            raise AttributeError(f"coef_ needs a linear model: there are no weights of columns with kernel={self.kernel!r}.")
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
