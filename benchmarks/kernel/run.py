"""Everyone fits the same data with the same kernel: ``python -m benchmarks.kernel.run``.

For each data set: warm up on a few rows, then take turns. A time counts only if its answer does: where the problem is the one that
everyone solves, its objective must lie within ``MAX_EXCESS`` of a certified lower bound; where a competitor keeps its dual
variables to itself, its MAE must be within ``MAX_DIFFERENCE`` of ours.
"""

from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.common import Log, competitors, each_set, options_parser
from benchmarks.kernel import rankplane, sets, sklearn_svc, sklearn_svr, skordinal_redsvm, skordinal_svor
from benchmarks.kernel.outcome import Outcome, kernel_matrix
from benchmarks.kernel.sets import KernelData
from lab.display import console, progress
from lab.timing import take_turns

MODULES: tuple[ModuleType, ...] = (rankplane, sklearn_svc, sklearn_svr, skordinal_svor, skordinal_redsvm)
LIMITED = (skordinal_svor, skordinal_redsvm)
MAX_EXCESS = 0.01
MAX_DIFFERENCE = 0.02  # of MAE
Line = dict[str, Any]


def measure(data: KernelData, n_rounds: int, budget: float, limit: float) -> list[Line]:
    runs = competitors(MODULES, limits=dict.fromkeys(LIMITED, limit))
    with progress(data.name, len(runs)) as advance:
        for name, run in runs.items():
            advance(f"warming up {name}")
            run(data.head(200))

    outcomes: dict[str, Outcome] = {}

    def run_once(name: str) -> float:
        outcomes[name] = runs[name](data)
        if name.startswith("skordinal"):
            # It ran in a forked process; the first writes to shared pages afterwards copy them, which no competitor should pay for.
            for _ in range(2):
                runs[next(iter(runs))](data)
        return outcomes[name].seconds

    seconds = take_turns({name: partial(run_once, name) for name in runs}, n_rounds, budget, data.name)
    with console.status(f"{data.name}: comparing answers"):
        K = kernel_matrix(data)
        bounds = {problem: rankplane.least_value(data, problem) for problem in ("svc", "svr")}
        checks = {name: outcome.check(data, K) for name, outcome in outcomes.items()}
    lines = []
    for name, outcome in outcomes.items():
        check = checks[name]
        counts = outcome.predictions is not None
        if "primal" in check:
            check["excess"] = (check["primal"] - bounds[outcome.problem]) / bounds[outcome.problem]
            counts = -1e-9 < check["excess"] < MAX_EXCESS
        elif name.startswith("skordinal") and counts:
            ours = checks[f"rankplane {rankplane.NAMES[outcome.problem]}, 1 thread"]
            counts = abs(check["mae"] - ours["mae"]) < MAX_DIFFERENCE
        line = {"kind": "fit", "data": data.describe(), "competitor": name, "problem": outcome.problem, "counts": counts}
        line |= {"seconds": [round(s, 5) for s in seconds[name]], "best": min(seconds[name]), "answer": check}
        lines.append(line | {"note": outcome.note})
    return lines


def show(lines: list[Line]) -> None:
    about = lines[0]["data"]
    print(f"{about['name']}: {about['rows']:,} rows, {about['columns']:,} columns, {about['ranks']} ranks")
    for line in sorted(lines, key=lambda line: (line["problem"], line["best"])):
        answer = line["answer"]
        told = ", ".join(f"{key} {answer[key]:.4g}" for key in ("excess", "accuracy", "mae") if key in answer)
        note = line["note"] or ("" if line["counts"] else "answer too far off: not counted")
        print(f"  {line['best']:8.3f} s  {line['competitor']:42} {told}  {note}")


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.kernel.run", __doc__, [*sets.TABLES, "largemovie:3500"])
    parser.add_argument("--rounds", type=int, default=3, help="best of so many")
    parser.add_argument("--budget", type=float, default=15.0, help="seconds after which a competitor sits out further rounds")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds before skordinal is given up")
    options = parser.parse_args(arguments)
    log = Log("kernel", not options.no_save)
    for data in each_set(options, sets):
        lines = measure(data, options.rounds, options.budget, options.limit)
        show(lines)
        for line in lines:
            log.write(**line)


if __name__ == "__main__":
    main()
