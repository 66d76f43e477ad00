"""Calibrators on the same held-out scores, planes with the same calibrator: ``python -m benchmarks.calibrators.run``.

For each kind of planes, a walk over a few C gives held-out scores, which train the calibrators; test rows judge them. C is
the one whose held-out probabilities have the least ranked probability score, unless a line says otherwise.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from benchmarks.accuracy.run import SETS
from benchmarks.calibrators.cumulative import Cumulative
from benchmarks.common import Log, each_set, options_parser
from lab import data as data_sets
from lab.competitors.rankplane import PAPER_TOL
from lab.data import Data
from lab.display import progress
from lab.measures import MEASURES, measures
from rankplane import NPSVOR, SVC, Committee
from rankplane.base import Trainer
from rankplane.metrics import ranked_probability_score
from rankplane.prediction import decisions
from rankplane.prediction.calibration import Curved, Multinomial
from rankplane.prediction.rankers import ordered
from rankplane.solver.folds import make_folds, walk_folds

CS = [0.125, 0.25, 0.5, 1.0, 2.0]
PLANES: dict[str, Any] = {
    "NPSVOR": NPSVOR(tol=PAPER_TOL),
    "NPSVOR, squared hinge": NPSVOR(tol=PAPER_TOL, loss="squared_hinge"),
    "SVC": SVC(tol=PAPER_TOL),
    "Committee": Committee(tol=PAPER_TOL),
    "Committee, hinge": Committee(tol=PAPER_TOL, loss="hinge"),
    "Committee, column weights": Committee(tol=PAPER_TOL, column_weight="ranks"),
}
CALIBRATORS = {"multinomial": Multinomial, "curved": Curved, "cumulative": Cumulative}
Array = NDArray[Any]
Line = dict[str, Any]


@dataclass
class Walked:
    """Scores of the training rows by planes of other folds, at one C."""

    model: Any
    C: float
    held_out: Array

    def test_scores(self, data: Data) -> Array:
        """Of the test rows, by planes of all training rows."""
        model = clone(self.model).set_params(C=self.C, probability=False, decision="ranker")
        return np.asarray(model.fit(data.X, data.y).plane_scores(data.X_test))


def walk(data: Data, planes: str, Cs: list[float], n_folds: int) -> list[Walked]:
    model = clone(PLANES[planes]).set_params(ranks=range(data.n_ranks), n_jobs=1)
    trainer = Trainer(model, data.X, data.y, None)
    rows = trainer.rows
    folds = make_folds(n_folds, data.X, rows.labels.numbers, data.groups, 0)
    tables = [trainer.table(C=C) for C in Cs]
    factors = [1.0, *(after / before for before, after in pairwise(Cs))]
    make = partial(rows.folds, tables[0], scales_C=True)
    points = list(walk_folds(make, folds, rows.options, tables, factors, is_shared=not rows.learns_column_weights))
    walked = []
    for C, point in zip(Cs, points, strict=True):
        held_out = np.empty((len(data.y), tables[0].shape[2]))
        for test, found in zip(folds.test, point.held_out, strict=True):
            held_out[test] = found
        walked.append(Walked(model, C, held_out))
    return walked


def inputs(scores: Array, calibrator: str, n_ranks: int) -> Array:
    """All scores, or for the cumulative calibrator the boundaries between neighbouring planes of NPSVOR."""
    return scores[:, : n_ranks - 1] + scores[:, 1:n_ranks] if calibrator == "cumulative" else scores


def probabilities(data: Data, held_out: Array, calibrator: str, scores: Array) -> Array:
    """Of rows with these scores, by a calibrator of the held-out ones."""
    fitted = CALIBRATORS[calibrator].fit(inputs(held_out, calibrator, data.n_ranks), data.y, data.n_ranks)
    return np.asarray(fitted.probabilities(inputs(scores, calibrator, data.n_ranks)))


def rps(data: Data, ranks: Array, found: Array) -> float:
    return ranked_probability_score(ranks, found, ranks=range(data.n_ranks))


def judge(data: Data, found: Array) -> dict[str, float]:
    likely = np.maximum(found[np.arange(len(found)), data.y_test], 1e-12)
    judged = {"log_loss": float(-np.mean(np.log(likely))), "rps": rps(data, data.y_test, found)}
    for name in MEASURES:
        answered = decisions.least_cost(found, decisions.cost_matrix(name, data.n_ranks))
        judged[name] = measures(answered, data.y_test)[name]
    return judged


def measure(data: Data) -> list[Line]:
    lines: list[Line] = []

    def add(planes: str, n_folds: int, chosen_by: str, walked: Walked, calibrators: Iterable[str] = ("curved",)) -> None:
        test = walked.test_scores(data)
        for calibrator in calibrators:
            found = judge(data, probabilities(data, walked.held_out, calibrator, test))
            about = {"planes": planes, "folds": n_folds, "C_chosen_by": chosen_by, "calibrator": calibrator, "C": walked.C}
            lines.append({"data": data.describe(), **about, "measures": found})

    with progress(data.name, 2 * len(PLANES) + 2) as advance:
        for planes in PLANES:
            advance(f"{planes}, folds")
            path = walk(data, planes, CS, 5)
            best = min(path, key=lambda w: rps(data, data.y, probabilities(data, w.held_out, "curved", w.held_out)))
            advance(f"{planes}, all rows")
            add(planes, 5, "rps", best, [c for c in CALIBRATORS if c != "cumulative" or planes.startswith("NPSVOR")])
            if planes == "NPSVOR":
                by_ranker = min(path, key=lambda w: measures(ordered(w.held_out), data.y)["mae"])
                add(planes, 5, "MAE of the ranker", by_ranker)
            if planes in ("NPSVOR", "Committee"):
                advance(f"{planes}, three folds")
                add(planes, 3, "rps", walk(data, planes, [best.C], 3)[0])
    return lines


def main(arguments: list[str] | None = None) -> None:
    options = options_parser("benchmarks.calibrators.run", __doc__, [*SETS, "largemovie:trigrams"]).parse_args(arguments)
    log = Log("calibrators", not options.no_save)
    for data in each_set(options, data_sets):
        for line in measure(data):
            cells = ", ".join(f"{key} {value:.4f}" for key, value in line["measures"].items())
            about = {key: value for key, value in line.items() if key not in ("data", "measures")}
            print(f"{data.name}: {', '.join(f'{key} {value}' for key, value in about.items())}: {cells}", flush=True)
            log.write(**line)


if __name__ == "__main__":
    main()
