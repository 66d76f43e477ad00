"""A model and how it does on some rows, as one page that needs nothing else: no script, no network, light and dark."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from rankplane import plots
from rankplane.highlights import shaded, text_pulls
from rankplane.training import Inputs, Rows, measures

N_ERRORS = 8
N_TERMS = 10
LONGEST_TEXT = 1200
HEADINGS = {"accuracy": "Accuracy", "mae": "MAE", "mse": "MSE", "macro_mae": "Macro MAE", "qwk": "QWK"}
STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2330; --faint: #667085; --line: #d7dce4; --accent: #2f6fdb;
  --up: 34 139 84; --down: 204 62 62; --cell: 47 111 219; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #12161d; --ink: #e6e9ef; --faint: #98a2b3; --line: #2c3441; --accent: #78a9ff;
    --up: 74 190 128; --down: 240 104 104; --cell: 120 169 255; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p.lead, .note { color: var(--faint); margin: .2rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child, td.words { text-align: left; }
td.words { min-width: 12rem; }
td.cell { background: rgb(var(--cell) / calc(var(--s) * 75%)); }
.figures { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fit, minmax(7.5rem, 1fr)); }
.figure { border: 1px solid var(--line); border-radius: .6rem; padding: .6rem .8rem; }
.figure b { display: block; font-size: 1.5rem; }
svg { width: 100%; max-width: 38rem; height: auto; display: block; }
svg text { fill: var(--faint); font-size: 12px; }
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
.up-text { color: rgb(var(--up)); }
.down-text { color: rgb(var(--down)); }
"""


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already; one that starts with ``<td`` brings its own."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(
        "<tr>" + "".join(cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def section(title: str, content: str, note: str = "") -> str:
    about = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{about}{content}</section>"


def confusion(true: NDArray[np.intp], predicted: NDArray[np.intp], n_ranks: int) -> NDArray[np.intp]:
    matrix = np.zeros((n_ranks, n_ranks), dtype=np.intp)
    np.add.at(matrix, (true, predicted), 1)
    return matrix


def confusion_table(matrix: NDArray[np.intp], names: Sequence[str]) -> str:
    totals = np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    rows = []
    for name, counts, rates in zip(names, matrix.tolist(), (matrix / totals).tolist(), strict=True):
        cells = [
            f'<td class="cell" style="--s:{rate:.3f}">{count:,}<br><small>{rate:.0%}</small></td>'
            for count, rate in zip(counts, rates, strict=True)
        ]
        rows.append([f"<b>{escape(name)}</b>", *cells])
    return table(["true \\ predicted", *names], rows)


def reliability_points(probabilities: NDArray[np.float64], true: NDArray[np.intp]) -> list[tuple[float, float, int]]:
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
        order = pipeline.classes_.tolist()
        place = {label: number for number, label in enumerate(order)}
        X = rows.features if len(pipeline.steps) == 1 else pipeline[0].transform(rows.features)
        self.names = [str(label) for label in order]
        self.answers = pipeline[-1].predict(X)
        self.true = np.array([place[label] for label in rows.labels.tolist()], dtype=np.intp)
        self.predicted = np.array([place[label] for label in self.answers.tolist()], dtype=np.intp)
        self.probabilities = pipeline[-1].predict_proba(X)


def terms_table(pipeline: Pipeline) -> str:
    names = pipeline[0].get_feature_names_out() if len(pipeline.steps) > 1 else None
    rows = []
    for top in pipeline[-1].top_features(names, n=N_TERMS):
        down, up = (escape(", ".join(name for name, _ in terms)) for terms in (top.down, top.up))
        boundary = escape(f"{top.lower} | {top.upper}")
        rows.append([boundary, f'<td class="words down-text">{down}</td>', f'<td class="words up-text">{up}</td>'])
    return table(["at", "speaks for the lower rank", "speaks for the upper rank"], rows)


def data_notes(metadata: dict[str, Any], rows: Rows, names: Sequence[str]) -> str:
    data = metadata.get("data") or {}
    notes = []
    if "rows" in data:
        notes.append(f"{data['rows']:,} rows were read, {data['trained_on']:,} trained on, in {data['columns']:,} columns.")
    for key, words in (
        ("missing_target", "rows without a rank were left out"),
        ("duplicate_texts", "texts are exact copies of others; copies stay on one side of the holdout"),
        ("empty_texts", "texts are empty"),
    ):
        if data.get(key):
            notes.append(f"{data[key]:,} {words}.")
    notes += [f"{count:,} values are missing in {name}." for name, count in (data.get("missing_values") or {}).items() if count]
    counts = data.get("ranks") or {}
    if counts:
        most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
        notes.append(f"Imbalance: rank {most} has {counts[most]:,} rows, rank {least} has {counts[least]:,}.")
    unseen = [name for name in names if counts and name not in counts]
    if unseen:
        notes.append(f"Ranks without any row: {', '.join(unseen)}.")
    notes.append(f"This page measures {len(rows.labels):,} rows.")
    return "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>"


def settings_table(metadata: dict[str, Any]) -> str:
    settings = {key: metadata[key] for key in ("version", "date", "source", "fingerprint") if key in metadata}
    settings |= metadata.get("choices") or {}
    settings |= {key: value for key, value in (metadata.get("inputs") or {}).items() if value}
    return table(
        ["setting", "value"],
        [[escape(str(key)), f'<td class="words">{escape(str(value))}</td>'] for key, value in settings.items()],
    )


def make_report(pipeline: Pipeline, metadata: dict[str, Any], inputs: Inputs, rows: Rows, source: str) -> str:
    """The page, for rows that the model was not trained on."""
    places = Places(pipeline, rows)
    found = measures(rows.labels, places.answers, pipeline.classes_)
    figures = "".join(f'<div class="figure">{name}<b>{found[key]:.3f}</b></div>' for key, name in HEADINGS.items())
    parts = [
        section("Summary", f'<div class="figures">{figures}</div>', "Less is better for MAE and MSE, more for accuracy and QWK.")
    ]
    metrics = metadata.get("metrics")
    if metrics:
        lines = [[name, *(f"{values[key]:.3f}" for key in HEADINGS)] for name, values in metrics.items() if name != "rows"]
        note = "Measured when the model was trained, beside two answers that need no model."
        parts.append(section("Beside the baselines", table(["", *HEADINGS.values()], lines), note))
    search = metadata.get("search")
    if search:
        note = f"Mean absolute error in cross-validation; C = {search['best_C']:g} was chosen."
        parts.append(section("Choice of C", plots.price_curve(search["C"], search["mae"], search["best_C"], "MAE"), note))
    matrix = confusion(places.true, places.predicted, len(places.names))
    parts.append(section("Confusion matrix", confusion_table(matrix, places.names), "Counts, and shares of the true rank."))
    points = reliability_points(places.probabilities, places.true)
    parts.append(section("Reliability", plots.reliability(points), "On the dashed line, probabilities promise what happens."))
    distance = np.abs(places.true - places.predicted)
    present = [place for place in range(len(places.names)) if np.any(places.true == place)]
    by_rank = [float(distance[places.true == place].mean()) for place in present]
    parts.append(section("Error by rank", plots.bars([places.names[p] for p in present], by_rank, "true rank", "mean distance")))
    parts.append(section("Telling terms", terms_table(pipeline)))
    note = "Green pulls the rank up, red pulls it down." if inputs.kind == "text" else ""
    parts.append(section("Largest errors", error_articles(pipeline, inputs, rows, places), note))
    parts.append(section("Data", data_notes(metadata, rows, places.names)))
    parts.append(section("Settings", settings_table(metadata)))
    title = f"{type(pipeline[-1]).__name__} on {source}"
    lead = f"{len(rows.labels):,} rows, ranks {', '.join(places.names)}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # The browser itself refuses whatever would leave the page.
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">"""
        f'<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{STYLE}</style></head>'
        f'<body><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p>{"".join(parts)}</body></html>\n'
    )
