"""The tasks for all competitors, with the parameter names of scikit-learn, which each competitor translates."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

HASH_BITS = 20


@dataclass(frozen=True)
class Task:
    """Settings, and whether to time `transform` of documents not seen instead of `fit_transform`."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    is_stemmed: bool = False
    is_hashed: bool = False
    is_transform: bool = False


PAPER = {"ngram_range": (1, 2), "min_df": 3, "max_df": 0.5}

UNION = {"word": (1, 2), "char_wb": (2, 5)}

TASKS = {
    task.name: task
    for task in (
        Task("unigrams"),
        Task("bigrams", {"ngram_range": (1, 2)}),
        Task("paper", PAPER, is_stemmed=True),
        Task("transform bigrams", {"ngram_range": (1, 2)}, is_transform=True),
        Task("transform paper", PAPER, is_stemmed=True, is_transform=True),
        Task("hashed bigrams", {"ngram_range": (1, 2)}, is_hashed=True),
        Task("characters", {"ngram_range": (2, 3), "analyzer": "char_wb"}),
        Task("char 1-4", {"ngram_range": (1, 4), "analyzer": "char"}),
        Task("char_wb 2-5", {"ngram_range": (2, 5), "analyzer": "char_wb"}),
        Task("transform char 1-4", {"ngram_range": (1, 4), "analyzer": "char"}, is_transform=True),
        Task("transform char_wb 2-5", {"ngram_range": (2, 5), "analyzer": "char_wb"}, is_transform=True),
        Task("union", {"analyzer": UNION}),
        Task("union, min_df 2", {"analyzer": UNION, "min_df": 2}),
    )
}


def read_texts(folder: Path, name: str, n_documents: int | None) -> list[str]:
    column = pq.read_table(folder / f"{name}.parquet", columns=["text"])["text"]
    return [text or "" for text in column.to_pylist()[:n_documents]]
