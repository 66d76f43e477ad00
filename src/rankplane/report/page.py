"""The sections of a report, starting with a verdict in words. Everything is measured on the rows that it is given."""

import os
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from rankplane.files import replacing
from rankplane.metrics import MEASURES
from rankplane.report import plots, verdict
from rankplane.report.errors import error_articles
from rankplane.report.findings import COVERAGES, Coverage, Findings
from rankplane.report.markup import (
    NOTHING,
    boundary_name,
    bullets,
    cell,
    html_table,
    listed,
    percent,
    section,
    signed,
    stylesheet,
    worth_showing,
)
from rankplane.report.settings import settings_section
from rankplane.training.model import EncodedRows, TrainedModel
from rankplane.training.wording import HEADINGS, choice_headings, choice_rows, data_notes, format_measure, measured_on
from rankplane.versions import this_version

N_TERMS = 10
MOST_NAMED = 8  # ranks to list in the line under the title
MANY_RANKS = 14  # with more, columns of the confusion matrix are narrow
MEANINGS = {
    "accuracy": "share of rows with the right rank",
    "mae": "mean distance in ranks",
    "mse": "mean squared distance",
    "macro_mae": "MAE with equal weight for every rank",
    "qwk": "agreement beyond chance, 1 is perfect",
}
LEGEND = (
    '<p class="note">Words pull <mark class="up" style="--s:.7">up, underlined</mark> or '
    '<mark class="down" style="--s:.7">down, dotted</mark>; the stronger the colour, the stronger the pull.</p>'
)


def direction(measure: str) -> str:
    return "more is better" if MEASURES[measure][1] else "less is better"


def constant_names(found: Findings) -> dict[str, str]:
    """Names of the constant baselines; one name if both predict the same rank."""
    if not found.constants:
        return {}
    commonest, median = found.constants["majority"], found.constants["median"]
    if commonest == median:
        return {"median": f"always {median}"}
    return {"majority": f"always {commonest}, the most frequent", "median": f"always {median}, the median"}


def measure_cards(found: Findings) -> str:
    """The measures as cards, each with those of the constant baselines on the same rows."""
    cards = []
    for key, name in HEADINGS.items():
        mine, is_more_better = found.metrics["model"][key], MEASURES[key][1]
        beside = ""
        for baseline, words in constant_names(found).items():
            theirs = found.metrics[baseline][key]
            is_worse = mine < theirs if is_more_better else mine > theirs
            kind, remark = (' class="worse"', ", better than the model") if is_worse else ("", "")
            beside += f"<li{kind}>{escape(words)}: <b>{format_measure(theirs)}</b>{remark}</li>"
        arrow = "\N{UPWARDS ARROW}" if is_more_better else "\N{DOWNWARDS ARROW}"
        cards.append(
            f'<div class="metric"><h3>{escape(name)} <small><span aria-hidden="true">{arrow}</span> {direction(key)}</small></h3>'
            f"<strong>{format_measure(mine)}</strong><p>{MEANINGS[key]}</p>{f'<ul>{beside}</ul>' if beside else ''}</div>"
        )
    return f'<div class="metrics">{"".join(cards)}</div>'


def cautions(found: Findings, model: TrainedModel, measured: EncodedRows, is_trained_on: bool) -> list[tuple[str, list[str]]]:
    """Warnings that come before the results: headings and sentences."""
    boxes = []
    if is_trained_on:
        boxes.append(
            (
                "The model was trained on these rows",
                ["All results here are too good: evaluate it on rows that it was not trained on."],
            )
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
    sentences = verdict.sentences(found)
    if not verdict.is_no_better(found):  # otherwise it is in the box above
        sentences.insert(0, verdict.beside_median(found))
    words = f'<p class="headline">{escape(verdict.headline(found))}</p>{bullets(sentences)}'
    return section("Verdict", words + measure_cards(found), kind="verdict broad")


def confusion_width(names: Sequence[str]) -> tuple[float, bool]:
    """The width of a column that fits its name, in rem, and whether the table then needs more than half of a wide screen."""
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
    above = f'<tr><td></td><th scope="colgroup" colspan="{n_ranks}">predicted</th></tr>'
    shown = html_table("Confusion matrix", ["true", *map(escape, found.names)], rows, "confusion", above)
    note = "True ranks by row, predicted ranks by column: number of rows, and share of the true rank. Correct ones are framed."
    shown = f'<div style="--n:{n_ranks};--w:{width:.1f}rem">{shown}</div>'
    return section("Confusion matrix", shown, note, "broad" if is_broad else "")


def rank_section(found: Findings) -> str:
    def bar(share: float) -> str:
        return cell(percent(share), "bar", share) if share == share else NOTHING

    rows = []
    for place, name in enumerate(found.names):
        counts = [f"{count:,}" for count in (found.counts.get(name, 0), found.n_true[place])]
        off = f"{found.distance_by_rank[place]:.2f}" if found.n_true[place] else NOTHING
        rows.append([escape(name), *counts, bar(found.recall[place]), bar(found.precision[place]), off])
    headings = ["rank", "trained on", "rows here", "found", "right", "ranks off"]
    note = (
        "Found: the share of the rank's rows that are predicted correctly. Right: the share of its predictions that are correct. "
        "Ranks off: mean distance of predictions from it; less is better."
    )
    return section("Rank by rank", html_table("Measures by rank", headings, rows, "ranks"), note)


def coverage_section(found: Findings) -> str:
    measured = [found.coverage(asked) for asked in COVERAGES]

    def shown(of: Coverage | None) -> list[str]:
        return [NOTHING, NOTHING] if of is None else [percent(of.rate), f"{of.size:.1f}"]

    rows = [["<b>all rows</b>", *(value for overall, _ in measured for value in shown(overall))]]
    for place, name in enumerate(found.names):
        rows.append([escape(name), *(value for _, by_rank in measured for value in shown(by_rank[place]))])
    asked = "".join(f'<th scope="colgroup" colspan="2">asked {percent(share)}</th>' for share in COVERAGES)
    above = f"<tr><td></td>{asked}</tr>"
    note = (
        "How often the sets of predict --set contain the true rank, and how many ranks they contain. The requested coverage "
        "applies to all rows together, not to each rank; smaller sets are more informative."
    )
    headings = ["true rank", *["held", "size"] * len(COVERAGES)]
    return section("Rank sets", html_table("Coverage and size of rank sets", headings, rows, "sets", above), note)


def reliability_section(found: Findings) -> str:
    note = (
        "On the dashed line, ranks occur as often as predicted; larger dots stand for more cases. Probabilities are off by "
        f"{100 * found.calibration_error():.1f} percentage points on average."
    )
    observed = found.n_true / found.n_rows
    worst = int(np.argmax(np.abs(found.mean_probability - observed)))
    by_chance = np.sqrt(observed[worst] * (1 - observed[worst]) / found.n_rows)
    if abs(found.mean_probability[worst] - observed[worst]) > max(0.02, 2 * by_chance):
        note += (
            f" The largest difference is at rank {found.names[worst]}: its mean probability is "
            f"{percent(found.mean_probability[worst])}, but {percent(observed[worst])} of these rows have it."
        )
    return section("Reliability", plots.reliability(found.reliability()), note)


def shares_section(found: Findings) -> str:
    series = [("these rows", found.n_true / found.n_rows), ("predicted", found.n_answered / found.n_rows)]
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
    where = "on training rows that were held out" if folds == 1 else f"in {f'{folds}-fold ' if folds else ''}cross-validation"
    note = f"{name} by C {where}{'' if folds == 1 else ' on the training rows'}; {direction(search['measure'])}."
    note += f" C = {search['best_C']:g} was chosen{with_gamma(metadata)}."
    if spread:
        note += " Bars show one standard error of the mean."
    if search.get("not_tried"):
        note += " Larger values were not tried: the last two were worse than the best by more than the noise."
    drawn = plots.curve_over_c(search["C"], search["scores"], search["best_C"], name, spread)
    return section("Choice of C", drawn, note)


def choice_section(records: Sequence[dict[str, Any]]) -> str:
    tables = ""
    for record in records:
        rows = [[escape(f"{name} ({note})" if note else name), *cells] for cells, name, note in choice_rows(record)]
        headings = ["candidate", *map(escape, choice_headings(record))]
        caption = f"Choice of {record['what']}"
        tables += f"<h3>{escape(record['what'].capitalize())}</h3>{html_table(caption, headings, rows, 'choice')}"
    note = (
        "Mean error on rows of a sample that no candidate has seen. Those that are clearly worse are not tried on larger samples. "
        "Rows of this page took no part."
    )
    return section("Choice of features and model", tables, note)


def with_gamma(metadata: dict[str, Any]) -> str:
    gamma = (metadata.get("choices") or {}).get("gamma")
    return "" if gamma is None else f", with gamma = {gamma:.4g}"


def data_section(metadata: dict[str, Any], found: Findings) -> str:
    data = metadata.get("data") or {}
    if not data:
        return section("Training data", '<p class="note">The model file has no record of it.</p>')
    notes = [f"{data['rows']:,} rows were read, {data['trained_on']:,} trained on, in {data['columns']:,} columns."]
    if "dropped_columns" in data:
        notes.append(f"{data['dropped_columns']:,} columns with small weights were dropped.")
    notes += [f"{note[:1].upper()}{note[1:]}." for note in data_notes(data)]
    if skewed := verdict.skew(found.counts):
        notes.append(skewed)
    unseen = [name for name, count in found.counts.items() if not count]
    if unseen:
        notes.append(f"No training row has rank {listed(unseen, 'or')}.")
    return section("Training data", bullets(notes) + earlier_measures(metadata, found))


def earlier_measures(metadata: dict[str, Any], found: Findings) -> str:
    """Measures from training: of other rows than the page's, or of the model before it was compacted."""
    metrics = {name: values for name, values in (metadata.get("metrics") or {}).items() if found.metrics.get(name) != values}
    n_rows = (metadata.get("metrics") or {}).get("rows")
    metrics.pop("rows", None)
    if not metrics:
        return ""
    event = "recalibrated" if metadata.get("recalibrated") else "trained"
    lines = [[escape(name), *(format_measure(values[key]) for key in HEADINGS)] for name, values in metrics.items()]
    caption = f"Measured when the model was {event}, on {n_rows:,} {measured_on(metadata)}"
    same = "" if found.was_measured_in_training(metadata) else ", other rows than those of this page"
    shown = html_table(caption, ["", *map(escape, HEADINGS.values())], lines, "earlier")
    return f'<h3>When it was {event}</h3><p class="note">{escape(caption + same)}.</p>{shown}'


def terms_section(model: TrainedModel) -> str:
    """The columns with the largest weights, shown once if all boundaries share their weights; nothing with a kernel."""
    tops, is_text = model.top_features(N_TERMS), model.inputs.kind == "text"
    what = {"text": "terms", "mixed": "terms and columns"}.get(model.inputs.kind, "columns")
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
    note = f"The {what} with the largest weights at each boundary between neighbouring ranks."
    if is_shared:
        note = f"The {what} with the largest weights. All boundaries of this model share them."
    return section(f"Most important {what}", "".join(rows), note, "broad")


def errors_section(model: TrainedModel, measured: EncodedRows, found: Findings) -> str:
    note, legend = "Probabilities of the ranks: the true one is framed, the predicted one underlined.", ""
    if model.is_linear:
        note += " Below, the contributions to the row's score at the first boundary between the true and the predicted rank."
        legend = LEGEND if model.inputs.text else ""
    return section("Largest errors", legend + error_articles(model, measured.rows, found), note, "broad")


def make_report(model: TrainedModel, measured: EncodedRows, measured_on: str, *, is_trained_on: bool = False) -> str:
    """The page as HTML; it says so if the model was trained on these rows."""
    found, metadata = Findings(model, measured), model.metadata
    boxes = [caution_box(*box) for box in cautions(found, model, measured, is_trained_on)]
    middle = [rank_section(found), coverage_section(found), data_section(metadata, found)]
    middle += [shares_section(found), reliability_section(found)]
    if metadata.get("choice"):
        middle.append(choice_section(metadata["choice"]))
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
    style = stylesheet("base.css", "style.css")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # Forbids the browser to load anything from outside the page.
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">"""
        f'<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{style}</style></head><body>'
        f'<header><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p></header><main>{"".join(parts)}</main>'
        f"<footer>Written by rankplane {escape(this_version())}. This page loads nothing and runs nothing.</footer>"
        "</body></html>\n"
    )


def write_report(
    path: str | os.PathLike[str], model: TrainedModel, measured: EncodedRows, measured_on: str, *, is_trained_on: bool = False
) -> None:
    """Write the page, or leave an existing file untouched if that fails."""
    page = make_report(model, measured, measured_on, is_trained_on=is_trained_on)
    with replacing(path) as file:
        file.write(page.encode("utf-8", "replace"))
