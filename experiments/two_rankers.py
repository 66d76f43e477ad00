"""The table of the two prediction functions: r_old, the nearest plane, against r_new, which counts boundaries.

The lines are those of the linear models; each ranker has a C of its own.
"""

from collections.abc import Iterator
from pathlib import Path

from experiments import linear_models
from experiments.layout import against_paper, honest, join, measure_table, ordered
from experiments.notebook import Job, Notebook
from experiments.published import RANKERS_MAE, RANKERS_MSE
from experiments.sets import TITLES, Collection
from experiments.summaries import Samples, collect, difference

NAMES = {"NPSVOR, r_old": "r_old", "NPSVOR": "r_new"}


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    return (job for job in linear_models.jobs(collection, notebook) if job.key["method"] in NAMES)


def section(notebook: Notebook, pictures: Path) -> str:
    lines = [
        line | {"method": NAMES[line["method"]]} for line in notebook.lines(linear_models.EXPERIMENT) if line["method"] in NAMES
    ]
    if not lines:
        return ""
    parts = ["## Two prediction functions: r_old and r_new\n", "Both use the same planes, each with its own C.\n"]
    for measure, published in (("mae", RANKERS_MAE), ("mse", RANKERS_MSE)):
        samples = collect(lines, measure)
        places = ordered(samples)
        parts += [f"Test {measure.upper()}:\n", measure_table(samples, places, tuple(NAMES.values()), published)]
        parts += [against_paper(samples, places, tuple(NAMES.values()), published), findings(samples, measure)]
    return "\n".join(parts)


def findings(samples: Samples, measure: str) -> str:
    better, worse, open_ = [], [], []
    for place in honest(ordered(samples)):
        if len(samples[place]) < 2:
            continue
        mean, half = difference(samples[place]["r_new"], samples[place]["r_old"])
        words = f"{TITLES[place[0]]} ({mean:+.3f}{'' if half is None else f' ± {half:.3f}'})"
        (open_ if half is None or abs(mean) <= half else better if mean < 0 else worse).append(words)
    return (
        f"{measure.upper()} of r_new minus r_old, paired by split, leak-free splits: significantly lower on {join(better)}; "
        f"higher on {join(worse)}; no significant difference on {join(open_)}.\n"
    )
