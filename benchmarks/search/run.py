"""The whole search, and the cost of probabilities: ``python -m benchmarks.search.run``.

First the answers: the MAE of CSearchCV must be that of separate fits on the same folds. Then the times: ours in several
rounds, the others once, within a limit of seconds each; folds beyond it are extrapolated, and marked so.
"""

from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.common import Log, each_set, options_parser
from benchmarks.search import liblinear, rankplane, sklearn_grid
from benchmarks.search.folds import Searched
from lab import data as data_sets
from lab.data import Data
from lab.display import console
from lab.timing import take_turns

RIVALS: tuple[ModuleType, ...] = (liblinear, sklearn_grid)
CHECKED = (0.25, 1.0)
MAX_DIFFERENCE = 0.01  # of MAE
Line = dict[str, Any]


def search_lines(data: Data, n_rounds: int, limit: float) -> list[Line]:
    found: dict[str, Searched] = {}

    def run_once(name: str, module: ModuleType, options: dict[str, Any]) -> float:
        found[name] = module.run(data, limit, **options)
        return found[name].seconds

    ours = {name: partial(run_once, name, rankplane, options) for name, options in rankplane.VARIANTS.items()}
    seconds = take_turns(ours, n_rounds, limit, data.name)
    for module in RIVALS:
        if reason := module.missing():
            console.print(f"{', '.join(module.VARIANTS)}: left out, {reason}.")
            continue
        for name, options in module.VARIANTS.items():
            with console.status(f"{data.name}: {name}"):
                seconds[name] = [run_once(name, module, options)]
    lines = []
    for name, searched in found.items():
        line = {"kind": "search", "data": data.describe(), "competitor": name, "note": searched.note}
        line |= {"seconds": [round(s, 4) for s in seconds[name]], "best": min(seconds[name]), "mae_by_C": searched.mae}
        lines.append(line)
    return lines


def answer_lines(data: Data, mae_by_C: dict[float, float]) -> list[Line]:
    lines = []
    for C in CHECKED:
        # Loose fits from zero differ among themselves; the search has to agree with tight ones.
        loose, tight = (rankplane.separate_fits(data, C, tol) for tol in (0.1, 0.01))
        line = {"kind": "answer", "data": data.describe(), "C": C, "search": mae_by_C[C], "separate": loose}
        lines.append(line | {"separate_tight": tight, "agrees": abs(mae_by_C[C] - tight) <= MAX_DIFFERENCE})
    return lines


def probability_lines(data: Data, n_rounds: int) -> list[Line]:
    runs = {
        (n_jobs, probability): partial(rankplane.fit_seconds, data, n_jobs, probability)
        for n_jobs in (1, 2)
        for probability in (False, True)
    }
    names = {key: f"{key[0]} threads, probability={key[1]}" for key in runs}
    seconds = take_turns({names[key]: run for key, run in runs.items()}, n_rounds, 60.0, data.name)
    lines = []
    for n_jobs in (1, 2):
        plain, with_probability = (seconds[names[n_jobs, p]] for p in (False, True))
        line = {"kind": "probability", "data": data.describe(), "threads": n_jobs, "ratio": min(with_probability) / min(plain)}
        lines.append(line | {"plain": plain, "with_probability": with_probability})
    return lines


def show(lines: list[Line]) -> None:
    for line in lines:
        name = line["data"]["name"]
        if line["kind"] == "search":
            print(f"{name}: {line['competitor']}: {line['best']:.2f} s {line['note']}")
        elif line["kind"] == "answer":
            verdict = "agrees" if line["agrees"] else "DIFFERS"
            plain = f"separate fits {line['separate']:.4f}, to a tight tolerance {line['separate_tight']:.4f}"
            print(f"{name}: MAE at C = {line['C']:g}: {line['search']:.4f}; {plain}: {verdict}")
        else:
            print(f"{name}: {line['threads']} threads: probability=True takes {line['ratio']:.2f} times a plain fit")


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.search.run", __doc__, ["largemovie"])
    parser.add_argument("--rounds", type=int, default=3, help="best of so many, for ours")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each of the others")
    options = parser.parse_args(arguments)
    log = Log("search", not options.no_save)
    for data in each_set(options, data_sets):
        searches = search_lines(data, options.rounds, options.limit)
        lines = answer_lines(data, searches[0]["mae_by_C"]) + searches + probability_lines(data, options.rounds)
        show(lines)
        for line in lines:
            log.write(**line)


if __name__ == "__main__":
    main()
