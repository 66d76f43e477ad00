"""The columns of one analyzer: its n-grams counted, chosen and stored. A vectorizer has one such part, or several side by side."""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from rankplane._core import Corpus, Vocabulary
from rankplane.progress import ProgressBar
from rankplane.text.code_points import code_points
from rankplane.text.documents import feed
from rankplane.text.settings import Settings
from rankplane.text.stemming import stems

NO_COLUMN = 2**32 - 1  # what the core has for n-grams without one


class NoColumnsError(ValueError):
    """No term of the documents becomes a column."""


class Part:
    """A vocabulary with its columns chosen."""

    def __init__(self, settings: Settings, vocabulary: Vocabulary, *, is_joined: bool) -> None:
        self.settings = settings
        self.vocabulary = vocabulary
        self.is_joined = is_joined  # whether n-grams were joined before they were counted, since terms contain blanks

    @property
    def n_columns(self) -> int:
        return self.vocabulary.n_columns

    def names(self) -> list[str]:
        names = self.vocabulary.names()
        return [self.settings.prefix + name for name in names] if self.settings.prefix else names

    def sizes(self) -> npt.NDArray[np.intp]:
        """The number of words, or of characters, of the n-gram of each column."""
        if self.settings.analyzer != "word":
            return np.array(list(map(len, self.vocabulary.names())), dtype=np.intp)
        if self.is_joined:
            return np.array([name.count(" ") + 1 for name in self.vocabulary.names()], dtype=np.intp)
        # Level by level: a million names would take a second and a hundred megabytes.
        sizes = np.empty(self.n_columns, dtype=np.intp)
        for size, (_, _, columns) in enumerate(self.vocabulary.__getstate__()[2], start=1):
            sizes[columns[columns != NO_COLUMN]] = size
        return sizes

    def weigh(self, by_document_count: npt.NDArray[np.float64], n_threads: int) -> npt.NDArray[np.float64]:
        """A number per column: by_document_count[n - 1] for one that n documents have."""
        return self.vocabulary.weights(by_document_count, n_threads)

    def apply(self, corpus: Corpus) -> None:
        """Rewrite documents in terms of the vocabulary."""
        if self.is_joined:
            corpus.join_ngrams(*self.settings.ngram_range, None)
        self.vocabulary.apply(corpus, None)

    def to_values(self) -> dict[str, Any]:
        terms, ends, levels = self.vocabulary.__getstate__()
        stored = [list(level) for level in levels]
        return {"terms": np.frombuffer(terms, dtype=np.uint8), "ends": ends, "levels": stored, "is_joined": self.is_joined}

    @classmethod
    def from_values(cls, values: dict[str, Any], settings: Settings) -> "Part":
        levels = [(keys, counts, columns) for keys, counts, columns in values["levels"]]
        if len(levels) > settings.ngram_range[1]:
            raise ValueError("the vocabulary has longer n-grams than ngram_range")
        columns = np.concatenate([level[2] for level in levels])
        columns = columns[columns != NO_COLUMN]
        # The core indexes by these without looking.
        if len(columns) and not (columns.max() < len(columns) and np.all(np.bincount(columns) == 1)):
            raise ValueError("the columns of the vocabulary are not numbered one by one")
        vocabulary = Vocabulary.__new__(Vocabulary)
        vocabulary.__setstate__((values["terms"].tobytes(), values["ends"], levels))
        return cls(settings, vocabulary, is_joined=bool(values["is_joined"]))


def read(X: Any, all_settings: Sequence[Settings], n_threads: int, bar: ProgressBar) -> list[Corpus]:
    """Read the documents once, as lists of terms for each analyzer."""
    corpora = [
        Corpus(
            code_points(settings.lowercase, settings.strip_accents),
            analyzer=settings.analyzer,
            min_length=settings.min_word_length,
            marks=settings.marks,
            min_n=settings.ngram_range[0],
            max_n=settings.ngram_range[1],
            n_threads=n_threads,
        )
        for settings in all_settings
    ]
    feed(corpora, X, all_settings, bar.phase("Reading texts", len(X) if hasattr(X, "__len__") else None))
    for corpus, settings in zip(corpora, all_settings, strict=True):
        terms = None
        if settings.stemmer is not None or settings.tokenizer is not None:
            terms = _terms_of(corpus.tokens(), settings)
        corpus.map_tokens(list(settings.stop_words), terms)
    return corpora


def learn(corpus: Corpus, settings: Settings, bar: ProgressBar) -> Part:
    """Count the n-grams of documents, and choose the columns."""
    n_documents = corpus.n_documents
    least, _ = _document_bounds(settings, n_documents)
    is_joined = _may_need_joining(settings) and corpus.has_blanks()
    if is_joined:
        corpus.join_ngrams(*settings.ngram_range, None)
    vocabulary = Vocabulary()
    vocabulary.learn(
        corpus,
        max_n=1 if is_joined else _longest(settings),
        min_documents=max(1, math.ceil(least)),
        counts_occurrences=settings.max_features is not None,
        on_progress=bar.phase("Counting terms"),
    )
    part = Part(settings, vocabulary, is_joined=is_joined)
    choose_columns(part, n_documents, corpus.n_threads)
    return part


def fixed(vocabulary: Any, settings: Settings) -> Part:
    """The columns that a user has chosen: a mapping from n-grams to columns, or n-grams in the order of their columns."""
    if isinstance(vocabulary, Mapping):
        column_of = dict(vocabulary)
    else:
        terms = sorted(vocabulary) if isinstance(vocabulary, set | frozenset) else list(vocabulary)
        column_of = {term: column for column, term in enumerate(terms)}
        if len(column_of) < len(terms):
            repeated = next(term for place, term in enumerate(terms) if column_of[term] != place)
            raise ValueError(f"vocabulary must have each n-gram once. Got {repeated!r} more than once.")
    if not column_of:
        raise ValueError("vocabulary must have at least one n-gram. Got none.")
    for term, column in column_of.items():
        if not isinstance(term, str):
            raise TypeError(f"vocabulary must be of str. Got {term!r}.")
        if isinstance(column, bool) or not isinstance(column, Integral):
            raise TypeError(f"vocabulary must have whole numbers as columns. Got {column!r} for {term!r}.")
    if sorted(column_of.values()) != list(range(len(column_of))):
        raise ValueError(f"vocabulary must number its columns from 0 to {len(column_of) - 1}, each once.")
    encoded = [term.encode("utf-8", "surrogatepass") for term in column_of]
    ends = np.cumsum([len(term) for term in encoded], dtype=np.int64)
    columns = np.fromiter(column_of.values(), dtype=np.uint32, count=len(column_of))
    level = np.zeros(0, dtype=np.uint64), np.zeros(len(columns), dtype=np.uint32), columns
    part = Vocabulary.__new__(Vocabulary)
    part.__setstate__((b"".join(encoded), ends, [level]))
    return Part(settings, part, is_joined=settings.analyzer == "word" and settings.ngram_range != (1, 1))


def count(corpus: Corpus, settings: Settings) -> Vocabulary:
    """All n-grams of some documents, whatever min_df, for a vocabulary of more documents than these."""
    if _may_need_joining(settings) and corpus.has_blanks():
        raise ValueError("tokenizer and stemmer must not make terms with spaces where documents are counted in parts.")
    vocabulary = Vocabulary()
    counts_occurrences = settings.max_features is not None
    vocabulary.learn(corpus, max_n=_longest(settings), min_documents=1, counts_occurrences=counts_occurrences, on_progress=None)
    return vocabulary


def choose_columns(part: Part, n_documents: int, n_threads: int, occurrences: list[npt.NDArray[Any]] | None = None) -> None:
    """Make columns of the n-grams. ``occurrences`` of these, by level, if the vocabulary has not counted them."""
    settings, vocabulary = part.settings, part.vocabulary
    shortest = settings.ngram_range[0] if not part.is_joined and settings.analyzer == "word" else 1
    vocabulary.choose_columns(shortest, float(_document_bounds(settings, n_documents)[1]), n_threads)
    if settings.max_features is None or vocabulary.n_columns <= settings.max_features:
        return
    if occurrences is None:
        counts = vocabulary.occurrence_counts().astype(np.float64)
    else:
        counts = np.zeros(vocabulary.n_columns)
        for (_, _, columns), of_level in zip(vocabulary.__getstate__()[2], occurrences, strict=True):
            counts[columns[columns != NO_COLUMN]] = of_level[columns != NO_COLUMN]
    kept = np.zeros(len(counts), dtype=np.uint8)
    # The same sort as in scikit-learn, so that ties are broken in the same way.
    kept[(-counts).argsort()[: settings.max_features]] = 1
    vocabulary.keep_columns(kept, n_threads)


def _document_bounds(settings: Settings, n_documents: int) -> tuple[float, float]:
    """In how many documents a term must be, at least and at most."""
    least = settings.min_df if isinstance(settings.min_df, int) else settings.min_df * n_documents
    most = settings.max_df if isinstance(settings.max_df, int) else settings.max_df * n_documents
    if n_documents > 0 and most < least:
        raise ValueError(
            f"max_df must allow as many documents as min_df asks for. Got max_df={settings.max_df}, min_df={settings.min_df}."
        )
    return least, most


def _may_need_joining(settings: Settings) -> bool:
    return settings.needs_blank_check and settings.analyzer == "word" and settings.ngram_range[1] > 1


def _longest(settings: Settings) -> int:
    """How many terms an n-gram has at most; n-grams of characters are terms themselves."""
    return settings.ngram_range[1] if settings.analyzer == "word" else 1


def _terms_of(tokens: list[str], settings: Settings) -> list[str | None]:
    """The term of each distinct token; None if it is dropped."""
    terms = stems(tokens, settings.stemmer)
    if settings.tokenizer is not None:
        # The compiled tokenizer has dropped short tokens already.
        terms = [term if len(token) >= settings.min_token_length else None for token, term in zip(tokens, terms, strict=True)]
    return terms
