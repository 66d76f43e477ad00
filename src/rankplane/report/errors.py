"""The rows with the largest errors, and the reasons for their predictions."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from rankplane.inputs.schema import Inputs, Rows
from rankplane.report.findings import Findings
from rankplane.report.markup import boundary_name, percent, signed, worth_showing
from rankplane.tabular import is_number
from rankplane.training.highlights import shaded, text_pulls
from rankplane.training.model import TrainedModel

N_ERRORS = 8
N_REASONS = 4
MOST_VALUES = 60
MOST_LETTERS = 200  # of a value, such as a list of numbers
MOST_RANKS = 12  # whose probabilities fit into one line
LONGEST_TEXT = 1200
WEAK = 0.15  # pulls up to this share of the strongest are not marked

Pieces = Sequence[tuple[str, float]]


def error_articles(model: TrainedModel, rows: Rows, found: Findings) -> str:
    doubt = 1.0 - found.probabilities[np.arange(found.n_rows), found.true]
    worst = np.lexsort((-doubt, -found.distance))[:N_ERRORS]
    worst = worst[found.distance[worst] > 0]
    if not len(worst):
        return '<p class="note">There are none.</p>'
    articles, texts = [], model.texts(rows.features)
    for row in worst.tolist():
        true, predicted = found.names[found.true[row]], found.names[found.predicted[row]]
        heading = f"<h3>true <b>{escape(true)}</b>, predicted <b>{escape(predicted)}</b></h3>"
        values = values_of(model.inputs, rows, row)
        why = reasons(model, found, row, values)
        content = "" if texts is None else text_html(model, rows, row, texts[row], found.X[[row]])
        listed = values_html(values, is_open=not why) if values else ""
        shown = content + why + listed
        articles.append(f"<article>{heading}{probability_strip(found, row)}{shown}</article>")
    return f'<div class="errors">{"".join(articles)}</div>'


def probability_strip(found: Findings, row: int) -> str:
    """The probability of every rank, the darker the likelier."""
    given = found.probabilities[row]
    if len(given) > MOST_RANKS:
        return f'<p class="note">The predicted rank had a probability of {percent(given[found.predicted[row]])}.</p>'
    cells = []
    for place, (name, share) in enumerate(zip(found.names, given.tolist(), strict=True)):
        kinds = [kind for kind, places in (("true", found.true), ("answer", found.predicted)) if places[row] == place]
        said = f'<span class="unseen"> ({kinds[0]})</span>' if kinds else ""
        classes = f' class="{kinds[0]}"' if kinds else ""
        cells.append(f'<li{classes} style="--s:{share:.3f}"><b>{escape(name)}</b> {percent(share)}{said}</li>')
    return f'<ol class="strip" aria-label="Probabilities">{"".join(cells)}</ol>'


def reasons(model: TrainedModel, found: Findings, row: int, values: dict[str, Any]) -> str:
    """Contributions to the score at the first boundary between the true and the predicted rank; nothing with a kernel."""
    if not model.is_linear:
        return ""
    true, predicted = int(found.true[row]), int(found.predicted[row])
    boundaries = model.explain(found.X[[row]], N_REASONS)[0].boundaries
    boundary = boundaries[true if predicted > true else true - 1]
    lists, shown = [], worth_showing(boundary.up, boundary.down)
    rest = boundary.score - boundary.bias - sum(value for terms in shown for _, value in terms)
    for kind, terms in zip(("up", "down"), shown, strict=True):
        chips = "".join(
            f'<span class="{kind} term">{escape(column_value(name, values))} <small>{signed(value)}</small></span>'
            for name, value in terms
        )
        lists.append(f"<dt>pulls {kind}</dt><dd>{chips or 'nothing'}</dd>")
    between = boundary_name(boundary.lower, boundary.upper)
    others = f"all other columns {signed(rest)}, bias {signed(boundary.bias)}"
    return (
        f'<dl class="why">{"".join(lists)}<dt>and</dt><dd class="note">{others}; '
        f"score at the boundary {between}: {signed(boundary.score)}</dd></dl>"
    )


def column_value(name: str, values: dict[str, Any]) -> str:
    column = name[1:-1] if name.startswith("[") else name
    return f"{column} = {short(values[column])}" if column in values else name


def short(value: Any) -> str:
    """A value as text; long numbers are rounded."""
    if value is None:
        return "missing"
    text = str(value)
    if len(text) > MOST_LETTERS:
        return f"{text[:MOST_LETTERS]} …"
    return f"{float(value):.6g}" if len(text) > 8 and is_number(value) else text


def values_of(inputs: Inputs, rows: Rows, row: int) -> dict[str, Any]:
    """The values of a row by column name; of an svmlight file, those that are not zero."""
    if inputs.kind == "text":
        return {}
    if inputs.columns:
        return {name: rows.features[name][row] for name in inputs.columns}
    entries = rows.features[[row]].tocsr()
    return {str(column + 1): f"{value:g}" for column, value in zip(entries.indices.tolist(), entries.data.tolist(), strict=True)}


def values_html(values: dict[str, Any], is_open: bool) -> str:
    shown = "".join(
        f"<li>{escape(str(name))} <b>{escape(short(value))}</b></li>" for name, value in list(values.items())[:MOST_VALUES]
    )
    left_out = len(values) - MOST_VALUES
    more = f'<p class="note">{left_out:,} more are left out.</p>' if left_out > 0 else ""
    opened = " open" if is_open else ""
    return f'<details{opened}><summary>All {len(values):,} values</summary><ul class="values">{shown}</ul>{more}</details>'


def text_html(model: TrainedModel, rows: Rows, row: int, text: str, X: Any) -> str:
    """The text with its words marked by their pull; if it was joined from several columns, under their names."""
    shown = text[:LONGEST_TEXT]
    pieces = [(shown, 0.0)]
    if model.is_linear and model.vectorizer is not None:
        pieces = shaded(shown, text_pulls(model, shown, X if shown == text else model.vectorizer.transform([shown])))
    fields = [(name, "" if values[row] is None else str(values[row])) for name, values in rows.fields.items()]
    if len(fields) < 2 or "\n".join(value for _, value in fields) != text:
        return f'<p class="text">{marked(pieces)}{cut(text, 0, len(text))}</p>'
    parts, start, nothing = [], 0, '<span class="note">empty</span>'
    for name, value in fields:
        end = start + len(value)
        content = marked(between(pieces, start, end)) + cut(text, start, end)
        parts.append(f'<dt>{escape(name)}</dt><dd class="text">{content or nothing}</dd>')
        start = end + 1  # the newline that joins
    return f'<dl class="fields">{"".join(parts)}</dl>'


def cut(text: str, start: int, end: int) -> str:
    """An ellipsis if the rest of this part of the text is not shown."""
    return " …" if start <= LONGEST_TEXT < end or (start > LONGEST_TEXT and end > start) else ""


def between(pieces: Pieces, start: int, end: int) -> list[tuple[str, float]]:
    """The pieces of a part of the text."""
    found, place = [], 0
    for piece, share in pieces:
        part = piece[max(start - place, 0) : max(end - place, 0)]
        if part:
            found.append((part, share))
        place += len(piece)
    return found


def marked(pieces: Pieces) -> str:
    parts = []
    for piece, share in pieces:
        kind = "up" if share > 0 else "down"
        mark = f'<mark class="{kind}" style="--s:{abs(share):.2f}">{escape(piece)}</mark>'
        parts.append(mark if abs(share) > WEAK else escape(piece))
    return "".join(parts)
