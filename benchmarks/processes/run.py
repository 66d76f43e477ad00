"""Gaussian processes against support vectors with the same kernel, on tables: ``python -m benchmarks.processes.run``.

All see the same standardised columns of the same splits. GPOR finds its parameters by the evidence; the others choose C and gamma
by cross-validation on the training rows, and calibrate their probabilities on the rows that it holds out. Seconds are of processor
time, with the choice of parameters.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.common import Log, options_parser
from benchmarks.tables.sets import TABLES, read_table, split
from lab.data import data_folder
from lab.measures import Array
from lab.timing import processor_timed
from rankplane import GPOR, NPSVOR, SVOR, CSearchCV
from rankplane.solver.kernels import gamma_of

N_SPLITS, MOST_ROWS = 5, 1000
GAMMA_FACTORS = (1 / 16, 1 / 4, 1.0)  # as the command line tries them
LEAST_PROBABILITY = 1e-6  # an answer of zero is not infinitely bad


def searched(model: Any) -> Callable[[Array, Array], Any]:
    def fit(X: Array, ranks: Array) -> Any:
        gammas = [gamma_of("scale", X) * factor for factor in GAMMA_FACTORS]
        return CSearchCV(model, gammas=gammas).fit(X, ranks)

    return fit


def process(**options: Any) -> Callable[[Array, Array], Any]:
    return lambda X, ranks: GPOR(**options).fit(X, ranks)


METHODS: dict[str, Callable[[Array, Array], Any]] = {
    "GPOR": process(),
    "GPOR, one length scale": process(ard=False),
    "GPOR, 100 points": process(n_inducing=100),
    "NPSVOR, rbf": searched(NPSVOR(kernel="rbf", probability=True, decision="mae")),
    "SVOR, rbf": searched(SVOR(kernel="rbf", probability=True, decision="mae")),
}


def measured(model: Any, X: Array, true: Array) -> dict[str, float]:
    """The absolute error of the median, the share of wrong modes, and the log loss."""
    probabilities, present = np.asarray(model.predict_proba(X)), model.classes_
    median = present[np.minimum(np.sum(np.cumsum(probabilities, axis=1) < 0.5, axis=1), len(present) - 1)]
    of_truth = np.where(present == true[:, None], probabilities, 0.0).sum(axis=1)  # ranks that no training row has are impossible
    return {
        "mae": float(np.abs(median - true).mean()),
        "error": float(np.mean(present[np.argmax(probabilities, axis=1)] != true)),
        "log_loss": float(-np.log(np.maximum(of_truth, LEAST_PROBABILITY)).mean()),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.processes.run", __doc__, list(TABLES))
    parser.add_argument("--splits", type=int, default=N_SPLITS, help=f"random splits (default: {N_SPLITS})")
    parser.add_argument("--most-rows", type=int, default=MOST_ROWS, help=f"training rows at most (default: {MOST_ROWS})")
    options = parser.parse_args(arguments)
    log, folder = Log("processes", not options.no_save), data_folder(options.data)
    if folder is None:
        print("There is no data folder: name one by --data.")
        return
    for name in options.sets:
        table = read_table(name, folder)
        for seed in range(options.splits):
            X, ranks, X_test, true = split(*table, seed, options.most_rows)
            scaler = StandardScaler().fit(X)
            X, X_test = scaler.transform(X), scaler.transform(X_test)
            shape = {"rows": len(ranks), "columns": X.shape[1], "ranks": int(table[1].max()) + 1, "test_rows": len(true)}
            for method, fit in METHODS.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of solves that stop early
                    seconds, model = processor_timed(partial(fit, X, ranks))
                found = measured(model, X_test, true)
                print(f"{name} {seed} {method}: {found} {seconds:.1f} s", flush=True)
                log.write(data={"name": name} | shape, split=seed, method=method, measures=found, seconds=seconds)


if __name__ == "__main__":
    main()
