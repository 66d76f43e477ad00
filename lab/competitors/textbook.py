"""The textbook per-plane solver of ``textbook.cpp``, compiled on first use with the system's compiler. It is timed and predicts
nothing.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lab.data import Data, cache_folder
from lab.timing import timed

SOURCE = Path(__file__).with_suffix(".cpp")
# No -march: this is how LIBLINEAR and the programs built on it are compiled and shipped.
FLAGS = ["-O3", "-std=c++17", "-shared", "-fPIC"]


def compiler() -> str | None:
    return shutil.which(os.environ.get("CXX", "c++"))


def missing() -> str | None:
    return None if compiler() else "there is no C++ compiler"


@cache
def library() -> Any:
    name = hashlib.sha256(SOURCE.read_bytes() + " ".join([str(compiler()), *FLAGS]).encode()).hexdigest()[:12]
    built = cache_folder() / f"textbook-{name}.so"
    if not built.exists():
        partial = built.with_suffix(f".{os.getpid()}")
        subprocess.run([str(compiler()), *FLAGS, "-o", str(partial), str(SOURCE)], check=True)
        partial.replace(built)
    return ctypes.CDLL(str(built))


def solve(data: Data, C: float, epsilon: float, tol: float, max_sweeps: int = 1000, seed: int = 0) -> tuple[float, Any, Any, Any]:
    """Seconds, weights and biases by (plane, column), duals by (plane, row), sweeps by plane."""
    if "textbook" not in data.prepared:
        data.prepared["textbook"] = (
            data.X.indptr.astype(np.int64),
            data.X.indices.astype(np.int32),
            data.X.data.astype(np.float64),
        )
    starts, columns, values = data.prepared["textbook"]
    n_rows, n_columns = data.X.shape
    weights = np.zeros((data.n_ranks, n_columns + 1))
    duals = np.zeros((data.n_ranks, n_rows))
    sweeps = np.zeros(data.n_ranks, dtype=np.int64)
    integer, real = ctypes.c_int64, ctypes.c_double

    def pointer(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    def work() -> None:
        library().textbook_npsvor(
            *(integer(n_rows), integer(n_columns), pointer(starts), pointer(columns), pointer(values)),
            *(pointer(data.y), ctypes.c_int32(data.n_ranks), real(C), real(C), real(epsilon)),
            *(real(tol), integer(max_sweeps), ctypes.c_uint64(seed), pointer(weights), pointer(duals), pointer(sweeps)),
        )

    seconds, _ = timed(work)
    return seconds, weights, duals, sweeps
