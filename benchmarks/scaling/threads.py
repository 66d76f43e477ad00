"""How fits scale with threads: ``python -m benchmarks.scaling.threads``.

- A fit of NPSVOR, its search over C with probabilities, and the search of a Committee with column weights, in turns on 1, 2, 4, ...
  threads. A time counts only if the test MAE is, up to chance, that of one thread: with more threads, sums have another order.
- The same fit on one thread and on two while other processes keep one core, or all cores, busy.
- The same fit of csr rows whose columns are sorted and not.
- How many times faster arithmetic that touches no memory gets: processors that share a core's units are no whole processors.
"""

import argparse
import gc
import hashlib
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.common import Log, each_set, options_parser
from benchmarks.scaling.series import LOG, keep, series, thread_counts
from lab import data as data_sets
from lab.competitors.rankplane import PAPER_TOL
from lab.data import Data, make_synthetic
from lab.display import console
from lab.results import Line, n_cores
from lab.timing import timed
from rankplane import NPSVOR, Committee, CSearchCV

SYNTHETIC = "600000x1000000x8x80"
MOST_DIFFERENCE = 0.02  # of the test MAE: at the paper's tolerance, fits differ by as much
Task = Callable[[Data, int], Any]


def fit(data: Data, n_threads: int) -> Any:
    return NPSVOR(C=1.0, tol=PAPER_TOL, n_jobs=n_threads).fit(data.X, data.y)


def search(data: Data, n_threads: int) -> Any:
    return CSearchCV(NPSVOR(tol=PAPER_TOL, probability=True), n_jobs=n_threads).fit(data.X, data.y)


def committee(data: Data, n_threads: int) -> Any:
    model = Committee(tol=PAPER_TOL, column_weight="ranks", probability=True)
    return CSearchCV(model, n_jobs=n_threads).fit(data.X, data.y)


TASKS: dict[str, Task] = {"fit": fit, "search": search, "committee": committee}


class Runs:
    """Runs of one task on one data set, whose answers must agree."""

    def __init__(self, task: str, data: Data) -> None:
        self.task, self.data = task, data
        self.errors: dict[Any, float] = {}

    def run(self, x: Any, n_threads: int, data: Data | None = None) -> float:
        gc.collect()
        seconds, model = timed(partial(TASKS[self.task], data or self.data, n_threads))
        found = float(np.mean(np.abs(model.predict(self.data.X_test) - self.data.y_test)))
        expected = next(iter(self.errors.values()), found)
        if abs(found - expected) > MOST_DIFFERENCE:
            raise SystemExit(f"{self.task}, {x}: test MAE {found:.3f}, not {expected:.3f} as before; its time means nothing.")
        self.errors[x] = found
        return seconds

    def line(self, kind: str, points: dict[Any, Callable[[], float]], n_rounds: int, limit: float = float("inf")) -> Line:
        found = series(kind, self.task, self.data.describe(), points, n_rounds, limit)
        return found | {"mae": [self.errors[x] for x in points]}


def by_threads(task: str, data: Data, threads: list[int], n_rounds: int, limit: float) -> Line:
    runs = Runs(task, data)
    return runs.line("threads", {n: partial(runs.run, n, n) for n in threads}, n_rounds, limit)


@contextmanager
def busy(n_processes: int) -> Iterator[None]:
    """So many other processes that do nothing but count."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n_processes)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def on_busy_cores(data: Data, n_rounds: int) -> Iterator[Line]:
    for kind, n_others in {"threads, one core busy": 1, "threads, all cores busy": n_cores()}.items():
        runs = Runs("fit", data)
        with busy(n_others):
            yield runs.line(kind, {n: partial(runs.run, n, n) for n in (1, 2)}, n_rounds)


def unsorted(X: sp.csr_matrix) -> sp.csr_matrix:
    """The same rows, each with its columns in random order."""
    place = np.lexsort((np.random.default_rng(0).random(X.nnz), np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))))
    return sp.csr_matrix((X.data[place], X.indices[place], X.indptr), shape=X.shape)


def by_order(data: Data, n_rounds: int) -> Line:
    """Every round anew: scipy remembers of a matrix what it has once found out."""
    mixed = unsorted(data.X)
    runs = Runs("fit", data)

    def run(name: str, X: sp.csr_matrix) -> float:
        fresh = Data(data.name, sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape), data.y, data.X_test, data.y_test)
        return runs.run(name, 2, fresh)

    return runs.line(
        "columns of a row", {"sorted": partial(run, "sorted", data.X), "unsorted": partial(run, "unsorted", mixed)}, n_rounds
    )


def spin(n_threads: int) -> float:
    """Seconds in which so many threads share the same arithmetic in registers and the first-level cache: hashing zeros."""
    block = bytes(1 << 14)

    def turn() -> None:
        digest = hashlib.sha256()
        for _ in range(40_000 // n_threads):
            digest.update(block)

    threads = [threading.Thread(target=turn) for _ in range(n_threads)]

    def run() -> None:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return timed(run)[0]


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.scaling.threads", __doc__, ["largemovie", "largemovie:default"])
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--threads", nargs="+", type=int, default=thread_counts())
    parser.add_argument("--rounds", type=int, default=7, help="best of so many")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--limit", type=float, default=30.0, help="seconds after which no further round begins")
    parser.add_argument("--synthetic", default=SYNTHETIC, help="a made-up set to fit too; empty to leave it out")
    options = parser.parse_args(arguments)
    log = Log(LOG, not options.no_save)
    arithmetic = {"name": "zeros in the cache"}
    keep(log, series("threads", "hashing", arithmetic, {n: partial(spin, n) for n in options.threads}, options.rounds))
    for data in each_set(options, data_sets):
        for task in options.tasks:
            keep(log, by_threads(task, data, options.threads, options.rounds, options.limit))
        for line in on_busy_cores(data, options.rounds):
            keep(log, line)
        keep(log, by_order(data, options.rounds))
    if options.synthetic:
        with console.status("making rows"):
            data = make_synthetic(options.synthetic)
        keep(log, by_threads("fit", data, options.threads, options.rounds, options.limit))


if __name__ == "__main__":
    main()
