"""The same folds for everyone, and how long fifty-five fits take when there is no time for all of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from lab.data import Data

CS = [2.0**k for k in range(-5, 6)]
N_FOLDS = 5


@dataclass
class Searched:
    """Seconds of a whole search; ``n_folds`` of five were timed, the others taken to be like them."""

    seconds: float
    n_folds: int
    mae: dict[float, float] = field(default_factory=dict)  # by C, mean over the folds timed

    @property
    def note(self) -> str:
        if self.n_folds == N_FOLDS:
            return ""
        return f"{self.n_folds} of {N_FOLDS} folds timed, times {N_FOLDS / self.n_folds:g}"


def split(data: Data) -> list[tuple[Any, Any]]:
    return list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(data.X, data.y))


def fold_by_fold(data: Data, limit: float, fit_path: Callable[[Any, Any], tuple[float, list[float]]]) -> Searched:
    """``fit_path(train, test)`` fits all values of C on a fold and gives back its seconds and the MAE of each.

    Folds go on until the limit would be passed; they are alike, so the rest is taken to cost the same.
    """
    seconds: list[float] = []
    errors: list[list[float]] = []
    for train, test in split(data):
        if seconds and sum(seconds) + max(seconds) > limit:
            break
        spent, mae = fit_path(train, test)
        seconds.append(spent)
        errors.append(mae)
    means = np.mean(errors, axis=0)
    return Searched(float(np.mean(seconds)) * N_FOLDS, len(seconds), dict(zip(CS, means.tolist(), strict=True)))
