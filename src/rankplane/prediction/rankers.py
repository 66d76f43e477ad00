"""From scores of planes to ranks: pure functions of an array ``(rows, planes)``, giving rank numbers from 0."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating[Any]]
Ranks = NDArray[np.intp]


def nearest(scores: Scores) -> Ranks:
    """The rank whose plane is nearest (the paper's r_old)."""
    return np.asarray(np.argmin(np.abs(scores), axis=1))


def ordered(scores: Scores) -> Ranks:
    """How many boundaries the row is above; ``f_k + f_{k+1}`` is the boundary between two planes (the paper's r_new)."""
    return count(scores[:, :-1] + scores[:, 1:])


def largest(scores: Scores) -> Ranks:
    """The rank whose plane the row is highest above."""
    return np.asarray(np.argmax(scores, axis=1))


def count(scores: Scores) -> Ranks:
    """How many planes or thresholds the row is above."""
    return np.asarray(np.sum(scores > 0, axis=1))


def rounded(scores: Scores, n_ranks: int) -> Ranks:
    """The rank nearest to a score that counts ranks from 1."""
    return np.clip(np.rint(scores[:, 0]), 1, n_ranks).astype(np.intp) - 1


def leanings(boundaries: Scores, ranks: Ranks) -> Scores:
    """How each row leans to every rank: 0 for its own, for others minus the scores of the boundaries on the way there."""
    # Never quite zero: a row on a boundary must not lean to two ranks alike.
    steps = np.maximum(np.abs(boundaries), np.finfo(boundaries.dtype).tiny)
    way = np.column_stack([np.zeros(len(steps), dtype=steps.dtype), np.cumsum(steps, axis=1)])
    way -= np.take_along_axis(way, ranks[:, None], axis=1)
    return np.asarray(-np.abs(way))
