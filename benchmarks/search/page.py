"""The whole search of C, and what probabilities cost."""

from pathlib import Path

from benchmarks.common import read_lines
from benchmarks.goals import Goal, name_of
from benchmarks.layout import describe, newest_of_set, origin
from lab.results import Line
from lab.tables import number, table

ANSWERS = ("search", "separate", "separate_tight")


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
    parts = ["## Search\n\nEleven values of C on five folds; the fit with the best C is part of our time only.\n"] if runs else []
    for lines in runs:
        parts.append(f"### Search: {lines[0]['data']['name']}\n\n{describe(lines[0]['data'])}. {origin(lines[0])}.\n")
        searches = [line for line in lines if line["kind"] == "search"]
        ours = [line for line in searches if line["competitor"].startswith("rankplane")]
        rows = [
            (line["competitor"], line["note"], number(line["best"], 2), *(number(line["best"] / o["best"], 1) for o in ours))
            for line in searches
        ]
        over = tuple(f"over {line['competitor'].removeprefix('rankplane ')}" for line in ours)
        parts.append(table(("competitor", "note", "seconds", *over), rows, left=2))
        rows = [
            (f"{line['C']:g}", "yes" if line["agrees"] else "no", *(number(line[k], 4) for k in ANSWERS))
            for line in lines
            if line["kind"] == "answer"
        ]
        parts.append(table(("C", "same?", "MAE of the search", "of separate fits", "of tight separate fits"), rows, left=2))
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
    return "\n".join(parts)
