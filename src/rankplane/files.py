"""Files that are whole or not there: written beside their place under another name, a draft, and moved there at the end.

A process that is killed leaves its draft behind; whoever writes to the same place next removes it. A draft is locked while it is
written, and the system frees the locks of the dead, so a draft that can be locked belongs to nobody. On a file system that has no
locks, drafts stay.
"""

import io
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

MAX_NAME = 255  # bytes, on all common file systems
MOVING_SECONDS = 60  # more than the time that passes on Windows between closing a draft and moving it
drafts: set[Path] = set()  # those that this process writes


class Output(io.FileIO):
    """A file whose failures bear the name that the user knows."""

    def __init__(self, file: int | str | os.PathLike[str], asked: str | os.PathLike[str]) -> None:
        super().__init__(file, "wb")
        self.asked = os.fspath(asked)

    def write(self, data: Any) -> int:
        with naming(self.asked):
            return super().write(data)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Failures within are failures of this file."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = path, None
        raise


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a device or a pipe, which is written to and never replaced."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the place of ``path`` when the block ends well, and leaves no trace when it does not."""
    if is_special(path):
        with io.BufferedWriter(Output(path, path)) as file:
            yield file
        return
    asked = os.fspath(path)
    place = Path(os.path.realpath(path))  # a link stays, the file that it points to changes
    remove_orphans(place)
    with naming(asked):
        draft, number = new_draft(place)
    file = io.BufferedWriter(Output(number, path))
    try:
        yield file
        with naming(asked):
            file.flush()
            os.fsync(number)
            if fcntl is None:
                file.close()  # Windows moves no open file; others do, and the lock lasts until it is moved
            os.replace(draft, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    finally:
        file.raw.close()  # not by the buffer, which would first write the rest of what failed
        drafts.discard(draft)


def ends_of(place: Path) -> tuple[str, str]:
    """How names of drafts begin and end; what is between tells them apart."""
    start, end = ".", ".rankplane-"
    room = MAX_NAME - len(start + end + ".partial") - 16
    return start + os.fsdecode(os.fsencode(place.name)[:room]) + end, ".partial"


def new_draft(place: Path) -> tuple[Path, int]:
    """A locked file in the same folder, since a move between file systems is a copy."""
    start, end = ends_of(place)
    while True:
        draft = place.with_name(start + os.urandom(8).hex() + end)
        drafts.add(draft)
        try:
            # Not by tempfile, which would deny others the reading.
            number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        except BaseException:
            drafts.discard(draft)
            raise
        if is_held(number, draft):
            return draft, number
        os.close(number)
        drafts.discard(draft)


def is_held(number: int, draft: Path) -> bool:
    """Lock a new draft; False if someone took it for an orphan in the moment before."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(number), os.stat(draft))
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:  # no locks here, so nobody can take it for an orphan either
        return True


def remove_orphans(place: Path) -> None:
    """Remove what dead processes left when they were writing to this place."""
    start, end = ends_of(place)
    pattern = re.compile(re.escape(start) + "[0-9a-f]{16}" + re.escape(end))
    with suppress(OSError), os.scandir(place.parent) as entries:
        for name in [entry.name for entry in entries if pattern.fullmatch(entry.name)]:
            with suppress(OSError):  # somebody else's, or gone already
                remove_orphan(place.with_name(name))


def remove_orphan(draft: Path) -> None:
    if fcntl is None:
        if time.time() - os.stat(draft).st_mtime > MOVING_SECONDS:
            os.unlink(draft)  # which Windows refuses while the file is open
        return
    # For writing, since some network file systems lock nothing else.
    number = os.open(draft, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(draft)
    finally:
        os.close(number)


def drop_drafts() -> None:
    """Before the process ends at once: leave no draft."""
    for draft in list(drafts):
        with suppress(OSError):
            os.unlink(draft)
