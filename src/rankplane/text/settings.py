"""What the parameters of TextVectorizer mean together: presets filled in, mistakes refused."""

import importlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from joblib import effective_n_jobs

from rankplane.text.stop_words import stop_words_of

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
}

ANALYZERS = ("word", "char", "char_wb")
SEGMENTERS = ("chinese",)

# The patterns that the compiled tokenizer knows: words of so many characters, and signs that are tokens of their own.
_NATIVE_PATTERN = re.compile(r"(?:\(\?u\))?\\b\\w((?:\\w)*)\+\\b(?:\|\[([!?#$%&*@]{1,4})\])?")

_WORDS_ONLY = ("stop_words", "stemmer", "token_pattern", "tokenizer", "segmenter", "min_token_length")
_VOCABULARY_ONLY = ("min_df", "max_df", "max_features")

Tokenizer = Callable[[str], Iterable[str]]


@dataclass(frozen=True)
class Settings:
    """Parameters with every default resolved."""

    analyzer: str
    ngram_range: tuple[int, int]
    min_df: float
    max_df: float
    max_features: int | None
    stop_words: frozenset[str]
    stemmer: str | Callable[[str], str | None] | None
    tokenizer: Tokenizer | None
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
    encoding: str
    decode_error: str

    @property
    def needs_blank_check(self) -> bool:
        """Only what Python makes of a document or token can hold a blank."""
        return self.tokenizer is not None or callable(self.stemmer)


def resolve(given: dict[str, Any]) -> Settings:
    """Check the parameters of a TextVectorizer and fill in those left to the preset."""
    _choice(given, "preset", tuple(PRESETS))
    _choice(given, "analyzer", ANALYZERS)
    _choice(given, "strip_accents", (None, "ascii", "unicode"))
    _choice(given, "norm", (None, "l1", "l2"))
    _choice(given, "decode_error", ("strict", "ignore", "replace"))
    _choice(given, "segmenter", (None, *SEGMENTERS))
    _refuse_what_does_not_apply(given)
    count_threads(given["n_jobs"])
    preset = PRESETS[given["preset"]]
    chosen = {name: preset[name] if given[name] is None else given[name] for name in preset}

    is_words = given["analyzer"] == "word"
    tokenizer, min_word_length, marks = None, 1, ""
    if given["tokenizer"] is not None:
        if not callable(given["tokenizer"]):
            raise TypeError(f"tokenizer must be a callable that takes a document. Got {given['tokenizer']!r}.")
        tokenizer = given["tokenizer"]
    elif is_words:
        tokenizer, min_word_length, marks = _token_rules(chosen["token_pattern"])
    min_token_length = _integer("min_token_length", chosen["min_token_length"], 1) if is_words else 1
    use_idf = _flag("use_idf", given["use_idf"], given["hashing"] is None)
    return Settings(
        analyzer=given["analyzer"],
        ngram_range=_ngram_range(chosen["ngram_range"]),
        min_df=_document_bound("min_df", chosen["min_df"]),
        max_df=_document_bound("max_df", chosen["max_df"]),
        max_features=None if given["max_features"] is None else _integer("max_features", given["max_features"], 1),
        stop_words=stop_words_of(chosen["stop_words"]) if is_words else frozenset(),
        stemmer=_stemmer(chosen["stemmer"]) if is_words else None,
        tokenizer=tokenizer,
        segmenter=None if given["segmenter"] is None else _segmenter(),
        min_token_length=min_token_length,
        min_word_length=max(min_word_length, min_token_length),
        marks=marks if min_token_length == 1 else "",
        lowercase=_flag("lowercase", given["lowercase"], True),
        strip_accents=given["strip_accents"],
        sublinear_tf=_flag("sublinear_tf", chosen["sublinear_tf"], False),
        use_idf=use_idf,
        smooth_idf=_flag("smooth_idf", given["smooth_idf"], True),
        norm=given["norm"],
        hashing=None if given["hashing"] is None else _n_bits(given["hashing"]),
        encoding=_encoding(given["encoding"]),
        decode_error=given["decode_error"],
    )


def _refuse_what_does_not_apply(given: dict[str, Any]) -> None:
    def refuse(names: Iterable[str], reason: str) -> None:
        for name in names:
            if given[name] is not None:
                raise ValueError(f"{name} must be left out {reason}. Got {given[name]!r}.")

    if given["analyzer"] != "word":
        refuse(_WORDS_ONLY, f"with analyzer={given['analyzer']!r}, which has no words")
    if given["hashing"] is not None:
        refuse(_VOCABULARY_ONLY, "with hashing, which keeps no counts of documents")
        if given["use_idf"]:
            raise ValueError("use_idf must be False or left out with hashing, which keeps no counts of documents. Got True.")
    if given["tokenizer"] is not None:
        refuse(("token_pattern", "segmenter"), "with a tokenizer, which replaces it")
    if given["use_idf"] is False or given["hashing"] is not None:
        refuse(("smooth_idf",), "without idf, which it would smooth")


def _choice(given: dict[str, Any], name: str, choices: tuple[str | None, ...]) -> None:
    value = given[name]
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{name} must be one of {choices}. Got {value!r}.")
    if value not in choices:
        raise ValueError(f"{name} must be one of {choices}. Got {value!r}.")


def _integer(name: str, value: Any, low: int) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer of at least {low}. Got {value!r}.")
    if value < low:
        raise ValueError(f"{name} must be an integer of at least {low}. Got {value!r}.")
    return int(value)


def _flag(name: str, value: Any, default: bool) -> bool:
    if value is None:
        return default
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{name} must be True or False. Got {value!r}.")
    return bool(value)


def _document_bound(name: str, value: Any) -> float:
    rule = f"{name} must be a number of documents (int) of at least 1 or a share of them (float) from 0 to 1"
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{rule}. Got {value!r}.")
    if isinstance(value, Integral):
        if value < 1:
            raise ValueError(f"{rule}. Got {value!r}.")
        return int(value)
    share = float(value)
    if not 0 <= share <= 1:
        raise ValueError(f"{rule}. Got {value!r}.")
    return share


def _ngram_range(value: Any) -> tuple[int, int]:
    rule = "ngram_range must be a pair of integers with 1 <= first <= second"
    if not isinstance(value, tuple | list) or len(value) != 2 or not all(isinstance(n, Integral) for n in value):
        raise TypeError(f"{rule}. Got {value!r}.")
    if not 1 <= value[0] <= value[1]:
        raise ValueError(f"{rule}. Got {value!r}.")
    return int(value[0]), int(value[1])


def _n_bits(value: Any) -> int:
    n_bits = _integer("hashing", value, 1)
    if n_bits > 30:
        raise ValueError(f"hashing must be a number of bits from 1 to 30. Got {value!r}.")
    return n_bits


def count_threads(value: Any) -> int:
    """The number of threads that n_jobs stands for: no part of the settings, since it depends on the joblib context of a call."""
    if value is not None and (not isinstance(value, Integral) or isinstance(value, bool)):
        raise TypeError(f"n_jobs must be None, -1 for all processors or a number of threads. Got {value!r}.")
    if value == 0:
        raise ValueError("n_jobs must be None, -1 for all processors or a number of threads. Got 0.")
    return int(effective_n_jobs(value)) if value is None or value < 0 else int(value)


def _encoding(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"encoding must be the name of a text encoding. Got {value!r}.")
    try:
        "".encode(value)
    except LookupError:
        raise ValueError(f"encoding must be the name of a text encoding. Got {value!r}.") from None
    return value.lower().replace("_", "-").replace("utf8", "utf-8")


def _token_rules(pattern: Any) -> tuple[Tokenizer | None, int, str]:
    """A tokenizer in Python, or None with the rules that the compiled one needs: least word length, and marks."""
    if not isinstance(pattern, str):
        raise TypeError(f"token_pattern must be a regular expression as str. Got {pattern!r}.")
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
        raise TypeError(f"stemmer must be False, a Snowball language or a callable on a token. Got {value!r}.")
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
