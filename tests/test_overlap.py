"""Work that overlaps gives what work in turn gives, holds little, and ends when anything fails."""

import threading
import time
from contextlib import closing

import pytest

from rankplane.overlap import overlapped


def threads_left(before):
    """Threads that were started since, once they had a moment to end."""
    for _ in range(100):
        if left := set(threading.enumerate()) - before:
            time.sleep(0.01)
        else:
            break
    return left


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_items", [0, 1, 3, 50])
def test_results_come_in_order(n_threads, n_items):
    before = set(threading.enumerate())

    def work(item):
        time.sleep(0.002 * (item % 3))
        return item * item

    assert list(overlapped(work, iter(range(n_items)), n_threads)) == [item * item for item in range(n_items)]
    assert not threads_left(before)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("place", [0, 1, 20])
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, MemoryError])
def test_failures_come_in_their_turn(n_threads, place, kind):
    before = set(threading.enumerate())

    def items():
        yield from range(place)
        raise kind("read")

    def work(item):
        if item == place:
            raise kind("work")
        return item

    for stream, sentence in ((items(), "read"), (iter(range(40)), "work")):
        found = []
        with pytest.raises(kind, match=sentence):
            found.extend(overlapped(work, stream, n_threads))
        assert found == list(range(place))
    assert not threads_left(before)


def test_few_items_are_held_however_slow_their_reader_is():
    n_read, n_done, most = 0, 0, 0

    def items():
        nonlocal n_read, most
        for item in range(100):
            n_read += 1
            most = max(most, n_read - n_done)
            yield item

    for _ in overlapped(lambda item: item, items(), 3):
        time.sleep(0.001)
        n_done += 1
    assert n_done == 100
    assert most <= 3 + 4


def test_it_ends_when_nobody_wants_more():
    before, closed = set(threading.enumerate()), []

    def items():
        try:
            yield from range(10**9)
        finally:
            closed.append(threading.current_thread())

    with closing(overlapped(lambda item: item, items(), 2)) as results:
        assert next(results) == 0
    assert not threads_left(before)
    assert len(closed) == 1


def test_a_reader_that_waits_for_ever_does_not_hold_up_a_failure(monkeypatch):
    monkeypatch.setattr("rankplane.overlap.PATIENCE", 0.05)
    never = threading.Event()

    def items():
        yield 1
        never.wait()

    with closing(overlapped(lambda item: item, items(), 2)) as results:
        assert next(results) == 1
    never.set()
