"""lenlp, a vectorizer in Rust. It has neither stemming nor min_df, and rules of its own for what a word is."""

from typing import Any

from lenlp.sparse import TfidfVectorizer

from benchmarks.vectorize.tasks import Task


def make(task: Task, n_threads: int) -> Any:
    if task.is_hashed or task.is_stemmed or task.settings.get("analyzer", "word") != "word":
        return None
    return TfidfVectorizer(**task.settings)


def run(vectorizer: Any, documents: list[str], is_transform: bool) -> Any:
    return vectorizer.transform(documents) if is_transform else vectorizer.fit_transform(documents)
