"""Progress bars on standard error, removed when the work is done. Nothing is imported unless a bar is shown."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np

if TYPE_CHECKING:
    from rankplane.solver.lanes import OnReport

T = TypeVar("T")


class Move(Protocol):
    """Reports how much is done, with a short note."""

    def __call__(self, done: float, note: str = "", /) -> None: ...


def make_bar() -> Any:
    """A bar with the columns that all bars have."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn
    from rich.text import Text

    class Times(ProgressColumn):
        def render(self, task: Task) -> Text:
            if task.total is None or task.time_remaining is None:
                return Text(clock(task.elapsed or 0))
            bound = "at most " if task.fields["is_at_most"] else ""
            return Text(f"{clock(task.elapsed or 0)}, {bound}{clock(task.time_remaining)} left")

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=16),
        TaskProgressColumn(),
        Times(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    # On standard error, since standard output may be read by a program.
    return Progress(*columns, console=Console(stderr=True), transient=True)


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class ProgressBar:
    """A bar for work in phases, or nothing if it is not to be shown. Each phase replaces the one before."""

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

    def phase(self, name: str, total: float | None = None, *, is_at_most: bool = False) -> Move | None:
        """Start a phase; returns what moves its bar. Without a total the bar only shows that something goes on. A total may be
        the most that there can be to do.
        """
        if self._bar is None:
            return None
        if self._task is not None:
            self._bar.remove_task(self._task)
        task = self._task = self._bar.add_task(name, total=total, note="", is_at_most=is_at_most)

        def move(done: float, note: str = "", /) -> None:
            self._bar.update(task, completed=done, note=note)

        return move

    def each(self, name: str, items: Sequence[T]) -> Iterator[T]:
        """Iterate over the items in a phase that counts them."""
        move = self.phase(name, len(items)) or ignore
        for number, item in enumerate(items):
            move(number)
            yield item


def ignore(done: float, note: str = "", /) -> None:
    """Move no bar."""


def fraction_done(violations: Iterable[float], tol: float) -> float:
    """Violations fall about geometrically from 1 to tol, so progress is linear in the logarithm of the largest one."""
    worst = max(*violations, tol, 1e-300)
    return float(np.clip(np.log(worst) / np.log(tol), 0.0, 1.0)) if tol < 1 else 1.0


@contextmanager
def solve_progress(is_shown: bool, name: str, tol: float) -> Iterator["OnReport | None"]:
    """A bar for the sweeps of a solve, with the largest violation and the number of active rows."""
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
    """A bar for work without a known total."""
    with ProgressBar(is_shown) as bar:
        bar.phase(name)
        yield


@contextmanager
def reading_progress(is_shown: bool, name: str) -> Iterator[Callable[[float], None]]:
    """A bar for reading a file, moved by the share that was read."""
    with ProgressBar(is_shown) as bar:
        yield bar.phase(name, 1.0) or ignore


class SearchSteps:
    """Moves the bar of a search by what its settings cost, in proportion; parts of them may end in several threads at once."""

    def __init__(self, move: Move, settings: Sequence[tuple[str, float]]) -> None:
        self._move = move
        self._names = [name for name, _ in settings]
        self._ends = np.cumsum([0.0, *(cost for _, cost in settings)])
        self._done = 0.0  # settings, or parts of them
        self._lock = threading.Lock()

    def __call__(self, share: float) -> None:
        """A share of a setting is done."""
        with self._lock:
            self._show(self._done + share)

    def skip_to(self, n_settings: int) -> None:
        """So many settings are done or left out."""
        with self._lock:
            self._show(n_settings)

    def _show(self, n_done: float) -> None:
        self._done = n_done
        place = round(n_done, 6)  # sums of parts
        cost = float(np.interp(place, np.arange(len(self._ends)), self._ends))
        self._move(cost, self._names[int(place)] if place < len(self._names) else "")


@contextmanager
def search_progress(
    is_shown: bool, name: str, settings: Sequence[tuple[str, float]], *, may_end_early: bool
) -> Iterator[SearchSteps]:
    """A bar that follows the settings of a search, each with what it costs, and names the one that is tried."""
    with ProgressBar(is_shown) as bar:
        total = sum(cost for _, cost in settings)
        steps = SearchSteps(bar.phase(name, total, is_at_most=may_end_early) or ignore, settings)
        steps.skip_to(0)
        yield steps
