"""The servers that are compared, each with a model of the same texts: trained, started on a free port, asked, and ended."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import ROOT

HOST = "127.0.0.1"
START_SECONDS = 180
OURS, THEIRS = "rankplane serve", "FastAPI and scikit-learn"


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    name: str
    port: int
    pid: int

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/predict"

    def ask(self, body: Any) -> Any:
        """The answer to one request, which must be right before any is timed."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.address, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)

    def processor_seconds(self) -> float:
        """What all its processes have taken since they were started."""
        ticks = 0
        for pid in processes_of(self.pid):
            # The name of the program, in brackets, may contain spaces.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


def processes_of(pid: int) -> list[int]:
    """A process and its children."""
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def missing() -> str | None:
    """Why the comparison cannot be made here, if it cannot."""
    lacks = [name for name in ("fastapi", "uvicorn", "starlette") if importlib.util.find_spec(name) is None]
    return f"{', '.join(lacks)} is not installed (the extra bench)" if lacks else None


def train_rankplane(texts: Sequence[str], ranks: Sequence[int], folder: Path, name: str = "stars") -> Path:
    from sklearn.pipeline import make_pipeline

    from rankplane import NPSVOR, TextVectorizer, save_model

    path = folder / f"{name}.rankplane"
    vectorizer = TextVectorizer(ngram_range=(1, 2), min_df=2)
    pipeline = make_pipeline(vectorizer, NPSVOR(C=0.5, probability=True, decision="mae")).fit(texts, ranks)
    save_model(pipeline, path, metadata={"inputs": {"target": "stars", "text": ["text"]}})
    return path


def train_scikit_learn(texts: Sequence[str], ranks: Sequence[int], folder: Path) -> Path:
    import joblib
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    path = folder / "stars.joblib"
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    joblib.dump(make_pipeline(vectorizer, LogisticRegression(C=10, max_iter=200)).fit(texts, ranks), path)
    return path


def free_port() -> int:
    with socket.create_server((HOST, 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def started(name: str, command: list[str], port: int, environment: dict[str, str] | None = None) -> Iterator[Server]:
    """A process that answers on the port, until the block ends."""
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **(environment or {})}, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection((HOST, port), timeout=1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit(f"{name} did not start.") from None
                time.sleep(0.05)
        yield Server(name, port, process.pid)
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def rankplane_server(model: Path, workers: int, *options: str) -> Iterator[Server]:
    port = free_port()
    command = [sys.executable, "-m", "rankplane", "serve", str(model), "--port", str(port), "--workers", str(workers), *options]
    with started(OURS, command, port) as server:
        yield server


@contextmanager
def fastapi_server(model: Path, workers: int) -> Iterator[Server]:
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "benchmarks.serve.simple_fastapi:app", "--log-level", "warning", "--no-access-log"]
    command += ["--host", HOST, "--port", str(port), "--workers", str(workers)]
    with started(THEIRS, command, port, {"BENCHMARK_MODEL": str(model)}) as server:
        yield server


def load_rankplane(path: Path) -> Any:
    from rankplane import load_model

    return load_model(path)


def load_scikit_learn(path: Path) -> Any:
    import joblib

    return joblib.load(path)


@dataclass(frozen=True)
class Contestant:
    """How a server gets its model, how it is started, and the same model without a server."""

    train: Callable[[Sequence[str], Sequence[int], Path], Path]
    serve: Callable[[Path, int], AbstractContextManager[Server]]
    load: Callable[[Path], Any]


CONTESTANTS = (
    Contestant(train_rankplane, rankplane_server, load_rankplane),
    Contestant(train_scikit_learn, fastapi_server, load_scikit_learn),
)
