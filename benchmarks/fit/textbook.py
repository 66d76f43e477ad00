"""The textbook per-plane solver. Before it is timed, ``check`` solves a small problem to a tight tolerance: it must reach the same
dual objective as NPSVOR, and a duality gap of nearly nothing.
"""

from typing import Any

from benchmarks import answers
from benchmarks.fit import rankplane
from benchmarks.fit.outcome import Outcome, from_weights
from lab.competitors.textbook import missing, solve
from lab.data import Data, make_synthetic

__all__ = ["VARIANTS", "check", "missing", "run"]
VARIANTS: dict[str, dict[str, Any]] = {"textbook DCD-2": {}}


def run(data: Data, tol: float = 0.1, max_sweeps: int = 1000, seed: int = 0) -> Outcome:
    seconds, weights, duals, sweeps = solve(data, answers.C, answers.EPSILON, tol, max_sweeps, seed)
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
