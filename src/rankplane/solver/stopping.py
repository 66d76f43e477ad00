"""When a solve stops if ``tol`` does not say so: at the optimum if sweeps cost next to nothing, else at a small duality gap.

The paper's rule compares the violations of a sweep with those of the first one. The gap that this leaves depends on the data: at
the paper's tolerance of 0.1 it is 1 to 50 % of the objective, and fits with another order of samples or number of threads differ in
the second digit. So by default a plane is swept until its violations are small, and then on until its duality gap is.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from rankplane.solver.kernels import Gram

LARGEST_GAP = 2e-3  # of the objective
# Violations at which the gap is usually as small as that. Checking it costs a sweep, so checks should rarely fail.
SMALL_VIOLATION = 1e-3
# Up to so many stored values, a thousand sweeps take about a tenth of a second.
FEW_VALUES = 50_000
MOST_SWEEPS = 1000
# Small data may take more sweeps: as many as visit so many values, which takes a second at most. To visit a row takes as long as to
# visit fifty values, and 300 where its planes are joined, which takes a step in double precision lane by lane.
MOST_VISITS, VISITS_OF_ROW, VISITS_OF_JOINED_ROW = 1_000_000_000, 50, 300
# Where single precision stalls, and where repeated and weighted samples give the same seven digits in double precision.
NO_VIOLATION = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}
# The same digits of joined planes, whose scores are less settled at the same violations. A tenth takes some ten sweeps more.
NO_VIOLATION_JOINED = NO_VIOLATION | {np.dtype(np.float64): 1e-11}
NO_GAP = 1e-8
# Smaller ones change the scores of a search by less than chance does.
VIOLATION_OF_FOLDS = 0.05
# Of duals that are tied to each other, by the order of offsets or by joined planes, which have farther to go than violations say.
VIOLATION_OF_TIED_FOLDS = 0.01


class Stopping(NamedTuple):
    """``tol`` of the solver, the most sweeps, and the gap that planes must reach beyond ``tol``, relative to their objective."""

    tol: float
    max_iter: int
    gap: float | None = None


def stopping_for(X: Any, tol: float | None, max_iter: int | None, *, is_joined: bool = False) -> Stopping:
    """What the user asks for, or what suits the data."""
    if tol is not None:
        return Stopping(tol, max_iter or MOST_SWEEPS)
    is_kernel = isinstance(X, Gram)
    n_values = X.n_rows**2 if is_kernel else X.nnz if sp.issparse(X) else X.size
    is_small = n_values <= FEW_VALUES
    if max_iter is None:
        of_row = VISITS_OF_JOINED_ROW if is_joined else VISITS_OF_ROW
        max_iter = max(MOST_SWEEPS, MOST_VISITS // max(1, n_values + of_row * X.shape[0]))
    if is_kernel:  # whose tolerance is the root of the gap
        return Stopping(math.sqrt(NO_GAP if is_small else LARGEST_GAP), max_iter, LARGEST_GAP)
    smallest = NO_VIOLATION_JOINED if is_joined else NO_VIOLATION
    return Stopping(smallest[X.dtype] if is_small else SMALL_VIOLATION, max_iter, LARGEST_GAP)
