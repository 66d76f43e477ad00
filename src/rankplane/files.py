"""Atomic writing: a file is written under another name beside its place, as a draft, and moved there when it is complete.

A process that is killed leaves its draft behind; the next process that writes to the same place removes it. A draft is locked while
it is written, and locks end with their process, so a draft that can be locked is an orphan. On file systems without locks, drafts
stay.
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
ORPHAN_SECONDS = 60  # longer than it takes on Windows between closing a draft and moving it
drafts: set[Path] = set()  # being written by this process


class Output(io.FileIO):
    """A file whose errors carry the name that the user gave."""

    def __init__(self, file: int | str | os.PathLike[str], asked: str | os.PathLike[str]) -> None:
        super().__init__(file, "wb")
        self.asked = os.fspath(asked)

    def write(self, data: Any) -> int:
        with errors_naming(self.asked):
            return super().write(data)


@contextmanager
def errors_naming(path: str) -> Iterator[None]:
    """Name this file in errors of the block."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = path, None
        raise


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a device or a pipe, which is written to directly and never replaced."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that replaces ``path`` if the block succeeds, and is removed if it fails."""
    if is_special(path):
        with io.BufferedWriter(Output(path, path)) as file:
            yield file
        return
    asked = os.fspath(path)
    place = Path(os.path.realpath(path))  # replaces the target of a link, not the link
    remove_orphans(place)
    with errors_naming(asked):
        draft, number = new_draft(place)
    file = io.BufferedWriter(Output(number, path))
    try:
        yield file
        with errors_naming(asked):
            file.flush()
            os.fsync(number)
            if fcntl is None:
                file.close()  # Windows cannot move an open file; elsewhere it stays open and so locked
            os.replace(draft, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
    finally:
        file.raw.close()  # not file.close(), which would first write the rest of the buffer
        drafts.discard(draft)


def draft_affixes(place: Path) -> tuple[str, str]:
    """Prefix and suffix of the names of drafts, with a random part in between."""
    start, end = ".", ".rankplane-"
    room = MAX_NAME - len(start + end + ".partial") - 16
    return start + os.fsdecode(os.fsencode(place.name)[:room]) + end, ".partial"


def new_draft(place: Path) -> tuple[Path, int]:
    """A locked file in the same folder: a move between file systems would be a copy."""
    start, end = draft_affixes(place)
    while True:
        draft = place.with_name(start + os.urandom(8).hex() + end)
        drafts.add(draft)
        try:
            # Not by tempfile, whose files only their owner can read.
            number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        except BaseException:
            drafts.discard(draft)
            raise
        if lock_draft(number, draft):
            return draft, number
        os.close(number)
        drafts.discard(draft)


def lock_draft(number: int, draft: Path) -> bool:
    """Lock a new draft; False if another process removed it as an orphan just before."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(number), os.stat(draft))
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:  # a file system without locks, where nobody can take it for an orphan either
        return True


def remove_orphans(place: Path) -> None:
    """Remove drafts for this place that were left behind by killed processes."""
    start, end = draft_affixes(place)
    pattern = re.compile(re.escape(start) + "[0-9a-f]{16}" + re.escape(end))
    with suppress(OSError), os.scandir(place.parent) as entries:
        for name in [entry.name for entry in entries if pattern.fullmatch(entry.name)]:
            with suppress(OSError):  # in use, or gone already
                remove_orphan(place.with_name(name))


def remove_orphan(draft: Path) -> None:
    if fcntl is None:
        if time.time() - os.stat(draft).st_mtime > ORPHAN_SECONDS:
            os.unlink(draft)  # which Windows refuses while the file is open
        return
    # Opened for writing, as some network file systems require for locks.
    number = os.open(draft, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(draft)
    finally:
        os.close(number)


def delete_drafts() -> None:
    """Delete the drafts of this process before it exits abruptly."""
    for draft in list(drafts):
        with suppress(OSError):
            os.unlink(draft)
