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
# visit fifty values.
MOST_VISITS, VISITS_OF_ROW = 1_000_000_000, 50
# Where single precision stalls, and where repeated and weighted samples give the same seven digits in double precision.
NO_VIOLATION = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}
NO_GAP = 1e-8
# Smaller ones change the scores of a search by less than chance does.
VIOLATION_OF_FOLDS = 0.05


class Stopping(NamedTuple):
    """``tol`` of the solver, the most sweeps, and the gap that planes must reach beyond ``tol``, relative to their objective."""

    tol: float
    max_iter: int
    gap: float | None = None


def stopping_for(X: Any, tol: float | None, max_iter: int | None) -> Stopping:
    """What the user asks for, or what suits the data."""
    if tol is not None:
        return Stopping(tol, max_iter or MOST_SWEEPS)
    is_kernel = isinstance(X, Gram)
    n_values = X.n_rows**2 if is_kernel else X.nnz if sp.issparse(X) else X.size
    is_small = n_values <= FEW_VALUES
    if max_iter is None:
        max_iter = max(MOST_SWEEPS, MOST_VISITS // max(1, n_values + VISITS_OF_ROW * X.shape[0]))
    if is_kernel:  # whose tolerance is the root of the gap
        return Stopping(math.sqrt(NO_GAP if is_small else LARGEST_GAP), max_iter, LARGEST_GAP)
    return Stopping(NO_VIOLATION[X.dtype] if is_small else SMALL_VIOLATION, max_iter, LARGEST_GAP)
