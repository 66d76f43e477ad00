"""The confusion matrices of SVC, SVR, RedSVM and NPSVOR: Mobilephone as in the paper, and a set where ranks are harder to tell.

The lines are those of the linear models, counts summed over their splits.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments import linear_models
from experiments.layout import SPLITS
from experiments.linear_models import FOUR
from experiments.notebook import Job, Notebook
from experiments.sets import TITLES, Collection
from experiments.summaries import Place
from lab import drawing
from lab.tables import number, table

PLACES: tuple[Place, ...] = (("mobilephone", "plain"), ("mobilephone", "review"), ("tripadvisor", "plain"))
WORDS = """The paper shows Mobilephone and Cameras; TripAdvisor replaces Cameras, which we do not have. Rows are true
ranks and add up to 100 %; columns are predictions. Counts are summed over all splits.
"""


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    names = {name for name, _ in PLACES}
    return (job for job in linear_models.jobs(collection, notebook) if job.key["method"] in FOUR and job.key["set"] in names)


def counts_of(notebook: Notebook, place: Place) -> dict[str, NDArray[np.int64]]:
    """Summed over the splits; the last line of a seed counts."""
    lines = {
        (line["method"], line["seed"]): line for line in notebook.lines(linear_models.EXPERIMENT, set=place[0], split=place[1])
    }
    found: dict[str, NDArray[np.int64]] = {}
    for (method, _), line in lines.items():
        if method in FOUR:
            found[method] = found.get(method, 0) + np.array(line["confusion"])
    return {method: found[method] for method in FOUR} if len(found) == len(FOUR) else {}


def section(notebook: Notebook, pictures: Path) -> str:
    places = {place: counts_of(notebook, place) for place in PLACES}
    if not any(places.values()):
        first = {(line["set"], line["split"]) for line in notebook.lines(linear_models.EXPERIMENT)}
        places = {place: counts_of(notebook, place) for place in sorted(first)[:2]}
    places = {place: counts for place, counts in places.items() if counts}
    if not places:
        return ""
    figure, panels = drawing.grid(len(places) * len(FOUR), len(FOUR), 2.5, 2.55)
    rows = []
    for row, (place, by_method) in enumerate(places.items()):
        title = f"{TITLES[place[0]]}, split {SPLITS[place[1]]}" if place[1] == "review" else f"{TITLES[place[0]]}, plain split"
        for column, method in enumerate(FOUR):
            shares = 100 * by_method[method] / by_method[method].sum(axis=1, keepdims=True)
            axes = panels[row * len(FOUR) + column]
            draw(axes, shares)
            axes.set_title(f"{title}\n{method}" if column == 0 else f"\n{method}", loc="left")
            n = len(shares)
            middle = float(np.mean(np.diag(shares)[1:-1]))
            far = float(np.mean([shares[0, -1], shares[-1, 0]]))
            ends = float(np.mean([shares[0, 0], shares[-1, -1]]))
            rows.append((title, method, f"1 to {n}", number(far, 1), number(ends, 1), number(middle, 1)))
    shown = drawing.save(figure, pictures, "confusion", "Confusion matrices of four methods")
    head = ("data", "method", "ranks", "% confused between the two ends", "% correct at both ends", "% correct between the ends")
    return "\n".join(["## Confusion matrices\n", WORDS, shown, table(head, rows, left=3)])


def draw(axes: Any, shares: NDArray[np.float64]) -> None:
    n = len(shares)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=100)
    for true in range(n):
        for answered in range(n):
            value = shares[true, answered]
            ink = "white" if value > 68 else "black"
            axes.text(answered, true, f"{value:.0f}", ha="center", va="center", color=ink, fontsize=9)
    axes.set_xticks(range(n), range(1, n + 1))
    axes.set_yticks(range(n), range(1, n + 1))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="answered", ylabel="true rank")
