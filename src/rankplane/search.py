"""Choosing C by cross-validation, at the cost of a few fits.

All folds are lanes of one solve, and C is walked upwards with the last solution as the first guess for the next, so the search
of the paper, eleven values of C on five folds, costs a few fits instead of fifty-five. A walk ends where the held-out error has
risen for good, and of many rows only as many are held out as a choice needs.
"""

import itertools
from collections.abc import Callable
from contextlib import closing
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
from rankplane.progress import search_progress, solve_progress, working
from rankplane.rank_model import RankModel
from rankplane.scoring import Scorer, Scoring, routes_metadata, scoring_of
from rankplane.solver.folds import Folds, enough_folds, make_folds, walk_folds
from rankplane.solver.kernels import GAMMA_KERNELS, is_linear
from rankplane.solver.training_set import HeldOut
from rankplane.trials import Setting, Trials, in_words
from rankplane.validation import only_if
from rankplane.versions import Versioned

# A tuple, since scikit-learn compares defaults with ==.
DEFAULT_CS = tuple(float(2.0**k) for k in range(-5, 6))
N_FOLDS = 5
ROWS_TO_CHOOSE_BY = 30_000  # see docs/benchmarks.md, "Fewer held-out rows"
ROWS_OF_A_PART = 200  # at least, since measures of smaller parts say too little


def delegated(name: str) -> Callable[[Any], None]:
    """A check that the estimator has the method, so that the search has it too."""

    def check(search: Any) -> None:
        getattr(search.best_estimator_ if hasattr(search, "best_estimator_") else search.estimator, name)

    return check


def numbers(name: str, values: ArrayLike, check: Callable[[str, Any], float]) -> list[float]:
    given = np.atleast_1d(np.asarray(values, dtype=object)).tolist()
    found = sorted({check(name, value) for value in given})
    if not found:
        raise ValueError(f"{name} must name at least one positive number. Got none.")
    return found


def settings_of(Cs: ArrayLike, C1s: ArrayLike | None) -> list[list[Setting]]:
    """Paths of settings: from one setting of a path to the next, all bounds grow by the same factor.

    A grid of C1 and C2 is split into paths of constant C1 / C2.
    """

    values_of_C = numbers("Cs", Cs, validation.check_positive)
    if C1s is None:
        return [[{"C": C} for C in values_of_C]]
    paths: dict[float, list[Setting]] = {}
    for C1 in numbers("C1s", C1s, validation.check_positive):
        for C2 in values_of_C:
            paths.setdefault(round(float(np.log2(C1 / C2)), 9), []).append({"C1": C1, "C2": C2})
    return [sorted(path, key=lambda setting: setting["C2"]) for _, path in sorted(paths.items())]


def bound_of(setting: Setting) -> float:
    """What grows along a path."""
    return setting.get("C2", setting.get("C", 1.0))


def factors_of(path: list[Setting]) -> list[float]:
    """How much wider bounds are at each setting than at the one before."""
    return [1.0] + [bound_of(after) / bound_of(before) for before, after in itertools.pairwise(path)]


def costs_of(path: list[Setting]) -> list[float]:
    """Rough relative times of the settings: twice as long for four times the C; the first starts from scratch."""
    grown = [(bound_of(setting) / bound_of(path[0])) ** 0.5 for setting in path]
    return [2.0, *grown[1:]]


def gammas_of(estimator: OrdinalModel, gammas: ArrayLike | None) -> list[Setting]:
    """Values of gamma to try; an empty setting stands for the estimator's own."""
    if gammas is None:
        return [{}]
    if estimator.kernel not in GAMMA_KERNELS:
        raise ValueError(f"gammas must be None with kernel={estimator.kernel!r}, which has no gamma. Got {gammas!r}.")
    return [{"gamma": gamma} for gamma in numbers("gammas", gammas, validation.check_positive)]


def couplings_of(estimator: OrdinalModel, couplings: ArrayLike | None) -> list[Setting]:
    """Values of coupling to try; an empty setting stands for the estimator's own."""
    if couplings is None:
        return [{}]
    if not hasattr(estimator, "coupling"):
        raise ValueError(f"couplings must be None for {type(estimator).__name__}, which has no coupling. Got {couplings!r}.")
    if not is_linear(estimator.kernel):
        raise ValueError(f"couplings must be None with kernel={estimator.kernel!r}. Got {couplings!r}.")
    return [{"coupling": coupling} for coupling in numbers("couplings", couplings, validation.check_strength)]


@documented(METHOD_PARAMETERS, methods_like=NPSVOR)
class CSearchCV(Versioned, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Choose C by cross-validation, and fit a model with the best value.

    All folds are trained in one solve, and each value of C starts from the solution of the one before [1]_, so that a search
    costs a few fits instead of one per value and fold. Methods such as ``predict`` are those of ``best_estimator_``.

    Parameters
    ----------
    estimator : object
        A model of this package, such as ``NPSVOR()``. Its own ``C`` is ignored. With ``probability=True``, probabilities are
        calibrated on the held-out scores of the search.
    Cs : array-like of float
        Values of C to try, from small to large; with ``C1s``, values of C2.
    C1s : array-like of float
        Values of C1 to try, for :class:`NPSVOR`: all pairs with ``Cs`` are tried.
    cv : 'auto', int, splitter or iterable
        Number of stratified folds, a scikit-learn splitter, or an iterable of pairs of training and test indices. Folds keep groups
        together if ``fit`` is given any. ``'auto'`` is five folds, of which only the first few are evaluated where these hold
        out enough samples to choose C and to calibrate probabilities: at least 30,000. With more than five times as many
        samples, a single split holds out just these.
    scoring : {'mae', 'mse', 'accuracy', 'macro_mae', 'qwk', 'rps'}, scorer, str or callable
        Measure to choose by, computed on what the estimator would predict with its ``decision``. ``'rps'`` is the ranked
        probability score of its probabilities. Errors are minimised and reported as they are, without a sign. Scorers, such as
        those of ``make_scorer`` and ``rankplane.metrics.scorers``, names of scikit-learn's scorers, and callables
        ``scoring(y_true, y_pred)`` are maximised. The functions of ``rankplane.metrics`` stand for the names.
    n_jobs : int
        Number of threads, also of the final fit. None leaves the estimator's own ``n_jobs``.
    refit : bool
        Whether to fit ``best_estimator_`` with the best values on all samples.
    verbose : int
        Set to 1 to show a progress bar.
    gammas : array-like of float
        Values of gamma to try, for a kernel that has one: each is combined with all values of C. All folds and values of C
        share the kernel matrix, as far as the estimator's ``cache_size`` allows.
    couplings : array-like of float
        Values of coupling to try, for a model that has one: each is combined with all values of C.
    patience : int
        Stop trying larger values of C once this many in a row were worse than the best by more than the noise: by more than
        one standard error of their mean difference over the folds. With fewer than five folds, that over parts of the held-out
        samples, ten in all, if these have 200 samples each. None tries all values.

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
        One entry per combination of parameters, as in :class:`sklearn.model_selection.GridSearchCV`. In addition,
        ``se_test_score`` is the standard error of the mean score, ``n_iter`` is the largest number of sweeps of any plane, and
        ``is_settled`` is True where the solution is the same as for a smaller C, since no dual variable is at its bound. Of
        combinations that were not tried, ``why_not_tried`` gives the reason, and scores are NaN; it is empty for the others.
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

    Notes
    -----
    The planes of a fold, and with ``column_weight='ranks'`` the weights of its features, are learnt from its training samples
    alone. Two things are learnt from the held-out samples: the values of the parameters and, with ``probability=True``, the
    calibrator and the rank sets of ``best_estimator_``. While the search compares, the probabilities of a fold come from a
    calibrator of the other folds. ``best_score_`` is that of the best of several values on the samples that chose it, and thus a
    little optimistic; an outer cross-validation of the search is not.

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

    # The estimator, the splitter and the scorer request them; see get_metadata_routing.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": UNUSED, "groups": UNUSED}

    def __init__(
        self,
        estimator: Any,
        *,
        Cs: ArrayLike = DEFAULT_CS,
        C1s: ArrayLike | None = None,
        cv: Any = "auto",
        scoring: Any = "mae",
        n_jobs: int | None = None,
        refit: bool = True,
        verbose: int = 0,
        gammas: ArrayLike | None = None,
        couplings: ArrayLike | None = None,
        patience: int | None = 2,
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
        self.couplings = couplings
        self.patience = patience

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
        paths, variants = self._check_parameters()
        scoring = scoring_of(self.scoring, self.estimator)
        sample_weight, groups = self._route(sample_weight, groups)
        model = clone(self.estimator).set_params(verbose=0)
        if self.n_jobs is not None:
            model.set_params(n_jobs=self.n_jobs)
        trainer = Trainer(model, X, y, sample_weight)
        rows = trainer.rows
        folds = self._folds(trainer, groups).without_zero_weights(rows.sample_weights)
        trials = Trials(scoring.is_greater_better, self.patience)
        held_out = self._walk(trainer, folds, paths, variants, scoring, trials)
        self._take_results(trials, len(folds), model, rows.labels.order)
        if self.refit:
            self.best_estimator_ = self._refit(trainer, held_out)
        return self

    def _take_results(self, trials: Trials, n_splits: int, model: OrdinalModel, order: NDArray[Any]) -> None:
        self.cv_results_ = trials.results()
        self.n_splits_ = n_splits
        self.best_index_ = trials.best_index
        self.best_params_ = trials.best.setting
        self.best_C_ = self.best_params_.get("C", self.best_params_.get("C2"))
        self.best_score_ = trials.best.mean
        self.classes_ = order
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_

    def _check_parameters(self) -> tuple[list[list[Setting]], list[Setting]]:
        """Paths of C, and the other parameters to combine them with."""
        if isinstance(self.estimator, RankModel) and "C" in self.estimator.without:
            name = type(self.estimator).__name__
            raise ValueError(f"estimator must be a model with C. Got {name}, which chooses its parameters itself: fit it as it is.")
        if not isinstance(self.estimator, OrdinalModel):
            raise ValueError(f"estimator must be a model of this package, such as NPSVOR(). Got {self.estimator!r}.")
        if self.C1s is not None and not isinstance(self.estimator, NPSVOR):
            raise ValueError(f"C1s must be None for {type(self.estimator).__name__}, which has no C1. Got {self.C1s!r}.")
        validation.check_bool("refit", self.refit)
        if self.patience is not None:
            validation.check_count("patience", self.patience)
        gammas, couplings = gammas_of(self.estimator, self.gammas), couplings_of(self.estimator, self.couplings)
        return settings_of(self.Cs, self.C1s), [gamma | coupling for gamma in gammas for coupling in couplings]

    def _folds(self, trainer: Trainer, groups: Any) -> Folds:
        rows = trainer.rows
        X, ranks, seed = rows.X, rows.labels.numbers, rows.options.seed
        if not isinstance(self.cv, str):
            return make_folds(self.cv, X, ranks, groups, seed)
        if self.cv != "auto":
            raise ValueError(f"cv must be 'auto', a number of folds, a splitter or pairs of indices. Got {self.cv!r}.")
        n_enough = max(ROWS_TO_CHOOSE_BY, trainer.rows_to_calibrate() if trainer.model.probability else 0)
        return enough_folds(min(N_FOLDS, len(ranks)), n_enough, X, ranks, groups, seed)

    def _walk(
        self,
        trainer: Trainer,
        folds: Folds,
        paths: list[list[Setting]],
        variants: list[Setting],
        scoring: Scoring,
        trials: Trials,
    ) -> HeldOut:
        """Try the settings, path by path; returns the held-out rows at the best one. Of the others, only scores are kept."""
        rows, model = trainer.rows, trainer.model
        walks = [[setting | variant for setting in path] for variant in variants for path in paths]
        shown = [(in_words(setting), cost) for path in walks for setting, cost in zip(path, costs_of(path), strict=True)]
        name = f"{'Searching' if len(shown) > 1 else 'Cross-validating'} {type(model).__name__}"
        best: HeldOut | None = None
        n_done = 0
        with search_progress(bool(self.verbose), name, shown, may_end_early=self.patience is not None) as on_part:
            for path in walks:
                tables = [trainer.table(**setting) for setting in path]
                of_walk = trainer.rows_at(path[0])
                options = of_walk.options.for_folds()
                make = partial(of_walk.folds, tables[0], scales_C=model.probability)
                is_shared = not rows.learns_column_weights
                points = walk_folds(make, folds, options, tables, factors_of(path), is_shared=is_shared, on_part=on_part)
                walk = trials.new_walk()
                with closing(points):
                    for setting, point in zip(path, points, strict=False):
                        held_out = rows.held_out(folds, point.held_out)
                        if trials.add(setting, point, *self._scores(trainer, folds, held_out, scoring)):
                            best = held_out
                        if walk.is_over:
                            break
                n_done += len(path)
                trials.leave_out(path[len(path) - (n_done - len(trials.all)) :])
                on_part.skip_to(n_done)
        assert best is not None
        return best

    @staticmethod
    def _scores(trainer: Trainer, folds: Folds, held_out: HeldOut, scoring: Scoring) -> tuple[list[float], list[float]]:
        """On each fold, and on what shows how far scores vary by chance: parts of the folds if these are few and large."""
        X, predictions, cut = trainer.rows.X, trainer.fold_predictions(held_out), held_out.parts
        scores = scoring.of_folds(predictions, (X[test] for test in folds.test))
        if len(cut) == len(folds) or min(len(folds.test[fold][rows]) for fold, rows in cut) < ROWS_OF_A_PART:
            return scores, scores
        return scores, scoring.of_folds(predictions.of_parts(), (X[folds.test[fold][rows]] for fold, rows in cut))

    def _refit(self, trainer: Trainer, held_out: HeldOut) -> OrdinalModel:
        trainer.choose(self.best_params_)
        options, model = trainer.rows.options, trainer.model
        if model.probability and options.gap is None:
            # The calibrator is fitted to scores of nearly converged planes; planes that stop early have other scores.
            options = replace(options, tol=0.1 * options.tol, tol_in_words=f"a tenth of tol={options.tol:g}")
        with solve_progress(bool(self.verbose), "Final fit", options.tol) as on_report:
            trainer.solve(options, on_report)
        if model.probability:
            with working(bool(self.verbose), "Calibrating"):
                trainer.calibrate(held_out)
        return model

    def _route(self, sample_weight: Any, groups: Any) -> tuple[Any, Any]:
        """The weights for the estimator and the groups for the folds: with metadata routing, those that they request."""
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
        # With a number of folds, groups are kept together as by GroupKFold, and requested like it.
        splitter = self.cv if hasattr(self.cv, "get_metadata_routing") else GroupKFold()
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        router.add(splitter=splitter, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        scoring = scoring_of(self.scoring, self.estimator)
        if isinstance(scoring, Scorer) and hasattr(scoring.scorer, "get_metadata_routing"):
            router.add(scorer=scoring.scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
        return router

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
    def predict_set(self, X: Any, coverage: float = 0.9, *, per_rank: bool = False, score: str | None = None) -> NDArray[np.bool_]:
        return np.asarray(self._best().predict_set(X, coverage, per_rank=per_rank, score=score))

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
