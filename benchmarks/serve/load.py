"""Load from programs of Debian: wrk, whose connections ask again as soon as they are answered, and h2load at a fixed rate."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

MAX_SECONDS, MAX_CONNECTIONS = 60, 64
LUA = Path(__file__).with_name("requests.lua")


def missing() -> str | None:
    """What is not installed."""
    lacks = [package for program, package in (("wrk", "wrk"), ("h2load", "nghttp2-client")) if shutil.which(program) is None]
    return f"apt-get install {' '.join(lacks)}" if lacks else None


def check(address: str, connections: int, seconds: float) -> None:
    """Nothing but this machine, and not much of it."""
    if urlsplit(address).hostname != "127.0.0.1":
        raise SystemExit(f"Load is for 127.0.0.1 only. Got {address}.")
    if not (0 < seconds <= MAX_SECONDS and 0 < connections <= MAX_CONNECTIONS):
        raise SystemExit(f"Load is for at most {MAX_CONNECTIONS} connections and {MAX_SECONDS} seconds at a time.")


def as_fast_as_possible(address: str, bodies: Sequence[Any], connections: int, seconds: int) -> dict[str, float]:
    """Requests per second, and milliseconds until the answer."""
    check(address, connections, seconds)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("".join(json.dumps(body) + "\n" for body in bodies))
        file.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(LUA), address, "--", file.name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return {"requests_per_second": found["requests"] / found["seconds"], **found}


def at_rate(address: str, body: Any, connections: int, seconds: int, requests_per_second: float) -> dict[str, float]:
    """Milliseconds until the answer, at a steady pace. A connection whose answer is late delays its own next request, so there
    should be many of them: requests of all together then come whether or not others are answered.
    """
    check(address, connections, seconds)
    with tempfile.TemporaryDirectory() as folder:
        data, log = Path(folder, "body.json"), Path(folder, "log")
        data.write_text(json.dumps(body))
        rate = f"--rps={requests_per_second / connections:.3f}"
        command = ["h2load", "--h1", "-t1", f"-c{connections}", "-D", str(seconds), rate, "-d", str(data), f"--log-file={log}"]
        command += ["-H", "content-type: application/json", address]
        subprocess.run(command, capture_output=True, timeout=seconds + 60, check=True)
        lines = [line.split("\t") for line in log.read_text().splitlines()]
    milliseconds = np.array([int(line[2]) for line in lines]) / 1e3
    failed = sum(line[1] != "200" for line in lines)
    p50, p95, p99 = np.percentile(milliseconds, [50, 95, 99]).round(3).tolist()
    return {
        "asked_per_second": requests_per_second,
        "requests_per_second": len(lines) / seconds,
        "requests": len(lines),
        "seconds": seconds,
        "failed": failed,
        "p50": p50,
        "p95": p95,
        "p99": p99,
        "longest": float(milliseconds.max()),
    }
