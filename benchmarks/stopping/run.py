"""The default stopping rule against the paper's tolerance of 0.1: ``python -m benchmarks.stopping.run``.

Every model is fitted with C = 1 on all training rows, by each rule, with one thread and with two, and in several orders of the
rows. Gap, sweeps and processor time are those of the first fit; how much the fits differ on test rows shows what depends on chance.
"""

from typing import Any

import numpy as np

from benchmarks.common import Log, each_set, options_parser
from benchmarks.search import choice
from lab.competitors.rankplane import PAPER_TOL
from lab.display import progress
from lab.measures import measures
from lab.results import Line
from lab.timing import processor_timed
from rankplane import NPSVOR, SVC, SVMOP, SVOR, SVR, RedSVM

MODELS = (NPSVOR, SVC, SVR, SVMOP, RedSVM, SVOR)
RULES = {"paper": PAPER_TOL, "default": None}
# The first fit, and those that should not differ from it.
FITS: tuple[dict[str, Any], ...] = ({}, {"n_jobs": 2}, {"random_state": 1}, {"random_state": 2}, {"random_state": 3})
N_ROUNDS = 3


def measure(name: str, X: Any, y: Any, n_train: int) -> list[Line]:
    X, X_test, y, y_test = X[:n_train], X[n_train:], y[:n_train], y[n_train:]
    about = {"name": name, "rows": n_train, "values": int(getattr(X, "nnz", X.size)), "ranks": int(y.max()) + 1}
    lines = []
    with progress(name, len(MODELS) * len(RULES)) as advance:
        for model in MODELS:
            for rule, tol in RULES.items():
                advance(f"{model.__name__}, {rule}")
                models = [model(tol=tol, ranks=range(about["ranks"]), **options) for options in FITS]
                # In a second round, memory is warm; the least time counts.
                seconds = min(processor_timed(lambda first=models[0]: first.fit(X, y))[0] for _ in range(N_ROUNDS))
                predictions = [each.fit(X, y).predict(X_test) for each in models]
                maes = [measures(ranks, y_test)["mae"] for ranks in predictions]
                first = models[0]
                lines.append(
                    {
                        "data": about,
                        "model": model.__name__,
                        "rule": rule,
                        "sweeps": float(first.n_iter_.mean()),
                        "seconds": seconds,
                        "gap": float(np.max(first.duality_gap_ / (first.duality_gap_ - first.dual_objective_))),
                        "mae": maes,
                        "changed": [float(np.mean(ranks != predictions[0])) for ranks in predictions[1:]],
                    }
                )
    return lines


def main(arguments: list[str] | None = None) -> None:
    options = options_parser("benchmarks.stopping.run", __doc__, [*choice.TABLES, *choice.TEXTS]).parse_args(arguments)
    log = Log("stopping", not options.no_save)
    for loaded in each_set(options, choice, lambda name, folder: (name, *choice.load(name, folder))):
        for line in measure(*loaded):
            print(
                f"{loaded[0]}: {line['model']}, {line['rule']}: {line['sweeps']:.1f} sweeps, {line['seconds']:.3f} s, "
                f"gap {line['gap']:.1e}, MAE {min(line['mae']):.4f} to {max(line['mae']):.4f}, "
                f"up to {max(line['changed']):.2%} changed",
                flush=True,
            )
            log.write(**line)


if __name__ == "__main__":
    main()
