"""This package: C by CSearchCV, probabilities from the held-out scores of the same search, the decision of least
expected cost for each measure.
"""

from typing import Any

from benchmarks.accuracy.predictions import MEASURES, Predictions
from benchmarks.common import timed
from benchmarks.data import Data
from rankplane import NPSVOR, CSearchCV

CS = [2.0**k for k in range(-6, 3)]
OURS = "rankplane NPSVOR"
VARIANTS: dict[str, dict[str, Any]] = {OURS: {}}


def missing() -> str | None:
    return None


def run(data: Data) -> Predictions:
    search = CSearchCV(NPSVOR(probability=True, ranks=range(data.n_ranks)), Cs=CS, n_jobs=1)
    seconds, _ = timed(lambda: search.fit(data.X, data.y, groups=data.groups))
    model = search.best_estimator_
    ranks = {measure: model.set_params(decision=measure).predict(data.X_test) for measure in MEASURES}
    return Predictions(ranks, seconds, f"C = {search.best_C_:g}")
