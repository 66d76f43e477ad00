"""Numbers and tables as HTML, in one format for the whole page."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from rankplane.prediction.explanations import Terms


def stylesheet(*names: str) -> str:
    """Style sheets of this folder, one after the other."""
    return "".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in names)


def percent(share: float, digits: int = 0) -> str:
    """With a no-break space."""
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def signed(value: float) -> str:
    """Always with a sign, so that colour is not needed; small values have more digits."""
    shown = f"{value:+.1g}" if 0.0005 <= abs(value) < 0.005 else f"{round(value, 2) + 0.0:+.2f}"
    return shown.replace("-", "\N{MINUS SIGN}")


def worth_showing(*lists: Terms) -> list[Terms]:
    """Drop columns with less than a hundredth of the largest value."""
    most = max((abs(value) for terms in lists for _, value in terms), default=0.0)
    return [[(name, value) for name, value in terms if abs(value) >= 0.01 * most] for terms in lists]


def boundary_name(lower: Any, upper: Any) -> str:
    """With no-break spaces, so that it stays on one line."""
    return escape(f"{lower} | {upper}").replace(" | ", "\N{NO-BREAK SPACE}|\N{NO-BREAK SPACE}")


def listed(words: Sequence[str], last: str = "and") -> str:
    """``a, b and c``."""
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else "".join(words)


def cell(content: str, kind: str = "", share: float | None = None) -> str:
    """The style sheet shades the cell by ``share``, or draws a bar of this length."""
    classes = f' class="{kind}"' if kind else ""
    style = f' style="--s:{share:.3f}"' if share is not None else ""
    return f"<td{classes}{style}>{content}</td>"


NOTHING = cell('<span aria-hidden="true">\N{EN DASH}</span><span class="unseen">none</span>', "note")


def html_table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "", above: str = "") -> str:
    """The first cell of a row is its heading. Headings and cells are HTML already; one that starts with ``<td`` is used as it is.

    ``above`` is a row of headings over the headings. The caption is for screen readers.
    """
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row">{name}</th>' + "".join(value if value.startswith("<td") else cell(value) for value in cells) + "</tr>"
        for name, *cells in rows
    )
    label = escape(caption, quote=True)
    # A table that is wider than the screen scrolls on its own, also by keyboard.
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{label}"><table class="{kind}">'
        f"<caption>{label}</caption><thead>{above}<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def section(title: str, content: str, note: str = "", kind: str = "") -> str:
    about = f'<p class="note">{escape(note)}</p>' if note else ""
    name = "-".join("".join(letter if letter.isalnum() else " " for letter in title.lower()).split())
    classes = f' class="{kind}"' if kind else ""
    return f'<section{classes} aria-labelledby="{name}"><h2 id="{name}">{escape(title)}</h2>{about}{content}</section>'


def bullets(sentences: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "</ul>" if sentences else ""
