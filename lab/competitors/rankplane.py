"""This package: C by CSearchCV on the ranked probability score, probabilities from the held-out scores of the same
search, the decision of least expected cost for each measure. ``tol`` is the paper's: results then compare across versions with
other defaults.
"""

from typing import Any

from lab.data import Data
from lab.measures import MEASURES
from lab.predictions import Predictions
from lab.timing import processor_timed
from rankplane import NPSVOR, Committee, CSearchCV

PAPER_TOL = 0.1
CS = [2.0**k for k in range(-5, 3)]
MODELS = {"npsvor": NPSVOR, "committee": Committee}
VARIANTS: dict[str, dict[str, Any]] = {
    "rankplane NPSVOR": {"model": "npsvor"},
    "rankplane Committee": {"model": "committee"},
    "rankplane Committee, column weights": {"model": "committee", "column_weight": "ranks"},
}


def missing() -> str | None:
    return None


def run(data: Data, model: str, column_weight: str | None = None) -> Predictions:
    estimator = MODELS[model](probability=True, tol=PAPER_TOL, ranks=range(data.n_ranks), column_weight=column_weight)
    search = CSearchCV(estimator, Cs=CS, cv=5, patience=None, scoring="rps", n_jobs=1)
    ranks = {}
    seconds, _ = processor_timed(lambda: search.fit(data.X, data.y, groups=data.groups))
    for measure in MEASURES:
        best = search.best_estimator_.set_params(decision=measure)
        answering, ranks[measure] = processor_timed(lambda best=best: best.predict(data.X_test))
        seconds += answering if measure == "mae" else 0.0
    return Predictions(ranks, seconds, f"C = {search.best_C_:g}")
