"""scikit-learn's SVR on the ranks: LIBSVM inside."""

from typing import Any

import numpy as np

from benchmarks.kernel.outcome import EPSILON, C, Outcome, Plane
from benchmarks.kernel.sets import KernelData
from benchmarks.kernel.sklearn_svc import as_array
from lab.timing import timed

VARIANTS: dict[str, dict[str, Any]] = {"scikit-learn SVR": {}}


def missing() -> str | None:
    return None


def run(data: KernelData) -> Outcome:
    from sklearn.svm import SVR

    model = SVR(C=C, gamma=data.gamma, epsilon=EPSILON, cache_size=1000)
    seconds, _ = timed(lambda: model.fit(data.X, data.y + 1))
    predictions = np.clip(np.rint(model.predict(data.X_test)).astype(int) - 1, 0, data.n_ranks - 1)
    return Outcome(
        seconds, "svr", predictions, [Plane(model.support_, as_array(model.dual_coef_).ravel(), float(model.intercept_[0]))]
    )
