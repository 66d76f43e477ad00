"""Time servers: python -m benchmarks.serve.run, on an idle machine, from the root of the project. Takes about eight minutes.

Two servers, with as many processes each, predict the same texts in turns: as fast as connections that wait for their answers can
ask, and then each at half of the rate that it reached. Before anything is timed, hundreds of answers of each server are compared
with what its model says without a server; while it is timed, the status of every answer is checked. All traffic goes to 127.0.0.1.
"""

import argparse
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Log
from benchmarks.serve import load, servers
from lab import text
from lab.data import data_folder
from rankplane import datasets

N_BODIES = 500
BATCH = 32
N_CHECKED, N_CHECKED_ALONE = 320, 64  # answers
ROUNDED = 2e-6  # probabilities are sent with six decimals


def read_reviews(folder: Path | None, name: str, n_texts: int) -> tuple[list[str], list[int]]:
    """Texts and ranks: of a file in the data folder or, without one, generated."""
    if folder is None:
        reviews = datasets.load("generated")
        return list(reviews.texts)[:n_texts], [int(rank) for rank in reviews.ranks[:n_texts]]
    texts, ranks = text.texts_of(text.read_frame(folder / f"{name}.parquet"))
    chosen = np.random.default_rng(0).permutation(len(texts))[:n_texts]
    return [texts[row] for row in chosen], [int(ranks[row]) + 1 for row in chosen]


def bodies_of(texts: list[str], n_rows: int) -> list[dict[str, Any]]:
    """Requests of so many texts each."""
    starts = range(0, min(len(texts), N_BODIES * n_rows) - n_rows + 1, n_rows)
    return [{"texts": texts[start : start + n_rows]} for start in starts]


def check_answers(server: servers.Server, model: Any, texts: list[str]) -> None:
    """The server's answers, to texts alone and in batches, are those that its model gives without a server."""
    ranks, probabilities = model.predict(texts), model.predict_proba(texts)
    for n_rows, n_asked in ((1, min(N_CHECKED_ALONE, len(texts))), (BATCH, len(texts))):
        for start in range(0, n_asked, n_rows):
            rows = slice(start, start + n_rows)
            predictions = server.ask({"texts": texts[rows]})["predictions"]
            found = np.array([list(prediction["probabilities"].values()) for prediction in predictions])
            is_right = [prediction["rank"] for prediction in predictions] == ranks[rows].tolist()
            if not is_right or np.abs(found - probabilities[rows]).max() > ROUNDED:
                raise SystemExit(f"{server.name} does not answer as its model does; its times mean nothing.")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "benchmarks.serve.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of parquet files with columns `text` and `rating`; generated texts if there is none")
    parser.add_argument("--set", default="mobilephone", help="name of the file")
    parser.add_argument("--texts", type=int, default=20_000, help="texts to train on and to send")
    parser.add_argument("--workers", type=int, default=2, help="processes of each server")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, BATCH], help="texts in a request")
    parser.add_argument("--seconds", type=int, default=6, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-save", action="store_true", help="do not append to the results")
    options = parser.parse_args(arguments)
    if reason := servers.missing() or load.missing():
        raise SystemExit(f"benchmarks.serve: {reason}.")
    folder = data_folder(options.data)
    texts, ranks = read_reviews(folder, options.set, options.texts)
    log = Log("serve", not options.no_save)
    about = {"data": "generated" if folder is None else options.set, "texts": len(texts), "workers": options.workers}

    def keep(server: servers.Server, found: dict[str, float], **setting: Any) -> None:
        log.write(server=server.name, load=os.getloadavg()[0], **about, **setting, **found)
        shown = ", ".join(f"{key} {value}" for key, value in setting.items())
        times = " ".join(f"{key} {found[key]:.2f}" for key in ("p50", "p95", "p99"))
        print(
            f"{server.name:26} {shown:44} {found['requests_per_second']:7.0f} /s  {times} ms  "
            f"{found['processor_us']:6.0f} us of processors  {found['failed']:.0f} failed",
            flush=True,
        )

    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        running = []
        for contestant in servers.CONTESTANTS:
            path = contestant.train(texts, ranks, Path(name))
            running.append(stack.enter_context(contestant.serve(path, options.workers)))
            check_answers(running[-1], contestant.load(path), texts[:N_CHECKED])
            print(f"{running[-1].name}: answers checked", flush=True)
            load.as_fast_as_possible(running[-1].address, bodies_of(texts, 1), 4, 2)  # warm-up

        most = dict.fromkeys(running, 0.0)
        for n_rows in options.rows:
            bodies = bodies_of(texts, n_rows)
            for connections in options.connections:
                for number in range(options.rounds):
                    for server in running:
                        with timed(server) as found:
                            found |= load.as_fast_as_possible(server.address, bodies, connections, options.seconds)
                        keep(server, found, kind="throughput", rows=n_rows, connections=connections, round=number)
                        if n_rows == 1:
                            most[server] = max(most[server], found["requests_per_second"])
        connections = max(options.connections)
        typical = {"texts": [sorted(texts, key=len)[len(texts) // 2]]}
        for number in range(options.rounds):
            for server in running:
                if rate := most[server] / 2:
                    with timed(server) as found:
                        found |= load.at_rate(server.address, typical, connections, options.seconds, rate)
                    keep(server, found, kind="half load", rows=1, connections=connections, round=number)


@contextmanager
def timed(server: servers.Server) -> Iterator[dict[str, float]]:
    """A result, which gets the microseconds that all processors took for a request."""
    start = server.processor_seconds()
    found: dict[str, float] = {}
    yield found
    found["processor_us"] = 1e6 * (server.processor_seconds() - start) / max(1, found["requests"])


if __name__ == "__main__":
    main()
