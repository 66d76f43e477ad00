"""Work on a stream of items by several threads, while one more reads what comes next and the caller writes what is done."""

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, Full, Queue
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
MOMENT = 0.05  # seconds between looks at whether to stop
PATIENCE = 1.0  # seconds for a reader to notice that nobody wants more; one that waits for a pipe may never


def overlapped(work: Callable[[Item], Result], items: Iterable[Item], n_threads: int) -> Generator[Result]:
    """``work(item)`` of each item, in order. With one thread nothing overlaps.

    There are never more than a few items per thread in memory. What fails, reading or working, is raised where its result would
    come, after those before it. Then, or when the generator is closed, all threads end.
    """
    if n_threads == 1:
        yield from map(work, items)
        return
    stream = Stream(items, n_threads)
    with ThreadPoolExecutor(n_threads) as pool:
        reader = threading.Thread(target=stream.submit_all, args=(pool, work), daemon=True)
        reader.start()
        try:
            while (result := stream.results.get()) is not None:
                yield result.result()
        finally:
            stream.stop()
            reader.join(PATIENCE)
            pool.shutdown(cancel_futures=True)


class Stream:
    """Items on their way to a pool, and results in the order of the items; None after the last."""

    def __init__(self, items: Iterable[Any], n_ahead: int) -> None:
        self.items: Iterator[Any] = iter(items)
        self.results: Queue[Future[Any] | None] = Queue(n_ahead + 1)
        self.is_stopped = threading.Event()

    def submit_all(self, pool: ThreadPoolExecutor, work: Callable[[Any], Any]) -> None:
        try:
            for item in self.items:
                self.put(pool.submit(work, item))
                if self.is_stopped.is_set():
                    return
            self.put(None)
        except BaseException as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            self.put(failed)
        finally:
            # By the thread that reads, since no other can close a generator that is running.
            if hasattr(self.items, "close"):
                self.items.close()

    def put(self, result: Future[Any] | None) -> None:
        while not self.is_stopped.is_set():
            with suppress(Full):
                self.results.put(result, timeout=MOMENT)
                return

    def stop(self) -> None:
        self.is_stopped.set()
        with suppress(Empty):
            while True:
                waiting = self.results.get_nowait()
                if waiting is not None:
                    waiting.cancel()
