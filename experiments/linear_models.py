"""The table of linear models: MAE and MSE of SVC, SVR, RedSVM and NPSVOR, and of SVOR and SVMOP, with average ranks.

The table of the two rankers and the confusion matrices read the same lines.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import methods
from experiments.layout import against_paper, honest, join, measure_table, ordered, plain, ranks_table
from experiments.notebook import Job, Line, Notebook
from experiments.published import LINEAR_MAE, LINEAR_MSE, LINEAR_RANKS
from experiments.sets import TEXT_SETS, TITLES, Collection, by_seed
from experiments.summaries import Samples, collect

EXPERIMENT = "linear_models"
SETS = ("treebank_features", *TEXT_SETS)
WHY = """With exactly the same matrix, features cannot explain a difference: the printed values may come from another C, from
stopping earlier or from other rows. Treebank, MovieReview and LargeMovie are the same texts, tokenised differently. Where we have
a different sample of the same reviews, all models have larger errors here than in the paper; the section on copies gives a likely
reason.
"""
FOUR = ("SVC", "SVR", "RedSVM", "NPSVOR")
SHOWN = (*FOUR, "SVOR", "SVMOP")
METHODS = (*SHOWN, "NPSVOR, r_old")
WORDS = """C is chosen by 5-fold cross-validation, as in the paper. Each cell is the mean over the splits ± half of its 95 %
confidence interval, which accounts for rows that splits share. The lowest mean of each row is bold, significant or not. SVOR and
SVMOP are not in the paper's table of linear models; it says that there was no large-scale algorithm for SVOR.
"""


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    for name, split, seed in by_seed(collection, SETS):
        for method in METHODS:
            key = collection.key(name, split, seed, method=method, settings=settings(method))
            yield Job(
                EXPERIMENT, key, lambda name=name, split=split, seed=seed, method=method: run(collection, name, split, seed, method)
            )


def settings(method: str) -> Line:
    return methods.PROTOCOL | {"tol": methods.SVR_TOL if method == "SVR" else methods.TOL, "epsilon": methods.EPSILON}


def run(collection: Collection, name: str, split: str, seed: int, method: str) -> Line:
    data = collection.matrices(name, split, seed)
    search, seconds = methods.tuned(data, method, seed)
    best = search.best_estimator_
    answers = best.predict(data.X_test)
    result: dict[str, Any] = methods.shape(data) | {"C": search.best_C_, "cv_mae": round(search.best_score_, 5)}
    result |= methods.judged(data, answers)
    if split == "plain" and (groups := collection.load(name).groups) is not None:
        result |= by_copies(np.abs(answers - data.y_test), np.isin(groups[data.rows_test], groups[data.rows]))
    return result | {"n_support": int(best.n_support_.sum()), "processor_seconds": round(seconds, 3)}


def by_copies(errors: NDArray[Any], has_copy: NDArray[np.bool_]) -> Line:
    """MAE of the test rows with a copy among the training rows, and of those without."""
    share = float(np.mean(has_copy))
    of_copies, of_others = (float(np.mean(errors[chosen])) for chosen in (has_copy, ~has_copy))
    return {"copied_share": round(share, 5), "mae_of_copies": round(of_copies, 5), "mae_of_others": round(of_others, 5)}


def section(notebook: Notebook, pictures: Path) -> str:
    lines = [line for line in notebook.lines(EXPERIMENT) if line["method"] in SHOWN]
    if not lines:
        return ""
    parts = ["## Linear models: SVC, SVR, RedSVM, NPSVOR, and SVOR and SVMOP\n", WORDS]
    for measure, published in (("mae", LINEAR_MAE), ("mse", LINEAR_MSE)):
        samples = collect(lines, measure)
        places = ordered(samples)
        parts += [f"### Test {measure.upper()}\n", measure_table(samples, places, SHOWN, published)]
        parts += ["Average ranks, 1 is best:\n", ranks_table(samples, places, LINEAR_RANKS[measure], published, FOUR, SHOWN)]
        parts += [f"{measure.upper()}, cell by cell:\n", against_paper(samples, places, FOUR, published)]
    parts += [WHY, findings(collect(lines, "mae"), collect(lines, "mse"))]
    return "\n".join(parts)


def findings(mae: Samples, mse: Samples) -> str:
    """What the lines say about the paper's claims."""
    parts = []
    for title, choose in (("plain", plain), ("leak-free", honest)):
        for measure, samples in (("MAE", mae), ("MSE", mse)):
            places = [p for p in choose(samples) if all(method in samples[p] for method in SHOWN)]
            if not places:
                continue
            best = {p: min(SHOWN, key=lambda method, p=p: samples[p][method].mean) for p in places}
            of_four = {p: min(FOUR, key=lambda method, p=p: samples[p][method].mean) for p in places}
            n_best = sum(method == "NPSVOR" for method in of_four.values())
            others = [f"{TITLES[p[0]]} ({method})" for p, method in of_four.items() if method != "NPSVOR"]
            text = f"- {title} splits, {measure}: NPSVOR is the best of the paper's four models on {n_best} of {len(places)} sets"
            text += f"; best on the others: {join(others)}" if others else ""
            winners = [f"{TITLES[p[0]]} ({method})" for p, method in best.items() if method in ("SVOR", "SVMOP")]
            parts.append(text + (f". If SVOR and SVMOP are included, they are best on {join(winners)}." if winners else "."))
    return "\n".join(parts) + "\n"
