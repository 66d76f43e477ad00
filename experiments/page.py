"""Draws ``docs/reproduction.md`` and its figures from the result lines and nothing else: ``python -m experiments.page``."""

from pathlib import Path
from types import ModuleType

from benchmarks.common import console
from benchmarks.data import ROOT
from experiments import (
    beyond,
    claims,
    confusion,
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

# In the order of the page.
MODULES: tuple[ModuleType, ...] = (
    claims,
    data_statistics,
    decision_regions,
    two_rankers,
    small_subsets,
    linear_models,
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
by `python -m experiments.page` from the JSON lines in `experiments/results/`: no number on this page is typed by hand. `make
paper DATA=../shared/data` computes what is missing and draws it again, `make paper-quick` does all of it on small samples.
"""


def write(notebook: Notebook, folder: Path) -> Path:
    """The page, in ``folder``, its figures in a folder beside it."""
    sections = [module.section(notebook, folder / "figures") for module in MODULES]
    path = folder / "reproduction.md"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([INTRODUCTION, *filter(None, sections)]), encoding="utf-8")
    return path


if __name__ == "__main__":
    console.print(f"Wrote {write(Notebook(), ROOT / 'docs').relative_to(ROOT)}.", highlight=False)
