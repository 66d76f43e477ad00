"""Probabilities learnt from held-out rows, and how well these conform to them."""

import numpy as np
from numpy.typing import NDArray

from rankplane.prediction import decisions
from rankplane.prediction.calibration import Curved
from rankplane.solver.training_set import HeldOut

Floats = NDArray[np.float64]


def calibrate(held_out: HeldOut) -> tuple[Curved, Floats]:
    """A calibrator of all held-out rows, and what rank sets need: how well these rows conform."""
    calibrator, of_others = Curved.fit_leaving_out(held_out.scores, held_out.ranks, held_out.n_ranks, held_out.weights)
    conformity = []
    for probabilities, ranks in zip(by_others(held_out, of_others), held_out.ranks, strict=True):
        conformity.append(decisions.entry_mass(probabilities)[np.arange(len(ranks)), ranks])
    return calibrator, np.concatenate(conformity)


def held_out_probabilities(held_out: HeldOut) -> list[Floats]:
    """Of each fold's rows."""
    _, of_others = Curved.fit_leaving_out(held_out.scores, held_out.ranks, held_out.n_ranks, held_out.weights)
    return by_others(held_out, of_others)


def by_others(held_out: HeldOut, of_others: list[Curved]) -> list[Floats]:
    """Of each fold's rows by a calibrator of the other folds, so that no row judges itself."""
    return [calibrator.probabilities(scores) for calibrator, scores in zip(of_others, held_out.scores, strict=True)]
