"""A progress bar for the phases of one call, or silence."""

from collections.abc import Callable
from types import TracebackType
from typing import Any

OnProgress = Callable[[int], None] | None


class ProgressBar:
    """Context manager; `phase` starts the next phase and returns the callback that moves the bar."""

    def __init__(self, verbose: int) -> None:
        self._bar: Any = None
        if verbose:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns)

    def __enter__(self) -> "ProgressBar":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def phase(self, description: str, total: int | None) -> OnProgress:
        if self._bar is None:
            return None
        task = self._bar.add_task(description, total=total)

        def advance(n_done: int) -> None:
            self._bar.update(task, completed=n_done)

        return advance
