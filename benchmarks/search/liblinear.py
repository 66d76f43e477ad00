"""Fifty-five LIBLINEAR fits, ``-s 3 -B 1``, to its own default tolerance. Building its problem structures and
predicting are not timed.
"""

from typing import Any

from benchmarks.search.folds import CS, Searched, fold_by_fold
from lab.competitors.liblinear import missing, predict, problem_of, train
from lab.data import Data
from lab.measures import measures
from lab.predictions import Part
from lab.timing import timed

__all__ = ["VARIANTS", "missing", "run"]
VARIANTS: dict[str, dict[str, Any]] = {"LIBLINEAR -s 3, a fit per fold and C": {}}


def run(data: Data, limit: float) -> Searched:
    def fit_path(rows: Any, held_out: Any) -> tuple[float, list[float]]:
        part = Part(data.X[rows], data.y[rows], data.X[held_out], rows)
        problem = problem_of(part)
        total, mae = 0.0, []
        for C in CS:
            seconds, found = timed(lambda C=C: train(problem, f"-s 3 -c {C}"))
            total += seconds
            mae.append(measures(predict(found, part.X_test, data.n_ranks), data.y[held_out])["mae"])
        return total, mae

    return fold_by_fold(data, limit, fit_path)
