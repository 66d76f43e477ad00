"""The peak memory of this process, and of others."""

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
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
    return most_bytes(resource.getrusage(resource.RUSAGE_SELF)) if peak is None else peak


def most_bytes(usage: resource.struct_rusage) -> int:
    # Kilobytes on Linux, bytes on macOS.
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak() -> None:
    """Reset the peak if the system allows it; otherwise memory that loading has used and freed hides as much of the fit."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


@dataclass(frozen=True)
class Measured:
    """What a process took, and what it wrote to standard output."""

    seconds: float
    processor_seconds: float
    peak_bytes: int
    output: str


def run_measured(command: list[str]) -> Measured:
    """Run a command to its end; it must not fail. Its peak is at least the memory of this process, which it starts as."""
    with tempfile.TemporaryFile() as output:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise subprocess.CalledProcessError(child.returncode, command)
        output.seek(0)
        return Measured(seconds, usage.ru_utime + usage.ru_stime, most_bytes(usage), output.read().decode())
