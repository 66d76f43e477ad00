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
    def stretch(self, factor: float, frozen: list[bool]) -> None: ...
    def touch_bounds(self) -> list[bool]: ...
    def score(self, picks: NDArray[np.uint32], first_lane: int, n_wanted: int) -> NDArray[Any]: ...
    def offsets(self) -> NDArray[Any]: ...
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

class KernelSolver:
    def __init__(
        self,
        diagonal: NDArray[np.float64],
        table_rows: NDArray[np.int32],
        row_weights: NDArray[np.float64] | None,
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
    ) -> None: ...
    def load(self, table: NDArray[np.float64], frozen: list[bool]) -> None: ...
    def measure(self) -> tuple[bool, NDArray[np.float64]]: ...
    def improve(self, rows: NDArray[np.uint32], cache: Floats, slots: NDArray[np.uint32]) -> None: ...
    def stretch(self, factor: float, frozen: list[bool]) -> None: ...
    def touch_bounds(self) -> list[bool]: ...
    def score(self, picks: NDArray[np.uint32], first_lane: int, n_wanted: int) -> NDArray[np.float64]: ...
    def offsets(self) -> NDArray[np.float64]: ...
    def duals(self) -> NDArray[np.float64]: ...
    def results(self) -> Results: ...

def row_products(
    pick_starts: Indices,
    pick_columns: Indices,
    pick_values: Floats,
    column_starts: Indices,
    column_rows: Indices,
    column_values: Floats,
    n_rows: int,
) -> NDArray[np.float64]: ...
def sparse_scores(starts: Indices, columns: Indices, values: Floats, weights: Floats, n_threads: int) -> NDArray[Any]: ...
def dense_scores(values: Floats, weights: Floats, n_threads: int) -> NDArray[Any]: ...
def isa() -> str: ...
def isas() -> list[str]: ...

OnProgress: TypeAlias = Callable[..., None] | None
CsrArrays: TypeAlias = tuple[NDArray[Any], NDArray[Any], NDArray[np.float32]]

class CodePoints:
    def __init__(
        self, properties: NDArray[np.uint8], mapped: NDArray[np.uint32], sequences: list[list[int]], lowers: bool, /
    ) -> None: ...

class Corpus:
    def __init__(
        self, code_points: CodePoints, *, analyzer: str, min_length: int, marks: str, min_n: int, max_n: int, n_threads: int
    ) -> None: ...
    def add(self, documents: list[Any], encoding: str, errors: str, on_progress: OnProgress) -> None: ...
    def add_arrow_stream(self, stream: Any, on_progress: OnProgress) -> bool: ...
    def add_arrow_array(self, schema: Any, array: Any, on_progress: OnProgress) -> bool: ...
    def add_tokens(self, documents: list[Any]) -> None: ...
    def tokens(self) -> list[str]: ...
    def map_tokens(self, stop_words: Any, terms: Any) -> None: ...
    def has_blanks(self) -> bool: ...
    def join_ngrams(self, min_n: int, max_n: int, on_progress: OnProgress) -> None: ...
    def hashed_rows(
        self, *, min_n: int, max_n: int, n_bits: int, sublinear_tf: bool, norm: str, on_progress: OnProgress
    ) -> CsrArrays: ...
    @property
    def n_documents(self) -> int: ...

# Bytes of the terms, where each one ends, and per level: keys, document counts, columns.
VocabularyState: TypeAlias = tuple[bytes, NDArray[np.int64], list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]]

class Vocabulary:
    def learn(
        self, corpus: Corpus, *, max_n: int, min_documents: int, counts_occurrences: bool, on_progress: OnProgress
    ) -> None: ...
    def apply(self, corpus: Corpus, on_progress: OnProgress) -> None: ...
    def rows(
        self,
        corpus: Corpus,
        *,
        sublinear_tf: bool,
        idf: NDArray[np.float64] | None,
        norm: str,
        is_learned: bool,
        on_progress: OnProgress,
    ) -> CsrArrays: ...
    def choose_columns(self, min_n: int, max_documents: float) -> None: ...
    def keep_columns(self, kept: NDArray[np.uint8], /) -> None: ...
    def document_counts(self) -> NDArray[np.uint32]: ...
    def occurrence_counts(self) -> NDArray[np.uint64]: ...
    def names(self) -> list[str]: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def n_terms(self) -> int: ...
    def __getstate__(self) -> VocabularyState: ...
    def __setstate__(self, state: VocabularyState) -> None: ...
