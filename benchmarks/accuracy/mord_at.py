"""mord's LogisticAT, alpha by a holdout, mode, median and rounded mean of its probabilities, within a time limit: it minimises by
L-BFGS with full passes over X in double.
Where the limit is too short for the choice, alpha is 1; where it is too short for that, there is no answer.
"""

from dataclasses import replace
from typing import Any

from benchmarks.accuracy.predictions import Array, Part, Predictions, Ranks, all_rows, decoded, tuned
from benchmarks.common import processor_timed
from benchmarks.data import Data
from benchmarks.fit.mord_at import OutOfTimeError, missing, within

__all__ = ["VARIANTS", "missing", "run"]
PATHS = {"alpha =": [0.25, 1.0]}
VARIANTS: dict[str, dict[str, Any]] = {"mord LogisticAT": {}}


def run(data: Data, limit: float) -> Predictions:
    import mord

    def fit(part: Part, _: Array | None, __: str, alpha: float) -> Ranks:
        return decoded(mord.LogisticAT(alpha=alpha).fit(part.X, part.y).predict_proba(part.X_test))

    def plain() -> Predictions:
        seconds, ranks = processor_timed(lambda: fit(all_rows(data), None, "", 1.0))
        return Predictions(ranks, seconds, f"alpha = 1: choosing it took more than {limit:g} s")

    spent = 0.0
    for way in (lambda: tuned(data, PATHS, 4.0, fit), plain):
        try:
            found = within(limit, way)
            return replace(found, seconds=spent + found.seconds)
        except OutOfTimeError:
            spent += limit
    return Predictions(None, spent, f"given up after {limit:g} s")
