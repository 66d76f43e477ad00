"""The table of linear models: MAE and MSE of SVC, SVR, RedSVM and NPSVOR, and of SVOR and SVMOP, with average ranks.

The table of the two rankers and the confusion matrices read the same lines.
"""

from collections.abc import Iterator
from typing import Any

from experiments import methods
from experiments.notebook import Job, Line
from experiments.sets import TEXT_SETS, Lab, by_seed

EXPERIMENT = "linear_models"
SETS = ("treebank_features", *TEXT_SETS)
METHODS = tuple(methods.MODELS)


def jobs(lab: Lab) -> Iterator[Job]:
    for name, split, seed in by_seed(lab, SETS):
        for method in METHODS:
            key = lab.key(name, split, seed, method=method, settings=settings(method))
            yield Job(EXPERIMENT, key, lambda name=name, split=split, seed=seed, method=method: run(lab, name, split, seed, method))


def settings(method: str) -> Line:
    return methods.PROTOCOL | {"tol": methods.SVR_TOL if method == "SVR" else methods.TOL, "epsilon": methods.EPSILON}


def run(lab: Lab, name: str, split: str, seed: int, method: str) -> Line:
    data = lab.matrices(name, split, seed)
    search, seconds = methods.tuned(data, method, seed)
    best = search.best_estimator_
    result: dict[str, Any] = methods.shape(data) | {"C": search.best_C_, "cv_mae": round(search.best_score_, 5)}
    result |= methods.judged(data, best.predict(data.X_test))
    return result | {"n_support": int(best.n_support_.sum()), "processor_seconds": round(seconds, 3)}
