"""Options that hold several values in one word: ``--ngrams 1-2``, ``--class-weight 1=2,5=0.5``."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankplane.reading import InputError


def ngram_range(given: str | None) -> tuple[int, int] | None:
    """``1-2`` as a pair; ``3`` is the pair of 3 and 3."""
    if given is None:
        return None
    found = re.fullmatch(r"\s*([0-9]{1,3})\s*(?:-\s*([0-9]{1,3})\s*)?", given)
    pair = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= pair[0] <= pair[1]:
        raise InputError(f"--ngrams must be a least and a largest number, as 1-2. Got {given}.")
    return pair


def weights_by_name(given: str | None) -> dict[str, float]:
    """``1=2,5=0.5`` as a mapping; empty for "balanced" and for nothing."""
    found: dict[str, float] = {}
    for part in given.split(",") if given not in (None, "balanced") else ():
        name, _, number = (word.strip() for word in part.rpartition("="))
        try:
            weight = float(number)
        except ValueError:
            weight = np.nan
        if not name or not 0 < weight < np.inf or name in found:
            raise InputError(
                f'--class-weight must be balanced, or different ranks with positive numbers, as 1=2,5=0.5. Got "{part}" in {given}.'
            )
        found[name] = weight
    return found


def class_weight(given: str | None, order: Sequence[Any]) -> Any:
    """What the models take: None, "balanced", or weights by label."""
    if given is None or given == "balanced":
        return given
    label_of = {str(label): label for label in order}
    # Ranks that are numbers may be written in any way.
    label_of |= {f"{label:g}": label for label in order if not isinstance(label, str)}
    by_name = weights_by_name(given)
    for name in by_name:
        if name not in label_of:
            raise InputError(f'--class-weight must name ranks of {", ".join(map(str, order))}. Got "{name}".')
    return {label_of[name]: weight for name, weight in by_name.items()}
