"""A long load on one server: python -m benchmarks.serve.soak --seconds 600, from the root of the project.

Clients send texts one by one and in batches, bad requests, and half requests on connections that break off, while the model is
replaced again and again. At the end: no request was lost, every answer was that of the model it names, every bad request was
refused, and the server takes no more memory than after the first replacements. All traffic goes to 127.0.0.1.
"""

import argparse
import http.client
import json
import math
import os
import random
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.common import Log
from benchmarks.serve import servers
from benchmarks.serve.run import read_reviews
from lab.data import data_folder

N_TEXTS = 200  # that are sent
KINDS = {"one": 70, "batch": 10, "why": 2, "bad": 15, "half": 3}  # of requests, in per cent
TAKEN_SECONDS = 60  # for a replaced model to answer
ALLOWED_GROWTH = 0.05, 10e6  # of the memory: a share, and bytes
BAD: list[tuple[bytes, int]] = [
    (b"{", 400),
    (b"\xff\xfe", 400),
    (b"[]", 400),
    (b'{"text": 5}', 400),
    (b'{"txt": "a"}', 400),
    (b'{"text": "a", "set": 2.0}', 400),
    (b'{"rows": [{"nothing": 1}]}', 400),
    (json.dumps({"texts": ["a"] * 2000}).encode(), 413),
    (json.dumps({"text": "a" * 200_000}).encode(), 413),
]


class Soak:
    """What clients expect and what they found."""

    def __init__(self, server: servers.Server, texts: list[str], expected: dict[str, list[int]]) -> None:
        self.server, self.texts, self.expected = server, texts, expected
        self.is_over = False
        self.newest = ""  # the version of the last answer
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.lock = threading.Lock()

    def client(self, seed: int) -> None:
        rng = random.Random(seed)
        connection = http.client.HTTPConnection(servers.HOST, self.server.port, timeout=30)
        while not self.is_over:
            kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
            try:
                found = self.half(rng) if kind == "half" else self.exchange(connection, rng, kind)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                found = f"lost by {type(error).__name__}: {error}"
            with self.lock:
                self.counts[kind] += 1
                if found is not None:
                    self.counts["faults"] += 1
                    self.faults.append(f"{kind}: {found}")
        connection.close()

    def exchange(self, connection: http.client.HTTPConnection, rng: random.Random, kind: str) -> str | None:
        """One request; what was wrong with its answer."""
        wanted, rows = 200, []
        if kind == "bad":
            body, wanted = rng.choice(BAD)
        else:
            rows = [rng.randrange(len(self.texts)) for _ in range(32 if kind == "batch" else 1)]
            body = json.dumps({"texts": [self.texts[row] for row in rows], "set": 0.9, "explain": kind == "why"}).encode()
        connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        if response.getheader("Connection") == "close":
            connection.close()  # opened again by the next request
        answer: Any = json.loads(content)
        if response.status != wanted:
            return f"status {response.status} for {wanted}: {content[:200]!r}"
        if kind == "bad":
            return None if list(answer) == ["error"] else f"no sentence: {content[:200]!r}"
        ranks = [prediction["rank"] for prediction in answer["predictions"]]
        if answer["version"] not in self.expected:
            return f"version {answer['version']} is none of those that were there"
        self.newest = answer["version"]
        own = self.expected[self.newest]
        return None if ranks == [own[row] for row in rows] else f"ranks {ranks} are not those of version {answer['version']}"

    def half(self, rng: random.Random) -> None:
        """A client that goes away in the middle of its request."""
        with socket.create_connection((servers.HOST, self.server.port), timeout=30) as opened:
            opened.sendall(
                b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"[
                    : rng.randrange(10, 95)
                ]
            )

    def wait_for(self, version: str) -> None:
        """Until a replaced model answers."""
        end = time.monotonic() + TAKEN_SECONDS
        while self.newest != version and time.monotonic() < end:
            time.sleep(0.05)
        if self.newest != version:
            self.faults.append(f"version {version} was not taken into use within {TAKEN_SECONDS} seconds")


def memory_of(pid: int) -> int:
    """Bytes that a process and its children take, shared ones counted once."""
    total = 0
    for one in servers.processes_of(pid):
        try:
            with open(f"/proc/{one}/smaps_rollup") as file:
                total += sum(1024 * int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            continue  # it has just ended
    return total


def grown(samples: list[int]) -> int:
    """By how many bytes the last third of the samples lies above the first third. The first two samples are left out where others
    follow: only then have both models been loaded.
    """
    first, last = sorted_thirds(samples[2:] if len(samples) > 4 else samples[-2:])
    return last - first


def sorted_thirds(samples: list[int]) -> tuple[int, int]:
    n = max(1, len(samples) // 3)
    return sorted(samples[:n])[n // 2], sorted(samples[-n:])[n // 2]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "benchmarks.serve.soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of parquet files with columns `text` and `rating`; generated texts if there is none")
    parser.add_argument("--set", default="mobilephone", help="name of the file")
    parser.add_argument("--seconds", type=int, default=600, help="at most an hour")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between replacements of the model")
    parser.add_argument("--clients", type=int, default=8, help="at most 64")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-save", action="store_true", help="do not append to the results")
    options = parser.parse_args(arguments)
    if not (0 < options.seconds <= 3600 and 0 < options.clients <= 64):
        raise SystemExit("benchmarks.serve: --seconds is at most 3600, and --clients at most 64.")
    from rankplane import load_model
    from rankplane.serving.models import check_sum

    texts, ranks = read_reviews(data_folder(options.data), options.set, 20_000)
    sent = [text[:2000] for text in texts[:N_TEXTS]]
    half = len(texts) // 2
    log = Log("serve", not options.no_save)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = [
            servers.train_rankplane(texts[:half], ranks[:half], folder, "one"),
            servers.train_rankplane(texts[half:], ranks[half:], folder, "other"),
        ]
        expected = {check_sum(str(path)): load_model(path).predict(sent).tolist() for path in models}
        live = folder / "live.rankplane"
        shutil.copy(models[0], live)
        with servers.rankplane_server(live, options.workers) as server:
            soak = Soak(server, sent, expected)
            threads = [threading.Thread(target=soak.client, args=(seed,), daemon=True) for seed in range(options.clients)]
            for thread in threads:
                thread.start()
            samples, start, versions = [memory_of(server.pid)], time.monotonic(), list(expected)
            # A number of replacements rather than an end: on a slow machine they take longer.
            for n_swaps in range(1, math.ceil(options.seconds / options.every) + 1):
                time.sleep(min(options.every, max(0.0, start + options.seconds - time.monotonic())))
                soak.wait_for(versions[(n_swaps - 1) % 2])
                samples.append(memory_of(server.pid))
                shutil.copy(models[n_swaps % 2], folder / "new")
                os.replace(folder / "new", live)
                print(
                    f"{time.monotonic() - start:6.0f} s  {sum(soak.counts.values()):9,} requests  "
                    f"{soak.counts['faults']} faults  {samples[-1] / 1e6:.0f} MB",
                    flush=True,
                )
            soak.wait_for(versions[n_swaps % 2])
            soak.is_over, seconds = True, time.monotonic() - start
            for thread in threads:
                thread.join()
    shown = ", ".join(f"{count:,} {kind}" for kind, count in sorted(soak.counts.items()))
    growth, (share, n_bytes) = grown(samples), ALLOWED_GROWTH
    has_grown = growth > share * samples[0] + n_bytes
    print(f"{shown}; {n_swaps} replacements; memory {'+' if growth >= 0 else ''}{growth / 1e6:.1f} MB")
    log.write(
        kind="soak",
        server=server.name,
        seconds=round(seconds),
        clients=options.clients,
        workers=options.workers,
        replacements=n_swaps,
        requests={kind: soak.counts[kind] for kind in KINDS},
        faults=len(soak.faults),
        memory_mb=[round(sample / 1e6, 1) for sample in samples],
        grown_mb=round(growth / 1e6, 1),
    )
    for fault in soak.faults[:20]:
        print(fault)
    if soak.faults or has_grown:
        sys.exit("failed" + (": memory has grown" if has_grown else ""))


if __name__ == "__main__":
    main()
