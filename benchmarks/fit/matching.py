"""Times compare only at equal answers: which tolerance gives this package an answer no worse than a rival's.

Stopping rules differ. LIBLINEAR's -s 3 stops by the largest violation, which at its default is a tighter answer
than ours at tol=0.1; the textbook solver shares our rule but not our order of rows. So the answer is measured, and
our tolerance lowered until it is as good.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.fit import rankplane
from lab.data import Data

FIRST_TOL = 0.1
STEP = 0.75
SMALLEST_TOL = 1e-4


@dataclass(frozen=True)
class Rival:
    """Whom a model of ours is measured against, and by which number of ``Outcome.check``."""

    name: str
    model: str
    measure: str


# LIBLINEAR gives no dual variables, so there the objective reached has to stand for the gap.
RIVALS = (
    Rival("textbook DCD-2", "npsvor", "relative_gap"),
    Rival("LIBLINEAR -s 3", "svc", "primal"),
    Rival("LIBLINEAR -s 13", "svr", "primal"),
)


def matched_tol(
    data: Data, rival: Rival, rival_check: dict[str, Any], n_jobs: int, tol: float, say: Callable[[str], None]
) -> float:
    """The largest tolerance, from ``tol`` down in steps, that gives an answer no worse than the rival's."""
    while tol > SMALLEST_TOL:
        say(f"as good as {rival.name} at tol={tol:.3g}?")
        if rankplane.run(data, rival.model, n_jobs, tol).check(data)[rival.measure] <= rival_check[rival.measure]:
            return tol
        tol *= STEP
    raise AssertionError(f"No tolerance down to {SMALLEST_TOL} reaches the answer of {rival.name} on {data.name}.")
