"""From a table to a measured model: what ``rankplane train`` does, without the printing.

The model that is measured is the model that is kept: rows held out for the measuring are never trained on. Rows with the same text
stay on one side of the split, since a copy of a training row says nothing about new rows.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.pipeline import Pipeline

from rankplane import modelfile
from rankplane.explanations import Boundary, TopFeatures
from rankplane.folds import deal
from rankplane.kernels import GAMMA_KERNELS, gamma_of
from rankplane.metrics import MEASURES
from rankplane.options import DECISIONS, Options
from rankplane.ordinal import LinearOrdinal
from rankplane.reading import LABEL, Batch, InputError, widened
from rankplane.search import DEFAULT_CS, CSearchCV
from rankplane.tabular import ColumnEncoder, is_missing, is_number
from rankplane.text import TextVectorizer
from rankplane.text.settings import PRESETS
from rankplane.validation import MAX_SEED, MAX_THREADS, rank_numbers

FEW_VALUES = 20  # that a small table may hold and still be of ranks or categories
HEADINGS = {"accuracy": "accuracy", "mae": "MAE", "mse": "MSE", "macro_mae": "macro MAE", "qwk": "QWK"}


@dataclass(frozen=True)
class Inputs:
    """Which columns of a table are features, which one is the target, and which one names rows that belong together."""

    target: str
    text: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    ranks: list[str] | None = None
    n_columns: int | None = None  # of an svmlight file
    group: str | None = None

    @classmethod
    def of(cls, batch: Batch, source: str, *, target: str | None, text: Sequence[str], group: str | None, ranks: Any) -> "Inputs":
        if batch.matrix is not None:
            if text:
                raise InputError(f"{source} has no text columns: svmlight files hold numbers.")
            if group:
                raise InputError(f"{source} has no column to group by: svmlight files hold numbers.")
            return cls(target or LABEL, ranks=ranks, n_columns=batch.matrix.shape[1])
        if target is None:
            raise InputError(f"--target must name the column of {source} that holds the ranks.")
        for name in [target, *text, *([group] if group else [])]:
            batch.column(name, source)
        if target in text:
            raise InputError(f'--text must not name "{target}", the column of the ranks: the model would read its answer.')
        if target == group:
            raise InputError(f'--group must not name "{target}", the column of the ranks.')
        others = [
            name for name, values in batch.columns.items() if name not in (target, group) and not (text or holds_texts(values))
        ]
        if not text and not others:
            raise InputError(f'{source} has no column of numbers or categories beside "{target}": name columns of texts by --text.')
        return cls(target, list(text), [] if text else others, ranks, group=group)

    @property
    def kind(self) -> str:
        return "text" if self.text else "table" if self.columns else "svmlight"

    def features(self, batch: Batch, source: str) -> Any:
        """Texts, columns, or a matrix: what the first step of the model takes."""
        if self.kind == "svmlight":
            if batch.matrix is None:
                raise InputError(f"{source} must be an svmlight file, as in training.")
            return widened(batch.matrix, self.n_columns or 0)
        if self.kind == "table":
            return {name: batch.column(name, source) for name in self.columns}
        parts = [batch.column(name, source) for name in self.text]
        return ["\n".join("" if value is None else str(value) for value in values) for values in zip(*parts, strict=True)]

    def labels(self, batch: Batch, source: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """The ranks, and the numbers of the rows that have one."""
        values = batch.column(self.target, source)
        named = set(self.ranks or ())  # a rank may well be called "none"
        is_present = [not is_missing(value) or str(value).strip() in named for value in values]
        present = np.flatnonzero(np.array(is_present, dtype=bool))
        found: list[Any] = []
        for row in present.tolist():
            value = values[row]
            if self.ranks is not None:
                whole = isinstance(value, float) and value % 1 == 0  # as tables with gaps hold whole numbers
                label = str(int(value) if whole else value).strip()
                if label not in self.ranks:
                    raise InputError(
                        f'{source} line {batch.lines[row]}: "{label}" is not one of the ranks {", ".join(self.ranks)}.'
                    )
                found.append(label)
                continue
            try:
                number = float(value)
            except (TypeError, ValueError, OverflowError):
                number = np.nan
            if not np.isfinite(number):
                raise InputError(
                    f'{source} line {batch.lines[row]}: "{value}" in column "{self.target}" is not a number; '
                    "ranks that are words need their order in training: --ranks low,medium,high."
                )
            found.append(number)
        labels = np.array(found)
        # Beyond 2**53 not every whole number is one of floating point.
        if self.ranks is None and len(labels) and np.all(labels % 1 == 0) and np.abs(labels).max() < 2**53:
            labels = labels.astype(np.int64)
        return labels, present


def holds_texts(values: Sequence[Any]) -> bool:
    """Whether a column is words that hardly ever occur twice: texts, names, keys, nothing that categories can be made of."""
    words = [value for value in values if isinstance(value, str) and not is_missing(value) and not is_number(value)]
    return len(set(words)) > max(FEW_VALUES, len(values) // 2)


@dataclass(frozen=True)
class Rows:
    """Features and ranks of the rows that have a rank, and which rows must stay together."""

    features: Any
    labels: NDArray[Any]
    together: NDArray[np.intp]
    notes: dict[str, Any]

    def take(self, rows: NDArray[np.intp]) -> "Rows":
        return Rows(take(self.features, rows), self.labels[rows], self.together[rows], self.notes)


def take(features: Any, rows: NDArray[np.intp]) -> Any:
    if isinstance(features, dict):
        return {name: [values[row] for row in rows] for name, values in features.items()}
    return [features[row] for row in rows] if isinstance(features, list) else features[rows]


def prepare(batch: Batch, source: str, inputs: Inputs) -> Rows:
    """Look at a whole table: what is missing, what occurs twice."""
    labels, present = inputs.labels(batch, source)
    features = take(inputs.features(batch, source), present)
    notes: dict[str, Any] = {"rows": len(batch), "missing_target": len(batch) - len(present)}
    if inputs.kind != "svmlight":
        named = [*inputs.text, *inputs.columns]
        notes["missing_values"] = {name: sum(map(is_missing, take(batch.column(name, source), present))) for name in named}
    if inputs.kind == "table":
        notes["left_out"] = [name for name in batch.columns if name not in (*named, inputs.target, inputs.group)]
    identity = np.arange(len(labels))
    if inputs.kind == "text":
        numbers: dict[str, int] = {}
        identity = np.array([numbers.setdefault(text, len(numbers)) for text in features], dtype=np.intp)
        notes["empty_texts"] = sum(not text.strip() for text in features)
        notes["duplicate_texts"] = len(features) - len(numbers)
    groups = None
    if inputs.group is not None:
        values = [str(value) for value in take(batch.column(inputs.group, source), present)]
        groups = np.unique(values, return_inverse=True)[1].ravel()
    counts = Counter(labels.tolist())
    order = inputs.ranks or sorted(counts)
    notes["ranks"] = {str(label): counts[label] for label in order}
    if inputs.ranks is None and len(counts) > max(FEW_VALUES, len(labels) // 2):
        raise InputError(
            f'{source} has {len(counts):,} different values in {len(labels):,} rows of column "{inputs.target}": '
            "these are measurements, not ranks; cut them into a few first."
        )
    if len(counts) < 2:
        raise InputError(f'{source} must hold at least two different ranks in column "{inputs.target}": it has {len(counts)}.')
    if inputs.kind == "text" and notes["empty_texts"] == len(labels):
        columns = join_quoted(inputs.text)
        raise InputError(f"{source} has no text in column {columns}: all {len(labels):,} rows with a rank are empty there.")
    return Rows(features, labels, joined(identity, groups), notes)


def join_quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def data_notes(notes: dict[str, Any]) -> list[str]:
    """What is worth knowing about the rows that were read."""
    missing = notes.get("missing_values", {}).items()
    lines = [
        *[f"{count:,} missing values in {name}" for name, count in missing if count],
        *[f'column "{name}" is left out: its values hardly ever occur twice' for name in notes.get("left_out", [])],
        (notes["missing_target"], "rows without a rank are left out"),
        (notes.get("empty_texts"), "texts are empty"),
        (notes.get("duplicate_texts"), "texts are exact copies of others; copies stay on one side of every split"),
        (notes.get("seen_texts"), "texts to measure on occur among the training texts too, which flatters the model"),
    ]
    found = [line if isinstance(line, str) else f"{line[0]:,} {line[1]}" for line in lines if isinstance(line, str) or line[0]]
    nothing = "no missing values" + (", no duplicate texts" if "duplicate_texts" in notes else "")
    return found or [nothing]


def joined(identity: NDArray[np.intp], groups: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """Rows that share a text or a group, directly or over others, get the same number."""
    if groups is None:
        return identity
    n_texts = int(identity.max()) + 1
    n_nodes = n_texts + int(groups.max()) + 1
    edges = coo_matrix((np.ones(len(groups)), (identity, groups + n_texts)), shape=(n_nodes, n_nodes))
    return np.asarray(connected_components(edges, directed=False)[1][identity], dtype=np.intp)


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


GAMMA_FACTORS = (1 / 16, 1 / 4, 1.0)  # on the gamma that goes with the spread of X: texts want less of it at a large C


@dataclass(frozen=True)
class Choices(Options):
    """The options of the user, and what has to be loaded to check them."""

    def check(self) -> None:
        listed: dict[str, Collection[str]] = {"model": modelfile.MODELS, "preset": PRESETS, "decision": DECISIONS}
        listed["kernel"] = ("linear", *GAMMA_KERNELS)
        for name, choices in listed.items():
            if getattr(self, name) not in choices:
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
        return TextVectorizer(choices.preset, min_df=min_df, n_jobs=choices.jobs, verbose=verbose)
    return ColumnEncoder() if inputs.kind == "table" else None


def train(rows: Rows, inputs: Inputs, choices: Choices, test: Rows | None = None, verbose: int = 0) -> Trained:
    """Fit on the training rows; measure on the held-out ones."""
    choices.check()
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
    X = train_rows.features if step is None else step.fit_transform(train_rows.features)
    options: dict[str, Any] = {"probability": True, "decision": choices.decision, "ranks": inputs.ranks}
    options |= {"random_state": choices.seed, "n_jobs": choices.jobs}
    if choices.kernel != "linear":
        options["kernel"] = choices.kernel
    elif inputs.kind == "text" and choices.preset == "default":
        options["column_weight"] = "ranks"  # what predicts best, as the preset is
    # Copies of a row in other folds would flatter a large C and promise too much, so they stay together here too.
    groups = train_rows.together if len(np.unique(train_rows.together)) < len(train_rows.labels) else None
    measure = "mae" if choices.decision == "ranker" else choices.decision
    searching = CSearchCV(
        modelfile.MODELS[choices.model](**options),
        Cs=DEFAULT_CS if choices.C is None else [choices.C],
        cv=min(5, len(train_rows.labels)),
        scoring=measure,
        n_jobs=choices.jobs,
        verbose=verbose,
        gammas=choices.gammas(X),
    )
    searching.fit(X, train_rows.labels, groups=groups)
    results = searching.cv_results_
    estimator: LinearOrdinal = searching.best_estimator_
    is_shown = [setting.get("gamma") == searching.best_params_.get("gamma") for setting in results["params"]]
    by_C = {name: results[key][is_shown].tolist() for name, key in (("C", "param_C"), ("scores", "mean_test_score"))}
    search = {"measure": measure} | by_C
    estimator.set_params(verbose=0)
    if isinstance(step, TextVectorizer):
        step.set_params(verbose=0)  # whoever loads the model has not asked for bars
    steps = [] if step is None else [("features", step)]
    pipeline = Pipeline([*steps, ("model", estimator)])
    data = rows.notes | {"trained_on": len(train_rows.labels), "columns": int(estimator.n_features_in_)}
    answers: dict[str, Any] = {}
    if choices.compact is not None:
        # Measured before and after, since what is kept is what is to be measured.
        answers["before compacting"] = pipeline.predict(test.features) if len(test.labels) else None
        data["dropped_columns"] = modelfile.compact_model(estimator, choices.compact)
    metadata: dict[str, Any] = {
        "inputs": asdict(inputs),
        "choices": asdict(choices) | {"C": float(estimator.C), "gamma": searching.best_params_.get("gamma")},
        "data": data,
        "search": search | {"best_C": searching.best_C_} if choices.C is None else None,
        "metrics": measured(pipeline, test, train_rows.labels, answers) if len(test.labels) else None,
    }
    return Trained(pipeline, metadata, test)


def measured(pipeline: Pipeline, test: Rows, train_labels: NDArray[Any], others: dict[str, Any]) -> dict[str, Any]:
    """All measures on the test rows, of the model, of other answers, and of two that need no model."""
    order = pipeline.classes_
    places = np.sort(rank_numbers(train_labels, order))
    answers = {
        "model": pipeline.predict(test.features),
        **others,
        "majority": np.full(len(test.labels), order[np.argmax(np.bincount(places))]),
        "median": np.full(len(test.labels), order[places[len(places) // 2]]),
    }
    return {"rows": len(test.labels)} | {name: measures(test.labels, answer, order) for name, answer in answers.items()}


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
