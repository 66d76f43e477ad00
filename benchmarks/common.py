"""Shared by all benchmarks: options, the selected data sets and competitors, result lines."""

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from lab import ROOT, results
from lab.data import data_folder
from lab.display import console
from lab.results import Line

RESULTS = ROOT / "benchmarks" / "results"


class Log:
    """Appends lines to ``results/<task>.jsonl`` if they are to be kept; all lines of one run carry the same time stamp."""

    def __init__(self, task: str, is_kept: bool = True) -> None:
        self.is_kept = is_kept
        self.path = RESULTS / f"{task}.jsonl"
        self.head = {
            "run": results.now(),
            "commit": results.commit("benchmarks"),
            "machine": results.machine(),
            "versions": results.versions(),
        }

    def write(self, **fields: Any) -> None:
        if self.is_kept:
            results.append_line(self.path, self.head | fields)


def read_lines(task: str) -> list[Line]:
    return results.read_lines(RESULTS / f"{task}.jsonl")


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


def each_set(options: argparse.Namespace, source: Any, load: Callable[[str, Path | None], Any] | None = None) -> Iterator[Any]:
    """The data sets asked for, from a module with ``load`` and ``why_not``, or by a function of it; those not there are named."""
    folder = data_folder(options.data)
    for name in options.sets:
        if reason := source.why_not(name, folder):
            console.print(reason)
            continue
        with console.status(f"{name}: loading, or making it for the first time"):
            data = (load or source.load)(name, folder)
        yield data
