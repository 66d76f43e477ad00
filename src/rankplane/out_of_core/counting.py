"""Counts of n-grams on disk, so that those of a file that is larger than memory can be added up share by share."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.distributed.comm import Bytes
from rankplane.distributed.text import Counts, Level, Places, nothing
from rankplane.files import replacing


def store(path: Path, counts: Counts) -> None:
    """Write what ``StoredCounts`` reads; how often n-grams occur only if that was counted."""
    found: dict[str, NDArray[Any]] = {"text": np.frombuffer(counts.text, dtype=np.uint8), "ends": counts.ends}
    for number, (keys, n_documents, n_occurrences) in enumerate(counts.levels):
        found |= {f"keys_{number}": keys, f"documents_{number}": n_documents.astype(np.uint32)}
        if n_occurrences.any():
            found[f"occurrences_{number}"] = n_occurrences.astype(np.uint32)
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, n_levels=np.array(len(counts.levels)), **found)


class StoredCounts(Counts):
    """The n-grams of a chunk of documents, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _array(self, name: str) -> NDArray[Any]:
        with np.load(self.path) as file:
            return np.asarray(file[name])

    @property
    def n_levels(self) -> int:
        return int(self._array("n_levels"))

    @property
    def terms(self) -> list[bytes]:
        return Counts(self._array("text").tobytes(), self._array("ends"), []).terms

    def level(self, number: int) -> Level:
        with np.load(self.path) as file:
            if f"documents_{number}" not in file:
                return nothing()
            n_documents = file[f"documents_{number}"].astype(np.uint64)
            name = f"occurrences_{number}"
            occurrences = file[name].astype(np.uint64) if name in file else np.zeros(len(n_documents), dtype=np.uint64)
            return file[f"keys_{number}"], n_documents, occurrences

    def keep(self, number: int, places: Places) -> None:
        np.save(self._place(number), places.astype(np.int32))

    def places_of(self, number: int) -> Places:
        return np.asarray(np.load(self._place(number)), dtype=np.int64)

    def _place(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.stem}-places-{number}.npy")


class ByFiles:
    """A file for each share."""

    def __init__(self, folder: Path, n_shares: int) -> None:
        self.folder, self.n_shares = folder, n_shares

    def distribute(self, parts: Iterable[list[Bytes]]) -> Iterator[list[Bytes]]:
        lengths: list[list[int]] = [[] for _ in range(self.n_shares)]
        paths = [self.folder / f"share-{share:05d}" for share in range(self.n_shares)]
        for path in paths:
            path.unlink(missing_ok=True)
        for part in parts:
            for path, own, piece in zip(paths, lengths, part, strict=True):
                with open(path, "ab") as file:
                    file.write(piece.tobytes())
                own.append(len(piece))
        for path, own in zip(paths, lengths, strict=True):
            content = np.fromfile(path, dtype=np.uint8) if path.exists() else np.zeros(0, dtype=np.uint8)
            path.unlink(missing_ok=True)
            yield np.split(content, np.cumsum(own)[:-1])

    def join(self, found: Bytes) -> list[Bytes]:
        return [found]
