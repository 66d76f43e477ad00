"""TextVectorizer: documents in, a csr matrix of TF-IDF weights out.

Three steps. The compiled core cuts documents into tokens and numbers them, on several threads. Python then looks at
the distinct tokens only: stop words, length, stemmer. The core counts n-grams of the terms that result and writes the
matrix.
"""

import importlib
import math
import operator
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rankplane._core import Corpus, Vocabulary
from rankplane.docstrings import Entry, documented
from rankplane.progress import ProgressBar
from rankplane.text.code_points import code_points
from rankplane.text.documents import feed
from rankplane.text.settings import Settings, count_threads, resolve


class NoColumnsError(ValueError):
    """No term of the documents becomes a column."""


DOCUMENTS = {
    "X": Entry(
        "iterable of str or bytes, or of batches of them",
        "Documents: a list, an array, a column of pandas, polars or pyarrow, or an iterator of such batches, which are read one at "
        "a time. None and NaN are empty documents.",
    ),
    "y": Entry("None", "Ignored."),
}


@documented(DOCUMENTS)
class TextVectorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn documents into a sparse matrix of TF-IDF features of words and n-grams.

    With the same settings, the result is that of :class:`sklearn.feature_extraction.text.TfidfVectorizer`, in float32, and many
    times faster.

    Parameters
    ----------
    preset : {'default', 'paper'}
        Values of the parameters that are None. ``'default'`` keeps all words and the signs ``!`` and ``?``, does not stem, uses
        sublinear counts, and keeps words and pairs of words that occur in at least 2 documents. ``'paper'`` removes English stop
        words and words of one character, stems, and keeps words and pairs that occur in at least 3 documents and at most half
        of them.
    ngram_range : tuple of (int, int)
        Smallest and largest number of words (or characters) of an n-gram. (1, 2) in both presets.
    min_df : int or float
        Ignore n-grams that occur in fewer documents: a number of documents (int) or a proportion of them (float).
    max_df : int or float
        Ignore n-grams that occur in more documents: a number of documents (int) or a proportion of them (float).
    max_features : int
        Keep only this many of the most frequent n-grams. If None, all are kept.
    stop_words : False, str or iterable of str
        Words to remove before n-grams are formed: a list, or the name of a language. False removes none.
    stemmer : False, str or callable
        Name of a Snowball stemmer, or a function from a token to its stem. Tokens whose stem is None or empty are removed. False
        disables stemming.
    token_pattern : str
        Regular expression of a token. Patterns such as ``(?u)\\b\\w\\w+\\b``, optionally followed by ``|[!?]``, run in compiled
        code.
    tokenizer : callable
        Function from a normalised document to its tokens, instead of ``token_pattern``. Runs in Python.
    segmenter : {'chinese'}
        Split texts of a language that does not separate words by spaces. Needs the extra ``rankplane[chinese]``.
    min_token_length : int
        Shorter tokens are removed before n-grams are formed.
    analyzer : {'word', 'char', 'char_wb'}
        Whether n-grams are made of words, of characters, or of characters within words.
    lowercase : bool
        Whether to convert documents to lower case.
    strip_accents : {'ascii', 'unicode'}
        How to remove accents, as in scikit-learn. None keeps them.
    sublinear_tf : bool
        Whether to replace the term frequency tf by 1 + log(tf).
    use_idf : bool
        Whether to weight features by inverse document frequency. None means True, or False with ``hashing``.
    smooth_idf : bool
        Whether to compute idf as if an extra document contained every term once. None means True.
    norm : {'l2', 'l1'}
        Norm that rows are scaled to. None disables scaling.
    hashing : int
        Hash n-grams to ``2**hashing`` features instead of learning a vocabulary; ``transform`` then needs no ``fit``.
    encoding : str
        Encoding of documents that are bytes.
    decode_error : {'strict', 'ignore', 'replace'}
        What to do with bytes that cannot be decoded.
    n_jobs : int
        Number of threads. None means 1, -1 all processors. The result does not depend on it.
    verbose : int
        Set to 1 to show a progress bar.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        Column of each n-gram. Not with ``hashing``.
    idf_ : ndarray of shape (n_features,)
        Inverse document frequencies. Only with ``use_idf``.
    n_documents_ : int
        Number of documents seen during ``fit``. Not with ``hashing``.

    See Also
    --------
    ColumnEncoder : Encode tables of numbers and categories.
    sklearn.feature_extraction.text.TfidfVectorizer : The same features in scikit-learn.

    Examples
    --------
    >>> from rankplane import TextVectorizer
    >>> vectorizer = TextVectorizer(min_df=1)
    >>> X = vectorizer.fit_transform(["good value!", "not good"])
    >>> vectorizer.get_feature_names_out().tolist()
    ['!', 'good', 'good value', 'not', 'not good', 'value', 'value !']
    """

    _column_of: dict[str, int] | None
    _resolved: tuple[list[Any], Settings]

    def __init__(
        self,
        *,
        preset: str = "default",
        ngram_range: tuple[int, int] | None = None,
        min_df: float | None = None,
        max_df: float | None = None,
        max_features: int | None = None,
        stop_words: Any = None,
        stemmer: Any = None,
        token_pattern: str | None = None,
        tokenizer: Any = None,
        segmenter: str | None = None,
        min_token_length: int | None = None,
        analyzer: str = "word",
        lowercase: bool = True,
        strip_accents: str | None = None,
        sublinear_tf: bool | None = None,
        use_idf: bool | None = None,
        smooth_idf: bool | None = None,
        norm: str | None = "l2",
        hashing: int | None = None,
        encoding: str = "utf-8",
        decode_error: str = "strict",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.preset = preset
        self.ngram_range = ngram_range
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.stop_words = stop_words
        self.stemmer = stemmer
        self.token_pattern = token_pattern
        self.tokenizer = tokenizer
        self.segmenter = segmenter
        self.min_token_length = min_token_length
        self.analyzer = analyzer
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.sublinear_tf = sublinear_tf
        self.use_idf = use_idf
        self.smooth_idf = smooth_idf
        self.norm = norm
        self.hashing = hashing
        self.encoding = encoding
        self.decode_error = decode_error
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> "TextVectorizer":
        """Learn the vocabulary and the document frequencies.

        Returns
        -------
        object
            The fitted vectorizer.
        """
        settings = self._settings()
        if settings.hashing is None:
            with ProgressBar(self.verbose) as bar:
                self._learn(self._read(X, settings, bar), settings, bar)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> sp.csr_matrix:
        """Learn the vocabulary and transform the documents, which are read once.

        Returns
        -------
        csr_matrix of shape (n_documents, n_features)
            Features of the documents, in float32.
        """
        settings = self._settings()
        if settings.hashing is not None:
            return self.transform(X)
        with ProgressBar(self.verbose) as bar:
            corpus = self._read(X, settings, bar)
            self._learn(corpus, settings, bar)
            return self._rows(corpus, settings, is_learned=True, bar=bar)

    def transform(self, X: Any) -> sp.csr_matrix:
        """Transform documents into features.

        Returns
        -------
        csr_matrix of shape (n_documents, n_features)
            Features of the documents, in float32.
        """
        settings = self._settings()
        if settings.hashing is None:
            check_is_fitted(self)
        with ProgressBar(self.verbose) as bar:
            corpus = self._read(X, settings, bar)
            if settings.hashing is not None:
                return self._hashed_rows(corpus, settings, bar)
            if self._is_joined:
                corpus.join_ngrams(*settings.ngram_range, None)
            self._vocabulary.apply(corpus, None)
            return self._rows(corpus, settings, is_learned=False, bar=bar)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Get the n-grams of the features.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of shape (n_features,)
            The n-grams, in alphabetical order.
        """
        self._check_has_vocabulary()
        return np.asarray(self._vocabulary.names(), dtype=object)

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Column of each n-gram; made when first asked for, since it takes longer than the matrix."""
        self._check_has_vocabulary()
        if self._column_of is None:
            self._column_of = {name: column for column, name in enumerate(self._vocabulary.names())}
        return self._column_of

    def _check_has_vocabulary(self) -> None:
        if self.hashing is not None:
            raise AttributeError("A TextVectorizer with hashing has no vocabulary.")
        check_is_fitted(self)

    def _settings(self) -> Settings:
        """Parameters with every default resolved, anew when one of them is another object than in the last call."""
        values = [getattr(self, name) for name in _PARAMETERS]
        if hasattr(self, "_resolved") and all(map(operator.is_, values, self._resolved[0])):
            return self._resolved[1]
        settings = resolve(self.get_params(deep=False))
        # What could be changed in place is looked at in every call.
        if all(isinstance(value, _UNCHANGING) or callable(value) for value in values):
            self._resolved = values, settings
        return settings

    def _read(self, X: Any, settings: Settings, bar: ProgressBar) -> Corpus:
        """Documents become lists of terms."""
        corpus = Corpus(
            code_points(settings.lowercase, settings.strip_accents),
            analyzer=settings.analyzer,
            min_length=settings.min_word_length,
            marks=settings.marks,
            min_n=settings.ngram_range[0],
            max_n=settings.ngram_range[1],
            n_threads=count_threads(self.n_jobs),
        )
        feed(corpus, X, settings, bar.phase("Reading texts", len(X) if hasattr(X, "__len__") else None))
        terms = None
        if settings.stemmer is not None or settings.tokenizer is not None:
            terms = _terms_of(corpus.tokens(), settings)
        corpus.map_tokens(list(settings.stop_words), terms)
        return corpus

    def _learn(self, corpus: Corpus, settings: Settings, bar: ProgressBar) -> None:
        n_documents = corpus.n_documents
        least = settings.min_df if isinstance(settings.min_df, int) else settings.min_df * n_documents
        most = settings.max_df if isinstance(settings.max_df, int) else settings.max_df * n_documents
        if n_documents > 0 and most < least:
            raise ValueError(
                f"max_df must allow as many documents as min_df asks for. Got max_df={settings.max_df}, min_df={settings.min_df}."
            )
        min_n, max_n = settings.ngram_range
        is_words = settings.analyzer == "word"
        is_joined = is_words and max_n > 1 and settings.needs_blank_check and corpus.has_blanks()
        if is_joined:
            corpus.join_ngrams(min_n, max_n, None)
        if is_joined or not is_words:
            min_n = max_n = 1
        vocabulary = Vocabulary()
        has_limit = settings.max_features is not None
        vocabulary.learn(
            corpus,
            max_n=max_n,
            min_documents=max(1, math.ceil(least)),
            counts_occurrences=has_limit,
            on_progress=bar.phase("Counting terms"),
        )
        vocabulary.choose_columns(min_n, float(most))
        if vocabulary.n_columns == 0:
            raise NoColumnsError(
                "X must hold terms that min_df, max_df and stop_words leave over: no column remains. "
                f"Got {n_documents} documents, min_df={settings.min_df}, max_df={settings.max_df}."
            )
        if settings.max_features is not None and vocabulary.n_columns > settings.max_features:
            occurrences = vocabulary.occurrence_counts().astype(np.float64)
            kept = np.zeros(len(occurrences), dtype=np.uint8)
            # Ties fall as in scikit-learn, which sorts the same numbers in the same way.
            kept[(-occurrences).argsort()[: settings.max_features]] = 1
            vocabulary.keep_columns(kept)
        self._vocabulary = vocabulary
        self._column_of = None
        self._is_joined = is_joined
        self.n_documents_ = n_documents
        if settings.use_idf:
            extra = int(settings.smooth_idf)
            counts = vocabulary.document_counts().astype(np.float64)
            self.idf_ = np.log((n_documents + extra) / (counts + extra)) + 1.0
        elif hasattr(self, "idf_"):
            del self.idf_

    def _rows(self, corpus: Corpus, settings: Settings, is_learned: bool, bar: ProgressBar) -> sp.csr_matrix:
        n_documents = corpus.n_documents
        parts = self._vocabulary.rows(
            corpus,
            sublinear_tf=settings.sublinear_tf,
            idf=np.ascontiguousarray(self.idf_, dtype=np.float64) if settings.use_idf else None,
            norm=settings.norm or "",
            is_learned=is_learned,
            on_progress=bar.phase("Making columns", n_documents),
        )
        return _to_csr(parts, n_documents, self._vocabulary.n_columns)

    def _hashed_rows(self, corpus: Corpus, settings: Settings, bar: ProgressBar) -> sp.csr_matrix:
        assert settings.hashing is not None
        n_documents = corpus.n_documents
        min_n, max_n = settings.ngram_range if settings.analyzer == "word" else (1, 1)
        parts = corpus.hashed_rows(
            min_n=min_n,
            max_n=max_n,
            n_bits=settings.hashing,
            sublinear_tf=settings.sublinear_tf,
            norm=settings.norm or "",
            on_progress=bar.phase("Making columns", n_documents),
        )
        return _to_csr(parts, n_documents, 2**settings.hashing)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        # What is made again when it is first asked for.
        return {name: None if name == "_column_of" else value for name, value in state.items() if name != "_resolved"}

    def __sklearn_is_fitted__(self) -> bool:
        return self.hashing is not None or hasattr(self, "_vocabulary")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = self.hashing is None
        return tags


_UNCHANGING = (type(None), str, Number, tuple, frozenset)
_PARAMETERS: tuple[str, ...] = tuple(TextVectorizer._get_param_names())


def _terms_of(tokens: list[str], settings: Settings) -> list[str | None]:
    """What each distinct token counts as; None for nothing."""
    terms: list[str | None]
    if settings.stemmer is None:
        terms = list(tokens)
    elif isinstance(settings.stemmer, str):
        # Tokens are distinct, so a cache would only cost.
        terms = importlib.import_module("Stemmer").Stemmer(settings.stemmer, 0).stemWords(tokens)
    else:
        terms = [settings.stemmer(token) for token in tokens]
    if settings.tokenizer is not None:
        # The compiled tokenizer has dropped short tokens already.
        terms = [term if len(token) >= settings.min_token_length else None for token, term in zip(tokens, terms, strict=True)]
    return terms


def _to_csr(parts: tuple[Any, Any, Any], n_documents: int, n_columns: int) -> sp.csr_matrix:
    starts, columns, values = parts
    if len(values) < 2**31:
        starts = starts.astype(np.int32)
    matrix = sp.csr_matrix((values, columns, starts), shape=(n_documents, n_columns), copy=False)
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix
