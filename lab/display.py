"""Output of long runs: a console for messages, and a progress bar."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

console = Console(stderr=True)


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
