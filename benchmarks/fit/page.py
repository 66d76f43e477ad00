"""Fits, how their time grows, and their memory."""

from pathlib import Path

from benchmarks.common import read_lines
from benchmarks.fit import goals, plots
from benchmarks.goals import Goal
from benchmarks.layout import describe, newest, newest_of_set, origin
from lab.results import Line
from lab.tables import number, percent, table

MEBIBYTE = 2**20
PROBLEMS = {"npsvor": "NPSVOR", "svc": "SVC", "svr": "SVR"}


def fit_lines() -> list[list[Line]]:
    return newest_of_set(read_lines("fit"))


def scaling_lines() -> list[Line]:
    return [run[-1] for run in newest(read_lines("scaling"), lambda line: (line["kind"], line["data"]["name"]))]


def memory_lines() -> list[Line]:
    return [run[-1] for run in newest(read_lines("memory"), lambda line: (line["data"]["name"], line["threads"], line["tol"]))]


def held() -> list[Goal]:
    of_fits = [goal for run in fit_lines() for goal in goals.fit_goals(run)]
    return of_fits + goals.thread_goals(scaling_lines()) + goals.memory_goals(memory_lines())


def section(folder: Path) -> str:
    pictures = plots.draw(scaling_lines(), folder / "images")
    parts = (fit_section(fit_lines()), scaling_section(scaling_lines(), pictures, folder), memory_section(memory_lines()))
    return "\n".join(filter(None, parts))


def fit_section(runs: list[list[Line]]) -> str:
    parts = ["## Fit\n"] if runs else []
    for lines in runs:
        parts.append(f"### {lines[0]['data']['name']}\n\n{describe(lines[0]['data'])}. {origin(lines[0])}.\n")
        rows = []
        for line in sorted(lines, key=lambda line: (line["model"], line["best"])):
            answer, is_limit = line["answer"], line["note"].startswith("given up")
            note = line["note"] if line["counts"] or line["note"] else "answer too far off, not counted"
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


def scaling_section(lines: list[Line], pictures: list[Path], folder: Path) -> str:
    parts = ["## How the time grows\n\nNPSVOR, tol = 0.1 unless told otherwise.\n"] if lines else []
    parts += [f"![Time of a fit against {path.stem.split('-')[-1]}]({path.relative_to(folder)})\n" for path in pictures]
    for line in lines:
        head = (line["kind"].split()[0], "seconds", "sweeps", "ns per entry and sweep", "against the first")
        rows = [
            (
                f"{x:,.0f}",
                number(best),
                str(sweeps),
                number(best / sweeps / entries * 1e9, 2),
                number(best / line["best"][0], 2),
            )
            for x, best, sweeps, entries in zip(line["x"], line["best"], line["sweeps"], line["entries"], strict=True)
        ]
        parts.append(f"### {line['kind']}: {line['data']['name']}\n\n{origin(line)}.\n\n{table(head, rows, left=0)}")
    return "\n".join(parts)


def memory_section(lines: list[Line]) -> str:
    if not lines:
        return ""
    rows = []
    for line in lines:
        sizes = [number(line[key] / MEBIBYTE, 1) for key in ("X", "weights", "duals", "indices", "peak")]
        rows.append((line["data"]["name"], str(line["threads"]), f"{line['tol']:g}", *sizes, number(line["ratio"], 2)))
    head = ("data", "threads", "tol", "X", "W", "alpha", "indices", "peak beyond X", "ratio")
    return (
        "## Memory\n\nPeak of one NPSVOR fit in a fresh process, in MiB, beyond X and all that was loaded before; the\n"
        "ratio is to W, alpha (both padded to the SIMD width) and one copy of the column indices.\n"
        f"{origin(lines[-1])}.\n\n" + table(head, rows)
    )
