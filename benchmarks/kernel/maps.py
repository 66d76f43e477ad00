"""An exact kernel against scikit-learn's approximate ones in front of the linear solver: ``python -m benchmarks.kernel.maps``.

Seconds are of processor time, so that a busy machine does not matter.
"""

from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline

from benchmarks.common import Log, each_set, options_parser
from benchmarks.kernel import sets
from lab.competitors.rankplane import PAPER_TOL
from lab.timing import processor_timed
from rankplane import NPSVOR

C = 10.0
SIZES = (300, 1000)


def models(gamma: float) -> dict[str, Any]:
    found: dict[str, Any] = {
        "linear": NPSVOR(C=C, tol=PAPER_TOL),
        "exact": NPSVOR(C=C, tol=PAPER_TOL, kernel="rbf", gamma=gamma, cache_size=2000),
    }
    for kind in (Nystroem, RBFSampler):
        for size in SIZES:
            features = kind(gamma=gamma, n_components=size, random_state=0)
            found[f"{kind.__name__} {size}"] = make_pipeline(features, NPSVOR(C=C, tol=PAPER_TOL))
    return found


def main(arguments: list[str] | None = None) -> None:
    options = options_parser("benchmarks.kernel.maps", __doc__, [*sets.TABLES, "californiahousing"]).parse_args(arguments)
    log = Log("kernel", not options.no_save)
    for data in each_set(options, sets):
        X, X_test = (part.astype(np.float32) for part in (data.X, data.X_test))
        for competitor, model in models(data.gamma).items():
            seconds, _ = processor_timed(lambda m=model, rows=X, y=data.y: m.fit(rows, y))
            mae = float(np.mean(np.abs(model.predict(X_test) - data.y_test)))
            print(f"{data.name}: {competitor}: MAE {mae:.4f}, {seconds:.2f} s")
            log.write(kind="maps", data=data.describe(), competitor=competitor, C=C, mae=mae, seconds=seconds)


if __name__ == "__main__":
    main()
