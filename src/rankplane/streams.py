"""The standard streams as a command finds them: closed, unbuffered, on a full disk, or a pipe whose reader has left.

A failed message must not cost the result, so printing never fails in the middle of the work: the first failure is kept and raised
at the end. Rows that are written to standard output are the result, and fail at once.
"""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EAGAIN
from typing import Any, BinaryIO, TextIO, cast

from rankplane.files import errors_naming

NAME = "standard output"


class FullWriter(io.RawIOBase):
    """Writes every byte or fails. An unbuffered file may write only a part and return the count, which most callers ignore."""

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
        with errors_naming(NAME):
            while rest:
                n_written = self.file.write(rest)
                if not n_written:
                    raise BlockingIOError(EAGAIN, os.strerror(EAGAIN))
                rest = rest[n_written:]
        return n_bytes

    def flush(self) -> None:
        with errors_naming(NAME):
            self.file.flush()

    def close(self) -> None:
        """Leave the underlying file open: it is not ours."""


class DeferringOutput(io.TextIOBase):
    """Standard output for messages: a failed write is kept, and raised by `finish`."""

    def __init__(self, given: TextIO) -> None:
        self.failure: OSError | None = None
        self.is_quiet = False
        self.file = given
        if isinstance(getattr(given, "buffer", None), io.RawIOBase):
            self.file = io.TextIOWrapper(cast(BinaryIO, FullWriter(given.buffer)), given.encoding, given.errors, write_through=True)

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
        if self.is_quiet:
            return len(text)
        with self.deferring_failure():
            try:
                self.file.write(text)
            except UnicodeEncodeError:
                self.file.write(text.encode(self.encoding, "replace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        with self.deferring_failure():
            self.file.flush()

    @contextmanager
    def deferring_failure(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failure = self.failure or error

    def finish(self) -> None:
        """Flush, and raise the first failure if there was one."""
        self.flush()
        if self.failure is not None:
            with errors_naming(NAME):
                raise self.failure


@contextmanager
def deferring_failures() -> Iterator[DeferringOutput]:
    """Replace standard output by one that does not fail before its `finish`."""
    given = sys.stdout
    output = DeferringOutput(given)
    sys.stdout = cast(TextIO, output)
    try:
        yield output
    finally:
        sys.stdout = given


class NoTerminal(io.TextIOBase):
    """Standard error on which no progress bars are shown."""

    def __init__(self, file: TextIO) -> None:
        self.file = file

    def write(self, text: str) -> int:
        return self.file.write(text)

    def flush(self) -> None:
        self.file.flush()


def keeping_quiet(work: Callable[[], None], *, prints_result: bool) -> None:
    """Do the work without progress bars and, unless the result is printed, without messages on standard output. Rows, warnings
    and errors are written.
    """
    output, errors = sys.stdout, sys.stderr
    assert isinstance(output, DeferringOutput)
    output.is_quiet, sys.stderr = not prints_result, cast(TextIO, NoTerminal(errors))
    try:
        work()
    finally:
        output.is_quiet, sys.stderr = False, errors


def output_bytes() -> BinaryIO:
    """Standard output for rows: failures are raised at once."""
    return cast(BinaryIO, FullWriter(sys.stdout.buffer))


def print_error(sentence: str) -> None:
    """Print one line to standard error, if it is open."""
    if sys.stderr is not None:
        with suppress(OSError):
            print(f"rankplane: {' '.join(sentence.split())}", file=sys.stderr, flush=True)


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print_error(f"warning: {message}")


def replace_closed() -> None:
    """Replace closed standard streams: the next file opened would get their descriptors, and receive all that is printed.

    The replacements are opened in the opposite mode, so that using them fails as it would on a closed stream. Only standard error
    is opened for writing, and discards everything.
    """
    for name, flags, mode in (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode, encoding="utf-8", errors="replace"))  # noqa: SIM115


def flush_standard() -> None:
    """Flush, or discard what cannot be written: Python would complain about it at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
