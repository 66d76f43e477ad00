"""Draws ``docs/benchmarks.md``, and its pictures, from the JSON lines under ``results/`` and nothing else: ``python -m
benchmarks.docs``.

The newest run of each data set is shown, with everyone who took part in it, winners and losers.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import console, read_lines
from benchmarks.data import ROOT
from benchmarks.fit import goals, plots

Line = dict[str, Any]
MEBIBYTE = 2**20
PROBLEMS = {"npsvor": "NPSVOR", "svc": "SVC", "svr": "SVR"}

INTRODUCTION = """# Benchmarks

Drawn by `python -m benchmarks.docs` from the JSON lines in `benchmarks/results/`; nothing here is typed by hand.

- Everyone fits the same rows and ranks in the same process, in turns; the best of several rounds counts. Only the fit
  is timed: loading, conversions of X into a competitor's own structures, warm-up and prediction are not.
- All solve with C = 1, epsilon = 0.1 and a bias penalised like a weight.
- *excess* is how far the objective, recomputed in double from the weights, lies above a certified lower bound of its
  problem (the largest dual value known). *gap* is the duality gap over the dual value: the primal is recomputed, the
  dual is what the solver reports (the textbook solver's is recomputed too). A time counts only with an excess below 10 %.
- Stopping rules differ, so equal tolerances are not equal answers: rows "as good as" a rival ran at the tolerance,
  found in steps of a quarter, at which our gap (textbook) or objective (LIBLINEAR) is no worse than that rival's.
- The textbook solver is `benchmarks/fit/textbook.cpp`: plane after plane, in double, compiled with `-O3`.
- Text sets are TF-IDF of unigrams and bigrams from 70 % of the rows. *paper*: stop words removed, stems, min_df 3,
  max_df 0.5; *keep*: all words, min_df 2, sublinear tf. The phone reviews hold copies of the same review on both sides
  of the split, which flatters the accuracy of every competitor alike.
- Ratios are of best times; *by rounds* is the range of the same ratio within single rounds, which shows the noise.
- A synthetic set is named by rows x columns x ranks x entries per row.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A markdown table whose source is aligned too; the first ``left`` columns are text, the rest numbers."""
    cells = [list(head), *(list(row) for row in rows)]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        padded = (cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * w if i < left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([line(cells[0]), line(rule), *(line(row) for row in cells[1:])]) + "\n"


def newest(lines: list[Line], key: Callable[[Line], Any]) -> list[list[Line]]:
    """For each key, the lines of its newest run, in the order in which keys first appeared."""
    last: dict[Any, str] = {}
    for line in lines:
        last[key(line)] = max(last.get(key(line), ""), line["run"])
    return [[line for line in lines if key(line) == k and line["run"] == run] for k, run in last.items()]


def origin(line: Line) -> str:
    machine = line["machine"]
    return (
        f"{line['run'][:10]}, commit {line['commit']}, {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_gb']:g} GB, {machine['system']}, huge pages: {machine['huge_pages']}"
    )


def describe(data: Line) -> str:
    return f"{data['rows']:,} rows, {data['columns']:,} columns, {data['entries']:,} entries, {data['ranks']} ranks"


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f} %"


def number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def goal_section(found: list[goals.Goal]) -> str:
    rows = [(g.what, g.data, g.verdict, number(g.ratio, 2), g.spread) for g in found if g.bound is not None]
    if not rows:
        return ""
    head = ("ratio of best times, or of sizes", "data", "held?", "measured", "by rounds")
    return "## What we mean to hold\n\n" + table(head, rows, left=3)


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


def versions_section(lines: list[Line]) -> str:
    last = max(lines, key=lambda line: line["run"])
    return "## Versions\n\n" + ", ".join(f"{name} {version}" for name, version in last["versions"].items()) + ".\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.docs", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder to write to")
    folder = parser.parse_args(arguments).out
    fit = newest(read_lines("fit"), lambda line: line["data"]["name"])
    scaling = [run[-1] for run in newest(read_lines("scaling"), lambda line: (line["kind"], line["data"]["name"]))]
    memory = [run[-1] for run in newest(read_lines("memory"), lambda line: (line["data"]["name"], line["threads"], line["tol"]))]
    every = [line for run in fit for line in run] + scaling + memory
    if not every:
        console.print("There are no results yet. Run benchmarks.fit.run, .scaling and .memory first.")
        return
    pictures = plots.draw(scaling, folder / "images")
    held = [goal for run in fit for goal in goals.fit_goals(run)] + goals.thread_goals(scaling) + goals.memory_goals(memory)
    sections = [
        INTRODUCTION,
        goal_section(held),
        fit_section(fit),
        scaling_section(scaling, pictures, folder),
        memory_section(memory),
        versions_section(every),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.md").write_text("\n".join(section for section in sections if section))
    console.print(f"Wrote {folder / 'benchmarks.md'} and {len(pictures)} pictures.")


if __name__ == "__main__":
    main()
