"""Rounds to a settled error and bytes per round, for 1 to 16 workers: ``python -m benchmarks.distributed.rounds``.

Workers are threads, which changes neither rounds nor bytes. Rows are dealt at random, as many to each worker.
"""

from typing import Any

import numpy as np

from benchmarks.common import Log, each_set, options_parser
from lab import data as data_sets
from lab.data import Data
from lab.display import console
from rankplane import NPSVOR, CSearchCV
from rankplane.distributed import Round, Threads, fit_shard

SIZES = (1, 2, 4, 8, 16)
SWEEPS = (5, 10)


def shards_of(data: Data, size: int) -> list[tuple[Any, Any]]:
    order = np.random.default_rng(0).permutation(data.X.shape[0])
    return [(data.X[rows], data.y[rows]) for rows in map(np.sort, np.array_split(order, size))]


def fit(model: Any, data: Data, size: int, sweeps: int) -> Any:
    shards = shards_of(data, size)
    return Threads(size).run(lambda comm: fit_shard(model, *shards[comm.rank], comm, sweeps=sweeps))[0]


def measured(name: str, model: Any, data: Data, size: int, sweeps: int) -> dict[str, Any]:
    fitted = fit(model, data, size, sweeps)
    rounds: list[Round] = fitted.rounds_
    return {
        "data": data.describe(),
        "model": name,
        "workers": size,
        "sweeps": sweeps,
        "mae": mae(fitted, data),
        "bytes": max(one.n_bytes for one in rounds),
        "phases": [one.phase for one in rounds],
        "gaps": [one.gap for one in rounds],
        "errors": [None if np.isnan(one.error) else one.error for one in rounds],
        "why_last": [one.why_last for one in rounds],
    }


def mae(model: Any, data: Data) -> float:
    return float(np.abs(model.predict(data.X_test).astype(float) - data.y_test).mean())


def main(arguments: list[str] | None = None) -> None:
    options = options_parser("benchmarks.distributed.rounds", __doc__, ["largemovie", "largemovie:default"]).parse_args(arguments)
    log = Log("rounds", not options.no_save)
    for data in each_set(options, data_sets):
        search = CSearchCV(NPSVOR(probability=True, decision="mae", ranks=range(data.n_ranks)))
        plain = NPSVOR(ranks=range(data.n_ranks))
        log.write(data=data.describe(), model="one place", workers=0, mae=mae(plain.fit(data.X, data.y), data))
        log.write(data=data.describe(), model="one place, search", workers=0, mae=mae(search.fit(data.X, data.y), data))
        cases = [("NPSVOR", plain, size, sweeps) for size in SIZES for sweeps in SWEEPS]
        for name, model, size, sweeps in [*cases, ("search", search, 4, 5), ("search", search, 16, 5)]:
            line = measured(name, model, data, size, sweeps)
            log.write(**line)
            console.print(f"{data.name} {name} {size} workers, {sweeps} sweeps: {len(line['gaps'])} rounds, MAE {line['mae']:.4f}")


if __name__ == "__main__":
    main()
