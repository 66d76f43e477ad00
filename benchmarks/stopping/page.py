"""What the default stopping rule costs and gains."""

from pathlib import Path
from statistics import geometric_mean, median

from benchmarks.common import read_lines
from benchmarks.layout import newest_of_set, origin
from lab.results import Line
from lab.tables import number, table

INTRODUCTION = """## Stopping

By default a plane is swept until its duality gap is at most 0.2 % of its objective, and small data (up to 50,000 nonzero values) is
solved to the optimum. `tol=0.1` is the rule of the paper. All fits have C = 1, one thread, and the features of `train`.

- *gap*: the largest of all planes, relative to the objective.
- *spread*: the range of the test MAE over five fits that should agree: the first, one with two threads, and three that visit
  the rows in other orders.
- *changed*: the largest share of test rows for which one of these predicts another rank than the first.
- CPU seconds are the least of three.
"""
RULES = ("paper", "default")
SHOWN = "NPSVOR"
HEAD = ("data", "values", *(f"{what}, {rule}" for what in ("sweeps", "CPU s", "gap", "MAE", "spread", "changed") for rule in RULES))


def section(folder: Path) -> str:
    runs = newest_of_set(read_lines("stopping"))
    if not runs:
        return ""
    found = {(line["data"]["name"], line["model"], line["rule"]): line for run in runs for line in run}
    rows = [(run[0]["data"]["name"], f"{run[0]['data']['values']:,}", *cells(pair(found, run, SHOWN))) for run in runs]
    models = list(dict.fromkeys(line["model"] for run in runs for line in run))
    summaries = [summary(model, [pair(found, run, model) for run in runs]) for model in models]
    of_one, of_all = f"### Stopping: {SHOWN}\n", "### Stopping: all models\n"
    return "\n".join(
        [INTRODUCTION, f"{origin(runs[0][0])}.\n", of_one, table(HEAD, rows), of_all, SUMMARY, table(SUMMARY_HEAD, summaries)]
    )


SUMMARY = """Over the same data sets: CPU time relative to `tol=0.1` (geometric mean), the largest gap, and the median and the
largest *spread* of MAE and *changed*. Where planes hardly depend on the features, as those of SVC for the middle ranks of a table,
all scores are nearly equal, and which of them is largest remains a matter of chance.
"""
SPREADS = ("gap", "spread, median", "spread, largest", "changed, median", "changed, largest")
SUMMARY_HEAD = ("model", "CPU time", *(f"{what}, {rule}" for what in SPREADS for rule in RULES))


def pair(found: dict[tuple[str, str, str], Line], run: list[Line], model: str) -> tuple[Line, Line]:
    paper, default = (found[run[0]["data"]["name"], model, rule] for rule in RULES)
    return paper, default


def cells(lines: tuple[Line, Line]) -> list[str]:
    return [
        *(number(line["sweeps"], 1) for line in lines),
        *(number(line["seconds"]) for line in lines),
        *(share(line["gap"]) for line in lines),
        *(number(line["mae"][0], 4) for line in lines),
        *(number(spread(line), 4) for line in lines),
        *(share(max(line["changed"])) for line in lines),
    ]


def summary(model: str, pairs: list[tuple[Line, Line]]) -> tuple[str, ...]:
    told = [model, number(geometric_mean(default["seconds"] / paper["seconds"] for paper, default in pairs), 1)]
    by_rule = list(zip(*pairs, strict=True))
    told += [share(max(line["gap"] for line in lines)) for lines in by_rule]
    for combined in (median, max):
        told += [number(combined([spread(line) for line in lines]), 4) for lines in by_rule]
    for combined in (median, max):
        told += [share(combined([max(line["changed"]) for line in lines])) for lines in by_rule]
    return tuple(told)


def spread(line: Line) -> float:
    return float(max(line["mae"]) - min(line["mae"]))


def share(value: float) -> str:
    return f"{100 * value:.2g} %" if 0 < value < 0.1 else f"{100 * value:.0f} %"
