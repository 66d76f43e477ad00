"""TextVectorizer: documents in, a csr matrix of TF-IDF weights out.

Three steps. The compiled core cuts documents into tokens and numbers them, on several threads. Python then looks at
the distinct tokens only: stop words, length, stemmer. The core counts n-grams of the terms that result and writes the
matrix.
"""

import itertools
import operator
from numbers import Number
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rankplane._core import Corpus, MatrixOptions, hashed_rows, tfidf_rows
from rankplane.docstrings import Entry, documented
from rankplane.progress import ProgressBar
from rankplane.text.functions import Functions, warn
from rankplane.text.parts import NoColumnsError, Part, fixed, learn, read
from rankplane.text.settings import Settings, resolve
from rankplane.validation import check_n_jobs
from rankplane.versions import Versioned

DOCUMENTS = {
    "X": Entry(
        "iterable of str or bytes, or of batches of them",
        "Documents: a list, an array, a column of pandas, polars or pyarrow, or an iterator of such batches, which are read one at "
        "a time. None and NaN are empty documents.",
    ),
    "y": Entry("None", "Ignored."),
}


@documented(DOCUMENTS)
class TextVectorizer(Functions, Versioned, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[misc,call-arg]
    """Turn documents into a sparse matrix of TF-IDF features of words and n-grams.

    With the same settings, the result is that of :class:`sklearn.feature_extraction.text.TfidfVectorizer`, many times faster.
    ``preset="sklearn"`` has its defaults.

    Parameters
    ----------
    preset : {'default', 'paper', 'sklearn'}
        Values of the parameters that are None. ``'default'`` keeps all words and the signs ``!`` and ``?``, does not stem, uses
        sublinear counts, and keeps words and pairs of words that occur in at least 2 documents. ``'paper'`` removes English stop
        words and words of one character, stems, and keeps words and pairs that occur in at least 3 documents and at most half
        of them. ``'sklearn'`` keeps words of at least 2 characters, and makes columns of single words, in float64.
    ngram_range : tuple of (int, int)
        Smallest and largest number of words (or characters) of an n-gram. Up to pairs, but for ``preset="sklearn"``.
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
    preprocessor : callable
        Function from a document to its text, instead of ``lowercase`` and ``strip_accents``. Runs in Python.
    segmenter : {'chinese'}
        Split texts of a language that does not separate words by spaces. Needs the extra ``rankplane[chinese]``.
    min_token_length : int
        Shorter tokens are removed before n-grams are formed.
    analyzer : {'word', 'char', 'char_wb'}, dict or callable
        Whether n-grams are made of words, of characters, or of characters within words. A dict from analyzers to their
        ``ngram_range``, such as ``{"word": (1, 2), "char_wb": (2, 5)}``, makes columns of all of them, whose names start with
        ``word__`` and ``char_wb__``. A range of None is that of the preset for words, (1, 4) for char and (2, 5) for char_wb.
        ``min_df``, ``max_df`` and ``max_features`` apply to each analyzer by itself, parameters of words to words only.
        A function from a document to its n-grams runs in Python, and replaces all steps before them.
    lowercase : bool
        Whether to convert documents to lower case.
    strip_accents : {'ascii', 'unicode'} or callable
        How to remove accents, as in scikit-learn. None keeps them.
    sublinear_tf : bool
        Whether to replace the term frequency tf by 1 + log(tf).
    use_idf : bool
        Whether to weight features by inverse document frequency. None means True, or False with ``hashing``.
    smooth_idf : bool
        Whether to compute idf as if an extra document contained every term once. None means True.
    norm : {'l2', 'l1'}
        Norm that rows are scaled to 1 by. Of several analyzers, each has the same share of it. None disables scaling.
    binary : bool
        Whether to count every n-gram of a document once.
    vocabulary : mapping of str to int or iterable of str
        The n-grams that are columns, with the numbers of these, or in their order. If None, ``fit`` learns them.
    dtype : {numpy.float32, numpy.float64}
        Type of the values. float32, but for ``preset="sklearn"``.
    hashing : int
        Hash n-grams to ``2**hashing`` features instead of learning a vocabulary; ``transform`` then needs no ``fit``.
    input : {'content', 'filename', 'file'}
        Whether documents are texts, names of files, or open files.
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
    fixed_vocabulary_ : bool
        Whether ``vocabulary`` was given.
    idf_ : ndarray of shape (n_features,)
        Inverse document frequencies. Only with ``use_idf``. May be set, also without ``fit`` if ``vocabulary`` is given.
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
    _resolved: tuple[list[Any], tuple[Settings, ...]]

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
        preprocessor: Any = None,
        segmenter: str | None = None,
        min_token_length: int | None = None,
        analyzer: Any = "word",
        lowercase: bool = True,
        strip_accents: Any = None,
        sublinear_tf: bool | None = None,
        use_idf: bool | None = None,
        smooth_idf: bool | None = None,
        norm: str | None = "l2",
        binary: bool = False,
        vocabulary: Any = None,
        dtype: Any = None,
        hashing: int | None = None,
        input: str = "content",
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
        self.preprocessor = preprocessor
        self.segmenter = segmenter
        self.min_token_length = min_token_length
        self.analyzer = analyzer
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.sublinear_tf = sublinear_tf
        self.use_idf = use_idf
        self.smooth_idf = smooth_idf
        self.norm = norm
        self.binary = binary
        self.vocabulary = vocabulary
        self.dtype = dtype
        self.hashing = hashing
        self.input = input
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
        warn(settings)
        if settings[0].hashing is None:
            with ProgressBar(self.verbose) as bar:
                corpora = read(X, settings, check_n_jobs(self.n_jobs), bar)
                if self.vocabulary is None:
                    self._learn(corpora, settings, bar)
                else:
                    self._weigh(self._fixed_rows(corpora, settings, bar))
        return self

    def fit_transform(self, X: Any, y: Any = None) -> sp.csr_matrix:
        """Learn the vocabulary and transform the documents, which are read once.

        Returns
        -------
        csr_matrix of shape (n_documents, n_features)
            Features of the documents.
        """
        settings = self._settings()
        warn(settings)
        with ProgressBar(self.verbose) as bar:
            corpora = read(X, settings, check_n_jobs(self.n_jobs), bar)
            if settings[0].hashing is not None:
                return self._hashed_rows(corpora, settings, bar)
            if self.vocabulary is not None:
                return self._weigh(self._fixed_rows(corpora, settings, bar))
            self._learn(corpora, settings, bar)
            return self._rows(corpora, is_learned=True, bar=bar)

    def transform(self, X: Any) -> sp.csr_matrix:
        """Transform documents into features.

        Returns
        -------
        csr_matrix of shape (n_documents, n_features)
            Features of the documents.
        """
        settings = self._settings()
        self._become_fixed()
        if settings[0].hashing is None:
            check_is_fitted(self)
        with ProgressBar(self.verbose) as bar:
            corpora = read(X, settings, check_n_jobs(self.n_jobs), bar)
            if settings[0].hashing is not None:
                return self._hashed_rows(corpora, settings, bar)
            for part, corpus in zip(self._parts, corpora, strict=True):
                part.apply(corpus)
            return self._rows(corpora, is_learned=False, bar=bar)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Get the n-grams of the features.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of shape (n_features,)
            The n-grams, in alphabetical order, analyzer by analyzer.
        """
        self._check_has_vocabulary()
        return np.asarray(self._names(), dtype=object)

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Column of each n-gram. Built on first use, since it takes longer than the matrix."""
        self._check_has_vocabulary()
        if self._column_of is None:
            self._column_of = {name: column for column, name in enumerate(self._names())}
        return self._column_of

    @property
    def fixed_vocabulary_(self) -> bool:
        """Whether ``vocabulary`` was given."""
        self._check_has_vocabulary()
        return self.vocabulary is not None

    @property
    def idf_(self) -> npt.NDArray[np.float64]:
        """Inverse document frequencies."""
        if not hasattr(self, "_idf"):
            raise AttributeError("idf_ is there after fit, and only with use_idf.")
        return self._idf

    @idf_.setter
    def idf_(self, values: Any) -> None:
        if not self._settings()[0].use_idf:
            raise ValueError("idf_ cannot be set with use_idf=False.")
        self._become_fixed()
        self._check_has_vocabulary()
        idf = np.array(values, dtype=np.float64)
        n_columns = self._column_starts()[-1]
        if idf.shape != (n_columns,) or not np.all(np.isfinite(idf)):
            raise ValueError(f"idf_ must have a finite number for each of {n_columns} columns. Got shape {idf.shape}.")
        self._idf = idf

    def _become_fixed(self) -> None:
        """Take the columns from ``vocabulary``, which needs no documents."""
        if self.vocabulary is not None and not hasattr(self, "_parts"):
            self._parts = [fixed(self.vocabulary, self._settings()[0])]
            self._column_of = None

    def _check_has_vocabulary(self) -> None:
        if self.hashing is not None:
            raise AttributeError("A TextVectorizer with hashing has no vocabulary.")
        self._become_fixed()
        if not hasattr(self, "_parts"):
            check_is_fitted(self)

    def _column_starts(self) -> list[int]:
        """The first column of each analyzer, and where the last ones end."""
        if self.hashing is not None:
            return [number << self.hashing for number in range(len(self._settings()) + 1)]
        return [0, *itertools.accumulate(part.n_columns for part in self._parts)]

    def _ngram_sizes(self) -> npt.NDArray[np.intp]:
        """The number of words, or of characters, of the n-gram of each column."""
        self._check_has_vocabulary()
        return np.concatenate([part.sizes() for part in self._parts])

    def _names(self) -> list[str]:
        return [name for part in self._parts for name in part.names()]

    def _settings(self) -> tuple[Settings, ...]:
        """Parameters with every default resolved, for each analyzer; cached as long as all parameters are the same objects."""
        values = [getattr(self, name) for name in _PARAMETERS]
        if hasattr(self, "_resolved") and all(map(operator.is_, values, self._resolved[0])):
            return self._resolved[1]
        settings = resolve(self.get_params(deep=False))
        # Not cached if a parameter could be changed in place.
        if all(isinstance(value, _UNCHANGING) or callable(value) for value in values):
            self._resolved = values, settings
        return settings

    def _fixed_rows(self, corpora: list[Corpus], settings: tuple[Settings, ...], bar: ProgressBar) -> sp.csr_matrix:
        """Counts of the n-grams of ``vocabulary``, from which ``n_documents_`` and ``idf_`` are learnt."""
        self._parts = [fixed(self.vocabulary, settings[0])]
        self._column_of = None
        self.n_documents_ = corpora[0].n_documents
        self._parts[0].apply(corpora[0])
        counts = self._rows(corpora, is_learned=False, bar=bar, unweighted=True)
        found = np.bincount(counts.indices, minlength=counts.shape[1])
        with np.errstate(divide="ignore"):  # without smoothing, what no document has is infinitely informative, as in scikit-learn
            self._keep_idf(_idf(found, self.n_documents_, settings[0]), settings[0])
        return counts

    def _weigh(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        """Weigh counts as the core does."""
        if hasattr(self, "_idf"):
            rows.data *= self._idf[rows.indices]
        if self.norm is not None and rows.nnz:
            normalize(rows, self.norm, copy=False)
        return rows.astype(self._settings()[0].dtype, copy=False)

    def _keep_idf(self, idf: npt.NDArray[np.float64], settings: Settings) -> None:
        if settings.use_idf:
            self._idf = idf
        elif hasattr(self, "_idf"):
            del self._idf

    def _learn(self, corpora: list[Corpus], settings: tuple[Settings, ...], bar: ProgressBar) -> None:
        parts = [learn(corpus, own, bar) for corpus, own in zip(corpora, settings, strict=True)]
        self._adopt(parts, corpora[0].n_documents, corpora[0].n_threads)

    def _adopt(self, parts: list[Part], n_documents: int, n_threads: int) -> None:
        """Become fitted."""
        settings = parts[0].settings
        if not any(part.n_columns for part in parts):
            raise NoColumnsError(
                "X must contain terms that min_df, max_df and stop_words do not remove: no column remains. "
                f"Got {n_documents} documents, min_df={settings.min_df}, max_df={settings.max_df}."
            )
        self._parts = parts
        self._column_of = None
        self.n_documents_ = n_documents
        # Numbers of documents are far fewer than columns.
        by_count = _idf(np.arange(1, n_documents + 1), n_documents, settings)
        self._keep_idf(np.concatenate([part.weigh(by_count, n_threads) for part in parts]), settings)

    def _rows(self, corpora: list[Corpus], is_learned: bool, bar: ProgressBar, *, unweighted: bool = False) -> sp.csr_matrix:
        settings, n_documents = self._settings()[0], corpora[0].n_documents
        arrays = tfidf_rows(
            [part.vocabulary for part in self._parts],
            corpora,
            idf=self.idf_ if settings.use_idf and not unweighted else None,
            is_learned=is_learned,
            options=_matrix_options(settings, unweighted=unweighted),
            on_progress=bar.phase("Making columns", n_documents),
        )
        return _to_csr(arrays, n_documents, self._column_starts()[-1])

    def _hashed_rows(self, corpora: list[Corpus], settings: tuple[Settings, ...], bar: ProgressBar) -> sp.csr_matrix:
        n_documents = corpora[0].n_documents
        arrays = hashed_rows(
            corpora,
            sizes=[own.ngram_range if own.analyzer == "word" else (1, 1) for own in settings],
            n_bits=settings[0].hashing or 0,
            options=_matrix_options(settings[0]),
            on_progress=bar.phase("Making columns", n_documents),
        )
        return _to_csr(arrays, n_documents, self._column_starts()[-1])

    def _to_values(self) -> dict[str, Any]:
        self._check_reads_texts()
        if self.hashing is not None:
            return {}
        parts = [part.to_values() for part in self._parts]
        values: dict[str, Any] = parts[0] if len(parts) == 1 else {"parts": parts}
        values["n_documents"] = getattr(self, "n_documents_", None)
        return values | ({"idf": self._idf} if hasattr(self, "_idf") else {})

    def _check_reads_texts(self) -> None:
        # A model from elsewhere must not open files whose names it is sent.
        if self.input != "content":
            raise ValueError(f"input must be 'content' to be stored in a model file. Got {self.input!r}.")

    def _from_values(self, values: dict[str, Any]) -> None:
        self._check_reads_texts()
        settings = self._settings()
        if settings[0].hashing is not None:
            return
        stored = values.get("parts", [values])
        if len(stored) != len(settings):
            raise ValueError("there is not one vocabulary for each analyzer")
        self._parts = [Part.from_values(of_part, own) for of_part, own in zip(stored, settings, strict=True)]
        self._column_of = None
        if values["n_documents"] is not None:
            self.n_documents_ = int(values["n_documents"])
        if "idf" in values:
            self._idf = np.ascontiguousarray(values["idf"], dtype=np.float64)
        if settings[0].use_idf and self._idf.shape != (self._column_starts()[-1],):
            raise ValueError("the vocabulary and its frequencies do not match")

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        # Without what can be computed again.
        return {name: None if name == "_column_of" else value for name, value in state.items() if name != "_resolved"}

    def __sklearn_is_fitted__(self) -> bool:
        return self.hashing is not None or (hasattr(self, "_parts") and (hasattr(self, "_idf") or self.use_idf is False))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = self.hashing is None
        return tags


_UNCHANGING = (type(None), str, Number, tuple, frozenset)
_PARAMETERS: tuple[str, ...] = tuple(TextVectorizer._get_param_names())


def _matrix_options(settings: Settings, *, unweighted: bool = False) -> MatrixOptions:
    return MatrixOptions(
        sublinear_tf=settings.sublinear_tf,
        binary=settings.binary,
        norm="" if unweighted else settings.norm or "",
        is_double=unweighted or settings.dtype == "float64",
    )


def _idf(n_documents_with: npt.NDArray[Any], n_documents: int, settings: Settings) -> npt.NDArray[np.float64]:
    extra = int(settings.smooth_idf)
    idf: npt.NDArray[np.float64] = np.log((n_documents + extra) / (n_documents_with + float(extra))) + 1.0
    return idf


def _to_csr(parts: tuple[Any, Any, Any], n_documents: int, n_columns: int) -> sp.csr_matrix:
    starts, columns, values = parts
    if len(values) < 2**31:
        starts = starts.astype(np.int32)
    matrix = sp.csr_matrix((values, columns, starts), shape=(n_documents, n_columns), copy=False)
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix
