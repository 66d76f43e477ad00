"""How a fit grows with its data: ``python -m benchmarks.scaling.sizes``.

Time against rows, columns and planes of made-up data; then rows alone, from ten thousand to a million at the same width, with the
peak memory beyond X, each in a process of its own.
"""

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

from benchmarks.common import Log, options_parser
from benchmarks.fit import rankplane
from benchmarks.fit.memory import necessary_bytes
from benchmarks.scaling.series import LOG, keep, series
from lab import ROOT
from lab.data import Data, make_synthetic
from lab.display import console
from lab.memory import peak_bytes, reset_peak
from lab.results import Line, n_cores
from lab.timing import timed

# Rows, columns, ranks, entries per row: the point at which the series meet, and a small one for a quick look.
FULL = (40_000, 200_000, 8, 80)
QUICK = (5_000, 20_000, 8, 40)
COLUMN_FACTORS = (0.05, 0.25, 1, 2.5, 5)
# Each side of the SIMD widths, and more than one block of 32 lanes.
RANKS = (2, 4, 5, 8, 9, 16, 17, 32, 33, 64)
ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000)
ROWS_SHAPE = (1_000_000, 8, 80)


def synthetic(*shape: float) -> Data:
    return make_synthetic("x".join(str(round(number)) for number in shape))


def by_size(kind: str, sets: dict[float, Data], n_rounds: int) -> Line:
    """NPSVOR on one thread, a data set per point."""
    sweeps: dict[float, list[int]] = {}

    def run(x: float, data: Data) -> float:
        outcome = rankplane.run(data, "npsvor", n_jobs=1)
        sweeps[x] = outcome.sweeps or []
        return outcome.seconds

    for data in sets.values():
        rankplane.run(data.head(300), "npsvor", n_jobs=1)
    first = next(iter(sets.values()))
    found = series(kind, "fit", first.describe(), {x: partial(run, x, data) for x, data in sets.items()}, n_rounds)
    entries = [int(data.X.nnz) for data in sets.values()]
    most = [max(sweeps[x]) for x in sets]
    per_entry = [best / n / count * 1e9 for best, n, count in zip(found["best"], most, entries, strict=True)]
    return found | {"entries": entries, "sweeps": most, "ns_per_entry_and_sweep": per_entry}


def made_series(base: tuple[int, ...], n_rounds: int) -> Iterable[Line]:
    rows, columns, ranks, entries = base
    with console.status("making synthetic data"):
        by_columns = {columns * f: synthetic(rows, columns * f, ranks, entries) for f in COLUMN_FACTORS}
    yield by_size("columns", by_columns, n_rounds)
    with console.status("making synthetic data"):
        by_ranks: dict[float, Data] = {p: synthetic(rows, columns, p, entries) for p in RANKS}
    yield by_size("planes", by_ranks, n_rounds)


def one_size(n_rows: int, n_threads: int) -> dict[str, Any]:
    """A fit of so many rows in this process: seconds, and the memory it takes beyond X."""
    data = synthetic(n_rows, *ROWS_SHAPE)
    rankplane.run(data.head(500), "npsvor", n_threads)
    assert data.X.has_canonical_format  # computed once by scipy, and kept with the matrix
    gc.collect()
    reset_peak()
    before = peak_bytes()
    seconds, _ = timed(lambda: rankplane.MODELS["npsvor"](tol=rankplane.PAPER_TOL, n_jobs=n_threads).fit(data.X, data.y))
    return {
        "data": data.describe(),
        "seconds": seconds,
        "peak": peak_bytes() - before,
        "needed": sum(necessary_bytes(data).values()),
    }


def by_rows(rows: list[int], n_threads: int, n_rounds: int) -> Line:
    found: dict[int, dict[str, Any]] = {}

    def run(n_rows: int) -> float:
        command = [sys.executable, "-m", "benchmarks.scaling.sizes", "--one", str(n_rows), str(n_threads)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
        found[n_rows] = json.loads(done.stdout)
        return float(found[n_rows]["seconds"])

    name = "x".join(map(str, ("rows", *ROWS_SHAPE)))
    line = series("rows", "fit", {"name": f"synthetic:{name}"}, {n: partial(run, n) for n in rows}, n_rounds, n_threads=n_threads)
    per_row = [best / n * 1e6 for best, n in zip(line["best"], rows, strict=True)]
    peaks, needed = ([found[n][key] for n in rows] for key in ("peak", "needed"))
    return line | {"us_per_row": per_row, "peak": peaks, "needed": needed}


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.scaling.sizes", __doc__, [])
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rounds", type=int, default=3, help="best of so many")
    parser.add_argument("--quick", action="store_true", help="small synthetic data")
    parser.add_argument(
        "--rows", nargs="*", type=int, default=list(ROWS), help="numbers of rows to measure; none to leave that out"
    )
    parser.add_argument("--one", nargs=2, type=int, metavar=("ROWS", "THREADS"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(one_size(*options.one)))
        return
    log = Log(LOG, not options.no_save)
    for line in made_series(QUICK if options.quick else FULL, options.rounds):
        keep(log, line)
    if options.rows:
        keep(log, by_rows(options.rows, n_cores(), options.rounds))


if __name__ == "__main__":
    main()
