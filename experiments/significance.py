"""Do the methods differ over the data sets? Friedman's and Nemenyi's tests, with diagrams of critical differences.

Nothing is computed here: the tests read the paper's table and the lines of the other experiments.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments import beyond, linear_models
from experiments.layout import honest, join, ordered, plain
from experiments.linear_models import FOUR
from experiments.notebook import Job, Notebook
from experiments.published import LINEAR_MAE, LINEAR_MSE
from experiments.sets import Collection
from experiments.summaries import collect, errors_of, table_of
from lab import drawing
from lab.significance import LEVEL, TOP, compare, depth, draw
from lab.tables import number, table

WORDS = """Methods are ranked on every data set by their mean error over the splits that all of them have. Friedman's test (as Iman
and Davenport's F) asks whether such ranks could come from methods that do not differ. Nemenyi's test compares pairs: methods
whose average ranks differ by less than the critical difference (CD) are joined by a bar, and cannot be distinguished at the 95 %
level with so few data sets.
"""
Family = tuple[str, Sequence[str], NDArray[np.float64]]


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    return iter(())


def families(notebook: Notebook, measure: str) -> list[Family]:
    """Title, methods, errors by (set, method)."""
    paper = LINEAR_MAE if measure == "mae" else LINEAR_MSE
    found: list[Family] = [("the paper's own values", FOUR, table_of(paper, FOUR))]
    linear = collect(notebook.lines(linear_models.EXPERIMENT), measure)
    for title, choose in (("linear models here, plain splits", plain), ("linear models here, leak-free splits", honest)):
        methods = linear_models.SHOWN
        found.append((title, methods, errors_of(linear, choose(ordered(linear)), methods)))
    past = collect(beyond.gathered(notebook), measure)
    places = honest(ordered(past))
    # A rival that has no answer on some set would take that set from all the others.
    most = max((sum(method in past[place] for place in places) for method in beyond.ALL), default=0)
    everyone = (*beyond.FROM_PAPER.values(), *beyond.ALL)
    methods = [m for m in everyone if most and sum(m in past[place] for place in places) >= 0.7 * most]
    left_out = [m for m in everyone if m not in methods and any(m in past[place] for place in places)]
    title = "beyond the paper, leak-free splits" + (f", without {join(left_out)}" if left_out else "")
    if methods:
        found.append((title, methods, errors_of(past, places, methods)))
    return [family for family in found if len(family[2]) >= 3 and len(family[1]) >= 3]


def section(notebook: Notebook, pictures: Path) -> str:
    parts = ["## Are the differences significant?\n", WORDS]
    for measure in ("mae", "mse"):
        chosen = families(notebook, measure)
        verdicts = [compare(errors) for _, _, errors in chosen]
        depths = [depth(verdict) for verdict in verdicts]
        figure, panels = drawing.column([0.45 + 0.32 * (TOP + deep) for deep in depths], 7.6)
        rows = []
        for axes, (title, methods, _), verdict in zip(panels, chosen, verdicts, strict=True):
            draw(axes, methods, verdict)
            axes.set_title(f"{title} ({verdict.n_sets} sets), {measure.upper()}", loc="left")
            order = np.argsort(verdict.ranks)
            best = methods[order[0]]
            beaten = [methods[i] for i in order[1:] if verdict.ranks[i] - verdict.ranks[order[0]] > verdict.critical_difference]
            p_value = f"{verdict.p_value:.2g}"
            gap = number(verdict.critical_difference, 2)
            first = f"{best} ({verdict.ranks[order[0]]:.2f})"
            differ = verdict.p_value < 1 - LEVEL
            rows.append((title, str(verdict.n_sets), p_value, gap, first, (differ and ", ".join(beaten)) or "nobody"))
        parts.append(
            drawing.save(
                figure, pictures, f"critical-difference-{measure}", f"Critical differences of average ranks, {measure.upper()}"
            )
        )
        head = (
            f"family, {measure.upper()}",
            "sets",
            "Friedman p",
            "CD",
            "best (average rank)",
            "significantly better than (Nemenyi)",
        )
        parts.append(table(head, rows))
    return "\n".join(parts)
