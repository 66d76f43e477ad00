"""A fit with a time limit, in a process of its own that can be killed."""

import multiprocessing
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.kernel.outcome import Outcome
from benchmarks.kernel.sets import KernelData

Fit = Callable[[Any, Any], tuple[float, Any]]


def fit_within(limit: float, problem: str, fit: Fit, data: KernelData) -> Outcome:
    """Seconds of the fit and its predictions, or a note that it was given up. Making rows dense is not timed."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        sender.send(fit(*dense_rows(data)))

    process = context.Process(target=work, daemon=True)
    process.start()
    has_ended = receiver.poll(limit)
    if not has_ended:
        process.kill()
    process.join()
    if not has_ended:
        return Outcome(limit, problem, note=f"given up after {limit:g} s")
    seconds, predictions = receiver.recv()
    return Outcome(seconds, problem, np.asarray(predictions))


def dense_rows(data: KernelData) -> tuple[Any, Any]:
    """Training and test rows for programs that take dense rows only.

    Sparse rows of a hundred thousand columns are turned into as many columns as there are training rows, plus one: coordinates
    with the same distances, by Cholesky's factor of the inner products. The last is what a test row has beyond training rows.
    """
    if not sp.issparse(data.X):
        return data.X, data.X_test
    products = (data.X @ data.X.T).toarray()
    products[np.diag_indices_from(products)] += 1e-9  # for rows that occur twice
    factor = np.linalg.cholesky(products)
    test = np.linalg.solve(factor, (data.X @ data.X_test.T).toarray()).T
    beyond = data.X_test.multiply(data.X_test).sum(axis=1).A1 - np.square(test).sum(axis=1)
    rows = np.column_stack([factor, np.zeros(len(factor))])
    return rows, np.column_stack([test, np.sqrt(np.maximum(beyond, 0))])
