"""A model and how it does on some rows, as one page that needs nothing else: no script, no network, light and dark."""

import os
import shlex
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from rankplane import plots
from rankplane.files import replacing
from rankplane.highlights import shaded, text_pulls
from rankplane.metrics import MEASURES
from rankplane.training import HEADINGS, Inputs, Rows, confusion, data_notes, figure, is_linear, measures, telling
from rankplane.validation import rank_numbers

N_ERRORS = 8
N_TERMS = 10
LONGEST_TEXT = 1200
STYLE = """
:root { color-scheme: light dark; --paper: #f6f7f9; --card: #ffffff; --ink: #1c2330; --faint: #5d6778; --line: #d7dce4;
  --accent: #2f6fdb; --up: 34 139 84; --down: 204 62 62; --cell: 47 111 219; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #0f131a; --card: #181e28; --ink: #e6e9ef; --faint: #9aa5b8; --line: #2f3846; --accent: #78a9ff;
    --up: 74 190 128; --down: 240 104 104; --cell: 92 143 235; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 68rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); align-items: stretch; }
h1, .lead, .broad { grid-column: 1 / -1; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .4rem 0 0; }
h2 { font-size: 1.1rem; margin: 0 0 .5rem; }
.lead { margin: -.6rem 0 .2rem; }
.lead, .note { color: var(--faint); }
p.note { margin: .2rem 0 .8rem; font-size: .92rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; padding: 1rem 1.1rem; min-width: 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .35rem .5rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th { color: var(--faint); font-weight: 600; font-size: .9rem; }
tr:last-child td { border-bottom: 0; }
th:first-child, td:first-child, td.words, th.words { text-align: left; }
td.words { min-width: 11rem; overflow-wrap: anywhere; }
td.cell { background: rgb(var(--cell) / calc(var(--s) * 60%)); min-width: 2.7rem; }
td.right { box-shadow: inset 0 0 0 2px rgb(var(--cell)); }
.figures + .note { margin: .7rem 0 0; }
.figures { display: grid; gap: .7rem; grid-template-columns: repeat(auto-fit, minmax(8.6rem, 1fr)); }
.figure { border: 1px solid var(--line); border-radius: .6rem; padding: .6rem .8rem; }
.figure b { display: block; font-size: 1.6rem; line-height: 1.25; }
.figure .note { font-size: .85rem; }
svg { width: 100%; max-width: 34rem; height: auto; display: block; }
svg text { fill: var(--faint); font-size: 12.5px; }
.grid { stroke: var(--line); }
.ideal { stroke: var(--faint); stroke-dasharray: 5 5; }
.curve { fill: none; stroke: var(--accent); stroke-width: 2; }
.dot, .bar { fill: var(--accent); }
.best { fill: rgb(var(--up)); }
article { border-left: 4px solid var(--line); padding: .1rem 0 .1rem .9rem; margin: 1rem 0; }
article p { white-space: pre-wrap; margin: .3rem 0; }
mark { color: inherit; background: none; border-radius: .2rem; }
mark.up { background: rgb(var(--up) / calc(var(--s) * 55%)); }
mark.down { background: rgb(var(--down) / calc(var(--s) * 55%)); }
.boundary { display: grid; grid-template-columns: 5rem 1fr 1fr; gap: .2rem 1rem; padding: .5rem 0;
  border-top: 1px solid var(--line); }
.boundary p { margin: 0; color: var(--faint); font-size: .9rem; }
.boundary .term { color: var(--ink); }
@media (max-width: 44rem) {
  .boundary { grid-template-columns: 1fr; }
  body { padding: .6rem; }
  section { padding: .8rem; }
  table { font-size: .84rem; }
  th, td { padding: .3rem .25rem; }
}
.term { display: inline-block; border-radius: .4rem; padding: 0 .4rem; margin: .1rem .25rem .1rem 0; }
.term.up { background: rgb(var(--up) / 20%); }
.term.down { background: rgb(var(--down) / 20%); }
pre { white-space: pre-wrap; background: var(--paper); border-radius: .4rem; padding: .6rem .8rem; margin: 0 0 .8rem;
  font-size: .88rem; }
ul { margin: 0 0 .8rem; padding-left: 1.2rem; }
@media print { section { break-inside: avoid; } }
"""
# Wide ones take the whole width; the others share it, two by two.
BROAD = ("Summary", "Telling terms", "Largest errors", "Settings")


MEANING = (
    "Less is better for MAE (mean distance in ranks), MSE (its square) and macro MAE (every rank counts the same); "
    "more is better for accuracy and QWK (agreement beyond chance)."
)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already; one that starts with ``<td`` brings its own."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        "<tr>" + "".join(cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def section(title: str, content: str, note: str = "") -> str:
    about = f'<p class="note">{escape(note)}</p>' if note else ""
    kind = ' class="broad"' if title in BROAD else ""
    return f"<section{kind}><h2>{escape(title)}</h2>{about}{content}</section>"


def confusion_table(matrix: NDArray[np.intp], names: Sequence[str]) -> str:
    totals = np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    rows = []
    for true, (counts, rates) in enumerate(zip(matrix.tolist(), (matrix / totals).tolist(), strict=True)):
        cells = []
        for answer, (count, rate) in enumerate(zip(counts, rates, strict=True)):
            kind = "cell right" if true == answer else "cell"
            cells.append(f'<td class="{kind}" style="--s:{rate:.3f}">{count:,}<br><small>{rate:.0%}</small></td>')
        rows.append([f"<b>{escape(names[true])}</b>", *cells])
    return table(["", *names], rows)


def reliability_points(probabilities: NDArray[np.float64], true: NDArray[np.integer[Any]]) -> list[tuple[float, float, int]]:
    """Over all ranks and rows: probabilities in ten classes, and how often they came true."""
    happened = np.zeros(probabilities.shape, dtype=bool)
    happened[np.arange(len(true)), true] = True
    promised, observed = probabilities.ravel(), happened.ravel()
    classes = np.minimum((promised * 10).astype(np.intp), 9)
    members = [classes == number for number in range(10)]
    return [(float(promised[m].mean()), float(observed[m].mean()), int(m.sum())) for m in members if m.any()]


def coloured_html(pipeline: Pipeline, text: str) -> str:
    if len(text) > LONGEST_TEXT:
        text = text[:LONGEST_TEXT] + " …"
    if not is_linear(pipeline):
        return escape(text)
    parts = []
    for piece, share in shaded(text, text_pulls(pipeline, text)):
        kind = "up" if share > 0 else "down"
        mark = f'<mark class="{kind}" style="--s:{abs(share):.2f}">{escape(piece)}</mark>'
        parts.append(mark if abs(share) > 0.05 else escape(piece))
    return "".join(parts)


def error_articles(pipeline: Pipeline, inputs: Inputs, rows: Rows, places: "Places") -> str:
    distance = np.abs(places.true - places.predicted)
    doubt = 1.0 - places.probabilities[np.arange(len(distance)), places.true]
    worst = np.lexsort((-doubt, -distance))[:N_ERRORS]
    articles = []
    for row in worst[distance[worst] > 0].tolist():
        if inputs.kind == "text":
            shown = coloured_html(pipeline, rows.features[row])
        elif inputs.kind == "table":
            shown = escape(", ".join(f"{name} = {values[row]}" for name, values in rows.features.items()))
        else:
            shown = f"row {row + 1}"
        true, predicted = places.names[places.true[row]], places.names[places.predicted[row]]
        sure = places.probabilities[row, places.predicted[row]]
        heading = f"true <b>{escape(true)}</b>, predicted <b>{escape(predicted)}</b> with {sure:.0%}"
        articles.append(f'<article><span class="note">{heading}</span><p>{shown}</p></article>')
    return "".join(articles) or '<p class="note">There are none.</p>'


class Places:
    """True and predicted ranks of the rows by their places in the order, and the probabilities."""

    def __init__(self, pipeline: Pipeline, rows: Rows) -> None:
        order = pipeline.classes_
        X = rows.features if len(pipeline.steps) == 1 else pipeline[0].transform(rows.features)
        self.names = [str(label) for label in order.tolist()]
        self.answers = pipeline[-1].predict(X)
        self.true = rank_numbers(rows.labels, order)
        self.predicted = rank_numbers(self.answers, order)
        self.probabilities = pipeline[-1].predict_proba(X)


def terms_lists(pipeline: Pipeline) -> str:
    rows = []
    for top in telling(pipeline, N_TERMS):
        lists = [
            f"<p>pulls {kind} " + "".join(f'<span class="{kind} term">{escape(name)}</span>' for name, _ in terms) + "</p>"
            for kind, terms in (("down", top.down), ("up", top.up))
        ]
        rows.append(f'<div class="boundary"><b>{escape(f"{top.lower} | {top.upper}")}</b>{"".join(lists)}</div>')
    return "".join(rows) or '<p class="note">With a kernel, columns have no weights to be ordered by.</p>'


def data_section(metadata: dict[str, Any]) -> str:
    data = metadata.get("data") or {}
    if not data:
        return '<p class="note">The model file does not tell.</p>'
    notes = [f"{data['rows']:,} rows were read, {data['trained_on']:,} trained on, in {data['columns']:,} columns."]
    if "dropped_columns" in data:
        notes.append(f"{data['dropped_columns']:,} columns of small weight were dropped.")
    notes += [f"{note[:1].upper()}{note[1:]}." for note in data_notes(data)]
    counts = data["ranks"]
    most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    ratio = f", {counts[most] / counts[least]:.1f} times as many as rank {least} with {counts[least]:,}" if counts[least] else ""
    notes.append(f"Imbalance: rank {most} has {counts[most]:,} rows, {counts[most] / sum(counts.values()):.0%} of all{ratio}.")
    unseen = [name for name, count in counts.items() if not count]
    if unseen:
        notes.append(f"Ranks without any row: {', '.join(unseen)}.")
    listed = "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>"
    return listed + plots.bars(list(counts), list(counts.values()), "rank", "rows", digits=0)


def command_line(metadata: dict[str, Any]) -> str:
    """What to type to get the same model again."""
    inputs, choices = metadata["inputs"], metadata["choices"]
    words = ["rankplane", "train", metadata["source"]]
    words += [word for name in inputs["text"] for word in ("--text", name)]
    options = {"target": inputs["target"], "group": inputs.get("group"), "ranks": ",".join(inputs["ranks"] or []) or None}
    options |= choices | {"test": metadata.get("test")}
    if metadata["search"] is not None:
        options["C"] = None  # the search finds it
    if options["test"]:
        options["holdout"] = None
    given = {name.replace("_", "-"): value for name, value in options.items() if value is not None}
    words += [word for name, value in given.items() for word in (f"--{name}", f"{value}")]
    return shlex.join([*words, "-o", "model.rankplane"])


def settings_section(metadata: dict[str, Any]) -> str:
    keys = {"version": "rankplane", "date": "trained", "source": "file", "fingerprint": "its fingerprint"}
    keys |= {"test": "measured on", "test_fingerprint": "its fingerprint"}
    settings = [(name, metadata[key]) for key, name in keys.items() if key in metadata]
    settings += [(key, value) for key, value in (metadata.get("choices") or {}).items() if value is not None]
    lines = [[escape(key), f'<td class="words">{escape(str(value))}</td>'] for key, value in settings]
    command = f"<pre>{escape(command_line(metadata))}</pre>" if "fingerprint" in metadata else ""
    return command + table(["setting", ""], lines)


def summary(found: dict[str, float], metrics: dict[str, Any] | None, n_rows: int, measured_on: str) -> str:
    """The measures as cards, each beside the better of the answers that need no model, and what they say in words."""
    baselines = [metrics[name] for name in ("majority", "median") if name in metrics] if metrics else []
    cards = []
    for key, name in HEADINGS.items():
        best = (max if MEASURES[key][1] else min)([values[key] for values in baselines], default=None)
        beside = f'<span class="note">no model: {figure(best)}</span>' if best is not None else ""
        cards.append(f'<div class="figure">{escape(name)}<b>{figure(found[key])}</b>{beside}</div>')
    sentence = (
        f"Of {n_rows:,} {measured_on}, {found['accuracy']:.0%} get their true rank; "
        f"answers are {found['mae']:.2f} ranks off on average."
    )
    return f'<p>{escape(sentence)}</p><div class="figures">{"".join(cards)}</div><p class="note">{escape(MEANING)}</p>'


def make_report(pipeline: Pipeline, metadata: dict[str, Any], inputs: Inputs, rows: Rows, measured_on: str) -> str:
    """The page, for rows that the model was not trained on."""
    places = Places(pipeline, rows)
    found = measures(rows.labels, places.answers, pipeline.classes_)
    metrics = metadata.get("metrics")
    parts = [section("Summary", summary(found, metrics, len(rows.labels), measured_on))]
    if metrics:
        lines = [[escape(name), *(figure(values[key]) for key in HEADINGS)] for name, values in metrics.items() if name != "rows"]
        note = "Measured when the model was trained, beside always answering with the commonest rank, or with the median."
        parts.append(section("Beside the baselines", table(["", *HEADINGS.values()], lines), note))
    search = metadata.get("search")
    if search:
        name = HEADINGS[search["measure"]]
        note = (
            f"{name} in cross-validation on the training rows by C, the price of violations; C = {search['best_C']:g} was chosen."
        )
        parts.append(section("Choice of C", plots.price_curve(search["C"], search["scores"], search["best_C"], name), note))
    matrix = confusion(rows.labels, places.answers, pipeline.classes_)
    note = "True ranks by row, answers by column: how many rows, and which share of the true rank that is."
    parts.append(section("Confusion matrix", confusion_table(matrix, places.names), note))
    points = reliability_points(places.probabilities, places.true)
    off = sum(abs(promised - observed) * count for promised, observed, count in points) / sum(count for *_, count in points)
    note = f"On the dashed line, ranks come true as often as promised. Promises are off by {100 * off:.1f} points on average."
    parts.append(section("Reliability", plots.reliability(points), note))
    distance = np.abs(places.true - places.predicted)
    present = [place for place in range(len(places.names)) if np.any(places.true == place)]
    by_rank = [float(distance[places.true == place].mean()) for place in present]
    note = "How far answers are from the true rank on average."
    bars = plots.bars([places.names[place] for place in present], by_rank, "true rank", "ranks off")
    parts.append(section("Error by rank", bars, note))
    parts.append(section("Data", data_section(metadata)))
    note = "Columns of largest weight at each boundary between neighbouring ranks."
    parts.append(section("Telling terms", terms_lists(pipeline), note))
    note = (
        "Green pulls the rank up, red pulls it down; the stronger the colour, the stronger the pull."
        if inputs.kind == "text"
        else ""
    )
    parts.append(section("Largest errors", error_articles(pipeline, inputs, rows, places), note))
    parts.append(section("Settings", settings_section(metadata)))
    title = f"{type(pipeline[-1]).__name__} for {inputs.target}"
    lead = f"Ranks {', '.join(places.names)}, measured on {len(rows.labels):,} {measured_on}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # The browser itself refuses whatever would leave the page.
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">"""
        f'<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{STYLE}</style></head>'
        f'<body><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>{"".join(parts)}</body></html>\n'
    )


def write_report(
    path: str | os.PathLike[str], pipeline: Pipeline, metadata: dict[str, Any], inputs: Inputs, rows: Rows, measured_on: str
) -> None:
    """Write the page, whole or not at all."""
    page = make_report(pipeline, metadata, inputs, rows, measured_on)
    with replacing(path) as file:
        file.write(page.encode("utf-8", "replace"))
