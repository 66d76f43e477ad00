"""Calibrators on the same held-out scores, planes with the same calibrator: ``python -m benchmarks.calibrators.run``.

For each kind of planes, fold planes and planes of all rows are solved together for a few C; held-out scores train the
calibrators, test rows judge them. C is the one whose held-out probabilities have the least ranked probability score,
unless a line says otherwise.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import answers
from benchmarks import data as data_sets
from benchmarks.accuracy.predictions import MEASURES
from benchmarks.accuracy.run import SETS
from benchmarks.common import Log, console, data_folder, progress
from benchmarks.data import Data
from rankplane import NPSVOR, SVC, Committee, decisions
from rankplane.calibration import Cumulative, Curved, Multinomial
from rankplane.folds import FoldProblem, make_folds
from rankplane.metrics import ranked_probability_score
from rankplane.planes import scores as scores_of
from rankplane.rankers import ordered

CS = (0.125, 0.25, 0.5, 1.0, 2.0)
PLANES: dict[str, Any] = {
    "NPSVOR": NPSVOR(),
    "NPSVOR, squared hinge": NPSVOR(loss="squared_hinge"),
    "SVC": SVC(),
    "Committee": Committee(),
    "Committee, hinge": Committee(loss="hinge"),
}
CALIBRATORS = {"multinomial": Multinomial, "curved": Curved, "cumulative": Cumulative}
Array = NDArray[Any]
Line = dict[str, Any]


@dataclass
class Solved:
    """Scores by planes that did not see the rows: held-out training rows, and test rows."""

    C: float
    held_out: Array
    test: Array


def solve(data: Data, planes: str, C: float, n_folds: int) -> Solved:
    model = PLANES[planes].set_params(C=C, ranks=range(data.n_ranks), n_jobs=1)
    problem = model._prepare(data.X, data.y, None)
    table = model._table(data.n_ranks)
    folds = make_folds(n_folds, data.X, problem.rank_numbers, data.groups, 0)
    lanes = FoldProblem(data.X, table, problem.table_rows, None, folds, problem.options, keeps_all=True)
    lanes.run(table)
    held_out = np.empty((len(data.y), table.shape[2]))
    for rows, found in zip(folds.test, lanes.held_out(), strict=True):
        held_out[rows] = found
    solved = lanes.problem.take_planes(table.shape[2])
    return Solved(C, held_out, scores_of(data.X_test, solved.weights, 1) + solved.offsets.ravel())


def inputs(scores: Array, calibrator: str, n_ranks: int) -> Array:
    """All scores, or for the cumulative calibrator the boundaries between neighbouring planes of NPSVOR."""
    return scores[:, : n_ranks - 1] + scores[:, 1:n_ranks] if calibrator == "cumulative" else scores


def probabilities(data: Data, solved: Solved, calibrator: str) -> tuple[Array, Array]:
    """Of the held-out training rows and of the test rows."""
    given = inputs(solved.held_out, calibrator, data.n_ranks)
    fitted = CALIBRATORS[calibrator].fit(given, data.y, data.n_ranks)
    return fitted.probabilities(given), fitted.probabilities(inputs(solved.test, calibrator, data.n_ranks))


def rps(data: Data, ranks: Array, found: Array) -> float:
    return ranked_probability_score(ranks, found, ranks=range(data.n_ranks))


def judge(data: Data, found: Array) -> dict[str, float]:
    likely = np.maximum(found[np.arange(len(found)), data.y_test], 1e-12)
    measures = {"log_loss": float(-np.mean(np.log(likely))), "rps": rps(data, data.y_test, found)}
    for name in MEASURES:
        answered = decisions.least_cost(found, decisions.cost_matrix(name, data.n_ranks))
        measures[name] = answers.measures(answered, data.y_test)[name]
    return measures


def measure(data: Data) -> list[Line]:
    lines: list[Line] = []

    def add(planes: str, n_folds: int, chosen_by: str, calibrator: str, solved: Solved) -> None:
        found = judge(data, probabilities(data, solved, calibrator)[1])
        about = {"planes": planes, "folds": n_folds, "C_chosen_by": chosen_by, "calibrator": calibrator, "C": solved.C}
        lines.append({"data": data.describe(), **about, "measures": found})

    with progress(data.name, len(PLANES) * len(CS) + 2) as advance:
        for planes in PLANES:
            path = []
            for C in CS:
                advance(f"{planes}, C = {C:g}")
                path.append(solve(data, planes, C, 5))
            best = min(path, key=lambda s: rps(data, data.y, probabilities(data, s, "curved")[0]))
            for calibrator in CALIBRATORS:
                if calibrator != "cumulative" or planes.startswith("NPSVOR"):
                    add(planes, 5, "rps", calibrator, best)
            if planes == "NPSVOR":
                by_ranker = min(path, key=lambda s: answers.measures(ordered(s.held_out), data.y)["mae"])
                add(planes, 5, "MAE of the ranker", "curved", by_ranker)
            if planes in ("NPSVOR", "Committee"):
                advance(f"{planes}, three folds")
                add(planes, 3, "rps", "curved", solve(data, planes, best.C, 3))
    return lines


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.calibrators.run", description=__doc__)
    parser.add_argument("--data", help="folder of parquet files (default: ../shared/data if it is there)")
    parser.add_argument("--sets", nargs="+", default=[*SETS, "largemovie:trigrams"], help="data sets by name")
    parser.add_argument("--no-save", action="store_true", help="do not append to the results")
    options = parser.parse_args(arguments)
    folder: Path | None = data_folder(options.data)
    log = Log("calibrators")
    for name in options.sets:
        if reason := data_sets.why_not(name, folder):
            console.print(reason)
            continue
        for line in measure(data_sets.load(name, folder)):
            cells = ", ".join(f"{key} {value:.4f}" for key, value in line["measures"].items())
            how = f"{line['planes']}, {line['calibrator']}, {line['folds']} folds, C = {line['C']:g} by {line['C_chosen_by']}"
            print(f"{name}: {how}: {cells}", flush=True)
            if not options.no_save:
                log.write(**line)


if __name__ == "__main__":
    main()
