"""Progress bars: one style, on standard error, gone when the work is done. Nothing is imported unless a bar is shown."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np

if TYPE_CHECKING:
    from rankplane.solver.lanes import OnReport

T = TypeVar("T")


class Move(Protocol):
    """How much is done by now, and a few words about it."""

    def __call__(self, done: float, note: str = "", /) -> None: ...


def make_bar() -> Any:
    """The one look of all bars: what, how far, details, time taken and time left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
    from rich.text import Text

    class Times(ProgressColumn):
        def render(self, task: Task) -> Text:
            left = "" if task.total is None or task.time_remaining is None else f", {clock(task.time_remaining)} left"
            return Text(clock(task.elapsed or 0) + left)

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=16),
        TaskProgressColumn(),
        Times(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    # Standard error: what is written to standard output may be read by a program.
    return Progress(*columns, console=Console(stderr=True), transient=True)


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class ProgressBar:
    """A bar for the phases of some work, or silence. A phase takes the place of the one before."""

    def __init__(self, is_shown: bool | int) -> None:
        self._bar: Any = make_bar() if is_shown else None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def phase(self, name: str, total: float | None = None) -> Move | None:
        """Start a phase; returns what moves its bar. Without a total the bar only shows that something goes on."""
        if self._bar is None:
            return None
        if self._task is not None:
            self._bar.remove_task(self._task)
        task = self._task = self._bar.add_task(name, total=total, note="")

        def move(done: float, note: str = "", /) -> None:
            self._bar.update(task, completed=done, note=note)

        return move

    def each(self, name: str, items: Sequence[T]) -> Iterator[T]:
        """The items, in a phase that moves with them."""
        move = self.phase(name, len(items)) or ignore
        for number, item in enumerate(items):
            move(number)
            yield item


def ignore(done: float, note: str = "", /) -> None:
    """Moves no bar."""


def fraction_done(violations: Iterable[float], tol: float) -> float:
    """Violations fall about geometrically from 1 to tol, so progress is linear in their logarithm; the slowest plane decides."""
    worst = max(*violations, tol, 1e-300)
    return float(np.clip(np.log(worst) / np.log(tol), 0.0, 1.0)) if tol < 1 else 1.0


@contextmanager
def solve_progress(is_shown: bool, name: str, tol: float) -> Iterator["OnReport | None"]:
    """A bar that follows the sweeps of a solve: the largest violation of a plane, and rows still visited."""
    if not is_shown:
        yield None
        return
    with ProgressBar(is_shown) as bar:
        move = bar.phase(name, 1.0) or ignore
        by_lane: dict[int, float] = {}

        def on_report(sweep: int, n_active_rows: int, lanes: list[int], violations: list[float]) -> None:
            by_lane.update(zip(lanes, violations, strict=True))
            note = f"sweep {sweep}  violation {max(by_lane.values()):.2g}  rows {n_active_rows:,}"
            move(fraction_done(by_lane.values(), tol), note)

        yield on_report


@contextmanager
def working(is_shown: bool, name: str) -> Iterator[None]:
    """A bar for work that does not say how far it is."""
    with ProgressBar(is_shown) as bar:
        bar.phase(name)
        yield


@contextmanager
def reading_progress(is_shown: bool, name: str) -> Iterator[Callable[[float], None]]:
    """A bar that follows the reading of a file, by the share that is read."""
    with ProgressBar(is_shown) as bar:
        yield bar.phase(name, 1.0) or ignore


@contextmanager
def search_progress(is_shown: bool, name: str, n_settings: int) -> Iterator[Callable[[dict[str, Any], int], None]]:
    """A bar that follows the settings of a search, each perhaps in several parts."""
    with ProgressBar(is_shown) as bar:
        move = bar.phase(name, n_settings) or ignore
        numbers = itertools.count(1)  # parts end in several threads at once

        def on_setting(setting: dict[str, Any], n_parts: int) -> None:
            note = " ".join(f"{key}={value:.3g}" for key, value in setting.items()) if n_settings > 1 else ""
            move(next(numbers) / n_parts, note)

        yield on_setting
