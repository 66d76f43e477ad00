"""Markdown tables and numbers for pages that are generated from result lines."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A markdown table whose source is aligned too; the first ``left`` columns are text, the rest numbers."""
    cells = [list(head), *(list(row) for row in rows)]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        padded = (cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * w if i < left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([line(cells[0]), line(rule), *(line(row) for row in cells[1:])]) + "\n"


def number(value: float | None, digits: int = 3) -> str:
    """A number with this many decimals; empty without a value."""
    return "" if value is None else f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f} %"
