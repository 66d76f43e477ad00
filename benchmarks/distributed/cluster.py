"""Seconds to a settled error on Dask's local workers of one thread: ``python -m benchmarks.distributed.cluster``.

The first fit on a cluster is not timed: workers import their packages in it. All of a fit on workers' own rows counts: the
vocabulary is not part of it. A tenth of the rows is held out whatever the number of workers, and ``settled`` are the seconds of
the rounds until its error had settled. Beside: scikit-learn's SGDClassifier over the same parts by ``partial_fit``, in one process.
"""

import logging
import time
from typing import Any

import numpy as np
from distributed import Client, LocalCluster
from sklearn.linear_model import SGDClassifier

from benchmarks.common import Log, each_set, options_parser
from benchmarks.distributed.rounds import mae, shards_of
from lab import data as data_sets
from lab.data import Data
from lab.display import console
from rankplane import NPSVOR
from rankplane.dask import fit

SIZES = (1, 2, 4)
EPOCHS = 5
HOLDOUT = 0.1


def on_workers(data: Data, size: int, n_repeats: int) -> dict[str, Any]:
    model = NPSVOR(ranks=range(data.n_ranks))
    cluster = LocalCluster(n_workers=size, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR)
    with cluster, Client(cluster) as client:
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        parts = [client.scatter(part, workers=[worker]) for part, worker in zip(shards_of(data, size), workers, strict=True)]
        fit(client, model, parts, holdout=HOLDOUT)
        seconds, settled, fitted = [], [], None
        for _ in range(n_repeats):
            start = time.perf_counter()
            fitted = fit(client, model, parts, holdout=HOLDOUT)
            seconds.append(time.perf_counter() - start)
            first = [one for one in fitted.rounds_ if one.phase != "final planes"]
            settled.append(sum(one.seconds_computing + one.seconds_exchanging for one in first))
    rounds = fitted.rounds_
    return {
        "competitor": "rankplane.dask",
        "workers": size,
        "seconds": seconds,
        "settled": settled,
        "mae": mae(fitted, data),
        "rounds": len(rounds),
        "rounds_to_settled": len(first),
        "sweeps": rounds[-1].n_sweeps,
        "computing": sum(one.seconds_computing for one in rounds),
        "exchanging": sum(one.seconds_exchanging for one in rounds),
    }


def by_gradients(data: Data, n_repeats: int) -> dict[str, Any]:
    seconds, fitted = [], None
    for _ in range(n_repeats):
        fitted = SGDClassifier(alpha=1 / data.X.shape[0], random_state=0)
        start = time.perf_counter()
        for _ in range(EPOCHS):
            for X, y in shards_of(data, 4):
                fitted.partial_fit(X, y, classes=np.arange(data.n_ranks))
        seconds.append(time.perf_counter() - start)
    return {"competitor": "SGDClassifier.partial_fit", "workers": 1, "seconds": seconds, "mae": mae(fitted, data)}


def in_one_place(data: Data, n_repeats: int) -> dict[str, Any]:
    seconds, fitted = [], None
    for _ in range(n_repeats):
        start = time.perf_counter()
        fitted = NPSVOR(ranks=range(data.n_ranks)).fit(data.X, data.y)
        seconds.append(time.perf_counter() - start)
    return {"competitor": "rankplane", "workers": 1, "seconds": seconds, "mae": mae(fitted, data)}


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.distributed.cluster", __doc__, ["synthetic:600000x1000000x8x60"])
    parser.add_argument("--workers", type=int, nargs="+", default=SIZES, help="numbers of workers")
    parser.add_argument("--repeats", type=int, default=3, help="times of each fit, of which the best counts")
    options = parser.parse_args(arguments)
    log = Log("cluster", not options.no_save)
    for data in each_set(options, data_sets):
        runs = [in_one_place(data, options.repeats), by_gradients(data, options.repeats)]
        for line in [*runs, *(on_workers(data, size, options.repeats) for size in options.workers)]:
            log.write(data=data.describe(), **line)
            settled = f" ({min(line['settled']):.2f} s to a settled error)" if "settled" in line else ""
            took = f"{min(line['seconds']):.2f} s{settled}, MAE {line['mae']:.4f}"
            console.print(f"{data.name} {line['competitor']} {line['workers']}: {took}")


if __name__ == "__main__":
    main()
