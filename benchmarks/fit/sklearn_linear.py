"""scikit-learn's LinearSVC with the hinge loss, and LinearSVR on the ranks counted from 1: LIBLINEAR inside, its tolerance much
tighter unless told otherwise.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import answers
from benchmarks.fit.outcome import Outcome, from_weights
from lab.data import Data
from lab.timing import timed

VARIANTS: dict[str, dict[str, Any]] = {
    f"{name}, {words}": {"model": model, "tol": tol}
    for model, name in (("svc", "LinearSVC"), ("svr", "LinearSVR"))
    for tol, words in ((0.1, "tol=0.1"), (1e-4, "tol=1e-4 (default)"))
}


def missing() -> str | None:
    return None


def run(data: Data, model: str, tol: float) -> Outcome:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC, LinearSVR

    if "float64" not in data.prepared:
        data.prepared["float64"] = data.X.astype(np.float64)
    if model == "svc":
        estimator, targets = LinearSVC(loss="hinge", C=answers.C, tol=tol, random_state=0), data.y
    else:
        estimator, targets = LinearSVR(epsilon=answers.EPSILON, C=answers.C, tol=tol, random_state=0), data.y + 1.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        seconds, _ = timed(lambda: estimator.fit(data.prepared["float64"], targets))
    note = "stopped at max_iter" if any(issubclass(w.category, ConvergenceWarning) for w in caught) else ""
    return from_weights(seconds, model, data, weights_of(estimator, model), note=note)


def weights_of(estimator: Any, model: str) -> NDArray[np.float64]:
    weights = np.vstack([np.atleast_2d(estimator.coef_).T, np.atleast_1d(estimator.intercept_)])
    # Of two ranks it keeps one plane; the other is its mirror image.
    return np.hstack([-weights, weights]) if model == "svc" and weights.shape[1] == 1 else weights
