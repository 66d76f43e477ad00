"""What a competitor gives back, and how probabilities become ranks for each measure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from benchmarks import answers
from benchmarks.data import Data

MEASURES = ("accuracy", "mae", "mse")
Array = NDArray[Any]
Ranks = dict[str, Array]  # by measure
Setting = TypeVar("Setting")


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
    splitter = (StratifiedKFold if data.groups is None else StratifiedGroupKFold)(5, shuffle=True, random_state=0)
    train, test = next(iter(splitter.split(data.X, data.y, data.groups)))
    return Part(data.X[train], data.y[train], data.X[test], train, False), test


def tuned(data: Data, settings: Iterable[Setting], fit: Callable[[Part, Array | None, Setting], Ranks]) -> tuple[Ranks, str]:
    """Ranks of the test rows, for each measure from the setting that is best for it on held-out training rows.

    ``fit(part, held_out, setting)`` trains on the part and ranks its test rows: those of the data set, or the
    ``held_out`` ones of its training rows.
    """
    part, held_out = holdout(data)
    found = []
    for setting in settings:
        ranks = fit(part, held_out, setting)
        found.append((setting, {m: answers.measures(ranks[m], data.y[held_out])[m] for m in MEASURES}))
    best = {m: (max if m == "accuracy" else min)(found, key=lambda entry: entry[1][m])[0] for m in MEASURES}
    everything = Part(data.X, data.y, data.X_test, np.arange(len(data.y)), True)
    final: list[tuple[Setting, Ranks]] = []
    for setting in best.values():
        if all(setting != done for done, _ in final):
            final.append((setting, fit(everything, None, setting)))
    ranks = {m: next(r for s, r in final if s == best[m])[m] for m in MEASURES}
    return ranks, ", ".join(f"{m}: {best[m]}" for m in MEASURES)
