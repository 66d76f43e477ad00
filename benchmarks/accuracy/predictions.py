"""What a competitor gives back, and how probabilities become ranks for each measure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from benchmarks import answers
from benchmarks.data import Data
from rankplane.folds import deal

MEASURES = ("accuracy", "mae", "mse")
MAX_EXTENSIONS = 5
Array = NDArray[Any]
Ranks = dict[str, Array]  # by measure


@dataclass
class Predictions:
    """Ranks of the test rows by measure; None if there was no answer in time."""

    ranks: Ranks | None
    seconds: float
    note: str = ""

    def measures(self, data: Data) -> dict[str, float] | None:
        if self.ranks is None:
            return None
        return {measure: answers.measures(self.ranks[measure], data.y_test)[measure] for measure in MEASURES}


def for_all(ranks: Array) -> Ranks:
    """The same ranks for every measure, from those who have no probabilities."""
    return dict.fromkeys(MEASURES, ranks)


def decoded(probabilities: Array) -> Ranks:
    """Mode for accuracy, median for MAE, rounded mean for MSE."""
    n_ranks = probabilities.shape[1]
    cumulated = np.cumsum(probabilities, axis=1)
    mean = probabilities @ np.arange(n_ranks)
    return {
        "accuracy": np.argmax(probabilities, axis=1),
        "mae": np.sum(cumulated < 0.5 * cumulated[:, -1:], axis=1),
        "mse": np.clip(np.rint(mean), 0, n_ranks - 1).astype(int),
    }


@dataclass
class Part:
    """Rows to train on and rows to answer for."""

    X: sp.csr_matrix
    y: Array
    X_test: sp.csr_matrix
    rows: Array  # of the training rows of the data set
    is_final: bool


def holdout(data: Data) -> tuple[Part, Array]:
    """A fifth of the training rows held out, whole groups of them, and its ranks."""
    if data.groups is None:
        train, test = next(iter(StratifiedKFold(5, shuffle=True, random_state=0).split(data.X, data.y)))
    else:
        # scikit-learn's StratifiedGroupKFold would take more of a rival's time than some fits.
        is_held = deal(data.groups, data.y, np.array([0.8, 0.2]), 0) == 1
        train, test = np.flatnonzero(~is_held), np.flatnonzero(is_held)
    return Part(data.X[train], data.y[train], data.X[test], train, False), test


def tuned(
    data: Data, paths: dict[str, list[float]], factor: float, fit: Callable[[Part, Array | None, str, float], Ranks]
) -> tuple[Ranks, str]:
    """Ranks of the test rows, for each measure from the setting that is best for it on held-out training rows.

    A path is a rising list of values of one setting, such as C of one solver. When the best of all is the last or the
    first of its path, the path goes on by ``factor``: nobody loses for want of a wider grid. ``fit(part, held_out, path,
    value)`` trains on the part and ranks its test rows: those of the data set, or the ``held_out`` ones of its training
    rows.
    """
    part, held_out = holdout(data)
    paths = {name: list(values) for name, values in paths.items()}
    found: dict[tuple[str, float], dict[str, float]] = {}
    best: dict[str, tuple[str, float]] = {}
    for _ in range(1 + MAX_EXTENSIONS):
        for name, values in paths.items():
            for value in values:
                if (name, value) not in found:
                    ranks = fit(part, held_out, name, value)
                    found[name, value] = {m: answers.measures(ranks[m], data.y[held_out])[m] for m in MEASURES}
        best = {m: best_setting(found, m) for m in MEASURES}
        wanted = {(name, next_value(paths[name], value, factor)) for name, value in best.values()}
        wanted = {(name, value) for name, value in wanted if value is not None}
        if not wanted:
            break
        for name, value in wanted:
            paths[name] = sorted([*paths[name], value])
    at_edge = [m for m, (name, value) in best.items() if next_value(paths[name], value, factor) is not None]
    everything = Part(data.X, data.y, data.X_test, np.arange(len(data.y)), True)
    final = {setting: fit(everything, None, *setting) for setting in set(best.values())}
    note = ", ".join(f"{m}: {best[m][0]} {best[m][1]:g}" for m in MEASURES)
    return {m: final[best[m]][m] for m in MEASURES}, note + (f" (edge of the grid: {', '.join(at_edge)})" if at_edge else "")


def best_setting(found: dict[tuple[str, float], dict[str, float]], measure: str) -> tuple[str, float]:
    sign = 1 if measure == "accuracy" else -1
    return max(found, key=lambda setting: sign * found[setting][measure])


def next_value(values: list[float], value: float, factor: float) -> float | None:
    """What to try beyond a value at the end of its path; None if the value has neighbours on both sides."""
    if value == values[-1]:
        return value * factor
    return value / factor if value == values[0] else None
