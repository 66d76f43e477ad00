"""From documents to a matrix."""

from pathlib import Path

from benchmarks.common import read_lines
from benchmarks.goals import Goal
from benchmarks.layout import newest, origin
from lab.results import Line
from lab.tables import number, table

INTRODUCTION = """## Text

From documents in memory to a csr matrix, with two threads if the program has threads, best of several runs. *matrix* says whether
columns, entries and values are the same as those of scikit-learn's `TfidfVectorizer`. *paper* is bigrams with stop words removed
and stems (scikit-learn uses PyStemmer), `min_df=3`, `max_df=0.5`. *transform* is for new documents. *char* and *char_wb* are
n-grams of characters, across and within words; *union* is words and pairs of words beside char_wb 2-5, for scikit-learn a
`FeatureUnion`. *less processor time* counts all threads.
"""


LESS = "times_less_processor_time"  # which older lines do not have


def shown() -> list[list[Line]]:
    """Runs with competitors; lines of memory have none."""
    return newest([line for line in read_lines("vectorize") if "competitor" in line], lambda line: (line["data"], line["task"]))


def held() -> list[Goal]:
    return [goal for run in shown() for goal in text_goals(run)]


def text_goals(lines: list[Line]) -> list[Goal]:
    return [
        Goal(
            "Vectorizing, paper preset, 2 threads: times faster than scikit-learn with PyStemmer",
            line["data"],
            line["times_faster_than_scikit_learn"],
            15.0,
        )
        for line in lines
        if line["competitor"] == "rankplane" and line["task"] == "paper"
    ] + [
        Goal(f"Vectorizing, {line['task']}: times less processor time than scikit-learn", line["data"], line[LESS], 15.0)
        for line in lines
        if line["competitor"] == "rankplane" and LESS in line and line["task"].startswith(("char ", "char_wb", "union"))
    ]


def section(folder: Path) -> str:
    """Vectorizers by data set and task."""
    runs = shown()
    if not runs:
        return ""
    rows = [
        (
            line["data"],
            line["task"],
            line["competitor"].replace("scikit_learn", "scikit-learn"),
            "same" if line["is_same_answer"] else "different",
            number(line["seconds"]),
            number(line["megabytes_per_second"], 1),
            number(line["times_faster_than_scikit_learn"], 1),
            number(line[LESS], 1) if LESS in line else "",
        )
        for lines in runs
        for line in sorted(lines, key=lambda line: line["seconds"])
    ]
    head = ("texts", "task", "vectorizer", "matrix", "seconds", "MB/s", "times faster than scikit-learn", "less processor time")
    return f"{INTRODUCTION}\n{origin(runs[-1][-1])}.\n\n{table(head, rows, left=4)}"
