"""LIBLINEAR (``liblinear-official``), to its own default tolerance of 0.1. Building its problem structure is not
timed.
"""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import answers
from benchmarks.common import timed
from benchmarks.data import Data
from benchmarks.fit.outcome import Outcome, from_weights

VARIANTS: dict[str, dict[str, Any]] = {
    "LIBLINEAR -s 3": {"model": "svc"},
    "LIBLINEAR -s 13": {"model": "svr"},
}
OPTIONS = {
    "svc": f"-s 3 -c {answers.C} -B 1 -q",
    "svr": f"-s 13 -c {answers.C} -B 1 -p {answers.EPSILON} -q",
}


def missing() -> str | None:
    try:
        import liblinear.liblinearutil  # noqa: F401
    except ImportError:
        return "liblinear-official is not installed"
    return None


def run(data: Data, model: str) -> Outcome:
    from liblinear.liblinear import problem
    from liblinear.liblinearutil import train

    if "liblinear" not in data.prepared:
        data.prepared["liblinear"] = problem((data.y + 1).astype(np.float64), data.X.astype(np.float64))
    # LIBLINEAR orders its rows by the C library's rand(): without a seed every run gives another answer.
    ctypes.CDLL(None).srand(1)
    seconds, found = timed(lambda: train(data.prepared["liblinear"], OPTIONS[model]))
    return from_weights(seconds, model, data, weights_of(found, data, model))


def weights_of(found: Any, data: Data, model: str) -> NDArray[np.float64]:
    n_columns = found.nr_feature
    if model == "svr":
        return np.ctypeslib.as_array(found.w, (n_columns + 1, 1)).copy()
    labels = np.array(found.get_labels()) - 1
    # With two classes LIBLINEAR keeps one plane; the other is its mirror image.
    n_kept = 1 if len(labels) == 2 else len(labels)
    kept = np.ctypeslib.as_array(found.w, (n_columns + 1, n_kept))
    weights = np.zeros((n_columns + 1, data.n_ranks))
    weights[:, labels] = kept if n_kept > 1 else np.hstack([kept, -kept])
    return weights
