"""How the models compare: all of them on texts and on tables, with average ranks and diagrams of critical differences."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import read_lines
from benchmarks.layout import newest_of_set, origin
from lab import drawing
from lab.display import console
from lab.measures import MEASURES
from lab.results import Line
from lab.significance import LEVEL, TOP, Verdict, average_ranks, compare, depth, draw
from lab.tables import number, table

INTRODUCTION = """## How the models compare

All models of the package on the same splits (`python -m benchmarks.models.run`), each tuned on training rows alone. Linear models
of texts use TF-IDF of words and pairs of words; tables are standardised. Accuracy, MAE and MSE are means over the sets of answers
by calibrated probabilities; *MAE uncalibrated* is that of the model's own ranker. *Ranks* are average ranks over the sets, 1 being
best, and the table is sorted by those of MAE. CPU seconds are sums over the sets, of one split: choice of C (and of gamma), fit and
calibration. Models that are not named with a loss have the hinge loss, or their own.

Models joined by a bar in the diagrams cannot be told apart at the 95 % level (Nemenyi's test).
"""
DISCRIMINANT = """### KDLOR on many texts

KDLOR is solved by conjugate gradients, with a few numbers per row and boundary, and a weight per column and boundary (`python -m
benchmarks.models.discriminant`). One fit at fixed C on one thread, by the default stopping rules; *gap* is the duality gap
relative to the dual objective.
"""
KINDS = {"text": "texts", "table": "tables"}
BOTH = "texts and tables"
Errors = NDArray[np.float64]  # by (set, model)


class Family:
    """The newest lines of some sets, of the models that all these sets have."""

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        self.title = title
        newest = {(line["data"]["name"], line["split"], line["model"]): line for line in lines}
        splits = list(dict.fromkeys((name, split) for name, split, _ in newest))
        models = list(dict.fromkeys(model for _, _, model in newest))
        self.models = [model for model in models if all((*split, model) in newest for split in splits)]
        self.sets = list(dict.fromkeys(name for name, _ in splits))
        self.lines = {
            (name, model): [newest[one, split, model] for one, split in splits if one == name]
            for name in self.sets
            for model in self.models
        }

    def values(self, *keys: str) -> Errors:
        """Means over splits, by set and model."""
        return np.array([[np.mean([drilled(line, keys) for line in self.lines[n, m]]) for m in self.models] for n in self.sets])

    def errors(self, measure: str) -> Errors:
        found = self.values("measures", measure)
        return -found if measure == "accuracy" else found


def drilled(line: Line, keys: Sequence[str]) -> float:
    value = line
    for key in keys:
        value = value[key]
    return float(value)  # type: ignore[arg-type]


def section(folder: Path) -> str:
    lines = read_lines("models")
    families = [Family(title, [line for line in lines if line["data"]["kind"] == kind]) for kind, title in KINDS.items()]
    families = [family for family in families if family.sets]
    if not families:
        return ""
    last = max(lines, key=lambda line: line["run"])
    both = [Family(BOTH, lines)] if len(families) == len(KINDS) else []
    parts = [INTRODUCTION, f"{origin(last)}.\n"]
    for family in families:
        parts += [f"### Models on {family.title}\n", rows_of(family), means(family), by_set(family)]
    parts += diagrams([*families, *both], folder / "figures" / "benchmarks")
    parts.append(discriminant_section(newest_of_set(read_lines("discriminant"))))
    return "\n".join(parts)


def rows_of(family: Family) -> str:
    """How many rows and splits there are."""
    some = [family.lines[name, family.models[0]] for name in family.sets]
    about = ", ".join(f"{lines[0]['data']['name']} {lines[0]['data']['rows']:,}" for lines in some)
    n_splits = max(map(len, some))
    return f"Training rows: {about}; {n_splits} split{'s' if n_splits > 1 else ''}.\n"


def means(family: Family) -> str:
    by_measure = {measure: family.values("measures", measure).mean(axis=0) for measure in MEASURES}
    ranks = {measure: average_ranks(family.errors(measure)) for measure in MEASURES}
    plain = family.values("of_ranker", "mae").mean(axis=0)
    seconds, unfinished = family.values("seconds").sum(axis=0), family.values("unfinished").sum(axis=0)
    rows = []
    for i in np.argsort(ranks["mae"], kind="stable").tolist():
        cells = [best(by_measure[m][i], by_measure[m], larger=m == "accuracy") for m in MEASURES]
        places = [number(ranks[m][i], 1) for m in MEASURES]
        rows.append([family.models[i], *cells, best(plain[i], plain), *places, f"{seconds[i]:.0f}", f"{unfinished[i]:.0f}"])
    head = ["model", "accuracy", "MAE", "MSE", "MAE uncalibrated", *(f"rank, {m}" for m in ("accuracy", "MAE", "MSE"))]
    return table([*head, "CPU seconds", "warnings"], rows)


def by_set(family: Family) -> str:
    """MAE of every model on every set."""
    errors = family.errors("mae")
    order = np.argsort(average_ranks(errors), kind="stable").tolist()
    rows = [[family.models[i], *(best(errors[s, i], errors[s]) for s in range(len(family.sets)))] for i in order]
    return f"MAE by set:\n\n{table(['model', *family.sets], rows)}"


def best(value: float, values: NDArray[np.float64], *, larger: bool = False) -> str:
    """Bold if it is the best of the values as they are shown."""
    shown, of_all = number(value), [number(one) for one in values]
    return f"**{shown}**" if shown == (max(of_all) if larger else min(of_all)) else shown


def diagrams(families: Sequence[Family], folder: Path) -> list[str]:
    """Tests over the sets, with a picture of average ranks by MAE."""
    chosen = [family for family in families if len(family.sets) >= 3 and len(family.models) >= 3]
    if not chosen:
        return []
    verdicts = [compare(family.errors("mae")) for family in chosen]
    rows = [verdict_row(family, measure) for family in chosen for measure in MEASURES]
    head = ["sets", "measure", "number", "Friedman p", "CD", "best (average rank)", "worse by more than CD"]
    parts = ["### Average ranks\n", table(head, rows, left=2)]
    try:
        figure, panels = drawing.column([0.45 + 0.32 * (TOP + depth(verdict)) for verdict in verdicts], 9.5)
    except ImportError:
        console.print("No pictures: matplotlib is not installed.")
        return parts
    for axes, family, verdict in zip(panels, chosen, verdicts, strict=True):
        draw(axes, [model.replace("AdversarialOrdinal", "Adversarial") for model in family.models], verdict)
        axes.set_title(f"{family.title} ({verdict.n_sets} sets), MAE", loc="left")
    shown = drawing.save(figure, folder, "models", "Critical differences of average ranks by MAE, on texts, on tables and on both")
    return [*parts, shown.replace(f"({folder.name}/", f"({folder.parent.name}/{folder.name}/")]


def verdict_row(family: Family, measure: str) -> list[str]:
    found: Verdict = compare(family.errors(measure))
    order = np.argsort(found.ranks, kind="stable").tolist()
    first = order[0]
    beaten = [family.models[i] for i in order[1:] if found.ranks[i] - found.ranks[first] > found.critical_difference]
    differ = found.p_value < 1 - LEVEL
    shown = "accuracy" if measure == "accuracy" else measure.upper()
    numbers = [str(found.n_sets), f"{found.p_value:.2g}", number(found.critical_difference, 2)]
    return [
        family.title,
        shown,
        *numbers,
        f"{family.models[first]} ({found.ranks[first]:.2f})",
        (differ and ", ".join(beaten)) or "nobody",
    ]


def discriminant_section(runs: Sequence[list[Line]]) -> str:
    if not runs:
        return ""
    rows = []
    for lines in runs:
        about = lines[0]["data"]
        name = f"{about['name']}: {about['rows']:,} x {about['columns']:,}, {about['X'] / 2**20:,.0f} MB"
        for line in lines:
            figures = [f"{line['seconds']:.1f}", f"{line['peak'] / 2**20:,.0f}", f"{line['sweeps']:,}", f"{line['gap']:.1g}"]
            rows.append([name, line["model"], *figures, number(line["measures"]["mae"])])
    head = ["texts: rows x columns, size of X", "model", "CPU seconds", "MB more than X", "steps or sweeps", "gap", "MAE of ranker"]
    return f"{DISCRIMINANT}\n{origin(runs[-1][-1])}.\n\n{table(head, rows, left=2)}"
