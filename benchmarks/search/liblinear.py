"""Fifty-five LIBLINEAR fits, ``-s 3 -B 1``, to its own default tolerance. Building its problem structures and
predicting are not timed.
"""

import ctypes
from typing import Any

import numpy as np

from benchmarks import answers
from benchmarks.common import timed
from benchmarks.data import Data
from benchmarks.fit.liblinear import missing, weights_of
from benchmarks.search.folds import CS, Searched, fold_by_fold

__all__ = ["VARIANTS", "missing", "run"]
VARIANTS: dict[str, dict[str, Any]] = {"LIBLINEAR -s 3, a fit per fold and C": {}}


def run(data: Data, limit: float) -> Searched:
    from liblinear.liblinear import problem
    from liblinear.liblinearutil import train as fit

    def fit_path(train: Any, test: Any) -> tuple[float, list[float]]:
        prepared = problem((data.y[train] + 1).astype(np.float64), data.X[train].astype(np.float64))
        total, mae = 0.0, []
        for C in CS:
            ctypes.CDLL(None).srand(1)  # it orders rows by rand()
            seconds, found = timed(lambda C=C: fit(prepared, f"-s 3 -c {C} -B 1 -q"))
            total += seconds
            ranks = answers.rank("svc", data.X[test][:, : found.nr_feature], data.n_ranks, weights_of(found, data, "svc"))
            mae.append(answers.measures(ranks, data.y[test])["mae"])
        return total, mae

    return fold_by_fold(data, limit, fit_path)
