"""The textbook per-plane solver of ``textbook.cpp``, compiled on first use with the system's compiler.

Before it is timed, ``check`` solves a small problem to a tight tolerance: it must reach the same dual objective as
NPSVOR, and a duality gap of nearly nothing.
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

from benchmarks import answers
from benchmarks.common import timed
from benchmarks.data import Data, cache_folder, make_synthetic
from benchmarks.fit import rankplane
from benchmarks.fit.outcome import Outcome, from_weights

SOURCE = Path(__file__).with_suffix(".cpp")
# No -march: this is how LIBLINEAR and the programs built on it are compiled and shipped.
FLAGS = ["-O3", "-std=c++17", "-shared", "-fPIC"]

VARIANTS: dict[str, dict[str, Any]] = {"textbook DCD-2": {}}


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


def solve(data: Data, C: float, tol: float, max_sweeps: int, seed: int) -> tuple[float, Any, Any, Any]:
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
            *(pointer(data.y), ctypes.c_int32(data.n_ranks), real(C), real(C), real(answers.EPSILON)),
            *(real(tol), integer(max_sweeps), ctypes.c_uint64(seed), pointer(weights), pointer(duals), pointer(sweeps)),
        )

    seconds, _ = timed(work)
    return seconds, weights, duals, sweeps


def run(data: Data, tol: float = 0.1, max_sweeps: int = 1000, seed: int = 0) -> Outcome:
    seconds, weights, duals, sweeps = solve(data, answers.C, tol, max_sweeps, seed)
    objective = answers.dual("npsvor", data.X, data.y, data.n_ranks, duals.T)
    return from_weights(seconds, "npsvor", data, weights.T, dual_objective=float(objective.sum()), sweeps=[int(n) for n in sweeps])


def check() -> None:
    """Refuses to go on if the textbook solver and NPSVOR disagree on a problem solved to the end."""
    data = make_synthetic("600x2000x5x20")
    mine = run(data, tol=1e-7, max_sweeps=100_000)
    theirs = rankplane.run(data, "npsvor", n_jobs=1, tol=1e-7, dtype="float64", max_iter=100_000)
    found, expected = mine.check(data), theirs.check(data)
    for name, checked in (("textbook", found), ("rankplane", expected)):
        if not abs(checked["relative_gap"]) < 1e-5:
            raise AssertionError(f"{name} leaves a relative duality gap of {checked['relative_gap']:.2g} at tol=1e-7.")
    difference = abs(found["dual"] - expected["dual"]) / expected["dual"]
    if not difference < 1e-6:
        raise AssertionError(f"The dual objectives of textbook and rankplane differ by {difference:.2g} relative.")
