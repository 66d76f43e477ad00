"""From a parquet file of rated texts to TF-IDF, with scikit-learn and PyStemmer only: no competitor prepares its own
data.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Names how texts are cut and joined below: change it with them, and cached matrices are made again.
RECIPE = "title in front, no <br />, words of two letters and more"
WORD = re.compile(r"(?u)\b\w\w+\b")

# "paper" is what the NPSVOR paper did. "keep" keeps the stop words: every row then has entries in the same few hundred
# columns, which is where threads that share weights get in each other's way. "default" is what predicts best.
FEATURES: dict[str, dict[str, Any]] = {
    "paper": {"ngram_range": (1, 2), "min_df": 3, "max_df": 0.5, "sublinear_tf": False},
    "keep": {"ngram_range": (1, 2), "min_df": 2, "max_df": 1.0, "sublinear_tf": True},
    "default": {"ngram_range": (1, 2), "min_df": 2, "max_df": 1.0, "sublinear_tf": True},
    "trigrams": {"ngram_range": (1, 3), "min_df": 2, "max_df": 1.0, "sublinear_tf": True},
}

# What "default" and "trigrams" read: all words, ! and ?, and Chinese character by character, which has no spaces.
TOKEN = re.compile(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+|[!?\uff01\uff1f]")


def missing() -> str | None:
    """Why texts cannot be prepared here, if they cannot."""
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
        import Stemmer  # noqa: F401
    except ImportError as error:
        return f"texts need pandas, pyarrow and PyStemmer ({error.name} is not installed)"
    return None


def read_frame(path: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(path)


def texts_of(frame: Any) -> tuple[list[str], NDArray[np.int32]]:
    """The texts, titles in front, and the ranks numbered from 0."""
    texts = frame["text"].fillna("")
    if "title" in frame:
        texts = frame["title"].fillna("") + " " + texts
    texts = texts.str.replace("<br />", " ", regex=False)
    _, ranks = np.unique(frame["rating"].to_numpy(), return_inverse=True)
    return texts.tolist(), ranks.astype(np.int32)


def make_vectorizer(features: str) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    tokenize = {"paper": stemmed_words, "keep": lambda: WORD.findall}.get(features, lambda: TOKEN.findall)()
    return TfidfVectorizer(tokenizer=tokenize, token_pattern=None, dtype=np.float32, **FEATURES[features])


def stemmed_words() -> Callable[[str], list[str]]:
    import Stemmer
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    stem = Stemmer.Stemmer("english", maxCacheSize=1_000_000).stemWord
    return lambda text: [stem(word) for word in WORD.findall(text) if word not in ENGLISH_STOP_WORDS]
