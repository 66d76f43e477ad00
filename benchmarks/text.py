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
# columns, which is where threads that share weights get in each other's way.
FEATURES: dict[str, dict[str, Any]] = {
    "paper": {"ngram_range": (1, 2), "min_df": 3, "max_df": 0.5, "sublinear_tf": False},
    "keep": {"ngram_range": (1, 2), "min_df": 2, "max_df": 1.0, "sublinear_tf": True},
}


def missing() -> str | None:
    """Why texts cannot be prepared here, if they cannot."""
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
        import Stemmer  # noqa: F401
    except ImportError as error:
        return f"texts need pandas, pyarrow and PyStemmer ({error.name} is not installed)"
    return None


def read_texts(path: Path) -> tuple[list[str], NDArray[np.int32]]:
    """The texts, titles in front, and the ranks numbered from 0."""
    import pandas as pd

    frame = pd.read_parquet(path)
    texts = frame["text"].fillna("")
    if "title" in frame:
        texts = frame["title"].fillna("") + " " + texts
    texts = texts.str.replace("<br />", " ", regex=False)
    _, ranks = np.unique(frame["rating"].to_numpy(), return_inverse=True)
    return texts.tolist(), ranks.astype(np.int32)


def make_vectorizer(features: str) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    tokenize = stemmed_words() if features == "paper" else WORD.findall
    return TfidfVectorizer(tokenizer=tokenize, token_pattern=None, dtype=np.float32, **FEATURES[features])


def stemmed_words() -> Callable[[str], list[str]]:
    import Stemmer
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    stem = Stemmer.Stemmer("english", maxCacheSize=1_000_000).stemWord
    return lambda text: [stem(word) for word in WORD.findall(text) if word not in ENGLISH_STOP_WORDS]
