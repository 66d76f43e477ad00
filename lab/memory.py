"""The peak of this process's memory."""

import ctypes
import resource
import sys
from contextlib import suppress
from pathlib import Path


def status_bytes(field: str) -> int | None:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def peak_bytes() -> int:
    peak = status_bytes("VmHWM")
    # Kilobytes on Linux, bytes on macOS.
    return (
        peak if peak is not None else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    )


def reset_peak() -> None:
    """Best effort: without it, memory that loading has touched and given back hides as much of the fit's."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
