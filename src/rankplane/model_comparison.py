"""All models that suit the data, tuned on the same folds: which is best, by how much, and how sure that is."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from rankplane import estimators, validation
from rankplane.base import Trainer
from rankplane.docstrings import documented
from rankplane.files import replacing
from rankplane.gaussian_process import GPOR
from rankplane.metrics import MEASURES
from rankplane.options import MODEL_NAMES
from rankplane.rank_model import RankModel
from rankplane.report import plots
from rankplane.report.markup import html_table, section, stylesheet
from rankplane.search import DEFAULT_CS, N_FOLDS, ROWS_TO_CHOOSE_BY, CSearchCV
from rankplane.self_tuned import SelfTuned
from rankplane.solver.folds import Folds, enough_folds, make_folds
from rankplane.solver.lanes import MAX_LANES
from rankplane.solver.training_set import HeldOut
from rankplane.training.wording import HEADINGS
from rankplane.upkeep.comparing import CONFIDENCE, Difference, differences
from rankplane.versions import this_version

MUCH_FASTER = 2.0
PROCESS_ROWS, PROCESS_COLUMNS = 3000, 20  # with more, GPOR is compared only by name


class FoldSearch(CSearchCV):
    """A search that keeps the ranks that it predicted for held-out rows at the best setting."""

    held_out_ranks: NDArray[np.intp]

    def _walk(self, trainer: Trainer, *others: Any) -> HeldOut:
        found = super()._walk(trainer, *others)
        self.held_out_ranks = np.concatenate(trainer.fold_predictions(found).ranks)
        return found


@dataclass(frozen=True)
class ComparedModel:
    """A model with its best parameters: its measure on held-out samples, and the difference from the best model.

    The interval of the difference, from ``low`` to ``high``, is by the bootstrap on samples, which all models have in common.
    """

    name: str
    params: dict[str, float]
    score: float
    difference: float
    low: float
    high: float
    is_clear: bool
    seconds: float


@dataclass(frozen=True)
class ModelComparison:
    """What :func:`compare_models` found: ``models``, best first, the name of the ``recommended`` one, and the ``reason``."""

    models: list[ComparedModel]
    scoring: str
    n_samples: int
    recommended: str
    reason: str

    def __str__(self) -> str:
        heading = HEADINGS[self.scoring]
        width = max(len(found.name) for found in self.models)
        lines = [f"{'model':{width}}  {heading:>9}  {'difference':>10}  {'95 % interval':>17}  {'seconds':>7}  parameters"]
        for found in self.models:
            interval = f"{found.low:+.3f} to {found.high:+.3f}" if found.name != self.models[0].name else "best"
            lines.append(
                f"{found.name:{width}}  {found.score:9.3f}  {found.difference:+10.3f}  {interval:>17}  {found.seconds:7.1f}  "
                + " ".join(f"{name}={value:.4g}" for name, value in found.params.items())
            )
        return "\n".join([*lines, "", self.reason])

    def write_page(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison as an HTML page, with a picture of the differences.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        """
        with replacing(os.fspath(path)) as file:
            file.write(page(self).encode())


def made_model(name: str, options: Mapping[str, Any]) -> RankModel:
    """A model with those of the options that it has."""
    kind: type[RankModel] = getattr(estimators, name)
    return kind(**{option: value for option, value in options.items() if option not in kind.without})


def suited(models: dict[str, RankModel], X: Any) -> dict[str, RankModel]:
    """The models that do not take too long on samples such as X."""
    is_small = X.shape[0] <= PROCESS_ROWS and X.shape[1] <= PROCESS_COLUMNS
    return {name: model for name, model in models.items() if is_small or not isinstance(model, GPOR)}


def default_models(n_ranks: int, options: Mapping[str, Any]) -> dict[str, RankModel]:
    """Every model that can learn so many ranks, by name."""
    made = {name: made_model(name, options) for name in MODEL_NAMES}
    if "form" not in options:
        made["AdversarialOrdinal"].set_params(form="thresholds")
    return {name: model for name, model in made.items() if n_ranks <= MAX_LANES or name != "CrammerSinger"}


def named_models(models: Any, X: Any, n_ranks: int, options: Mapping[str, Any]) -> dict[str, RankModel]:
    """The models that the user names, or gives, or all."""
    if models is None:
        return suited(default_models(n_ranks, options), X)
    if isinstance(models, Mapping):
        found = dict(models)
    else:
        found = {}
        for model in models:
            name = model if isinstance(model, str) else type(model).__name__
            if isinstance(model, str):
                validation.check_choice("models", model, MODEL_NAMES)
                model = made_model(model, options)
            if name in found:
                raise ValueError(f"models must have different names; give models of the same class in a dict. Got two of {name}.")
            found[name] = model
    if len(found) < 2:
        raise ValueError(f"models must be at least two. Got {len(found)}.")
    wrong = next((model for model in found.values() if not isinstance(model, RankModel)), None)
    if wrong is not None:
        raise ValueError(f"models must be names or models of this package, such as 'NPSVOR' or NPSVOR(). Got {wrong!r}.")
    return found


def folds_for_all(cv: Any, trainer: Trainer, groups: Any) -> Folds:
    rows = trainer.rows
    X, ranks, seed = rows.X, rows.labels.numbers, rows.options.seed
    if isinstance(cv, str) and cv == "auto":
        found = enough_folds(min(N_FOLDS, len(ranks)), ROWS_TO_CHOOSE_BY, X, ranks, groups, seed)
    else:
        found = make_folds(cv, X, ranks, groups, seed)
    return found.without_zero_weights(rows.sample_weights)


@documented()
def compare_models(
    X: Any,
    y: Any,
    models: Any = None,
    *,
    scoring: str = "mae",
    cv: Any = "auto",
    Cs: ArrayLike = DEFAULT_CS,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    ranks: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> ModelComparison:
    """Tune models on the same folds, and compare them on the held-out samples.

    Each model gets its own best ``C`` by :class:`CSearchCV`; :class:`GPOR`, which has none, takes part by default with up to 3,000
    samples and 20 features. Differences from the best model come with intervals: all models
    predict the same samples, so that a difference varies less than the measure of either.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples.
    y : array-like of shape (n_samples,)
        Labels: numbers, an ordered categorical, or any labels that ``ranks`` puts in order.
    models : list of str or object, or dict of object
        Names of models, models, or a dict from names of your own to models, for example with different kernels. If None, all
        models that suit the data, with their default parameters.
    scoring : {'mae', 'mse', 'accuracy', 'macro_mae', 'qwk'}
        Measure to choose ``C`` and to compare by.
    cv : 'auto', int, splitter or iterable
        The folds, as in :class:`CSearchCV`.
    Cs : array-like of float
        Values of C to try for every model.
    sample_weight : array-like of shape (n_samples,)
        Sample weights, which multiply ``C``. They do not count in the comparison. If None, all samples have weight one.
    groups : array-like of shape (n_samples,)
        Group labels. All samples of a group are in the same fold.
    ranks : array-like of shape (n_ranks,)
        The labels in order, lowest first, for models given by name.
    n_jobs : int
        Number of threads. None means 1, -1 all processors.
    random_state : int, RandomState or Generator
        Seed for the folds, the solver and the intervals. None is a fixed seed.
    verbose : int
        Set to 1 to show progress bars.

    Returns
    -------
    ModelComparison
        The models, best first, with a recommendation. ``print`` shows it as a table, ``write_page`` writes a page.

    See Also
    --------
    CSearchCV : Choose ``C`` of one model.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import compare_models
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> y = np.digitize(X[:, 0], [-0.5, 0.5])
    >>> found = compare_models(X, y, ["SVOR", "SVR"], Cs=[0.1, 1])
    >>> sorted(model.name for model in found.models)
    ['SVOR', 'SVR']
    """
    validation.check_choice("scoring", scoring, tuple(MEASURES))
    seed = validation.seed_of(random_state)
    options = {"ranks": ranks, "n_jobs": n_jobs, "random_state": seed}
    trial = Trainer(estimators.SVR(ranks=ranks_of(models, ranks), random_state=seed), X, y, sample_weight)
    candidates = named_models(models, trial.rows.X, trial.rows.labels.n_ranks, options)
    folds = folds_for_all(cv, trial, groups)
    pairs = [(np.flatnonzero(is_train), test) for is_train, test in zip(folds.is_train, folds.test, strict=True)]
    searches: dict[str, FoldSearch | SelfTuned] = {}
    seconds = {}
    for name, model in candidates.items():
        start = time.perf_counter()
        if isinstance(model, GPOR):
            searches[name] = SelfTuned(clone(model), scoring=scoring, pairs=pairs).fit(trial.rows.X, y, sample_weight)
        else:
            search = FoldSearch(clone(model), Cs=Cs, cv=pairs, scoring=scoring, n_jobs=n_jobs, refit=False, verbose=verbose)
            searches[name] = search.fit(X, y, sample_weight=sample_weight)
        seconds[name] = time.perf_counter() - start
    true = np.concatenate([trial.rows.labels.numbers[test] for test in folds.test]).astype(np.int64)
    return compared(searches, seconds, true, scoring, seed)


def ranks_of(models: Any, ranks: Any) -> Any:
    """The order of the labels, which models may bring themselves."""
    given = list(models.values()) if isinstance(models, Mapping) else [] if models is None else list(models)
    own = [model.ranks for model in given if isinstance(model, RankModel) and model.ranks is not None]
    return own[0] if ranks is None and own else ranks


def compared(
    searches: Mapping[str, FoldSearch | SelfTuned], seconds: Mapping[str, float], true: NDArray[Any], scoring: str, seed: int
) -> ModelComparison:
    measure, is_more_better = MEASURES[scoring]
    scores = {name: float(measure(true, search.held_out_ranks)) for name, search in searches.items()}
    order = sorted(scores, key=lambda name: -scores[name] if is_more_better else scores[name])
    found = []
    for name in order:
        of_best = searches[order[0]].held_out_ranks
        apart: Difference = differences(true, of_best, searches[name].held_out_ranks, seed)[scoring]
        is_clear = apart.verdict != "no clear difference"
        params = searches[name].best_params_
        found.append(ComparedModel(name, params, scores[name], apart.value, apart.low, apart.high, is_clear, seconds[name]))
    return ModelComparison(found, scoring, len(true), *recommended(found, HEADINGS[scoring], is_more_better))


def recommended(found: Sequence[ComparedModel], heading: str, is_more_better: bool) -> tuple[str, str]:
    """The name of the model to use, and why, in words."""
    best, *others = found
    reason = f"{best.name} has the {'highest' if is_more_better else 'lowest'} {heading}, {best.score:.3f}"
    equal = [other for other in others if not other.is_clear]
    if not equal:
        return best.name, f"{reason}; all others are clearly worse."
    names = ", ".join(other.name for other in equal)
    verb = "is" if len(equal) == 1 else "are"
    reason += f". {names} {verb} not clearly worse"
    fastest = min(equal, key=lambda other: other.seconds)
    if fastest.seconds * MUCH_FASTER < best.seconds:
        reason += f"; {fastest.name} took {best.seconds / fastest.seconds:.1f} times less time"
    return best.name, f"{reason}."


def picture_of(comparison: ModelComparison) -> str:
    """Differences from the best model, with their intervals."""
    rows = comparison.models
    lows, highs = [model.low for model in rows], [model.high for model in rows]
    x_ticks = plots.ticks(min(*lows, 0.0), max(*highs, 0.0))
    axes = plots.Axes((x_ticks[0], x_ticks[-1]), (len(rows) - 0.5, -0.5))
    parts = [
        axes.frame(
            [(value, f"{value:g}") for value in x_ticks],
            [(place, "") for place in range(len(rows))],
            f"difference in {HEADINGS[comparison.scoring]} from {rows[0].name}",
            "",
        )
    ]
    for place, model in enumerate(rows):
        y = axes.y(place)
        hint = f"{model.name}: {model.difference:+.3f}, {model.low:+.3f} to {model.high:+.3f}"
        parts.append(
            f'<line class="axis" x1="{axes.x(model.low):.1f}" x2="{axes.x(model.high):.1f}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="currentColor" stroke-width="2"/>'
        )
        parts.append(plots.dot(axes.x(model.difference), y, 4, hint))
        parts.append(f'<text x="{axes.x(model.difference):.1f}" y="{y - 7:.1f}" text-anchor="middle">{escape(model.name)}</text>')
    return plots.picture("Differences between the models", "".join(parts))


def page(comparison: ModelComparison) -> str:
    heading = HEADINGS[comparison.scoring]
    rows = [
        [
            escape(model.name),
            f"{model.score:.3f}",
            "best" if place == 0 else f"{model.difference:+.3f}",
            "" if place == 0 else f"{model.low:+.3f} to {model.high:+.3f}",
            "" if place == 0 else "clear" if model.is_clear else "not clear",
            escape(", ".join(f"{name}={value:.4g}" for name, value in model.params.items())),
            f"{model.seconds:.1f}",
        ]
        for place, model in enumerate(comparison.models)
    ]
    headings = ["model", heading, "difference", f"{100 * CONFIDENCE:.0f} % interval", "verdict", "parameters", "seconds"]
    title = f"{len(rows)} models on {comparison.n_samples:,} held-out samples"
    note = "Intervals are by the bootstrap on samples. The best of many models is a little worse on new samples than it seems here."
    parts = [section("Recommendation", f"<p>{escape(comparison.reason)}</p>")]
    parts += [section("Differences", picture_of(comparison)), section("Models", html_table("Models", headings, rows), note)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">"""
        f'<title>{title}</title><link rel="icon" href="data:,"><style>{stylesheet("base.css", "style.css")}</style></head><body>'
        f"<header><h1>{title}</h1></header><main>{''.join(parts)}</main>"
        f"<footer>Written by rankplane {escape(this_version())}. This page loads nothing and runs nothing.</footer></body></html>\n"
    )
