"""The steps of a vectorizer as functions of Python, as scikit-learn's vectorizers offer them.

They are scikit-learn's own functions with our settings. They say what the compiled core does, and are not used by it.
"""

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.feature_extraction.text import CountVectorizer

from rankplane.text.documents import to_text
from rankplane.text.settings import Settings
from rankplane.text.stemming import stems

Function = Callable[[Any], Any]


class Functions(ABC):
    """Methods of a vectorizer that make functions of its steps."""

    @abstractmethod
    def _settings(self) -> tuple[Settings, ...]:
        """The settings of each analyzer."""

    @abstractmethod
    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """The names of the columns."""

    def build_preprocessor(self) -> Function:
        """Get the function that documents pass through before they are cut into tokens.

        Returns
        -------
        callable
            Function from a text to a text.
        """
        return cast(Function, _twin(self._settings()[0]).build_preprocessor())

    def build_tokenizer(self) -> Function:
        """Get the function that cuts a preprocessed text into words.

        Returns
        -------
        callable
            Function from a text to a list of tokens.
        """
        return _tokenizer(self._settings()[0])

    def build_analyzer(self) -> Function:
        """Get the function from a document to its n-grams.

        Returns
        -------
        callable
            Function from a document to the list of its n-grams, as they are named by ``get_feature_names_out``.
        """
        return partial(_analyze, [(own.prefix, _ngrams_of(own)) for own in self._settings()])

    def decode(self, doc: Any) -> str:
        """Get the text of a document.

        Parameters
        ----------
        doc : str, bytes, path or file
            Document, as ``input`` and ``encoding`` say.

        Returns
        -------
        str
            Its text.
        """
        return str(to_text(doc, self._settings()[0]))

    def get_stop_words(self) -> frozenset[str] | None:
        """Get the words that are removed.

        Returns
        -------
        frozenset of str or None
            Stop words. None if there are none.
        """
        return self._settings()[0].stop_words or None

    def inverse_transform(self, X: Any) -> list[npt.NDArray[np.object_]]:
        """Get the n-grams of each row.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_documents, n_features)
            Features of documents.

        Returns
        -------
        list of ndarray
            N-grams of the nonzero entries of each row.
        """
        rows = sp.csr_matrix(X)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        names = self.get_feature_names_out()
        return np.split(names[rows.indices], rows.indptr[1:-1])


def _twin(settings: Settings) -> CountVectorizer:
    """A vectorizer of scikit-learn that has the same steps."""
    return CountVectorizer(
        lowercase=settings.lowercase,
        strip_accents=settings.strip_accents,
        preprocessor=settings.preprocessor,
        tokenizer=partial(_words, settings),
        token_pattern=None,
        analyzer=settings.analyzer,
        ngram_range=settings.ngram_range,
    )


def _tokenizer(settings: Settings) -> Function:
    return settings.tokenizer or re.compile(settings.token_pattern).findall


def _words(settings: Settings, text: str) -> list[str]:
    """The terms of a preprocessed text."""
    if settings.segmenter is not None:
        text = " ".join(settings.segmenter(text))
    tokens = [token for token in _tokenizer(settings)(text) if len(token) >= settings.min_token_length]
    kept = [token for token in tokens if token not in settings.stop_words]
    return [stem for stem in stems(kept, settings.stemmer) if stem]


def _ngrams_of(settings: Settings) -> Function:
    read = partial(to_text, settings=settings)
    return partial(_compose, read, settings.analyze or _twin(settings).build_analyzer())


def _compose(first: Function, second: Function, document: Any) -> Any:
    return second(first(document))


def _analyze(analyzers: Iterable[tuple[str, Function]], document: Any) -> list[str]:
    return [prefix + ngram for prefix, analyze in analyzers for ngram in analyze(document)]


def warn(all_settings: tuple[Settings, ...]) -> None:
    """Warn of what scikit-learn warns of when it learns."""
    told = list(all_settings[0].warnings)
    if tokens := [token for settings in all_settings for token in _inconsistent(settings)]:
        told.append(
            "Your stop_words may be inconsistent with your preprocessing. "
            f"Tokenizing the stop words generated tokens {tokens} not in stop_words."
        )
    for sentence in told:
        warnings.warn(sentence, UserWarning, stacklevel=3)


def _inconsistent(settings: Settings) -> list[str]:
    """Tokens of stop words that are no stop words themselves."""
    if settings.analyzer != "word" or not settings.stop_words or settings.analyze is not None:
        return []
    preprocess, tokenize = _twin(settings).build_preprocessor(), _tokenizer(settings)
    try:
        found = {token for word in settings.stop_words for token in tokenize(preprocess(word))}
    except Exception:  # what a function of the user makes of a word is not for us to judge
        return []
    return sorted(found - settings.stop_words)
