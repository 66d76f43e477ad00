"""Calibrators from ten ranks to two hundred: ``python -m benchmarks.calibrators.many_ranks``.

A column of a table, cut into quantiles, is predicted from the others by NPSVOR with C = 1. Held-out scores train the calibrators,
test rows judge them. ``plain`` has a weight per plane and rank, which is given up where it would take minutes; ``cumulative`` has
a logistic curve per boundary.
"""

import argparse
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.calibrators.cumulative import Cumulative
from benchmarks.common import Log
from lab.competitors.rankplane import PAPER_TOL
from lab.data import data_folder
from lab.display import progress
from lab.timing import processor_timed
from rankplane import NPSVOR
from rankplane.base import Trainer
from rankplane.metrics import ranked_probability_score
from rankplane.prediction import calibration
from rankplane.prediction.calibration import Curved
from rankplane.solver.folds import make_folds

# Tables, the column to predict, and columns that would give it away.
COLUMNS = {
    "californiahousing": ("V8", []),
    "abalone_ord": ("V7", ["V8", "V9", "V10"]),
    "winequality-white": ("alcohol", ["density"]),
}
RANKS = (10, 20, 30, 50, 100, 200)
MOST_PLAIN = 30
MOST_ROWS = 6000
Array = NDArray[Any]


def read_columns(path: Any, target: str, given_away: list[str]) -> tuple[Array, Array]:
    """Standardised columns and the values to predict, in random order."""
    names = path.read_text().partition("\n")[0].replace('"', "").split(",")
    cells = np.char.strip(np.genfromtxt(path, delimiter=",", skip_header=1, dtype=str), '"').astype(float)
    rng = np.random.default_rng(0)
    cells = cells[rng.permutation(len(cells))[:MOST_ROWS]]
    features = cells[:, [place for place, name in enumerate(names) if name not in (target, *given_away)]]
    values = cells[:, names.index(target)]
    # With a little noise, so that frequent values can be split between ranks.
    return (features - features.mean(axis=0)) / features.std(axis=0), values + 1e-4 * values.std() * rng.standard_normal(
        len(values)
    )


def scores(X: Array, y: Array, X_test: Array, n_ranks: int) -> tuple[Array, Array]:
    """Scores of training rows by planes of other folds, and of test rows by planes of all training rows."""
    model = NPSVOR(tol=PAPER_TOL, ranks=range(n_ranks))
    trainer = Trainer(model, X, y, None)
    table, rows = trainer.table(), trainer.rows
    folds = make_folds(5, X, rows.labels.numbers, None, 0)
    lanes = rows.folds(table, folds, rows.options, scales_C=True)
    lanes.run(table)
    held_out = np.empty((len(y), n_ranks))
    for test, found in zip(folds.test, lanes.held_out(), strict=True):
        held_out[test] = found
    return held_out, np.asarray(model.fit(X, y).plane_scores(X_test))


def answer(name: str, held_out: Array, ranks: Array, test: Array, n_ranks: int) -> Array:
    if name == "cumulative":
        fitted = Cumulative.fit(held_out[:, :-1] + held_out[:, 1:], ranks, n_ranks)
        return np.asarray(fitted.probabilities(test[:, :-1] + test[:, 1:]))
    with mock.patch.object(calibration, "MANY", n_ranks if name == "plain" else calibration.MANY):
        return np.asarray(Curved.fit(held_out, ranks, n_ranks).probabilities(test))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.calibrators.many_ranks", description=__doc__)
    parser.add_argument("--data", help="folder with tabular/*.csv")
    parser.add_argument("--no-save", action="store_true", help="do not append result lines")
    options = parser.parse_args(arguments)
    folder = data_folder(options.data)
    if folder is None:
        raise SystemExit("There is no data folder: name it by --data.")
    log = Log("many_ranks", not options.no_save)
    for name, (target, given_away) in COLUMNS.items():
        X, values = read_columns(folder / "tabular" / f"{name}.csv", target, given_away)
        n_train = int(0.7 * len(X))
        with progress(name, len(RANKS)) as advance:
            for n_ranks in RANKS:
                advance(f"{n_ranks} ranks")
                cuts = np.quantile(values, np.arange(1, n_ranks) / n_ranks)
                ranks = np.digitize(values, cuts).astype(np.int32)
                held_out, test = scores(X[:n_train], ranks[:n_train], X[n_train:], n_ranks)
                truth = ranks[n_train:]
                for calibrator in ("curved", "plain", "cumulative"):
                    if calibrator == "plain" and n_ranks > MOST_PLAIN:
                        continue
                    seconds, found = processor_timed(lambda: answer(calibrator, held_out, ranks[:n_train], test, n_ranks))  # noqa: B023
                    likely = np.maximum(found[np.arange(len(truth)), truth], 1e-12)
                    medians = np.argmax(np.cumsum(found, axis=1) >= 0.5, axis=1)
                    measures = {
                        "log_loss": float(-np.log(likely).mean()),
                        "rps": float(ranked_probability_score(truth, found, ranks=range(n_ranks))),
                        "mae": float(np.abs(medians - truth).mean()),
                    }
                    cells = ", ".join(f"{key} {value:.4f}" for key, value in measures.items())
                    print(f"{name}, {n_ranks} ranks, {calibrator}: {cells}, {seconds:.2f} s", flush=True)
                    log.write(
                        data={"name": name, "rows": n_train, "ranks": n_ranks},
                        calibrator=calibrator,
                        seconds=seconds,
                        measures=measures,
                    )


if __name__ == "__main__":
    main()
