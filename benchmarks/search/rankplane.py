"""CSearchCV(NPSVOR(tol=0.1)): folds as lanes of one solve, C walked upwards. The fit with the best C is part of it."""

from typing import Any

from benchmarks.search.folds import CS, N_FOLDS, Searched, split
from lab.competitors.rankplane import PAPER_TOL
from lab.data import Data
from lab.measures import measures
from lab.timing import timed
from rankplane import NPSVOR, CSearchCV

VARIANTS: dict[str, dict[str, Any]] = {
    "rankplane CSearchCV, 1 thread": {"n_jobs": 1},
    "rankplane CSearchCV, 2 threads": {"n_jobs": 2},
}


def missing() -> str | None:
    return None


def run(data: Data, limit: float, n_jobs: int) -> Searched:
    search = CSearchCV(NPSVOR(tol=PAPER_TOL, ranks=range(data.n_ranks)), Cs=CS, cv=split(data), patience=None, n_jobs=n_jobs)
    seconds, _ = timed(lambda: search.fit(data.X, data.y))
    return Searched(seconds, N_FOLDS, dict(zip(CS, search.cv_results_["mean_test_score"].tolist(), strict=True)))


def separate_fits(data: Data, C: float, tol: float) -> float:
    """The same answer the plain way: mean MAE over the folds of one fit each."""
    found = []
    for train, test in split(data):
        model = NPSVOR(C=C, tol=tol, ranks=range(data.n_ranks), n_jobs=1).fit(data.X[train], data.y[train])
        found.append(measures(model.predict(data.X[test]), data.y[test])["mae"])
    return sum(found) / len(found)


def fit_seconds(data: Data, n_jobs: int, probability: bool) -> float:
    seconds, _ = timed(lambda: NPSVOR(tol=PAPER_TOL, n_jobs=n_jobs, probability=probability).fit(data.X, data.y))
    return seconds
