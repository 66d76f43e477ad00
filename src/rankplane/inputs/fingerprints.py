"""What tells whether a file is still the same: a digest of its bytes, taken while they are read, so that they are read once."""

import hashlib
import io
import os
import stat
from typing import Any, BinaryIO

BLOCK = 1 << 17


class Fingerprint:
    """Of a file whose bytes pass by. It has a value once all have; what is no file, such as a pipe, has none.

    The bytes of a pipe cannot be had again, so there is nothing to compare them with.
    """

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.value: str | None = None

    def watching(self, file: io.BufferedReader, *, is_in_order: bool) -> BinaryIO:
        """The file to read instead. One that is read here and there, as parquet is, is read through first."""
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        if is_in_order:
            return io.BufferedReader(WatchedFile(file, self.digest), BLOCK)
        self.finish(file)
        file.seek(0)
        return file

    def finish(self, file: io.BufferedReader) -> None:
        """Take what no reader asked for, such as bytes after the end of a packed file."""
        if self.value is None and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            while block := file.read(BLOCK):
                self.digest.update(block)
            self.value = f"sha256:{self.digest.hexdigest()}"


class WatchedFile(io.RawIOBase):
    """Passes on the bytes of a file, in order, and adds them to a digest. Closing it leaves the file open."""

    def __init__(self, file: io.BufferedReader, digest: Any) -> None:
        self.file, self.digest = file, digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n_bytes = self.file.readinto1(buffer)
        self.digest.update(memoryview(buffer)[:n_bytes])
        return n_bytes
