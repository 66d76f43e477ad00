"""Time the vectorizers: python -m benchmarks.vectorize.run --data FOLDER, from the root of the project.

Answers are compared with scikit-learn's before times are kept: the same columns, the same nonzeros, values to 1e-6. A
competitor with rules of its own is shown with what it answered. Runs are interleaved, the best of several counts.
"""

import argparse
import gc
import importlib
import os
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.common import Log
from benchmarks.vectorize.tasks import TASKS, Task, read_texts
from lab.data import data_folder
from lab.timing import processor_timed, take_turns, timed

REFERENCE = "scikit_learn"
COMPETITORS = ("rankplane", REFERENCE, "lenlp")


def names_of(vectorizer: Any) -> list[str] | None:
    return list(vectorizer.get_feature_names_out()) if hasattr(vectorizer, "get_feature_names_out") else None


class Contest:
    """One task on one set of texts: runs competitors and compares their results."""

    def __init__(self, task: Task, texts: list[str], n_threads: int) -> None:
        n_train = len(texts) * 7 // 10 if task.is_transform else 0
        self.task, self.n_threads = task, n_threads
        self.train, self.timed = texts[:n_train], texts[n_train:]
        self.answers: dict[str, dict[str, Any]] = {}
        self.processor_seconds: dict[str, float] = {}
        self.expected: tuple[Any, list[str] | None] | None = None

    def can(self, module: ModuleType) -> bool:
        return module.make(self.task, self.n_threads) is not None

    def run(self, name: str, module: ModuleType) -> float:
        vectorizer = module.make(self.task, self.n_threads)
        if self.task.is_transform:
            vectorizer.fit(self.train)
        gc.collect()
        seconds, (of_processor, matrix) = timed(
            lambda: processor_timed(lambda: module.run(vectorizer, self.timed, self.task.is_transform))
        )
        self.processor_seconds[name] = min(of_processor, self.processor_seconds.get(name, of_processor))
        if name not in self.answers:
            self.check(name, matrix, None if self.task.is_hashed else names_of(vectorizer))
        return seconds

    def check(self, name: str, matrix: Any, names: list[str] | None) -> None:
        if self.expected is None:
            matrix.sort_indices()
            self.expected = matrix, names
        is_same = self.is_expected(matrix, names)
        if name == "rankplane" and not is_same:
            raise SystemExit(f"{self.task.name}: the answer differs from scikit-learn's; its time means nothing.")
        self.answers[name] = {"is_same_answer": is_same, "n_columns": matrix.shape[1], "n_entries": matrix.nnz}

    def is_expected(self, matrix: Any, names: list[str] | None) -> bool:
        assert self.expected is not None
        expected, expected_names = self.expected
        if matrix.shape != expected.shape or matrix.nnz != expected.nnz or names != expected_names:
            return False
        return bool(np.array_equal(matrix.indices, expected.indices) and np.allclose(matrix.data, expected.data, 0, 1e-6))

    def n_megabytes(self) -> float:
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in self.timed) / 1e6


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "benchmarks.vectorize.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of parquet files with a column `text`")
    parser.add_argument("--sets", nargs="+", default=["largemovie", "douban", "tripadvisor_250k"])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--competitors", nargs="+", default=list(COMPETITORS), choices=COMPETITORS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds after which a competitor sits out")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--documents", type=int, default=None, help="only the first so many")
    options = parser.parse_args(arguments)
    folder = data_folder(options.data)
    if folder is None:
        raise SystemExit("benchmarks: --data must be a folder of parquet files.")
    # The reference goes first, so that every other answer can be compared.
    names = [REFERENCE, *(name for name in options.competitors if name != REFERENCE)]
    modules = {name: importlib.import_module(f"benchmarks.vectorize.{name}") for name in names}
    log = Log("vectorize")
    for data in options.sets:
        texts = read_texts(folder, data, options.documents)
        for task in (TASKS[name] for name in options.tasks):
            contest = Contest(task, texts, options.threads)
            runs = {name: partial(contest.run, name, module) for name, module in modules.items() if contest.can(module)}
            seconds = take_turns(runs, options.rounds, options.budget, f"{data}, {task.name}")
            for name, own in seconds.items():
                speed = contest.n_megabytes() / min(own)
                ratio = min(seconds[REFERENCE]) / min(own)
                less = contest.processor_seconds[REFERENCE] / contest.processor_seconds[name]
                log.write(
                    data=data,
                    task=task.name,
                    competitor=name,
                    n_documents=len(texts),
                    n_threads=options.threads,
                    seconds=min(own),
                    all_seconds=own,
                    megabytes_per_second=round(speed, 1),
                    times_faster_than_scikit_learn=round(ratio, 2),
                    processor_seconds=round(contest.processor_seconds[name], 4),
                    times_less_processor_time=round(less, 2),
                    load=os.getloadavg()[0],
                    **contest.answers[name],
                )
                answer = contest.answers[name]
                print(
                    f"{data:18} {task.name:21} {name:13} {min(own):9.3f} s {speed:8.1f} MB/s {ratio:7.2f} x {less:7.2f} x cpu "
                    f"{'same' if answer['is_same_answer'] else 'other'} answer, {answer['n_columns']} columns",
                    flush=True,
                )


if __name__ == "__main__":
    main()
