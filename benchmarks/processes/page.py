"""Gaussian processes beside support vectors with the same kernel."""

from pathlib import Path

import numpy as np

from benchmarks.common import read_lines
from benchmarks.layout import newest_of_set, origin
from lab.results import Line
from lab.tables import number, table

INTRODUCTION = """## Gaussian processes

GPOR beside NPSVOR and SVOR with the same kernel, on standardised columns (`python -m benchmarks.processes.run`). GPOR maximises
the evidence; the others search C and gamma by cross-validation and calibrate their probabilities. Each cell is the MAE of the
median, the share of wrong modes and the log loss on test rows, means over the splits. The average rank is over sets and splits, 1
being best.
"""
MEASURES = ("mae", "error", "log_loss")


def average_rank(lines: list[Line], method: str, measure: str) -> float:
    places = []
    for name, split in {(line["data"]["name"], line["split"]) for line in lines}:
        found = {
            line["method"]: line["measures"][measure] for line in lines if (line["data"]["name"], line["split"]) == (name, split)
        }
        values = np.array(list(found.values()))
        places.append((values < found[method]).sum() + 0.5 * ((values == found[method]).sum() + 1))
    return float(np.mean(places))


def section(folder: Path) -> str:
    runs = newest_of_set(read_lines("processes"))
    if not runs:
        return ""
    lines = [line for run in runs for line in run]
    methods = list(dict.fromkeys(line["method"] for line in lines))
    rows = []
    for run in runs:
        for method in methods:
            own = [line for line in run if line["method"] == method]
            means = [float(np.mean([line["measures"][measure] for line in own])) for measure in MEASURES]
            seconds = float(np.mean([line["seconds"] for line in own]))
            name = f"{run[0]['data']['name']} ({run[0]['data']['rows']:,} rows, {run[0]['data']['ranks']} ranks)"
            rows.append((name, method, *(number(value, 3) for value in means), number(seconds, 1)))
    ranks = [(method, *(number(average_rank(lines, method, measure), 2) for measure in MEASURES)) for method in methods]
    n_splits = len({line["split"] for line in lines})
    head = ("method", "MAE", "zero-one error", "log loss")
    note = f"{n_splits} split{'s' if n_splits > 1 else ''}; processor seconds of a fit with its choice of parameters. "
    note += f"{origin(lines[-1])}."
    if others := sorted({line["data"]["name"] for line in lines if line["commit"] != lines[-1]["commit"]}):
        note += f" Of another commit: {', '.join(others)}."
    parts = [INTRODUCTION, note, "", table(("set", *head, "CPU seconds"), rows, left=2), "Average ranks:", "", table(head, ranks)]
    return "\n".join(parts)
