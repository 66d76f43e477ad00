"""Fits with a kernel, searches, and approximate kernels."""

from pathlib import Path

from benchmarks.common import read_lines
from benchmarks.layout import describe, newest, origin
from lab.results import Line
from lab.tables import number, percent, table

INTRODUCTION = """## Kernels

RBF kernel, C = 1, the same gamma for all programs; tables are standardised. scikit-learn does not regularise the intercept. "free
bias" is our solver on exactly that problem; its objective is recomputed from the dual variables, and *excess* is relative to a
certified lower bound. Our models normally regularise the intercept, except SVOR. The other programs use their default tolerance,
rankplane `tol=0.01`, a duality gap of 1e-4 of the objective. skordinal needs dense rows; for text it gets coordinates
with the same distances.
"""
# Who, against which of ours, and what about it.
RATIOS = (
    ("scikit-learn SVC, rank by rank", "rankplane SVC, free bias, 1 thread", ", same problem"),
    ("scikit-learn SVC, rank by rank", "rankplane SVC, 1 thread", ""),
    ("scikit-learn SVR", "rankplane SVR, free bias, 1 thread", ", same problem"),
    ("skordinal SVOR", "rankplane SVOR, 1 thread", ""),
    ("skordinal REDSVM", "rankplane RedSVM, 1 thread", ""),
)


def section(folder: Path) -> str:
    """Fits by data set, then searches: the newest line of each competitor."""
    lines = read_lines("kernel")
    if not lines:
        return ""
    newest_lines = [run[-1] for run in newest(lines, lambda line: (line["kind"], line["data"]["name"], line["competitor"]))]
    fits = [line for line in newest_lines if line["kind"] == "fit"]
    parts, ratios = [], []
    for name in dict.fromkeys(line["data"]["name"] for line in fits):
        found = [line for line in fits if line["data"]["name"] == name]
        about = found[0]["data"]
        rows = [
            (
                line["competitor"],
                line["note"] if line["counts"] or line["note"] else "not counted: excess too large",
                ("> " if line["note"].startswith("given up") else "") + number(line["best"]),
                str(len(line["seconds"])),
                percent(line["answer"].get("excess")),
                number(line["answer"].get("accuracy")),
                number(line["answer"].get("mae")),
            )
            for line in sorted(found, key=lambda line: (line["problem"], line["best"]))
        ]
        head = ("competitor", "note", "seconds", "best of", "excess", "accuracy", "MAE")
        size = f"{describe(about)}, {about['test_rows']:,} test rows, gamma = {about['gamma']:.3g}."
        parts.append(f"### Kernel fits: {name}\n\n{size} {origin(found[0])}.\n\n{table(head, rows, 2)}")
        by_name = {line["competitor"]: line for line in found}
        ratios.append((name, *(ratio(by_name, rival, ours) for rival, ours, _ in RATIOS)))
    head = ("times faster, one thread", *(f"{rival}{about}" for rival, _, about in RATIOS))
    searches = [line for line in newest_lines if line["kind"] == "search"]
    if searches:
        about, grid = searches[0]["data"], searches[0]["grid"]
        rows = [(line["competitor"], line["note"], number(line["seconds"], 1), number(line.get("test_mae"))) for line in searches]
        told = (
            f"{grid['gammas']} values of gamma, {grid['Cs']} of C, {grid['folds']} folds. {describe(about)}. {origin(searches[0])}."
        )
        parts.append(f"### Kernel search: {about['name']}\n\n{told}\n\n{table(('search', 'note', 'seconds', 'test MAE'), rows, 2)}")
    maps = [line for line in newest_lines if line["kind"] == "maps"]
    if maps:
        columns = list(dict.fromkeys(line["competitor"] for line in maps))
        names = list(dict.fromkeys(line["data"]["name"] for line in maps))
        by_place = {(line["data"]["name"], line["competitor"]): f"{line['mae']:.3f} ({line['seconds']:.1f})" for line in maps}
        rows = [(name, *(by_place.get((name, column), "") for column in columns)) for name in names]
        told = f"NPSVOR, C = {maps[0]['C']:g}: test MAE, and in parentheses the CPU seconds of the fit. {origin(maps[0])}."
        parts.append(f"### Approximate kernels\n\n{told}\n\n{table(('data', *columns), rows)}")
    return "\n".join([INTRODUCTION, table(head, ratios), *parts])


def ratio(by_name: dict[str, Line], rival: str, ours: str) -> str:
    if rival not in by_name or ours not in by_name:
        return ""
    is_limit = by_name[rival]["note"].startswith("given up")
    return ("> " if is_limit else "") + number(by_name[rival]["best"] / by_name[ours]["best"], 1)
