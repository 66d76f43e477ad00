"""mord's LogisticAT, alpha = 1, within a time limit: it minimises by L-BFGS with full passes over X in double. A fit
that runs into the limit has no answer.
"""

from typing import Any

from benchmarks.accuracy.predictions import Predictions, for_all
from benchmarks.data import Data
from benchmarks.fit import mord_at
from benchmarks.fit.mord_at import missing  # noqa: F401

VARIANTS: dict[str, dict[str, Any]] = {"mord LogisticAT": {}}


def run(data: Data, limit: float) -> Predictions:
    outcome = mord_at.run(data, limit)
    ranks = None if outcome.predictions is None else for_all(outcome.predictions)
    return Predictions(ranks, outcome.seconds, outcome.note)
