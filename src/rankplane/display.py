"""What the command line shows: tables, bars, and texts coloured by their pull."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

HEADINGS = {"accuracy": "accuracy", "mae": "MAE", "mse": "MSE", "macro_mae": "macro MAE", "qwk": "QWK"}
BAR = "█"
N_TERMS = 8


def bar(share: float, width: int = 30) -> str:
    return BAR * max(round(share * width), 1 if share > 0 else 0)


def show_data(console: Console, source: str, notes: dict[str, Any]) -> None:
    counts = notes["ranks"]
    console.print(f"[bold]{escape(source)}[/bold]: {notes['rows']:,} rows, {len(counts)} ranks")
    table = Table(box=None, pad_edge=False, show_header=False)
    most = max(counts.values())
    for rank, count in counts.items():
        table.add_row(Text(str(rank), style="bold"), f"{count:,}", Text(bar(count / most), style="cyan"))
    console.print(table)
    lines = []
    if notes.get("missing_target"):
        lines.append(f"{notes['missing_target']:,} rows without a rank left out")
    if notes.get("empty_texts"):
        lines.append(f"{notes['empty_texts']:,} empty texts")
    if notes.get("duplicate_texts"):
        lines.append(f"{notes['duplicate_texts']:,} texts are copies of others; copies stay on one side of the holdout")
    lines += [f"{count:,} missing values in {name}" for name, count in notes.get("missing_values", {}).items() if count]
    for line in lines or ["nothing missing, nothing twice"]:
        console.print(f"  {line}", style="dim", highlight=False)


def show_search(console: Console, search: dict[str, Any] | None) -> None:
    if search is None:
        return
    table = Table(title="C by cross-validation", title_justify="left", box=None, pad_edge=False)
    for heading in ("C", "MAE", ""):
        table.add_column(heading, justify="left" if not heading else "right")
    low, high = min(search["mae"]), max(search["mae"])
    for C, error in zip(search["C"], search["mae"], strict=True):
        share = 1.0 if high == low else 0.1 + 0.9 * (error - low) / (high - low)
        style = "bold green" if search["best_C"] == C else ""
        table.add_row(f"{C:g}", f"{error:.4f}", bar(share), style=style)
    console.print(table)
    console.print(f"C = {search['best_C']:g} is best.")


def show_metrics(console: Console, metrics: dict[str, Any] | None, title: str) -> None:
    if metrics is None:
        console.print("Nothing held out, so nothing measured.")
        return
    table = Table(title=f"{title}, {metrics['rows']:,} rows", title_justify="left")
    table.add_column("")
    for heading in HEADINGS.values():
        table.add_column(heading, justify="right")
    for name, values in metrics.items():
        if name != "rows":
            cells = [f"{values[measure]:.3f}" for measure in HEADINGS]
            table.add_row(name, *cells, style="bold" if name == "model" else "dim")
    console.print(table)


def show_terms(console: Console, top: Sequence[Any]) -> None:
    table = Table(title="Most telling", title_justify="left")
    for heading in ("boundary", "down", "up"):
        table.add_column(heading)
    for boundary in top:
        down, up = (", ".join(name for name, _ in terms) for terms in (boundary.down, boundary.up))
        table.add_row(f"{boundary.lower} | {boundary.upper}", Text(down, style="red"), Text(up, style="green"))
    console.print(table)


def show_confusion(console: Console, matrix: NDArray[np.intp], order: Sequence[Any]) -> None:
    table = Table(title="True rank by row, predicted by column", title_justify="left")
    table.add_column("")
    for label in order:
        table.add_column(str(label), justify="right")
    for place, label in enumerate(order):
        cells = [Text(f"{count:,}", style="bold green" if other == place else "") for other, count in enumerate(matrix[place])]
        table.add_row(str(label), *cells)
    console.print(table)


def show_probabilities(console: Console, order: Sequence[Any], probabilities: NDArray[Any], answer: Any) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for label, share in zip(order, probabilities.tolist(), strict=True):
        style = "bold green" if label == answer else ""
        table.add_row(str(label), f"{share:6.1%}", bar(share, 40), style=style)
    console.print(table)


def coloured(pieces: Sequence[tuple[str, float]]) -> Text:
    """Pieces of a text in green where they pull up and red where they pull down."""
    shown = Text()
    for piece, share in pieces:
        colour = "green" if share > 0 else "red"
        shown.append(piece, style="" if abs(share) <= 0.05 else f"bold {colour}" if abs(share) > 0.5 else colour)
    return shown
