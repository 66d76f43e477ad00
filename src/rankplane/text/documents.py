"""Hands documents, in whatever container they come, to a corpus of the compiled core."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import strip_accents_ascii, strip_accents_unicode

from rankplane._core import Corpus
from rankplane.text.settings import Settings

OnProgress = Callable[[int], None] | None

# Documents of an iterator are gathered to lists of this length, to share the cost of a call.
_N_GATHERED = 4096


def feed(corpus: Corpus, X: Any, settings: Settings, on_progress: OnProgress) -> None:
    """Add all documents of X, an iterable of documents or of batches of them, to the corpus."""
    if isinstance(X, str | bytes):
        raise ValueError(f"X must be an iterable of documents. Got a single {type(X).__name__}.")
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        raise TypeError(f"X must be one column of documents. Got a {type(X).__name__}.")
    in_python = settings.tokenizer is not None or settings.segmenter is not None
    if not in_python and _feed_arrow(corpus, X, on_progress):
        return
    if isinstance(X, np.ndarray):
        if X.ndim != 1:
            raise ValueError(f"X must have one dimension. Got an array of shape {X.shape}.")
        X = X.tolist()
    elif hasattr(X, "to_pylist"):
        X = X.to_pylist()
    elif hasattr(X, "to_list"):
        X = X.to_list()
    if not isinstance(X, Iterable):
        raise TypeError(f"X must be an iterable of documents. Got {type(X).__name__}.")
    for part in _parts(X):
        if not isinstance(part, list):
            feed(corpus, part.batch, settings, on_progress)
        elif in_python:
            _feed_in_python(corpus, part, settings, on_progress)
        else:
            corpus.add(part, settings.encoding, settings.decode_error, on_progress)


class _Batch:
    def __init__(self, batch: Any) -> None:
        self.batch = batch


def _parts(X: Iterable[Any]) -> Iterator[list[Any] | _Batch]:
    """Lists of documents, or batches that hold documents themselves."""
    if isinstance(X, list) and X and not _is_batch(X[0]):
        yield X
        return
    items = iter(X)
    for first in items:
        if _is_batch(first):
            yield _Batch(first)
        else:
            yield [first, *itertools.islice(items, _N_GATHERED - 1)]


def _is_batch(item: Any) -> bool:
    if isinstance(item, list | tuple | np.ndarray):
        return True
    return hasattr(item, "__arrow_c_stream__") or hasattr(item, "__arrow_c_array__") or hasattr(item, "to_list")


def _feed_arrow(corpus: Corpus, X: Any, on_progress: OnProgress) -> bool:
    """Read a column of strings where it lies. False if X is none."""
    if str(getattr(X, "dtype", "")) == "object":
        return False
    # pandas before 3.0 offers its Arrow columns through their extension array only.
    if not hasattr(X, "__arrow_c_stream__") and hasattr(getattr(X, "array", None), "__arrow_array__"):
        X = X.array.__arrow_array__()
    if hasattr(X, "__arrow_c_array__"):
        schema, array = X.__arrow_c_array__()
        return bool(corpus.add_arrow_array(schema, array, on_progress))
    if hasattr(X, "__arrow_c_stream__"):
        return bool(corpus.add_arrow_stream(X.__arrow_c_stream__(), on_progress))
    return False


def _feed_in_python(corpus: Corpus, documents: list[Any], settings: Settings, on_progress: OnProgress) -> None:
    """The slow path: a tokenizer or segmenter that only Python can call."""
    for start in range(0, len(documents), _N_GATHERED):
        texts = [_to_text(document, settings) for document in documents[start : start + _N_GATHERED]]
        if settings.segmenter is not None:
            # The pieces go through the token rules like any text: blanks are all that a segmenter adds.
            texts = [" ".join(settings.segmenter(text)) for text in texts]
        if settings.tokenizer is None:
            corpus.add(texts, "utf-8", "strict", on_progress)
            continue
        corpus.add_tokens([list(settings.tokenizer(_normalized(text, settings))) for text in texts])
        if on_progress is not None:
            on_progress(corpus.n_documents)


def _to_text(document: Any, settings: Settings) -> str:
    if isinstance(document, str):
        return document
    if isinstance(document, bytes):
        return document.decode(settings.encoding, settings.decode_error)
    if document is None or type(document).__name__ in ("NAType", "NaTType") or document != document:
        return ""
    raise TypeError(f"documents must be str, bytes, None or NaN. Got {type(document).__name__}.")


def _normalized(text: str, settings: Settings) -> str:
    if settings.lowercase:
        text = text.lower()
    if settings.strip_accents == "unicode":
        text = strip_accents_unicode(text)
    elif settings.strip_accents == "ascii":
        text = strip_accents_ascii(text)
    return text
