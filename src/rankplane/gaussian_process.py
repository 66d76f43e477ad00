"""Gaussian process ordinal regression as a scikit-learn estimator."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from rankplane import validation
from rankplane.docstrings import METHOD_PARAMETERS, PARAMETERS, Entry, documented
from rankplane.labels import Labels
from rankplane.parameters import check_parameters
from rankplane.prediction import decisions, rankers
from rankplane.prediction.calibration import Probit
from rankplane.prediction.probabilities import Calibrated, check_calibrated
from rankplane.prediction.rankers import Ranks, Scores
from rankplane.progress import working
from rankplane.rank_model import RankModel
from rankplane.solver.gaussian_process import Learnt, Process, Rows, learn
from rankplane.solver.kernels import in_blocks
from rankplane.solver.ordinal_likelihood import Likelihood
from rankplane.solver.planes import check_finite

EXACT_ROWS, N_POINTS, MAX_ITER = 1000, 500, 500  # by default
MOST_VALUES = 20_000_000  # rows times columns, which are dense
OWN = {
    "ard": Entry(
        "bool",
        "Whether each feature has a length scale of its own (automatic relevance determination), so that features that say little "
        "about the rank lose their influence. If False, all have the same, which suits many features of the same kind.",
    ),
    "n_inducing": Entry(
        "int",
        "Number of inducing points, which are training samples. Time grows with the number of samples times its square, memory "
        "with its product with the number of samples. With at least as many points as samples the model is exact. If None, all of "
        f"up to {EXACT_ROWS:,} samples, and {N_POINTS} of more.",
    ),
    "n_restarts": Entry("int", "How many times the search for the parameters starts again, from values by chance."),
    "max_iter": Entry("int", f"Maximum number of steps of the search for the parameters. If None, {MAX_ITER}."),
    "n_jobs": Entry("int", "Number of threads, for restarts and predictions. None means 1, -1 all processors."),
    "random_state": Entry("int, RandomState or Generator", "Seed for restarts and inducing points. None is a fixed seed."),
    "decision": Entry(
        PARAMETERS["decision"].type,
        "How ``predict`` chooses a rank: ``'mae'`` (the median), ``'mse'`` (the rank nearest to the mean), ``'accuracy'`` (the "
        "most likely rank), ``'macro_mae'`` (the absolute error if rare ranks count as much as frequent ones), ``'qwk'`` (the "
        "quadratic weighted kappa), or the lowest expected cost by a matrix ``cost[true, predicted]``. ``'ranker'`` counts the "
        "thresholds below the mean of the latent value. It may be changed after ``fit``, by ``set_params``.",
    ),
    "X": Entry(
        "{array-like, sparse matrix} of shape (n_samples, n_features)",
        "Samples, processed in float64. The kernel needs dense rows, so a sparse matrix is made dense.",
    ),
    "sample_weight": Entry(
        "array-like of shape (n_samples,)",
        "Sample weights: a sample of weight 2 counts as two. Samples with weight 0 are ignored. If None, all have weight one.",
    ),
}


@documented(PARAMETERS | METHOD_PARAMETERS | OWN)
@dataclass(eq=False, repr=False, kw_only=True)
class GPOR(RankModel):
    """Gaussian process ordinal regression.

    A latent value varies smoothly with the features; the rank says between which thresholds it lies, after noise [1]_. Length
    scales, noise and thresholds are those that make the training labels most probable (the evidence, by Laplace's approximation),
    so that there is no ``C`` to choose, and probabilities come from the model itself. For tables with few columns; features should
    have similar scales.

    Attributes
    ----------
    classes_ : ndarray of shape (n_ranks,)
        The labels, in rank order.
    length_scale_ : ndarray of shape (n_features,)
        Over which distance in each feature the latent value changes. Features with large values have little influence.
    noise_ : float
        Standard deviation of the noise, where that of the latent value is one.
    thresholds_ : ndarray of shape (n_ranks - 1,)
        Thresholds between the ranks.
    log_evidence_ : float
        Logarithm of the evidence.
    inducing_points_ : ndarray of shape (n_inducing, n_features)
        The inducing points; all distinct training samples if the model is exact.
    mean_weights_ : ndarray of shape (n_inducing,)
        Weights of the kernel with the inducing points in the mean of the latent value.
    variance_weights_ : ndarray of shape (n_inducing, n_inducing)
        The variance of the latent value is one minus the squared norm of the product of this matrix with the same kernel values.
    n_iter_ : int
        Number of steps of the search for the parameters.
    calibrator_ : object
        Maps scores to probabilities.
    conformity_ : ndarray of shape (n_samples,)
        Conformity scores of the training samples, each predicted without itself, which ``predict_set`` is based on.
    conformity_before_ : ndarray of shape (n_samples,)
        The same without the probability of the true rank itself.
    conformity_ranks_ : ndarray of shape (n_samples,)
        Rank numbers of the training samples, from 0.
    class_prior_ : ndarray of shape (n_ranks,)
        Share of each rank in the training samples.
    expected_qwk_ : float
        Quadratic weighted kappa of ``decision='qwk'`` on the training samples, each predicted without itself.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features seen during ``fit``. Only if X had string column names.

    See Also
    --------
    SVOR : Thresholds on one direction, also with kernels, for any number of samples and features.
    sklearn.gaussian_process.GaussianProcessClassifier : Gaussian processes for classes without an order.

    Notes
    -----
    The kernel is ``exp(-1/2 * sum_j ((x_j - x'_j) / length_scale_[j])**2)``. Beyond some thousand samples, the values at inducing
    points stand for the latent function, as in FITC [2]_.

    References
    ----------
    .. [1] Chu and Ghahramani, "Gaussian Processes for Ordinal Regression", Journal of Machine Learning Research 6, 2005.
    .. [2] Snelson and Ghahramani, "Sparse Gaussian Processes using Pseudo-inputs", NeurIPS 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import GPOR
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> GPOR().fit(X, np.repeat([1, 2, 3, 1], 10)).predict([[0.1], [0.6], [0.9]])
    array([1, 3, 1])
    """

    ard: bool = True
    n_inducing: int | None = None
    n_restarts: int = 2
    max_iter: int | None = None
    ranks: Any = None
    decision: Any = "mae"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    kernel = "rbf"
    without: ClassVar[tuple[str, ...]] = ("C", "class_weight", "probability", "kernel", "column_weight")
    fitted: ClassVar[tuple[str, ...]] = (
        "classes_",
        "length_scale_",
        "noise_",
        "thresholds_",
        "log_evidence_",
        "inducing_points_",
        "mean_weights_",
        "variance_weights_",
        "n_iter_",
        "calibrator_",
        "conformity_",
        "conformity_before_",
        "conformity_ranks_",
        "class_prior_",
        "expected_qwk_",
        "n_features_in_",
        "feature_names_in_",
    )

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Returns
        -------
        object
            The fitted model.
        """
        self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> tuple[NDArray[np.intp], Scores]:
        """Fit the model; returns the rows that count, and their scores, each without itself."""
        for name in self.fitted:
            if hasattr(self, name):
                delattr(self, name)
        check_parameters(self)
        X = dense(self._check_rows(X, is_fit=True))
        labels = Labels.of(y, len(X), self.ranks)
        if decisions.is_by_cost(self.decision):
            decisions.check_decision(self.decision, labels.n_ranks)
        weights = np.ones(len(X)) if sample_weight is None else validation.check_sample_weight(sample_weight, len(X))
        used = np.flatnonzero(weights)
        rows, place = Rows.of(X[used], labels.numbers[used], weights[used], labels.n_ranks)
        max_iter = MAX_ITER if self.max_iter is None else self.max_iter
        with working(bool(self.verbose), type(self).__name__):
            learnt = learn(
                rows,
                (len(rows) if len(rows) <= EXACT_ROWS else N_POINTS) if self.n_inducing is None else self.n_inducing,
                has_own_lengths=self.ard,
                n_restarts=self.n_restarts,
                max_iter=max_iter,
                seed=validation.seed_of(self.random_state),
                n_threads=validation.check_n_jobs(self.n_jobs),
            )
        if not learnt.has_converged:
            warnings.warn(
                f"GPOR stopped after {max_iter} steps, before its parameters had settled. Increase max_iter.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.classes_ = labels.order
        self._adopt(learnt)
        scores = learnt.held_out[place]
        self._adopt_calibration(calibrated(scores, labels.numbers[used], labels.n_ranks, weights[used]))
        return used, scores

    def _adopt(self, learnt: Learnt) -> None:
        process = learnt.process
        self.length_scale_, self.inducing_points_ = process.lengths, process.points
        self.noise_, self.thresholds_ = process.likelihood.noise, process.likelihood.thresholds
        self.mean_weights_, self.variance_weights_ = process.weights, process.spread
        self.log_evidence_, self.n_iter_ = learnt.log_evidence, learnt.n_iter

    def _process(self) -> Process:
        likelihood = Likelihood(self.noise_, self.thresholds_)
        return Process(self.inducing_points_, self.length_scale_, likelihood, self.mean_weights_, self.variance_weights_)

    def _scores(self, X: Any) -> Scores:
        process = self._process()
        found = np.empty((X.shape[0], len(self.thresholds_)))

        def score(block: slice) -> None:
            rows = X[block]
            found[block] = process.scores(np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64))

        in_blocks(score, X.shape[0], validation.check_n_jobs(self.n_jobs))
        return found

    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        return rankers.count(plane_scores)

    def _boundaries(self, values: Scores, n_ranks: int, *, is_score: bool) -> Scores:
        return values

    def _check_rows(self, X: Any, is_fit: bool) -> Any:
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, reset=is_fit)
        X = validation.as_rows(X)
        check_finite(X, validation.check_n_jobs(self.n_jobs))
        return X

    def _to_values(self) -> dict[str, Any]:
        check_parameters(self)  # they may have been set after the fit
        held = {name: getattr(self, name) for name in self.fitted if hasattr(self, name)}
        return {"calibrator" if name == "calibrator_" else name: value for name, value in held.items()}

    def _from_values(self, values: dict[str, Any]) -> None:
        check_parameters(self)
        for name in self.fitted:
            stored = "calibrator" if name == "calibrator_" else name
            if stored in values:
                setattr(self, name, values[stored])
            elif name != "feature_names_in_":
                raise ValueError(f"{name} is missing")
        self._check_fitted()

    def _check_fitted(self) -> None:
        """Raise ``ValueError`` unless all parts have the shapes that follow from the numbers of ranks, columns and points."""
        classes, n_columns, points = self.classes_, self.n_features_in_, self.inducing_points_
        if not (isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) >= 2):
            raise ValueError("the ranks are not a list of two and more")
        n_points, n_ranks = len(points), len(classes)
        shapes = {
            "inducing_points_": (n_points, n_columns),
            "length_scale_": (n_columns,),
            "thresholds_": (n_ranks - 1,),
            "mean_weights_": (n_points,),
            "variance_weights_": (n_points, n_points),
        }
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value.shape != shape or value.dtype.str != "<f8" or not np.all(np.isfinite(value)):
                raise ValueError(f"{name} is not an array of finite numbers of shape {shape}")
        if not (np.all(self.length_scale_ > 0) and np.all(np.diff(self.thresholds_) > 0)):
            raise ValueError("the length scales are not positive, or the thresholds not in order")
        validation.check_positive("noise_", self.noise_)
        names = getattr(self, "feature_names_in_", None)
        if names is not None and names.shape != (n_columns,):
            raise ValueError("the names do not match the number of columns")
        check_calibrated(self.calibrator_, self._conformity(), self._basis(), n_ranks - 1, n_ranks)
        if decisions.is_by_cost(self.decision):
            decisions.check_decision(self.decision, n_ranks)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "mean_weights_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # scikit-learn's checks train on blobs whose labels have no order.
        tags.classifier_tags.poor_score = True
        return tags


def dense(X: Any) -> NDArray[np.float64]:
    """Training rows as the kernel needs them."""
    if X.shape[0] * X.shape[1] > MOST_VALUES:
        raise ValueError(
            f"X must have at most {MOST_VALUES:,} values, samples times features, for GPOR, whose kernel needs dense rows; use "
            f"NPSVOR or Committee for texts. Got {X.shape[0]:,} x {X.shape[1]:,}."
        )
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


def calibrated(scores: Scores, ranks: NDArray[np.int32], n_ranks: int, weights: NDArray[np.float64]) -> Calibrated:
    """What rank sets and decisions need, of rows with these scores, each without itself."""
    probabilities = Probit.probabilities(scores)
    basis = decisions.Basis.of(probabilities, ranks, n_ranks, weights)
    return Calibrated(Probit(), decisions.Conformity.of(probabilities, ranks), basis, [probabilities])
