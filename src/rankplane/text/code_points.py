"""Tables of the properties of all code points, for the compiled tokenizer.

Words, white space and lower case differ between versions of Unicode. The tables are made with the running Python, by strings of
all code points, so that the tokenizer agrees with its `re` and `str.lower`.
"""

import functools
import re
import unicodedata
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rankplane._core import CodePoints

N_CODE_POINTS = 0x110000
WORD, SPACE, CASED, IGNORABLE = 1, 2, 4, 8
SMALL_SIGMA, CAPITAL_SIGMA, FINAL_SIGMA = 0x3C3, 0x3A3, 0x3C2

_Numbers = npt.NDArray[np.uint32]


def _to_str(numbers: _Numbers) -> str:
    return numbers.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _to_numbers(text: str) -> _Numbers:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32)


@functools.cache
def _expanding() -> tuple[int, ...]:
    """Code points whose lower case is several code points; currently only U+0130."""
    numbers = np.arange(N_CODE_POINTS, dtype=np.uint32)
    text = _to_str(numbers)
    if len(text[:0x130].lower() + text[0x131:].lower()) == N_CODE_POINTS - 1:
        return (0x130,)
    return tuple(c for c in range(N_CODE_POINTS) if len(chr(c).lower()) != 1)


@functools.cache
def _properties() -> npt.NDArray[np.uint8]:
    numbers = np.arange(N_CODE_POINTS, dtype=np.uint32)
    text = _to_str(numbers)
    properties = np.zeros(N_CODE_POINTS, dtype=np.uint8)
    for pattern, bit in ((r"\w+", WORD), (r"\s+", SPACE)):
        for run in re.finditer(pattern, text):
            properties[run.start() : run.end()] |= bit

    # Python has no function for cased and ignorable letters, but they determine the lower case of a capital sigma after them.
    # Letters with case and marks are in planes 0, 1 and 14.
    probed = np.concatenate([np.arange(0x20000), np.arange(0xE0000, 0xE1000)]).astype(np.uint32)
    probed = probed[~np.isin(probed, [*_expanding(), CAPITAL_SIGMA])]

    def is_final(*before: _Numbers | int) -> npt.NDArray[np.bool_]:
        columns = [np.broadcast_to(np.asarray(part, dtype=np.uint32), probed.shape) for part in (*before, CAPITAL_SIGMA, 0x0A)]
        lowered = _to_numbers(_to_str(np.stack(columns, axis=1).ravel()).lower()).reshape(len(probed), -1)
        final: npt.NDArray[np.bool_] = lowered[:, -2] == FINAL_SIGMA
        return final

    is_cased = is_final(probed)
    is_ignorable = is_final(ord("a"), probed) & ~is_cased
    properties[probed[is_cased]] |= CASED
    properties[probed[is_ignorable]] |= IGNORABLE
    properties[[*_expanding(), CAPITAL_SIGMA]] |= CASED
    return properties


def _lowered() -> tuple[_Numbers, dict[int, str]]:
    """The lower case of every code point, and of those that become several code points."""
    numbers = np.arange(N_CODE_POINTS, dtype=np.uint32)
    numbers[list(_expanding())] = ord("a")
    lowered = _to_numbers(_to_str(numbers).lower())
    lowered[CAPITAL_SIGMA] = SMALL_SIGMA
    return lowered, {c: chr(c).lower() for c in _expanding()}


@functools.cache
def _decomposed() -> dict[int, str]:
    """Compatibility decompositions of the code points that have one, and the combining ones themselves."""
    kept = [c for c in range(N_CODE_POINTS) if not 0xD800 <= c < 0xE000 and c != 0x0A]
    # A line end neither combines nor is reordered, so one call decomposes them all.
    parts = unicodedata.normalize("NFKD", "\n".join(map(chr, kept))).split("\n")
    return {c: part for c, part in zip(kept, parts, strict=True) if part != chr(c) or unicodedata.combining(chr(c))}


def _without_accents(text: str) -> str:
    return "".join(c for c in text if not unicodedata.combining(c))


def _ascii_only(text: str) -> str:
    return text.encode("ascii", "ignore").decode("ascii")


def _accent_stripper(strip_accents: str) -> Callable[[str], str]:
    return _without_accents if strip_accents == "unicode" else _ascii_only


@functools.cache
def code_points(lowercase: bool, strip_accents: str | None) -> CodePoints:
    """The table for these options. Text is lower-cased first, then accents are removed, as in scikit-learn."""
    if lowercase:
        mapped, expanded = _lowered()
    else:
        mapped, expanded = np.arange(N_CODE_POINTS, dtype=np.uint32), {}
    if strip_accents is not None:
        strip = _accent_stripper(strip_accents)
        stripped = {c: strip(part) for c, part in _decomposed().items()}
        if strip_accents == "ascii":
            outside = mapped >= 0x80
            outside[list(stripped)] = False
            stripped |= dict.fromkeys(np.flatnonzero(outside).tolist(), "")
        direct = mapped.copy()
        for c in np.flatnonzero(np.isin(direct, np.fromiter(stripped, dtype=np.uint32))).tolist():
            expanded[c] = stripped[int(direct[c])]
        for c in _expanding() if lowercase else ():
            expanded[c] = "".join(stripped.get(ord(part), part) for part in chr(c).lower())
    sequences: dict[str, int] = {}
    for c, text in expanded.items():
        if len(text) == 1:
            mapped[c] = ord(text)
        else:
            mapped[c] = N_CODE_POINTS + sequences.setdefault(text, len(sequences))
    return CodePoints(_properties(), mapped, [[ord(c) for c in text] for text in sequences], lowercase)
