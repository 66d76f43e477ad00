"""Rows to train on and rows to measure on.

Rows with the same text stay on one side of the split, since a copy of a training row says nothing about new rows.
"""

import numpy as np
from numpy.typing import NDArray

from rankplane.inputs.reading import InputError
from rankplane.inputs.schema import Rows
from rankplane.options import named
from rankplane.solver.folds import deal


def hold_out(rows: Rows, share: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to train on and to hold out: about this share of every rank, by whole sets of rows that belong together."""
    if share == 0:
        return np.arange(len(rows.labels)), np.arange(0)
    ranks = np.unique(rows.labels, return_inverse=True)[1].ravel()
    is_held = deal(rows.together, ranks, np.array([1 - share, share]), seed) == 1
    # A rank that training would never see stays there.
    is_lost = ~np.isin(ranks, ranks[~is_held])
    is_held &= ~np.isin(rows.together, rows.together[is_lost])
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)


def split(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """Rows to train on, and rows to measure on; there are some of these unless the share is 0."""
    training, held = hold_out(rows, share, seed)
    if share and not len(held):
        n_sets = len(np.unique(rows.together))
        raise InputError(
            f"{named('holdout', share)} finds no rows to measure on among {len(rows.labels):,}: copies and groups stay "
            f"together, here as {n_sets:,}, and no rank is held out whole. Use {named('test')}, a larger share, or 0."
        )
    return rows.take(training), rows.take(held)
