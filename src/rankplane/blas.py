"""The threads of the linear algebra library under numpy.

Where our own threads share the work already, or where matrices are too small to share, its threads only get in the way: they take
turns on cores that others asked for, wait at full speed, and add up in another order on every kind of machine.
"""

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def libraries() -> ThreadpoolController:
    """Looking for them takes some milliseconds."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    return libraries().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]
