"""A progress bar for solves. Nothing is shown, and nothing imported, unless asked for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rankplane.solve import OnReport

SHOWN_PLANES = 8


def violations_in_words(violations: list[float]) -> str:
    """A few planes one by one; of many, the range."""
    if len(violations) <= SHOWN_PLANES:
        return " ".join(f"{v:.2g}" for v in violations)
    return f"{min(violations):.2g} to {max(violations):.2g}"


def fraction_done(violations: list[float], tol: float) -> float:
    """Violations fall about geometrically from 1 to tol, so progress is linear in their logarithm; the slowest plane decides."""
    worst = max(max(violations), tol, 1e-300)
    return float(np.clip(np.log(worst) / np.log(tol), 0.0, 1.0)) if tol < 1 else 1.0


@contextmanager
def solve_progress(is_shown: bool, name: str, tol: float) -> Iterator["OnReport | None"]:
    """A bar that follows the sweeps of a solve: violation per plane, rows still visited, time left."""
    if not is_shown:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("sweep {task.fields[sweep]}  violation {task.fields[violation]}  rows {task.fields[rows]:,}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as progress:
        task = progress.add_task(name, total=1.0, sweep=0, violation="-", rows=0)
        by_lane: dict[int, float] = {}

        def on_report(sweep: int, n_active_rows: int, lanes: list[int], violations: list[float]) -> None:
            by_lane.update(zip(lanes, violations, strict=True))
            shown = [by_lane[lane] for lane in sorted(by_lane)]
            progress.update(
                task,
                completed=fraction_done(shown, tol),
                sweep=sweep,
                violation=violations_in_words(shown),
                rows=n_active_rows,
            )

        yield on_report
        progress.update(task, completed=1.0)


@contextmanager
def reading_progress(is_shown: bool, name: str) -> Iterator[Callable[[float], None]]:
    """A bar that follows the reading of a file. On standard error, so that it never mixes with what is written."""
    if not is_shown:
        yield lambda share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(name, total=1.0)
        yield lambda share: progress.update(task, completed=share)


@contextmanager
def search_progress(is_shown: bool, name: str, n_settings: int) -> Iterator[Callable[[dict[str, Any], int], None]]:
    """A bar that follows the settings of a search, each perhaps in several parts."""
    if not is_shown:
        yield lambda setting, n_parts: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[setting]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as progress:
        task = progress.add_task(name, total=n_settings, setting="")

        def on_setting(setting: dict[str, Any], n_parts: int) -> None:
            progress.update(task, advance=1 / n_parts, setting=" ".join(f"{key}={value:g}" for key, value in setting.items()))

        yield on_setting
