"""Probabilities: calibrators, joint planes, many ranks, and rank sets."""

from pathlib import Path

import numpy as np

from benchmarks.common import read_lines
from benchmarks.layout import newest, newest_of_set, origin
from lab.measures import MEASURES
from lab.results import Line
from lab.tables import number, table

MANY_RANKS_INTRODUCTION = """## Calibrators of many ranks

A column of a table, cut into quantiles, is predicted from the other columns by NPSVOR with C = 1
(`python -m benchmarks.calibrators.many_ranks`). *curved* is what the models use: beyond ten ranks, neighbouring planes are
averaged and the weights are a smooth function of the rank. *plain* has a weight per plane and rank; it is left out beyond 30
ranks, where it takes minutes. *cumulative* has a logistic curve per boundary.
"""
CALIBRATORS_INTRODUCTION = """## Calibrators

*multinomial* is logistic regression on all plane scores. *curved*, which `probability=True` uses, also has the distances from the
planes as features. *cumulative* is a logistic curve per boundary, constrained to be monotone. All are trained on the same held-out
scores and tested on the test data of the accuracy section. RPS is the ranked probability score.
"""
FEW_ROWS_INTRODUCTION = """## Few rows

Log loss on held-out rows of NPSVOR, fitted to random samples of 20 to 500 rows, against that of the frequencies of the ranks in the
same sample (`python -m benchmarks.calibrators.few_rows`). *worse in* is the share of samples where the model is worse at all,
*beyond noise in* that where it is worse by more than frequencies of n rows lose themselves, since they are not those of all rows:
(ranks - 1) / 2n nats on average.
"""
COVERAGE_INTRODUCTION = """## Rank sets

NPSVOR, on test data (`python -m benchmarks.calibrators.coverage`). *before* adds a rank while the set has little probability
before the rank, *after* while it has little with it; *each rank* promises the coverage for every rank (`per_rank=True`). *rarest
held* is the coverage of the rank that is held least often.
"""

COUPLING_INTRODUCTION = """## Joint planes

NPSVOR with `coupling`, which pulls the planes of neighbouring ranks together (`python -m benchmarks.calibrators.coupling`);
0 leaves them on their own. C is chosen for each by held-out MAE, of the ranker and of calibrated probabilities. *change* is the
mean over the data sets of the relative difference to coupling 0, with its standard error.
"""


def section(folder: Path) -> str:
    many_ranks = newest(read_lines("many_ranks"), lambda line: (line["data"]["name"], line["data"]["ranks"]))
    coverage = [line for run in newest_of_set(read_lines("coverage")) for line in run]
    parts = (
        calibrators_section(newest_of_set(read_lines("calibrators"))),
        coupling_section(newest(read_lines("coupling"), lambda line: line["data"]["name"])),
        many_ranks_section(many_ranks),
        few_rows_section(newest_of_set(read_lines("few_rows"))),
        coverage_section(coverage),
    )
    return "\n".join(filter(None, parts))


def calibrators_section(runs: list[list[Line]]) -> str:
    if not runs:
        return ""
    head = ("data", "log loss", "RPS", "accuracy", "MAE", "MSE")
    keys = ("log_loss", "rps", *MEASURES)
    parts = [CALIBRATORS_INTRODUCTION + f"{origin(runs[-1][-1])}.\n"]

    def compare(title: str, variants: dict[str, Line]) -> None:
        """One table: the variants of every set, and how often each is best."""
        rows, best = [], {name: dict.fromkeys(keys, 0) for name in variants}
        n_sets = 0
        for lines in runs:
            found = {
                name: next((line for line in lines if all(line.get(k) == v for k, v in asked.items())), None)
                for name, asked in variants.items()
            }
            if any(line is None for line in found.values()):
                continue
            n_sets += 1
            values = {name: line["measures"] for name, line in found.items() if line is not None}
            for name, line in values.items():
                rows.append((f"{lines[0]['data']['name']}, {name}", *(number(line[k], 4) for k in keys)))
            for k in keys:
                sign = -1 if k == "accuracy" else 1
                best[min(values, key=lambda name: sign * values[name][k])][k] += 1
        if n_sets:
            rows += [(f"best of {n_sets} sets: {name}", *(str(count[k]) for k in keys)) for name, count in best.items()]
            parts.append(f"### {title}\n\n{table(head, rows)}")

    usual = {"planes": "NPSVOR", "folds": 5, "C_chosen_by": "rps", "calibrator": "curved"}
    compare("Calibrators", {c: usual | {"calibrator": c} for c in ("multinomial", "curved", "cumulative")})
    planes = ("NPSVOR", "NPSVOR, squared hinge", "SVC", "Committee", "Committee, hinge", "Committee, column weights")
    compare("Planes under the curved calibrator", {p: usual | {"planes": p} for p in planes})
    compare("Choice of C", {f"C by {how}": usual | {"C_chosen_by": how} for how in ("rps", "MAE of the ranker")})
    for p in ("NPSVOR", "Committee"):
        compare(f"Folds: {p}", {f"{n} folds": usual | {"planes": p, "folds": n} for n in (5, 3)})
    return "\n".join(parts)


def coupling_section(runs: list[list[Line]]) -> str:
    if not runs:
        return ""
    couplings = sorted({line["coupling"] for lines in runs for line in lines})
    parts = [COUPLING_INTRODUCTION + f"{origin(runs[-1][-1])}.\n"]
    for way in ("ranker", "calibrated"):
        rows, changes = [], []
        for lines in runs:
            found = {line["coupling"]: line["measures"] for line in lines if line["way"] == way}
            if set(found) < set(couplings):
                continue
            cells = [number(found[coupling][key], 4) for key in ("mae", "mse") for coupling in couplings]
            rows.append((lines[0]["data"]["name"], *cells))
            changes.append([found[coupling][key] / found[0][key] - 1 for key in ("mae", "mse") for coupling in couplings])
        if not rows:
            continue
        by_set = np.array(changes)
        noise = by_set.std(axis=0, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.zeros(by_set.shape[1])
        means = by_set.mean(axis=0)
        cells = ["" if i % len(couplings) == 0 else f"{100 * means[i]:+.2f} ± {100 * noise[i]:.2f} %" for i in range(len(means))]
        head = ("data", *(f"{name}, coupling {coupling:g}" for name in ("MAE", "MSE") for coupling in couplings))
        parts.append(f"### {way.capitalize()}\n\n" + table(head, [*rows, ("change", *cells)]))
    return "\n".join(parts)


def many_ranks_section(runs: list[list[Line]]) -> str:
    if not runs:
        return ""
    rows = [
        (
            f"{line['data']['name']}, {line['data']['ranks']} ranks",
            line["calibrator"],
            *(number(line["measures"][k], 4) for k in ("log_loss", "rps", "mae")),
            number(line["seconds"], 2),
        )
        for lines in runs
        for line in lines
    ]
    head = ("data", "calibrator", "log loss", "RPS", "MAE", "CPU seconds")
    return f"{MANY_RANKS_INTRODUCTION}\n{origin(runs[-1][-1])}.\n\n{table(head, rows, left=2)}"


def coverage_section(lines: list[Line]) -> str:
    """Requested and observed coverage of rank sets, a row per data set and kind of set."""
    promised = sorted({line["coverage"] for line in lines})
    by_set: dict[tuple[str, str], dict[float, Line]] = {}
    n_ranks: dict[str, int] = {}
    for line in lines:
        n_ranks[line["data"]["name"]] = line["data"]["ranks"]
        by_set.setdefault((line["data"]["name"], line.get("kind", "after")), {})[line["coverage"]] = line["measures"]
    if not by_set:
        return ""
    rows = []
    for (name, kind), found in by_set.items():
        cells = [
            cell
            for c in promised
            for cell in (
                number(found[c]["held"], 3),
                number(found[c]["size"], 2),
                number(min(found[c].get("by_rank", [np.nan])), 2),
            )
        ]
        rows.append((f"{name}, {n_ranks[name]} ranks", kind, *cells))
    head = ("data", "sets", *(cell for c in promised for cell in (f"coverage {c:g}: observed", "ranks per set", "rarest held")))
    return f"{COVERAGE_INTRODUCTION}\n{origin(lines[-1])}.\n\n{table(head, rows, left=2)}"


def few_rows_section(runs: list[list[Line]]) -> str:
    if not runs:
        return ""
    keys = (("log_loss", 3), ("log_loss_of_frequencies", 3), ("worse", 2), ("beyond_noise", 2), ("most_worse", 3))
    rows = [
        (
            line["data"]["name"],
            line["data"]["rows"],
            str(line["data"]["samples"]),
            *(number(line["measures"].get(k), d) for k, d in keys),
        )
        for lines in runs
        for line in lines
    ]
    head = ("data", "training rows", "samples", "log loss", "of the frequencies", "worse in", "beyond noise in", "by at most")
    return f"{FEW_ROWS_INTRODUCTION}\n{origin(runs[-1][-1])}.\n\n{table(head, rows, left=2)}"
