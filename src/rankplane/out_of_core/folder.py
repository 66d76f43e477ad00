"""The folder of a fit: what its passes over the files have written so far, and whether it belongs to the fit that is asked for."""

import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from rankplane.files import errors_naming
from rankplane.inputs.reading import InputError
from rankplane.options import named
from rankplane.out_of_core.memory import in_units

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

MARK = "rankplane-blocks.json"  # a folder with this file is ours


class Folder:
    """A folder that one process works in at a time. ``state`` is what is known of its content, as plain values."""

    def __init__(self, path: str | os.PathLike[str], *, is_kept: bool) -> None:
        self.path, self.is_kept = Path(path), is_kept
        self.state: dict[str, Any] = {}
        self._lock: BinaryIO | None = None

    def open(self, key: str) -> bool:
        """Take the folder for work with this key, and remove what belongs to other work; whether there is anything left."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file: {named('cache')} must name a folder.")
        if self.path.is_dir() and not self._mark.exists() and any(self.path.iterdir()):
            raise InputError(f"{self.path} has files of others in it: {named('cache')} must name an empty folder or a new one.")
        with errors_naming(str(self.path)):
            self.path.mkdir(parents=True, exist_ok=True)
            self._take()
            self.state = self.read_json(MARK) or {}
            if self.state.get("key") == key:
                return True
            self.clear()
            self.state = {"key": key}
            self.save()
        return False

    @property
    def _mark(self) -> Path:
        return self.path / MARK

    def _take(self) -> None:
        self._lock = open(self.path / "lock", "ab")  # noqa: SIM115, held as long as the work
        if fcntl is None:
            return
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise InputError(f"{self.path} is in use by another process: give {named('cache')} another name.") from None

    def save(self) -> None:
        self.write_json(MARK, self.state)

    def write_json(self, name: str, value: Any) -> None:
        """Write a file that is there when it is complete."""
        draft = self.path / f"{name}.partial"
        draft.write_text(json.dumps(value), encoding="utf-8")
        os.replace(draft, self.path / name)

    def read_json(self, name: str) -> Any:
        """None if it is not there."""
        with suppress(FileNotFoundError, ValueError):
            return json.loads((self.path / name).read_text(encoding="utf-8"))
        return None

    def check_space(self, n_bytes: int) -> None:
        """Refuse to start what the disk has no room for; what the folder has already does not count."""
        own = sum(path.stat().st_size for path in self.path.iterdir() if path.is_file())
        free = shutil.disk_usage(self.path).free
        if free < n_bytes - own:
            raise InputError(
                f"{self.path} needs about {in_units(n_bytes - own)} of disk space, but its disk has {in_units(free)} left: "
                f"name a folder on another disk by {named('cache')}."
            )

    def clear(self) -> None:
        """Remove all that we have written, but the lock."""
        for path in self.path.iterdir():
            if path.name != "lock" and path.is_file():
                path.unlink()

    def remove(self, prefixes: Sequence[str]) -> None:
        """Remove files whose names begin so."""
        for path in self.path.iterdir():
            if path.name.startswith(tuple(prefixes)):
                path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Let go of the folder. What is needed to go on stays, unless nobody could: after an error in the data, or at the end."""
        is_wanted = self.is_kept or (kind is not None and not issubclass(kind, ValueError))
        if self._lock is None:  # it is not ours
            return
        if not is_wanted:
            self.clear()
        self._lock.close()
        self._lock = None
        if not is_wanted:
            with suppress(OSError):
                (self.path / "lock").unlink()
                self.path.rmdir()


def key_of(files: Sequence[str], *settings: Any) -> str:
    """What tells work from other work: the files as they are now, and the settings."""
    facts = [(os.path.realpath(path), os.stat(path).st_size, os.stat(path).st_mtime_ns) for path in files]
    return hashlib.sha256(repr((facts, settings)).encode()).hexdigest()
