"""Probabilities: calibrators, many ranks, and rank sets."""

from pathlib import Path

from benchmarks.common import read_lines
from benchmarks.layout import newest, newest_of_set, origin
from lab.measures import MEASURES
from lab.results import Line
from lab.tables import number, table

MANY_RANKS_INTRODUCTION = """## Calibrators of many ranks

`python -m benchmarks.calibrators.many_ranks`: a column of a table, cut into quantiles, predicted from the others by
NPSVOR with C = 1. *curved* is what the models use: beyond ten ranks neighbouring planes are averaged and weights are
smooth in the rank. *plain* has a weight per plane and rank and is left out beyond 30 ranks, where it takes minutes.
*cumulative* has a logistic curve per boundary.
"""
CALIBRATORS_INTRODUCTION = """## Calibrators

*multinomial*: logistic regression on all plane scores; *curved*: on the scores and their distances from the planes, what
`probability=True` uses; *cumulative*: a logistic curve per boundary, forced to be monotone. Trained on the same held-out
scores, judged on the test rows of the accuracy section. RPS is the ranked probability score.
"""


def section(folder: Path) -> str:
    many_ranks = newest(read_lines("many_ranks"), lambda line: (line["data"]["name"], line["data"]["ranks"]))
    coverage = [line for run in newest_of_set(read_lines("coverage")) for line in run]
    parts = (
        calibrators_section(newest_of_set(read_lines("calibrators"))),
        many_ranks_section(many_ranks),
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
    head = ("data", "calibrator", "log loss", "RPS", "MAE", "processor seconds")
    return f"{MANY_RANKS_INTRODUCTION}\n{origin(runs[-1][-1])}.\n\n{table(head, rows, left=2)}"


def coverage_section(lines: list[Line]) -> str:
    """What rank sets promise and hold, a row per data set."""
    promised = sorted({line["coverage"] for line in lines})
    by_set: dict[str, dict[float, Line]] = {}
    for line in lines:
        by_set.setdefault(line["data"]["name"], {})[line["coverage"]] = line["measures"]
    if not by_set:
        return ""
    rows = []
    for name, found in by_set.items():
        n_ranks = next(line["data"]["ranks"] for line in lines if line["data"]["name"] == name)
        rows.append(
            (f"{name}, {n_ranks} ranks", *(number(found[c][k], d) for c in promised for k, d in (("held", 3), ("size", 2))))
        )
    head = ("data", *(cell for c in promised for cell in (f"asked {c:g}: held", "ranks per set")))
    return f"## Rank sets\n\nOf NPSVOR, on the test rows of the accuracy section. {origin(lines[-1])}.\n\n{table(head, rows)}"
