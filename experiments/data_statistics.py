"""The table of data statistics, and what the paper does not count: copies of the same review."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments.notebook import Job, Line, Notebook
from experiments.published import STATISTICS
from experiments.sets import FEATURE_FILES, PAPER_NAMES, TEXT_SETS, TITLES, Collection, vectorizer_for
from lab.tables import table

EXPERIMENT = "data_statistics"
SETS = ("treebank_features", *TEXT_SETS, "tripadvisor_250k")
WORDS = """Columns (features) and entries are counted on all rows with the preset `paper`: stop words removed, Snowball stems,
words and pairs of words that occur in at least 3 rows and at most half of them. *copies* are rows that have the `review_id` of an
earlier row, *same text* rows that have the text of an earlier row.
"""
WHY = """Our files of the Amazon data sets and TripAdvisor are balanced samples, drawn in the same way from the same sources, but
they are not the authors' own. They contain different reviews, and perhaps a different proportion of copies. The paper mentions
stop words, stems and words without defining them, so columns and entries differ. LargeMovie, MovieReview and Treebank are the
same texts, and *the paper's own features* are exactly the same matrix.
"""


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    for name in collection.sets(SETS):
        split = "given" if name in FEATURE_FILES else "all"
        yield Job(EXPERIMENT, collection.key(name, split, 0, settings={"preset": "paper"}), lambda name=name: run(collection, name))


def run(collection: Collection, name: str) -> Line:
    if name in FEATURE_FILES:
        data = collection.matrices(name, "given", 0)
        ranks = np.concatenate([data.y, data.y_test])
        entries, columns = data.X.nnz + data.X_test.nnz, data.X.shape[1]
        return {"instances": len(ranks), "columns": columns, "entries": int(entries), "per_rank": np.bincount(ranks).tolist()}
    rated = collection.load(name)
    X = vectorizer_for(name, "paper").fit_transform(rated.texts)
    counts = {"same_text": len(rated.texts) - len(set(rated.texts))}
    if rated.groups is not None:
        counts["copies"] = len(rated.groups) - len(np.unique(rated.groups))
    per_rank = np.bincount(rated.ranks).tolist()
    return {"instances": X.shape[0], "columns": X.shape[1], "entries": int(X.nnz), "per_rank": per_rank} | counts


def section(notebook: Notebook, pictures: Path) -> str:
    rows: list[tuple[str, ...]] = []
    found = {line["set"]: line for line in notebook.lines(EXPERIMENT)}
    for name in sorted(found, key=lambda name: SETS.index(name) if name in SETS else len(SETS)):
        line = found[name]
        if name in PAPER_NAMES:
            paper = STATISTICS[PAPER_NAMES[name]]
            sizes = (f"{value:,}" for value in paper[:3])
            rows.append((TITLES[name], "in the paper", *sizes, str(paper.ranks), f"{paper.rows_per_rank:,}", "", ""))
        least, most = min(line["per_rank"]), max(line["per_rank"])
        per_rank = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        sizes = (f"{line[field]:,}" for field in ("instances", "columns", "entries"))
        copies = (share(line.get(field), line["instances"]) for field in ("copies", "same_text"))
        rows.append((TITLES.get(name, name), "here", *sizes, str(len(line["per_rank"])), per_rank, *copies))
    if not rows:
        return ""
    missing = [name for name in STATISTICS if name not in {PAPER_NAMES.get(line["set"]) for line in found.values()}]
    head = ("data", "", "rows", "columns", "entries", "ranks", "rows per rank", "copies", "same text")
    absent = (
        f"Data sets of the paper that were not available: {', '.join(missing)}. Douban, also Chinese, replaces DoctorQuality.\n"
    )
    return "\n".join(["## Data\n", WORDS, table(head, rows, left=2), WHY, absent])


def share(count: int | None, n_rows: int) -> str:
    return "" if count is None else f"{count:,} ({100 * count / n_rows:.1f} %)"
