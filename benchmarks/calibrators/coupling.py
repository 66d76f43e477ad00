"""Planes that neighbours pull together, against planes on their own: ``python -m benchmarks.calibrators.coupling``.

For every text set and coupling one walk over C, whose held-out rows choose C twice: for the ranker, and for calibrated
probabilities. Test rows then judge both.
"""

import itertools
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.accuracy.run import SETS
from benchmarks.common import Log, each_set, options_parser
from lab import data as data_sets
from lab.data import Data
from lab.display import console
from lab.measures import measures
from lab.results import Line
from rankplane import NPSVOR
from rankplane.base import Trainer
from rankplane.fold_predictions import FoldPredictions
from rankplane.search import N_FOLDS, ROWS_TO_CHOOSE_BY
from rankplane.solver.folds import enough_folds, walk_folds
from rankplane.solver.training_set import HeldOut

COUPLINGS = [0.0, 0.5, 2.0]
CS = [0.0625, 0.125, 0.25, 0.5, 1.0]
WAYS = {"ranker": "ranker", "calibrated": "mae"}


def errors(model: Any, held_out: HeldOut, order: Any, n_enough: int) -> dict[str, float]:
    """Held-out MAE of both ways to predict."""
    found = {}
    for way, decision in WAYS.items():
        predictions = FoldPredictions(clone(model).set_params(decision=decision), order, held_out, n_enough)
        wrong = [np.abs(ranks - truth) for ranks, truth in zip(predictions.ranks, held_out.ranks, strict=True)]
        found[way] = float(np.mean(np.concatenate(wrong)))
    return found


def measure(data: Data, coupling: float) -> list[Line]:
    model = NPSVOR(coupling=coupling, ranks=range(data.n_ranks), probability=True, decision="mae")
    trainer = Trainer(model, data.X, data.y, None)
    rows, n_enough = trainer.rows, trainer.rows_to_calibrate()
    folds = enough_folds(N_FOLDS, max(ROWS_TO_CHOOSE_BY, n_enough), rows.X, rows.labels.numbers, data.groups, 0)
    tables = [trainer.table(C=C) for C in CS]
    factors = [1.0, *(after / before for before, after in itertools.pairwise(CS))]

    def make(some: Any, options: Any) -> Any:
        return rows.folds(tables[0], some, options, scales_C=True)

    best: dict[str, tuple[float, float, HeldOut]] = {}
    points = walk_folds(make, folds, rows.options.for_folds(), tables, factors, is_shared=True)
    for C, point in zip(CS, points, strict=True):
        held_out = rows.held_out(folds, point.held_out)
        for way, error in errors(model, held_out, rows.labels.order, n_enough).items():
            if way not in best or error < best[way][0]:
                best[way] = (error, C, held_out)
    lines = []
    for way, (error, C, held_out) in best.items():
        trainer.choose({"C": C})
        trainer.solve()
        trainer.calibrate(held_out)
        predicted = model.set_params(decision=WAYS[way]).predict(data.X_test)
        found = {"held_out_mae": round(error, 5), "measures": measures(predicted, data.y_test)}
        lines.append({"data": data.describe(), "coupling": coupling, "way": way, "C": C, **found})
    return lines


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.calibrators.coupling", __doc__, SETS)
    options = parser.parse_args(arguments)
    log = Log("coupling", not options.no_save)
    for data in each_set(options, data_sets):
        for coupling in COUPLINGS:
            for line in measure(data, coupling):
                shown = {name: round(value, 4) for name, value in line["measures"].items()}
                console.print(data.name, f"coupling {coupling:g}", line["way"], f"C = {line['C']:g}", shown)
                log.write(**line)


if __name__ == "__main__":
    main()
