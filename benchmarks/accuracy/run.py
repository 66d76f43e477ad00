"""Everyone predicts the same test rows: ``python -m benchmarks.accuracy.run``.

All text sets of the data folder with the features "default", every competitor on the same matrix (fastText reads the
tokens themselves), settings chosen without the test rows. Times include the choice of settings.
"""

import sys
from collections.abc import Callable
from types import ModuleType

from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from benchmarks.accuracy.verdicts import judged, losses
from benchmarks.common import Log, competitors, each_set, options_parser, read_lines
from lab import data as data_sets
from lab.competitors import fasttext, liblinear, logistic, mord, rankplane
from lab.data import Data, data_folder
from lab.display import progress
from lab.measures import MEASURES
from lab.predictions import Predictions
from lab.results import Line

MODULES: tuple[ModuleType, ...] = (rankplane, liblinear, logistic, fasttext, mord)
SETS = [
    "treebank:default",
    "moviereview:default",
    "clothing:default",
    "video:default",
    "tablets:default",
    "largemovie:default",
    "douban:default",
    "mobilephone:default",
    "tripadvisor:default",
    "tripadvisor_250k:default",
]


def measure(data: Data, runs: dict[str, Callable[[Data], Predictions]]) -> list[Line]:
    lines = []
    with progress(data.name, len(runs)) as advance:
        for name, run in runs.items():
            advance(name)
            found = run(data)
            lines.append(
                {
                    "data": data.describe() | {"split_by_review": data.groups is not None},
                    "competitor": name,
                    "measures": found.measures(data),
                    "seconds": round(found.seconds, 3),
                    "note": found.note,
                }
            )
    return lines


def show(lines: list[Line]) -> None:
    about = lines[0]["data"]
    table = Table("competitor", title=f"{about['name']}: {about['rows']:,} rows, {about['test_rows']:,} test rows")
    for column in (*MEASURES, "seconds"):
        table.add_column(column, justify="right")
    for name in rankplane.VARIANTS:
        table.add_column(f"beats {name} in")
    table.add_column("note")
    for line in lines:
        found, verdict = line["measures"], line["ours_is_at_least_as_good"]
        cells = ["-" if found is None else f"{found[m]:.4f}" for m in MEASURES]
        lost = [", ".join(losses(verdict, name)) for name in rankplane.VARIANTS]
        table.add_row(line["competitor"], *cells, f"{line['seconds']:.1f}", *lost, line["note"])
    (Console() if sys.stdout.isatty() else Console(width=180)).print(table)


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.accuracy.run", __doc__, SETS)
    parser.add_argument("--mord-limit", type=float, default=150.0, help="seconds before mord is given up")
    parser.add_argument("--only", default="", help="competitors whose name holds this; the others' last lines stay")
    options = parser.parse_args(arguments)
    folder = data_folder(options.data)
    runs = competitors(MODULES, options.only, {mord: options.mord_limit})
    log = Log("accuracy", not options.no_save)
    for data in each_set(options, data_sets):
        if folder is not None:
            data.prepared["texts"] = data_sets.texts_of(data, folder)
        with threadpool_limits(1):  # threads that wait for work of BLAS would count as processor time
            lines = measure(data, runs)
        older = {line["competitor"]: line for line in read_lines("accuracy") if line["data"]["name"] == data.name}
        lines = judged(lines + [line for who, line in older.items() if who not in runs])
        show(lines)
        for line in lines[: len(runs)]:
            log.write(**line)


if __name__ == "__main__":
    main()
