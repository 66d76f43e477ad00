"""Digests of files, to see whether a file has changed. They are computed while the file is read, so that it is read once."""

import hashlib
import io
import os
import stat
from typing import Any, BinaryIO

BLOCK = 1 << 17


class Fingerprint:
    """The digests of files that are read one after another."""

    def __init__(self) -> None:
        self.files: list[FileFingerprint] = []

    def of_file(self) -> "FileFingerprint":
        """The fingerprint of the next file."""
        self.files.append(FileFingerprint())
        return self.files[-1]

    @property
    def values(self) -> list[str]:
        """Of each file that has one."""
        return [file.value for file in self.files if file.value is not None]

    @property
    def value(self) -> str | None:
        """Of all files: that of a single one, a digest of those of several; None unless every file has one."""
        if not self.values or len(self.values) < len(self.files):
            return None
        return self.values[0] if len(self.values) == 1 else worded(hashlib.sha256("\n".join(self.values).encode()))


def worded(digest: Any) -> str:
    return f"sha256:{digest.hexdigest()}"


class FileFingerprint:
    """The digest of a file, known once all bytes are read. Pipes and the like have none.

    The bytes of a pipe cannot be had again, so there is nothing to compare them with.
    """

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.value: str | None = None

    def watching(self, file: io.BufferedReader, *, is_in_order: bool) -> BinaryIO:
        """The file to read instead. Files that are not read in order, such as parquet, are read once before."""
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        if is_in_order:
            return io.BufferedReader(WatchedFile(file, self.digest), BLOCK)
        self.finish(file)
        file.seek(0)
        return file

    def finish(self, file: io.BufferedReader) -> None:
        """Read the rest, such as bytes after the end of a compressed file."""
        if self.value is None and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            while block := file.read(BLOCK):
                self.digest.update(block)
            self.value = worded(self.digest)


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
