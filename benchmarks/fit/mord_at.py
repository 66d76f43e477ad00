"""mord's LogisticAT: another model, a threshold model with the logistic loss, so its objective is compared with
nobody's.

It minimises by L-BFGS with full passes over X and takes minutes on wide data, hence a time limit. A fit that runs
into it counts as "more than" the limit and has no predictions.
"""

import signal
from collections.abc import Callable
from typing import Any, TypeVar

from benchmarks.common import timed
from benchmarks.data import Data
from benchmarks.fit.outcome import Outcome

VARIANTS: dict[str, dict[str, Any]] = {"mord LogisticAT": {}}
Result = TypeVar("Result")


class OutOfTimeError(Exception):
    pass


def missing() -> str | None:
    try:
        import mord  # noqa: F401
    except ImportError:
        return "mord is not installed"
    if not hasattr(signal, "setitimer"):
        return "its time limit needs a POSIX timer"
    return None


def run(data: Data, limit: float = 60.0) -> Outcome:
    import mord

    estimator = mord.LogisticAT(alpha=1.0)
    try:
        seconds, _ = within(limit, lambda: timed(lambda: estimator.fit(data.X, data.y)))
    except OutOfTimeError:
        return Outcome(limit, "logistic thresholds", note=f"given up after {limit:g} s")
    return Outcome(seconds, "logistic thresholds", predictions=estimator.predict(data.X_test))


def within(limit: float, work: Callable[[], Result]) -> Result:
    """Raises OutOfTimeError after ``limit`` seconds of processor time."""

    def give_up(*_: Any) -> None:
        raise OutOfTimeError

    # scipy's minimiser calls back into Python for every function value, where the signal is noticed.
    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        return work()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
