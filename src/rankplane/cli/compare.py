"""The command compare: two models on the same rows."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from rankplane.cli import display
from rankplane.cli.commands import check_outputs, in_bytes, matrix_of, printed, warn_if_trained_on, warn_if_unfamiliar
from rankplane.files import is_special
from rankplane.inputs import writing
from rankplane.inputs.reading import Batch, Dialect, Fingerprint, InputError, OnRead, called, files_of, printable, read_batches
from rankplane.inputs.schema import take
from rankplane.progress import reading_progress, working
from rankplane.training import measuring
from rankplane.training.cautions import VocabularyCheck
from rankplane.training.model import TrainedModel
from rankplane.training.wording import HEADINGS, format_measure
from rankplane.upkeep.comparing import CONFIDENCE, FEW, Changed, Difference, differences, most_changed
from rankplane.validation import rank_numbers

N_SHOWN = 10  # rows that changed
LONGEST = 200  # characters of a row that are kept to be shown
SHORTEST = 20  # characters of a row that are shown even where they do not fit
LONGEST_RANK = 12
ANSWERS = ("true", "model", "other")
ADDED = ("prediction", "other_prediction")  # columns of the rows that are written


@dataclass
class Compared:
    """Rows with a rank: the file and the line, the rank, and the answers of both models; and a few words of those that differ."""

    files: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    true: list[Any] = field(default_factory=list)
    answers: tuple[list[Any], list[Any]] = field(default_factory=lambda: ([], []))
    words: dict[int, str] = field(default_factory=dict)  # by the number of the row


def compare(model_path: str, other_path: str, given: Sequence[str], output: str | None, dialect: Dialect, as_json: bool) -> None:
    """Measure two models on the same rows, and show by how much they differ, and where."""
    files = files_of(given)
    if output is not None:
        writing.check_output(output)
        check_outputs([output], [model_path, other_path, *files])
    paths = model_path, other_path
    models = TrainedModel.open(model_path).on_threads(-1), TrainedModel.open(other_path).on_threads(-1)
    check_comparable(paths, models)
    source = called(files)
    found, fingerprint = Compared(), Fingerprint()
    checks = tuple(VocabularyCheck(model) for model in models)

    def changed_batches(on_read: OnRead) -> Iterator[Batch]:
        with closing(read_batches(files, on_read=on_read, dialect=dialect, fingerprint=fingerprint)) as batches:
            for batch in batches:
                yield compared(batch, models, checks, found)

    with reading_progress(sys.stderr.isatty(), f"Reading {os.path.basename(source)}") as on_read:
        if output is None:
            for _ in changed_batches(on_read):
                pass
        else:
            writing.write_batches(output, changed_batches(on_read))
    if not found.true:
        raise InputError(f"{source} has no rows with a rank.")
    for model_name, model, check in zip(paths, models, checks, strict=True):
        warn_if_trained_on(model_name, model, files, fingerprint)
        warn_if_unfamiliar(model_name, source, check)
    order = models[0].classes
    true, first, second = (rank_numbers(np.array(labels), order) for labels in (found.true, *found.answers))
    with working(sys.stderr.isatty(), "Comparing"):
        measured = differences(true, first, second)
    changed, examples = Changed.of(true, first, second), examples_of(found, most_changed(true, first, second, N_SHOWN))
    matrices = [measuring.confusion(order[true], order[numbers], order) for numbers in (first, second)]
    if as_json:
        measures = {name: asdict(of) | {"difference": of.value, "verdict": of.verdict} for name, of in measured.items()}
        confusions = dict(zip(("model", "other"), (matrix.tolist() for matrix in matrices), strict=True))
        rows = {"rows": len(true), "measures": measures, "ranks": order.tolist(), "confusion": confusions}
        printed(rows | {"changed": asdict(changed) | {"examples": examples}})
        return
    console, names = Console(), names_of(paths)
    show_differences(console, measured, names, len(true), os.path.basename(source))
    show_confusions(console, matrices, names, order.tolist())
    show_changed(console, changed, examples, names, len(true), has_files=len(files) > 1)
    if output is not None and not is_special(output):
        console.print(Text.assemble("Written: ", (output, "bold"), f" ({in_bytes(os.path.getsize(output))})"), soft_wrap=True)


def check_comparable(paths: tuple[str, str], models: tuple[TrainedModel, TrainedModel]) -> None:
    """Refuse models that predict different things."""
    targets, orders = [model.inputs.target for model in models], [model.classes.tolist() for model in models]
    if targets[0] != targets[1]:
        raise InputError(
            f'{paths[0]} predicts "{targets[0]}", but {paths[1]} predicts "{targets[1]}": models of one column can be compared.'
        )
    if orders[0] != orders[1]:
        listed = [", ".join(map(str, order)) for order in orders]
        raise InputError(
            f"{paths[0]} has the ranks {listed[0]}, but {paths[1]} has {listed[1]}: only models of the same ranks can be compared."
        )


def compared(
    batch: Batch, models: tuple[TrainedModel, TrainedModel], checks: tuple[VocabularyCheck, ...], found: Compared
) -> Batch:
    """Add the rows of a batch to what was found; returns those whose ranks differ."""
    source = batch.file_of(0, "")
    labels, present = models[0].inputs.labels(batch, source)
    lines = [batch.lines[row] for row in present.tolist()]
    measuring.check_known(labels, present, batch, models[0].classes, source)
    taken = next((name for name in ADDED if name in batch.columns), None)
    if taken is not None:
        raise InputError(f'{source} has a column "{taken}" already.')
    answers: list[NDArray[Any]] = []
    words: list[str] = []
    for model, check in zip(models, checks, strict=True):
        features, X = matrix_of(model, batch, present)
        answers.append(model.predict(X) if len(lines) else labels)
        if len(lines):
            check.add(features, X)
        words = words or in_words(features, len(lines))
    differing = np.flatnonzero(answers[0] != answers[1])
    found.words |= {len(found.true) + row: words[row] for row in differing.tolist()}
    found.files += [source] * len(lines)
    found.lines += lines
    found.true += labels.tolist()
    for held, new in zip(found.answers, answers, strict=True):
        held += new.tolist()
    rows = present[differing]
    added = {name: new[differing].tolist() for name, new in zip(ADDED, answers, strict=True)}
    return Batch(take(batch.columns, rows) | added, [batch.lines[row] for row in rows.tolist()], schema=batch.schema)


def in_words(features: Any, n_rows: int) -> list[str]:
    """The texts, or the columns of tables, on one line each; nothing of a matrix."""
    if isinstance(features, dict):
        return [
            ", ".join(f"{name} {value}" for name, value in zip(features, values, strict=True))[:LONGEST]
            for values in zip(*features.values(), strict=True)
        ]
    return [" ".join(text.split())[:LONGEST] for text in features] if isinstance(features, Sequence) else [""] * n_rows


def examples_of(found: Compared, rows: NDArray[np.intp]) -> list[dict[str, Any]]:
    return [
        {
            "file": found.files[row],
            "line": found.lines[row],
            "true": found.true[row],
            "model": found.answers[0][row],
            "other": found.answers[1][row],
            "text": found.words[row],
        }
        for row in rows.tolist()
    ]


def names_of(paths: tuple[str, str]) -> tuple[str, str]:
    """The names of the files; with their folders if they are the same."""
    first, second = map(os.path.basename, paths)
    return (first, second) if first != second else paths


def show_differences(console: Console, found: dict[str, Difference], names: tuple[str, str], n_rows: int, file: str) -> None:
    display.title(console, f"Measured on {n_rows:,} rows of {file}")
    table = display.plain_table()
    table.add_column("")
    for heading in (*names, "difference", f"{CONFIDENCE:.0%} interval"):
        table.add_column(Text(heading), justify="right", no_wrap=heading not in names)
    table.add_column("", no_wrap=True)
    for measure in HEADINGS:
        of = found[measure]
        table.add_row(
            display.heading_of(measure),
            format_measure(of.model),
            format_measure(of.other),
            signed(of.value),
            f"{signed(of.low)} to {signed(of.high)}",
            {"better": "[bold green]better", "worse": "[bold red]worse"}.get(of.verdict, ""),
        )
    console.print(table)
    note = "↑ more is better, ↓ less is better. Without a word, the difference may be chance"
    console.print(Text(note, style="dim"))
    if n_rows < FEW:
        console.print(Text(f"{n_rows} rows are few: the intervals are rough.", style="bold"))


def signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.3f}"


def show_confusions(console: Console, matrices: list[NDArray[np.intp]], names: tuple[str, str], order: list[Any]) -> None:
    """Side by side if they fit, else one below the other."""
    tables = [display.confusion_table(matrix, order, order) for matrix in matrices]
    both = Table.grid(padding=(0, 6, 0, 0))
    both.add_row(*(Text(name, style="bold") for name in names))
    both.add_row(*tables)
    if Measurement.get(console, console.options.update(max_width=10**6), both).maximum <= console.width:
        display.title(console, "True ranks by row, predicted ranks by column")
        console.print(both)
        return
    for name, matrix in zip(names, matrices, strict=True):
        display.title(console, name)
        display.show_confusion(console, matrix, order)


def show_changed(
    console: Console, changed: Changed, examples: list[dict[str, Any]], names: tuple[str, str], n_rows: int, *, has_files: bool
) -> None:
    if not changed.rows:
        display.title(console, f"The same ranks for all {n_rows:,} rows")
        return
    as_far = changed.rows - changed.nearer - changed.further
    display.title(console, f"{changed.rows:,} of {n_rows:,} rows have another rank with {names[1]}")
    console.print(
        f"nearer to the truth: {changed.nearer:,}, further from it: {changed.further:,}, as far: {as_far:,}", highlight=False
    )
    columns: list[tuple[str, ...]] = [("line", "true", *names)]
    for row in examples:
        place = f"{os.path.basename(row['file'])}:{row['line']}" if has_files else f"{row['line']:,}"
        columns.append((printable(place), *(str(display.name_of(row[name], LONGEST_RANK)) for name in ANSWERS)))
    # What is left of the screen beside the numbers.
    room = max(console.width - sum(max(map(cell_len, column)) + 2 for column in zip(*columns, strict=True)) - 4, SHORTEST)
    table = display.plain_table()
    for heading in columns[0]:
        table.add_column(Text(heading), justify="right", no_wrap=True)
    table.add_column("row", no_wrap=True)
    for cells, row in zip(columns[1:], examples, strict=True):
        words = Text(printable(row["text"]))
        words.truncate(room, overflow="ellipsis")
        table.add_row(*map(Text, cells), words)
    console.print(table)
