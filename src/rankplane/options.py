"""Options of training and their defaults. Imports nothing heavy: ``--help`` lists these too.

A library names its parameters, ``C=1``, and a command line its options, ``--C 1``. A sentence for both
names them by `named` and becomes a `Wording`.
"""

import re
from dataclasses import dataclass
from typing import Any

MODEL_NAMES = ("NPSVOR", "SVC", "SVR", "SVMOP", "RedSVM", "SVOR", "Committee")
# How predict chooses a rank.
DECISIONS = {
    "mae": "the median, which minimises the absolute error",
    "mse": "the rank nearest to the mean, which minimises the squared error",
    "accuracy": "the most likely rank",
    "ranker": "the model's own rule",
}
# Around the two names of a parameter. Unicode keeps these for use within a program: no text has them.
START, BETWEEN, END = "\ufdd0", "\ufdd1", "\ufdd2"
PLAIN_WORD = re.compile(r"\w[\w.,=+-]*")  # that a shell, and a reader, takes as it is
NAMED = re.compile(f"{START}(.*?){BETWEEN}(.*?){END}", re.DOTALL)


@dataclass(frozen=True)
class Options:
    """What the user may choose; the command line's options have the same names."""

    model: str = "NPSVOR"
    preset: str = "default"
    C: float | None = None
    decision: str = "mae"
    holdout: float = 0.2
    seed: int = 0
    jobs: int | None = None
    compact: float | None = None
    kernel: str = "linear"
    gamma: float | None = None
    ngrams: str | None = None
    analyzer: str | None = None
    segmenter: str | None = None
    class_weight: str | None = None


def option_name(parameter: str) -> str:
    """How the command line calls a parameter."""
    return f"--{parameter.replace('_', '-')}"


def named(parameter: str, value: Any = None) -> str:
    """A parameter, perhaps with a value, as part of a sentence that becomes a `Wording`."""
    in_python, as_option = parameter, option_name(parameter)
    if value is not None:
        in_python += f'="{value}"' if isinstance(value, str) else f"={value}"
        is_word = PLAIN_WORD.fullmatch(str(value))
        as_option += f" {value}" if is_word else f' "{value}"'
    return f"{START}{in_python}{BETWEEN}{as_option}{END}"


class Wording(str):
    """A sentence that names parameters; ``with_options`` is the same sentence for the command line."""

    with_options: str

    def __new__(cls, sentence: str) -> "Wording":
        wording = super().__new__(cls, NAMED.sub(r"\1", sentence))
        wording.with_options = NAMED.sub(r"\2", sentence)
        return wording


def with_options(sentence: str) -> str:
    """The sentence as the command line tells it."""
    return sentence.with_options if isinstance(sentence, Wording) else sentence
