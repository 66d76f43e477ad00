"""Counts of all workers, in the text format of Prometheus.

All processes share one block of memory: a row for each worker, which alone writes to it, and a column for each number. A scrape
adds up the rows, whichever worker it reaches. What is counted is declared before workers are forked, so that columns mean the
same to all.
``prometheus-client`` would keep a file for every process that ever lived, and a new worker starts with each replaced model.
"""

import mmap
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

MAX_COLUMNS = 16_384
NAMES = {
    "rankplane_requests_total": ("counter", "Requests answered, by what was asked and the status of the answer."),
    "rankplane_request_seconds": ("histogram", "Seconds from the request to its answer, of predictions that succeeded."),
    "rankplane_batch_rows": ("histogram", "Rows that were predicted together."),
    "rankplane_rows_total": ("counter", "Rows predicted."),
    "rankplane_predictions_total": ("counter", "Rows predicted, by predicted rank."),
    "rankplane_replacements_total": (
        "counter",
        "Model files that were replaced while the server ran, by whether they could be used.",
    ),
    "rankplane_workers_lost_total": ("counter", "Workers that ended without being told to."),
    "rankplane_model_info": ("gauge", "The version of each model."),
    "rankplane_model_loaded_timestamp_seconds": ("gauge", "When each model was loaded."),
    "rankplane_start_timestamp_seconds": ("gauge", "When the server was started."),
    "rankplane_workers": ("gauge", "Processes that answer requests."),
}
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Series:
    """One line of the exposition."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        inside = ",".join(f'{name}="{escaped(value)}"' for name, value in self.labels)
        return f"{self.name}{{{inside}}}" if inside else self.name


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Histogram:
    """Columns for counts up to each bound, their sum and their number."""

    def __init__(self, board: "Board", name: str, bounds: Sequence[float]) -> None:
        self.board = board
        self.bounds = bounds
        # Not yet cumulative: each value is counted in one bucket only.
        self.buckets = [board.column(f"{name}_bucket", le=le) for le in (*(f"{bound:g}" for bound in bounds), "+Inf")]
        self.sum = board.column(f"{name}_sum")
        self.count = board.column(f"{name}_count")

    def observe(self, value: float) -> None:
        self.board.add(self.buckets[bisect_left(self.bounds, value)])
        self.board.add(self.sum, value)
        self.board.add(self.count)


class Board:
    """The shared numbers. ``row`` is that of this process."""

    def __init__(self, n_rows: int) -> None:
        self.columns: dict[Series, int] = {}
        self.memory = mmap.mmap(-1, 8 * n_rows * MAX_COLUMNS)  # pages that are never written to take no memory
        self.values = np.frombuffer(self.memory, dtype=np.float64).reshape(n_rows, MAX_COLUMNS)
        self.row = 0

    def column(self, name: str, **labels: str) -> int | None:
        """The column of a series, declared if it is new; None if there is no room for more."""
        series = Series(name, tuple(labels.items()))
        if series not in self.columns and len(self.columns) < MAX_COLUMNS:
            self.columns[series] = len(self.columns)
        return self.columns.get(series)

    def add(self, column: int | None, value: float = 1.0) -> None:
        if column is not None:
            self.values[self.row, column] += value

    def exposition(self, gauges: Iterable[tuple[str, Labels, float]]) -> str:
        """All numbers of all processes."""
        totals = self.values[:, : len(self.columns)].sum(axis=0).tolist()
        lines: dict[str, list[str]] = {name: [] for name in NAMES}
        so_far = 0.0
        for series, column in self.columns.items():
            family, value = family_of(series.name), totals[column]
            if series.name.endswith("_bucket"):
                so_far = value = value + (so_far if lines[family] else 0.0)
            lines[family].append(f"{series} {number(value)}")
        for name, labels, value in gauges:
            lines[name].append(f"{Series(name, tuple(labels.items()))} {number(value)}")
        text = []
        for name, shown in lines.items():
            if shown:
                kind, about = NAMES[name]
                text += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *shown]
        return "\n".join([*text, ""])


def family_of(name: str) -> str:
    for ending in ("_bucket", "_sum", "_count"):
        if name.endswith(ending):
            return name.removesuffix(ending)
    return name


def number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
