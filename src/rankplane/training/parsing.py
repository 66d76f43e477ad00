"""Options with several values in one string: ngrams such as ``1-2``, class_weight such as ``1=2,5=0.5``."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankplane.inputs.reading import InputError
from rankplane.options import named
from rankplane.text.settings import ANALYZERS


def ngram_range(given: str | None) -> tuple[int, int] | None:
    """``1-2`` as a pair; ``3`` means ``3-3``."""
    if given is None:
        return None
    found = re.fullmatch(r"\s*([0-9]{1,3})\s*(?:-\s*([0-9]{1,3})\s*)?", given)
    pair = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= pair[0] <= pair[1]:
        raise InputError(f"{named('ngrams')} must be a smallest and a largest length, such as 1-2. Got {given}.")
    return pair


def analyzers(given: str | None, ngrams: str | None) -> dict[str, tuple[int, int] | None]:
    """``word,char_wb`` with ``1-2,2-5`` as analyzers with their lengths of n-grams; a single range is that of all."""
    names = [name.strip() for name in (given or "word").split(",")]
    if not set(names) <= set(ANALYZERS) or len(set(names)) < len(names):
        listed = f"{', '.join(ANALYZERS)}, or several of them, such as word,char_wb"
        raise InputError(f"{named('analyzer')} must be one of {listed}. Got {given}.")
    ranges = [None] if ngrams is None else [ngram_range(part) for part in ngrams.split(",")]
    if len(ranges) not in (1, len(names)):
        raise InputError(f"{named('ngrams')} must be one range, or one for each of {given or 'word'}. Got {ngrams}.")
    return dict(zip(names, ranges * len(names) if len(ranges) == 1 else ranges, strict=True))


def weights_by_name(given: str | None) -> dict[str, float]:
    """``1=2,5=0.5`` as a mapping; empty for "balanced" and None."""
    found: dict[str, float] = {}
    for part in given.split(",") if given not in (None, "balanced") else ():
        name, _, number = (word.strip() for word in part.rpartition("="))
        try:
            weight = float(number)
        except ValueError:
            weight = np.nan
        if not name or not 0 < weight < np.inf or name in found:
            raise InputError(
                f"{named('class_weight')} must be balanced, or different ranks with positive numbers, such as 1=2,5=0.5. "
                f'Got "{part}" in {given}.'
            )
        found[name] = weight
    return found


def class_weight(given: str | None, order: Sequence[Any]) -> Any:
    """The parameter of the models: None, "balanced", or weights by label."""
    if given is None or given == "balanced":
        return given
    by_label: dict[Any, float] = {}
    for name, weight in weights_by_name(given).items():
        label = next((label for label in order if is_called(label, name)), None)
        if label is None or label in by_label:
            listed = ", ".join(map(str, order))
            raise InputError(f'{named("class_weight")} must name ranks of {listed}, each once. Got "{name}" in {given}.')
        by_label[label] = weight
    return by_label


def is_called(label: Any, name: str) -> bool:
    """Whether a rank has this name; a number may be written in any way."""
    if isinstance(label, str):
        return label == name
    try:
        return bool(float(name) == label)
    except ValueError:
        return False
