"""skordinal's REDSVM: the libsvm-rank of Lin and Li inside. Dense rows only."""

from typing import Any

from benchmarks.kernel.limited import fit_within
from benchmarks.kernel.outcome import C, Outcome
from benchmarks.kernel.sets import KernelData
from benchmarks.kernel.skordinal_svor import missing
from lab.timing import timed

VARIANTS: dict[str, dict[str, Any]] = {"skordinal REDSVM": {}}

__all__ = ["VARIANTS", "missing", "run"]


def run(data: KernelData, limit: float) -> Outcome:
    from skordinal.classifiers import REDSVM

    model = REDSVM(C=C, gamma=data.gamma, cache_size=1000)
    return fit_within(limit, "redsvm", lambda X, X_test: (timed(lambda: model.fit(X, data.y))[0], model.predict(X_test)), data)
