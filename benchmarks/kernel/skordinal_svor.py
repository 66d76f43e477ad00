"""skordinal's SVOR with implicit constraints: the C program of Chu and Keerthi inside. Dense rows only."""

from typing import Any

from benchmarks.common import timed
from benchmarks.kernel.limited import fit_within
from benchmarks.kernel.outcome import C, Outcome
from benchmarks.kernel.sets import KernelData

VARIANTS: dict[str, dict[str, Any]] = {"skordinal SVOR": {}}


def missing() -> str | None:
    try:
        import skordinal  # noqa: F401
    except ImportError:
        return "skordinal is not installed"
    return None


def run(data: KernelData, limit: float) -> Outcome:
    from skordinal.classifiers import SVOR

    model = SVOR(C=C, gamma=data.gamma)
    return fit_within(limit, "svor", lambda X, X_test: (timed(lambda: model.fit(X, data.y))[0], model.predict(X_test)), data)
