"""Numbers and tables as HTML, in one way all over the page."""

from collections.abc import Sequence
from html import escape
from typing import Any

from rankplane.prediction.explanations import Terms


def percent(share: float, digits: int = 0) -> str:
    """With a space that does not break."""
    return f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def signed(value: float) -> str:
    """Always with a sign, so that colour is not the only one; small values have more digits."""
    shown = f"{value:+.1g}" if 0.0005 <= abs(value) < 0.005 else f"{round(value, 2) + 0.0:+.2f}"
    return shown.replace("-", "\N{MINUS SIGN}")


def worth_showing(*lists: Terms) -> list[Terms]:
    """Without the columns that are nothing beside the strongest."""
    most = max((abs(value) for terms in lists for _, value in terms), default=0.0)
    return [[(name, value) for name, value in terms if abs(value) >= 0.01 * most] for terms in lists]


def boundary_name(lower: Any, upper: Any) -> str:
    """In one piece, where the line is wide enough."""
    return escape(f"{lower} | {upper}").replace(" | ", "\N{NO-BREAK SPACE}|\N{NO-BREAK SPACE}")


def listed(words: Sequence[str], last: str = "and") -> str:
    """``a, b and c``."""
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else "".join(words)


def cell(content: str, kind: str = "", share: float | None = None) -> str:
    """``share`` is what the style sheet shades it by, or draws a bar of."""
    classes = f' class="{kind}"' if kind else ""
    style = f' style="--s:{share:.3f}"' if share is not None else ""
    return f"<td{classes}{style}>{content}</td>"


NOTHING = cell('<span aria-hidden="true">\N{EN DASH}</span><span class="unseen">none</span>', "note")


def table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "", above: str = "") -> str:
    """The first cell of a row names it. Names and cells are HTML already; a cell that starts with ``<td`` brings its own.

    ``above`` is a row of headings over the headings. The caption is for those who hear the page.
    """
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row">{name}</th>' + "".join(value if value.startswith("<td") else cell(value) for value in cells) + "</tr>"
        for name, *cells in rows
    )
    label = escape(caption, quote=True)
    # What may be wider than a phone scrolls by itself, also by keys.
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
