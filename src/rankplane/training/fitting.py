"""From a table to a measured model: what ``rankplane train`` does, without the printing.

The model that is measured is the model that is kept: rows held out for the measuring are never trained on. Rows with the same text
stay on one side of the split, since a copy of a training row says nothing about new rows.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from rankplane import modelfile, validation
from rankplane.base import OrdinalModel
from rankplane.inputs.reading import InputError
from rankplane.inputs.schema import RARE, Inputs, Rows
from rankplane.metrics import MEASURES
from rankplane.options import DECISIONS, Options
from rankplane.prediction.explanations import Boundary, TopFeatures
from rankplane.progress import working
from rankplane.search import DEFAULT_CS, CSearchCV
from rankplane.solver.folds import deal
from rankplane.solver.kernels import GAMMA_KERNELS, gamma_of
from rankplane.tabular import ColumnEncoder
from rankplane.text import TextVectorizer
from rankplane.text.settings import ANALYZERS, PRESETS, SEGMENTERS, resolve
from rankplane.text.vectorizer import NoColumnsError
from rankplane.training import cautions, parsing
from rankplane.training.weighing import Weighing, spread_of
from rankplane.validation import MAX_SEED, MAX_THREADS, rank_numbers

HEADINGS = {"accuracy": "accuracy", "mae": "MAE", "mse": "MSE", "macro_mae": "macro MAE", "qwk": "QWK"}


def data_notes(notes: dict[str, Any]) -> list[str]:
    """What is worth knowing about the rows that were read."""
    missing = notes.get("missing_values", {}).items()
    left_out = notes.get("left_out", {})
    if isinstance(left_out, list):  # as model files of 0.1 have it
        left_out = dict.fromkeys(left_out, RARE)
    lines = [
        *[f"{count:,} missing values in {name}" for name, count in missing if count],
        *[f'column "{name}" is left out: {reason}' for name, reason in left_out.items()],
        *[f'column "{name}" is read as texts, but all its values are numbers' for name in notes.get("number_texts", [])],
        (notes["missing_target"], "rows without a rank are left out"),
        (notes.get("empty_texts"), "texts are empty"),
        (notes.get("duplicate_texts"), "texts are exact copies of others; copies stay on one side of every split"),
        (notes.get("seen_texts"), "texts to measure on occur among the training texts too, which flatters the model"),
    ]
    found = [line if isinstance(line, str) else f"{line[0]:,} {line[1]}" for line in lines if isinstance(line, str) or line[0]]
    nothing = "no missing values" + (", no duplicate texts" if "duplicate_texts" in notes else "")
    return found or [nothing]


def hold_out(rows: Rows, share: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to train on and to hold out: about this share of every rank, by whole sets of rows that belong together."""
    if share == 0:
        return np.arange(len(rows.labels)), np.arange(0)
    ranks = np.unique(rows.labels, return_inverse=True)[1].ravel()
    is_held = deal(rows.together, ranks, np.array([1 - share, share]), seed) == 1
    # A rank that training would never see stays there.
    is_lost = ~np.isin(ranks, ranks[~is_held])
    is_held &= ~np.isin(rows.together, rows.together[is_lost])
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)


TEXT_OPTIONS = ("preset", "ngrams", "analyzer", "segmenter")
GAMMA_FACTORS = (1 / 16, 1 / 4, 1.0)  # on the gamma that goes with the spread of X: texts want less of it at a large C


@dataclass(frozen=True)
class Choices(Options):
    """The options of the user, and what has to be loaded to check them."""

    def check(self) -> None:
        listed: dict[str, Collection[str]] = {"model": modelfile.MODELS, "preset": PRESETS, "decision": DECISIONS}
        listed["kernel"] = ("linear", *GAMMA_KERNELS)
        listed |= {"analyzer": ANALYZERS, "segmenter": SEGMENTERS}
        for name, choices in listed.items():
            if getattr(self, name) not in (None, *choices):
                raise InputError(f"--{name} must be one of {', '.join(choices)}. Got {getattr(self, name)}.")
        if not 0 <= self.holdout < 1:
            raise InputError(f"--holdout must be a share from 0 to below 1. Got {self.holdout}.")
        if self.C is not None and not 0 < self.C < np.inf:
            raise InputError(f"--C must be a positive number. Got {self.C}.")
        if not 0 <= self.seed <= MAX_SEED:
            raise InputError(f"--seed must be a number from 0 to {MAX_SEED}. Got {self.seed}.")
        if self.jobs == 0 or (self.jobs or 1) > MAX_THREADS:
            raise InputError(
                f"--jobs must be a number of threads, at most {MAX_THREADS}, or -1 for all processors. Got {self.jobs}."
            )
        if self.compact is not None and not 0 <= self.compact < np.inf:
            raise InputError(f"--compact must be a number from 0 up. Got {self.compact}.")
        if self.gamma is not None and not 0 < self.gamma < np.inf:
            raise InputError(f"--gamma must be a positive number. Got {self.gamma}.")
        if self.kernel == "linear" and self.gamma is not None:
            raise InputError(f"--gamma needs a kernel that has one: --kernel {' or '.join(GAMMA_KERNELS)}.")
        if self.kernel != "linear" and self.compact is not None:
            raise InputError("--compact rounds weights of columns, which only --kernel linear has.")
        if self.segmenter is not None and self.analyzer not in (None, "word"):
            raise InputError(f"--segmenter finds words, which --analyzer {self.analyzer} does not use.")
        parsing.weights_by_name(self.class_weight)
        resolve(self.vectorizer().get_params(deep=False))  # complains if a segmenter is not installed

    def check_for(self, inputs: Inputs) -> None:
        """Refuse options about texts where there are none."""
        asked = [name for name in TEXT_OPTIONS if getattr(self, name) != getattr(Choices(), name)]
        if asked and inputs.kind != "text":
            raise InputError(f"--{asked[0]} is about texts: name their columns by --text.")

    def vectorizer(self, **options: Any) -> TextVectorizer:
        ngrams = parsing.ngram_range(self.ngrams)
        analyzer = self.analyzer or "word"
        options |= {"ngram_range": ngrams, "analyzer": analyzer, "segmenter": self.segmenter, "n_jobs": self.jobs}
        return TextVectorizer(preset=self.preset, **options)

    def gammas(self, X: Any) -> list[float] | None:
        """Values to search: as given, or about the one that goes with the spread of X."""
        if self.kernel == "linear":
            return None
        return [gamma_of("scale", X) * factor for factor in GAMMA_FACTORS] if self.gamma is None else [self.gamma]


@dataclass(frozen=True)
class Trained:
    """A model and what is known about it."""

    pipeline: Pipeline
    metadata: dict[str, Any]
    test: Rows


def first_step(inputs: Inputs, choices: Choices, n_rows: int, verbose: int) -> TextVectorizer | ColumnEncoder | None:
    """What makes columns of the features."""
    if inputs.kind == "text":
        min_df = 1 if n_rows < 50 else None  # of so few texts, every word counts
        return choices.vectorizer(min_df=min_df, verbose=verbose)
    return ColumnEncoder() if inputs.kind == "table" else None


def train(rows: Rows, inputs: Inputs, choices: Choices, test: Rows | None = None, verbose: int = 0) -> Trained:
    """Fit on the training rows; measure on the held-out ones."""
    choices.check()
    choices.check_for(inputs)
    if test is None:
        training, held = hold_out(rows, choices.holdout, choices.seed)
        if choices.holdout and not len(held):
            n_sets = len(np.unique(rows.together))
            raise InputError(
                f"--holdout {choices.holdout} finds no rows to measure on among {len(rows.labels):,}: copies and groups stay "
                f"together, here as {n_sets:,}, and no rank is held out whole. Use --test, a larger share, or 0."
            )
        train_rows, test = rows.take(training), rows.take(held)
    else:
        train_rows = rows
    step = first_step(inputs, choices, len(train_rows.labels), verbose)
    try:
        X = train_rows.features if step is None else step.fit_transform(train_rows.features)
    except NoColumnsError:
        raise InputError(cautions.no_columns(step, train_rows.features)) from None
    order = validation.rank_order(train_rows.labels, inputs.ranks)
    places = rank_numbers(train_rows.labels, order)
    weighing = Weighing(choices.decision, choices.class_weight, order, places)
    options: dict[str, Any] = {"probability": True, "ranks": inputs.ranks} | weighing.options()
    options |= {"random_state": choices.seed, "n_jobs": choices.jobs}
    if choices.kernel != "linear":
        options["kernel"] = choices.kernel
    elif inputs.kind == "text" and choices.preset == "default":
        options["column_weight"] = "ranks"  # what predicts best, as the preset is
    # Copies of a row in other folds would flatter a large C and promise too much, so they stay together here too.
    groups = train_rows.together if len(np.unique(train_rows.together)) < len(train_rows.labels) else None
    searching = CSearchCV(
        modelfile.MODELS[choices.model](**options),
        Cs=DEFAULT_CS if choices.C is None else [choices.C],
        cv=min(5, len(train_rows.labels)),
        scoring=weighing.measure,
        n_jobs=choices.jobs,
        verbose=verbose,
        gammas=choices.gammas(X),
    )
    searching.fit(X, train_rows.labels, groups=groups)
    results = searching.cv_results_
    estimator: OrdinalModel = searching.best_estimator_
    is_shown = [setting.get("gamma") == searching.best_params_.get("gamma") for setting in results["params"]]
    by_C = {name: results[key][is_shown].tolist() for name, key in (("C", "param_C"), ("scores", "mean_test_score"))}
    by_C["spread"] = spread_of(searching)[is_shown].tolist()
    search = {"measure": weighing.measure} | by_C
    estimator.set_params(verbose=0)
    if isinstance(step, TextVectorizer):
        step.set_params(verbose=0)  # whoever loads the model has not asked for bars
    steps = [] if step is None else [("features", step)]
    pipeline = Pipeline([*steps, ("model", estimator)])
    data = rows.notes | {"trained_on": len(train_rows.labels), "columns": int(estimator.n_features_in_)}
    data |= {"trained_ranks": rank_counts(train_rows.labels, estimator.classes_), "folds": searching.n_splits_}
    answers: dict[str, Any] = {}
    if choices.compact is not None:
        # Measured before and after, since what is kept is what is to be measured.
        with working(bool(verbose), "Measuring"):
            answers["before compacting"] = pipeline.predict(test.features) if len(test.labels) else None
        data["dropped_columns"] = modelfile.compact_model(estimator, choices.compact)
    metrics, measured_on = None, test if len(test.labels) else train_rows
    with working(bool(verbose), "Measuring"):
        if len(test.labels):
            answers = {"model": pipeline.predict(test.features)} | answers
            metrics = measured(pipeline, test, train_rows.labels, answers)
            poor = weighing.poor_gain(rank_numbers(test.labels, order), rank_numbers(answers["model"], order))
        else:
            poor = weighing.poor_gain_in_folds(searching)
        warnings = cautions.find(pipeline, measured_on.features if inputs.kind == "text" else None, places, poor)
    metadata: dict[str, Any] = {
        "warnings": warnings,
        "inputs": asdict(inputs),
        "choices": asdict(choices) | {"C": float(estimator.C), "gamma": searching.best_params_.get("gamma")},
        "data": data,
        "search": search | {"best_C": searching.best_C_} if choices.C is None else None,
        "metrics": metrics,
    }
    return Trained(pipeline, metadata, test)


def measured(pipeline: Pipeline, test: Rows, train_labels: NDArray[Any], answers: dict[str, Any]) -> dict[str, Any]:
    """All measures on the test rows, of some answers, and of two that need no model."""
    order = pipeline.classes_
    return compared(test.labels, answers, order, rank_counts(train_labels, order))


def rank_counts(labels: NDArray[Any], order: NDArray[Any]) -> dict[str, int]:
    """How many rows have each rank, lowest first, under the names that a model file can hold."""
    counts = np.bincount(rank_numbers(labels, order), minlength=len(order))
    return dict(zip(map(str, order.tolist()), counts.tolist(), strict=True))


def trained_ranks(metadata: dict[str, Any]) -> dict[str, int]:
    """How many training rows have each rank, lowest first; older files have only counts that include the held-out rows."""
    data = metadata.get("data") or {}
    return dict(data.get("trained_ranks") or data.get("ranks") or {})


def constant_answers(order: NDArray[Any], counts: dict[str, int]) -> dict[str, Any]:
    """The answers that need no model, commonest rank and median of training; none where no counts are known."""
    places = np.array([counts.get(str(label), 0) for label in order.tolist()], dtype=np.intp)
    if not places.any():
        return {}
    median = np.searchsorted(np.cumsum(places), places.sum() // 2, side="right")
    return {"majority": order[np.argmax(places)], "median": order[median]}


def compared(labels: NDArray[Any], answers: dict[str, NDArray[Any]], order: NDArray[Any], counts: dict[str, int]) -> dict[str, Any]:
    """Measures of some answers and of the constant ones, all on the same rows."""
    constant = {name: np.full(len(labels), answer) for name, answer in constant_answers(order, counts).items()}
    found = {name: measures(labels, given, order) for name, given in (answers | constant).items()}
    return {"rows": len(labels)} | found


def column_names(pipeline: Pipeline) -> Any:
    """Terms, names of columns, or the numbers that an svmlight file counts them by."""
    if len(pipeline.steps) > 1:
        return pipeline[0].get_feature_names_out()
    return np.arange(1, pipeline[-1].n_features_in_ + 1)


def is_linear(pipeline: Pipeline) -> bool:
    """Whether the model has weights of columns, to be named and explained by."""
    return hasattr(pipeline[-1], "coef_")


def telling(pipeline: Pipeline, n: int) -> list[TopFeatures]:
    """The columns that speak most strongly for either side of each boundary between ranks; none with a kernel."""
    if not is_linear(pipeline):
        return []
    found: list[TopFeatures] = pipeline[-1].top_features(column_names(pipeline), n=n)
    return found


def boundaries_of(pipeline: Pipeline, features: Any, top: int = 5) -> list[Boundary]:
    """Why the first row lies above or below each boundary between ranks."""
    found: list[Boundary] = pipeline[-1].explain(pipeline[0].transform(features), column_names(pipeline), top=top)[0].boundaries
    return found


def confusion(true: NDArray[Any], predicted: NDArray[Any], order: NDArray[Any]) -> NDArray[np.intp]:
    """How many rows of each rank, by row, were given each rank, by column."""
    matrix = np.zeros((len(order), len(order)), dtype=np.intp)
    np.add.at(matrix, (rank_numbers(true, order), rank_numbers(predicted, order)), 1)
    return matrix


def measures(true: NDArray[Any], predicted: NDArray[Any], order: NDArray[Any]) -> dict[str, float]:
    return {name: measure(true, predicted, ranks=order) for name, (measure, _) in MEASURES.items()}


def figure(value: float) -> str:
    """A measure with three digits, and zero without a sign."""
    return f"{round(value, 3) + 0.0:.3f}"


def check_known(labels: NDArray[Any], lines: Sequence[int], order: NDArray[Any], source: str) -> None:
    """Refuse ranks that training never saw."""
    known = set(order.tolist())
    for label, line in zip(labels.tolist(), lines, strict=True):
        if label not in known:
            listed = ", ".join(map(str, order.tolist()))
            raise InputError(f"{source} line {line}: rank {label} never occurred in training, whose ranks are {listed}.")
