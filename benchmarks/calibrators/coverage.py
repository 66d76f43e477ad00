"""What rank sets promise and what they hold on test rows: ``python -m benchmarks.calibrators.coverage``.

C is chosen by the ranked probability score. Copies of a review stay in one fold, as anyone who has such data should ask for:
held-out rows with copies in the training rows conform better than new rows will.
"""

import argparse
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.run import SETS
from benchmarks.common import Log, each_set, options_parser
from benchmarks.tables.sets import TABLES, read_table, split
from lab import data as data_sets
from lab.competitors.rankplane import PAPER_TOL
from lab.data import Data, data_folder
from rankplane import NPSVOR, CSearchCV

MOST_ROWS = 10_000
COVERAGES = (0.8, 0.9, 0.95)
CS = [0.125, 0.25, 0.5, 1.0, 2.0]
KINDS: dict[str, dict[str, Any]] = {
    "before": {"score": "before"},
    "after": {"score": "after"},
    "before, each rank": {"score": "before", "per_rank": True},
    "after, each rank": {"score": "after", "per_rank": True},
}


def load_table(name: str, folder: Path) -> Data:
    X, ranks, X_test, true = split(*read_table(name, folder), 0, MOST_ROWS)
    deviation = X.std(axis=0)
    scaled, scaled_test = ((part - X.mean(axis=0)) / deviation for part in (X, X_test))
    return Data(name, scaled, ranks.astype(np.int32), scaled_test, true.astype(np.int32))


def measure(data: Data) -> list[dict[str, Any]]:
    """How often sets hold the true rank of a test row, also by its rank, and how many ranks they hold."""
    model = NPSVOR(probability=True, tol=PAPER_TOL, ranks=range(data.n_ranks))
    search = CSearchCV(model, Cs=CS, scoring="rps", n_jobs=1).fit(data.X, data.y, groups=data.groups)
    lines = []
    for (kind, options), coverage in product(KINDS.items(), COVERAGES):
        sets = search.predict_set(data.X_test, coverage, **options)
        held = sets[np.arange(len(sets)), data.y_test]
        by_rank = [float(held[data.y_test == rank].mean()) for rank in np.unique(data.y_test)]
        found = {"held": float(held.mean()), "size": float(sets.sum(axis=1).mean()), "by_rank": by_rank}
        lines.append({"data": data.describe(), "C": search.best_C_, "coverage": coverage, "kind": kind, "measures": found})
    return lines


def tables(options: argparse.Namespace) -> list[Data]:
    """Those asked for, which are then no longer asked for."""
    folder = data_folder(options.data)
    names = [name for name in options.sets if name in TABLES]
    options.sets = [name for name in options.sets if name not in TABLES]
    return [load_table(name, folder) for name in names] if folder else []


def main(arguments: list[str] | None = None) -> None:
    options = options_parser("benchmarks.calibrators.coverage", __doc__, [*TABLES, *SETS]).parse_args(arguments)
    log = Log("coverage", not options.no_save)
    for data in chain(tables(options), each_set(options, data_sets)):
        for line in measure(data):
            found = line["measures"]
            held, size = f"{found['held']:.4f}", f"{found['size']:.2f}"
            print(f"{data.name}, {line['kind']}: asked {line['coverage']:g}, held {held}, {size} ranks per set", flush=True)
            log.write(**line)


if __name__ == "__main__":
    main()
