"""Which columns of a table are features, ranks and groups, and the rows that a model is trained on."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from rankplane.inputs.batches import Batch, InputError
from rankplane.inputs.reading import LABEL, widened
from rankplane.options import named
from rankplane.tabular import BOOLEANS, as_number, is_missing, is_number, unfit

FEW_VALUES = 20  # that a small table may hold and still be of ranks or categories
DATE = re.compile(r"\s*\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?\s*(Z|UTC|[+-]\d\d(:?\d\d)?)?)?\s*")
RARE = "its values hardly ever occur twice"


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
        check_ranks(ranks)
        if batch.matrix is not None:
            if text:
                raise InputError(f"{source} has no text columns: svmlight files hold numbers.")
            if group:
                raise InputError(f"{source} has no column to group by: svmlight files hold numbers.")
            return cls(target or LABEL, ranks=ranks, n_columns=batch.matrix.shape[1])
        if target is None:
            raise InputError(f"{named('target')} must name the column of {source} that holds the ranks.")
        for name in [target, *text, *([group] if group else [])]:
            batch.column(name, source)
        if target in text:
            raise InputError(f'{named("text")} must not name "{target}", the column of the ranks: the model would read its answer.')
        if target == group:
            raise InputError(f'{named("group")} must not name "{target}", the column of the ranks.')
        others = [
            name
            for name, values in batch.columns.items()
            if name not in (target, group) and not text and reason_to_leave_out(name, values) is None
        ]
        if not text and not others:
            found = f'{source} has no column of numbers or categories beside "{target}"'
            raise InputError(f"{found}: name columns of texts by {named('text')}.")
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
        return ["\n".join(parts) for parts in zip(*(texts_of(batch, source, name) for name in self.text), strict=True)]

    def labels(self, batch: Batch, source: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """The ranks, and the numbers of the rows that have one."""
        values = batch.column(self.target, source)
        check_plain(batch, source, self.target, "ranks")
        names = set(self.ranks or ())  # a rank may well be called "none"
        is_present = [not is_missing(value) or str(value).strip() in names for value in values]
        present = np.flatnonzero(np.array(is_present, dtype=bool))
        find = number_of if self.ranks is None else rank_finder(self.ranks)
        found = [find(values[row]) for row in present.tolist()]
        for row, label in zip(present.tolist(), found, strict=True):
            if label is not None:
                continue
            where, value = f"{source} line {batch.lines[row]}", shortened(str(values[row]).strip())
            if self.ranks is not None:
                raise InputError(f'{where}: "{value}" is not one of the ranks {", ".join(self.ranks)}.')
            raise InputError(
                f'{where}: "{value}" in column "{self.target}" is not a number; '
                f"ranks that are words need their order in training: {named('ranks', 'low,medium,high')}."
            )
        labels = np.array(found)
        # Beyond 2**53 not every whole number is one of floating point.
        if self.ranks is None and len(labels) and np.all(labels % 1 == 0) and np.abs(labels).max() < 2**53:
            labels = labels.astype(np.int64)
        return labels, present


def number_of(value: Any) -> float | None:
    """The rank that a value is without a list of names: a finite number."""
    return as_number(value) if is_number(value) and np.isfinite(as_number(value)) else None


def check_ranks(ranks: Sequence[str] | None) -> None:
    """Refuse ranks that are named twice in different words."""
    if ranks is not None and all(map(is_number, ranks)) and len(set(map(as_number, ranks))) < len(ranks):
        given = ",".join(ranks)
        raise InputError(f"{named('ranks')} must name different ranks, but some of these numbers are equal. Got {given}.")


def rank_finder(ranks: Sequence[str]) -> Callable[[Any], str | None]:
    """What finds the rank that a value names: "2.0" is 2 where all ranks are numbers, and a boolean has no capitals."""
    by_number = {as_number(rank): rank for rank in ranks} if all(map(is_number, ranks)) else {}
    booleans = {rank.lower(): rank for rank in ranks if rank.lower() in BOOLEANS}

    def find(value: Any) -> str | None:
        whole = isinstance(value, float) and value % 1 == 0  # as tables with gaps hold whole numbers
        word = str(int(value) if whole else value).strip()
        if word in ranks:
            return word
        if by_number and is_number(value):
            return by_number.get(as_number(value))
        return booleans.get(word.lower())

    return find


def reason_to_leave_out(name: str, values: Sequence[Any]) -> str | None:
    """Why a column is no feature: neither numbers nor categories can be made of it."""
    present = [value for value in values if not is_missing(value)]
    if not name:
        return "it has no name"
    if not present:
        return "all its values are missing"
    if kind := next(filter(None, map(unfit, present)), None):
        return f"it holds {kind}"
    # As parquet's dates are, whose type tells.
    if all(isinstance(value, str) and DATE.fullmatch(value) for value in present):
        return "it holds dates or times"
    return RARE if holds_texts(values) else None


def check_plain(batch: Batch, source: str, name: str, purpose: str, allowed: Collection[str] = ("bytes", "dates or times")) -> None:
    """Refuse values of a column that its purpose has no use for."""
    values = batch.column(name, source)
    if set(map(type, values)) <= {str, int, float, bool, type(None)}:
        return
    for value, line in zip(values, batch.lines, strict=True):
        kind = unfit(value)
        if kind and kind not in allowed:
            shown = shortened(str(value))
            raise InputError(f'{source} line {line}: column "{name}" holds {kind}, which are no {purpose}. Got {shown}.')


def texts_of(batch: Batch, source: str, name: str) -> list[str]:
    check_plain(batch, source, name, "texts", allowed=())
    return ["" if value is None or value != value else str(value) for value in batch.column(name, source)]


def shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def holds_numbers(values: Sequence[Any]) -> bool:
    present = [value for value in values if not is_missing(value)]
    return bool(present) and all(map(is_number, present))


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
    fields: dict[str, list[Any]] = field(default_factory=dict)  # what texts were joined from

    def take(self, rows: NDArray[np.intp]) -> "Rows":
        return Rows(take(self.features, rows), self.labels[rows], self.together[rows], self.notes, take(self.fields, rows))


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
        used = [*inputs.text, *inputs.columns]
        notes["missing_values"] = {name: sum(map(is_missing, take(batch.column(name, source), present))) for name in used}
    if inputs.kind == "table":
        others = batch.columns.keys() - {*used, inputs.target, inputs.group}
        left_out = {name: values for name, values in batch.columns.items() if name in others}
        notes["left_out"] = {name: reason_to_leave_out(name, values) or RARE for name, values in left_out.items()}
    identity = np.arange(len(labels))
    if inputs.kind == "text":
        numbers: dict[str, int] = {}
        identity = np.array([numbers.setdefault(text, len(numbers)) for text in features], dtype=np.intp)
        notes["number_texts"] = [name for name in inputs.text if holds_numbers(batch.column(name, source))]
        notes["empty_texts"] = sum(not text.strip() for text in features)
        notes["duplicate_texts"] = len(features) - len(numbers)
    groups = None
    if inputs.group is not None:
        check_plain(batch, source, inputs.group, "groups")
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
    return Rows(features, labels, joined(identity, groups), notes, joined_fields(batch, source, inputs, present))


def joined_fields(batch: Batch, source: str, inputs: Inputs, present: NDArray[np.intp]) -> dict[str, list[Any]]:
    """The columns that texts are joined from, to be shown under their names; none where a single column is the text."""
    return {name: take(batch.column(name, source), present) for name in inputs.text} if len(inputs.text) > 1 else {}


def join_quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def joined(identity: NDArray[np.intp], groups: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """Rows that share a text or a group, directly or over others, get the same number."""
    if groups is None:
        return identity
    n_texts = int(identity.max()) + 1
    n_nodes = n_texts + int(groups.max()) + 1
    edges = coo_matrix((np.ones(len(groups)), (identity, groups + n_texts)), shape=(n_nodes, n_nodes))
    return np.asarray(connected_components(edges, directed=False)[1][identity], dtype=np.intp)
