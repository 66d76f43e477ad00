"""What rank sets promise and what they hold on test rows: ``python -m benchmarks.calibrators.coverage``.

C is chosen by the ranked probability score. Copies of a review stay in one fold, as anyone who has such data should ask for:
held-out rows with copies in the training rows conform better than new rows will.
"""

import argparse
from typing import Any

import numpy as np

from benchmarks import data as data_sets
from benchmarks.accuracy.run import SETS
from benchmarks.common import Log, console, data_folder
from benchmarks.data import Data
from rankplane import NPSVOR, CSearchCV

COVERAGES = (0.8, 0.9, 0.95)
CS = [0.125, 0.25, 0.5, 1.0, 2.0]


def measure(data: Data) -> list[dict[str, Any]]:
    """How often sets hold the true rank of a test row, and how many ranks they hold."""
    model = NPSVOR(probability=True, ranks=range(data.n_ranks))
    search = CSearchCV(model, Cs=CS, scoring="rps", n_jobs=1).fit(data.X, data.y, groups=data.groups)
    lines = []
    for coverage in COVERAGES:
        sets = search.predict_set(data.X_test, coverage)
        held = float(np.mean(sets[np.arange(len(sets)), data.y_test]))
        found = {"held": held, "size": float(sets.sum(axis=1).mean())}
        lines.append({"data": data.describe(), "C": search.best_C_, "coverage": coverage, "measures": found})
    return lines


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.calibrators.coverage", description=__doc__)
    parser.add_argument("--data", help="folder of parquet files (default: ../shared/data if it is there)")
    parser.add_argument("--sets", nargs="+", default=SETS, help="data sets by name")
    parser.add_argument("--no-save", action="store_true", help="do not append to the results")
    options = parser.parse_args(arguments)
    folder = data_folder(options.data)
    log = Log("coverage")
    for name in options.sets:
        if reason := data_sets.why_not(name, folder):
            console.print(reason)
            continue
        for line in measure(data_sets.load(name, folder)):
            found = line["measures"]
            print(f"{name}: asked {line['coverage']:g}, held {found['held']:.4f}, {found['size']:.2f} ranks per set", flush=True)
            if not options.no_save:
                log.write(**line)


if __name__ == "__main__":
    main()
