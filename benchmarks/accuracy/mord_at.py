"""mord's LogisticAT, alpha by a holdout, within a time limit: it minimises by L-BFGS with full passes over X in double.
Where the limit is too short for the choice, alpha is 1; where it is too short for that, there is no answer.
"""

from typing import Any

import numpy as np

from benchmarks.accuracy.predictions import Array, Part, Predictions, Ranks, for_all, tuned
from benchmarks.common import processor_timed
from benchmarks.data import Data
from benchmarks.fit.mord_at import OutOfTimeError, missing, within

__all__ = ["VARIANTS", "missing", "run"]
PATHS = {"alpha =": [0.25, 1.0]}
VARIANTS: dict[str, dict[str, Any]] = {"mord LogisticAT": {}}


def run(data: Data, limit: float) -> Predictions:
    import mord

    def fit(part: Part, _: Array | None, __: str, alpha: float) -> Ranks:
        return for_all(mord.LogisticAT(alpha=alpha).fit(part.X, part.y).predict(part.X_test))

    def plain() -> tuple[Ranks, str]:
        everything = Part(data.X, data.y, data.X_test, np.arange(len(data.y)), True)
        return fit(everything, None, "", 1.0), f"alpha = 1: choosing it took more than {limit:g} s"

    spent = 0.0
    for way in (lambda: tuned(data, PATHS, 4.0, fit), plain):
        try:
            seconds, (ranks, note) = within(limit, lambda way=way: processor_timed(way))
            return Predictions(ranks, spent + seconds, note)
        except OutOfTimeError:
            spent += limit
    return Predictions(None, spent, f"given up after {limit:g} s")
