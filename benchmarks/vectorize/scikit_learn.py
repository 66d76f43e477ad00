"""TfidfVectorizer, with PyStemmer in its tokenizer where the task stems, FeatureUnion of several, and HashingVectorizer.

One thread: they have no more.
"""

import re
from typing import Any

import Stemmer
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import FeatureUnion

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
    settings = dict(task.settings)
    if not isinstance(settings.get("analyzer"), dict):
        return TfidfVectorizer(**settings)
    # Rows of norm 1, in equal shares.
    ranges = settings.pop("analyzer")
    parts = [(name, TfidfVectorizer(analyzer=name, ngram_range=ngrams, **settings)) for name, ngrams in ranges.items()]
    return FeatureUnion(parts, transformer_weights=dict.fromkeys(ranges, len(ranges) ** -0.5))


def run(vectorizer: Any, documents: list[str], is_transform: bool) -> Any:
    return vectorizer.transform(documents) if is_transform else vectorizer.fit_transform(documents)
