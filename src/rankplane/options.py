"""Options of training and their defaults. Imports nothing heavy, since ``--help`` needs them too.

The library writes parameters as ``C=1``, the command line as ``--C 1``. A sentence for both contains them by `named` and becomes a
`Wording`.
"""

import re
from dataclasses import dataclass
from typing import Any

MODEL_NAMES = (
    "NPSVOR",
    "SVC",
    "SVR",
    "SVMOP",
    "RedSVM",
    "SVOR",
    "SVOREX",
    "KDLOR",
    "CrammerSinger",
    "AdversarialOrdinal",
    "Committee",
    "GPOR",
)
AUTO = "auto"  # chosen by measurement, where there is something to choose
# How predict chooses a rank.
DECISIONS = {
    "mae": "the median, which minimises the absolute error",
    "mse": "the rank nearest to the mean, which minimises the squared error",
    "accuracy": "the most likely rank",
    "macro_mae": "the rank with the smallest absolute error, if all ranks count the same however rare they are",
    "qwk": "the rank that maximises the quadratic weighted kappa",
    "ranker": "the model's own rule",
}
# Delimit the two forms of a parameter. Unicode noncharacters, which no text contains.
START, BETWEEN, END = "\ufdd0", "\ufdd1", "\ufdd2"
PLAIN_WORD = re.compile(r"\w[\w.,=+-]*")  # needs no quotes in a shell
NAMED = re.compile(f"{START}(.*?){BETWEEN}(.*?){END}", re.DOTALL)


@dataclass(frozen=True)
class TrainingOptions:
    """Options of training, named as on the command line."""

    model: str = AUTO
    preset: str = AUTO
    C: float | None = None
    decision: str = "mae"
    holdout: float = 0.2
    seed: int = 0
    jobs: int | None = -1
    compact: float | None = None
    kernel: str = "auto"
    skewed: str = "auto"
    gamma: float | None = None
    ngrams: str | None = None
    analyzer: str | None = None
    segmenter: str | None = None
    class_weight: str | None = None


def option_name(parameter: str) -> str:
    """The command-line option of a parameter."""
    return f"--{parameter.replace('_', '-')}"


def named(parameter: str, value: Any = None) -> str:
    """A parameter, with a value if given, for a sentence that becomes a `Wording`."""
    in_python, as_option = parameter, option_name(parameter)
    if value is not None:
        in_python += f'="{value}"' if isinstance(value, str) else f"={value}"
        is_word = PLAIN_WORD.fullmatch(str(value))
        as_option += f" {value}" if is_word else f' "{value}"'
    return f"{START}{in_python}{BETWEEN}{as_option}{END}"


class Wording(str):
    """A sentence that names parameters; ``with_options`` names command-line options instead."""

    with_options: str

    def __new__(cls, sentence: str) -> "Wording":
        wording = super().__new__(cls, NAMED.sub(r"\1", sentence))
        wording.with_options = NAMED.sub(r"\2", sentence)
        return wording


def with_options(sentence: str) -> str:
    """The sentence for the command line."""
    return sentence.with_options if isinstance(sentence, Wording) else sentence
