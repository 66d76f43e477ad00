"""TfidfVectorizer, with PyStemmer in its tokenizer where the task stems, and HashingVectorizer.

One thread: they have no more.
"""

import re
from typing import Any

import Stemmer
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, HashingVectorizer, TfidfVectorizer

from benchmarks.vectorize.tasks import HASH_BITS, Task


class StemmingTokenizer:
    """The usual recipe: words without stop words, stemmed in one call per document."""

    def __init__(self) -> None:
        self.stemmer = Stemmer.Stemmer("english")
        self.words = re.compile(r"(?u)\b\w\w+\b").findall

    def __call__(self, text: str) -> list[str]:
        stems: list[str] = self.stemmer.stemWords([word for word in self.words(text) if word not in ENGLISH_STOP_WORDS])
        return stems


def make(task: Task, n_threads: int) -> Any:
    if task.is_hashed:
        return HashingVectorizer(n_features=2**HASH_BITS, alternate_sign=False, **task.settings)
    if task.is_stemmed:
        return TfidfVectorizer(tokenizer=StemmingTokenizer(), token_pattern=None, **task.settings)
    return TfidfVectorizer(**task.settings)


def run(vectorizer: Any, documents: list[str], is_transform: bool) -> Any:
    return vectorizer.transform(documents) if is_transform else vectorizer.fit_transform(documents)
