"""Files that are whole or not there: written beside their place under another name, and moved there at the end."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a device or a pipe, which is written to and never replaced."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the place of ``path`` when the block ends well, and leaves no trace when it does not."""
    if is_special(path):
        with open(path, "wb") as file:
            yield file
        return
    place = Path(os.path.realpath(path))  # a link stays, the file that it points to changes
    # In the same folder, since a move between file systems is a copy. Not by tempfile, which would deny others the reading.
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(number, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, place)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(draft)
        if isinstance(error, OSError) and (error.errno in NO_ROOM or error.filename == str(draft)):
            error.filename = os.fspath(path)  # nobody knows the other name
        raise
