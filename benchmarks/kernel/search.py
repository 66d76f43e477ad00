"""The whole search, gamma x C x folds, on rows of text: ``python -m benchmarks.kernel.search``.

Ours is timed as it is. scikit-learn's GridSearchCV over SVC would take many hours: single binary problems of the search, one rank
against the rest at one setting on one fold, are timed in a random order until its time is up, and their mean is multiplied
with the number of problems.
"""

import argparse
import time
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.model_selection import StratifiedKFold

from benchmarks.common import Log
from benchmarks.kernel import sets
from benchmarks.kernel.sets import KernelData
from lab.competitors.rankplane import PAPER_TOL
from lab.data import data_folder
from lab.display import console
from lab.timing import timed
from rankplane import NPSVOR, SVC, CSearchCV

GAMMAS = [2.0**k for k in range(-5, 4)]
CS = [2.0**k for k in range(-5, 6)]
N_FOLDS = 5
MODELS = {"NPSVOR": NPSVOR, "SVC": SVC}


def ours(data: KernelData, model: str, n_jobs: int) -> dict[str, Any]:
    estimator = MODELS[model](kernel="rbf", tol=PAPER_TOL, cache_size=1000)
    search = CSearchCV(estimator, Cs=CS, gammas=GAMMAS, cv=N_FOLDS, patience=None, n_jobs=n_jobs)
    seconds, _ = timed(lambda: search.fit(data.X, data.y))
    error = float(np.mean(np.abs(search.predict(data.X_test) - data.y_test)))
    return {"seconds": seconds, "note": "", "best_params": search.best_params_, "cv_mae": search.best_score_, "test_mae": error}


def scikit_learn(data: KernelData, limit: float) -> dict[str, Any]:
    settings = [(gamma, C) for gamma in GAMMAS for C in CS]
    folds = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(data.X, data.y))
    order = np.random.default_rng(0).permutation(len(settings))
    problems = len(settings) * N_FOLDS * data.n_ranks
    seconds: list[float] = []
    start = time.perf_counter()
    for n, place in enumerate(order):
        if time.perf_counter() - start > limit:
            break
        gamma, C = settings[place]
        train, test = folds[n % N_FOLDS]
        model = svm.SVC(C=C, gamma=gamma, cache_size=1000)
        is_rank = data.y == n % data.n_ranks
        seconds.append(timed(lambda m=model, rows=train, y=is_rank: m.fit(data.X[rows], y[rows]))[0])
        seconds[-1] += timed(lambda m=model, rows=test: m.decision_function(data.X[rows]))[0]
    note = f"{len(seconds)} of {problems:,} binary problems timed, their mean times {problems:,}"
    return {"seconds": float(np.mean(seconds)) * problems, "note": note, "timed": [round(s, 3) for s in seconds]}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.kernel.search", description=__doc__)
    parser.add_argument("--data", help="folder of parquet files (default: ../shared/data if it is there)")
    parser.add_argument("--set", default="largemovie:5000", help="as benchmarks/kernel/sets.py names it")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for scikit-learn")
    parser.add_argument("--only", default="", help="competitors whose name holds this")
    parser.add_argument("--no-save", action="store_true", help="do not append to the results")
    options = parser.parse_args(arguments)
    folder = data_folder(options.data)
    if reason := sets.why_not(options.set, folder):
        console.print(reason)
        return
    data = sets.load(options.set, folder)
    log = Log("kernel")
    runs = {
        f"rankplane CSearchCV({model}), {n} thread{'s' * (n > 1)}": (ours, (model, n))
        for n in (2, 1)
        for model in ("NPSVOR", "SVC")
    }
    runs["scikit-learn GridSearchCV(SVC), rank by rank"] = (scikit_learn, (options.limit,))
    for name, (run, rest) in runs.items():
        if options.only not in name:
            continue
        with console.status(name):
            found = run(data, *rest)
        print(f"{data.name}: {name}: {found['seconds']:.1f} s {found['note']} {found.get('best_params', '')}")
        if not options.no_save:
            grid = {"gammas": len(GAMMAS), "Cs": len(CS), "folds": N_FOLDS}
            log.write(kind="search", data=data.describe(), competitor=name, grid=grid, **found)


if __name__ == "__main__":
    main()
