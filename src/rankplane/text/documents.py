"""Passes documents, from any container, to a corpus of the compiled core."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import strip_accents_ascii, strip_accents_unicode

from rankplane._core import Corpus
from rankplane.text.packed import Part, Parts, Texts
from rankplane.text.settings import Settings

OnProgress = Callable[[int], None] | None
Targets = list[tuple[Corpus, Settings]]

# Documents of an iterator are passed on in lists of this length, to reduce the number of calls.
_N_GATHERED = 4096
# Enough that each of many threads has several blocks of the core to do.
_N_BYTES = 1 << 25


def feed(corpora: Sequence[Corpus], X: Any, all_settings: Sequence[Settings], on_progress: OnProgress) -> None:
    """Add all documents of X, an iterable of documents or of batches of them, to each corpus."""
    if isinstance(X, str | bytes):
        raise ValueError(f"X must be an iterable of documents. Got a single {type(X).__name__}.")
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        raise TypeError(f"X must be one column of documents. Got a {type(X).__name__}.")
    in_python = any(settings.needs_python for settings in all_settings)
    targets = list(zip(corpora, all_settings, strict=True))
    if not in_python:
        corpora[0].read_beside(list(corpora[1:]))
        del targets[1:]
    _feed(targets, X, on_progress, in_python=in_python)


def _feed(targets: Targets, X: Any, on_progress: OnProgress, *, in_python: bool) -> None:
    if isinstance(X, Texts):
        X = Parts(X, is_drained=False)
    if isinstance(X, Parts) and not in_python:
        for parts in X.at_once(_N_BYTES):
            targets[0][0].add_pieces([(part.buffer, part.starts, part.ends) for part in parts], on_progress)
        return
    if not in_python and _feed_arrow(targets[0][0], X, on_progress):
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
            _feed(targets, part.batch, on_progress, in_python=in_python)
        elif in_python:
            _feed_in_python(targets, part, on_progress)
        else:
            corpus, settings = targets[0]
            corpus.add(part, settings.encoding, settings.decode_error, on_progress)


class _Batch:
    def __init__(self, batch: Any) -> None:
        self.batch = batch


def _parts(X: Iterable[Any]) -> Iterator[list[Any] | _Batch]:
    """Lists of documents, or batches that contain documents themselves."""
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
    if isinstance(item, list | tuple | np.ndarray | Part):
        return True
    return hasattr(item, "__arrow_c_stream__") or hasattr(item, "__arrow_c_array__") or hasattr(item, "to_list")


def _feed_arrow(corpus: Corpus, X: Any, on_progress: OnProgress) -> bool:
    """Read an Arrow column of strings without a copy. False if X is none."""
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


def _feed_in_python(targets: Targets, documents: list[Any], on_progress: OnProgress) -> None:
    """The slow path: steps that only Python can take."""
    for start in range(0, len(documents), _N_GATHERED):
        texts = [to_text(document, targets[0][1]) for document in documents[start : start + _N_GATHERED]]
        for corpus, settings in targets:
            _add(corpus, texts, settings)
        if on_progress is not None:
            on_progress(targets[0][0].n_documents)


def _add(corpus: Corpus, texts: list[Any], settings: Settings) -> None:
    if settings.analyze is not None:
        corpus.add_tokens([list(settings.analyze(text)) for text in texts])
        return
    if settings.preprocessor is not None:
        texts = [settings.preprocessor(text) for text in texts]
    if settings.segmenter is not None:
        # A segmenter only adds spaces; the token rules apply to its pieces as to any text.
        texts = [" ".join(settings.segmenter(text)) for text in texts]
    if settings.tokenizer is None:
        # Corpora whose rows are joined have the same blocks.
        corpus.add(texts, "utf-8", "strict", None, as_one_block=True)
    else:
        corpus.add_tokens([list(settings.tokenizer(_normalized(text, settings))) for text in texts])


def to_text(document: Any, settings: Settings) -> Any:
    """The text of a document, or what a function of the user is to make one of."""
    if settings.input == "filename":
        document = Path(document).read_bytes()
    elif settings.input == "file":
        document = document.read()
    if isinstance(document, str):
        return document
    if isinstance(document, bytes):
        return document.decode(settings.encoding, settings.decode_error)
    if (
        document is None
        or type(document).__name__ in ("NAType", "NaTType")
        or (isinstance(document, float) and document != document)
    ):
        return ""
    if settings.preprocessor is not None or settings.analyze is not None:
        return document
    raise TypeError(f"documents must be str, bytes, None or NaN. Got {type(document).__name__}.")


def _normalized(text: str, settings: Settings) -> str:
    if settings.lowercase:
        text = text.lower()
    if settings.strip_accents == "unicode":
        text = strip_accents_unicode(text)
    elif settings.strip_accents == "ascii":
        text = strip_accents_ascii(text)
    return text
