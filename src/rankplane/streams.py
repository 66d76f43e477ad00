"""The standard streams as a command finds them: closed, unbuffered, on a full disk, or a pipe whose reader has left.

What is told about a result must not cost the result, so printing never fails in the middle of the work: the first failure is kept
and raised at the end. Rows that are written to standard output are the result, and fail at once.
"""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EAGAIN
from typing import Any, BinaryIO, TextIO, cast

from rankplane.files import naming

NAME = "standard output"


class Whole(io.RawIOBase):
    """Takes every byte or fails: an unbuffered file may take a part of what it is given, and say so by a count that few read."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return int(self.file.fileno())

    def isatty(self) -> bool:
        return bool(self.file.isatty())

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        n_bytes = len(rest)
        with naming(NAME):
            while rest:
                n_written = self.file.write(rest)
                if not n_written:
                    raise BlockingIOError(EAGAIN, os.strerror(EAGAIN))
                rest = rest[n_written:]
        return n_bytes

    def flush(self) -> None:
        with naming(NAME):
            self.file.flush()

    def close(self) -> None:
        """The file beneath is not ours to close."""


class Told(io.TextIOBase):
    """Standard output for what is told about the work."""

    def __init__(self, given: TextIO) -> None:
        self.failure: OSError | None = None
        self.file = given
        if isinstance(getattr(given, "buffer", None), io.RawIOBase):
            self.file = io.TextIOWrapper(cast(BinaryIO, Whole(given.buffer)), given.encoding, given.errors, write_through=True)

    @property
    def buffer(self) -> BinaryIO:
        return self.file.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.file.encoding or "utf-8"

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.file.fileno()

    def isatty(self) -> bool:
        return self.file.isatty()

    def write(self, text: str) -> int:
        with self.keeping_failure():
            try:
                self.file.write(text)
            except UnicodeEncodeError:
                self.file.write(text.encode(self.encoding, "replace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        with self.keeping_failure():
            self.file.flush()

    @contextmanager
    def keeping_failure(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failure = self.failure or error

    def finish(self) -> None:
        """All has been printed by now, or else this fails."""
        self.flush()
        if self.failure is not None:
            with naming(NAME):
                raise self.failure


@contextmanager
def telling() -> Iterator[Told]:
    """Standard output never fails within; `finish` tells whether it did."""
    given = sys.stdout
    told = Told(given)
    sys.stdout = cast(TextIO, told)
    try:
        yield told
    finally:
        sys.stdout = given


def output_bytes() -> BinaryIO:
    """Standard output for rows, which fails at once."""
    return cast(BinaryIO, Whole(sys.stdout.buffer))


def complain(sentence: str) -> None:
    """One line on standard error, if anybody reads it."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"rankplane: {' '.join(sentence.split())}", file=sys.stderr, flush=True)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    complain(f"warning: {message}")


def open_closed() -> None:
    """Put files in the place of closed streams, whose numbers the next file would get, and with them all that is printed.

    These are open the wrong way round, so that using them fails as if they were closed; only complaints to nobody are lost.
    """
    for name, flags, mode in (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode, encoding="utf-8", errors="replace"))  # noqa: SIM115


def leave() -> None:
    """Python would complain at its end about what the streams did not take."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
