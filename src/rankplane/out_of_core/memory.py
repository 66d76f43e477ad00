"""How much memory there is, how much a fit may use, and what it uses it for."""

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rankplane.inputs.batches import InputError
from rankplane.options import named

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
LEAST = 12 << 20  # bytes, beyond what the program itself takes
READING = 32 << 20  # bytes that readers and the smallest arrays take
UNPACKED = {".gz": 4, ".zst": 4, ".bz2": 4, ".xz": 5, ".parquet": 3}  # how much larger than the file the texts are, about
IN_MEMORY = 7  # bytes that a fit in memory takes for each byte of the files
PER_COLUMN, PER_COLUMN_AND_LANE = 140, 40  # bytes: vocabulary and counts; weights, their sums and changes
PER_ROW = 48  # bytes: rank, row of the table, weight
PER_ENTRY = 28  # bytes of a block that is worked on: its values, scaled, and its columns, renumbered
PER_TEXT = 32  # bytes for each byte of a text whose n-grams are counted
PER_NGRAMS = 32  # bytes for each byte of the texts whose n-grams are added up together
LEAST_TOGETHER, MOST_TOGETHER = 1 << 18, 1 << 27  # entries of the blocks that are in memory at a time
N_TOGETHER = 16  # of these blocks


def parse_size(text: str | int) -> int:
    """Bytes, from a number or from words such as 500M and 2G."""
    found = SIZE.fullmatch(str(text).strip())
    if found is None or float(found[1]) == 0:
        raise InputError(f"{named('memory')} must be a size such as 500M or 2G. Got {text}.")
    return int(float(found[1]) * UNITS[found[2].upper()])


def in_units(n_bytes: float) -> str:
    """A size in words."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes / 1024:.0f} kB"


def used() -> int:
    """Bytes of memory that this process takes; a guess where the system does not tell."""
    with suppress(OSError, IndexError, ValueError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 200 << 20


def available() -> int | None:
    """Bytes that this process could still take: by the system, the limits of its control group, and its own."""
    found = []
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found.append(int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]) << 10)
    for limit, current in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError):
            found.append(int(Path(limit).read_text()) - int(Path(current).read_text()))
    with suppress(ImportError, OSError):
        import resource

        for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            if (limit_here := resource.getrlimit(kind)[0]) != resource.RLIM_INFINITY:
                found.append(limit_here - used())
    if not found and sys.platform != "linux":
        with suppress(AttributeError, ValueError, OSError):
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return max(0, min(found)) if found else None


def size_of(paths: Sequence[str]) -> int:
    """Bytes that the files have once they are unpacked, about; 0 for what is no file."""
    total = 0
    for path in paths:
        if os.path.isfile(path):
            factor = max((by for ending, by in UNPACKED.items() if ending in path.lower()), default=1)
            total += os.path.getsize(path) * factor
    return total


@dataclass(frozen=True)
class Plan:
    """What the memory is used for. It is kept with the blocks, since a fit that goes on must cut its files as before."""

    memory: int
    free: int  # beyond what the program itself takes
    chunk: int  # bytes of texts, or of a table, that are read at a time
    n_shares: int  # of n-grams that are counted one after another
    test_bytes: int  # of the rows to test on

    @classmethod
    def of(cls, memory: int, n_bytes: int) -> "Plan":
        """A plan for files of so many bytes."""
        own = used()
        free = memory - own - READING
        if free < LEAST:
            rule = f"at least {in_units(own + READING + LEAST)}, of which the program itself takes {in_units(own)}"
            raise InputError(f"{named('memory')} must be {rule}. Got {in_units(memory)}.")
        chunk = min(free // 2 // PER_TEXT, 256 << 20)
        return cls(memory, free, chunk, max(1, -(-n_bytes * PER_NGRAMS // free)), free // 16)

    def most_columns(self, n_lanes: int) -> int:
        """How many columns a model may have."""
        return max(1000, self.free // 2 // (PER_COLUMN + PER_COLUMN_AND_LANE * n_lanes))

    def block_entries(self, n_columns: int, n_rows: int, n_lanes: int) -> int:
        """How many entries a block may have, of which several are in memory at a time."""
        left = self.free - n_columns * (PER_COLUMN // 2 + PER_COLUMN_AND_LANE * n_lanes) - n_rows * PER_ROW
        return int(min(max(left // 2 // PER_ENTRY, LEAST_TOGETHER), MOST_TOGETHER)) // N_TOGETHER
