"""Compressed files (gzip, zstandard, bzip2, xz), and what the first bytes of a file show about its format."""

import bz2
import gzip
import importlib
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

from rankplane.inputs.batches import InputError

# What the standard library raises for bytes in another format, and for a file that was cut short.
UNPACKING_ERRORS = (zlib.error, lzma.LZMAError, EOFError, gzip.BadGzipFile)
PACKERS = {rb"\x1f\x8b\x08": ("gzip", ".gz"), rb"\x28\xb5\x2f\xfd": ("zstandard", ".zst")}
PACKERS |= {rb"BZh[1-9]1AY&SY": ("bzip2", ".bz2"), rb"\xfd7zXZ\x00": ("xz", ".xz")}
OTHERS = {
    rb"PAR1[^\n]*[\x00-\x08]": "is a parquet file: name it .parquet.",
    rb"PK\x03\x04": "is a spreadsheet or a zip archive: save it as csv.",
    rb"\xd0\xcf\x11\xe0": "is a spreadsheet: save it as csv.",
}


class UnpackError(ValueError):
    """The bytes are not compressed in the way that the file name says."""


class ZstandardFile(io.RawIOBase):
    """Frames of zstandard, one after the other; zstandard's own file object does not notice if a file was cut short."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            self.library: Any = importlib.import_module("zstandard")
        except ImportError:
            raise InputError("Reading .zst files needs zstandard: pip install zstandard.") from None
        self.file = file
        self.frame: Any = None
        self.packed = b""
        self.pending = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.pending:
            self.packed = self.packed or self.file.read(1 << 17)
            if not self.packed:
                if self.frame is not None:
                    raise EOFError("it ends in the middle")
                return 0
            self.frame = self.frame or self.library.ZstdDecompressor().decompressobj()
            try:
                self.pending = self.frame.decompress(self.packed)
            except self.library.ZstdError as error:
                raise UnpackError(str(error)) from None
            self.packed = self.frame.unused_data
            if self.frame.eof:
                self.frame = None
        n_bytes = min(len(buffer), len(self.pending))
        buffer[:n_bytes] = self.pending[:n_bytes]
        self.pending = self.pending[n_bytes:]
        return n_bytes


def zstandard_open(file: BinaryIO) -> Any:
    if sys.version_info >= (3, 14):
        return importlib.import_module("compression.zstd").open(file)
    return io.BufferedReader(ZstandardFile(file), 1 << 16)


UNPACKERS: dict[str, Callable[[BinaryIO], Any]] = {
    "": lambda file: file,
    ".gz": gzip.open,
    ".zst": zstandard_open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


def packed_again(start: bytes, path: str) -> str | None:
    """The message for a compressed file whose name does not say so."""
    for pattern, (packer, ending) in PACKERS.items():
        if re.match(pattern, start):
            remedy = "unpack it once first" if path.endswith(ending) else f"its name must end in {ending}"
            return f"{path} is packed by {packer}: {remedy}."
    return None


def no_text(start: bytes, path: str) -> str | None:
    """The message for a kind of file that is not text."""
    sentences = (sentence for pattern, sentence in OTHERS.items() if re.match(pattern, start))
    return packed_again(start, path) or next((f"{path} {sentence}" for sentence in sentences), None)
