"""Which columns of a table are features, ranks and groups, and the rows that a model is trained on."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import filterfalse
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from rankplane.inputs.batches import Batch, InputError
from rankplane.inputs.reading import LABEL, packed, widened
from rankplane.options import named
from rankplane.spreading import DATE, spread_of
from rankplane.tabular import BOOLEANS, CellError, as_number, as_numbers, check_finite, is_missing, is_number, unfit
from rankplane.text.packed import Texts

FEW_VALUES = 20  # that a small table may hold and still be of ranks or categories
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
    are_named: bool = False  # columns: only those that were asked for, instead of all that can be features

    @classmethod
    def of(
        cls,
        batch: Batch,
        source: str,
        *,
        target: str | None,
        text: Sequence[str],
        group: str | None,
        ranks: Any,
        columns: Sequence[str] = (),
    ) -> "Inputs":
        """The inputs that were named. Without names, all columns are features that numbers or categories can be made of."""
        check_ranks(ranks)
        if batch.matrix is not None:
            for name, asked in {"text": text, "column": columns}.items():
                if asked:
                    kind = "text columns" if name == "text" else "columns with names"
                    raise InputError(f"{source} has no {kind}: svmlight files hold numbers.")
            if group:
                raise InputError(f"{source} has no column to group by: svmlight files hold numbers.")
            return cls(target or LABEL, ranks=ranks, n_columns=batch.matrix.shape[1])
        if target is None:
            raise InputError(f"{named('target')} must name the column of {source} that holds the ranks.")
        for name in [target, *text, *columns, *([group] if group else [])]:
            batch.column(name, source)
        for option, names in {"text": text, "column": columns}.items():
            if target in names:
                raise InputError(
                    f'{named(option)} must not name "{target}", the column of the ranks: the model would see what to predict.'
                )
        if target == group:
            raise InputError(f'{named("group")} must not name "{target}", the column of the ranks.')
        for name in columns:
            check_column(name, batch.column(name, source), text, columns)
        if text or columns:
            return cls(target, list(text), list(columns), ranks, group=group, are_named=bool(columns))
        others = [
            name
            for name, values in batch.columns.items()
            if name not in (target, group) and reason_to_leave_out(name, values) is None
        ]
        if not others:
            found = f'{source} has no column of numbers or categories beside "{target}"'
            raise InputError(f"{found}: name columns of texts by {named('text')}.")
        return cls(target, [], others, ranks, group=group)

    @property
    def names(self) -> list[str]:
        """All columns that are needed to measure a model."""
        return [self.target, *self.text, *self.columns]

    @property
    def kind(self) -> str:
        if self.text:
            return "mixed" if self.columns else "text"
        return "table" if self.columns else "svmlight"

    def features(self, batch: Batch, source: str) -> Any:
        """Texts, columns, or a matrix: what the first step of the model takes."""
        if self.kind == "svmlight":
            if batch.matrix is None:
                raise InputError(f"{source} must be an svmlight file, as in training.")
            return widened(batch.matrix, self.n_columns or 0)
        if self.columns:
            texts = {name: texts_of(batch, source, name) for name in self.text}
            return texts | {name: batch.column(name, source) for name in self.columns}
        columns = [texts_of(batch, source, name) for name in self.text]
        return joined_texts(columns)

    def labels(self, batch: Batch, source: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """The ranks, and the numbers of the rows that have one."""
        values = list(batch.column(self.target, source))
        check_plain(batch, source, self.target, "ranks")
        names = set(self.ranks or ())  # a rank may well be called "none"
        is_present = [not is_missing(value) or str(value).strip() in names for value in values]
        present = np.flatnonzero(np.array(is_present, dtype=bool))
        find = number_of if self.ranks is None else rank_finder(self.ranks)
        found = [find(values[row]) for row in present.tolist()]
        for row, label in zip(present.tolist(), found, strict=True):
            if label is not None:
                continue
            where, value = batch.where(row, source), shortened(str(values[row]).strip())
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


def check_column(name: str, values: Sequence[Any], text: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a column that was named, but cannot be a feature."""
    if name in text:
        raise InputError(f'{named("column")} must not name "{name}", which {named("text")} names.')
    if Counter(columns)[name] > 1:
        raise InputError(f'{named("column")} must name different columns. Got "{name}" twice.')
    reason = reason_to_leave_out(name, values)
    if reason is None or spread_of(values) is not None:
        return
    remedy = f": name it by {named('text')}" if reason == RARE else ""
    raise InputError(
        f'{named("column")} must name columns of numbers, categories, dates or lists of numbers. Of "{name}", {reason}{remedy}.'
    )


def check_plain(batch: Batch, source: str, name: str, purpose: str, allowed: Collection[str] = ("bytes", "dates or times")) -> None:
    """Refuse values of a column that its purpose has no use for."""
    values = batch.column(name, source)
    if isinstance(values, Texts) or set(map(type, values)) <= {str, int, float, bool, type(None)}:
        return
    for row, value in enumerate(values):
        kind = unfit(value)
        if kind and kind not in allowed:
            where, shown = batch.where(row, source), shortened(str(value))
            raise InputError(f'{where}: column "{name}" holds {kind}, which are no {purpose}. Got {shown}.')


def check_numbers(batch: Batch, source: str, name: str, rows: NDArray[np.intp]) -> None:
    """Refuse infinite numbers among these rows of a column of numbers."""
    values = take(batch.column(name, source), rows)
    try:
        numbers = as_numbers(values)
    except CellError:  # words
        return
    try:
        check_finite(name, numbers, values)
    except CellError as error:
        raise InputError(f"{batch.where(int(rows[error.row]), source)}: {error}") from None


def texts_of(batch: Batch, source: str, name: str) -> Sequence[str]:
    check_plain(batch, source, name, "texts", allowed=())
    values = batch.column(name, source)
    if isinstance(values, Texts):
        return values.filled()
    return ["" if value is None or value != value else str(value) for value in values]


def joined_texts(columns: Sequence[Any]) -> Any:
    """The texts of columns, as a model sees them."""
    return columns[0] if len(columns) == 1 else ["\n".join(parts) for parts in zip(*columns, strict=True)]


def shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


def holds_numbers(values: Sequence[Any]) -> bool:
    # One by one, since most columns of texts show at once that they are no numbers.
    present = filterfalse(is_missing, values)
    first = next(present, None)
    return first is not None and is_number(first) and all(map(is_number, present))


def holds_texts(values: Sequence[Any]) -> bool:
    """Whether a column is words that hardly ever occur twice: texts, names, keys, nothing that categories can be made of."""
    words = [value for value in values if isinstance(value, str) and not is_missing(value) and not is_number(value)]
    return len(set(words)) > max(FEW_VALUES, len(values) // 2)


@dataclass(frozen=True)
class Rows:
    """Features and ranks of the rows that have a rank, and which rows must stay together."""

    features: Any
    labels: NDArray[Any]
    groups: NDArray[np.intp]
    notes: dict[str, Any]
    fields: dict[str, Sequence[Any]] = field(default_factory=dict)  # what texts were joined from

    def take(self, rows: NDArray[np.intp]) -> "Rows":
        return Rows(take(self.features, rows), self.labels[rows], self.groups[rows], self.notes, take(self.fields, rows))

    def packed(self) -> "Rows":
        """A copy that shares no memory with the texts of other rows."""

        def own(values: Any) -> Any:
            return values.packed() if isinstance(values, Texts) else values

        is_table = isinstance(self.features, dict)
        features = {name: own(values) for name, values in self.features.items()} if is_table else own(self.features)
        return replace(self, features=features, fields={name: own(values) for name, values in self.fields.items()})

    def drained(self) -> Any:
        """The features for whoever reads them once; these rows forget them, so that their memory is free."""
        if isinstance(self.features, Texts):
            return self.features.drained()
        if not isinstance(self.features, dict):
            return self.features
        columns = dict(self.features)
        self.features.clear()
        return columns

    def sampled(self, n_rows: int) -> NDArray[np.intp]:
        """The numbers of about so many rows, evenly spread."""
        return np.arange(0, len(self.labels), max(1, -(-len(self.labels) // n_rows)))

    def sample(self, n_rows: int) -> "Rows":
        return self.take(self.sampled(n_rows))


def take(features: Any, rows: NDArray[np.intp]) -> Any:
    """Some rows of a matrix, of a column, or of columns by their names. Packed texts share their memory with the others."""
    if isinstance(features, dict):
        return {name: take(values, rows) for name, values in features.items()}
    if isinstance(features, Texts):
        return features.take(rows)
    return [features[row] for row in rows.tolist()] if isinstance(features, Sequence) else features[rows]


def prepare(batch: Batch, source: str, inputs: Inputs) -> Rows:
    """Look at a whole table: what is missing, what occurs twice."""
    labels, present = inputs.labels(batch, source)
    features = take(inputs.features(batch, source), present)
    features = packed_texts(features, inputs)
    texts = texts_in(features, inputs)
    texts = None if texts is None else cast(Texts, packed(texts))
    notes: dict[str, Any] = {"rows": len(batch), "missing_target": len(batch) - len(present)}
    if inputs.kind != "svmlight":
        used = [*inputs.text, *inputs.columns]
        notes["missing_values"] = {name: sum(map(is_missing, take(batch.column(name, source), present))) for name in used}
        for name in inputs.columns:
            check_numbers(batch, source, name, present)
    if inputs.kind == "table" and not inputs.are_named:
        others = batch.columns.keys() - {*used, inputs.target, inputs.group}
        left_out = {name: values for name, values in batch.columns.items() if name in others}
        notes["left_out"] = {name: reason_to_leave_out(name, values) or RARE for name, values in left_out.items()}
    identity = np.arange(len(labels))
    if texts is not None:
        identity = texts.alike()
        notes["number_texts"] = [name for name in inputs.text if holds_numbers(batch.column(name, source))]
        notes["empty_texts"] = sum(not text.strip() for text in texts)
        notes["duplicate_texts"] = len(texts) - len(np.unique(identity))
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
    if inputs.text and notes["empty_texts"] == len(labels):
        columns = join_quoted(inputs.text)
        raise InputError(f"{source} has no text in column {columns}: all {len(labels):,} rows with a rank are empty there.")
    return Rows(features, labels, joined(identity, groups), notes, joined_fields(batch, source, inputs, present))


def texts_in(features: Any, inputs: Inputs) -> Any:
    """The texts of features, those of several columns joined; None if there are none."""
    return joined_texts([features[name] for name in inputs.text]) if inputs.kind == "mixed" else features if inputs.text else None


def packed_texts(features: Any, inputs: Inputs) -> Any:
    """Features whose texts take less memory."""
    if inputs.kind == "mixed":
        return features | {name: packed(features[name]) for name in inputs.text}
    return packed(features) if inputs.text else features


def joined_fields(batch: Batch, source: str, inputs: Inputs, present: NDArray[np.intp]) -> dict[str, Sequence[Any]]:
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
