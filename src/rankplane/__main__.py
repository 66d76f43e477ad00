"""The command ``rankplane``, also ``python -m rankplane``: ready to be stopped before anything that takes time is imported."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
CLEAR_LINE, SHOW_CURSOR = b"\r\x1b[K", b"\x1b[?25h"
at_stop: list[Callable[[], None]] = []  # what there is to clean up


def stop(number: int, frame: Any) -> None:
    """End at once, with the exit code that shells have for a signal.

    A signal may come in the middle of an import or of a destructor, where an exception would be shown or lost. So this is no
    exception: it does the little there is to clean up.
    """
    for clean_up in at_stop:
        clean_up()
    for stream in (1, 2):
        with suppress(OSError):
            if os.isatty(stream):
                os.write(stream, CLEAR_LINE + SHOW_CURSOR)  # a bar may have been there
    with suppress(OSError):
        os.write(2, b"rankplane: stopped\n")
    os._exit(128 + number)


def answer_signals(answer: Any) -> None:
    for name in SIGNALS:
        number = getattr(signal, name, None)
        # A signal that is ignored stays so: nohup and shells ask for that.
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, answer)


def run() -> None:
    answer_signals(stop)
    from rankplane import files, streams

    at_stop.append(files.drop_drafts)
    streams.open_closed()
    from rankplane.cli.app import main

    code = main()
    streams.leave()
    answer_signals(signal.SIG_IGN)  # what is done is done, while Python takes its time to end
    sys.exit(code)


if __name__ == "__main__":
    run()
