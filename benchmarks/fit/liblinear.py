"""LIBLINEAR to its own default tolerance of 0.1. Building its problem structure is not timed."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import answers
from benchmarks.fit.outcome import Outcome, from_weights
from lab.competitors.liblinear import missing, planes_of, problem_of, train
from lab.data import Data
from lab.timing import timed

__all__ = ["VARIANTS", "missing", "run"]
VARIANTS: dict[str, dict[str, Any]] = {
    "LIBLINEAR -s 3": {"model": "svc"},
    "LIBLINEAR -s 13": {"model": "svr"},
}
OPTIONS = {
    "svc": f"-s 3 -c {answers.C}",
    "svr": f"-s 13 -c {answers.C} -p {answers.EPSILON}",
}


def run(data: Data, model: str) -> Outcome:
    problem = problem_of(data)
    seconds, found = timed(lambda: train(problem, OPTIONS[model]))
    return from_weights(seconds, model, data, weights_of(found, data.n_ranks))


def weights_of(found: Any, n_ranks: int) -> NDArray[np.float64]:
    """By (column, rank): a rank without training rows has none."""
    weights, ranks = planes_of(found)
    if not len(ranks):
        return weights
    of_ranks = np.zeros((len(weights), n_ranks))
    of_ranks[:, ranks] = weights
    return of_ranks
