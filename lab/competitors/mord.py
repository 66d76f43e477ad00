"""mord's LogisticAT: a threshold model with the logistic loss. Alpha by a holdout; mode, median and rounded mean of its
probabilities.

It minimises by L-BFGS with full passes over X in double and takes minutes on wide data, hence a time limit. Where the limit is too
short for the choice, alpha is 1; where it is too short for that, there is no answer.
"""

import signal
from dataclasses import replace
from typing import Any

from lab.competitors import not_installed
from lab.data import Data
from lab.measures import Array
from lab.predictions import Part, Predictions, Ranks, all_rows, decoded, tuned
from lab.timing import OutOfTimeError, processor_timed, within

PATHS = {"alpha =": [0.25, 1.0]}
VARIANTS: dict[str, dict[str, Any]] = {"mord LogisticAT": {}}


def missing() -> str | None:
    return not_installed("mord", "mord") or (None if hasattr(signal, "setitimer") else "its time limit needs a POSIX timer")


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
