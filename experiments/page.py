"""Draws ``docs/reproduction.md`` and its figures from the result lines and nothing else: ``python -m experiments.page``."""

import re
from pathlib import Path
from types import ModuleType

from experiments import (
    beyond,
    claims,
    confusion,
    copies,
    data_statistics,
    decision_regions,
    descent,
    epsilon,
    learning_curves,
    linear_models,
    price,
    significance,
    small_subsets,
    tolerance,
    training_times,
    two_prices,
    two_rankers,
)
from experiments.notebook import Notebook
from lab import ROOT
from lab.display import console
from lab.tables import table

# In the order of the page.
MODULES: tuple[ModuleType, ...] = (
    claims,
    data_statistics,
    decision_regions,
    two_rankers,
    small_subsets,
    linear_models,
    copies,
    confusion,
    tolerance,
    training_times,
    two_prices,
    price,
    epsilon,
    descent,
    beyond,
    learning_curves,
    significance,
)
INTRODUCTION = """# The paper, reproduced

*A Novel Large-scale Ordinal Regression Model* (Shi, Wang, Shen, Niu), table by table and figure by figure, and past it. Drawn
by `python -m experiments.page` from the JSON lines in `experiments/results/`: no measured number on this page is typed by hand.
`make paper DATA=../shared/data` computes what is missing and draws it again, `make paper-quick` does all of it on small
samples.

The protocol is the paper's: stop words dropped, Snowball stems, words of two letters and more, words and pairs in at least 3
and at most half of the texts (where the paper counts occurrences), TF-IDF; stratified splits; C from 2^-5 to 2^5 by five folds
and MAE; tolerance 0.1, half of it along the search of C; for SVR 0.01, which the paper calls LIBLINEAR's default; epsilon 0.1;
a bias, penalised as the weight of a column of ones. The paper names two shares of test rows, 30 % and a fifth: its own files of
Treebank hold a fifth, and so do our splits, except for the small subsets. Vocabulary and document frequencies come from
training rows only. Some sets repeat a review under several products, with the same `review_id`. *plain* splits, the paper's,
put copies of training reviews among the test rows; splits *by review* do not, and neither do the folds that choose C.
"""


def write(notebook: Notebook, folder: Path) -> Path:
    """The page, in ``folder``, its figures in a folder beside it."""
    sections = [*(module.section(notebook, folder / "figures") for module in MODULES), origins(notebook)]
    text = "\n".join(filter(None, sections))
    path = folder / "reproduction.md"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([INTRODUCTION, contents(text), text]), encoding="utf-8")
    return path


def contents(text: str) -> str:
    """Links to the sections, by the names that a renderer of Markdown gives to headings."""
    titles = re.findall("^## (.+)$", text, flags=re.MULTILINE)
    links = {title: re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    return "\n".join(f"- [{title}](#{link})" for title, link in links.items()) + "\n"


def origins(notebook: Notebook) -> str:
    """Where the lines come from."""
    rows = []
    for path in sorted(notebook.folder.glob("*.jsonl")):
        lines = notebook.lines(path.stem)
        days = sorted({line["run"][:10] for line in lines})
        sets = len({line["set"] for line in lines})
        seeds = 1 + max(line.get("seed", 0) for line in lines)
        minutes = sum(line["seconds"] for line in lines) / 60
        machines = "; ".join(sorted({line["machine"] for line in lines}))
        rows.append(
            (
                path.name,
                str(len(lines)),
                str(sets),
                str(seeds),
                f"{minutes:.0f}",
                " to ".join(days[:: max(1, len(days) - 1)]),
                machines,
            )
        )
    head = ("file of experiments/results", "lines", "sets", "splits, at most", "minutes", "computed", "on")
    words = "Every line names its data by fingerprint, settings, seed, commit and seconds.\n"
    return "\n".join(["## Where the numbers come from\n", table(head, rows), words])


if __name__ == "__main__":
    console.print(f"Wrote {write(Notebook(), ROOT / 'docs').relative_to(ROOT)}.", highlight=False)
