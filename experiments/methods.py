"""The paper's models with the paper's settings, and the way each is tuned and judged."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.one_against_one import PairwiseSVC
from lab.data import Data
from lab.measures import confusion, macro_mae, measures
from lab.timing import processor_timed
from rankplane import NPSVOR, SVC, SVMOP, SVOR, SVR, CSearchCV, RedSVM

TOL = 0.1
SVR_TOL = 0.01  # as in the paper
EPSILON = 0.1
CS = [2.0**k for k in range(-5, 6)]
N_FOLDS = 5
PAIRWISE = "SVC, one against one"
# What the key of a line says about how C was chosen.
PROTOCOL = {"preset": "paper", "test": 0.2, "log2_C": [-5, 5], "folds": N_FOLDS, "scoring": "mae"}

MODELS: dict[str, Callable[[], Any]] = {
    "SVC": lambda: SVC(tol=TOL),
    "SVR": lambda: SVR(tol=SVR_TOL, epsilon=EPSILON),
    "RedSVM": lambda: RedSVM(tol=TOL),
    "NPSVOR": lambda: NPSVOR(tol=TOL, epsilon=EPSILON),
    "NPSVOR, r_old": lambda: NPSVOR(tol=TOL, epsilon=EPSILON, ranker="nearest"),
    "SVOR": lambda: SVOR(tol=TOL),
    "SVMOP": lambda: SVMOP(tol=TOL),
    PAIRWISE: lambda: PairwiseSVC(tol=TOL),
}


def make(method: str, n_ranks: int, seed: int) -> Any:
    return MODELS[method]().set_params(ranks=range(n_ranks), random_state=seed)


def judged(data: Data, answers: NDArray[Any]) -> dict[str, Any]:
    """The measures that a line keeps, and the confusion matrix, of which each is a function."""
    answers = np.asarray(answers)
    found = measures(answers, data.y_test) | {"macro_mae": macro_mae(answers, data.y_test)}
    kept = {name: round(found[name], 5) for name in ("mae", "mse", "accuracy", "macro_mae")}
    return kept | {"confusion": confusion(answers, data.y_test, data.n_ranks).tolist()}


def tuned(data: Data, method: str, seed: int, **search: Any) -> tuple[Any, float]:
    """The paper's search by five folds, whole groups each if there are any, and the processor seconds that it took."""
    found = CSearchCV(make(method, data.n_ranks, seed), Cs=CS, cv=N_FOLDS, patience=None, scoring="mae", n_jobs=1)
    found.set_params(**search)
    seconds, _ = processor_timed(lambda: found.fit(data.X, data.y, groups=data.groups))
    return found, seconds


def shape(data: Data) -> dict[str, int]:
    return {
        "train_rows": data.X.shape[0],
        "test_rows": data.X_test.shape[0],
        "columns": data.X.shape[1],
        "entries": int(data.X.nnz),
    }
