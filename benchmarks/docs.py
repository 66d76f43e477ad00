"""Draws ``docs/benchmarks.md``, and its pictures, from the JSON lines under ``results/`` and nothing else: ``python -m
benchmarks.docs``.

The newest run of each data set is shown, with everyone who took part in it, winners and losers. Every task draws its own
section: ``page.py`` of its folder.
"""

import argparse
from pathlib import Path

from benchmarks.accuracy import page as accuracy
from benchmarks.calibrators import page as calibrators
from benchmarks.common import RESULTS, read_lines
from benchmarks.fit import page as fit
from benchmarks.goals import goal_section
from benchmarks.kernel import page as kernel
from benchmarks.search import page as search
from benchmarks.vectorize import page as vectorize
from lab import ROOT
from lab.display import console
from lab.results import Line

PAGES = (fit, accuracy, search, vectorize, kernel, calibrators)
WITH_GOALS = (fit, search, vectorize)

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
- The textbook solver is `lab/competitors/textbook.cpp`: plane after plane, in double, compiled with `-O3`.
- Text sets are TF-IDF of unigrams and bigrams from 70 % of the rows. *paper*: stop words removed, stems, min_df 3,
  max_df 0.5; *keep*: all words, min_df 2, sublinear tf. The phone reviews hold copies of the same review on both sides
  of the split, which flatters the accuracy of every competitor alike.
- Ratios are of best times; *by rounds* is the range of the same ratio within single rounds, which shows the noise.
- A synthetic set is named by rows x columns x ranks x entries per row.
"""


def versions_section(lines: list[Line]) -> str:
    """Of the newest run in which anyone was compared: others may lack the packages of the rivals."""
    last = max(lines, key=lambda line: ("competitor" in line, line["run"]))
    return "## Versions\n\n" + ", ".join(f"{name} {version}" for name, version in last["versions"].items()) + ".\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.docs", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder to write to")
    folder = parser.parse_args(arguments).out
    every = [line for path in sorted(RESULTS.glob("*.jsonl")) for line in read_lines(path.stem)]
    if not every:
        console.print("There are no results yet. Run benchmarks.fit.run or another of the runs first.")
        return
    sections = [
        INTRODUCTION,
        goal_section([goal for page in WITH_GOALS for goal in page.held()]),
        *(page.section(folder) for page in PAGES),
        versions_section(every),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.md").write_text("\n".join(filter(None, sections)), encoding="utf-8")
    console.print(f"Wrote {folder / 'benchmarks.md'}.")


if __name__ == "__main__":
    main()
