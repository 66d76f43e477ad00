"""Timers: by the clock, by the processor, of competitors in turns, and with a limit."""

import signal
import time
from collections.abc import Callable
from typing import Any, TypeVar

from lab.display import progress

Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def processor_timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """Seconds of processor time of all threads, which do not depend on how busy the machine is."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def take_turns(competitors: dict[str, Callable[[], float]], n_rounds: int, budget: float, title: str) -> dict[str, list[float]]:
    """Seconds of every competitor, run in turns so that a busy minute of the machine hits all of them.

    A competitor that has used up ``budget`` seconds sits out the remaining rounds; each runs at least once.
    """
    seconds: dict[str, list[float]] = {name: [] for name in competitors}
    with progress(title, n_rounds * len(competitors)) as advance:
        for round_number in range(n_rounds):
            for name, run in competitors.items():
                advance(f"round {round_number + 1} of {n_rounds}: {name}")
                if sum(seconds[name]) < budget or not seconds[name]:
                    seconds[name].append(run())
    return seconds


class OutOfTimeError(Exception):
    pass


def within(limit: float, work: Callable[[], Result]) -> Result:
    """Raises OutOfTimeError after ``limit`` seconds of processor time."""

    def give_up(*_: Any) -> None:
        raise OutOfTimeError

    # scipy's minimiser calls back into Python for every function value, where the signal is noticed.
    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        return work()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
