"""The table of small subsets: kernel SVC, SVR, SVOR, RedSVM and NPSVOR against linear NPSVOR.

A tenth of the larger sets, all of the smaller ones, as in the paper; 70 % for training. C and gamma by five folds.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks.data import Data
from experiments import methods
from experiments.layout import join, measure_table, number, power, rank_row, table
from experiments.linear_models import honest, ordered, plain
from experiments.notebook import Job, Line, Notebook
from experiments.published import LINEAR_MAE, SMALL_MAE, SMALL_MSE, SMALL_RANKS, SMALL_SHARES
from experiments.sets import PAPER_NAMES, TEXT_SETS, TITLES, Lab, by_seed, split_rows, vectorised
from experiments.summaries import Samples, collect, errors_of, table_of

EXPERIMENT = "small_subsets"
# Small subsets first: a run that is cut short then has most of them.
FIRST = ("video", "tablets", "moviereview", "mobilephone", "tripadvisor", "largemovie", "treebank")
SETS = (*FIRST, *(name for name in TEXT_SETS if name in PAPER_NAMES and name not in FIRST))
KERNEL_METHODS = ("SVC", "SVR", "SVOR", "RedSVM", "NPSVOR")
LINEAR = "linear NPSVOR"
SHOWN = (*KERNEL_METHODS, LINEAR)
COLUMNS = (*SHOWN, methods.PAIRWISE)
N_SPLITS = 3
GAMMAS = [2.0**k for k in range(-8, 1)]
QUICK_GAMMAS = [2.0**-4, 2.0**-1]
TEST_SHARE = 0.3
WORDS = """RBF kernel, C from 2^-5 to 2^5 and gamma from 2^-8 to 1 by five folds; *linear NPSVOR* as above. A tenth of Video,
Tablets, Mobilephone, TripAdvisor and LargeMovie, all of Treebank and MovieReview, one split of 70 % to 30 %.
"""


def jobs(lab: Lab, notebook: Notebook) -> Iterator[Job]:
    for name, split, seed in by_seed(lab, SETS, N_SPLITS):
        share = 1.0 if lab.is_quick else SMALL_SHARES.get(PAPER_NAMES.get(name, ""), 1.0)
        gammas = QUICK_GAMMAS if lab.is_quick else GAMMAS
        for method in COLUMNS:
            settings = methods.PROTOCOL | {"test": TEST_SHARE, "share": share, "kernel": "linear" if method == LINEAR else "rbf"}
            settings |= {"tol": methods.SVR_TOL if method == "SVR" else methods.TOL, "epsilon": methods.EPSILON}
            settings |= {"n_gammas": 0 if method == LINEAR else len(gammas)}
            key = lab.key(name, split, seed, method=method, settings=settings)
            yield Job(EXPERIMENT, key, partial(run, lab, name, split, seed, method, share, gammas))


def sample(lab: Lab, name: str, split: str, seed: int, share: float) -> Data:
    """The share of the set, its training and test rows; the last one made is kept."""
    tag = f"subset {name} {split} {seed} {share}"
    if tag not in lab._matrices:
        rated = lab.load(name)
        if share < 1:
            rows, _ = train_test_split(np.arange(len(rated.texts)), train_size=share, random_state=seed, stratify=rated.ranks)
            rated = rated.subset(np.sort(rows))
        groups = rated.groups if split == "review" else None
        train, test = split_rows(rated.ranks, groups, seed, TEST_SHARE)
        lab._matrices.clear()
        lab._matrices[tag] = vectorised(rated, train, test, "paper", groups)
    return lab._matrices[tag]


def run(lab: Lab, name: str, split: str, seed: int, method: str, share: float, gammas: list[float]) -> Line:
    data = sample(lab, name, split, seed, share)
    if method == LINEAR:
        search, seconds = methods.tuned(data, "NPSVOR", seed)
    else:
        search, seconds = methods.tuned(data, method, seed, estimator__kernel="rbf", gammas=gammas)
    result = methods.shape(data) | {"C": search.best_C_, "gamma": search.best_params_.get("gamma")}
    result |= {"cv_mae": round(search.best_score_, 5), "processor_seconds": round(seconds, 3)}
    return result | methods.judged(data, search.predict(data.X_test))


def section(notebook: Notebook, pictures: Path) -> str:
    lines = notebook.lines(EXPERIMENT)
    if not lines:
        return ""
    parts = ["## Kernel models on small subsets\n", WORDS]
    for measure, published in (("mae", SMALL_MAE), ("mse", SMALL_MSE)):
        samples = collect(lines, measure)
        places = ordered(samples)
        parts += [f"### Test {measure.upper()} of the subsets\n", measure_table(samples, places, SHOWN, published)]
        rows = [("as printed", "15 sets", *(f"{rank:.2f}" for rank in SMALL_RANKS[measure].values()))]
        shared = {PAPER_NAMES[name]: published[PAPER_NAMES[name]] for name, _ in plain(places) if name in PAPER_NAMES}
        rows.append(rank_row("the paper's figures", "", table_of(published, SHOWN)))
        rows.append(rank_row("the paper's figures, our sets", "", table_of(shared, SHOWN)))
        for title, chosen in (("ours, plain", plain(places)), ("ours, honest", honest(places))):
            rows.append(rank_row(title, "", errors_of(samples, chosen, SHOWN)))
        shown = [[cell.removeprefix(", ") for cell in row] for row in rows]
        parts += ["Average ranks, 1 is best:\n", table(("ranks of", "over", *SHOWN), shown, left=2)]
    parts += [findings(collect(lines, "mae"), lines), inconsistency()]
    return "\n".join(parts)


def inconsistency() -> str:
    """Sets whose subset is the whole set, and what the paper prints for them in two places."""
    whole = [name for name, share in SMALL_SHARES.items() if share == 1]
    pairs = [f"{name} {SMALL_MAE[name][LINEAR]:.3f} and {LINEAR_MAE[name]['NPSVOR']:.3f}" for name in whole]
    return (
        f"For sets taken whole, the paper prints two MAEs of linear NPSVOR, here and among the linear models: {join(pairs)}. "
        "They cannot come from the same features; ours are near the second.\n"
    )


def findings(mae: Samples, lines: list[Line]) -> str:
    """Is the kernel worth its time?"""
    rows = []
    for place in ordered(mae):
        if not {"NPSVOR", LINEAR} <= mae[place].keys():
            continue
        found = {line["method"]: line for line in lines if (line["set"], line["split"]) == place}
        kernel, linear = found["NPSVOR"], found[LINEAR]
        ratio = kernel["processor_seconds"] / max(linear["processor_seconds"], 1e-9)
        change = kernel["mae"] - linear["mae"]
        setting = f"{power(kernel['C'])}, {power(kernel['gamma'])}"
        seconds = (number(kernel["processor_seconds"], 1), number(linear["processor_seconds"], 2))
        rows.append((TITLES[place[0]], place[1], setting, f"{change:+.3f}", *seconds, f"{ratio:,.0f}"))
    if not rows:
        return ""
    better = [row[0] for row in rows if row[3].startswith("-")]
    head = ("data", "split", "C, gamma", "MAE, RBF minus linear NPSVOR", "seconds of its search", "of the linear one", "ratio")
    words = f"The kernel lowers the MAE of NPSVOR on {join(sorted(set(better)))}; its search covers nine times as many settings.\n"
    return "\n".join([table(head, rows, left=3), words])
