"""What workers need of whoever launched them: their number, how many there are, sums and broadcasts of arrays.

Everything else here is made of these four, so that any engine can launch the workers, and MPI too.
"""

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankplane.docstrings import documented

Array = NDArray[Any]
Bytes = NDArray[np.uint8]
T = TypeVar("T")


class PeerLostError(ConnectionError):
    """A worker does not answer any more.

    See Also
    --------
    FitInterruptedError : What :func:`fit_shard` raises then, with a checkpoint.

    Examples
    --------
    >>> from rankplane.distributed import PeerLostError
    >>> issubclass(PeerLostError, ConnectionError)
    True
    """


@documented()
class Comm(Protocol):
    """What a fit needs of the program that started its workers: their numbers, sums and broadcasts of arrays.

    Any object with these members will do, for example one that calls MPI. All workers make the same calls in the same order. A
    call that fails because another worker is gone should raise a ``ConnectionError``; the fit then ends with a checkpoint.

    See Also
    --------
    Threads : Workers that are threads of one process.
    fit_shard : Fit a model on the samples of all workers.

    Notes
    -----
    A ``Comm`` may also have a method ``exchange(parts)``: part i of a list of byte arrays is sent to worker i, and the result is
    the list of parts that this worker was sent. Only :func:`fit_vectorizer` uses it, which needs more traffic without.

    Examples
    --------
    The ``Comm`` of a single worker:

    >>> import numpy as np
    >>> from rankplane import NPSVOR
    >>> from rankplane.distributed import fit_shard
    >>> class Alone:
    ...     rank, size = 0, 1
    ...     def allreduce(self, array):
    ...         return array
    ...     def broadcast(self, array, root):
    ...         return array
    >>> X, y = np.linspace(0, 1, 40)[:, None], np.repeat([1, 2, 3, 4], 10)
    >>> fit_shard(NPSVOR(C=10), X, y, Alone()).predict([[0.0], [1.0]])
    array([1, 4])
    """

    @property
    def rank(self) -> int:
        """Number of this worker, from 0."""
        ...

    @property
    def size(self) -> int:
        """Number of workers."""
        ...

    def allreduce(self, array: Array) -> Array:
        """Add up the arrays of all workers.

        Parameters
        ----------
        array : ndarray
            The array of this worker. Those of the others have the same shape and type.

        Returns
        -------
        ndarray
            The sum, with the same bits on every worker.
        """
        ...

    def broadcast(self, array: Array, root: int) -> Array:
        """Send the array of one worker to all others.

        Parameters
        ----------
        array : ndarray
            The array to send; on the other workers, one of the same shape and type.
        root : int
            Number of the worker that sends.

        Returns
        -------
        ndarray
            The array of worker ``root``.
        """
        ...


class Alone:
    """A single worker."""

    rank = 0
    size = 1

    def allreduce(self, array: Array) -> Array:
        return array

    def broadcast(self, array: Array, root: int) -> Array:
        return array


def gather(comm: Comm, array: Array) -> list[Array]:
    """The one-dimensional arrays of all workers, of the same type and any length."""
    lengths = np.zeros(comm.size, dtype=np.int64)
    lengths[comm.rank] = len(array)
    ends = np.cumsum(comm.allreduce(lengths))
    everything = np.zeros(ends[-1], dtype=array.dtype)
    everything[ends[comm.rank] - len(array) : ends[comm.rank]] = array
    return np.split(comm.allreduce(everything), ends[:-1])


def gather_rows(comm: Comm, rows: Array) -> Array:
    """The rows of all workers below each other; each has the same number of columns."""
    return np.concatenate(gather(comm, np.ascontiguousarray(rows).ravel())).reshape(-1, *rows.shape[1:])


def gather_values(comm: Comm, value: Any) -> list[Any]:
    """A plain value of each worker: what JSON can hold."""
    return [json.loads(part.tobytes()) for part in gather(comm, as_bytes(value))]


def share(comm: Comm, value: Any, root: int) -> Any:
    """The plain value of worker ``root``."""
    own = as_bytes(value) if comm.rank == root else np.zeros(0, dtype=np.uint8)
    length = int(comm.broadcast(np.array([len(own)], dtype=np.int64), root)[0])
    found = comm.broadcast(own if comm.rank == root else np.zeros(length, dtype=np.uint8), root)
    return json.loads(found.tobytes())


def share_array(comm: Comm, array: Array | None, root: int) -> Array:
    """The array of worker ``root``, whose shape and type the others need not know."""
    shape, dtype = share(comm, None if array is None else [list(array.shape), array.dtype.str], root)
    own = np.ascontiguousarray(array) if comm.rank == root else np.zeros(shape, dtype=dtype)
    return comm.broadcast(own, root)


def as_bytes(value: Any) -> Bytes:
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def together(comm: Comm, work: Callable[[], T]) -> T:
    """Do work that may refuse its input. If it does so on any worker, all raise its error, and none waits for those that failed."""
    found, error = None, ""
    try:
        found = work()
    except (ValueError, TypeError) as refusal:
        error = str(refusal) or type(refusal).__name__
    n_failed = int(comm.allreduce(np.array([error != ""], dtype=np.int64))[0])
    if n_failed == 0:
        return found  # type: ignore[return-value]
    errors = gather_values(comm, error)
    worker = next(i for i, message in enumerate(errors) if message)
    raise ValueError(errors[worker] if comm.size == 1 else f"Worker {worker}: {errors[worker]}")


def exchange(comm: Comm, parts: Sequence[Bytes]) -> list[Bytes]:
    """Send part i to worker i; returns what each worker had for this one."""
    own: Callable[[Sequence[Bytes]], list[Bytes]] | None = getattr(comm, "exchange", None)
    if own is not None:
        return own(parts)
    # Worker by worker, so that no more than what one of them sends is in memory.
    received = []
    for root in range(comm.size):
        lengths = comm.broadcast(np.array([len(part) for part in parts], dtype=np.int64), root)
        ends = np.cumsum(lengths)
        sent = np.concatenate(list(parts)) if comm.rank == root else np.zeros(ends[-1], dtype=np.uint8)
        sent = comm.broadcast(sent, root)
        received.append(sent[ends[comm.rank] - lengths[comm.rank] : ends[comm.rank]].copy())
    return received


@documented()
class Threads:
    """Workers that are threads of this process, to try out a fit over workers.

    Parameters
    ----------
    size : int
        Number of workers.

    See Also
    --------
    fit_shard : Fit a model on the samples of all workers.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane.distributed import Threads
    >>> Threads(4).run(lambda comm: int(comm.allreduce(np.array([comm.rank]))[0]))
    [6, 6, 6, 6]
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._slots: list[Any] = [None] * size
        self._barrier = threading.Barrier(size)

    def run(self, work: Callable[["ThreadComm"], T]) -> list[T]:
        """Call a function on every worker.

        Parameters
        ----------
        work : callable
            Called with the :class:`Comm` of each worker.

        Returns
        -------
        list
            What each worker returned. If a worker fails, its error is raised.
        """

        def guarded(rank: int) -> T:
            try:
                return work(ThreadComm(rank, self))
            except BaseException:
                self._barrier.abort()  # or the others would wait for ever
                raise

        with ThreadPoolExecutor(self.size) as pool:
            futures = [pool.submit(guarded, rank) for rank in range(self.size)]
        errors = [error for future in futures if (error := future.exception()) is not None]
        # Errors that another worker's failure caused come last.
        for error in sorted(errors, key=lambda error: isinstance(error, ConnectionError)):
            raise error
        return [future.result() for future in futures]

    def _swap(self, rank: int, value: Any) -> list[Any]:
        """The values of all workers."""
        try:
            self._slots[rank] = value
            self._barrier.wait()
            found = list(self._slots)
            self._barrier.wait()
        except threading.BrokenBarrierError:
            raise PeerLostError("Another worker has failed.") from None
        return found


class ThreadComm:
    """One of the threads."""

    def __init__(self, rank: int, threads: Threads) -> None:
        self.rank = rank
        self.size = threads.size
        self._threads = threads

    def allreduce(self, array: Array) -> Array:
        return add_up(self._threads._swap(self.rank, array))

    def broadcast(self, array: Array, root: int) -> Array:
        return np.array(self._threads._swap(self.rank, array)[root])

    def exchange(self, parts: Sequence[Bytes]) -> list[Bytes]:
        return [of_other[self.rank] for of_other in self._threads._swap(self.rank, list(parts))]


def add_up(arrays: Sequence[Array]) -> Array:
    """Their sum, in this order, so that all who add the same arrays get the same bits."""
    total = np.array(arrays[0])
    for array in arrays[1:]:
        total += array
    return total
