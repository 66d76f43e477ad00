"""The number of threads of the BLAS library that numpy uses.

Where our own threads share the work already, or matrices are small, BLAS threads only do harm: they oversubscribe the cores, wait
in busy loops, and sum in another order, so that the last bits depend on their number.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def libraries() -> list[Any]:
    """The loaded BLAS libraries; cached, since finding them takes milliseconds."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def set_threads(counts: list[int | None]) -> None:
    """Set the number of threads of each library, for the whole process."""
    for library, count in zip(libraries(), counts, strict=True):
        # threadpoolctl lets one thread set the number and ignores all others. Limit's lock makes sure that ours take turns.
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(count)
        release(force=True)


class Limit:
    """Limits BLAS to one thread while there is any user of the limit.

    The number of threads belongs to the process. If every block restored the number it found, then of two that overlap, the first
    would make BLAS multithreaded again during the second, and the second would leave it at one thread.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_users = 0
        self.counts: list[int | None] = []

    def enter(self) -> None:
        with self.lock:
            if self.n_users == 0:
                self.counts = [library.get_num_threads() for library in libraries()]
                set_threads([1] * len(self.counts))
            self.n_users += 1

    def leave(self) -> None:
        with self.lock:
            self.n_users -= 1
            if self.n_users == 0:
                set_threads(self.counts)


LIMIT = Limit()


@contextmanager
def one_thread() -> Iterator[None]:
    """Within the block BLAS runs on the calling thread only, unless other code sets its number of threads."""
    LIMIT.enter()
    try:
        yield
    finally:
        LIMIT.leave()
