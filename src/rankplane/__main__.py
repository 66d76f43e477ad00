"""The command ``rankplane``, also ``python -m rankplane``. Signals are handled before anything slow is imported."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
CLEAR_LINE, SHOW_CURSOR = b"\r\x1b[K", b"\x1b[?25h"
at_stop: list[Callable[[], None]] = []  # called by a signal


def stop(number: int, frame: Any) -> None:
    """Clean up and exit at once, with the exit code that shells use for a signal.

    Not by an exception, since a signal may arrive during an import or in a destructor, where an exception would be printed or lost.
    """
    for clean_up in at_stop:
        clean_up()
    for stream in (1, 2):
        with suppress(OSError):
            if os.isatty(stream):
                os.write(stream, CLEAR_LINE + SHOW_CURSOR)  # in case of a progress bar
    with suppress(OSError):
        os.write(2, b"rankplane: stopped\n")
    os._exit(128 + number)


def handle_signals(handler: Any) -> None:
    for name in SIGNALS:
        number = getattr(signal, name, None)
        # An ignored signal stays ignored, as nohup and shells expect.
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def run() -> None:
    handle_signals(stop)
    from rankplane import files, streams

    at_stop.append(files.delete_drafts)
    streams.replace_closed()
    from rankplane.cli.app import main

    code = main()
    streams.flush_standard()
    handle_signals(signal.SIG_IGN)  # the work is done; only Python's shutdown is left
    sys.exit(code)


if __name__ == "__main__":
    run()
