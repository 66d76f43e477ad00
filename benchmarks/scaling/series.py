"""Times along an axis, such as threads or rows: how they are taken, kept and shown.

A series is one line: its kind, what was done (``task``), the points of the axis (``x``) and the seconds of each, with the data it
was done on. One point after another, then all over again: a busy minute then bends no curve.
"""

import os
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.common import Log
from lab.results import Line, n_cores
from lab.timing import take_turns

LOG = "scaling"
Point = float | str


def thread_counts() -> list[int]:
    """1, 2, 4, ... up to all cores, and all cores; two even on one core, to show what that costs."""
    return sorted({n for n in (1, 2, 4, 8, 16) if n <= max(2, n_cores())} | {n_cores()})


def series(
    kind: str,
    task: str,
    data: Line,
    points: dict[Any, Callable[[], float]],
    n_rounds: int,
    limit: float = float("inf"),
    **about: Any,
) -> Line:
    """Seconds of each point; a point that has taken ``limit`` seconds sits out further rounds."""
    names = {str(x): x for x in points}
    turns = {name: points[x] for name, x in names.items()}
    seconds = take_turns(turns, n_rounds, limit, f"{data['name']}, {task}, {kind}")
    return {
        "kind": kind,
        "task": task,
        "data": data,
        "x": list(names.values()),
        "seconds": [[round(s, 5) for s in seconds[name]] for name in names],
        "best": [min(seconds[name]) for name in names],
        "load": round(os.getloadavg()[0], 2),
        **about,
    }


def show(line: Line) -> None:
    extra = [key for key, values in line.items() if isinstance(values, list) and key not in ("x", "seconds", "best")]
    table = Table(line["kind"], "best s", "of", "first over this", *extra, title=f"{line['data']['name']}: {line['task']}")
    for i, (x, best) in enumerate(zip(line["x"], line["best"], strict=True)):
        times, ratio = str(len(line["seconds"][i])), f"{line['best'][0] / best:.2f}"
        table.add_row(label(x), f"{best:.3f}", times, ratio, *(short(line[key][i]) for key in extra))
    Console().print(table)


def label(x: Point) -> str:
    return x if isinstance(x, str) else f"{x:,.0f}"


def short(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def keep(log: Log, line: Line) -> None:
    """Show a series, and write it down."""
    show(line)
    log.write(**line)
