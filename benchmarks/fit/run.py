"""Everyone fits the same data: ``python -m benchmarks.fit.run --sets largemovie mobilephone tripadvisor_250k
synthetic``.

For each data set: warm up on a few rows, find the tolerances at which answers are equal, then take turns. A time
counts only if its answer does: the objective, recomputed from the weights, must lie within ``MAX_EXCESS`` of a
certified lower bound.
"""

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import Log, competitors, each_set, options_parser
from benchmarks.fit import goals, liblinear, matching, mord_at, rankplane, sklearn_linear, textbook
from benchmarks.fit.outcome import Outcome
from benchmarks.goals import name_of
from lab import data as data_sets
from lab.data import Data
from lab.display import console, progress
from lab.timing import take_turns

MODULES: tuple[ModuleType, ...] = (rankplane, textbook, liblinear, sklearn_linear, mord_at)
MAX_EXCESS = 0.1
REFERENCE_TOL = 0.01
Run = Callable[[Data], Outcome]


def lower_bounds(data: Data, models: set[str], outcomes: dict[str, Outcome]) -> dict[str, float]:
    """For each problem the largest dual value seen, a tight solve of ours included."""
    bounds: dict[str, float] = {}
    for model in sorted(models & set(rankplane.MODELS)):
        reference = rankplane.run(data, model, n_jobs=1, tol=REFERENCE_TOL)
        duals = [outcome.dual_objective for outcome in outcomes.values() if outcome.model == model]
        bounds[model] = max(-dual for dual in [reference.dual_objective, *duals] if dual is not None)
    return bounds


def judge(outcome: Outcome, check: dict[str, Any], bounds: dict[str, float]) -> bool:
    """Adds the excess over the lower bound to the check; says whether the answer counts."""
    if outcome.model not in bounds:
        return outcome.predictions is not None
    check["excess"] = (check["primal"] - bounds[outcome.model]) / bounds[outcome.model]
    # Slightly below zero is rounding: the bound comes from float32 weights.
    return -1e-4 < check["excess"] < MAX_EXCESS


def measure(data: Data, runs: dict[str, Run], n_rounds: int, budget: float) -> list[dict[str, Any]]:
    """The lines of one data set."""
    runs = dict(runs)
    matches: dict[str, list[str]] = {name: [] for name in runs}
    threads = {name: options["n_jobs"] for name, options in rankplane.VARIANTS.items()}
    rivals = [rival for rival in matching.RIVALS if rival.name in runs and any(n.startswith("rankplane") for n in runs)]
    with progress(data.name, len(runs) + len(rivals)) as advance:
        few = data.head(300)
        for name, run in runs.items():
            advance(f"warming up {name}")
            run(few)
        for rival in rivals:
            advance(f"the answer of {rival.name}")
            rival_check = runs[rival.name](data).check(data)
            tol = matching.FIRST_TOL
            for n_jobs in (1, 2):
                tol = matching.matched_tol(data, rival, rival_check, n_jobs, tol, advance.describe)
                name = f"rankplane {rival.model.upper()}, {name_of(n_jobs)}"
                if tol != matching.FIRST_TOL:
                    name += f", as good as {rival.name}"
                    runs[name] = partial(rankplane.run, model=rival.model, n_jobs=n_jobs, tol=tol)
                    matches[name], threads[name] = [], n_jobs
                if name in matches:
                    matches[name].append(rival.name)

    outcomes: dict[str, Outcome] = {}

    def run_once(name: str) -> float:
        outcomes[name] = runs[name](data)
        return outcomes[name].seconds

    seconds = take_turns({name: partial(run_once, name) for name in runs}, n_rounds, budget, data.name)
    with console.status(f"{data.name}: comparing answers"):
        bounds = lower_bounds(data, {outcome.model for outcome in outcomes.values()}, outcomes)
        lines = []
        for name, outcome in outcomes.items():
            check = outcome.check(data)
            counts = judge(outcome, check, bounds)
            lines.append(
                {
                    "data": data.describe(),
                    "competitor": name,
                    "model": outcome.model,
                    "threads": threads.get(name, 1),
                    "seconds": [round(s, 5) for s in seconds[name]],
                    "best": min(seconds[name]),
                    "answer": check,
                    "counts": counts,
                    "matches": matches[name],
                    "note": outcome.note,
                }
            )
    return lines


def show(lines: list[dict[str, Any]]) -> None:
    about = lines[0]["data"]
    sizes = ", ".join(f"{about[size]:,} {size}" for size in ("rows", "columns", "entries", "ranks"))
    table = Table(title=f"{about['name']}: {sizes}")
    table.add_column("competitor")
    for column in ("best s", "of", "excess", "gap", "accuracy", "MAE", "MSE"):
        table.add_column(column, justify="right")
    table.add_column("note")
    for line in sorted(lines, key=lambda line: (line["model"], line["best"])):
        answer = line["answer"]
        cells = [format_or_dash(answer.get(key), form) for key, form in ANSWER_FORMATS.items()]
        note = line["note"] if line["counts"] or line["note"] else "answer too far off: not counted"
        table.add_row(line["competitor"], f"{line['best']:.3f}", str(len(line["seconds"])), *cells, note)
    # A pipe has no width of its own; 80 columns would break every name.
    out = Console() if sys.stdout.isatty() else Console(width=150)
    out.print(table)
    summary = Table("ratio of best times", "", "by rounds", "holds?")
    for goal in goals.fit_goals(lines):
        summary.add_row(goal.what, f"{goal.ratio:.2f}", goal.spread, goal.verdict)
    if summary.row_count:
        out.print(summary)


ANSWER_FORMATS = {"excess": ".2%", "relative_gap": ".2%", "accuracy": ".4f", "mae": ".4f", "mse": ".4f"}


def format_or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.fit.run", __doc__, ["synthetic"])
    parser.add_argument("--rounds", type=int, default=5, help="best of so many")
    parser.add_argument("--budget", type=float, default=40.0, help="seconds after which a competitor sits out further rounds")
    parser.add_argument("--mord-limit", type=float, default=20.0, help="seconds before mord is given up")
    parser.add_argument("--only", default="", help="competitors whose name holds this")
    options = parser.parse_args(arguments)
    runs = competitors(MODULES, options.only, {mord_at: options.mord_limit})
    if "textbook DCD-2" in runs:
        textbook.check()
    log = Log("fit", not options.no_save)
    for data in each_set(options, data_sets):
        lines = measure(data, runs, options.rounds, options.budget)
        show(lines)
        for line in lines:
            log.write(**line)


if __name__ == "__main__":
    main()
