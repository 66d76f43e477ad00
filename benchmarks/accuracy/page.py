"""Who predicts best."""

from pathlib import Path

from benchmarks.accuracy.verdicts import judged, losses
from benchmarks.common import read_lines
from benchmarks.layout import describe, newest, origin
from lab.competitors.rankplane import VARIANTS as OURS
from lab.measures import MEASURES
from lab.tables import number, table

INTRODUCTION = """## Accuracy

The test rows are 30 % of the rows, stratified, copies of a review on one side; Treebank has its own split. A test row whose
tokens are also those of a training row is left out: some texts are in a file twice. Features are the `default` preset made
with scikit-learn's vectorizer (all words, `!` and `?`, bigrams, min_df 2, sublinear tf; Chinese by characters), the same
matrix for everyone; fastText reads the same tokens. Of `tripadvisor_250k` a stratified 100,000 rows are used.

Ranks are mode, median and rounded mean of the probabilities for accuracy, MAE and MSE, for everyone who has probabilities.
Everyone chooses settings without the test rows: we by the ranked probability score, once; rivals for each measure on its own,
on grids that go on as long as their end is best (a note says where that stopped too early). mord has a time limit.
Seconds are of processor time, all threads together, and include choosing. These runs counted BLAS threads that only waited, and up
to three final fits of a rival; `docs/reproduction.md` compares seconds without either.
"""


def section(folder: Path) -> str:
    """Everyone's measures by data set. The newest line of each competitor counts; what beats us is named."""
    lines = read_lines("accuracy")
    if not lines:
        return ""
    newest_lines = [run[-1] for run in newest(lines, lambda line: (line["data"]["name"], line["competitor"]))]
    sets = list(dict.fromkeys(line["data"]["name"] for line in newest_lines))
    parts, summary = [], []
    for name in sets:
        found = judged([line for line in newest_lines if line["data"]["name"] == name])
        found.sort(key=lambda line: line["competitor"] not in OURS)
        rows = []
        for line in found:
            beaten = [", ".join(losses(line["ours_is_at_least_as_good"], ours)) for ours in OURS]
            cells = ["" if line["measures"] is None else number(line["measures"][m], 4) for m in MEASURES]
            rows.append((line["competitor"], *beaten, line["note"], *cells, number(line["seconds"], 1)))
        about = found[0]["data"]
        by_review = " Split by review: no copy of a test review was trained on." if about["split_by_review"] else ""
        head = ("competitor", *(f"beats {ours} in" for ours in OURS), "note", "accuracy", "MAE", "MSE", "CPU seconds")
        size = f"{describe(about)}, {about['test_rows']:,} test rows."
        parts.append(f"### Accuracy: {name}\n\n{size}{by_review} {origin(found[0])}.\n\n{table(head, rows, 2 + len(OURS))}")
        rivals = [line for line in found if line["competitor"] not in OURS and line["measures"] is not None]
        lost = [[(line["competitor"], m) for line in rivals for m in losses(line["ours_is_at_least_as_good"], o)] for o in OURS]
        told = ["; ".join(f"{m} to {who}" for who, m in cells) or "none" for cells in lost]
        summary.append((name, *told, str(len(MEASURES) * len(rivals))))
    head = ("data", *(f"lost by {ours}" for ours in OURS), "comparisons")
    return "\n".join([INTRODUCTION, table(head, summary, 1 + len(OURS)), *parts])
