"""What the command line shows: tables, bars, and texts coloured by their pull."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from rankplane.metrics import MEASURES
from rankplane.options import DECISIONS, with_options
from rankplane.prediction.explanations import Boundary, TopFeatures
from rankplane.training.cautions import KnownWords
from rankplane.training.highlights import FAINT, STRONG, marked, shaded, text_pulls
from rankplane.training.model import TrainedModel
from rankplane.training.wording import HEADINGS, data_notes, figure

EIGHTHS = " ▏▎▍▌▋▊▉"
N_TERMS = 8
LONGEST_NAME = 24


def bar(share: float, width: int = 30) -> str:
    """As long as the share, to an eighth of a cell."""
    whole, part = divmod(round(share * width * 8), 8)
    return ("█" * whole + EIGHTHS[part]).rstrip()


def plain_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)


def title(console: Console, words: str) -> None:
    """Not the title of a table, which wraps at the table's width."""
    console.print()
    console.print(Text(words, style="bold"))


def name_of(label: Any, longest: int = LONGEST_NAME) -> Text:
    """A rank; the end of a very long name is left out."""
    shown = Text(str(label))
    shown.truncate(longest, overflow="ellipsis")
    return shown


def boundary_of(found: Boundary | TopFeatures) -> Text:
    return Text(" | ").join(name_of(label, LONGEST_NAME // 2) for label in (found.lower, found.upper))


def show_data(console: Console, source: str, notes: dict[str, Any]) -> None:
    counts = notes["ranks"]
    console.print(Text.assemble((source, "bold"), f": {notes['rows']:,} rows, {len(counts)} ranks"), soft_wrap=True)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="cyan")
    most = max(counts.values())
    for rank, count in counts.items():
        table.add_row(name_of(rank), f"{count:,}", bar(count / most))
    console.print(table)
    for line in data_notes(notes):
        console.print(Text(line, style="dim"))


def show_warnings(console: Console, warnings: Sequence[str]) -> None:
    if warnings:
        console.print()
    for number, warning in enumerate(warnings):
        told = Text.assemble(("Warning: " if number == 0 else "", "bold reverse"), (warning, "bold"))
        console.print(told, soft_wrap=not console.is_terminal)  # whole sentences for whoever searches a log


def show_search(console: Console, search: dict[str, Any] | None, gamma: float | None) -> None:
    """Every value of C with its score, from zero, and how far scores of the folds spread."""
    at_gamma = "" if gamma is None else f" at gamma {gamma:.4g}"
    if search is None:
        if gamma is not None:
            title(console, f"gamma {gamma:.4g}")
        return
    title(console, f"C by cross-validation{at_gamma}")
    table = Table(box=None, pad_edge=False)
    table.add_column("C", justify="right")
    table.add_column(heading_of(search["measure"]), justify="right")
    table.add_column()
    table.add_column()
    best = search["C"].index(search["best_C"])
    spread = search.get("spread") or [0.0] * len(search["C"])
    most = max(*search["scores"], 1e-12)
    for place, (C, score) in enumerate(zip(search["C"], search["scores"], strict=True)):
        is_near = abs(score - search["scores"][best]) <= spread[best]
        note = "best" if place == best else "as good, within the spread" if is_near else ""
        cells = f"{C:g}", f"{score:.4f} ±{spread[place]:.4f}", bar(max(score, 0) / most, 20), note
        table.add_row(*cells, style="bold green" if place == best else "" if is_near else "dim")
    console.print(table)
    console.print(Text("± is the standard error over the folds", style="dim"))


def heading_of(measure: str) -> str:
    """The name of a measure, with an arrow to where it is better."""
    return f"{HEADINGS[measure]} {'↑' if MEASURES[measure][1] else '↓'}"


def show_metrics(console: Console, metrics: dict[str, Any] | None, source: str) -> None:
    if metrics is None:
        title(console, "Nothing is held out, so nothing is measured")
        return
    title(console, f"Measured on {metrics['rows']:,} {source}")
    table = plain_table()
    table.add_column("")
    for measure in HEADINGS:
        table.add_column(heading_of(measure), justify="right")
    for name, values in metrics.items():
        if name != "rows":
            table.add_row(name, *(figure(values[measure]) for measure in HEADINGS), style="bold" if name == "model" else "dim")
    console.print(table)
    console.print(Text("↑ more is better, ↓ less is better", style="dim"))


class Listed:
    """Terms one after the other; lines break between them only, unless one alone is too long for a line."""

    def __init__(self, terms: Sequence[tuple[str, float]], style: str, *, is_measured: bool) -> None:
        shown = [(name, signed(value)) for name, value in terms]
        self.words = (
            [f"{name} {value}" for name, value in shown if value != signed(0)] if is_measured else [name for name, _ in shown]
        )
        self.style = style

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widths = [cell_len(word) + 1 for word in self.words] or [0]
        return Measurement(min(max(widths), options.max_width), min(sum(widths) + len(widths), options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [""]
        for number, word in enumerate(self.words):
            piece = word + ("," if number < len(self.words) - 1 else "")
            if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(piece) > options.max_width:
                lines.append("")
            lines[-1] += f" {piece}" if lines[-1] else piece
        yield Text("\n".join(lines), style=self.style)


def show_terms(console: Console, boundaries: Sequence[TopFeatures]) -> None:
    """What speaks for either side of each boundary between ranks."""
    table = plain_table()
    for heading in ("boundary", "pulls down", "pulls up"):
        table.add_column(heading)
    for found in boundaries:
        down, up = Listed(found.down, "red", is_measured=False), Listed(found.up, "green", is_measured=False)
        table.add_row(boundary_of(found), down, up)
    console.print(table)


def show_boundaries(console: Console, boundaries: Sequence[Boundary]) -> None:
    """What adds up to the score of a row at each boundary. What rounding takes from a sum, the rest gives back."""
    table = plain_table()
    for heading in ("boundary", "bias", "pulls down", "pulls up", "rest", "score"):
        table.add_column(heading, justify="left" if heading in ("boundary", "pulls down", "pulls up") else "right")
    for found in boundaries:
        rest = round(found.score, 2) - sum(round(value, 2) for value in (found.bias, *(v for _, v in found.up + found.down)))
        down, up = Listed(found.down, "red", is_measured=True), Listed(found.up, "green", is_measured=True)
        table.add_row(boundary_of(found), signed(found.bias), down, up, signed(rest), Text(signed(found.score), style="bold"))
    console.print(table)
    console.print(Text("bias + pulls + rest = score; above 0 it speaks for the upper rank", style="dim"))


def signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}"


def remembering(model: TrainedModel, origins: dict[str, str]) -> TrainedModel:
    """The model with a memory of where it came from, and with warnings that name options."""
    warnings = [with_options(warning) for warning in model.metadata["warnings"]]
    return replace(model, metadata=origins | model.metadata | {"warnings": warnings})


def show_trained(console: Console, model: TrainedModel, measured_on: str) -> None:
    """What speaks against the model, how C was chosen, how well the model does, and what tells the ranks apart."""
    metadata = model.metadata
    show_warnings(console, metadata["warnings"])
    show_search(console, metadata["search"], metadata["choices"]["gamma"])
    show_metrics(console, metadata["metrics"], measured_on)
    if terms := model.top_features(N_TERMS):
        title(console, "Most important features")
        show_terms(console, terms)


def show_explanation(console: Console, model: TrainedModel, features: Any) -> None:
    """The rank of one row, the probabilities, the text marked by its pull, and the reasons boundary by boundary."""
    X = model.transform(features)
    answer, probabilities = model.predict(X)[0], model.predict_proba(X)[0]
    decision = model.estimator.decision
    meaning = DECISIONS[decision] if isinstance(decision, str) else "the rank of least expected cost"
    console.print(Text.assemble(f"{model.inputs.target}: ", (str(answer), "bold"), (f"  ({meaning})", "dim")))
    show_probabilities(console, model.classes.tolist(), probabilities, answer.item())
    if model.inputs.kind == "text":
        show_text(console, model, features[0], X)
    console.print()
    boundaries = model.explain(X)[0].boundaries
    show_boundaries(console, boundaries)
    by_count = model.classes[sum(boundary.score > 0 for boundary in boundaries)]
    if by_count != answer:
        told = f"The boundaries alone say {by_count}; the answer also weighs how often such scores were right in training."
        console.print(Text(told, style="dim"))


def show_text(console: Console, model: TrainedModel, text: str, X: Any) -> None:
    """A text marked by its pull, and how much of it the model knows."""
    console.print()
    console.print(coloured(shaded(text, text_pulls(model, text, X))))
    words = KnownWords(model.first_step)
    known, counted = (int(numbers[0]) for numbers in words.count([text], X))
    if X.nnz:
        console.print("[green]+ green[/green] pulls up, [red]- red[/red] pulls down, doubled where strongest", style="dim")
        console.print(Text(f"Known {words.noun}: {known} of {counted}", style="dim"))
    else:
        console.print(Text(f"No known {words.noun}, of {counted}: the answer is that for an empty text.", style="bold"))


def show_confusion(console: Console, matrix: NDArray[np.intp], order: Sequence[Any]) -> None:
    """The whole matrix where it fits, with numbers in place of long names; else a line about each rank."""
    for table in (confusion_table(matrix, order, order), confusion_table(matrix, order, range(1, len(order) + 1))):
        unbounded = console.options.update(max_width=10**6)
        if Measurement.get(console, unbounded, table).maximum <= console.width:
            title(console, "True ranks by row, predicted ranks by column")
            console.print(table)
            return
    title(console, "By true rank (the whole matrix is too wide for this screen: see --json or the page of report)")
    console.print(rank_table(matrix, order))


def confusion_table(matrix: NDArray[np.intp], order: Sequence[Any], headings: Sequence[Any]) -> Table:
    table = plain_table()
    table.add_column("", no_wrap=True)
    for heading in headings:
        table.add_column(Text(str(heading)), justify="right", no_wrap=True)
    table.add_column("right", justify="right")
    for place, label in enumerate(order):
        cells = [Text(f"{count:,}", style="bold green" if other == place else "") for other, count in enumerate(matrix[place])]
        right = f"{matrix[place, place] / matrix[place].sum():.0%}" if matrix[place].any() else ""
        number = "" if headings is order else f"{headings[place]} "
        table.add_row(Text.assemble(number, name_of(label), style="bold"), *cells, Text(right, style="dim"))
    return table


def rank_table(matrix: NDArray[np.intp], order: Sequence[Any]) -> Table:
    """For each true rank: how many rows, how many right, how many at most one rank off, and the commonest answer."""
    table = plain_table()
    table.add_column("true")
    for heading in ("rows", "right", "one off at most"):
        table.add_column(heading, justify="right")
    table.add_column("commonest answer")
    for place, (label, counts) in enumerate(zip(order, matrix, strict=True)):
        n_rows = max(int(counts.sum()), 1)
        near = counts[max(place - 1, 0) : place + 2].sum()
        shares = (f"{counts[place] / n_rows:.0%}", f"{near / n_rows:.0%}") if counts.any() else ("", "")
        commonest = name_of(order[int(np.argmax(counts))]) if counts.any() else Text("")
        table.add_row(Text.assemble(name_of(label), style="bold"), f"{counts.sum():,}", *shares, commonest)
    return table


def show_probabilities(console: Console, order: Sequence[Any], probabilities: NDArray[Any], answer: Any) -> None:
    table = Table.grid(padding=(0, 2))
    for label, share in zip(order, probabilities.tolist(), strict=True):
        table.add_row(name_of(label), f"{share:6.1%}", bar(share, 30), style="bold green" if label == answer else "")
    console.print(table)


def coloured(pieces: list[tuple[str, float]]) -> Text:
    """Pieces of a text in green after a + where they pull up and red after a - where they pull down."""
    shown = Text()
    for piece, share in marked(pieces):
        colour = "green" if share > 0 else "red"
        shown.append(piece, style="" if abs(share) <= FAINT else f"bold {colour}" if abs(share) > STRONG else colour)
    return shown
