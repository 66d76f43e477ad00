from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int32] | NDArray[np.int64]

class Results(TypedDict):
    n_sweeps: list[int]
    n_support: list[int]
    has_converged: list[bool]
    violation: list[float]
    dual_objective: list[float]
    gap: list[float]

class LaneSolver:
    def run(
        self,
        table: NDArray[np.float64],
        frozen: list[bool],
        n_certified: int,
        on_report: Callable[[int, int, list[int], list[float]], None] | None,
    ) -> None: ...
    def scale(self, factors: list[float]) -> None: ...
    def touch_bounds(self) -> list[bool]: ...
    def score(self) -> tuple[NDArray[Any], NDArray[Any]]: ...
    def results(self) -> Results: ...
    def take_weights(self, n_wanted: int) -> tuple[NDArray[Any], NDArray[Any]]: ...

def sparse_solver(
    starts: Indices,
    columns: Indices,
    values: Floats,
    n_columns: int,
    table_rows: NDArray[np.int32],
    row_weights: Floats | None,
    n_lanes: int,
    n_cuts: int,
    *,
    tol: float,
    max_sweeps: int,
    shrinking: bool,
    seed: int,
    n_threads: int,
    rho: float,
    free_offsets: bool,
) -> LaneSolver: ...
def dense_solver(
    values: Floats,
    table_rows: NDArray[np.int32],
    row_weights: Floats | None,
    n_lanes: int,
    n_cuts: int,
    *,
    tol: float,
    max_sweeps: int,
    shrinking: bool,
    seed: int,
    n_threads: int,
    rho: float,
    free_offsets: bool,
) -> LaneSolver: ...
def sparse_scores(starts: Indices, columns: Indices, values: Floats, weights: Floats, n_threads: int) -> NDArray[Any]: ...
def dense_scores(values: Floats, weights: Floats, n_threads: int) -> NDArray[Any]: ...
def isa() -> str: ...
def isas() -> list[str]: ...
