"""The table of training times: every model at its best C, one thread, and the programs that the paper compares with.

Run it on an idle machine: these are seconds on the clock, best of several turns.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments import linear_models, methods
from experiments.layout import join, power
from experiments.linear_models import FOUR, SHOWN
from experiments.notebook import Job, Line, Notebook, SkipError
from experiments.published import SECONDS
from experiments.sets import PAPER_NAMES, TEXT_SETS, TITLES, Collection
from lab.competitors import liblinear, textbook
from lab.data import Data
from lab.tables import number, table
from lab.timing import take_turns, timed

EXPERIMENT = "training_times"
N_ROUNDS = 3
BUDGET = 8.0  # seconds after which a competitor sits out the remaining rounds
RIVALS = {"LIBLINEAR SVC": "SVC", "LIBLINEAR SVR": "SVR", "textbook NPSVOR": "NPSVOR"}  # and whose C they take
WORDS = """Seconds of one fit with the C chosen by cross-validation (plain split, first seed), one thread, best of three runs.
LIBLINEAR (`-s 3 -e 0.1`, `-s 13 -e 0.01`, as in the paper) uses the C of the same model. It has another stopping rule, so equal
tolerances do not mean equally good solutions; the [benchmarks](benchmarks.md) compare at equal objectives. *textbook* is DCD-2 in
plain C++, one plane after another, as in the authors' program. The paper's times are from a Xeon E5504, so only the order within a
row can be compared. The paper claims: *NPSVOR trains faster than SVC; SVR is the fastest*.
"""


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    for name in collection.sets(TEXT_SETS):
        settings = {"preset": "paper", "test": 0.2, "tol": methods.TOL, "tol_svr": methods.SVR_TOL, "epsilon": methods.EPSILON}
        key = collection.key(name, "plain", 0, settings=settings | {"threads": 1})
        yield Job(EXPERIMENT, key, lambda name=name: run(collection, notebook, name), is_clocked=True)


def run(collection: Collection, notebook: Notebook, name: str) -> Line:
    chosen = {line["method"]: line["C"] for line in notebook.lines(linear_models.EXPERIMENT, set=name, split="plain", seed=0)}
    if not all(method in chosen for method in SHOWN):
        raise SkipError(f"{TITLES[name]} needs the best C of linear_models first.")
    data = collection.matrices(name, "plain", 0)
    work: dict[str, Callable[[], float]] = {method: partial(fit, data, method, chosen[method]) for method in SHOWN}
    if liblinear.missing() is None:
        work |= {f"LIBLINEAR {model}": partial(fit_liblinear, data, model, chosen[model]) for model in ("SVC", "SVR")}
    if textbook.missing() is None:
        work["textbook NPSVOR"] = partial(fit_textbook, data, chosen["NPSVOR"])
    fit(data, "NPSVOR", chosen["NPSVOR"])  # pages in X
    seconds = take_turns(work, N_ROUNDS, BUDGET, name)
    best = {method: round(min(runs), 4) for method, runs in seconds.items()}
    return methods.shape(data) | {"C": {method: chosen[RIVALS.get(method, method)] for method in best}, "best": best}


def fit(data: Data, method: str, C: float) -> float:
    model = methods.make(method, data.n_ranks, 0).set_params(C=C, n_jobs=1)
    return timed(lambda: model.fit(data.X, data.y))[0]


def fit_textbook(data: Data, C: float) -> float:
    return float(textbook.solve(data, C, methods.EPSILON, methods.TOL)[0])


def fit_liblinear(data: Data, model: str, C: float) -> float:
    setting = {"SVC": f"-s 3 -e {methods.TOL}", "SVR": f"-s 13 -e {methods.SVR_TOL} -p {methods.EPSILON}"}[model]
    problem = liblinear.problem_of(data)
    return timed(lambda: liblinear.train(problem, f"{setting} -c {C}"))[0]


def section(notebook: Notebook, pictures: Path) -> str:
    lines = {line["set"]: line for line in notebook.lines(EXPERIMENT)}
    if not lines:
        return ""
    columns = (*SHOWN, *RIVALS)
    rows: list[tuple[Any, ...]] = []
    for name, line in lines.items():
        if name in PAPER_NAMES:
            paper = SECONDS[PAPER_NAMES[name]]
            rows.append((TITLES[name], "in the paper", *(number(paper.get(column)) for column in columns)))
        rows.append((TITLES[name], "here", *(number(line["best"].get(column)) for column in columns)))
        rows.append((TITLES[name], "C", *(power(line["C"][column]) if column in line["C"] else "" for column in columns)))
    return "\n".join(["## Training times\n", WORDS, table(("data", "", *columns), rows, left=2), findings(lines)])


def findings(lines: dict[str, Line]) -> str:
    best = {name: line["best"] for name, line in lines.items()}
    slower = [TITLES[name] for name, seconds in best.items() if seconds["NPSVOR"] >= seconds["SVC"]]
    fastest = [TITLES[name] for name, s in best.items() if min(FOUR, key=s.__getitem__) != "SVR"]
    parts = [
        f"- NPSVOR trains faster than SVC, both tuned, on {len(best) - len(slower)} of {len(best)} sets; not on {join(slower)}.",
        f"- SVR is the fastest of the paper's four on {len(best) - len(fastest)} of {len(best)} sets; not on {join(fastest)}.",
    ]
    programs = {"SVC": "LIBLINEAR SVC", "NPSVOR": "textbook NPSVOR", "SVR": "LIBLINEAR SVR"}
    both = [seconds for seconds in best.values() if all(program in seconds for program in programs.values())]
    if both:
        n_faster = sum(seconds[programs["NPSVOR"]] < seconds[programs["SVC"]] for seconds in both)
        n_fastest = sum(min(programs.values(), key=seconds.__getitem__) == programs["SVR"] for seconds in both)
        parts.append(
            "- Among programs that train one plane after another, as the paper's does, textbook NPSVOR is faster than LIBLINEAR "
            f"SVC on {n_faster} of {len(both)} sets, and LIBLINEAR SVR is the fastest of the three on {n_fastest}. In our solver "
            "planes are lanes, and more lanes cost little. Having only one plane gains SVR nothing there, and its tolerance is ten "
            "times smaller."
        )
    for rival, model in RIVALS.items():
        ratios = [seconds[rival] / seconds[model] for seconds in best.values() if rival in seconds]
        if ratios:
            parts.append(
                f"- {rival} takes {min(ratios):.1f} to {max(ratios):.1f} times as long as our {model}, "
                f"median {np.median(ratios):.1f}."
            )
    return "\n".join(parts) + "\n"
