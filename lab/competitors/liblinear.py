"""LIBLINEAR (``liblinear-official``): SVC (``-s 1``, ``-s 3``) and SVR (``-s 11``, ``-s 13``, rounded). Where it predicts, loss
and C are chosen by a holdout.
"""

import ctypes
from typing import Any

import numpy as np

from lab.competitors import not_installed
from lab.data import Data
from lab.measures import Array
from lab.predictions import Part, Predictions, Ranks, for_all, tuned

PATHS = {
    "svc": {"-s 1 -c": [0.125, 0.5], "-s 3 -c": [0.25, 1.0]},
    "svr": {"-p 0.1 -s 11 -c": [0.125, 0.5], "-p 0.1 -s 13 -c": [0.25, 1.0]},
}
VARIANTS: dict[str, dict[str, Any]] = {"LIBLINEAR SVC": {"model": "svc"}, "LIBLINEAR SVR": {"model": "svr"}}


def missing() -> str | None:
    return not_installed("liblinear.liblinearutil", "liblinear-official")


def problem_of(rows: Data | Part) -> Any:
    """Its own structure of the training rows, made once and kept with them: its ranks are numbered from 1."""
    from liblinear.liblinear import problem

    if "liblinear" not in rows.prepared:
        rows.prepared["liblinear"] = problem((rows.y + 1).astype(np.float64), rows.X.astype(np.float64))
    return rows.prepared["liblinear"]


def train(problem: Any, setting: str) -> Any:
    """Its model, with a bias penalised like a weight."""
    from liblinear.liblinearutil import train

    # It shuffles rows by rand() of the C library: without a seed, every run has another result.
    ctypes.CDLL(None).srand(1)
    return train(problem, f"{setting} -B 1 -q")


def planes_of(model: Any) -> tuple[Array, Array]:
    """Weights by (column, plane), the biases in the last row, and the rank of every plane; one plane, of no rank, for SVR."""
    n_rows = model.nr_feature + 1
    if model.is_regression_model():
        return np.ctypeslib.as_array(model.w, (n_rows, 1)).copy(), np.array([], dtype=int)
    ranks = np.array(model.get_labels()) - 1
    # With two classes LIBLINEAR keeps one plane; the other is its mirror image.
    n_kept = 1 if len(ranks) == 2 else len(ranks)
    kept = np.ctypeslib.as_array(model.w, (n_rows, n_kept)).copy()
    return (kept if n_kept > 1 else np.hstack([kept, -kept])), ranks


def predict(model: Any, X: Any, n_ranks: int) -> Array:
    weights, ranks = planes_of(model)
    scores = X[:, : len(weights) - 1] @ weights[:-1] + weights[-1]
    if not len(ranks):
        return np.clip(np.rint(scores[:, 0]), 1, n_ranks).astype(int) - 1
    return np.asarray(ranks[np.argmax(scores, axis=1)])


def run(data: Data, model: str) -> Predictions:
    n_ranks = data.n_ranks

    def fit(part: Part, _: Array | None, solver: str, C: float) -> Ranks:
        return for_all(predict(train(problem_of(part), f"{solver} {C}"), part.X_test, n_ranks))

    return tuned(data, PATHS[model], 4.0, fit)
