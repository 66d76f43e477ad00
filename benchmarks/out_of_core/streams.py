"""Learners that read a file row by row, each in a process of its own: ``python -m benchmarks.out_of_core.streams NAME TRAIN TEST``.

Prints the mean absolute error as JSON. Both make the rows of words and pairs of words, hashed to 22 bits, and go through the file
as often as is given here.
"""

import csv
import importlib.util
import itertools
import json
import re
import sys
from collections.abc import Iterator

import numpy as np

EPOCHS, BITS, CHUNK = 3, 22, 10_000
WORDS = re.compile(r"\w+|[!?]")
Rows = list[tuple[str, int]]


def chunks(path: str) -> Iterator[Rows]:
    with open(path, newline="", encoding="utf-8") as file:
        rows = ((row["text"], int(float(row["rating"]))) for row in csv.DictReader(file))
        while chunk := list(itertools.islice(rows, CHUNK)):
            yield chunk


def ranks_of(path: str) -> list[int]:
    return sorted({rank for chunk in chunks(path) for _, rank in chunk})


def by_gradients(train: str, test: str) -> float:
    """scikit-learn's SGDClassifier."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import SGDClassifier

    vectorizer = HashingVectorizer(n_features=2**BITS, ngram_range=(1, 2), alternate_sign=False, dtype=np.float32)
    ranks, model = ranks_of(train), SGDClassifier(alpha=1e-6, random_state=0)
    for _ in range(EPOCHS):
        for chunk in chunks(train):
            texts, known = zip(*chunk, strict=True)
            model.partial_fit(vectorizer.transform(texts), known, classes=ranks)
    errors = []
    for chunk in chunks(test):
        texts, known = zip(*chunk, strict=True)
        errors.append(np.abs(model.predict(vectorizer.transform(texts)) - np.array(known)))
    return float(np.concatenate(errors).mean())


def by_vowpal_wabbit(train: str, test: str) -> float:
    """A plane per rank against the others."""
    from vowpalwabbit import Workspace

    ranks = ranks_of(train)

    def line(text: str, label: str = "") -> str:
        return f"{label} | {' '.join(WORDS.findall(text.lower()))}"

    model = Workspace(f"--oaa {len(ranks)} --ngram 2 -b {BITS} --loss_function logistic --quiet")
    for _ in range(EPOCHS):
        for chunk in chunks(train):
            for text, rank in chunk:
                model.learn(line(text, str(ranks.index(rank) + 1)))
    errors = [abs(ranks[model.predict(line(text)) - 1] - rank) for chunk in chunks(test) for text, rank in chunk]
    return float(np.mean(errors))


LEARNERS = {"SGDClassifier.partial_fit": by_gradients, "Vowpal Wabbit": by_vowpal_wabbit}


def missing(name: str) -> str | None:
    """Why a learner cannot run here."""
    is_there = name != "Vowpal Wabbit" or importlib.util.find_spec("vowpalwabbit") is not None
    return None if is_there else "pip install vowpalwabbit"


if __name__ == "__main__":
    print(json.dumps({"mae": LEARNERS[sys.argv[1]](sys.argv[2], sys.argv[3])}))
