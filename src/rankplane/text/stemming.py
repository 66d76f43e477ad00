"""Stems of tokens."""

import importlib
from collections.abc import Callable
from typing import Any


def stems(tokens: list[str], stemmer: str | Callable[[str], str | None] | None) -> list[Any]:
    """The stem of each token: by a Snowball algorithm, a function, or the token itself."""
    if stemmer is None:
        return list(tokens)
    if callable(stemmer):
        return [stemmer(token) for token in tokens]
    # Without a cache, which would not help, since tokens are mostly distinct.
    return list(importlib.import_module("Stemmer").Stemmer(stemmer, 0).stemWords(tokens))
