"""Result lines: what was computed, with which settings, on which data, by which commit, and how long it took.

A line's key is the fields that a job names: data set and its fingerprint, split, seed, method, settings. A job whose key is in the
file already is done.
"""

import itertools
import json
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from lab import ROOT, results
from lab.display import console, progress
from lab.results import Line

RESULTS = ROOT / "experiments" / "results"


class SkipError(Exception):
    """A job cannot be done here; its words say why."""


@dataclass
class Job:
    """``work()`` computes the fields of the line that ``key`` names in ``<experiment>.jsonl``."""

    experiment: str
    key: Line
    work: Callable[[], Line]
    is_clocked: bool = False  # counts seconds of the clock, so that nothing else should run meanwhile

    @property
    def rows(self) -> tuple[Any, ...]:
        """What names the rows that it works on."""
        return tuple(self.key.get(name) for name in ("set", "split", "seed"))

    @property
    def title(self) -> str:
        named = (str(self.key[name]) for name in ("set", "split", "method", "seed") if name in self.key)
        return f"{self.experiment}: {', '.join(named)}"


@dataclass
class Notebook:
    """The lines of one folder, a file per experiment."""

    folder: Path = RESULTS
    _lines: dict[str, list[Line]] = field(default_factory=dict)
    _head: Line = field(default_factory=dict)

    def lines(self, experiment: str, **wanted: Any) -> list[Line]:
        """In the order in which they were written, those whose fields have the wanted values."""
        if experiment not in self._lines:
            self._lines[experiment] = results.read_lines(self.folder / f"{experiment}.jsonl")
        return [line for line in self._lines[experiment] if all(line.get(name) == value for name, value in wanted.items())]

    def has(self, job: Job) -> bool:
        return any(all(line.get(name) == value for name, value in job.key.items()) for line in self.lines(job.experiment))

    def write(self, job: Job, result: Line, seconds: float) -> None:
        if not self._head:
            about = results.machine()
            commit = results.commit("experiments")
            self._head = {"commit": commit, "machine": f"{about['processor']}, {about['cores']} cores"}
        line = job.key | result | {"seconds": round(seconds, 3), "run": results.now()} | self._head
        line = json.loads(json.dumps(line))  # as it will be read again
        self.lines(job.experiment)
        self._lines[job.experiment].append(line)
        results.append_line(self.folder / f"{job.experiment}.jsonl", line)


Outcome = tuple[Job, Line | SkipError, float]  # with the seconds that it took
_batches: list[list[Job]] = []  # of which the workers, forked from here, do those whose number they are given


def attempt(job: Job) -> Outcome:
    start = time.perf_counter()
    result: Line | SkipError
    with warnings.catch_warnings():
        # Some solves end at their limit of sweeps on purpose, such as the points of a descent.
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            result = job.work()
        except SkipError as reason:
            result = reason
    return job, result, time.perf_counter() - start


def attempt_batch(number: int) -> tuple[int, list[tuple[Line | SkipError, float]]]:
    return number, [attempt(job)[1:] for job in _batches[number]]


def forked(n_workers: int) -> Any:
    """Forked, as jobs are closures: nothing of them could be sent. No other thread of ours holds a lock that they need, which is
    what Python would warn of.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return multiprocessing.get_context("fork").Pool(n_workers)


def outcomes(jobs: list[Job], n_workers: int) -> Iterator[Outcome]:
    """Those of all jobs, as they come. A worker does jobs on the same rows one after the other, since it keeps their matrix; jobs
    timed by the clock come last, one at a time.
    """
    alone = [job for job in jobs if n_workers == 1 or job.is_clocked]
    shared = [job for job in jobs if not (n_workers == 1 or job.is_clocked)]
    _batches[:] = [list(batch) for _, batch in itertools.groupby(shared, key=lambda job: (job.experiment, job.rows))]
    if shared:
        with forked(n_workers) as pool:
            for number, found in pool.imap_unordered(attempt_batch, range(len(_batches))):
                yield from ((job, *result) for job, result in zip(_batches[number], found, strict=True))
    yield from map(attempt, alone)


def carry_out(notebook: Notebook, jobs: Iterable[Job], n_workers: int = 1) -> tuple[int, int]:
    """Do the jobs that are not done yet; how many those were, and how many there are."""
    jobs = list(jobs)
    distinct = {json.dumps([job.experiment, job.key]): job for job in jobs}  # two experiments may share a line
    open_jobs = [job for job in distinct.values() if not notebook.has(job)]
    reasons: dict[str, None] = {}
    n_done = 0
    with progress("paper", max(1, len(open_jobs))) as advance:
        advance(f"1 of {len(open_jobs)}")
        for job, result, seconds in outcomes(open_jobs, n_workers):
            advance(f"{advance.n_started + 1} of {len(open_jobs)}, after {job.title}")
            if isinstance(result, SkipError):
                reasons.setdefault(f"{job.experiment}: {result}")
                continue
            notebook.write(job, result, seconds)
            n_done += 1
            if not console.is_terminal:
                console.print(f"{datetime.now():%H:%M:%S} {job.title}: {seconds:.1f} s", highlight=False)
    for reason in reasons:
        console.print(f"Left out, {reason}", highlight=False)
    return n_done, len(jobs)
