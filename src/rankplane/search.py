"""Choosing C by cross-validation, nearly for free.

All folds are lanes of one solve, and C is walked upwards with the last solution as the first guess for the next, so the search
of the paper, eleven values of C on five folds, costs a few fits instead of fifty-five.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from rankplane import validation
from rankplane.base import LinearOrdinal, Problem
from rankplane.estimators import NPSVOR
from rankplane.metrics import MEASURES, ranked_probability_score
from rankplane.prediction import decisions
from rankplane.prediction.calibration import Curved
from rankplane.progress import ProgressBar, search_progress, solve_progress, working
from rankplane.solver.folds import Folds, FoldScores, make_folds, walk_folds
from rankplane.solver.kernels import GAMMA_KERNELS
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


def gammas_of(estimator: LinearOrdinal, gammas: ArrayLike | None) -> list[float | None]:
    """Values of gamma to search; None alone leaves the estimator's own."""
    if gammas is None:
        return [None]
    if estimator.kernel not in GAMMA_KERNELS:
        raise ValueError(f"gammas must be None with kernel={estimator.kernel!r}, which has no gamma. Got {gammas!r}.")
    return [*positive_numbers("gammas", gammas)]


def held_out_probabilities(
    held_out: list[NDArray[Any]],
    ranks: list[NDArray[np.int32]],
    n_ranks: int,
    weights: list[NDArray[np.float64]] | None,
) -> list[NDArray[np.float64]]:
    """Of each fold's rows, by a calibrator of the other folds."""
    _, of_others = Curved.fit_leaving_out(held_out, ranks, n_ranks, weights)
    return [calibrator.probabilities(scores) for calibrator, scores in zip(of_others, held_out, strict=True)]


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
    scoring : {"mae", "mse", "accuracy", "macro_mae", "qwk", "rps"} or callable ``(y_true, y_pred) -> float``, default="mae"
        A callable's larger values are better. Scores are reported as they are, an error as an error. What is judged is what the
        estimator would predict: ranks by its ``decision``, or for "rps", the ranked probability score, its probabilities.
    n_jobs : int, optional
        Threads, also of the final fit.
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
            As for the estimator. Rows count by their weights in the score too, unless ``scoring`` is a callable.
        groups : array of shape (n_rows,), optional
            Rows of one group stay in one fold.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        if not isinstance(self.estimator, LinearOrdinal):
            raise ValueError(f"estimator must be a model of this package, such as NPSVOR(). Got {self.estimator!r}.")
        if self.C1s is not None and not isinstance(self.estimator, NPSVOR):
            raise ValueError(f"C1s must be None for {type(self.estimator).__name__}, which has no C1. Got {self.C1s!r}.")
        validation.check_bool("refit", self.refit)
        measure, is_greater_better = self._measure()
        paths = settings_of(self.Cs, self.C1s)
        gammas = gammas_of(self.estimator, self.gammas)
        model = clone(self.estimator).set_params(n_jobs=self.n_jobs, verbose=0)
        problem = model._prepare(X, y, sample_weight)
        folds = make_folds(self.cv, problem.X, problem.rank_numbers, groups, problem.options.seed)
        folds = folds.counting(problem.sample_weights)

        # A walk measures violations against its first sweep, at the smallest C, where they are largest. Half the tolerance makes
        # its planes as good as those of single fits.
        options = replace(problem.options, tol=0.5 * problem.options.tol)
        settings: list[Setting] = []
        points: list[FoldScores] = []
        n_settings = len(gammas) * sum(len(path) for path in paths)
        name = f"{'Searching' if n_settings > 1 else 'Cross-validating'} {type(model).__name__}"
        with search_progress(bool(self.verbose), name, n_settings) as on_setting:
            for gamma in gammas:
                at_gamma = problem.with_gamma(gamma)
                for path_of_C in paths:
                    path = [setting if gamma is None else setting | {"gamma": gamma} for setting in path_of_C]
                    models = [clone(model).set_params(**setting) for setting in path]
                    tables = [m._table(problem.n_ranks) for m in models]
                    prices = [setting.get("C2", setting.get("C", 1.0)) for setting in path]
                    factors = [1.0] + [after / before for before, after in itertools.pairwise(prices)]
                    make = partial(at_gamma.folds, tables[0], evens_out=model.probability)

                    def on_point(place: int, n_parts: int, path: list[Setting] = path) -> None:
                        on_setting(path[place], n_parts)

                    settings += path
                    points += walk_folds(
                        make, folds, options, tables, factors, is_shared=not problem.learns_column_weights, on_point=on_point
                    )

        with ProgressBar(self.verbose) as bar:
            measuring = bar.each("Measuring folds", points)
            scores = np.array([self._fold_scores(model, problem, folds, point, measure) for point in measuring])
        means = scores.mean(axis=1)
        signed = means if is_greater_better else -means
        # Of equally good ones the smallest: ascending settings and the first maximum.
        by_price = sorted(range(len(settings)), key=lambda i: tuple(settings[i].values()))
        best = by_price[int(np.argmax(signed[by_price]))]
        self.cv_results_ = self._results(settings, points, scores, signed)
        self.n_splits_ = len(folds)
        self.best_index_ = best
        self.best_params_ = settings[best]
        self.best_C_ = settings[best].get("C", settings[best].get("C2"))
        self.best_score_ = float(means[best])
        self.classes_ = problem.order
        self.n_features_in_ = model.n_features_in_
        if self.refit:
            self.best_estimator_ = self._refit(model.set_params(**settings[best]), problem, folds, points[best])
        return self

    def _refit(self, model: LinearOrdinal, problem: Problem, folds: Folds, point: FoldScores) -> LinearOrdinal:
        options = problem.options
        if model.probability:
            # The calibrator learns from scores that a long walk has settled; planes that stop early score differently.
            options = replace(options, tol=0.1 * options.tol)
        problem = problem.with_gamma(self.best_params_.get("gamma"))
        with solve_progress(bool(self.verbose), "Final fit", options.tol) as on_report:
            model._adopt(problem, problem.solve(model._table(problem.n_ranks), options, on_report))
        if model.probability:
            with working(bool(self.verbose), "Calibrating"):
                model._calibrate(problem, folds, point.held_out)
        return model

    def _measure(self) -> tuple[Callable[[Any, Any], float], bool]:
        if callable(self.scoring):
            return self.scoring, True
        name = validation.check_choice("scoring", self.scoring, (*MEASURES, "rps"))
        if name == "rps" and not self.estimator.probability:
            raise ValueError("scoring must not be 'rps' unless the estimator has probability=True. Got 'rps'.")
        return (ranked_probability_score, False) if name == "rps" else MEASURES[name]

    @staticmethod
    def _fold_scores(
        model: LinearOrdinal, problem: Problem, folds: Folds, point: FoldScores, measure: Callable[..., float]
    ) -> list[float]:
        """The measure on each fold. Ranks count by their places, as everywhere; a callable sees the labels."""
        ranks = [problem.rank_numbers[test] for test in folds.test]
        weights = problem.held_out_weights(folds)
        is_ours = measure is ranked_probability_score or measure in [m for m, _ in MEASURES.values()]
        counted: list[Any] = [{"sample_weight": of_fold} for of_fold in weights] if weights and is_ours else [{}] * len(ranks)
        if measure is ranked_probability_score:
            probabilities = held_out_probabilities(point.held_out, ranks, problem.n_ranks, weights)
            places = range(problem.n_ranks)
            found = zip(ranks, probabilities, counted, strict=True)
            return [ranked_probability_score(r, p, ranks=places, **weighted) for r, p, weighted in found]
        labels = np.arange(problem.n_ranks) if is_ours else problem.order
        if isinstance(model.decision, str) and model.decision == "ranker":
            answers = [model._rank(held_out, problem.n_ranks) for held_out in point.held_out]
        else:
            cost = decisions.cost_matrix(model.decision, problem.n_ranks)
            probabilities = held_out_probabilities(point.held_out, ranks, problem.n_ranks, weights)
            answers = [decisions.least_cost(p, cost) for p in probabilities]
        return [float(measure(labels[r], labels[a], **weighted)) for r, a, weighted in zip(ranks, answers, counted, strict=True)]

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

    def explain(self, X: Any, feature_names: Any = None, top: int = 10) -> Any:
        """Explanations of the best estimator."""
        return self._best().explain(X, feature_names, top)

    def top_features(self, feature_names: Any = None, n: int = 10) -> Any:
        """Telling columns of the best estimator."""
        return self._best().top_features(feature_names, n)

    def _best(self) -> LinearOrdinal:
        check_is_fitted(self)
        if not self.refit:
            raise AttributeError("CSearchCV predicts only with refit=True, which fits best_estimator_.")
        return self.best_estimator_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cv_results_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        tags.classifier_tags.poor_score = True
        return tags
