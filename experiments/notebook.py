"""Result lines: what was computed, with which settings, on which data, by which commit, and how long it took.

A line's key is the fields that a job names: data set and its fingerprint, split, seed, method, settings. A job whose key is in the
file already is done.
"""

import json
import subprocess
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from benchmarks.common import console, git, machine, progress
from benchmarks.data import ROOT

RESULTS = ROOT / "experiments" / "results"
Line = dict[str, Any]
SOURCES = ("src", "benchmarks", "experiments", ":!benchmarks/results", ":!experiments/results")


class SkipError(Exception):
    """A job cannot be done here; its words say why."""


@dataclass
class Job:
    """``work()`` computes the fields of the line that ``key`` names in ``<experiment>.jsonl``."""

    experiment: str
    key: Line
    work: Callable[[], Line]

    @property
    def title(self) -> str:
        named = (str(self.key[name]) for name in ("set", "split", "method", "seed") if name in self.key)
        return f"{self.experiment}: {', '.join(named)}"


def commit() -> str:
    """The commit that computed, marked when sources differ from it."""
    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+changes" if git("status", "--porcelain", "--", *SOURCES) else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@dataclass
class Notebook:
    """The lines of one folder, a file per experiment."""

    folder: Path = RESULTS
    _lines: dict[str, list[Line]] = field(default_factory=dict)
    _head: Line = field(default_factory=dict)

    def lines(self, experiment: str, **wanted: Any) -> list[Line]:
        """In the order in which they were written, those whose fields have the wanted values."""
        if experiment not in self._lines:
            path = self.folder / f"{experiment}.jsonl"
            content = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            self._lines[experiment] = [json.loads(line) for line in content if line]
        return [line for line in self._lines[experiment] if all(line.get(name) == value for name, value in wanted.items())]

    def has(self, job: Job) -> bool:
        return any(all(line.get(name) == value for name, value in job.key.items()) for line in self.lines(job.experiment))

    def write(self, job: Job, result: Line, seconds: float) -> None:
        if not self._head:
            about = machine()
            self._head = {"commit": commit(), "machine": f"{about['processor']}, {about['cores']} cores"}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = json.loads(json.dumps(job.key | result | {"seconds": round(seconds, 3), "run": now} | self._head))
        self.lines(job.experiment)
        self._lines[job.experiment].append(line)
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{job.experiment}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def carry_out(notebook: Notebook, jobs: Iterable[Job]) -> tuple[int, int]:
    """Do the jobs that are not done yet; how many those were, and how many there are."""
    jobs = list(jobs)
    open_jobs = [job for job in jobs if not notebook.has(job)]
    reasons: dict[str, None] = {}
    n_done = 0
    with progress("paper", max(1, len(open_jobs))) as advance, warnings.catch_warnings():
        # Some solves end at their limit of sweeps on purpose, such as the points of a descent.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for job in open_jobs:
            advance(f"{n_done + 1} of {len(open_jobs)}, {job.title}")
            if notebook.has(job):  # two experiments may share a line
                continue
            start = time.perf_counter()
            try:
                result = job.work()
            except SkipError as reason:
                reasons.setdefault(f"{job.experiment}: {reason}")
                continue
            seconds = time.perf_counter() - start
            notebook.write(job, result, seconds)
            n_done += 1
            if not console.is_terminal:
                console.print(f"{datetime.now():%H:%M:%S} {job.title}: {seconds:.1f} s", highlight=False)
    for reason in reasons:
        console.print(f"Left out, {reason}", highlight=False)
    return n_done, len(jobs)
