"""fastText with bigrams on two threads, epochs and rate by a holdout; mode, median and rounded mean of its
probabilities. It reads the same tokens as the vectorizer, joined by spaces.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lab.competitors import not_installed
from lab.data import Data
from lab.measures import Array
from lab.predictions import Part, Predictions, Ranks, decoded, tuned
from lab.text import TOKEN
from lab.timing import processor_timed

PATHS = {"rate 0.1, epochs": [5.0, 10.0], "rate 0.5, epochs": [5.0, 10.0]}
VARIANTS: dict[str, dict[str, Any]] = {"fastText, bigrams": {}}


def missing() -> str | None:
    return not_installed("fasttext", "fastText (fasttext-wheel)")


def run(data: Data) -> Predictions:
    tokenise = lambda part: [" ".join(TOKEN.findall(text.lower())) for text in part]  # noqa: E731
    tokenising, (texts, texts_test) = processor_timed(lambda: [tokenise(part) for part in data.prepared["texts"]])
    n_ranks = data.n_ranks

    def fit(part: Part, held_out: Array | None, path: str, epochs: float) -> Ranks:
        questions = texts_test if held_out is None else [texts[i] for i in held_out]
        lines = [f"__label__{rank} {texts[i]}" for i, rank in zip(part.rows, part.y, strict=True)]
        return decoded(probabilities(lines, questions, n_ranks, float(path.split()[1].rstrip(",")), round(epochs)))

    found = tuned(data, PATHS, 2.0, fit)
    return replace(found, seconds=found.seconds + tokenising, reads_texts=True)


def probabilities(lines: list[str], questions: list[str], n_ranks: int, rate: float, epochs: int) -> Array:
    import fasttext

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        path.write_text("\n".join(lines) + "\n")
        model = fasttext.train_supervised(str(path), epoch=epochs, lr=rate, wordNgrams=2, thread=2, verbose=0)
    found = np.zeros((len(questions), n_ranks))
    for row, question in enumerate(questions):
        # Its own predict fails with numpy 2; this is what it calls.
        for share, label in model.f.predict(question + "\n", n_ranks, 0.0, "strict"):
            found[row, int(label.removeprefix("__label__"))] = share
    # fastText returns nothing for a text without known words: all ranks are then equally likely.
    return np.where(found.sum(axis=1, keepdims=True) > 0, found, 1.0 / n_ranks)
