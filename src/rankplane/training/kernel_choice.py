"""What suits columns of numbers, by held-out error: the numbers or their logarithms, planes or a kernel.

Both are compared on a sample of the training rows, by cross-validation on the same folds. What is simpler stays unless the other
one is better by more than the noise: planes can be explained, and are small and fast.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from rankplane.inputs.schema import Inputs, Rows
from rankplane.metrics import MEASURES
from rankplane.search import CSearchCV
from rankplane.self_tuned import SelfTuned
from rankplane.tabular import ColumnEncoder
from rankplane.training.choices import KERNEL_ROWS, Choices

N_COMPARED = 3000  # rows
LEAST_GAIN = 0.02  # relative to the score of what is simpler
WORDS = {"none": "columns as they are", "log": "logarithms of skewed columns", "linear": "planes", "rbf": "rbf kernel"}
Found = CSearchCV | SelfTuned
Search = Callable[[Rows, Choices], Found]
Step = Callable[[Rows, Choices], Any]


def chosen_for(
    rows: Rows, inputs: Inputs, choices: Choices, measure: str, first_step: Step, search: Search
) -> tuple[Choices, list[dict[str, Any]]]:
    """The options without ``auto``, and what was compared, with measures; nothing if there was nothing to choose."""
    if inputs.kind != "table":
        return choices.settled("none", "linear"), []
    compared: list[dict[str, Any]] = []
    sample = rows.sample(N_COMPARED)
    searches: dict[tuple[str, str], Found] = {}

    def searched(skewed: str, kernel: str) -> Found:
        if (skewed, kernel) not in searches:
            searches[skewed, kernel] = search(rows.sample(N_COMPARED), choices.settled(skewed, kernel))
        return searches[skewed, kernel]

    def better(option: str, simple: tuple[str, str], other: tuple[str, str]) -> bool:
        found = [searched(*setting) for setting in (simple, other)]
        place = 0 if option == "skewed" else 1
        is_better = beats(found[0], found[1], measure)
        compared.append(
            {
                "option": option,
                "measure": measure,
                "names": [simple[place], other[place]],
                "scores": [float(of_one.best_score_) for of_one in found],
                "chosen": other[place] if is_better else simple[place],
            }
        )
        return is_better

    skewed, kernel = choices.skewed, choices.kernel
    first_kernel = "linear" if kernel == "auto" else kernel
    if skewed == "auto":
        step = first_step(sample, choices.settled("log", "linear"))
        is_skewed = isinstance(step, ColumnEncoder) and step.fit(sample.features).has_skewed_columns
        is_better = is_skewed and better("skewed", ("none", first_kernel), ("log", first_kernel))
        skewed = "log" if is_better else "none"
    if kernel == "auto":
        may_be_kernel = choices.may_have_kernel and choices.compact is None and len(rows.labels) <= KERNEL_ROWS
        is_better = may_be_kernel and better("kernel", (skewed, "linear"), (skewed, "rbf"))
        kernel = "rbf" if is_better else "linear"
    return choices.settled(skewed, kernel), compared


def none_of(name: str) -> str | None:
    return None if name == "none" else name


def beats(simple: Found, other: Found, measure: str) -> bool:
    """Whether the other is better on the same folds, by more than one standard error of the difference, and by enough to matter."""
    sign = 1.0 if MEASURES[measure][1] else -1.0
    gains = sign * (by_fold(other) - by_fold(simple))
    least = max(gains.std(ddof=1) / np.sqrt(len(gains)), LEAST_GAIN * abs(simple.best_score_))
    return bool(gains.mean() > least)


def by_fold(search: Found) -> Any:
    results = search.cv_results_
    return np.array([results[f"split{fold}_test_score"][search.best_index_] for fold in range(search.n_splits_)])


def in_words(compared: dict[str, Any]) -> str:
    """One line about a choice."""
    scores = ", ".join(f"{WORDS[name]} {score:.4f}" for name, score in zip(compared["names"], compared["scores"], strict=True))
    return f"{WORDS[compared['chosen']]}, by {compared['measure']} on held-out rows: {scores}"
