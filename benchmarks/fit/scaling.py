"""How the time of a fit grows: ``python -m benchmarks.fit.scaling --sets largemovie mobilephone``.

With rows, columns, planes and threads on synthetic data, with rows on samples of each named set, and two threads
against one on both feature sets of each. One value of a series after another, then all over again: a busy minute
then bends no curve.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import Log, each_set, options_parser
from benchmarks.fit import rankplane
from lab import data as data_sets
from lab import text
from lab.data import Data, make_synthetic
from lab.display import console
from lab.results import Line, n_cores
from lab.timing import take_turns

# Rows, columns, ranks, entries per row: the point at which the series meet, and a small one for a quick look.
FULL = (40_000, 200_000, 8, 80)
QUICK = (5_000, 20_000, 8, 40)
ROW_FACTORS = (0.25, 0.5, 1, 2, 4)
COLUMN_FACTORS = (0.05, 0.25, 1, 2.5, 5)
# Each side of the SIMD widths, and more than one block of 32 lanes.
RANKS = (2, 4, 5, 8, 9, 16, 17, 32, 33, 64)
SAMPLES = (0.125, 0.25, 0.5, 1.0)
TIGHT_TOL = 0.01


def thread_counts() -> list[int]:
    """1, 2, 4, ... and all cores; two even on one core, to show what that costs."""
    counts = {1, 2, n_cores()}
    while max(counts) * 2 <= n_cores():
        counts.add(max(counts) * 2)
    return sorted(counts)


def synthetic(shape: Iterable[float]) -> Data:
    return make_synthetic("x".join(str(round(number)) for number in shape))


def series(kind: str, points: dict[float, tuple[Data, dict[str, Any]]], n_rounds: int, title: str) -> Line:
    """Times of NPSVOR fits, one per point: a number on the axis, the data and the options of the fit."""
    sweeps: dict[str, list[int]] = {}

    def run(key: str, data: Data, options: dict[str, Any]) -> float:
        outcome = rankplane.run(data, "npsvor", **options)
        sweeps[key] = outcome.sweeps or []
        return outcome.seconds

    turns = {f"{x:g}": partial(run, f"{x:g}", data, options) for x, (data, options) in points.items()}
    for data, options in points.values():
        rankplane.run(data.head(300), "npsvor", **options)
    seconds = take_turns(turns, n_rounds, float("inf"), title)
    return {
        "kind": kind,
        "x": list(points),
        "seconds": [[round(s, 5) for s in found] for found in seconds.values()],
        "best": [min(found) for found in seconds.values()],
        "entries": [int(data.X.nnz) for data, _ in points.values()],
        "sweeps": [max(sweeps[key]) for key in turns],
        "data": next(reversed(points.values()))[0].describe(),
    }


def synthetic_series(base: tuple[int, ...], n_rounds: int) -> Iterable[Line]:
    rows, columns, ranks, entries = base
    one = {"n_jobs": 1}
    with console.status("making synthetic data"):
        by_rows = {rows * f: (synthetic((rows * f, columns, ranks, entries)), one) for f in ROW_FACTORS}
    yield series("rows", by_rows, n_rounds, "rows")
    with console.status("making synthetic data"):
        by_columns = {columns * f: (synthetic((rows, columns * f, ranks, entries)), one) for f in COLUMN_FACTORS}
    yield series("columns", by_columns, n_rounds, "columns")
    with console.status("making synthetic data"):
        by_ranks = {p: (synthetic((rows, columns, p, entries)), one) for p in RANKS}
    yield series("planes", by_ranks, n_rounds, "planes")
    data = by_rows[rows][0]
    yield series("threads", {n: (data, {"n_jobs": n}) for n in thread_counts()}, n_rounds, "threads")


def series_of_set(data: Data, n_rounds: int) -> Iterable[Line]:
    name = data.name
    if not name.endswith(":keep"):
        samples = {round(data.X.shape[0] * share): data.head(round(data.X.shape[0] * share)) for share in SAMPLES}
        points = {n_rows: (sample, {"n_jobs": 1}) for n_rows, sample in samples.items()}
        yield series("rows of a set", points, n_rounds, f"{name}, rows")
    # More rounds than elsewhere: this ratio is a claim, and two threads suffer most from a busy machine.
    for kind, tol in (("threads on features", 0.1), ("threads on features, tight", TIGHT_TOL)):
        points = {n: (data, {"n_jobs": n, "tol": tol}) for n in (1, 2)}
        yield series(kind, points, 2 * n_rounds, f"{name}, threads, tol={tol:g}")


def show(line: Line) -> None:
    table = Table(line["kind"], "best s", "sweeps", "ns per entry and sweep", title=f"{line['kind']}: {line['data']['name']}")
    for x, best, sweeps, entries in zip(line["x"], line["best"], line["sweeps"], line["entries"], strict=True):
        table.add_row(f"{x:,.0f}", f"{best:.3f}", str(sweeps), f"{best / sweeps / entries * 1e9:.2f}")
    Console().print(table)


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.fit.scaling", __doc__, [])
    parser.add_argument("--rounds", type=int, default=5, help="best of so many")
    parser.add_argument("--quick", action="store_true", help="small synthetic data")
    parser.add_argument("--no-synthetic", action="store_true", help="only the sets")
    options = parser.parse_args(arguments)
    log = Log("scaling", not options.no_save)

    def keep(lines: Iterable[Line]) -> None:
        for line in lines:
            show(line)
            log.write(**line)

    if not options.no_synthetic:
        keep(synthetic_series(QUICK if options.quick else FULL, options.rounds))
    options.sets = [f"{base}:{features}" for base in options.sets for features in text.FEATURES]
    for data in each_set(options, data_sets):
        keep(series_of_set(data, options.rounds))


if __name__ == "__main__":
    main()
