"""C1 = C2 against the grid of both: is it worth tuning C1 and C2 of NPSVOR separately?"""

from collections.abc import Iterator
from pathlib import Path

from experiments import methods
from experiments.layout import SPLITS, cell, join, ordered, power
from experiments.notebook import Job, Line, Notebook
from experiments.sets import TEXT_SETS, TITLES, Collection, by_seed
from experiments.summaries import collect, difference
from lab.tables import number, table

EXPERIMENT = "c1_and_c2"
GRID = [2.0**k for k in range(-8, 6)]
QUICK_GRID = [2.0**k for k in range(-4, 3, 2)]
N_SPLITS = 3
WORDS = """Both range from 2^-8 to 2^5. Cross-validation with five folds chooses among the 196 pairs, or among the 14 with C1 =
C2. The paper gives no numbers, but says that *tuning these two parameters makes some improvement, but this improvement is not
obvious*.
"""


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    grid = QUICK_GRID if collection.is_quick else GRID
    for name, split, seed in by_seed(collection, TEXT_SETS, N_SPLITS):
        for method in ("C1 = C2", "C1 x C2"):
            settings = methods.PROTOCOL | {"log2_C": [-8, 5], "n_Cs": len(grid), "tol": methods.TOL, "epsilon": methods.EPSILON}
            key = collection.key(name, split, seed, method=method, settings=settings)
            job = (collection, name, split, seed, method, grid)
            yield Job(EXPERIMENT, key, lambda job=job: run(*job))


def run(collection: Collection, name: str, split: str, seed: int, method: str, grid: list[float]) -> Line:
    data = collection.matrices(name, split, seed)
    search, seconds = methods.tuned(data, "NPSVOR", seed, Cs=grid, C1s=grid if method == "C1 x C2" else None)
    best = search.best_params_
    result = methods.shape(data) | {"C1": best.get("C1", best.get("C")), "C2": best.get("C2", best.get("C"))}
    result |= {"cv_mae": round(search.best_score_, 5), "processor_seconds": round(seconds, 3)}
    return result | methods.judged(data, search.predict(data.X_test))


def section(notebook: Notebook, pictures: Path) -> str:
    lines = notebook.lines(EXPERIMENT)
    mae, mse, seconds = (collect(lines, field) for field in ("mae", "mse", "processor_seconds"))
    rows, better, worse = [], [], []
    for place in ordered(mae):
        if len(mae[place]) < 2:
            continue
        one, two = mae[place]["C1 = C2"], mae[place]["C1 x C2"]
        mean, half = difference(two, one)
        square, _ = difference(mse[place]["C1 x C2"], mse[place]["C1 = C2"])
        if half is not None and abs(mean) > half:
            (better if mean < 0 else worse).append(f"{TITLES[place[0]]}, {SPLITS[place[1]]}")
        first = next(line for line in lines if (line["set"], line["split"]) == place and line["method"] == "C1 x C2")
        ratio = seconds[place]["C1 x C2"].mean / max(seconds[place]["C1 = C2"].mean, 1e-9)
        pair = f"{power(first['C1'])}, {power(first['C2'])}"
        change = f"{mean:+.4f}" + ("" if half is None else f" ± {half:.4f}")
        rows.append((TITLES[place[0]], SPLITS[place[1]], pair, cell(one), cell(two), change, f"{square:+.4f}", number(ratio, 1)))
    if not rows:
        return ""
    head = ("data", "split", "C1, C2, first split", "MAE, C1 = C2", "MAE, grid", "change of MAE", "of MSE", "times the work")
    verdict = f"Significant differences: the grid is better on {join(better)} and worse on {join(worse)}.\n"
    return "\n".join(["## C1 = C2 against a grid over both\n", WORDS, table(head, rows, left=3), verdict])
