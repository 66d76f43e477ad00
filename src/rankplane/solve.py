"""From data and a table to planes: the one place where Python calls the compiled solver."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankplane import _core
from rankplane.planes import Planes
from rankplane.tables import Table

OnReport = Callable[[int, int, list[int], list[float]], None]


def solve_planes(
    X: Any,
    table: Table,
    table_rows: NDArray[np.int32],
    *,
    row_weights: NDArray[Any] | None = None,
    has_offsets: bool = True,
    free_offsets: bool = False,
    tol: float,
    max_iter: int,
    shrinking: bool = True,
    seed: int = 0,
    n_threads: int = 1,
    on_report: OnReport | None = None,
) -> Planes:
    """Solve all lanes of a table together.

    ``X`` is a canonical csr matrix or a C-ordered array; ``table_rows`` names the table row of each of its rows, or, twice as long,
    of the two halves that each row is split into. ``row_weights`` scales C row by row. Offsets are penalised like a column of ones,
    or not at all (``free_offsets``), or absent.
    """
    _, n_cuts, n_lanes, _ = table.shape
    options: dict[str, Any] = {
        "tol": tol,
        "max_sweeps": max_iter,
        "shrinking": shrinking,
        "seed": seed,
        "n_threads": n_threads,
        "rho": 1.0 if has_offsets else 0.0,
        "free_offsets": free_offsets,
    }
    # A weight of zero is no demand at all: it gets a table row of its own, since zero times an infinite bound is not a number.
    if row_weights is not None and not np.all(row_weights):
        n_copies = len(table_rows) // X.shape[0]
        table_rows = np.where(np.tile(row_weights == 0, n_copies), table.shape[0], table_rows).astype(np.int32)
        row_weights = np.where(row_weights == 0, 1, row_weights)
        table = np.concatenate([table, np.zeros_like(table[:1])])
    if row_weights is not None:
        row_weights = row_weights.astype(X.dtype)
    if sp.issparse(X):
        solver = _core.sparse_solver(X.indptr, X.indices, X.data, X.shape[1], table_rows, row_weights, n_lanes, n_cuts, **options)
    else:
        solver = _core.dense_solver(X, table_rows, row_weights, n_lanes, n_cuts, **options)
    solver.run(table, [], True, on_report)
    results = solver.results()
    weights, offsets = solver.take_weights()
    planes = Planes(
        weights=weights,
        offsets=offsets,
        n_sweeps=np.array(results["n_sweeps"], dtype=np.intp),
        has_converged=np.array(results["has_converged"], dtype=bool),
        violation=np.array(results["violation"]),
        dual_objective=np.array(results["dual_objective"]),
        gap=np.array(results["gap"]),
        n_support=np.array(results["n_support"], dtype=np.intp),
    )
    warn_if_unfinished(planes, tol, max_iter)
    return planes


def warn_if_unfinished(planes: Planes, tol: float, max_iter: int) -> None:
    n_open = int(np.sum(~planes.has_converged))
    if n_open > 0:
        worst = float(np.max(planes.violation[~planes.has_converged]))
        warnings.warn(
            f"{n_open} of {len(planes.has_converged)} planes stopped at max_iter={max_iter} with violation {worst:.2g} "
            f"(tol={tol:g}). Raise max_iter or tol, or scale the columns of X.",
            ConvergenceWarning,
            stacklevel=3,
        )
