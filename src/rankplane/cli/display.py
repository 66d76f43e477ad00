"""Output of the command line: tables, bars, and texts coloured by the pull of their words."""

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
from rankplane.out_of_core.memory import in_units
from rankplane.out_of_core.training import Limits
from rankplane.prediction.explanations import Boundary, TopFeatures
from rankplane.training.cautions import KnownWords
from rankplane.training.highlights import FAINT, STRONG, marked, shaded, text_pulls
from rankplane.training.kernel_choice import in_words
from rankplane.training.model import TrainedModel
from rankplane.training.wording import HEADINGS, MEASURED, choice_headings, choice_rows, data_notes, format_measure

EIGHTHS = " ▏▎▍▌▋▊▉"
N_TERMS = 8
LONGEST_NAME = 24


def bar(share: float, width: int = 30) -> str:
    """A bar of this share of the width, with a resolution of an eighth of a character."""
    whole, part = divmod(round(share * width * 8), 8)
    return ("█" * whole + EIGHTHS[part]).rstrip()


def plain_table() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)


def title(console: Console, words: str) -> None:
    """Print a title. The titles of rich tables would wrap at the width of the table."""
    console.print()
    console.print(Text(words, style="bold"))


def name_of(label: Any, longest: int = LONGEST_NAME) -> Text:
    """The name of a rank; long names are truncated."""
    shown = Text(str(label))
    shown.truncate(longest, overflow="ellipsis")
    return shown


def boundary_of(found: Boundary | TopFeatures) -> Text:
    return Text(" | ").join(name_of(label, LONGEST_NAME // 2) for label in (found.lower, found.upper))


def show_limits(console: Console, source: str, limits: Limits, folder: Any) -> None:
    """That a model is trained from disk, why if nobody asked for that, and how to go on after an interruption."""
    how = f"Training from disk in at most {in_units(limits.memory)}, with rows in {folder}: if stopped, the same command goes on."
    if limits.needed is not None:
        needed = f"To train on {source} in memory would take about {in_units(limits.needed)}, which is more than is free."
        how = f"{needed} {how} Use --memory for another limit."
    console.print(Text(how), soft_wrap=True)


def show_data(console: Console, source: str, notes: dict[str, Any]) -> None:
    counts = notes["ranks"]
    console.print(Text.assemble((source, "bold"), f": {notes['rows']:,} rows, {len(counts)} ranks"), soft_wrap=True)
    show_ranks(console, counts, data_notes(notes))


def show_ranks(console: Console, counts: dict[str, int], notes: Sequence[str]) -> None:
    """The number of rows by rank, and notes about them."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="cyan")
    most = max(counts.values())
    for rank, count in counts.items():
        table.add_row(name_of(rank), f"{count:,}", bar(count / most))
    console.print(table)
    for line in notes:
        console.print(Text(line, style="dim"))


def show_warnings(console: Console, warnings: Sequence[str]) -> None:
    if warnings:
        console.print()
    for number, warning in enumerate(warnings):
        line = Text.assemble(("Warning: " if number == 0 else "", "bold reverse"), (warning, "bold"))
        console.print(line, soft_wrap=not console.is_terminal)  # not wrapped in logs, so that they can be searched


def show_choice(console: Console, records: Sequence[dict[str, Any]]) -> None:
    """The candidates for features and model with their errors on samples of growing size, the best first."""
    for record in records:
        title(console, f"Choice of {record['what']} on samples of the training rows")
        table = Table(box=None, pad_edge=False)
        for heading in choice_headings(record):
            table.add_column(heading, justify="right")
        table.add_column()
        table.add_column()
        for cells, name, note in choice_rows(record):
            table.add_row(*cells, Text(name), note, style="bold green" if name == record["chosen"] else "dim")
        console.print(table)


def show_search(console: Console, search: dict[str, Any] | None, gamma: float | None) -> None:
    """Every value of C with its score, from zero, and its standard error, and which values were not tried."""
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
    spread = search.get("spread")
    most = max(*search["scores"], 1e-12)
    for place, (C, score) in enumerate(zip(search["C"], search["scores"], strict=True)):
        is_near = spread is not None and abs(score - search["scores"][best]) <= spread[best]
        note = "best" if place == best else "within one standard error" if is_near else ""
        cells = f"{C:g}", f"{score:.4f}" + (f" ±{spread[place]:.4f}" if spread else ""), bar(max(score, 0) / most, 20), note
        table.add_row(*cells, style="bold green" if place == best else "" if is_near else "dim")
    console.print(table)
    if spread:
        console.print(Text("± is the standard error of the mean over the held-out rows", style="dim"))
    if left_out := search.get("not_tried"):
        values = f"{left_out[0]:g}" if len(left_out) == 1 else f"{left_out[0]:g} to {left_out[-1]:g}"
        console.print(Text(f"C = {values} not tried: worse twice in a row before", style="dim"))


def heading_of(measure: str) -> str:
    """The name of a measure, with an arrow up if more is better and down if less is better."""
    return f"{HEADINGS[measure]} {'↑' if MEASURES[measure][1] else '↓'}"


def show_metrics(console: Console, metrics: dict[str, Any] | None, source: str) -> None:
    if metrics is None:
        title(console, "No rows were held out, so the model was not tested")
        return
    title(console, f"Measured on {metrics['rows']:,} {source}")
    table = plain_table()
    table.add_column("")
    for measure in HEADINGS:
        table.add_column(heading_of(measure), justify="right")
    for name, values in metrics.items():
        if name != "rows":
            cells = [format_measure(values[measure]) for measure in HEADINGS]
            table.add_row(MEASURED.get(name, name), *cells, style="bold" if name == "model" else "dim")
    console.print(table)
    console.print(Text("↑ more is better, ↓ less is better", style="dim"))


class TermList:
    """A list of terms that wraps between terms only, unless a term is longer than a line."""

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
    """The most important terms on either side of each boundary between ranks."""
    table = plain_table()
    for heading in ("boundary", "pulls down", "pulls up"):
        table.add_column(heading)
    for found in boundaries:
        down, up = TermList(found.down, "red", is_measured=False), TermList(found.up, "green", is_measured=False)
        table.add_row(boundary_of(found), down, up)
    console.print(table)


def show_boundaries(console: Console, boundaries: Sequence[Boundary]) -> None:
    """The contributions to the score of a row at each boundary. Rounding errors go into the rest, so that they add up."""
    table = plain_table()
    for heading in ("boundary", "bias", "pulls down", "pulls up", "rest", "score"):
        table.add_column(heading, justify="left" if heading in ("boundary", "pulls down", "pulls up") else "right")
    for found in boundaries:
        rest = round(found.score, 2) - sum(round(value, 2) for value in (found.bias, *(v for _, v in found.up + found.down)))
        down, up = TermList(found.down, "red", is_measured=True), TermList(found.up, "green", is_measured=True)
        table.add_row(boundary_of(found), signed(found.bias), down, up, signed(rest), Text(signed(found.score), style="bold"))
    console.print(table)
    console.print(Text("bias + pulls + rest = score; above 0 it speaks for the upper rank", style="dim"))


def signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}"


def with_origins(model: TrainedModel, origins: dict[str, Any]) -> TrainedModel:
    """The model with its origins in its metadata, and with warnings that name command-line options."""
    warnings = [with_options(warning) for warning in model.metadata["warnings"]]
    return replace(model, metadata=origins | model.metadata | {"warnings": warnings})


def show_trained(console: Console, model: TrainedModel, measured_on: str) -> None:
    """Warnings, the choice of C, measures, and the most important features."""
    metadata = model.metadata
    show_warnings(console, metadata["warnings"])
    for compared in metadata.get("compared") or []:
        console.print(Text(in_words(compared), style="dim"))
    show_choice(console, metadata["choice"])
    show_search(console, metadata["search"], metadata["choices"]["gamma"])
    show_metrics(console, metadata["metrics"], measured_on)
    if terms := model.top_features(N_TERMS):
        title(console, "Most important features")
        show_terms(console, terms)


def show_explanation(console: Console, model: TrainedModel, features: Any) -> None:
    """The predicted rank of one row, the probabilities, the text marked by its pull, and the contributions at each boundary."""
    X = model.transform(features)
    answer, probabilities = model.predict(X)[0], model.predict_proba(X)[0]
    decision = model.estimator.decision
    meaning = DECISIONS[decision] if isinstance(decision, str) else "the rank of least expected cost"
    console.print(Text.assemble(f"{model.inputs.target}: ", (str(answer), "bold"), (f"  ({meaning})", "dim")))
    show_probabilities(console, model.classes.tolist(), probabilities, answer.item())
    if (texts := model.texts(features)) is not None:
        show_text(console, model, texts[0], X)
    console.print()
    boundaries = model.explain(X)[0].boundaries
    show_boundaries(console, boundaries)
    by_count = model.classes[sum(boundary.score > 0 for boundary in boundaries)]
    if by_count != answer:
        note = f"The boundaries alone give {by_count}; the prediction also uses the probabilities calibrated in training."
        console.print(Text(note, style="dim"))


def show_text(console: Console, model: TrainedModel, text: str, X: Any) -> None:
    """A text marked by its pull, and how many of its words are known."""
    console.print()
    pulls = text_pulls(model, text, X)
    console.print(coloured(shaded(text, pulls)))
    assert model.vectorizer is not None
    words = KnownWords(model.vectorizer)
    known, counted = (int(numbers[0]) for numbers in words.count([text], X))
    if pulls:
        console.print("[green]+ green[/green] pulls up, [red]- red[/red] pulls down, doubled where strongest", style="dim")
        console.print(Text(f"Known {words.noun}: {known} of {counted}", style="dim"))
    else:
        console.print(Text(f"Known {words.noun}: 0 of {counted}; the prediction is that of an empty text.", style="bold"))


def show_confusion(console: Console, matrix: NDArray[np.intp], order: Sequence[Any]) -> None:
    """The whole matrix if it fits, with numbers instead of long names if necessary; else one line per rank."""
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
    """By true rank: number of rows, shares that are correct and at most one rank off, and the most frequent prediction."""
    table = plain_table()
    table.add_column("true")
    for heading in ("rows", "right", "one off at most"):
        table.add_column(heading, justify="right")
    table.add_column("most often predicted")
    for place, (label, counts) in enumerate(zip(order, matrix, strict=True)):
        n_rows = max(int(counts.sum()), 1)
        near = counts[max(place - 1, 0) : place + 2].sum()
        shares = (f"{counts[place] / n_rows:.0%}", f"{near / n_rows:.0%}") if counts.any() else ("", "")
        most_often = name_of(order[int(np.argmax(counts))]) if counts.any() else Text("")
        table.add_row(Text.assemble(name_of(label), style="bold"), f"{counts.sum():,}", *shares, most_often)
    return table


def show_probabilities(console: Console, order: Sequence[Any], probabilities: NDArray[Any], answer: Any) -> None:
    table = Table.grid(padding=(0, 2))
    for label, share in zip(order, probabilities.tolist(), strict=True):
        table.add_row(name_of(label), f"{share:6.1%}", bar(share, 30), style="bold green" if label == answer else "")
    console.print(table)


def coloured(pieces: list[tuple[str, float]]) -> Text:
    """A text whose pieces are green after a + if they pull up, and red after a - if they pull down."""
    shown = Text()
    for piece, share in marked(pieces):
        colour = "green" if share > 0 else "red"
        shown.append(piece, style="" if abs(share) <= FAINT else f"bold {colour}" if abs(share) > STRONG else colour)
    return shown
