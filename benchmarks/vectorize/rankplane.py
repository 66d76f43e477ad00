"""This package."""

from typing import Any

from benchmarks.vectorize.tasks import HASH_BITS, Task
from rankplane.text import TextVectorizer


def make(task: Task, n_threads: int) -> Any:
    settings = {"ngram_range": (1, 1), "sublinear_tf": False} | task.settings
    if task.is_stemmed:
        return TextVectorizer(preset="paper", n_jobs=n_threads)
    if "analyzer" not in settings:
        settings["token_pattern"] = r"(?u)\b\w\w+\b"
    if task.is_hashed:
        return TextVectorizer(hashing=HASH_BITS, n_jobs=n_threads, **settings)
    return TextVectorizer(n_jobs=n_threads, **{"min_df": 1} | settings)


def run(vectorizer: Any, documents: list[str], is_transform: bool) -> Any:
    return vectorizer.transform(documents) if is_transform else vectorizer.fit_transform(documents)
