"""What every round reports, and when there have been enough of them."""

from dataclasses import dataclass

import numpy as np

from rankplane.docstrings import documented

LEAST_GAIN = 0.005  # of the held-out error, in a round; smaller ones do not count
ROUNDS_WITHOUT = 2
SMALL_GAIN = 0.001  # of the objective, in a round
MANY_ROUNDS = 30
WIDEST_GAP = 1.0  # of the objective, with which an error can have settled: before, it may just stand still


@documented()
@dataclass(frozen=True)
class Round:
    """One round of a fit over workers, as ``on_round`` is told.

    Parameters
    ----------
    number : int
        Number of the round, from 1.
    phase : str
        What is fitted: a value of C on the rows that are not held out, or the final planes.
    n_sweeps : int
        Local sweeps of each worker.
    objective : float
        Dual objective, summed over the planes.
    gap : float
        Duality gap relative to the objective, of the plane where it is largest. Of samples on disk, if it is not small yet, an
        estimate: each block's share of it as it was before its sweeps.
    error : float
        Mean absolute error on the held-out rows of all workers, by the model's own rule; NaN without held-out rows.
    seconds_computing : float
        Seconds of local sweeps, on the slowest worker.
    seconds_exchanging : float
        Seconds of waiting and exchanging.
    n_bytes : int
        Size of the weight changes that each worker contributed to the sum.
    why_last : str
        Why this round was the last of its phase; empty if it was not.

    See Also
    --------
    fit_shard : Fits a model, round by round.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import NPSVOR
    >>> from rankplane.distributed import fit_shard
    >>> X, y = np.linspace(0, 1, 40)[:, None], np.repeat([1, 2, 3, 4], 10)
    >>> rounds = []
    >>> model = fit_shard(NPSVOR(C=10), X, y, on_round=rounds.append)
    >>> [round.number for round in rounds] == list(range(1, len(rounds) + 1))
    True
    """

    number: int
    phase: str
    n_sweeps: int
    objective: float
    gap: float
    error: float
    seconds_computing: float
    seconds_exchanging: float
    n_bytes: int
    why_last: str = ""

    def __str__(self) -> str:
        error = "" if np.isnan(self.error) else f"  held-out MAE {self.error:.4f}"
        end = f"  ({self.why_last})" if self.why_last else ""
        return f"round {self.number}  {self.phase}  objective {self.objective:.6g}  gap {self.gap:.2g}{error}{end}"


class Patience:
    """Ends a phase: when the gap is small, when the held-out error has settled, or when there were too many rounds.

    With a ``least_gain``, also when the objective gains less than this share of it, where there is no held-out error, in round
    ``first_settled`` or later.
    """

    least_gain, first_settled = 0.0, 1

    def __init__(self, tol_gap: float, max_rounds: int) -> None:
        self.tol_gap, self.max_rounds = tol_gap, max_rounds
        self.n_rounds = self.n_without = 0
        self.best, self.objective = np.inf, np.nan

    def why_enough(self, gap: float, error: float, objective: float) -> str:
        """Take note of a round; returns why it was the last one, or nothing."""
        before, self.objective = self.objective, objective
        self.n_rounds += 1
        if error < self.best - LEAST_GAIN * abs(self.best) or np.isinf(self.best):
            self.best, self.n_without = error, 0
        else:
            self.n_without += 1
        if gap <= self.tol_gap:
            return "gap"
        if not np.isnan(error) and self.n_without >= ROUNDS_WITHOUT and gap <= WIDEST_GAP:
            return "error settled"
        has_gained = not before - objective < self.least_gain * abs(objective)
        if self.least_gain > 0 and self.n_rounds >= self.first_settled and np.isnan(error) and gap <= WIDEST_GAP and not has_gained:
            return "objective settled"
        return "too many rounds" if self.n_rounds >= self.max_rounds else ""
