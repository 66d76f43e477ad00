"""LIBLINEAR's SVC (``-s 1``, ``-s 3``) and SVR (``-s 11``, ``-s 13``, rounded): loss and C by a holdout."""

import ctypes
from typing import Any

import numpy as np

from benchmarks.accuracy.predictions import Array, Part, Predictions, Ranks, for_all, tuned
from benchmarks.data import Data
from benchmarks.fit.liblinear import missing  # noqa: F401

PATHS = {
    "svc": {"-s 1 -c": [0.125, 0.5], "-s 3 -c": [0.25, 1.0]},
    "svr": {"-p 0.1 -s 11 -c": [0.125, 0.5], "-p 0.1 -s 13 -c": [0.25, 1.0]},
}
VARIANTS: dict[str, dict[str, Any]] = {"LIBLINEAR SVC": {"model": "svc"}, "LIBLINEAR SVR": {"model": "svr"}}


def run(data: Data, model: str) -> Predictions:
    n_ranks = data.n_ranks

    def fit(part: Part, _: Array | None, solver: str, C: float) -> Ranks:
        return for_all(ranks_of(part, f"{solver} {C}", n_ranks))

    return tuned(data, PATHS[model], 4.0, fit)


def ranks_of(part: Part, setting: str, n_ranks: int) -> Array:
    from liblinear.liblinear import problem
    from liblinear.liblinearutil import train

    # LIBLINEAR orders its rows by the C library's rand(): without a seed every run gives another answer.
    ctypes.CDLL(None).srand(1)
    if "problem" not in part.prepared:
        part.prepared["problem"] = problem((part.y + 1).astype(np.float64), part.X.astype(np.float64))
    found = train(part.prepared["problem"], f"{setting} -B 1 -q")
    n_columns = found.nr_feature
    n_planes = 1 if found.is_regression_model() or found.nr_class == 2 else found.nr_class
    weights = np.ctypeslib.as_array(found.w, (n_columns + 1, n_planes))
    scores = part.X_test[:, :n_columns] @ weights[:-1] + weights[-1]
    if found.is_regression_model():
        return np.clip(np.rint(scores[:, 0]), 1, n_ranks).astype(int) - 1
    labels = np.array(found.get_labels()) - 1
    return np.asarray(labels[np.argmax(scores, axis=1)] if n_planes > 1 else np.where(scores[:, 0] > 0, *labels))
