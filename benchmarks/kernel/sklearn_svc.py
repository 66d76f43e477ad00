"""scikit-learn's SVC, one binary problem per rank, one after the other: LIBSVM inside."""

from typing import Any

import numpy as np

from benchmarks.kernel.outcome import C, Outcome, Plane
from benchmarks.kernel.sets import KernelData
from lab.timing import timed

VARIANTS: dict[str, dict[str, Any]] = {"scikit-learn SVC, rank by rank": {}}


def missing() -> str | None:
    return None


def run(data: KernelData) -> Outcome:
    from sklearn.svm import SVC

    def fit(rank: int) -> Any:
        return SVC(C=C, gamma=data.gamma, cache_size=1000).fit(data.X, data.y == rank)

    ranks = np.unique(data.y)
    seconds, models = timed(lambda: [fit(rank) for rank in ranks])
    scores = np.column_stack([model.decision_function(data.X_test) for model in models])
    planes = [Plane(model.support_, as_array(model.dual_coef_).ravel(), float(model.intercept_[0])) for model in models]
    return Outcome(seconds, "svc", ranks[np.argmax(scores, axis=1)], planes)


def as_array(values: Any) -> Any:
    """Of sparse rows, the coefficients are sparse too."""
    return values.toarray() if hasattr(values, "toarray") else values
