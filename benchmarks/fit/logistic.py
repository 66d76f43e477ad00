"""Thresholds with the logistic loss, SVOR here and LogisticAT of mord: ``python -m benchmarks.fit.logistic``.

Both minimise the same objective. Processor time counts, and how far the objective, recomputed from the answer, is above a
certified lower bound: the dual value of a tight fit of ours. mord takes minutes; ``--iterations 20`` measures how far it is after
so many, and nothing else.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Log, each_set, options_parser
from lab import data as data_sets
from lab.competitors.mord import missing
from lab.data import Data
from lab.display import console
from lab.measures import measures
from lab.results import Line
from lab.timing import OutOfTimeError, processor_timed, within
from rankplane import SVOR

TIGHT = {"tol": 1e-6, "max_iter": 5000}


def objective(data: Data, weights: NDArray[Any], offsets: NDArray[Any]) -> float:
    """Half of the squared weights, and the logistic loss at every boundary."""
    weights = weights.astype(np.float64)
    scores = (data.X @ weights)[:, None] + offsets.astype(np.float64)
    is_above = data.y[:, None] > np.arange(len(offsets))
    return float(0.5 * weights @ weights + np.sum(np.logaddexp(0, np.where(is_above, -scores, scores))))


def ours(data: Data, **stopping: Any) -> tuple[float, SVOR]:
    model = SVOR(loss="logistic", ranks=range(data.n_ranks), **stopping)
    seconds, _ = processor_timed(lambda: model.fit(data.X, data.y))
    return seconds, model


def lower_bound(data: Data) -> float:
    return -float(ours(data, **TIGHT)[1].dual_objective_[0])


def measure(data: Data, n_rounds: int, limit: float) -> list[Line]:
    rounds = [ours(data) for _ in range(n_rounds)]
    fitted = rounds[0][1]
    bound = lower_bound(data)
    found = objective(data, fitted.coef_[0], fitted.intercept_)
    answer = {"excess": found / bound - 1, "relative_gap": float(fitted.duality_gap_[0]) / bound}
    answer |= measures(fitted.predict(data.X_test), data.y_test)
    seconds = [round(taken, 4) for taken, _ in rounds]
    lines = [{"competitor": "rankplane SVOR, 1 thread", "seconds": seconds, "answer": answer, "note": ""}]
    if not missing():
        lines.append(theirs(data, bound, limit))
    return lines


def theirs(data: Data, bound: float, limit: float, iterations: int | None = None) -> Line:
    import mord

    model = mord.LogisticAT(alpha=1.0, **({"max_iter": iterations} if iterations else {}))
    name = f"mord LogisticAT, {iterations} iterations" if iterations else "mord LogisticAT"
    try:
        seconds, _ = within(limit, lambda: processor_timed(lambda: model.fit(data.X, data.y)))
    except OutOfTimeError:
        return {"competitor": name, "seconds": [limit], "answer": {}, "note": f"given up after {limit:g} s"}
    answer = {"excess": objective(data, model.coef_, -model.theta_) / bound - 1} | measures(model.predict(data.X_test), data.y_test)
    return {"competitor": name, "seconds": [round(seconds, 3)], "answer": answer, "note": ""}


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.fit.logistic", __doc__, ["largemovie:paper", "largemovie:default"])
    parser.add_argument("--rounds", type=int, default=3, help="of ours; the best counts")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of processor time before mord is given up")
    parser.add_argument("--iterations", type=int, help="only mord, with so many iterations")
    options = parser.parse_args(arguments)
    if reason := missing():
        console.print(f"mord LogisticAT: left out, {reason}.")
    log = Log("logistic", not options.no_save)
    for data in each_set(options, data_sets):
        if options.iterations:
            lines = [theirs(data, lower_bound(data), options.limit, options.iterations)]
        else:
            lines = measure(data, options.rounds, options.limit)
        for line in lines:
            excess = line["answer"].get("excess")
            console.print(data.name, line["competitor"], line["seconds"], "-" if excess is None else f"{excess:.4%}")
            log.write(data=data.describe(), **line)


if __name__ == "__main__":
    main()
