"""The results of a competitor, and how probabilities become ranks for each measure."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold

from lab.data import Data
from lab.measures import MEASURES, Array, measures
from rankplane.solver.folds import assign_parts

MAX_EXTENSIONS = 5
Ranks = dict[str, Array]  # by measure


@dataclass
class Predictions:
    """Ranks of the test rows by measure; None if there was no answer in time. Seconds are of processor time: the choice of
    settings, the fit with those chosen for MAE, and its answers.
    """

    ranks: Ranks | None
    seconds: float
    note: str = ""
    reads_texts: bool = False  # rather than the matrix

    def measures(self, data: Data) -> dict[str, float] | None:
        if self.ranks is None:
            return None
        return {measure: measures(self.ranks[measure], data.y_test)[measure] for measure in MEASURES}


def for_all(ranks: Array) -> Ranks:
    """The same ranks for every measure, for competitors without probabilities."""
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
    """Rows to train on and rows to predict."""

    X: sp.csr_matrix
    y: Array
    X_test: sp.csr_matrix
    rows: Array  # of the training rows of the data set
    prepared: dict[str, Any] = field(default_factory=dict)  # kept by competitors from one fit to the next


def holdout(data: Data) -> tuple[Part, Array]:
    """A fifth of the training rows held out, whole groups of them, and its ranks."""
    if data.groups is None:
        train, test = next(iter(StratifiedKFold(5, shuffle=True, random_state=0).split(data.X, data.y)))
    else:
        # scikit-learn's StratifiedGroupKFold would take more of a rival's time than some fits.
        is_held = assign_parts(data.groups, data.y, np.array([0.8, 0.2]), 0) == 1
        train, test = np.flatnonzero(~is_held), np.flatnonzero(is_held)
    return Part(data.X[train], data.y[train], data.X[test], train), test


def all_rows(data: Data) -> Part:
    return Part(data.X, data.y, data.X_test, np.arange(len(data.y)))


def tuned(
    data: Data, paths: dict[str, list[float]], factor: float, fit: Callable[[Part, Array | None, str, float], Ranks]
) -> Predictions:
    """Ranks of the test rows, for each measure from the setting that is best for it on held-out training rows.

    A path is a rising list of values of one setting, such as C of one solver. While the best of all is the last or the
    first of its path, the path goes on by ``factor``, a few times. ``fit(part, held_out, path, value)`` trains on the part
    and ranks its test rows: those of the data set, or the ``held_out`` ones of its training rows.
    """
    start = time.process_time()
    part, held_out = holdout(data)
    paths = {name: list(values) for name, values in paths.items()}
    found: dict[tuple[str, float], dict[str, float]] = {}
    best: dict[str, tuple[str, float]] = {}
    for _ in range(1 + MAX_EXTENSIONS):
        for name, values in paths.items():
            for value in values:
                if (name, value) not in found:
                    ranks = fit(part, held_out, name, value)
                    found[name, value] = {m: measures(ranks[m], data.y[held_out])[m] for m in MEASURES}
        best = {m: best_setting(found, m) for m in MEASURES}
        wanted = {(name, next_value(paths[name], value, factor)) for name, value in best.values()}
        wanted = {(name, value) for name, value in wanted if value is not None}
        if not wanted:
            break
        for name, value in wanted:
            paths[name] = sorted([*paths[name], value])
    at_edge = [m for m, (name, value) in best.items() if next_value(paths[name], value, factor) is not None]
    everything = all_rows(data)
    final = {best["mae"]: fit(everything, None, *best["mae"])}
    seconds = time.process_time() - start
    for setting in best.values():
        if setting not in final:
            final[setting] = fit(everything, None, *setting)
    note = ", ".join(f"{m}: {best[m][0]} {best[m][1]:g}" for m in MEASURES)
    note += f" (edge of the grid: {', '.join(at_edge)})" if at_edge else ""
    return Predictions({m: final[best[m]][m] for m in MEASURES}, seconds, note)


def best_setting(found: dict[tuple[str, float], dict[str, float]], measure: str) -> tuple[str, float]:
    sign = 1 if measure == "accuracy" else -1
    return max(found, key=lambda setting: sign * found[setting][measure])


def next_value(values: list[float], value: float, factor: float) -> float | None:
    """What to try beyond a value at the end of its path; None if the value has neighbours on both sides."""
    if value == values[-1]:
        return value * factor
    return value / factor if value == values[0] else None
