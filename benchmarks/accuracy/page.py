"""Who predicts best."""

from pathlib import Path

from benchmarks.accuracy.verdicts import judged, losses
from benchmarks.common import read_lines
from benchmarks.layout import describe, newest, origin
from lab.competitors.rankplane import VARIANTS as OURS
from lab.measures import MEASURES
from lab.tables import number, table

INTRODUCTION = """## Accuracy

The test data are 30 % of the rows, stratified, with all copies of a review on one side; Treebank has its own split. Some texts
occur twice in a file: a test row with the same tokens as a training row is left out. Features are the `default` preset, computed
with scikit-learn's vectorizer (all words, `!` and `?`, bigrams, min_df 2, sublinear tf; characters for Chinese). All programs get
the same matrix; fastText reads the same tokens. From `tripadvisor_250k`, a stratified sample of 100,000 rows is used.

All models with probabilities predict their mode for accuracy, their median for MAE and their rounded mean for MSE. All are tuned
without the test data: rankplane once, by the ranked probability score; the others separately for each metric, on grids that are
extended while the best value is at their end (a note says where this stopped too early). mord has a time limit. Seconds are CPU
time of all threads, including tuning. They include BLAS threads that were only waiting, and up to three final fits of the other
programs; [the reproduction](reproduction.md#from-raw-text-to-a-tuned-model) has CPU times without either.
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
        by_review = " Split by review: no copy of a test review is in the training data." if about["split_by_review"] else ""
        head = ("competitor", *(f"better than {ours} in" for ours in OURS), "note", "accuracy", "MAE", "MSE", "CPU seconds")
        size = f"{describe(about)}, {about['test_rows']:,} test rows."
        parts.append(f"### Accuracy: {name}\n\n{size}{by_review} {origin(found[0])}.\n\n{table(head, rows, 2 + len(OURS))}")
        rivals = [line for line in found if line["competitor"] not in OURS and line["measures"] is not None]
        lost = [[(line["competitor"], m) for line in rivals for m in losses(line["ours_is_at_least_as_good"], o)] for o in OURS]
        told = ["; ".join(f"{m} to {who}" for who, m in cells) or "none" for cells in lost]
        summary.append((name, *told, str(len(MEASURES) * len(rivals))))
    head = ("data", *(f"{ours} loses" for ours in OURS), "comparisons")
    return "\n".join([INTRODUCTION, table(head, summary, 1 + len(OURS)), *parts])
