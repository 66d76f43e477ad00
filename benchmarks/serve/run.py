"""Time servers: python -m benchmarks.serve.run, on an idle machine, from the root of the project. Takes about eight minutes.

Two servers, with as many processes each, predict the same texts in turns: as fast as connections that wait for their answers can
ask, and then at half of the rate that rankplane reached. Every answer is checked for its status; one answer of each server is
checked in full before anything is timed. All traffic goes to 127.0.0.1.
"""

import argparse
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Log
from benchmarks.serve import load, servers
from lab import text
from lab.data import data_folder
from rankplane import datasets

N_BODIES = 500


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


def check_answer(server: servers.Server, body: dict[str, Any], known: set[int]) -> None:
    predictions = server.ask(body)["predictions"]
    is_right = len(predictions) == len(body["texts"]) and all(
        prediction["rank"] in known and abs(sum(prediction["probabilities"].values()) - 1) < 1e-4 for prediction in predictions
    )
    if not is_right:
        raise SystemExit(f"{server.name} gives no such answer as asked for; its time means nothing.")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "benchmarks.serve.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of parquet files with columns `text` and `rating`; generated texts if there is none")
    parser.add_argument("--set", default="mobilephone", help="name of the file")
    parser.add_argument("--texts", type=int, default=20_000, help="texts to train on and to send")
    parser.add_argument("--workers", type=int, default=2, help="processes of each server")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 32], help="texts in a request")
    parser.add_argument("--seconds", type=int, default=8, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-save", action="store_true", help="do not append to the results")
    options = parser.parse_args(arguments)
    if reason := servers.missing() or load.missing():
        raise SystemExit(f"benchmarks.serve: {reason}.")
    texts, ranks = read_reviews(data_folder(options.data), options.set, options.texts)
    log = Log("serve", not options.no_save)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        running = [
            stack.enter_context(serve(train(texts, ranks, Path(name)), options.workers))
            for train, serve in servers.CONTESTANTS.values()
        ]
        for server in running:
            check_answer(server, {"texts": texts[:3]}, set(ranks))
            load.as_fast_as_possible(server.address, bodies_of(texts, 1), 4, 2)  # warm-up

        def keep(server: servers.Server, found: dict[str, float], **setting: Any) -> None:
            log.write(server=server.name, texts=len(texts), workers=options.workers, load=os.getloadavg()[0], **setting, **found)
            shown = ", ".join(f"{key} {value}" for key, value in setting.items())
            times = " ".join(f"{key} {found[key]:.2f}" for key in ("p50", "p95", "p99"))
            print(
                f"{server.name:26} {shown:44} {found['requests_per_second']:9.0f} /s  {times} ms  {found['failed']:.0f} failed",
                flush=True,
            )

        most = 0.0
        for n_rows in options.rows:
            bodies = bodies_of(texts, n_rows)
            for connections in options.connections:
                for number in range(options.rounds):
                    for server in running:
                        found = load.as_fast_as_possible(server.address, bodies, connections, options.seconds)
                        keep(server, found, kind="throughput", rows=n_rows, connections=connections, round=number)
                        if server is running[0] and n_rows == 1:
                            most = max(most, found["requests_per_second"])
        if most:
            connections = min(16, max(options.connections))
            for number in range(options.rounds):
                found = load.at_rate(running[0].address, {"texts": [texts[0][:300]]}, connections, options.seconds, most / 2)
                keep(running[0], found, kind="half load", rows=1, connections=connections, round=number)


if __name__ == "__main__":
    main()
