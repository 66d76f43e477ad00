"""The threads of the linear algebra library under numpy.

Where our own threads share the work already, or where matrices are too small to share, its threads only get in the way: they take
turns on cores that others asked for, wait at full speed, and add up in another order, so that the last bits depend on their number.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def libraries() -> list[Any]:
    """Looking for them takes some milliseconds."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def set_threads(counts: list[int | None]) -> None:
    """The number of threads of each library, for the whole process."""
    for library, count in zip(libraries(), counts, strict=True):
        # threadpoolctl lets one thread at a time set the number and ignores all others. Ours take turns, by Limit's lock.
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(count)
        release(force=True)


class Limit:
    """One thread for the library while anybody asks for that.

    The number of its threads belongs to the process, not to a thread of it. If every block put back the number that it found, the
    first of two that overlap would let the library go multithreaded under the second, and the second would leave it at one.
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
    """Within the block the library works on the calling thread alone, unless other code sets the number of its threads."""
    LIMIT.enter()
    try:
        yield
    finally:
        LIMIT.leave()
