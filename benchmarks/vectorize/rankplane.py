"""This package."""

from typing import Any

from benchmarks.vectorize.tasks import HASH_BITS, Task
from rankplane.text import TextVectorizer


def make(task: Task, n_threads: int) -> Any:
    if task.is_stemmed:
        return TextVectorizer(preset="paper", n_jobs=n_threads)
    bits = HASH_BITS if task.is_hashed else None
    return TextVectorizer(preset="sklearn", dtype="float32", hashing=bits, n_jobs=n_threads, **task.settings)


def run(vectorizer: Any, documents: list[str], is_transform: bool) -> Any:
    return vectorizer.transform(documents) if is_transform else vectorizer.fit_transform(documents)
