"""From a table to a measured model: what ``rankplane train`` does, without the printing.

The model that is measured is the model that is kept: rows held out for the measuring are never trained on. Rows with the same text
stay on one side of the split, since a copy of a training row says nothing about new rows.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.pipeline import Pipeline

from rankplane import modelfile
from rankplane.metrics import MEASURES
from rankplane.ordinal import LinearOrdinal
from rankplane.reading import LABEL, Batch, InputError, widened
from rankplane.search import CSearchCV
from rankplane.tabular import ColumnEncoder, is_missing
from rankplane.text import TextVectorizer

DECISIONS = ("mae", "mse", "accuracy", "ranker")


@dataclass(frozen=True)
class Inputs:
    """Which columns of a table are features, and which one is the target."""

    target: str
    text: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    ranks: list[str] | None = None
    n_columns: int | None = None  # of an svmlight file

    @classmethod
    def of(cls, batch: Batch, source: str, *, target: str | None, text: Sequence[str], group: str | None, ranks: Any) -> "Inputs":
        if batch.matrix is not None:
            if text:
                raise InputError(f"{source} has no text columns: svmlight files hold numbers.")
            return cls(target or LABEL, ranks=ranks, n_columns=batch.matrix.shape[1])
        if target is None:
            raise InputError(f"--target must name the column of {source} that holds the ranks.")
        for name in [target, *text, *([group] if group else [])]:
            batch.column(name, source)
        others = [name for name in batch.columns if name not in (target, group)]
        if not text and not others:
            raise InputError(f'{source} has no column beside "{target}" to learn from.')
        return cls(target, list(text), [] if text else others, ranks)

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
        present = np.array([row for row, value in enumerate(values) if not is_missing(value)], dtype=np.intp)
        found: list[Any] = []
        for row in present.tolist():
            value = values[row]
            if self.ranks is not None:
                label = str(value).strip()
                if label not in self.ranks:
                    raise InputError(
                        f'{source} line {batch.lines[row]}: "{label}" is not one of the ranks {", ".join(self.ranks)}.'
                    )
                found.append(label)
                continue
            try:
                number = float(value)
            except (TypeError, ValueError):
                number = np.nan
            if not np.isfinite(number):
                raise InputError(
                    f'{source} line {batch.lines[row]}: "{value}" in column "{self.target}" is not a number; '
                    "if ranks are words, give their order: --ranks low,medium,high."
                )
            found.append(number)
        labels = np.array(found)
        if self.ranks is None and len(labels) and np.all(labels % 1 == 0):
            labels = labels.astype(np.int64)
        return labels, present


@dataclass(frozen=True)
class Rows:
    """Features and ranks of the rows that have a rank, and which rows must stay together."""

    features: Any
    labels: NDArray[Any]
    groups: NDArray[np.intp] | None  # as the user named them
    together: NDArray[np.intp]
    notes: dict[str, Any]

    def take(self, rows: NDArray[np.intp]) -> "Rows":
        features = take(self.features, rows)
        groups = None if self.groups is None else self.groups[rows]
        return Rows(features, self.labels[rows], groups, self.together[rows], self.notes)


def take(features: Any, rows: NDArray[np.intp]) -> Any:
    if isinstance(features, dict):
        return {name: [values[row] for row in rows] for name, values in features.items()}
    return [features[row] for row in rows] if isinstance(features, list) else features[rows]


def prepare(batch: Batch, source: str, inputs: Inputs, group: str | None) -> Rows:
    """Look at a whole table: what is missing, what occurs twice."""
    labels, present = inputs.labels(batch, source)
    features = take(inputs.features(batch, source), present)
    notes: dict[str, Any] = {"rows": len(batch), "missing_target": len(batch) - len(present)}
    if inputs.kind == "table":
        notes["missing_values"] = {name: sum(map(is_missing, values)) for name, values in features.items()}
    identity = np.arange(len(labels))
    if inputs.kind == "text":
        numbers: dict[str, int] = {}
        identity = np.array([numbers.setdefault(text, len(numbers)) for text in features], dtype=np.intp)
        notes["empty_texts"] = sum(not text.strip() for text in features)
        notes["duplicate_texts"] = len(features) - len(numbers)
    groups = None
    if group is not None:
        values = [str(value) for value in take(batch.column(group, source), present)]
        groups = np.unique(values, return_inverse=True)[1].ravel()
    distinct, counts = np.unique(labels, return_counts=True)
    notes["ranks"] = {str(label): int(count) for label, count in zip(distinct.tolist(), counts.tolist(), strict=True)}
    if len(distinct) < 2:
        raise InputError(f'{source} must hold at least two different ranks in column "{inputs.target}": it has {len(distinct)}.')
    return Rows(features, labels, groups, joined(identity, groups), notes)


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
    _, first, member = np.unique(rows.together, return_index=True, return_inverse=True)
    rng = np.random.default_rng(seed)
    is_held = np.zeros(len(first), dtype=bool)
    for rank in np.unique(rows.labels):
        sets = rng.permutation(np.flatnonzero(rows.labels[first] == rank))
        is_held[sets[: round(share * len(sets))]] = True
    held = is_held[member.ravel()]
    return np.flatnonzero(~held), np.flatnonzero(held)


@dataclass(frozen=True)
class Choices:
    """What the user may choose; the command line's options have the same names."""

    model: str = "NPSVOR"
    preset: str = "default"
    C: float | None = None
    decision: str = "mae"
    holdout: float = 0.2
    seed: int = 0
    jobs: int | None = None

    def check(self) -> None:
        if self.model not in modelfile.MODELS:
            raise InputError(f"--model must be one of {', '.join(modelfile.MODELS)}. Got {self.model}.")
        if self.decision not in DECISIONS:
            raise InputError(f"--decision must be one of {', '.join(DECISIONS)}. Got {self.decision}.")
        if not 0 <= self.holdout < 1:
            raise InputError(f"--holdout must be a share from 0 to below 1. Got {self.holdout}.")
        if self.C is not None and not self.C > 0:
            raise InputError(f"--C must be a positive number. Got {self.C}.")
        if self.seed < 0:
            raise InputError(f"--seed must be a number from 0 up. Got {self.seed}.")


@dataclass(frozen=True)
class Trained:
    """A model and what is known about it."""

    pipeline: Pipeline
    metadata: dict[str, Any]
    test: Rows


def train(rows: Rows, inputs: Inputs, choices: Choices, test: Rows | None = None, verbose: int = 0) -> Trained:
    """Fit on the training rows; measure on the held-out ones."""
    choices.check()
    if test is None:
        training, held = hold_out(rows, choices.holdout, choices.seed)
        if choices.holdout and not len(held):
            raise InputError(
                f"--holdout {choices.holdout} of {len(rows.labels)} rows leaves none to measure on; use a larger share or 0."
            )
        train_rows, test = rows.take(training), rows.take(held)
    else:
        train_rows = rows
    if len(np.unique(train_rows.labels)) < 2:
        raise InputError("After the holdout, only one rank is left to train on; use a smaller share.")
    step: Any = None
    if inputs.kind == "text":
        step = TextVectorizer(choices.preset, n_jobs=choices.jobs, verbose=verbose)
        if len(train_rows.labels) < 50:
            step.set_params(min_df=1)  # of so few texts, every word counts
    elif inputs.kind == "table":
        step = ColumnEncoder()
    X = train_rows.features if step is None else step.fit_transform(train_rows.features)
    options: dict[str, Any] = {"probability": True, "decision": choices.decision, "ranks": inputs.ranks}
    options |= {"random_state": choices.seed, "n_jobs": choices.jobs}
    estimator: LinearOrdinal = modelfile.MODELS[choices.model](**options)
    search: dict[str, Any] | None = None
    if choices.C is None:
        searching = CSearchCV(estimator, cv=min(5, len(train_rows.labels)), n_jobs=choices.jobs, verbose=verbose)
        searching.fit(X, train_rows.labels, groups=train_rows.groups)
        results = searching.cv_results_
        search = {"C": results["param_C"].tolist(), "mae": results["mean_test_score"].tolist(), "best_C": searching.best_C_}
        estimator = searching.best_estimator_
    else:
        estimator = estimator.set_params(C=choices.C, verbose=verbose).fit(X, train_rows.labels)
    estimator.set_params(verbose=0)
    if inputs.kind == "text":
        step.set_params(verbose=0)  # whoever loads the model has not asked for bars
    steps = [("features", step)] if step is not None else []
    pipeline = Pipeline([*steps, ("model", estimator)])
    metadata: dict[str, Any] = {
        "inputs": asdict(inputs),
        "choices": asdict(choices) | {"C": float(estimator.C)},
        "data": rows.notes | {"trained_on": len(train_rows.labels), "columns": int(estimator.n_features_in_)},
        "search": search,
        "metrics": measured(pipeline, test, train_rows.labels) if len(test.labels) else None,
    }
    return Trained(pipeline, metadata, test)


def measured(pipeline: Pipeline, test: Rows, train_labels: NDArray[Any]) -> dict[str, Any]:
    """All measures on the test rows, of the model and of two answers that need none."""
    order = pipeline.classes_
    positions = {label: place for place, label in enumerate(order.tolist())}
    places = np.array([positions[label] for label in train_labels.tolist()])
    answers = {
        "model": pipeline.predict(test.features),
        "majority": np.full(len(test.labels), order[np.argmax(np.bincount(places))]),
        "median": np.full(len(test.labels), order[np.sort(places)[len(places) // 2]]),
    }
    return {"rows": len(test.labels)} | {name: measures(test.labels, answer, order) for name, answer in answers.items()}


def measures(true: NDArray[Any], predicted: NDArray[Any], order: NDArray[Any]) -> dict[str, float]:
    return {name: measure(true, predicted, ranks=order) for name, (measure, _) in MEASURES.items()}


def check_known(labels: NDArray[Any], lines: Sequence[int], order: NDArray[Any], source: str) -> None:
    """Refuse ranks that training never saw."""
    known = set(order.tolist())
    for label, line in zip(labels.tolist(), lines, strict=True):
        if label not in known:
            listed = ", ".join(map(str, order.tolist()))
            raise InputError(f"{source} line {line}: rank {label} never occurred in training, whose ranks are {listed}.")
