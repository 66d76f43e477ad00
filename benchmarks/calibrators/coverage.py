"""What rank sets promise and what they hold on test rows: ``python -m benchmarks.calibrators.coverage``.

C is chosen by the ranked probability score. Copies of a review stay in one fold, as anyone who has such data should ask for:
held-out rows with copies in the training rows conform better than new rows will.
"""

from typing import Any

import numpy as np

from benchmarks.accuracy.run import SETS
from benchmarks.common import Log, each_set, options_parser
from lab import data as data_sets
from lab.data import Data
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
    options = options_parser("benchmarks.calibrators.coverage", __doc__, SETS).parse_args(arguments)
    log = Log("coverage", not options.no_save)
    for data in each_set(options, data_sets):
        for line in measure(data):
            found = line["measures"]
            held, size = f"{found['held']:.4f}", f"{found['size']:.2f}"
            print(f"{data.name}: asked {line['coverage']:g}, held {held}, {size} ranks per set", flush=True)
            log.write(**line)


if __name__ == "__main__":
    main()
