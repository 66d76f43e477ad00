"""What copies of a review among the test rows are worth, and whether they explain why the paper's errors are lower.

Two questions to the lines of the linear models and of the small subsets. How much do test rows with a copy among the training rows
err, and how much the others: so what share of copies would it take to meet the paper's figure? And how far does the error
fall from a tenth of the rows to all of them: in a tenth, few copies have met.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments import linear_models, small_subsets
from experiments.layout import ordered, plain
from experiments.notebook import Job, Notebook
from experiments.published import LINEAR_MAE, SMALL_MAE, SMALL_SHARES
from experiments.sets import PAPER_NAMES, TITLES, Collection
from experiments.summaries import collect
from lab.tables import number, table

METHOD = "NPSVOR"
WORDS = """MAE of NPSVOR on plain splits, for test rows that have a copy in the training data and for the others. *by review* are
splits that keep copies together, so all test rows are new. *share needed* is the proportion of test rows with a copy for which
these two errors would average to the paper's value. TripAdvisor has no copies here; its share uses the error on copies from the
other data sets.
"""
GAIN = """How much the MAE of linear NPSVOR decreases from the small subset, a tenth of the rows, to all rows. A tenth of the rows
rarely contains both of two copies; all rows always do. Without copies, the error decreases because the model learns from more
reviews; with copies, also because it has memorised some of the test reviews.
"""


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    return iter(())


def section(notebook: Notebook, pictures: Path) -> str:
    parts = [part for part in (shares(notebook), gains(notebook)) if part]
    return "\n".join(["## Copies, and why the paper's errors may be lower\n", *parts]) if parts else ""


def shares(notebook: Notebook) -> str:
    lines = notebook.lines(linear_models.EXPERIMENT, method=METHOD)
    mae, share, of_copies, of_others = (
        collect(lines, field) for field in ("mae", "copied_share", "mae_of_copies", "mae_of_others")
    )
    if not of_copies:
        return ""
    typical = float(np.mean([by_method[METHOD].mean for by_method in of_copies.values()]))
    rows = []
    for place in plain(ordered(mae)):
        paper = LINEAR_MAE.get(PAPER_NAMES.get(place[0], ""), {}).get(METHOD)
        if paper is None or not (place in of_copies or place[0] == "tripadvisor"):
            continue
        has_copies = place in of_copies
        known = of_copies[place][METHOD].mean if has_copies else typical
        new = (of_others if has_copies else mae)[place][METHOD].mean
        by_review = mae.get((place[0], "review"), {}).get(METHOD)
        rows.append(
            (
                TITLES[place[0]],
                number(mae[place][METHOD].mean),
                f"{100 * share[place][METHOD].mean:.0f} %" if has_copies else "0 %",
                number(known) if has_copies else "",
                number(new),
                number(by_review.mean) if by_review else number(new),
                number(paper),
                f"{100 * (new - paper) / (new - known):.0f} %",
            )
        )
    head = (
        "data",
        "all test rows",
        "with a copy",
        "MAE of these",
        "MAE of the others",
        "by review",
        "in the paper",
        "share needed",
    )
    return "\n".join([WORDS, table(head, rows)])


def gains(notebook: Notebook) -> str:
    small = collect(notebook.lines(small_subsets.EXPERIMENT, method=small_subsets.LINEAR), "mae")
    whole = collect(notebook.lines(linear_models.EXPERIMENT, method=METHOD), "mae")
    rows = []
    for place in ordered(small):
        paper_name = PAPER_NAMES.get(place[0], "")
        if place not in whole or SMALL_SHARES.get(paper_name) != 0.1:
            continue
        before, after = small[place][small_subsets.LINEAR].mean, whole[place][METHOD].mean
        if place[1] == "plain":
            rows.append(
                (
                    TITLES[place[0]],
                    "in the paper",
                    *fall(SMALL_MAE[paper_name][small_subsets.LINEAR], LINEAR_MAE[paper_name][METHOD]),
                )
            )
        has_copies = (place[0], "review") in whole
        split = {"plain": "plain, with copies" if has_copies else "no copies", "review": "by review"}[place[1]]
        rows.append((TITLES[place[0]], split, *fall(before, after)))
    if not rows:
        return ""
    return "\n".join([GAIN, table(("data", "", "a tenth", "all rows", "change"), rows, left=2), verdict(rows)])


def verdict(rows: list[tuple[str, ...]]) -> str:
    """How far errors fall, by whether test rows can have copies."""
    falls: dict[str, list[int]] = {}
    for _, split, _, _, change in rows:
        falls.setdefault(split, []).append(int(change.split()[0]))
    words = [f"{split} {min(found)} to {max(found)} %" for split, found in falls.items()]
    return f"Range over the data sets: {'; '.join(words)}.\n"


def fall(before: float, after: float) -> tuple[str, str, str]:
    return number(before), number(after), f"{100 * (after / before - 1):+.0f} %"
