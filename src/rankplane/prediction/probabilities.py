"""Probabilities learnt from held-out rows, and how well these conform to them.

No row judges a calibrator that it was learnt from. Where there are several folds, each is judged by a calibrator of the others;
a fold or two are cut into parts, which are judged in the same way.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankplane.prediction import decisions
from rankplane.prediction.calibration import Calibrator, Curved
from rankplane.solver.training_set import HeldOut

Floats = NDArray[np.float64]


class Calibrated(NamedTuple):
    """A calibrator of all held-out rows, and what rank sets and decisions need: how well these rows conform, and how frequent
    their ranks are. ``probabilities`` are those of the rows, by fold, each by calibrators that were not learnt from it.
    """

    calibrator: Calibrator
    conformity: decisions.Conformity
    basis: decisions.Basis
    probabilities: list[Floats]


def calibrate(held_out: HeldOut) -> Calibrated:
    parts = held_out.of_parts()
    calibrator, of_others = Curved.fit_leaving_out(parts.scores, parts.ranks, parts.n_ranks, parts.weights)
    found = by_others(parts, of_others)
    conformity = decisions.Conformity.of(np.concatenate(found), np.concatenate(parts.ranks))
    return Calibrated(calibrator, conformity, basis_of(found, parts), held_out.joined(found))


def basis_of(probabilities: list[Floats], held_out: HeldOut) -> decisions.Basis:
    """What decisions need to know of held-out rows with these probabilities."""
    weights = None if held_out.weights is None else np.concatenate(held_out.weights)
    return decisions.Basis.of(np.concatenate(probabilities), np.concatenate(held_out.ranks), held_out.n_ranks, weights)


def check_calibrated(
    calibrator: Calibrator, conformity: decisions.Conformity, basis: decisions.Basis | None, n_scores: int, n_ranks: int
) -> None:
    """Raise ``ValueError`` unless they fit a model of so many scores and ranks."""
    with np.errstate(all="ignore"):
        probabilities = calibrator.probabilities(np.zeros((1, n_scores)))
    if probabilities.shape != (1, n_ranks) or probabilities.dtype.kind != "f":
        raise ValueError("the calibrator does not match the ranks")
    after, before, ranks = conformity
    if after.ndim != 1 or after.dtype.kind != "f":
        raise ValueError("the conformity is not a list of numbers")
    if before is not None and (before.shape != after.shape or before.dtype.kind != "f"):
        raise ValueError("the two kinds of conformity do not match")
    if ranks is not None and (
        ranks.shape != after.shape or ranks.dtype.kind not in "iu" or np.any((ranks < 0) | (ranks >= n_ranks))
    ):
        raise ValueError("the conformity does not match the ranks")
    if basis is not None and not (basis.shares.shape == (n_ranks,) and np.all(basis.shares >= 0) and 0 <= basis.ratio <= 1):
        raise ValueError("the shares of the ranks do not match the ranks")


def held_out_probabilities(held_out: HeldOut, n_enough: int) -> list[Floats]:
    """Probabilities of each fold's rows, by calibrators that are fitted to about ``n_enough`` rows at most.

    For comparing settings: how far few rows are trusted changes little about which setting is best, and takes long to find.
    """
    parts = held_out.of_parts()
    some = parts.thinned(n_enough)
    _, of_others = Curved.near(some.scores, some.ranks, some.n_ranks, some.weights)
    return held_out.joined(by_others(parts, of_others))


def by_others(parts: HeldOut, of_others: list[Curved]) -> list[Floats]:
    """Probabilities of each part's rows by a calibrator of the other parts."""
    return [calibrator.probabilities(scores) for calibrator, scores in zip(of_others, parts.scores, strict=True)]
