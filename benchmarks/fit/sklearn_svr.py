"""scikit-learn's LinearSVR on the ranks counted from 1: LIBLINEAR inside, its tolerance much tighter unless told
otherwise.
"""

import warnings
from typing import Any

import numpy as np

from benchmarks import answers
from benchmarks.common import timed
from benchmarks.data import Data
from benchmarks.fit.outcome import Outcome, from_weights

VARIANTS: dict[str, dict[str, Any]] = {
    "LinearSVR, tol=0.1": {"tol": 0.1},
    "LinearSVR, tol=1e-4 (default)": {"tol": 1e-4},
}


def missing() -> str | None:
    return None


def run(data: Data, tol: float) -> Outcome:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVR

    if "float64" not in data.prepared:
        data.prepared["float64"] = data.X.astype(np.float64)
    estimator = LinearSVR(epsilon=answers.EPSILON, C=answers.C, tol=tol, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        seconds, _ = timed(lambda: estimator.fit(data.prepared["float64"], data.y + 1.0))
    weights = np.vstack([estimator.coef_[:, None], np.atleast_1d(estimator.intercept_)[:, None]])
    note = "stopped at max_iter" if any(issubclass(w.category, ConvergenceWarning) for w in caught) else ""
    return from_weights(seconds, "svr", data, weights, note=note)
