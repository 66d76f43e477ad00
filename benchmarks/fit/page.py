"""Fits, with hinge and logistic loss, and their memory."""

from pathlib import Path

from benchmarks.common import read_lines
from benchmarks.fit import goals
from benchmarks.goals import Goal
from benchmarks.layout import describe, newest, newest_of_set, origin
from lab.results import Line
from lab.tables import number, percent, table

MEBIBYTE = 2**20
PROBLEMS = {"npsvor": "NPSVOR", "svc": "SVC", "svr": "SVR"}


def fit_lines() -> list[list[Line]]:
    return newest_of_set(read_lines("fit"))


def memory_lines() -> list[Line]:
    return [
        run[-1]
        for run in newest(read_lines("memory"), lambda line: (line["data"]["name"], line["task"], line["threads"], line["tol"]))
    ]


def logistic_lines() -> list[list[Line]]:
    """By data set, the newest of every competitor: mord's take too long to be measured again each time."""
    lines = [run[-1] for run in newest(read_lines("logistic"), lambda line: (line["data"]["name"], line["competitor"]))]
    return [
        [line for line in lines if line["data"]["name"] == name] for name in dict.fromkeys(line["data"]["name"] for line in lines)
    ]


def held() -> list[Goal]:
    of_fits = [goal for run in fit_lines() for goal in goals.fit_goals(run)]
    return of_fits + goals.memory_goals(memory_lines())


def section(folder: Path) -> str:
    logistic = logistic_section(logistic_lines())
    return "\n".join(filter(None, (fit_section(fit_lines()), logistic, memory_section(memory_lines()))))


def fit_section(runs: list[list[Line]]) -> str:
    parts = ["## Fit\n"] if runs else []
    for lines in runs:
        parts.append(f"### {lines[0]['data']['name']}\n\n{describe(lines[0]['data'])}. {origin(lines[0])}.\n")
        rows = []
        for line in sorted(lines, key=lambda line: (line["model"], line["best"])):
            answer, is_limit = line["answer"], line["note"].startswith("given up")
            note = line["note"] if line["counts"] or line["note"] else "not counted: excess too large"
            rows.append(
                (
                    line["competitor"],
                    PROBLEMS.get(line["model"], line["model"]),
                    note,
                    ("> " if is_limit else "") + number(line["best"]),
                    str(len(line["seconds"])),
                    percent(answer.get("excess")),
                    percent(answer.get("relative_gap")),
                    *(number(answer.get(key)) for key in ("accuracy", "mae", "mse")),
                )
            )
        head = ("competitor", "problem", "note", "seconds", "best of", "excess", "gap", "accuracy", "MAE", "MSE")
        parts.append(table(head, rows, left=3))
        ratios = [(goal.what, number(goal.ratio, 2), goal.spread) for goal in goals.fit_goals(lines)]
        if ratios:
            parts.append(table(("ratio of best times", "measured", "by rounds"), ratios))
    return "\n".join(parts)


def logistic_section(runs: list[list[Line]]) -> str:
    if not runs:
        return ""
    rows = []
    for lines in runs:
        best = {line["competitor"]: min(line["seconds"]) for line in lines}
        for line in lines:
            answer, least = line["answer"], best[line["competitor"]]
            is_limit = line["note"].startswith("given up")
            ratio = number(least / min(best.values()), 1)
            cells = [percent(answer.get("excess")), *(number(answer.get(key)) for key in ("accuracy", "mae", "mse"))]
            rows.append(
                (line["data"]["name"], line["competitor"], line["note"], ("> " if is_limit else "") + number(least), ratio, *cells)
            )
    head = ("data", "competitor", "note", "processor seconds", "ratio", "excess", "accuracy", "MAE", "MSE")
    return (
        "## Logistic loss\n\nThresholds with the logistic loss at C = 1, `python -m benchmarks.fit.logistic`: one objective for "
        f"both programs.\n{origin(runs[-1][-1])}.\n\n" + table(head, rows, left=3)
    )


def memory_section(lines: list[Line]) -> str:
    if not lines:
        return ""
    rows = []
    for line in lines:
        sizes = [number(line[key] / MEBIBYTE, 1) for key in ("X", "weights", "duals", "indices", "peak")]
        rows.append(
            (line["data"]["name"], line["task"], str(line["threads"]), f"{line['tol']:g}", *sizes, number(line["ratio"], 2))
        )
    head = ("data", "task", "threads", "tol", "X", "W", "alpha", "indices", "peak beyond X", "ratio")
    return (
        "## Memory\n\nPeak memory of NPSVOR in a new process, in MiB, in addition to X and everything loaded before: of a fit,\n"
        "of one with probabilities, which holds rows out, and of `CSearchCV` with probabilities. The ratio is to W, alpha (both\n"
        "padded to the SIMD width) and one copy of the column indices of a plain fit.\n"
        f"{origin(lines[-1])}.\n\n" + table(head, rows, left=2)
    )
