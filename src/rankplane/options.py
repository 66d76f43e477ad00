"""Options of training and their defaults. Imports nothing heavy: ``--help`` lists these too."""

from dataclasses import dataclass

MODEL_NAMES = ("NPSVOR", "SVC", "SVR", "SVMOP", "RedSVM", "SVOR", "Committee")
# How predict chooses a rank.
DECISIONS = {
    "mae": "the median, which minimises the absolute error",
    "mse": "the rank nearest to the mean, which minimises the squared error",
    "accuracy": "the most likely rank",
    "ranker": "the model's own rule",
}


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
