"""Peak memory of a fit, a calibrated fit and a search beyond X, each in a fresh process: ``python -m benchmarks.fit.memory --sets
largemovie synthetic``.

The process loads X, imports everything and fits a tiny problem first, gives free memory back to the system and resets its own peak.
What the peak then gains is compared with what a plain fit cannot do without: the weights W and the dual variables alpha, both with
lanes padded to the SIMD width, and one copy of the column indices in which the columns are renumbered.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import Log, each_set, options_parser
from benchmarks.fit import rankplane
from lab import ROOT
from lab import data as data_sets
from lab.data import Data
from lab.display import progress
from lab.memory import peak_bytes, reset_peak
from rankplane import CSearchCV

LANE_WIDTHS = (1, 2, 4, 8, 16, 32)
MEBIBYTE = 2**20
# A tight tolerance as well: there the solver moves its lanes when some planes have ended.
SETTINGS = (("fit", 1, 0.1), ("fit", 2, 0.1), ("fit", 1, 0.001), ("probabilities", 2, 0.1), ("search", 2, 0.1))


def necessary_bytes(data: Data) -> dict[str, int]:
    width = next(width for width in LANE_WIDTHS if width >= data.n_ranks)
    n_rows, n_columns = data.X.shape
    size = data.X.dtype.itemsize
    return {"weights": n_columns * width * size, "duals": n_rows * width * size, "indices": data.X.nnz * 4}


def measure_here(kept: Path, task: str, n_jobs: int, tol: float) -> dict[str, Any]:
    data = data_sets.read(kept)
    run(data.head(500), task, n_jobs, tol)
    # Flags that scipy computes once and keeps with the matrix.
    assert data.X.has_canonical_format
    reset_peak()
    before = peak_bytes()
    run(data, task, n_jobs, tol)
    peak = peak_bytes() - before
    needed = necessary_bytes(data)
    return {
        "data": data.describe(),
        "task": task,
        "threads": n_jobs,
        "tol": tol,
        "peak": peak,
        **needed,
        "ratio": peak / sum(needed.values()),
        "X": data.X.data.nbytes + data.X.indices.nbytes + data.X.indptr.nbytes,
    }


def run(data: Data, task: str, n_jobs: int, tol: float) -> None:
    model = rankplane.MODELS["npsvor"](n_jobs=n_jobs, tol=tol, ranks=range(data.n_ranks), probability=task != "fit")
    (CSearchCV(model, n_jobs=n_jobs) if task == "search" else model).fit(data.X, data.y)


def measure_apart(kept: Path, task: str, n_jobs: int, tol: float) -> dict[str, Any]:
    """In a process that only reads the matrices: one that had made them would have freed memory to fit into."""
    command = [sys.executable, "-m", "benchmarks.fit.memory", "--here", str(kept), task, str(n_jobs), str(tol)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.fit.memory", __doc__, ["synthetic"])
    parser.add_argument("--here", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.here:
        kept, task, n_jobs, tol = options.here
        print(json.dumps(measure_here(Path(kept), task, int(n_jobs), float(tol))))
        return
    log = Log("memory", not options.no_save)
    table = Table("data", "task", "threads", "tol", "X", "W", "alpha", "indices", "peak beyond X", "ratio", title="NPSVOR, MiB")
    for kept in each_set(options, data_sets, data_sets.stored):
        with progress(kept.name, len(SETTINGS)) as advance:
            for task, n_jobs, tol in SETTINGS:
                advance(f"memory of {task}, {n_jobs} threads, tol={tol}")
                line = measure_apart(kept, task, n_jobs, tol)
                sizes = [f"{line[key] / MEBIBYTE:.1f}" for key in ("X", "weights", "duals", "indices", "peak")]
                table.add_row(line["data"]["name"], task, str(n_jobs), str(tol), *sizes, f"{line['ratio']:.2f}")
                log.write(**line)
    (Console() if sys.stdout.isatty() else Console(width=120)).print(table)


if __name__ == "__main__":
    main()
