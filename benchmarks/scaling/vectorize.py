"""How vectorizing scales: ``python -m benchmarks.scaling.vectorize``.

Threads: `fit_transform` and `transform` of a list of texts with default features on 1, 2, 4, 8 and 16 threads, in turns, best of
several. A time counts if the matrix equals that of one thread, entry by entry. Rows: seconds and peak memory of `fit_transform`
with all threads, each number of rows in a process of its own.

Rows are those of tripadvisor_250k. More rows than it has are its texts again with the words of each sentence in another order,
which is no real text, so these lines are about time and memory only. Without data, texts are made up.
"""

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.common import Log, options_parser
from benchmarks.goals import name_of
from benchmarks.scaling.series import LOG, keep, series, thread_counts
from lab import ROOT
from lab.data import data_folder
from lab.display import console
from lab.made_texts import make_texts, shuffled
from lab.memory import peak_bytes, reset_peak, status_bytes
from lab.results import Line, n_cores
from lab.timing import timed
from rankplane.text import TextVectorizer, parts, vectorizer

MADE = "made"
ROWS = (10_000, 30_000, 100_000, 250_000, 500_000, 1_000_000)
BATCH = 10_000
TASKS = ("fit_transform", "transform")

# Steps of the vectorizer that are calls of the core; the rest is Python.
STEPS = {
    "Corpus": {
        "add": "reading",
        "add_arrow_stream": "reading",
        "map_tokens": "merging words",
    },
    "Vocabulary": {
        "learn": "counting n-grams",
        "choose_columns": "choosing columns",
        "weights": "idf",
        "apply": "looking words up",
    },
}


def texts_of(name: str, folder: Path | None, n_rows: int | None) -> Iterator[list[str]]:
    """Batches of texts; those of a file from the start again, shuffled, when there are too few."""
    if name == MADE:
        yield from make_texts(n_rows or 50_000, batch=BATCH)
        return
    import pyarrow.parquet as pq

    assert folder is not None
    file = pq.ParquetFile(folder / f"{name}.parquet")
    n_left = file.metadata.num_rows if n_rows is None else n_rows
    rng = np.random.default_rng(0)
    is_again = False
    while n_left > 0:
        for batch in file.iter_batches(BATCH, columns=["text"]):
            texts = [text or "" for text in batch.column("text").to_pylist()][:n_left]
            if texts:
                yield [shuffled(text, rng) for text in texts] if is_again else texts
            n_left -= len(texts)
        is_again = True


def is_same(one: Any, other: Any) -> bool:
    return one.shape == other.shape and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("indptr", "indices", "data")
    )


@contextmanager
def measured_steps(seconds: dict[str, float]) -> Iterator[None]:
    """Add to ``seconds`` what each step of the core takes."""

    def measured(step: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            spent, result = timed(lambda: work(*arguments, **options))
            seconds[step] = seconds.get(step, 0.0) + spent
            return result

        return run

    classes = {
        name: type(name, (base := getattr(parts, name),), {m: measured(step, getattr(base, m)) for m, step in steps.items()})
        for name, steps in STEPS.items()
    }
    rows = measured("writing rows", vectorizer.tfidf_rows)
    with patch.multiple(parts, **classes), patch.object(vectorizer, "tfidf_rows", rows):
        yield


class ByThreads:
    """Times of one set of texts, by task and number of threads."""

    def __init__(self, name: str, texts: list[str]) -> None:
        self.name, self.texts = name, texts
        self.n_bytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        self.expected: dict[str, Any] = {}
        self.steps: dict[tuple[str, int], dict[str, float]] = {}
        self.best: dict[tuple[str, int], float] = {}
        # What a process does once is not timed.
        TextVectorizer(min_df=1).fit_transform(texts[:1])

    def run(self, task: str, n_threads: int) -> float:
        vectorizer = TextVectorizer(n_jobs=n_threads)
        steps: dict[str, float] = {}
        with measured_steps(steps):
            if task == "transform":
                vectorizer.fit(self.texts)
                vectorizer.transform(self.texts[:1])
                steps.clear()
            gc.collect()
            seconds, matrix = timed(partial(getattr(vectorizer, task), self.texts))
        if not is_same(self.expected.setdefault(task, matrix), matrix):
            raise SystemExit(f"{task} with {n_threads} threads: another matrix than with one thread; its time means nothing.")
        if seconds <= self.best.get((task, n_threads), seconds):
            self.best[task, n_threads] = seconds
            self.steps[task, n_threads] = steps | {"Python": seconds - sum(steps.values())}
        return seconds

    def line(self, task: str, threads: list[int], n_rounds: int) -> Line:
        data = {"name": self.name, "rows": len(self.texts), "bytes": self.n_bytes}
        found = series("threads", task, data, {n: partial(self.run, task, n) for n in threads}, n_rounds)
        steps = {step: [round(self.steps[task, n].get(step, 0.0), 5) for n in threads] for step in self.steps[task, threads[0]]}
        return found | {"steps": steps, "megabytes_per_second": [self.n_bytes / best / 1e6 for best in found["best"]]}


def one_size(name: str, folder: Path | None, n_rows: int, n_threads: int) -> dict[str, Any]:
    """Seconds and memory of one number of rows, in this process. The texts are an Arrow column, which holds them once."""
    import pyarrow as pa

    texts = pa.chunked_array([pa.array(batch, type=pa.large_string()) for batch in texts_of(name, folder, n_rows)])
    gc.collect()
    pa.default_memory_pool().release_unused()
    reset_peak()
    n_before = status_bytes("VmRSS") or 0
    seconds, matrix = timed(lambda: TextVectorizer(n_jobs=n_threads).fit_transform(texts))
    n_result = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    return {"seconds": seconds, "text_bytes": texts.nbytes, "result_bytes": n_result, "peak": peak_bytes(), "before": n_before}


def by_rows(name: str, options: argparse.Namespace) -> Line:
    found: dict[int, dict[str, Any]] = {}

    def run(n_rows: int) -> float:
        command = [sys.executable, "-m", "benchmarks.scaling.vectorize", "--one", name, str(n_rows), str(options.all_threads)]
        command += ["--data", str(Path(options.data).resolve())] if options.data else []
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
        found[n_rows] = json.loads(done.stdout)
        return float(found[n_rows]["seconds"])

    points = {n: partial(run, n) for n in options.rows}
    line = series("rows", "fit_transform", {"name": name}, points, options.row_rounds, n_threads=options.all_threads)
    line["us_per_row"] = [best / n * 1e6 for best, n in zip(line["best"], options.rows, strict=True)]
    for key in ("peak", "text_bytes", "result_bytes", "before"):
        line[key] = [found[n][key] for n in options.rows]
    # The interpreter and its libraries count as peak.
    sizes = zip(line["peak"], line["text_bytes"], line["result_bytes"], strict=True)
    return line | {"peak_over_text_and_result": [peak / (texts + result) for peak, texts, result in sizes]}


def show_steps(line: Line) -> None:
    """Milliseconds of each step by number of threads."""
    table = Table("ms", *map(name_of, line["x"]), title=f"{line['data']['name']}: steps of {line['task']}")
    for step, seconds in line["steps"].items():
        table.add_row(step, *(f"{spent * 1e3:.1f}" for spent in seconds))
    Console().print(table)


def available(names: list[str], folder: Path | None) -> list[str]:
    """The sets that are there, or made texts in place of all of them."""
    found = [name for name in names if name == MADE or (folder is not None and (folder / f"{name}.parquet").exists())]
    if len(found) < len(names):
        console.print(f"{', '.join(sorted({*names} - {*found}))}: left out, not in the data folder (--data).")
    return found or [MADE]


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.scaling.vectorize", __doc__, ["largemovie"])
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--threads", nargs="+", type=int, default=thread_counts())
    parser.add_argument("--rounds", type=int, default=7, help="best of so many")
    parser.add_argument("--documents", type=int, help="only so many of each set")
    parser.add_argument("--phases", action="store_true", help="show the steps of the best runs")
    parser.add_argument(
        "--rows", nargs="*", type=int, default=list(ROWS), help="numbers of rows to measure; none to leave that out"
    )
    parser.add_argument("--row-sets", nargs="+", default=["tripadvisor_250k"], help="where those rows are from")
    parser.add_argument("--row-rounds", type=int, default=3)
    parser.add_argument("--all-threads", type=int, default=n_cores(), help="threads for the rows")
    parser.add_argument("--one", nargs=3, metavar=("SET", "ROWS", "THREADS"), help="measure rows in this process, and print a line")
    options = parser.parse_args(arguments)
    folder = data_folder(options.data)
    if options.one:
        name, n_rows, n_threads = options.one
        print(json.dumps(one_size(name, folder, int(n_rows), int(n_threads))))
        return
    log = Log(LOG, not options.no_save)
    for name in available(options.sets, folder):
        with console.status(f"{name}: reading texts"):
            texts = [text for batch in texts_of(name, folder, options.documents) for text in batch]
        runs = ByThreads(name, texts)
        for task in TASKS:
            line = runs.line(task, options.threads, options.rounds)
            keep(log, line)
            if options.phases:
                show_steps(line)
    for name in available(options.row_sets, folder) if options.rows else ():
        keep(log, by_rows(name, options))


if __name__ == "__main__":
    main()
