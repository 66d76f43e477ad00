"""Choosing C by cross-validation, nearly for free.

All folds are lanes of one solve, and C is walked upwards with the last solution as the first guess for the next, so the search
of the paper, eleven values of C on five folds, costs a few fits instead of fifty-five.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import GroupKFold
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from rankplane import validation
from rankplane.base import OrdinalModel, Trainer
from rankplane.docstrings import METHOD_PARAMETERS, documented
from rankplane.estimators import NPSVOR
from rankplane.progress import ProgressBar, search_progress, solve_progress, working
from rankplane.scoring import Scorer, routes_metadata, scoring_of
from rankplane.solver.folds import Folds, FoldScores, make_folds, walk_folds
from rankplane.solver.kernels import GAMMA_KERNELS
from rankplane.solver.training_set import HeldOut
from rankplane.validation import only_if

# A tuple: scikit-learn compares defaults with ==, which an array does not answer with one word.
DEFAULT_CS = tuple(float(2.0**k) for k in range(-5, 6))
Setting = dict[str, float]


def delegated(name: str) -> Callable[[Any], None]:
    """The search has a method if its estimator has."""

    def check(search: Any) -> None:
        getattr(search.best_estimator_ if hasattr(search, "best_estimator_") else search.estimator, name)

    return check


def positive_numbers(name: str, values: ArrayLike) -> list[float]:
    given = np.atleast_1d(np.asarray(values, dtype=object)).tolist()
    found = sorted({validation.check_positive(name, value) for value in given})
    if not found:
        raise ValueError(f"{name} must name at least one positive number. Got none.")
    return found


def settings_of(Cs: ArrayLike, C1s: ArrayLike | None) -> list[list[Setting]]:
    """Paths of parameters: within a path, every bound grows by the same factor from one setting to the next.

    A grid of C1 and C2 falls into paths of constant C1 / C2.
    """

    prices = positive_numbers("Cs", Cs)
    if C1s is None:
        return [[{"C": C} for C in prices]]
    paths: dict[float, list[Setting]] = {}
    for C1 in positive_numbers("C1s", C1s):
        for C2 in prices:
            paths.setdefault(round(float(np.log2(C1 / C2)), 9), []).append({"C1": C1, "C2": C2})
    return [sorted(path, key=lambda setting: setting["C2"]) for _, path in sorted(paths.items())]


def gammas_of(estimator: OrdinalModel, gammas: ArrayLike | None) -> list[float | None]:
    """Values of gamma to search; None alone leaves the estimator's own."""
    if gammas is None:
        return [None]
    if estimator.kernel not in GAMMA_KERNELS:
        raise ValueError(f"gammas must be None with kernel={estimator.kernel!r}, which has no gamma. Got {gammas!r}.")
    return [*positive_numbers("gammas", gammas)]


@documented(METHOD_PARAMETERS, methods_like=NPSVOR)
class CSearchCV(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Choose C by cross-validation, and fit a model with the best value.

    All folds are trained in one solve, and each value of C starts from the solution of the one before [1]_, so that a search
    costs a few fits instead of one per value and fold. Methods such as ``predict`` are those of ``best_estimator_``.

    Parameters
    ----------
    estimator : object
        A model of this package, such as ``NPSVOR()``. Its own ``C`` is ignored. With ``probability=True``, probabilities are
        calibrated on the held-out scores of the search.
    Cs : array-like of float
        Values of C to try; with ``C1s``, values of C2.
    C1s : array-like of float
        Values of C1 to try, for :class:`NPSVOR`: all pairs with ``Cs`` are tried.
    cv : int, splitter or iterable
        Number of stratified folds, a scikit-learn splitter, or an iterable of pairs of training and test indices. Folds keep groups
        together if ``fit`` is given any.
    scoring : {'mae', 'mse', 'accuracy', 'macro_mae', 'qwk', 'rps'}, scorer, str or callable
        Measure to choose by, computed on what the estimator would predict with its ``decision``. ``'rps'`` is the ranked
        probability score of its probabilities. Errors are minimised and reported as they are, without a sign. Scorers, such as
        those of ``make_scorer`` and ``rankplane.metrics.scorers``, names of scikit-learn's scorers, and callables
        ``scoring(y_true, y_pred)`` are maximised.
    n_jobs : int
        Number of threads, also of the final fit. None leaves the estimator's own ``n_jobs``.
    refit : bool
        Whether to fit ``best_estimator_`` with the best values on all samples.
    verbose : int
        Set to 1 to show a progress bar.
    gammas : array-like of float
        Values of gamma to try, for a kernel that has one: each is combined with all values of C. All folds and values of C
        share the kernel matrix, as far as the estimator's ``cache_size`` allows.

    Attributes
    ----------
    best_C_ : float
        The best value of C; with ``C1s``, of C2. Of equally good values, the smallest.
    best_params_ : dict
        The best parameters, by name.
    best_score_ : float
        Mean score of ``best_params_`` over the folds.
    best_index_ : int
        Index of ``best_params_`` in ``cv_results_``.
    best_estimator_ : object
        The estimator, fitted with ``best_params_`` on all samples. Only with ``refit=True``.
    cv_results_ : dict of ndarray
        One entry per combination of parameters, as in :class:`sklearn.model_selection.GridSearchCV`. In addition, ``n_iter`` is
        the largest number of sweeps of any plane, and ``is_settled`` is True where the solution is the same as for a smaller C,
        since no dual variable is at its bound.
    n_splits_ : int
        Number of folds.
    classes_ : ndarray of shape (n_ranks,)
        The labels, in rank order.
    n_features_in_ : int
        Number of features seen during ``fit``.

    See Also
    --------
    NPSVOR : The model of one plane per rank.
    sklearn.model_selection.GridSearchCV : Search over any parameters, one fit per combination and fold.

    References
    ----------
    .. [1] Chu, Ho, Tsai, Lin and Lin, "Warm Start for Parameter Selection of Linear Classifiers", KDD 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import CSearchCV, NPSVOR
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> search = CSearchCV(NPSVOR(), Cs=[0.1, 10.0]).fit(X, np.repeat([1, 2, 3, 4], 10))
    >>> search.best_C_
    10.0
    """

    # They are requested by those that take them; see get_metadata_routing.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": UNUSED, "groups": UNUSED}

    def __init__(
        self,
        estimator: Any,
        *,
        Cs: ArrayLike = DEFAULT_CS,
        C1s: ArrayLike | None = None,
        cv: Any = 5,
        scoring: Any = "mae",
        n_jobs: int | None = None,
        refit: bool = True,
        verbose: int = 0,
        gammas: ArrayLike | None = None,
    ) -> None:
        self.estimator = estimator
        self.Cs = Cs
        self.C1s = C1s
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.verbose = verbose
        self.gammas = gammas

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None) -> Self:
        """Search for the best parameters, and fit the estimator with them.

        Sample weights also count in the score, unless ``scoring`` is a callable or a scorer. With scikit-learn's metadata
        routing enabled, they go to the estimator, and to a scorer, if these request them.

        Returns
        -------
        object
            The fitted search.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        paths, gammas = self._check_parameters()
        scoring = scoring_of(self.scoring, self.estimator)
        sample_weight, groups = self._route(sample_weight, groups)
        model = clone(self.estimator).set_params(verbose=0)
        if self.n_jobs is not None:
            model.set_params(n_jobs=self.n_jobs)
        trainer = Trainer(model, X, y, sample_weight)
        rows = trainer.rows
        folds = make_folds(self.cv, rows.X, rows.labels.numbers, groups, rows.options.seed).counting(rows.sample_weights)
        settings, points = self._walk(trainer, folds, paths, gammas)
        held_out = [rows.held_out(folds, point.held_out) for point in points]
        seen = [rows.X[test] for test in folds.test] if scoring.looks_at_rows else []
        with ProgressBar(self.verbose) as bar:
            scores = np.array([scoring.of_folds(trainer.answers(found), seen) for found in bar.each("Measuring folds", held_out)])
        means = scores.mean(axis=1)
        signed = means if scoring.is_greater_better else -means
        # Of equally good ones the smallest: ascending settings and the first maximum.
        by_price = sorted(range(len(settings)), key=lambda i: tuple(settings[i].values()))
        best = by_price[int(np.argmax(signed[by_price]))]
        self.cv_results_ = self._results(settings, points, scores, signed)
        self.n_splits_ = len(folds)
        self.best_index_ = best
        self.best_params_ = settings[best]
        self.best_C_ = settings[best].get("C", settings[best].get("C2"))
        self.best_score_ = float(means[best])
        self.classes_ = rows.labels.order
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        if self.refit:
            self.best_estimator_ = self._refit(trainer, held_out[best])
        return self

    def _check_parameters(self) -> tuple[list[list[Setting]], list[float | None]]:
        """Paths of C and values of gamma."""
        if not isinstance(self.estimator, OrdinalModel):
            raise ValueError(f"estimator must be a model of this package, such as NPSVOR(). Got {self.estimator!r}.")
        if self.C1s is not None and not isinstance(self.estimator, NPSVOR):
            raise ValueError(f"C1s must be None for {type(self.estimator).__name__}, which has no C1. Got {self.C1s!r}.")
        validation.check_bool("refit", self.refit)
        return settings_of(self.Cs, self.C1s), gammas_of(self.estimator, self.gammas)

    def _walk(
        self, trainer: Trainer, folds: Folds, paths: list[list[Setting]], gammas: list[float | None]
    ) -> tuple[list[Setting], list[FoldScores]]:
        """All settings, and what was found at each."""
        rows, model = trainer.rows, trainer.model
        # A walk measures violations against its first sweep, at the smallest C, where they are largest. Half the tolerance makes
        # its planes as good as those of single fits.
        options = replace(rows.options, tol=0.5 * rows.options.tol)
        settings: list[Setting] = []
        points: list[FoldScores] = []
        n_settings = len(gammas) * sum(len(path) for path in paths)
        name = f"{'Searching' if n_settings > 1 else 'Cross-validating'} {type(model).__name__}"
        with search_progress(bool(self.verbose), name, n_settings) as on_setting:
            for gamma in gammas:
                at_gamma = rows.with_gamma(gamma)
                for path_of_C in paths:
                    path = [setting if gamma is None else setting | {"gamma": gamma} for setting in path_of_C]
                    tables = [trainer.table(**setting) for setting in path]
                    prices = [setting.get("C2", setting.get("C", 1.0)) for setting in path]
                    factors = [1.0] + [after / before for before, after in itertools.pairwise(prices)]
                    make = partial(at_gamma.folds, tables[0], evens_out=model.probability)

                    def on_point(place: int, n_parts: int, path: list[Setting] = path) -> None:
                        on_setting(path[place], n_parts)

                    settings += path
                    points += walk_folds(
                        make, folds, options, tables, factors, is_shared=not rows.learns_column_weights, on_point=on_point
                    )
        return settings, points

    def _refit(self, trainer: Trainer, held_out: HeldOut) -> OrdinalModel:
        options, model = trainer.rows.options, trainer.model
        if model.probability:
            # The calibrator learns from scores that a long walk has settled; planes that stop early score differently.
            options = replace(options, tol=0.1 * options.tol)
        trainer.choose(self.best_params_)
        with solve_progress(bool(self.verbose), "Final fit", options.tol) as on_report:
            trainer.solve(options, on_report)
        if model.probability:
            with working(bool(self.verbose), "Calibrating"):
                trainer.calibrate(held_out)
        return model

    def _route(self, sample_weight: Any, groups: Any) -> tuple[Any, Any]:
        """What of the weights and groups is meant for the estimator and the folds: with metadata routing, what they request."""
        if not routes_metadata():
            return sample_weight, groups
        given = {"sample_weight": sample_weight, "groups": groups}
        routed = process_routing(self, "fit", **{name: value for name, value in given.items() if value is not None})
        return routed.estimator.fit.get("sample_weight"), routed.splitter.split.get("groups")

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing of this object.

        Weights and groups of ``fit`` go to the estimator, the splitter and the scorer, as they request them.

        Returns
        -------
        MetadataRouter
            The routes of the metadata.
        """
        # Folds by a number keep groups together, as GroupKFold does, and request them as it does.
        splitter = self.cv if hasattr(self.cv, "get_metadata_routing") else GroupKFold()
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        router.add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        scoring = scoring_of(self.scoring, self.estimator)
        if isinstance(scoring, Scorer) and hasattr(scoring.scorer, "get_metadata_routing"):
            router.add(scorer=scoring.scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
        return router

    @staticmethod
    def _results(
        settings: Sequence[Setting],
        points: Sequence[FoldScores],
        scores: NDArray[Any],
        signed: NDArray[Any],
    ) -> dict[str, Any]:
        results: dict[str, Any] = {f"param_{name}": np.array([s[name] for s in settings]) for name in settings[0]}
        results["params"] = list(settings)
        for fold in range(scores.shape[1]):
            results[f"split{fold}_test_score"] = scores[:, fold]
        results["mean_test_score"] = scores.mean(axis=1)
        results["std_test_score"] = scores.std(axis=1)
        results["rank_test_score"] = np.array([1 + int(np.sum(signed > value)) for value in signed])
        results["n_iter"] = np.array([int(point.n_sweeps.max()) for point in points])
        results["is_settled"] = np.array([point.is_settled for point in points])
        results["fit_time"] = np.array([point.seconds for point in points])
        return results

    @only_if(delegated("predict"))
    def predict(self, X: Any) -> NDArray[Any]:
        return self._best().predict(X)

    @only_if(delegated("decision_function"))
    def decision_function(self, X: Any) -> NDArray[Any]:
        return self._best().decision_function(X)

    @only_if(delegated("plane_scores"))
    def plane_scores(self, X: Any) -> NDArray[Any]:
        return self._best().plane_scores(X)

    @only_if(delegated("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self._best().predict_proba(X))

    @only_if(delegated("predict_set"))
    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        return np.asarray(self._best().predict_set(X, coverage))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Compute the measure of ``scoring`` for the best estimator, larger being better.

        The measure of ``best_score_``, with the sign that scikit-learn's searches and cross-validation expect: errors are
        negated. For the accuracy whatever ``scoring`` is, use ``accuracy_score(y, search.predict(X))``.

        Returns
        -------
        float
            Value of the measure; minus the error if it is one.
        """
        scoring = scoring_of(self.scoring, self.estimator)
        found = scoring.of_model(self._best(), X, y, sample_weight)
        return found if scoring.is_greater_better else -found

    def explain(self, X: Any, feature_names: Any = None, top: int = 10) -> Any:
        return self._best().explain(X, feature_names, top)

    def top_features(self, feature_names: Any = None, n: int = 10) -> Any:
        return self._best().top_features(feature_names, n)

    def _best(self) -> OrdinalModel:
        check_is_fitted(self)
        if not self.refit:
            raise AttributeError("CSearchCV predicts only with refit=True, which fits best_estimator_.")
        return self.best_estimator_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cv_results_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        of_estimator = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = of_estimator.sparse
        tags.input_tags.pairwise = of_estimator.pairwise
        tags.classifier_tags.poor_score = True
        return tags
