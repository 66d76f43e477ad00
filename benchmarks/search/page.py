"""The whole search of C, and what probabilities cost."""

import itertools
from collections import defaultdict
from pathlib import Path

from benchmarks.common import read_lines
from benchmarks.goals import Goal, name_of
from benchmarks.layout import describe, newest_of_set, origin
from lab.results import Line
from lab.tables import number, table

ANSWERS = ("search", "separate", "separate_tight")
CHOICE_INTRODUCTION = """### Stopping early

`python -m benchmarks.search.choice`: eleven values of C on five folds, all of them or until two in a row were worse than
the best by more than one standard error (`patience=2`). *sweeps* counts those of all planes and folds, which is what the
search costs; MAE is that of the test rows. Rows with the same text are one row.
"""
FEWER_INTRODUCTION = """### Fewer held-out rows

The same scores, but only some of the held-out rows choose C, with `patience=2`, and train the calibrator: by how much MAE
and log loss of the test rows are higher than with all held-out rows and all values of C, on average over the searches with
more held-out rows than that, and at most. `cv="auto"` holds out at least 30,000 rows.
"""


def held() -> list[Goal]:
    return [goal for run in newest_of_set(read_lines("search")) for goal in search_goals(run)]


def search_goals(lines: list[Line]) -> list[Goal]:
    best = {line["competitor"]: line["best"] for line in lines if line["kind"] == "search"}
    ours = best.get("rankplane CSearchCV, 2 threads")
    rival = next((name for name in best if name.startswith("LIBLINEAR")), None)
    if ours is None or rival is None:
        return []
    what = "Search of C, 2 threads: times faster than as many LIBLINEAR fits"
    return [Goal(what, lines[0]["data"]["name"], best[rival] / ours, 40.0)]


def section(folder: Path) -> str:
    runs = newest_of_set(read_lines("search"))
    parts = (
        ["## Search\n\nEleven values of C and five folds. Only the time of rankplane includes the final fit with the best C.\n"]
        if runs
        else []
    )
    for lines in runs:
        parts.append(f"### Search: {lines[0]['data']['name']}\n\n{describe(lines[0]['data'])}. {origin(lines[0])}.\n")
        searches = [line for line in lines if line["kind"] == "search"]
        ours = [line for line in searches if line["competitor"].startswith("rankplane")]
        rows = [
            (line["competitor"], line["note"], number(line["best"], 2), *(number(line["best"] / o["best"], 1) for o in ours))
            for line in searches
        ]
        over = tuple(f"relative to {line['competitor'].removeprefix('rankplane ')}" for line in ours)
        parts.append(table(("competitor", "note", "seconds", *over), rows, left=2))
        rows = [
            (f"{line['C']:g}", "yes" if line["agrees"] else "no", *(number(line[k], 4) for k in ANSWERS))
            for line in lines
            if line["kind"] == "answer"
        ]
        parts.append(
            table(("C", "agree?", "MAE of the search", "MAE of separate fits", "MAE of separate fits, small tol"), rows, left=2)
        )
        rows = [
            (
                name_of(line["threads"]),
                number(min(line["plain"])),
                number(min(line["with_probability"])),
                number(line["ratio"], 2),
            )
            for line in lines
            if line["kind"] == "probability"
        ]
        parts.append(table(("NPSVOR, C = 1", "plain fit, seconds", "with probability=True", "ratio"), rows))
    return "\n".join([*parts, *choice_parts(newest_of_set(read_lines("choice")))])


def choice_parts(runs: list[list[Line]]) -> list[str]:
    if not runs:
        return []
    cells, losses = [], defaultdict[int, list[tuple[float, float]]](list)
    for lines in runs:
        for _, same in itertools.groupby(lines, lambda line: (line["model"], line["answer"])):
            every, early, *fewer = same
            name, rows = every["data"]["name"], f"{every['data']['rows']:,}"
            of_each = [
                value
                for key, digits in (("C", None), ("tried", 0), ("sweeps", 0), ("mae", 4))
                for value in shown(every, early, key, digits)
            ]
            cells.append((name, every["model"], every["answer"], rows, *of_each))
            for line in fewer:
                losses[line["held_out"]].append((line["mae"] - every["mae"], line["log_loss"] - every["log_loss"]))
    head = (
        "data",
        "model",
        "answer",
        "rows",
        *(f"{what}{when}" for what in ("C", "tried", "sweeps", "MAE") for when in ("", ", early")),
    )
    n_same = sum(row[4] == row[5] for row in cells)
    summary = f"The same C in {n_same} of {len(cells)} searches. {origin(runs[0][0])}.\n"
    rows = [
        (
            f"{n_rows:,}",
            str(len(found)),
            *(f"{value:+.4f}" for each in zip(*found, strict=True) for value in (sum(each) / len(each), max(each))),
        )
        for n_rows, found in sorted(losses.items())
    ]
    names = ("held-out rows", "searches", "MAE, mean", "MAE, largest", "log loss, mean", "log loss, largest")
    return [CHOICE_INTRODUCTION, summary, table(head, cells, left=3), FEWER_INTRODUCTION, table(names, rows)]


def shown(every: Line, early: Line, key: str, digits: int | None) -> tuple[str, str]:
    return tuple(f"{line[key]:g}" if digits is None else number(line[key], digits) for line in (every, early))  # type: ignore[return-value]
