"""What all benchmarks share: the machine they ran on, the JSON lines they leave, the order in which competitors take
turns.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks.data import DEFAULT_DATA, ROOT

RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("rankplane", "numpy", "scipy", "scikit-learn", "liblinear-official", "mord", "fasttext-wheel", "skordinal")

console = Console(stderr=True)
Result = TypeVar("Result")


def machine() -> dict[str, Any]:
    """The hardware and system, without anything that names the machine."""
    return {
        "processor": processor_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(total_memory() / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "huge_pages": huge_pages(),
    }


def processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def total_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def huge_pages() -> str:
    try:
        setting = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
        return setting[setting.index("[") + 1 : setting.index("]")]
    except (OSError, ValueError):
        return "unknown"


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit measured, marked when files differ from it: results themselves do not count."""
    try:
        name = git("rev-parse", "--short=12", "HEAD")
        changed = git("status", "--porcelain", "--", "src", "benchmarks", ":!benchmarks/results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + ("+changes" if changed else "")


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Log:
    """Appends lines to ``results/<task>.jsonl`` if they are to be kept; all lines of one run carry the same time stamp."""

    def __init__(self, task: str, is_kept: bool = True) -> None:
        self.is_kept = is_kept
        self.path = RESULTS / f"{task}.jsonl"
        self.head = {
            "run": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "commit": commit(),
            "machine": machine(),
            "versions": versions(),
        }

    def write(self, **fields: Any) -> None:
        if not self.is_kept:
            return
        RESULTS.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(self.head | fields) + "\n")


def read_lines(task: str) -> list[dict[str, Any]]:
    path = RESULTS / f"{task}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def processor_timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds of processor time, of all threads: what a result cost, however busy the machine was meanwhile."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def take_turns(competitors: dict[str, Callable[[], float]], n_rounds: int, budget: float, title: str) -> dict[str, list[float]]:
    """Seconds of every competitor, run in turns so that a busy minute of the machine hits all of them.

    A competitor that has used up ``budget`` seconds sits out the remaining rounds; each runs at least once.
    """
    seconds: dict[str, list[float]] = {name: [] for name in competitors}
    with progress(title, n_rounds * len(competitors)) as advance:
        for round_number in range(n_rounds):
            for name, run in competitors.items():
                advance(f"round {round_number + 1} of {n_rounds}: {name}")
                if sum(seconds[name]) < budget or not seconds[name]:
                    seconds[name].append(run())
    return seconds


class Advance:
    """Called at the start of each step of a bar; ``describe`` changes the words within a step."""

    def __init__(self, bar: Progress, title: str, n_steps: int) -> None:
        self.bar = bar
        self.title = title
        self.task = bar.add_task(title, total=n_steps)
        self.n_started = 0

    def __call__(self, what: str) -> None:
        self.bar.update(self.task, completed=self.n_started, description=f"{self.title}, {what}")
        self.n_started += 1

    def describe(self, what: str) -> None:
        self.bar.update(self.task, description=f"{self.title}, {what}")


@contextmanager
def progress(title: str, n_steps: int) -> Iterator[Advance]:
    """A bar for work of ``n_steps``."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    # Few redraws: the bar must not take the second core from what is measured.
    with Progress(*columns, console=console, transient=True, refresh_per_second=1) as bar:
        yield Advance(bar, title, n_steps)


def competitors(modules: Iterable[ModuleType], only: str = "", limits: dict[ModuleType, float] | None = None) -> dict[str, Any]:
    """What runs each variant of the modules that can run here, by name; the others are named. Some have a limit of seconds."""
    found: dict[str, Any] = {}
    for module in modules:
        if reason := module.missing():
            console.print(f"{', '.join(module.VARIANTS)}: left out, {reason}.")
            continue
        limit = {"limit": limits[module]} if limits and module in limits else {}
        found |= {name: partial(module.run, **o, **limit) for name, o in module.VARIANTS.items() if only.lower() in name.lower()}
    return found


def options_parser(prog: str, description: str | None, sets: list[str]) -> argparse.ArgumentParser:
    """The options that all benchmarks on data sets have."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("--data", help="folder of the data sets (default: ../shared/data if it is there)")
    parser.add_argument("--sets", nargs="+", default=sets, help="data sets by name")
    parser.add_argument("--no-save", action="store_true", help="do not append to the results")
    return parser


def each_set(options: argparse.Namespace, source: Any) -> Iterator[Any]:
    """The data sets asked for, from a module with ``load`` and ``why_not``; those that are not there are named."""
    folder = data_folder(options.data)
    for name in options.sets:
        if reason := source.why_not(name, folder):
            console.print(reason)
            continue
        with console.status(f"{name}: loading, or making it for the first time"):
            data = source.load(name, folder)
        yield data


def data_folder(argument: str | None) -> Path | None:
    """The folder of parquet files, or None where there is none."""
    if argument is not None:
        folder = Path(argument)
        if not folder.is_dir():
            sys.exit(f"benchmarks: --data must be a folder. Got {argument!r}.")
        return folder
    return DEFAULT_DATA if DEFAULT_DATA.is_dir() else None
