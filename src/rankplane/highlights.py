"""Where in a text the columns are that pull its rank up or down."""

import itertools
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

Pull = tuple[int, int, float]
TOKEN = re.compile(r"\w+|[^\w\s]")
LONGEST = 4  # tokens that an n-gram may span, stop words between its words included


def column_pulls(pipeline: Pipeline, text: str) -> dict[int, float]:
    """What each column of the text adds to the score of a boundary, on average over the boundaries."""
    row = pipeline[0].transform([text])
    weights, _ = pipeline[-1].boundary_planes()
    pulls = row.data * weights[row.indices].mean(axis=1)
    return dict(zip(row.indices.tolist(), pulls.tolist(), strict=True))


def term_spans(vectorizer: Any, text: str) -> list[tuple[int, int, int]]:
    """``(start, end, column)`` of every n-gram of the text that is a column.

    The vectorizer itself is asked, piece by piece, so that stemming, stop words and accents need no second implementation: a
    column that a piece has, and that the piece without its first or last token does not have, spans just that piece.
    """
    tokens = [match.span() for match in TOKEN.finditer(text)]
    pieces = [(i, j) for n in range(1, LONGEST + 1) for i, j in zip(range(len(tokens)), range(n, len(tokens) + 1), strict=False)]
    if not pieces:
        return []
    rows = vectorizer.transform([text[tokens[i][0] : tokens[j - 1][1]] for i, j in pieces])
    held = {piece: set(rows.indices[rows.indptr[number] : rows.indptr[number + 1]].tolist()) for number, piece in enumerate(pieces)}
    spans = []
    for (i, j), columns in held.items():
        own = columns - held.get((i, j - 1), set()) - held.get((i + 1, j), set())
        spans += [(tokens[i][0], tokens[j - 1][1], column) for column in sorted(own)]
    return spans


def text_pulls(pipeline: Pipeline, text: str) -> list[Pull]:
    """Pieces of the text with their pull; a column that occurs several times shares its pull among the places."""
    pulls = column_pulls(pipeline, text)
    spans = [span for span in term_spans(pipeline[0], text) if span[2] in pulls]
    columns: NDArray[np.intp] = np.array([column for _, _, column in spans], dtype=np.intp)
    return [(start, end, pulls[column] / int(np.sum(columns == column))) for start, end, column in spans]


def shaded(text: str, pulls: list[Pull]) -> list[tuple[str, float]]:
    """The text in pieces of equal pull, from -1 to 1, the strongest at one of the ends."""
    strength = np.zeros(len(text))
    for start, end, pull in pulls:
        strength[start:end] += pull
    most = float(np.max(np.abs(strength), initial=0)) or 1.0
    cuts = [0, *(np.flatnonzero(np.diff(strength)) + 1).tolist(), len(text)]
    return [(text[start:end], float(strength[start]) / most) for start, end in itertools.pairwise(cuts) if end > start]
