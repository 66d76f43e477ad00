"""This package. X in float32, as the features come; tol=0.1, the paper's."""

from typing import Any

import numpy as np

from benchmarks import answers
from benchmarks.fit.outcome import Outcome
from lab.competitors.rankplane import PAPER_TOL
from lab.data import Data
from lab.timing import timed
from rankplane import NPSVOR, SVC, SVR

MODELS = {"npsvor": NPSVOR, "svc": SVC, "svr": SVR}

VARIANTS: dict[str, dict[str, Any]] = {
    "rankplane NPSVOR, 1 thread": {"model": "npsvor", "n_jobs": 1},
    "rankplane NPSVOR, 2 threads": {"model": "npsvor", "n_jobs": 2},
    "rankplane NPSVOR, 1 thread, float64": {"model": "npsvor", "n_jobs": 1, "dtype": "float64"},
    "rankplane SVC, 1 thread": {"model": "svc", "n_jobs": 1},
    "rankplane SVC, 2 threads": {"model": "svc", "n_jobs": 2},
    "rankplane SVR, 1 thread": {"model": "svr", "n_jobs": 1},
    "rankplane SVR, 2 threads": {"model": "svr", "n_jobs": 2},
}


def missing() -> str | None:
    return None


def run(data: Data, model: str, n_jobs: int, tol: float = PAPER_TOL, dtype: str = "float32", max_iter: int = 1000) -> Outcome:
    X = data.X
    if dtype != "float32":
        if dtype not in data.prepared:
            data.prepared[dtype] = data.X.astype(dtype)
        X = data.prepared[dtype]
    parameters = {"C": answers.C, "tol": tol, "n_jobs": n_jobs, "ranks": range(data.n_ranks), "max_iter": max_iter}
    if model != "svc":
        parameters["epsilon"] = answers.EPSILON
    estimator = MODELS[model](**parameters)
    seconds, _ = timed(lambda: estimator.fit(X, data.y))
    return Outcome(
        seconds,
        model,
        predictions=estimator.predict(data.X_test),
        weights=np.vstack([estimator.coef_.T, estimator.intercept_]),
        dual_objective=float(estimator.dual_objective_.sum()),
        sweeps=[int(n) for n in estimator.n_iter_],
        note="" if tol == PAPER_TOL else f"tol={tol:.3g}",
    )
