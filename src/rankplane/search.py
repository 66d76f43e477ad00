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


class CSearchCV(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Search C (or C1 and C2 of NPSVOR) by cross-validation, then fit with the best.

    Parameters
    ----------
    estimator : one of the models of this package
        Its own ``C`` is ignored. With ``probability=True``, the calibrator is trained on the held-out scores of the search.
    Cs : array of positive numbers, default=2.0**np.arange(-5, 6)
        Values of C; with ``C1s``, of C2.
    C1s : array of positive numbers, optional
        Values of C1, for NPSVOR: all pairs with ``Cs`` are tried.
    cv : int, splitter or iterable of index pairs, default=5
        A number makes stratified folds, which keep groups together if ``fit`` is given any.
    scoring : {"mae", "mse", "accuracy", "macro_mae", "qwk", "rps"}, scikit-learn scorer, its name, or callable, default="mae"
        Scorers, such as those of ``make_scorer`` and ``rankplane.metrics.scorers``, and callables ``(y_true, y_pred) -> float``
        are better when larger. Scores are reported as they are, an error as an error. What is judged is what the
        estimator would predict: ranks by its ``decision``, or for "rps", the ranked probability score, its probabilities.
    n_jobs : int, optional
        Threads, also of the final fit. None leaves the estimator's own ``n_jobs``.
    refit : bool, default=True
        Fit ``best_estimator_`` on all rows.
    verbose : int, default=0
        1 shows a progress bar.
    gammas : array of positive numbers, optional
        Values of gamma, for an estimator whose kernel has one: each is tried with all values of C. All folds, planes and values
        of C share its kernel matrix, as far as the estimator's ``cache_size`` holds it.

    Attributes
    ----------
    best_C_, best_params_, best_score_, best_index_ :
        The best setting: the smallest of equally good ones.
    best_estimator_ : estimator
        Fitted with it on all rows.
    cv_results_ : dict of arrays
        One entry per setting, as GridSearchCV has it (a DataFrame can be made of it), with ``n_iter``, the most sweeps that a
        plane took, and ``is_settled``: no dual variable touched its bound at a smaller C, so that the solution is the same as
        there.
    n_splits_ : int

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
        """Search, and fit with the best setting.

        Parameters
        ----------
        X, y, sample_weight :
            As for the estimator. Rows count by their weights in the score too, unless ``scoring`` is a callable or a scorer. With
            scikit-learn's metadata routing on, they go to the estimator, and to a scorer, if these request them.
        groups : array of shape (n_rows,), optional
            Rows of one group stay in one fold.
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
        """Who takes the weights and groups of ``fit``: the estimator, the folds and the scorer, as they request them."""
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
        """The rank of each row, by the best estimator."""
        return self._best().predict(X)

    @only_if(delegated("decision_function"))
    def decision_function(self, X: Any) -> NDArray[Any]:
        """How each row leans to every rank, by the best estimator."""
        return self._best().decision_function(X)

    @only_if(delegated("plane_scores"))
    def plane_scores(self, X: Any) -> NDArray[Any]:
        """Scores of the best estimator's planes."""
        return self._best().plane_scores(X)

    @only_if(delegated("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the ranks, by the best estimator."""
        return np.asarray(self._best().predict_proba(X))

    @only_if(delegated("predict_set"))
    def predict_set(self, X: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Sets of ranks, by the best estimator."""
        return np.asarray(self._best().predict_set(X, coverage))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The measure that ``scoring`` names, of the best estimator, as ``best_score_`` reports it: an error as an error.

        To have the share of right answers whatever ``scoring`` is, take ``accuracy_score(y, search.predict(X))``.
        """
        return scoring_of(self.scoring, self.estimator).of_model(self._best(), X, y, sample_weight)

    def explain(self, X: Any, feature_names: Any = None, top: int = 10) -> Any:
        """Explanations of the best estimator."""
        return self._best().explain(X, feature_names, top)

    def top_features(self, feature_names: Any = None, n: int = 10) -> Any:
        """Telling columns of the best estimator."""
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
