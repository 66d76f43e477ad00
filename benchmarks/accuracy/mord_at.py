"""mord's LogisticAT, alpha by a holdout, within a time limit: it minimises by L-BFGS with full passes over X in double.
Where the limit is too short for the choice, alpha is 1; where it is too short for that, there is no answer.
"""

import signal
from typing import Any

from benchmarks.accuracy.predictions import Array, Part, Predictions, Ranks, for_all, tuned
from benchmarks.common import timed
from benchmarks.data import Data
from benchmarks.fit import mord_at
from benchmarks.fit.mord_at import OutOfTimeError, missing

__all__ = ["VARIANTS", "missing", "run"]
PATHS = {"alpha =": [0.25, 1.0]}
VARIANTS: dict[str, dict[str, Any]] = {"mord LogisticAT": {}}


def run(data: Data, limit: float) -> Predictions:
    import mord

    def fit(part: Part, _: Array | None, __: str, alpha: float) -> Ranks:
        return for_all(mord.LogisticAT(alpha=alpha).fit(part.X, part.y).predict(part.X_test))

    def give_up(*_: Any) -> None:
        raise OutOfTimeError

    # scipy's minimiser calls back into Python for every function value, where the signal is noticed.
    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        seconds, (ranks, note) = timed(lambda: tuned(data, PATHS, 4.0, fit))
        return Predictions(ranks, seconds, note)
    except OutOfTimeError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    outcome = mord_at.run(data, limit)
    found = None if outcome.predictions is None else for_all(outcome.predictions)
    return Predictions(found, limit + outcome.seconds, outcome.note or f"alpha = 1: choosing it took more than {limit:g} s")
