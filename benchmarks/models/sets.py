"""Data sets to compare models on: TF-IDF of rated texts, and standardised tables."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from benchmarks.tables.sets import TABLES, read_table
from benchmarks.tables.sets import split as split_table
from lab import text
from lab.measures import Array
from rankplane import TextVectorizer

TEXTS = ("treebank", "moviereview", "clothing", "video", "tablets", "largemovie", "douban", "mobilephone", "tripadvisor")
CHINESE = ("douban",)
MOST_TESTED = 5_000


@dataclass(frozen=True)
class Split:
    """Training and test rows of one split; ranks are numbered from 0."""

    name: str
    kind: str  # "text" or "table"
    X: Any
    ranks: Array
    X_test: Any
    true: Array

    def describe(self) -> dict[str, Any]:
        shape = {"rows": len(self.ranks), "columns": int(self.X.shape[1]), "test_rows": len(self.true)}
        return {"name": self.name, "kind": self.kind, "ranks": int(max(self.ranks.max(), self.true.max())) + 1} | shape


def split_of(name: str, folder: Path, seed: int, most_rows: int) -> Split:
    """A random split of at most so many training rows."""
    if name in TABLES:
        X, ranks, X_test, true = split_table(*read_table(name, folder), seed, most_rows)
        scaler = StandardScaler().fit(X)
        return Split(name, "table", scaler.transform(X), ranks, scaler.transform(X_test), true)
    texts, ranks = different_texts(folder / f"{name}.parquet")
    order = np.random.default_rng(seed).permutation(len(texts))
    n_train = min(most_rows, round(0.7 * len(texts)))
    train, test = order[:n_train], order[n_train : n_train + MOST_TESTED]
    vectorizer = TextVectorizer(segmenter="chinese" if name in CHINESE else None)
    X = vectorizer.fit_transform([texts[i] for i in train])
    return Split(name, "text", X, ranks[train], vectorizer.transform([texts[i] for i in test]), ranks[test])


@lru_cache(maxsize=1)
def different_texts(path: Path) -> tuple[list[str], Array]:
    """Each text once: copies would be on both sides of a split."""
    texts, ranks = text.texts_of(text.read_frame(path))
    _, first = np.unique(np.array(texts, dtype=object), return_index=True)
    return [texts[i] for i in first.tolist()], ranks[first]


def why_not(name: str, folder: Path | None) -> str | None:
    """Why a set is not available here, in a sentence; None if it is."""
    place = f"tabular/{name}.csv" if name in TABLES else f"{name}.parquet"
    if folder is None or not (folder / place).exists():
        return f"{name} is left out: there is no {place} in the data folder (--data)."
    if name in TEXTS and (reason := text.missing()):
        return f"{name} is left out: {reason}."
    return None
