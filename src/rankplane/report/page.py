"""The page, section by section. It leads with a verdict in words; what it measures is measured on the rows that it is given."""

import os
from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from rankplane.files import replacing
from rankplane.metrics import MEASURES
from rankplane.report import plots, verdict
from rankplane.report.errors import error_articles
from rankplane.report.findings import COVERAGES, Coverage, Findings
from rankplane.report.markup import NOTHING, boundary_name, bullets, cell, listed, percent, section, signed, table, worth_showing
from rankplane.report.settings import settings_section
from rankplane.training.model import EncodedRows, TrainedModel
from rankplane.training.wording import HEADINGS, data_notes, figure

N_TERMS = 10
MOST_NAMED = 8  # ranks in the line under the title
MANY_RANKS = 14  # beyond which columns of the confusion matrix are narrow
MEANINGS = {
    "accuracy": "share of rows with the right rank",
    "mae": "mean distance in ranks",
    "mse": "mean squared distance",
    "macro_mae": "MAE, every rank counts the same",
    "qwk": "agreement beyond chance, 1 is perfect",
}
LEGEND = (
    '<p class="note">Words pull <mark class="up" style="--s:.7">up, underlined</mark> or '
    '<mark class="down" style="--s:.7">down, dotted</mark>; the stronger the colour, the stronger the pull.</p>'
)


def direction(measure: str) -> str:
    return "more is better" if MEASURES[measure][1] else "less is better"


def constant_names(found: Findings) -> dict[str, str]:
    """What the baselines answer; one name where both answer the same."""
    if not found.constants:
        return {}
    commonest, median = found.constants["majority"], found.constants["median"]
    if commonest == median:
        return {"median": f"always {median}"}
    return {"majority": f"always {commonest}, the commonest", "median": f"always {median}, the median"}


def figures(found: Findings) -> str:
    """The measures as cards, each beside the answers that need no model, on the same rows."""
    cards = []
    for key, name in HEADINGS.items():
        mine, is_more_better = found.metrics["model"][key], MEASURES[key][1]
        beside = ""
        for baseline, words in constant_names(found).items():
            theirs = found.metrics[baseline][key]
            is_worse = mine < theirs if is_more_better else mine > theirs
            kind, remark = (' class="worse"', ", better than the model") if is_worse else ("", "")
            beside += f"<li{kind}>{escape(words)}: <b>{figure(theirs)}</b>{remark}</li>"
        arrow = "\N{UPWARDS ARROW}" if is_more_better else "\N{DOWNWARDS ARROW}"
        cards.append(
            f'<div class="figure"><h3>{escape(name)} <small><span aria-hidden="true">{arrow}</span> {direction(key)}</small></h3>'
            f"<strong>{figure(mine)}</strong><p>{MEANINGS[key]}</p>{f'<ul>{beside}</ul>' if beside else ''}</div>"
        )
    return f'<div class="figures">{"".join(cards)}</div>'


def cautions(found: Findings, model: TrainedModel, measured: EncodedRows, is_trained_on: bool) -> list[tuple[str, list[str]]]:
    """What must be known before any figure is believed: headings and sentences."""
    boxes = []
    if is_trained_on:
        boxes.append(
            ("The model was trained on these rows", ["All figures here flatter it: measure it on rows that it has not seen."])
        )
    earlier, is_same = model.metadata.get("warnings") or [], found.was_measured_in_training(model.metadata)
    if earlier and is_same:
        boxes.append((earlier[0], earlier[1:]))
    elif verdict.is_no_better(found):
        boxes.append((verdict.beside_median(found), verdict.likely_reasons(found, model, measured)))
    if earlier and not is_same:
        boxes.append(("Noted when the model was trained", list(earlier)))
    return boxes


def caution_box(title: str, sentences: Sequence[str]) -> str:
    return f'<aside class="caution"><h2>{escape(title)}</h2>{bullets(sentences)}</aside>'


def verdict_section(found: Findings) -> str:
    told = verdict.sentences(found)
    if not verdict.is_no_better(found):  # else it is in the box above
        told.insert(0, verdict.beside_median(found))
    words = f'<p class="headline">{escape(verdict.headline(found))}</p>{bullets(told)}'
    return section("Verdict", words + figures(found), kind="verdict broad")


def confusion_width(names: Sequence[str]) -> tuple[float, bool]:
    """How wide a column must be for its name, in rem, and whether the table then needs more than half of a desktop."""
    longest = max(len(word) for name in names for word in name.split() or [name])
    least = 3.2 if len(names) <= MANY_RANKS else 2.6
    width = min(max(least, 0.6 * longest + 0.9), 8.0)
    return width, width * (len(names) + 1) > 30


def confusion_section(found: Findings, width: float, is_broad: bool) -> str:
    n_ranks = len(found.names)
    totals = np.maximum(found.n_true, 1)
    rows = []
    for true, name in enumerate(found.names):
        cells = []
        for answer in range(n_ranks):
            count = int(found.matrix[true, answer])
            share = count / int(totals[true])
            content = f"{count:,}<br><small>{percent(share)}</small>" if count else '<span class="note">0</span>'
            cells.append(cell(content, "cell right" if true == answer else "cell", share))
        rows.append([escape(name), *cells])
    above = f'<tr><td></td><th scope="colgroup" colspan="{n_ranks}">answer</th></tr>'
    shown = table("Confusion matrix", ["true", *map(escape, found.names)], rows, "confusion", above)
    note = "True ranks by row, answers by column: how many rows, and which share of the true rank. Right answers are framed."
    shown = f'<div style="--n:{n_ranks};--w:{width:.1f}rem">{shown}</div>'
    return section("Confusion matrix", shown, note, "broad" if is_broad else "")


def rank_section(found: Findings) -> str:
    def bar(share: float) -> str:
        return cell(percent(share), "bar", share) if share == share else NOTHING

    rows = []
    for place, name in enumerate(found.names):
        counts = [f"{count:,}" for count in (found.counts.get(name, 0), found.n_true[place])]
        off = f"{found.off[place]:.2f}" if found.n_true[place] else NOTHING
        rows.append([escape(name), *counts, bar(found.found[place]), bar(found.right[place]), off])
    headings = ["rank", "trained on", "rows here", "found", "right", "ranks off"]
    note = (
        "Found: the share of the rank's rows that get it. Right: the share of its answers that are right. Ranks off: how far "
        "answers are from it on average; less is better."
    )
    return section("Rank by rank", table("Measures by rank", headings, rows, "ranks"), note)


def coverage_section(found: Findings) -> str:
    measured = [found.coverage(asked) for asked in COVERAGES]

    def shown(of: Coverage | None) -> list[str]:
        return [NOTHING, NOTHING] if of is None else [percent(of.held), f"{of.size:.1f}"]

    rows = [["<b>all rows</b>", *(value for overall, _ in measured for value in shown(overall))]]
    for place, name in enumerate(found.names):
        rows.append([escape(name), *(value for _, by_rank in measured for value in shown(by_rank[place]))])
    asked = "".join(f'<th scope="colgroup" colspan="2">asked {percent(share)}</th>' for share in COVERAGES)
    above = f"<tr><td></td>{asked}</tr>"
    note = (
        "How often the sets of predict --set hold the true rank, and how many ranks they hold. The promise is made for all rows "
        "together, not for each rank; smaller sets say more."
    )
    headings = ["true rank", *["held", "size"] * len(COVERAGES)]
    return section("Rank sets", table("Coverage and size of rank sets", headings, rows, "sets", above), note)


def reliability_section(found: Findings) -> str:
    note = (
        "On the dashed line, ranks come true as often as promised; larger dots stand for more cases. Promises are off by "
        f"{100 * found.promises_off():.1f} points on average."
    )
    came_true = found.n_true / found.n_rows
    worst = int(np.argmax(np.abs(found.promised - came_true)))
    by_chance = np.sqrt(came_true[worst] * (1 - came_true[worst]) / found.n_rows)
    if abs(found.promised[worst] - came_true[worst]) > max(0.02, 2 * by_chance):
        note += (
            f" Most off is rank {found.names[worst]}: {percent(found.promised[worst])} on average, "
            f"but {percent(came_true[worst])} of these rows have it."
        )
    return section("Reliability", plots.reliability(found.reliability()), note)


def shares_section(found: Findings) -> str:
    series = [("these rows", found.n_true / found.n_rows), ("answers", found.n_answered / found.n_rows)]
    n_trained = sum(found.counts.values())
    if n_trained:
        trained = np.array([found.counts.get(name, 0) for name in found.names])
        series.insert(0, ("training", trained / n_trained))
    drawn = plots.shares(found.names, [(title, values.tolist()) for title, values in series])
    return section("How often each rank occurs", drawn)


def search_section(metadata: dict[str, Any]) -> str:
    search = metadata["search"]
    name, spread = HEADINGS[search["measure"]], search.get("spread")
    folds = (metadata.get("data") or {}).get("folds")
    fold = f"{folds}-fold " if folds else ""
    note = f"{name} by C in {fold}cross-validation on the training rows; {direction(search['measure'])}."
    note += f" C = {search['best_C']:g} was chosen{with_gamma(metadata)}."
    if spread:
        note += " Bars show one standard error of the mean over the folds."
    drawn = plots.price_curve(search["C"], search["scores"], search["best_C"], name, spread)
    return section("Choice of C", drawn, note)


def with_gamma(metadata: dict[str, Any]) -> str:
    gamma = (metadata.get("choices") or {}).get("gamma")
    return "" if gamma is None else f", with gamma = {gamma:.4g}"


def data_section(metadata: dict[str, Any], found: Findings) -> str:
    data = metadata.get("data") or {}
    if not data:
        return section("Training data", '<p class="note">The model file has no record of it.</p>')
    notes = [f"{data['rows']:,} rows were read, {data['trained_on']:,} trained on, in {data['columns']:,} columns."]
    if "dropped_columns" in data:
        notes.append(f"{data['dropped_columns']:,} columns of small weight were dropped.")
    notes += [f"{note[:1].upper()}{note[1:]}." for note in data_notes(data)]
    if skewed := verdict.skew(found.counts):
        notes.append(skewed)
    unseen = [name for name, count in found.counts.items() if not count]
    if unseen:
        notes.append(f"No training row has rank {listed(unseen, 'or')}.")
    return section("Training data", bullets(notes) + earlier_figures(metadata, found))


def earlier_figures(metadata: dict[str, Any], found: Findings) -> str:
    """Measures of other rows than the page's, or of the model before it was compacted: on their own, under their own name."""
    metrics = {name: values for name, values in (metadata.get("metrics") or {}).items() if found.metrics.get(name) != values}
    n_rows = (metadata.get("metrics") or {}).get("rows")
    metrics.pop("rows", None)
    if not metrics:
        return ""
    where = (
        f"rows of {metadata['test']}" if metadata.get("test") else f"rows held out of {metadata.get('source', 'the training file')}"
    )
    lines = [[escape(name), *(figure(values[key]) for key in HEADINGS)] for name, values in metrics.items()]
    caption = f"Measured when the model was trained, on {n_rows:,} {where}"
    same = "" if found.was_measured_in_training(metadata) else ", other rows than those of this page"
    shown = table(caption, ["", *map(escape, HEADINGS.values())], lines, "earlier")
    return f'<h3>When it was trained</h3><p class="note">{escape(caption + same)}.</p>{shown}'


def terms_section(model: TrainedModel) -> str:
    """The columns of largest weight, once where all boundaries share their weights; nothing with a kernel."""
    tops, is_text = model.top_features(N_TERMS), model.inputs.kind == "text"
    if not tops:
        return ""
    is_shared = len(tops) > 1 and all((top.up, top.down) == (tops[0].up, tops[0].down) for top in tops)
    rows = []
    for top in tops[:1] if is_shared else tops:
        name = "all" if is_shared else boundary_name(top.lower, top.upper)
        lists = ""
        for kind, terms in zip(("down", "up"), worth_showing(top.down, top.up), strict=True):
            weight = "" if is_text else " <small>{}</small>"
            chips = "".join(
                f'<span class="{kind} term">{escape(term)}{weight.format(signed(value))}</span>' for term, value in terms
            )
            lists += f"<p><i>pulls {kind}</i> {chips or 'nothing'}</p>"
        rows.append(f'<div class="boundary"><h3>{name}</h3>{lists}</div>')
    what = "terms" if is_text else "columns"
    note = f"The {what} of largest weight at each boundary between neighbouring ranks."
    if is_shared:
        note = f"The {what} of largest weight. All boundaries of this model share them."
    return section(f"Most important {what}", "".join(rows), note, "broad")


def errors_section(model: TrainedModel, measured: EncodedRows, found: Findings) -> str:
    note, legend = "Probabilities of the ranks: the true one is framed, the answer underlined.", ""
    if model.is_linear:
        note += " Below, what adds up to the row's score at the first boundary between the true rank and the answer."
        legend = LEGEND if model.inputs.kind == "text" else ""
    return section("Largest errors", legend + error_articles(model, measured.rows, found), note, "broad")


def make_report(model: TrainedModel, measured: EncodedRows, measured_on: str, *, is_trained_on: bool = False) -> str:
    """The page, for rows that the model was not trained on, or a page that says that it was."""
    found, metadata = Findings(model, measured), model.metadata
    boxes = [caution_box(*box) for box in cautions(found, model, measured, is_trained_on)]
    middle = [rank_section(found), coverage_section(found), data_section(metadata, found)]
    middle += [shares_section(found), reliability_section(found)]
    if metadata.get("search"):
        middle.append(search_section(metadata))
    width, is_broad = confusion_width(found.names)
    confusion = confusion_section(found, width, is_broad)
    parts = [
        *boxes,
        verdict_section(found),
        confusion if is_broad else "",
        f'<div class="columns">{"".join(middle if is_broad else [confusion, *middle])}</div>',
        terms_section(model),
        errors_section(model, measured, found),
        settings_section(model),
    ]
    title = f"{type(model.estimator).__name__} for {model.inputs.target}"
    kernel = "" if model.is_linear else f", kernel {model.estimator.kernel}{with_gamma(metadata)}"
    ranks = ", ".join(found.names) if len(found.names) <= MOST_NAMED else f"{found.names[0]} to {found.names[-1]}"
    lead = f"{len(found.names)} ranks, {ranks}{kernel}; measured on {found.n_rows:,} {measured_on}"
    style = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # The browser itself refuses whatever would leave the page.
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">"""
        f'<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{style}</style></head><body>'
        f'<header><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p></header><main>{"".join(parts)}</main>'
        f"<footer>Written by rankplane {escape(version('rankplane'))}. This page loads nothing and runs nothing.</footer>"
        "</body></html>\n"
    )


def write_report(
    path: str | os.PathLike[str], model: TrainedModel, measured: EncodedRows, measured_on: str, *, is_trained_on: bool = False
) -> None:
    """Write the page, whole or not at all."""
    page = make_report(model, measured, measured_on, is_trained_on=is_trained_on)
    with replacing(path) as file:
        file.write(page.encode("utf-8", "replace"))
