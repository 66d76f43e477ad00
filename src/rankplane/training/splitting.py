"""Splitting rows into a training set and a test set.

Rows with the same text stay on one side of the split, since a copy of a training row says nothing about new rows.
"""

import numpy as np
from numpy.typing import NDArray

from rankplane.inputs.reading import InputError
from rankplane.inputs.schema import Rows
from rankplane.options import named
from rankplane.solver.folds import assign_parts


def hold_out(rows: Rows, share: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to train on and to hold out: about this share of every rank, keeping groups of rows together."""
    if share == 0:
        return np.arange(len(rows.labels)), np.arange(0)
    ranks = np.unique(rows.labels, return_inverse=True)[1].ravel()
    is_held = assign_parts(rows.groups, ranks, np.array([1 - share, share]), seed) == 1
    # A rank that would be missing from training is not held out.
    is_lost = ~np.isin(ranks, ranks[~is_held])
    is_held &= ~np.isin(rows.groups, rows.groups[is_lost])
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)


def split(rows: Rows, share: float, seed: int) -> tuple[Rows, Rows]:
    """The training rows and the test rows; there is at least one test row unless the share is 0."""
    training, held = hold_out(rows, share, seed)
    if share and not len(held):
        n_sets = len(np.unique(rows.groups))
        raise InputError(
            f"{named('holdout', share)} leaves no rows to test on among {len(rows.labels):,}: copies and groups stay "
            f"together, here in {n_sets:,} sets, and no rank is held out entirely. Use {named('test')}, a larger share, or 0."
        )
    # The held-out texts are kept longer than the others, so they get a place of their own.
    return rows.take(training), rows.take(held).packed()
