"""From plane scores to ranks: functions of an array ``(rows, planes)`` that return rank numbers from 0."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating[Any]]
Ranks = NDArray[np.intp]


def nearest(scores: Scores) -> Ranks:
    """The rank whose plane is nearest (the paper's r_old)."""
    return np.asarray(np.argmin(np.abs(scores), axis=1))


def ordered(scores: Scores) -> Ranks:
    """The number of boundaries below the row; ``f_k + f_{k+1} = 0`` is the boundary between two planes (the paper's r_new)."""
    return count(scores[:, :-1] + scores[:, 1:])


def largest(scores: Scores) -> Ranks:
    """The rank whose plane gives the highest score."""
    return np.asarray(np.argmax(scores, axis=1))


def count(scores: Scores) -> Ranks:
    """The number of planes or thresholds with a positive score."""
    return np.asarray(np.sum(scores > 0, axis=1))


def rounded(scores: Scores, n_ranks: int) -> Ranks:
    """The rank nearest to the score, where ranks are 1, 2, ..."""
    return np.clip(np.rint(scores[:, 0]), 1, n_ranks).astype(np.intp) - 1


def confidences(boundaries: Scores, ranks: Ranks) -> Scores:
    """Confidence in each rank: 0 for the predicted one, for others minus the scores of the boundaries in between."""
    # Never exactly zero: a row on a boundary must not tie two ranks.
    steps = np.maximum(np.abs(boundaries), np.finfo(boundaries.dtype).tiny)
    way = np.column_stack([np.zeros(len(steps), dtype=steps.dtype), np.cumsum(steps, axis=1)])
    way -= np.take_along_axis(way, ranks[:, None], axis=1)
    return np.asarray(-np.abs(way))
