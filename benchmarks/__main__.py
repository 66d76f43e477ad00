"""The numbers that rankplane means to reach, measured here: ``make bench``, or ``python -m benchmarks``.

Measures tasks one after the other, keeps their lines, and ends with a table of all goals: what was measured last, on which machine,
and in red what falls short. Times mean something on an idle machine only. Without the data, the tasks run on made-up rows, which
takes about two minutes; those are not kept, since they say nothing about the goals.
"""

import argparse
import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks.docs import WITH_GOALS
from benchmarks.fit import memory, run
from benchmarks.goals import Goal
from benchmarks.scaling import end_to_end, sizes, threads, vectorize
from benchmarks.vectorize import run as vectorizers
from lab.data import data_folder
from lab.display import console

Main = Callable[[list[str]], None]
# On real data: what to run, and about how many minutes it takes on two cores.
TASKS: dict[str, tuple[Main, str, int]] = {
    "fit": (run.main, "--sets largemovie --rounds 5", 4),
    "threads": (threads.main, "", 6),
    "sizes": (sizes.main, "", 4),
    "vectorize": (vectorize.main, "", 6),
    "vectorizers": (vectorizers.main, "", 6),
    "memory": (memory.main, "--sets largemovie largemovie:keep mobilephone tripadvisor_250k", 4),
    "end_to_end": (end_to_end.main, "", 8),
}
QUICK: dict[str, tuple[Main, str]] = {
    "fit": (run.main, "--sets synthetic --rounds 3 --budget 5 --mord-limit 10"),
    "threads": (threads.main, "--sets synthetic --tasks fit --rounds 3 --synthetic="),
    "sizes": (sizes.main, "--quick --rounds 2 --rows 10000 30000"),
    "memory": (memory.main, "--sets synthetic:40000x200000x8x80"),
}


def show_goals(goals: list[Goal]) -> None:
    table = Table("goal", "data", "to reach", "measured", "by rounds", title="Goals, as measured last")
    for goal in goals:
        if goal.bound is not None:
            style = "" if goal.is_held else "red"
            table.add_row(goal.what, goal.data, goal.rule, f"{goal.ratio:.2f}", goal.spread, style=style)
    # A pipe has no width of its own; 80 columns would break every name.
    (Console() if sys.stdout.isatty() else Console(width=150)).print(table)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of the data sets (default: ../shared/data if it is there)")
    parser.add_argument(
        "--tasks", nargs="*", choices=list(TASKS), default=list(TASKS), help="some of them; none only shows the table"
    )
    parser.add_argument("--quick", action="store_true", help="made-up rows, even where there is data")
    parser.add_argument("--no-save", action="store_true", help="do not append to the results")
    options = parser.parse_args(arguments)
    folder = data_folder(options.data)
    is_quick = options.quick or folder is None
    n_minutes = sum(TASKS[name][2] for name in options.tasks)
    if options.tasks:
        console.print("Made-up rows: about two minutes." if is_quick else f"About {n_minutes} minutes on two idle cores.")
    for name in options.tasks:
        if is_quick and name in QUICK:
            work, words = QUICK[name]
            work([*words.split(), "--no-save"])
        elif not is_quick:
            work, words, _ = TASKS[name]
            work([*words.split(), "--data", str(folder), *(["--no-save"] if options.no_save else [])])
    show_goals([goal for page in WITH_GOALS for goal in page.held()])


if __name__ == "__main__":
    main()
