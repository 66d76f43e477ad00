"""skordinal's SVOR with implicit constraints: the C program of Chu and Keerthi inside. Dense rows only."""

from typing import Any

from benchmarks.kernel.limited import fit_within
from benchmarks.kernel.outcome import C, Outcome
from benchmarks.kernel.sets import KernelData
from lab.competitors import not_installed
from lab.timing import timed

VARIANTS: dict[str, dict[str, Any]] = {"skordinal SVOR": {}}


def missing() -> str | None:
    return not_installed("skordinal", "skordinal")


def run(data: KernelData, limit: float) -> Outcome:
    from skordinal.classifiers import SVOR

    model = SVOR(C=C, gamma=data.gamma)
    return fit_within(limit, "svor", lambda X, X_test: (timed(lambda: model.fit(X, data.y))[0], model.predict(X_test)), data)
