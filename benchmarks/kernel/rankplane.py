"""Our models with kernel="rbf". "free bias" solves the very problem of scikit-learn; the plain models penalise the bias."""

from typing import Any

import numpy as np

from benchmarks.kernel.outcome import EPSILON, C, Outcome, Plane
from benchmarks.kernel.sets import KernelData
from lab.timing import timed
from rankplane import NPSVOR, SVC, SVOR, SVR, RedSVM


class FreeSVC(SVC):
    free_offsets = True


class FreeSVR(SVR):
    free_offsets = True


MODELS = {"npsvor": NPSVOR, "svc": SVC, "svr": SVR, "svor": SVOR, "redsvm": RedSVM}
FREE = {"svc": FreeSVC, "svr": FreeSVR, "svor": SVOR}
NAMES = {"npsvor": "NPSVOR", "svc": "SVC", "svr": "SVR", "svor": "SVOR", "redsvm": "RedSVM"}
TOL = 0.01  # a duality gap of 1e-4 of the objective, about what scikit-learn's default tolerance reaches
VARIANTS: dict[str, dict[str, Any]] = {
    **{
        f"rankplane {NAMES[problem]}, free bias, {n_jobs} thread{'s' * (n_jobs > 1)}": {
            "problem": problem,
            "n_jobs": n_jobs,
            "is_free": True,
        }
        for problem in ("svc", "svr")
        for n_jobs in (1, 2)
    },
    **{
        f"rankplane {NAMES[problem]}, {n_jobs} thread{'s' * (n_jobs > 1)}": {"problem": problem, "n_jobs": n_jobs}
        for problem in ("svor", "redsvm", "npsvor", "svc", "svr")
        for n_jobs in (1, 2)
    },
}


def missing() -> str | None:
    return None


def run(data: KernelData, problem: str, n_jobs: int, is_free: bool = False, tol: float = TOL) -> Outcome:
    estimator = (FREE if is_free else MODELS)[problem](C=C, kernel="rbf", gamma=data.gamma, tol=tol, n_jobs=n_jobs, cache_size=1000)
    if problem in ("npsvor", "svr"):
        estimator.set_params(epsilon=EPSILON)
    seconds, _ = timed(lambda: estimator.fit(data.X, data.y))
    planes = None
    if is_free:
        planes = [
            Plane(estimator.support_, coefficients, offset)
            for coefficients, offset in zip(estimator.dual_coef_, estimator.intercept_, strict=True)
        ]
    return Outcome(seconds, problem, np.asarray(estimator.predict(data.X_test)), planes)


def least_value(data: KernelData, problem: str) -> float:
    """A certified lower bound of the objective, from a tight solve."""
    estimator = FREE[problem](C=C, kernel="rbf", gamma=data.gamma, tol=1e-3, cache_size=1000)
    return float(-estimator.fit(data.X, data.y).dual_objective_.sum())
