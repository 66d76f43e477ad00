"""mord's LogisticAT: another model, a threshold model with the logistic loss, so its objective is compared with
nobody's. A fit that runs into the time limit counts as "more than" the limit and has no predictions.
"""

from typing import Any

from benchmarks.fit.outcome import Outcome
from lab.competitors.mord import missing
from lab.data import Data
from lab.timing import OutOfTimeError, timed, within

__all__ = ["VARIANTS", "missing", "run"]
VARIANTS: dict[str, dict[str, Any]] = {"mord LogisticAT": {}}


def run(data: Data, limit: float = 60.0) -> Outcome:
    import mord

    estimator = mord.LogisticAT(alpha=1.0)
    try:
        seconds, _ = within(limit, lambda: timed(lambda: estimator.fit(data.X, data.y)))
    except OutOfTimeError:
        return Outcome(limit, "logistic thresholds", note=f"given up after {limit:g} s")
    return Outcome(seconds, "logistic thresholds", predictions=estimator.predict(data.X_test))
