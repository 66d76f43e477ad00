"""The parts of a text that pull its rank up or down."""

import itertools
import re
from collections import Counter
from typing import Any

import numpy as np

from rankplane.text.settings import Settings, resolve
from rankplane.training.model import TrainedModel

Pull = tuple[int, int, float]
TOKEN = re.compile(r"\w+|[^\w\s]")
FAINT, STRONG = 0.05, 0.5  # shares of the strongest pull: up to FAINT unmarked, above STRONG marked twice
LONGEST = 4  # tokens that an n-gram of words may span, including stop words in between


def column_pulls(model: TrainedModel, row: Any) -> dict[int, float]:
    """The contribution of each column of the row to the score of a boundary, averaged over the boundaries."""
    weights, _ = model.estimator.boundary_planes(row.indices)
    pulls = row.data * weights.mean(axis=1)
    return dict(zip(row.indices.tolist(), pulls.tolist(), strict=True))


def token_spans(settings: Settings, text: str) -> tuple[list[tuple[int, int]], int]:
    """The spans of the tokens that n-grams are made of, and how many of them an n-gram may span."""
    if settings.analyzer == "char":
        return [(place, place + 1) for place in range(len(text))], settings.ngram_range[1]
    if settings.analyzer == "char_wb":  # n-grams do not cross words, and include the spaces around them
        return [match.span() for match in re.finditer(r"\S+", text)], 1
    if settings.segmenter is None:
        return [match.span() for match in TOKEN.finditer(text)], LONGEST
    ends = list(itertools.accumulate(len(word) for word in settings.segmenter(text)))
    spans = itertools.pairwise([0, *ends])
    return [span for span in spans if text[slice(*span)].strip()], LONGEST


def term_spans(vectorizer: Any, text: str) -> list[tuple[int, int, int]]:
    """``(start, end, column)`` of every n-gram of the text that is a column.

    Found by transforming pieces of the text, so that stemming, stop words and accents need no second implementation: a column
    that a piece has, but not the piece without its first or last token, spans exactly that piece.
    """
    spans, firsts = [], vectorizer._column_starts()
    for settings, (first, last) in zip(resolve(vectorizer.get_params(deep=False)), itertools.pairwise(firsts), strict=True):
        found = spans_of_analyzer(vectorizer, text, *token_spans(settings, text))
        spans += [span for span in found if first <= span[2] < last]
    return spans


def spans_of_analyzer(vectorizer: Any, text: str, tokens: list[tuple[int, int]], longest: int) -> list[tuple[int, int, int]]:
    """``(start, end, column)`` of the n-grams of up to so many of these tokens."""
    pieces = [(i, j) for n in range(1, longest + 1) for i, j in zip(range(len(tokens)), range(n, len(tokens) + 1), strict=False)]
    if not pieces:
        return []
    rows = vectorizer.transform([text[tokens[i][0] : tokens[j - 1][1]] for i, j in pieces])
    held = {piece: set(rows.indices[rows.indptr[number] : rows.indptr[number + 1]].tolist()) for number, piece in enumerate(pieces)}
    spans = []
    for (i, j), columns in held.items():
        own = columns - held.get((i, j - 1), set()) - held.get((i + 1, j), set())
        spans += [(tokens[i][0], tokens[j - 1][1], column) for column in sorted(own)]
    return spans


def text_pulls(model: TrainedModel, text: str, row: Any) -> list[Pull]:
    """Pieces of the text with their pull. The pull of a column that occurs several times is divided among its occurrences. ``row``
    is the transformed text.
    """
    pulls = column_pulls(model, row)
    spans = [span for span in term_spans(model.vectorizer, text) if span[2] in pulls]
    n_places = Counter(column for _, _, column in spans)
    return [(start, end, pulls[column] / n_places[column]) for start, end, column in spans]


def shaded(text: str, pulls: list[Pull]) -> list[tuple[str, float]]:
    """The text in pieces of equal pull, scaled such that the strongest is 1 or -1."""
    strength = np.zeros(len(text))
    for start, end, pull in pulls:
        strength[start:end] += pull
    most = float(np.max(np.abs(strength), initial=0)) or 1.0
    cuts = [0, *(np.flatnonzero(np.diff(strength)) + 1).tolist(), len(text)]
    return [(text[start:end], float(strength[start]) / most) for start, end in itertools.pairwise(cuts) if end > start]


def marked(pieces: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The pieces with + or - before those that pull up or down, doubled for strong ones, so that colours are not needed.

    Within a word, neighbouring pieces with the same sign share it.
    """
    shown: list[tuple[str, float]] = []
    last = ""
    for piece, share in pieces:
        for part in re.findall(r"\s+|\S+", piece):
            sign = "" if abs(share) <= FAINT else ("+" if share > 0 else "-") * (2 if abs(share) > STRONG else 1)
            is_new = not part.isspace() and sign != last
            shown.append((sign + part if is_new else part, share))
            last = "" if part.isspace() else sign
    return shown
