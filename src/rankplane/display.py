"""What the command line shows: tables, bars, and texts coloured by their pull."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sklearn.pipeline import Pipeline

from rankplane.highlights import shaded, text_pulls
from rankplane.options import DECISIONS
from rankplane.training import HEADINGS, boundaries_of, data_notes, figure, telling

EIGHTHS = " ▏▎▍▌▋▊▉"
N_TERMS = 8


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


def show_data(console: Console, source: str, notes: dict[str, Any]) -> None:
    counts = notes["ranks"]
    console.print(Text.assemble((source, "bold"), f": {notes['rows']:,} rows, {len(counts)} ranks"))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="cyan")
    most = max(counts.values())
    for rank, count in counts.items():
        table.add_row(Text(str(rank)), f"{count:,}", bar(count / most))
    console.print(table)
    for line in data_notes(notes):
        console.print(Text(line, style="dim"))


def show_search(console: Console, search: dict[str, Any] | None) -> None:
    if search is None:
        return
    title(console, "C by cross-validation")
    table = Table(box=None, pad_edge=False)
    table.add_column("C", justify="right")
    table.add_column(HEADINGS[search["measure"]], justify="right")
    table.add_column()
    low, high = min(search["scores"]), max(search["scores"])
    for C, score in zip(search["C"], search["scores"], strict=True):
        share = 1.0 if high == low else 0.1 + 0.9 * (score - low) / (high - low)
        is_best = search["best_C"] == C
        table.add_row(f"{C:g}", f"{score:.4f}", bar(share) + (" best" if is_best else ""), style="bold green" if is_best else "")
    console.print(table)


def show_metrics(console: Console, metrics: dict[str, Any] | None, source: str) -> None:
    if metrics is None:
        title(console, "Nothing is held out, so nothing is measured")
        return
    title(console, f"Measured on {metrics['rows']:,} {source}")
    table = plain_table()
    table.add_column("")
    for heading in HEADINGS.values():
        table.add_column(heading, justify="right")
    for name, values in metrics.items():
        if name != "rows":
            table.add_row(name, *(figure(values[measure]) for measure in HEADINGS), style="bold" if name == "model" else "dim")
    console.print(table)


def words(terms: Sequence[tuple[str, float]], style: str, *, is_measured: bool) -> Text:
    return Text(", ".join(f"{name} {value:+.2f}" if is_measured else name for name, value in terms), style=style)


def show_terms(console: Console, boundaries: Sequence[Any], *, is_measured: bool = False) -> None:
    """What speaks for either side of each boundary between ranks."""
    table = plain_table()
    for heading in ("boundary", *(["score"] if is_measured else []), "pulls down", "pulls up"):
        table.add_column(heading, justify="right" if heading == "score" else "left")
    for found in boundaries:
        terms = words(found.down, "red", is_measured=is_measured), words(found.up, "green", is_measured=is_measured)
        score = [f"{found.score:+.2f}"] if is_measured else []
        table.add_row(Text(f"{found.lower} | {found.upper}"), *score, *terms)
    console.print(table)


def show_trained(console: Console, pipeline: Pipeline, metadata: dict[str, Any], measured_on: str) -> None:
    """How C was chosen, how well the model does, and what tells the ranks apart."""
    show_search(console, metadata["search"])
    show_metrics(console, metadata["metrics"], measured_on)
    if terms := telling(pipeline, N_TERMS):
        title(console, "Most telling")
        show_terms(console, terms)


def show_explanation(console: Console, pipeline: Pipeline, target: str, text: str | None, features: Any) -> None:
    """The rank of one row, the probabilities, the text coloured by its pull, and the reasons boundary by boundary."""
    answer, probabilities = pipeline.predict(features)[0], pipeline.predict_proba(features)[0]
    meaning = DECISIONS.get(pipeline[-1].decision, "")
    console.print(Text.assemble(f"{target}: ", (str(answer), "bold"), (f"  ({meaning})", "dim")))
    show_probabilities(console, pipeline.classes_.tolist(), probabilities, answer.item())
    if text is not None:
        console.print()
        console.print(coloured(shaded(text, text_pulls(pipeline, text))))
        console.print("[green]green[/green] pulls up, [red]red[/red] pulls down", style="dim")
    boundaries = boundaries_of(pipeline, features)
    show_terms(console, boundaries, is_measured=True)
    by_count = pipeline.classes_[sum(boundary.score > 0 for boundary in boundaries)]
    if by_count != answer:
        told = f"The boundaries alone say {by_count}; the answer also weighs how often such scores were right in training."
        console.print(Text(told, style="dim"))


def show_confusion(console: Console, matrix: NDArray[np.intp], order: Sequence[Any]) -> None:
    title(console, "True ranks by row, predicted ranks by column")
    table = plain_table()
    table.add_column("")
    for label in order:
        table.add_column(Text(str(label)), justify="right")
    table.add_column("right", justify="right")
    for place, label in enumerate(order):
        cells = [Text(f"{count:,}", style="bold green" if other == place else "") for other, count in enumerate(matrix[place])]
        right = f"{matrix[place, place] / matrix[place].sum():.0%}" if matrix[place].any() else ""
        table.add_row(Text(str(label), style="bold"), *cells, Text(right, style="dim"))
    console.print(table)


def show_probabilities(console: Console, order: Sequence[Any], probabilities: NDArray[Any], answer: Any) -> None:
    table = Table.grid(padding=(0, 2))
    for label, share in zip(order, probabilities.tolist(), strict=True):
        table.add_row(Text(str(label)), f"{share:6.1%}", bar(share, 40), style="bold green" if label == answer else "")
    console.print(table)


def coloured(pieces: Sequence[tuple[str, float]]) -> Text:
    """Pieces of a text in green where they pull up and red where they pull down."""
    shown = Text()
    for piece, share in pieces:
        colour = "green" if share > 0 else "red"
        shown.append(piece, style="" if abs(share) <= 0.05 else f"bold {colour}" if abs(share) > 0.5 else colour)
    return shown
