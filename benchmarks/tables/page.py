"""Tables: models, trees and other ordinal models on the same splits."""

from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.common import read_lines
from benchmarks.layout import origin
from lab.results import Line
from lab.tables import number, table

INTRODUCTION = """## Tables

MAE on test rows of tables of few columns, mean over the splits (`python -m benchmarks.tables.run`). Every method chooses its
settings on training rows alone; *rankplane train* is the command line with its defaults, which chooses between planes and a
kernel, and between columns and their logarithms. The average rank is over sets and splits, 1 being best. *warnings* counts fits
that say that they have not converged.
"""


def section(folder: Path) -> str:
    lines = read_lines("tables")
    if not lines:
        return ""
    # Of each set, split and method the newest line; only methods that have been run on all of them.
    newest = {(line["data"]["name"], line["split"], line["competitor"]): line for line in lines}
    splits = {(name, split) for name, split, _ in newest}
    methods = list(dict.fromkeys(line["competitor"] for line in newest.values()))
    methods = [method for method in methods if all((*split, method) in newest for split in splits)]
    by_split: dict[tuple[str, int], dict[str, Line]] = defaultdict(dict)
    for (name, split, method), line in newest.items():
        by_split[name, split][method] = line
    complete = {key: {method: found[method] for method in methods} for key, found in by_split.items()}
    sets = list(dict.fromkeys(name for name, _ in complete))
    ranks = np.array([average_ranks([found[method]["measures"]["mae"] for method in methods]) for found in complete.values()])
    rows = []
    for place, method in enumerate(methods):
        of_method = [found[method] for found in complete.values()]
        errors = [
            float(np.mean([found[method]["measures"]["mae"] for (name, _), found in complete.items() if name == one]))
            for one in sets
        ]
        seconds, warned = (sum(line[key] for line in of_method) for key in ("seconds", "unfinished"))
        rows.append(
            (method, *(number(error, 3) for error in errors), number(ranks[:, place].mean(), 1), number(seconds, 0), str(warned))
        )
    rows.sort(key=lambda row: float(row[-3]))
    some = [found[methods[0]] for found in complete.values()]
    counted = ", ".join(f"{one} {next(line['data']['rows'] for line in some if line['data']['name'] == one):,}" for one in sets)
    n_splits = max(split for _, split in complete) + 1
    head = ("method", *sets, "average rank", "CPU seconds", "warnings")
    note = f"Training rows: {counted}; {n_splits} split{'s' if n_splits > 1 else ''}. {origin(some[-1])}."
    return f"{INTRODUCTION}\n{note}\n\n{table(head, rows)}"


def average_ranks(errors: list[float]) -> list[float]:
    """Of equal errors, the mean of their places."""
    values = np.array(errors)
    return [float((values < value).sum() + 0.5 * ((values == value).sum() + 1)) for value in values]
