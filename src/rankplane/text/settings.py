"""What the parameters of TextVectorizer mean together: presets filled in, mistakes refused."""

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np

from rankplane.text.stop_words import stop_words_of
from rankplane.validation import check_bool, check_choice, check_count, check_n_jobs, check_non_negative

PRESETS: dict[str, dict[str, Any]] = {
    "default": {
        "ngram_range": (1, 2),
        "min_df": 2,
        "max_df": 1.0,
        "stop_words": False,
        "stemmer": False,
        "token_pattern": r"(?u)\b\w+\b|[!?]",
        "min_token_length": 1,
        "sublinear_tf": True,
    },
    "paper": {
        "ngram_range": (1, 2),
        "min_df": 3,
        "max_df": 0.5,
        "stop_words": "english",
        "stemmer": "english",
        "token_pattern": r"(?u)\b\w+\b",
        "min_token_length": 2,
        "sublinear_tf": False,
    },
    "sklearn": {
        "ngram_range": (1, 1),
        "min_df": 1,
        "max_df": 1.0,
        "stop_words": False,
        "stemmer": False,
        "token_pattern": r"(?u)\b\w\w+\b",
        "min_token_length": 1,
        "sublinear_tf": False,
        "dtype": "float64",
    },
}
for _values in PRESETS.values():
    _values.setdefault("dtype", "float32")

ANALYZERS = ("word", "char", "char_wb")
# Lengths of n-grams of characters beside those of another analyzer, if none are given.
_RANGES = {"char": (1, 4), "char_wb": (2, 5)}
SEGMENTERS = ("chinese",)
CHOICES: dict[str, tuple[str | None, ...]] = {
    "preset": tuple(PRESETS),
    "norm": (None, "l1", "l2"),
    "decode_error": ("strict", "ignore", "replace"),
    "input": ("content", "filename", "file"),
    "segmenter": (None, *SEGMENTERS),
}

# The patterns that the compiled tokenizer knows: words of so many characters, and signs that are tokens of their own.
_NATIVE_PATTERN = re.compile(r"(?:\(\?u\))?\\b\\w((?:\\w)*)\+\\b(?:\|\[([!?#$%&*@]{1,4})\])?")

_WORDS_ONLY = ("stop_words", "stemmer", "token_pattern", "tokenizer", "segmenter", "min_token_length")
_VOCABULARY_ONLY = ("min_df", "max_df", "max_features")
# Where these do not apply, scikit-learn says so and goes on, so that programs written for it rely on that.
_ONLY_WARNED_OF = ("stop_words", "token_pattern", "tokenizer", "preprocessor", "ngram_range")

Tokenizer = Callable[[str], Iterable[str]]


@dataclass(frozen=True)
class Settings:
    """Parameters with every default resolved."""

    analyzer: str
    prefix: str  # of the names of columns
    ngram_range: tuple[int, int]
    min_df: float
    max_df: float
    max_features: int | None
    stop_words: frozenset[str]
    stemmer: str | Callable[[str], str | None] | None
    tokenizer: Tokenizer | None
    token_pattern: str
    preprocessor: Callable[[Any], str] | None
    analyze: Tokenizer | None  # from documents to terms, instead of all other steps
    input: str
    segmenter: Callable[[str], Iterable[str]] | None
    min_token_length: int
    min_word_length: int
    marks: str
    lowercase: bool
    strip_accents: str | None
    sublinear_tf: bool
    use_idf: bool
    smooth_idf: bool
    norm: str | None
    hashing: int | None
    binary: bool
    dtype: str
    encoding: str
    decode_error: str
    warnings: tuple[str, ...]

    @property
    def needs_blank_check(self) -> bool:
        """Only terms made by a Python callable can contain a space."""
        return self.tokenizer is not None or callable(self.stemmer)

    @property
    def needs_python(self) -> bool:
        """Whether documents pass through Python before the core reads them."""
        steps = (self.tokenizer, self.segmenter, self.preprocessor, self.analyze)
        return self.input != "content" or any(step is not None for step in steps)


def resolve(given: dict[str, Any]) -> tuple[Settings, ...]:
    """Check the parameters of a TextVectorizer, and fill in those left to the preset, for each analyzer."""
    for name, choices in CHOICES.items():
        check_choice(name, given[name], choices)
    ranges = given["analyzer"]
    if not isinstance(ranges, Mapping):
        if not callable(ranges):
            check_choice("analyzer", ranges, ANALYZERS)
        return (_resolve_one(given),)
    if not ranges or not set(ranges) <= set(ANALYZERS):
        known = f"analyzers ({', '.join(ANALYZERS)})"
        raise ValueError(f"analyzer must be a name, or a dict from some of the {known} to their ngram_range. Got {ranges!r}.")
    _refuse(given, ("ngram_range",), "with a dict as analyzer, which has one for each")
    _refuse(given, ("vocabulary",), "with a dict as analyzer, whose columns have prefixes")
    if "word" not in ranges:
        _refuse(given, _WORDS_ONLY, f"with analyzer={ranges!r}, which has no words")
    unset = dict.fromkeys(_WORDS_ONLY)
    return tuple(
        _resolve_one(
            given | {"analyzer": name, "ngram_range": ngram_range or _RANGES.get(name)} | ({} if name == "word" else unset),
            prefix=f"{name}__" if len(ranges) > 1 else "",
        )
        for name, ngram_range in ranges.items()
    )


def _resolve_one(given: dict[str, Any], prefix: str = "") -> Settings:
    given, warnings = _without_unused(given)
    _refuse_what_does_not_apply(given)
    check_n_jobs(given["n_jobs"])
    check_non_negative("verbose", given["verbose"])
    preset = PRESETS[given["preset"]]
    chosen = {name: preset[name] if given[name] is None else given[name] for name in preset}

    analyze = given["analyzer"] if callable(given["analyzer"]) else None
    is_words = given["analyzer"] == "word"
    tokenizer, min_word_length, marks = None, 1, ""
    if given["tokenizer"] is not None:
        if not callable(given["tokenizer"]):
            raise ValueError(f"tokenizer must be a callable that takes a document. Got {given['tokenizer']!r}.")
        tokenizer = given["tokenizer"]
    elif is_words:
        tokenizer, min_word_length, marks = _token_rules(chosen["token_pattern"])
    min_token_length = check_count("min_token_length", chosen["min_token_length"]) if is_words else 1
    use_idf = _flag("use_idf", given["use_idf"], given["hashing"] is None)
    preprocessor = _preprocessor(given)
    dtype = _dtype(chosen["dtype"])
    if dtype not in ("float32", "float64"):
        warnings += (f"Only float32 and float64 'dtype' should be used. {dtype} becomes float64.",)
    return Settings(
        analyzer="word" if analyze else given["analyzer"],
        prefix=prefix,
        ngram_range=(1, 1) if analyze else _ngram_range(chosen["ngram_range"]),
        min_df=_document_bound("min_df", chosen["min_df"]),
        max_df=_document_bound("max_df", chosen["max_df"]),
        max_features=None if given["max_features"] is None else check_count("max_features", given["max_features"]),
        stop_words=stop_words_of(chosen["stop_words"]) if is_words else frozenset(),
        stemmer=_stemmer(chosen["stemmer"]) if is_words else None,
        tokenizer=tokenizer,
        token_pattern=chosen["token_pattern"],
        preprocessor=preprocessor,
        analyze=analyze,
        input=given["input"],
        segmenter=None if given["segmenter"] is None else _segmenter(),
        min_token_length=min_token_length,
        min_word_length=max(min_word_length, min_token_length),
        marks=marks if min_token_length == 1 else "",
        lowercase=check_bool("lowercase", given["lowercase"]) and preprocessor is None,
        strip_accents=given["strip_accents"] if preprocessor is None else None,
        sublinear_tf=check_bool("sublinear_tf", chosen["sublinear_tf"]),
        use_idf=use_idf,
        smooth_idf=_flag("smooth_idf", given["smooth_idf"], True),
        norm=given["norm"],
        hashing=None if given["hashing"] is None else _n_bits(given["hashing"]),
        binary=check_bool("binary", given["binary"]),
        dtype="float32" if dtype == "float32" else "float64",
        encoding=_encoding(given["encoding"]),
        decode_error=given["decode_error"],
        warnings=warnings,
    )


def _refuse(given: dict[str, Any], names: Iterable[str], reason: str) -> None:
    for name in names:
        if given[name] is not None:
            raise ValueError(f"{name} must be left out {reason}. Got {given[name]!r}.")


def _without_unused(given: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The parameters without those that do not apply but do no harm, and a warning for each of these."""
    reasons = {}
    if callable(given["analyzer"]):
        reasons = dict.fromkeys(_ONLY_WARNED_OF, "'analyzer' is callable")
        if given["ngram_range"] == (1, 1):
            del reasons["ngram_range"]
    elif given["analyzer"] != "word":
        reasons = dict.fromkeys(("stop_words", "token_pattern", "tokenizer"), "'analyzer' != 'word'")
    elif given["tokenizer"] is not None:
        reasons = {"token_pattern": "'tokenizer' is not None"}
    reasons = {name: reason for name, reason in reasons.items() if given[name] is not None}
    warnings = tuple(f"The parameter '{name}' will not be used since {reason}" for name, reason in reasons.items())
    return given | dict.fromkeys(reasons), warnings


def _refuse_what_does_not_apply(given: dict[str, Any]) -> None:
    if given["analyzer"] != "word":
        _refuse(given, _WORDS_ONLY, f"with analyzer={given['analyzer']!r}, which has no words")
    if given["vocabulary"] is not None:
        _refuse(given, (*_VOCABULARY_ONLY, "hashing"), "with a vocabulary, which says what the columns are")
    if given["hashing"] is not None:
        _refuse(given, _VOCABULARY_ONLY, "with hashing, which keeps no counts of documents")
        if given["use_idf"]:
            raise ValueError("use_idf must be False or left out with hashing, which keeps no counts of documents. Got True.")
    if given["tokenizer"] is not None:
        _refuse(given, ("segmenter",), "with a tokenizer, which replaces it")
    if given["use_idf"] is False or given["hashing"] is not None:
        _refuse(given, ("smooth_idf",), "without idf, which it would smooth")


def _flag(name: str, value: Any, default: bool) -> bool:
    return default if value is None else check_bool(name, value)


def _document_bound(name: str, value: Any) -> float:
    if isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Integral) and 0 <= float(value) <= 1:
        return float(value)
    rule = f"{name} must be a number of documents (int) of at least 1 or a share of them (float) from 0 to 1"
    raise ValueError(f"{rule}. Got {value!r}.")


def _ngram_range(value: Any) -> tuple[int, int]:
    is_pair = isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(n, Integral) for n in value)
    if not is_pair or not 1 <= value[0] <= value[1]:
        raise ValueError(f"ngram_range must be a pair of integers with 1 <= first <= second. Got {value!r}.")
    return int(value[0]), int(value[1])


def _n_bits(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= 30:
        raise ValueError(f"hashing must be a number of bits from 1 to 30. Got {value!r}.")
    return int(value)


def _dtype(value: Any) -> str:
    try:
        return str(np.dtype(value).name)
    except TypeError:
        raise ValueError(f"dtype must be float32 or float64. Got {value!r}.") from None


def _preprocessor(given: dict[str, Any]) -> Callable[[Any], str] | None:
    """A function that texts pass through before the core lower-cases nothing and strips nothing any more."""
    preprocessor, strip_accents = given["preprocessor"], given["strip_accents"]
    for name in ("preprocessor", "strip_accents"):
        if isinstance(given[name], str) and name == "strip_accents":
            check_choice(name, given[name], (None, "ascii", "unicode"))
        elif given[name] is not None and not callable(given[name]):
            raise ValueError(f"{name} must be a callable that takes a text. Got {given[name]!r}.")
    if preprocessor is not None or not callable(strip_accents):
        return preprocessor  # type: ignore[no-any-return]
    return partial(_stripped, strip_accents, given["lowercase"])


def _stripped(strip_accents: Callable[[str], str], lowercase: bool, text: str) -> str:
    return strip_accents(text.lower() if lowercase else text)


def _encoding(value: Any) -> str:
    try:
        "".encode(value)
    except (LookupError, TypeError):
        raise ValueError(f"encoding must be the name of a text encoding. Got {value!r}.") from None
    return str(value).lower().replace("_", "-").replace("utf8", "utf-8")


def _token_rules(pattern: Any) -> tuple[Tokenizer | None, int, str]:
    """A tokenizer in Python, or None with the rules that the compiled one needs: least word length, and marks."""
    if not isinstance(pattern, str):
        raise ValueError(f"token_pattern must be a regular expression as str. Got {pattern!r}.")
    native = _NATIVE_PATTERN.fullmatch(pattern)
    if native is not None:
        return None, 1 + native[1].count("w"), native[2] or ""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"token_pattern must be a regular expression: {error}. Got {pattern!r}.") from None
    if compiled.groups > 1:
        raise ValueError(f"token_pattern must have at most one group. Got {pattern!r}.")
    return compiled.findall, 1, ""


def _stemmer(value: Any) -> str | Callable[[str], str | None] | None:
    if value is False:
        return None
    if callable(value):
        return value  # type: ignore[no-any-return]
    if not isinstance(value, str):
        raise ValueError(f"stemmer must be False, a Snowball language or a callable on a token. Got {value!r}.")
    known = importlib.import_module("Stemmer").algorithms()
    if value not in known:
        known = ", ".join(sorted(known))
        raise ValueError(f"stemmer must be a Snowball language ({known}). Got {value!r}.")
    return value


def _segmenter() -> Callable[[str], Iterable[str]]:
    try:
        jieba = importlib.import_module("jieba")
    except ImportError:
        raise ImportError("segmenter='chinese' needs jieba: pip install 'rankplane[chinese]'.") from None
    jieba.setLogLevel(30)
    return jieba.cut  # type: ignore[no-any-return]
