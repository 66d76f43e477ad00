"""The figure of the two prediction functions at work: a toy set like the paper's, three ranks fanned out from a point.

Beyond that point the planes have changed places. The nearest plane then belongs to the wrong end of the scale, while the sums of
neighbouring planes still keep order.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.notebook import Job, Line, Notebook
from experiments.sets import Collection
from lab import drawing
from lab.tables import table
from rankplane import NPSVOR
from rankplane.prediction import rankers

EXPERIMENT = "decision_regions"
SEED = 0
N_PER_RANK = 30
SLOPES = (-0.55, 0.0, 0.55)
ODD_POINTS = ((-1.9, -0.9, 0), (-1.9, 0.9, 2))  # x, y, rank: P1 and P2 of the paper
RANKERS = {"r_old: the nearest plane": rankers.nearest, "r_new: boundaries counted": rankers.ordered}
LIMITS = (-2.6, 4.4, -2.6, 2.6)
WORDS = """A toy data set like the paper's: three ranks fan out from a point. We added two points, P1 and P2, on the other side of
it, where the planes have the opposite order.
"""


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    key = {
        "set": "toy",
        "seed": SEED,
        "settings": {
            "per_rank": N_PER_RANK,
            "slopes": list(SLOPES),
            "odd": [list(odd) for odd in ODD_POINTS],
            "C": 1.0,
            "epsilon": 0.1,
        },
    }
    yield Job(EXPERIMENT, key, run)


def make_toy() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points and ranks; the last two are the odd ones."""
    rng = np.random.default_rng(SEED)
    points, ranks = [], []
    for rank, slope in enumerate(SLOPES):
        x = rng.uniform(0.9, 4.0, N_PER_RANK)
        points.append(np.column_stack([x, slope * x + rng.normal(0, 0.16, N_PER_RANK)]))
        ranks += [rank] * N_PER_RANK
    points.append(np.array([odd[:2] for odd in ODD_POINTS]))
    return np.round(np.vstack(points), 3), np.array([*ranks, *(odd[2] for odd in ODD_POINTS)])


def run() -> Line:
    points, ranks = make_toy()
    model = NPSVOR(C=1.0, epsilon=0.1, tol=1e-6, max_iter=100_000).fit(points, ranks)
    scores = model.plane_scores(points)
    found = {name: ranker(scores) for name, ranker in RANKERS.items()}
    old, new = (ranker(model.plane_scores(lattice()[0])) for ranker in RANKERS.values())
    return {
        "points": np.column_stack([points, ranks]).tolist(),
        "weights": model.coef_.tolist(),
        "offsets": model.intercept_.tolist(),
        "wrong": {name: int(np.sum(answers != ranks)) for name, answers in found.items()},
        "odd": {name: (answers[-len(ODD_POINTS) :] + 1).tolist() for name, answers in found.items()},
        "differ": float(np.mean(old != new)),
        "differ_by_two": float(np.mean(np.abs(old - new) == 2)),
    }


def lattice(n: int = 240) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    x, y = np.meshgrid(np.linspace(*LIMITS[:2], n), np.linspace(*LIMITS[2:], n))
    return np.column_stack([x.ravel(), y.ravel()]), x, y


def section(notebook: Notebook, pictures: Path) -> str:
    lines = notebook.lines(EXPERIMENT)
    if not lines:
        return ""
    line = lines[-1]
    figure, panels = drawing.grid(2, 2, 4.2, 3.7)
    for axes, (name, ranker) in zip(panels, RANKERS.items(), strict=True):
        draw(axes, line, ranker)
        axes.set_title(name)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    shown = drawing.save(figure, pictures, "decision-regions", "Decision regions of both prediction functions on a toy set")
    rows = [(name, str(line["wrong"][name]), *(str(rank) for rank in line["odd"][name])) for name in RANKERS]
    head = (
        "prediction function",
        f"errors among {len(line['points'])}",
        "prediction for P1 (rank 1)",
        "prediction for P2 (rank 3)",
    )
    words = (
        f"The two functions differ on {100 * line['differ']:.0f} % of the area shown, by two ranks on "
        f"{100 * line['differ_by_two']:.0f} %. Where planes cross, the nearest plane can belong to the other end of the scale.\n"
    )
    return "\n".join(["## Decision regions of both prediction functions\n", WORDS, shown, table(head, rows), words])


def draw(axes: Any, line: Line, ranker: Any) -> None:
    positions, x, y = lattice()
    weights, offsets = np.array(line["weights"]), np.array(line["offsets"])
    regions = ranker(positions @ weights.T + offsets).reshape(x.shape)
    # Lightness tells the regions apart in grey, hatching where that is not enough.
    fills = ("#d3e6f4", "#ffffff", "#b5ded0")
    axes.contourf(x, y, regions, levels=[-0.5, 0.5, 1.5, 2.5], colors=fills, hatches=["//", None, None])
    axes.contour(x, y, regions, levels=[0.5, 1.5], colors="grey", linewidths=0.8)
    edge = np.array(LIMITS[:2])
    for rank, (w, b) in enumerate(zip(weights, offsets, strict=True)):
        looks = drawing.series(rank)
        axes.plot(edge, -(w[0] * edge + b) / w[1], color=looks["color"], linestyle=looks["linestyle"], label=f"plane {rank + 1}")
    points = np.array(line["points"])
    for rank, marker in enumerate("soD"):
        of_rank = points[points[:, 2] == rank]
        colour = drawing.COLOURS[rank]
        axes.scatter(
            *of_rank[:, :2].T, marker=marker, s=18, color=colour, edgecolors="black", linewidths=0.5, label=f"rank {rank + 1}"
        )
    for name, (px, py, _) in zip(("P1", "P2"), ODD_POINTS, strict=True):
        axes.annotate(name, (px, py), xytext=(6, 5), textcoords="offset points", fontweight="bold")
    axes.set(xlim=LIMITS[:2], ylim=LIMITS[2:], xticks=[], yticks=[])
