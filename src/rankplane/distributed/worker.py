"""A fit over workers, from the side of one of them. Engines launch it; nothing else about them matters here."""

import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rankplane import validation
from rankplane.base import OrdinalModel, adopt_planes
from rankplane.distributed.checkpoint import Checkpoint, FitInterruptedError
from rankplane.distributed.comm import Alone, Comm, gather_rows, gather_values, share, share_array, together
from rankplane.distributed.report import MANY_ROUNDS, SMALL_GAIN, Patience, Round
from rankplane.distributed.rounds import Certificate, Columns, Rounds, State
from rankplane.distributed.search import Choice, Path
from rankplane.distributed.shard import Shard, read_shard
from rankplane.docstrings import documented
from rankplane.prediction.calibration import rows_to_learn_from
from rankplane.prediction.probabilities import calibrate
from rankplane.search import ROWS_TO_CHOOSE_BY, CSearchCV
from rankplane.solver import blocks
from rankplane.solver.stopping import LARGEST_GAP
from rankplane.solver.tables import Table
from rankplane.solver.training_set import HeldOut

LARGEST_SHARE = 0.2  # of the rows, that is held out to choose or to calibrate by
SHARE_TO_WATCH = 0.1  # that is held out only to see when the error has settled
FEWEST_SWEEPS, MOST_SWEEPS = 5, 20  # of a round
GAP = 0.01  # of the objective, that planes may have where the model has no ``tol``
OnRound = Callable[[Round], Any]


def largest_gap(model: OrdinalModel, gap: float = GAP) -> float:
    """The gap at which planes are accurate enough; a ``tol`` of the model is about its root."""
    return gap if model.tol is None else float(model.tol) ** 2


@documented()
def fit_shard(
    model: Any,
    X: Any,
    y: Any,
    comm: Comm | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    sweeps: int | None = None,
    max_rounds: int = 100,
    holdout: float | None = None,
    on_round: OnRound | None = None,
    checkpoint: Checkpoint | None = None,
) -> Any:
    """Fit a model on the rows of many workers, each of which calls this function with its own rows.

    Workers sweep over their rows and add up how the weights have changed, round after round. The planes are those of a fit on all
    rows in one place, up to the duality gap.

    Parameters
    ----------
    model : object
        A linear model of this package, or a :class:`rankplane.CSearchCV` of one with ``cv='auto'``, which chooses C on a single
        holdout of all workers' rows. The same on all workers.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples of this worker. None, or no rows, if it has none.
    y : array-like of shape (n_samples,)
        Their labels. A rank may occur on some of the workers only.
    comm : object
        The workers: ``rank``, ``size``, ``allreduce(array)`` and ``broadcast(array, root)``. None is a single worker.
    sample_weight : array-like of shape (n_samples,)
        Weights of these samples.
    sweeps : int
        Local sweeps per round. None chooses from 5 to 20, by how long computing and exchanging took in the first round.
    max_rounds : int
        Largest number of rounds for a value of C, and for the final planes.
    holdout : float
        Share of the samples that tells when the held-out error has settled; 0 for none: the fit then ends by its gap. None is
        a tenth, or none if there is a single worker, or as many as are needed to choose C and to calibrate. Held-out samples are
        part of the final fit.
    on_round : callable
        Called with a :class:`Round` after every round, on every worker.
    checkpoint : object
        Of a fit that was interrupted, to go on from there. Workers without one, and rows after those of the checkpoint, start anew.

    Returns
    -------
    object
        The fitted model on worker 0, with the rounds in ``rounds_``; None on the others.

    Raises
    ------
    FitInterruptedError
        If another worker is gone, with a checkpoint.

    See Also
    --------
    fit_vectorizer : Learn the vocabulary of texts that are spread over workers.
    Threads : Workers that are threads of one process.
    rankplane.dask.fit : The same on a Dask cluster.

    Notes
    -----
    A round ends a value of C when the duality gap of every plane is at most ``tol**2`` times its objective, or when the held-out
    mean absolute error has not fallen by 0.5 % for two rounds. The final planes are fitted until their gap is not larger than
    that gap was, or, by a single worker, until it is that of a fit in memory. With ``sweeps`` given, the result is a function of
    the rows of each worker and ``random_state``, to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import NPSVOR
    >>> from rankplane.distributed import Threads, fit_shard
    >>> X, y = np.linspace(0, 1, 40)[:, None], np.repeat([1, 2, 3, 4], 10)
    >>> def work(comm):
    ...     own = slice(comm.rank, None, comm.size)
    ...     return fit_shard(NPSVOR(C=10), X[own], y[own], comm)
    >>> Threads(2).run(work)[0].predict([[0.0], [1.0]])
    array([1, 4])
    """
    comm = Alone() if comm is None else comm
    fit: Fit | None = None
    try:
        fit = Fit.of(model, X, y, comm, sample_weight, sweeps, max_rounds, holdout, on_round)
        fit.start_from(checkpoint)
        return fit.run()
    except ConnectionError as error:
        reached = None if fit is None else fit.checkpoint()
        raise FitInterruptedError(str(error), reached or checkpoint) from error


def check_arguments(model: Any, sweeps: Any, max_rounds: Any, holdout: Any) -> None:
    if not isinstance(model, OrdinalModel | CSearchCV):
        raise ValueError(f"model must be a model of this package, or a CSearchCV of one. Got {model!r}.")
    if sweeps is not None:
        validation.check_count("sweeps", sweeps)
    validation.check_count("max_rounds", max_rounds)
    if holdout is not None and validation.check_non_negative("holdout", holdout) > 0.5:
        raise ValueError(f"holdout must be a share of at most 0.5 of the samples. Got {holdout!r}.")


class Fit:
    """The steps of a fit: settings one by one on the rows that are not held out, then the final planes on all rows."""

    def __init__(
        self,
        model: OrdinalModel,
        search: CSearchCV | None,
        path: Path,
        shard: Shard,
        comm: Comm,
        sweeps: int | None,
        max_rounds: int,
        holdout: float | None,
        on_round: OnRound | None,
    ) -> None:
        self.model, self.search, self.path, self.shard, self.comm = model, search, path, shard, comm
        self.max_rounds, self.holdout, self.on_round = max_rounds, holdout, on_round
        self.n_sweeps = sweeps
        self.columns = Columns.of(shard, comm)
        self.choice = Choice(path, search, model, shard)
        self.reports: list[Round] = []
        self.rounds: Rounds | None = None
        self.best_duals: NDArray[Any] | None = None
        self.is_final = False
        # Final planes of a single worker are those of memory.
        self.tol_gap = largest_gap(model, GAP if comm.size > 1 else LARGEST_GAP)
        self.is_held = np.zeros(0, dtype=bool)
        self.resumed: State | None = None

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: Any,
        comm: Comm,
        sample_weight: ArrayLike | None,
        sweeps: int | None,
        max_rounds: int,
        holdout: float | None,
        on_round: OnRound | None,
    ) -> "Fit":
        """Check what was passed to ``fit_shard``."""
        together(comm, lambda: check_arguments(model, sweeps, max_rounds, holdout))
        search = clone(model) if isinstance(model, CSearchCV) else None
        estimator: OrdinalModel = clone(model.estimator if search is not None else model)
        if search is not None and search.n_jobs is not None:
            estimator.set_params(n_jobs=search.n_jobs)
        path = together(comm, lambda: Path.of(search, estimator))
        shard = read_shard(estimator, X, y, sample_weight, comm)
        return cls(estimator, search, path, shard, comm, sweeps, max_rounds, holdout, on_round)

    # --- held-out rows -------------------------------------------------------------------------------------------------------

    def hold_out(self, known: NDArray[np.bool_] | None) -> None:
        """Assign rows to the holdout, and learn of those of all workers."""
        shard = self.shard
        share = share_to_hold_out(
            self.model, self.search is not None, self.holdout, shard.n_rows_of_all, shard.labels.n_ranks, self.comm.size
        )
        self.is_held = shard.hold_out(share * shard.n_rows_of_all, known)
        self.held = np.flatnonzero(self.is_held)
        weights = np.ones(len(self.held)) if shard.sample_weights is None else shard.sample_weights[self.held]
        self.held_ranks = gather_rows(self.comm, shard.labels.numbers[self.held])
        self.held_weights = None if shard.sample_weights is None else gather_rows(self.comm, weights)
        n_train = shard.n_rows_of_all - len(self.held_ranks)
        self.scale = shard.n_rows_of_all / n_train if self.model.probability else 1.0
        is_needed = self.search is not None or self.model.probability
        if is_needed and len(self.held_ranks) < 2:
            raise ValueError(f"X must have enough samples to hold some out. Got {shard.n_rows_of_all} on all workers.")

    def held_out(self, scores: NDArray[Any]) -> HeldOut:
        weights = None if self.held_weights is None else [self.held_weights]
        return HeldOut([scores], [self.held_ranks], weights, self.shard.labels.n_ranks)

    def error_of(self, scores: NDArray[Any]) -> float:
        """Mean absolute error of all workers' held-out rows, by these scores of our own ones."""
        weights = np.ones(len(self.held)) if self.shard.sample_weights is None else self.shard.sample_weights[self.held]
        found = self.model._rank(scores, self.shard.labels.n_ranks) if len(self.held) else np.zeros(0)
        errors = np.abs(found - self.shard.labels.numbers[self.held])
        total, weight = self.comm.allreduce(np.array([np.sum(weights * errors), np.sum(weights)]))
        return float(total / weight) if weight > 0 else np.nan

    # --- tables --------------------------------------------------------------------------------------------------------------

    def table(self, setting: dict[str, float] | None = None) -> Table:
        model = clone(self.model).set_params(**setting) if setting else self.model
        return model._table(self.shard.labels.n_ranks)

    def wide(self, table: Table, *, is_final: bool) -> Table:
        """The table for rows that are trained on, above that for held-out rows, which demand nothing until the final planes."""
        if is_final:
            return np.concatenate([table, table])
        scaled = table.copy()
        scaled[..., :2] *= self.scale
        scaled[..., 4] /= self.scale
        return np.concatenate([scaled, np.zeros_like(table)])

    def make_rounds(self, table: Table, state: State | None) -> Rounds:
        rows = self.shard.table_rows + np.int32(len(table)) * np.tile(self.is_held, self.shard.n_copies)
        is_used = np.ones(self.shard.n_rows, dtype=bool) if self.is_final else ~self.is_held
        weights = self.shard.weights_of_columns(self.comm, is_used)
        shape = (2 * len(table), *table.shape[1:])
        return Rounds(self.shard, self.comm, self.columns, rows.astype(np.int32), shape, weights, state)

    # --- the fit -------------------------------------------------------------------------------------------------------------

    def run(self) -> Any:
        """All phases; returns the fitted model on worker 0."""
        while not self.is_final and len(self.held_ranks) > 0 and (step := self.choice.next_step()) is not None:
            self.try_setting(step.setting, step.factor)
        if not self.is_final:
            self.is_final = True
            is_as_before = self.best_duals is None and self.scale == 1 and not self.shard.learns_column_weights
            if self.rounds is not None and not is_as_before:
                state = self.rounds.state()
                state = replace(state, duals=state.duals if self.best_duals is None else self.best_duals)
                self.resumed, self.rounds = state, None
        return self.finish()

    def try_setting(self, setting: dict[str, float], factor: float) -> None:
        """Planes for a setting on the rows that are not held out, and how good they are on those that are."""
        narrow = self.table(setting)
        table = self.wide(narrow, is_final=False)
        if self.rounds is None or factor == 0:  # the first of a path
            self.rounds = self.make_rounds(narrow, self.resumed)
            if self.resumed is not None:
                self.rounds.clip(table)
            self.resumed = None
        elif factor > 1:
            self.rounds.stretch(table, factor)
        self.rounds.forget()
        n_before = self.rounds.n_sweeps
        certificate = self.repeat(table, self.choice.name_of(setting), largest_gap(self.model))
        held_out = self.held_out(gather_rows(self.comm, self.rounds.scores(self.held)))
        own: dict[str, Any] | None = None
        if self.comm.rank == 0:
            own = self.choice.judge(setting, held_out, self.rounds.n_sweeps - n_before)
        if self.choice.take(share(self.comm, own, 0), held_out):
            self.best_duals = blocks.kept_duals(self.shard.X, self.rounds.duals) if self.choice.has_more else None
            # As accurate as this, the final planes are good enough, unless more sweeps need no exchange.
            if self.comm.size > 1:
                self.tol_gap = max(largest_gap(self.model), float(np.max(certificate.relative_gap)))

    def repeat(self, table: Table, phase: str, tol_gap: float) -> Certificate:
        """Rounds until there have been enough."""
        assert self.rounds is not None
        patience = Patience(tol_gap, self.max_rounds)
        if self.is_final and tol_gap > largest_gap(self.model):
            # The gap that planes of fewer rows had may be due to chance; what they had to gain is small by then.
            patience.least_gain = SMALL_GAIN
        elif self.is_final and self.comm.size == 1 and self.model.tol is None:
            # Most have closed their gap by then; with few columns it may take thousands of rounds.
            patience.least_gain, patience.first_settled = SMALL_GAIN, MANY_ROUNDS
        while True:
            n_sweeps = self.n_sweeps or FEWEST_SWEEPS
            certificate = self.rounds.step(table, n_sweeps, tol_gap)
            error = np.nan if self.is_final else self.error_of(self.rounds.scores(self.held))
            gap, costs = float(np.max(certificate.relative_gap)), self.rounds.costs
            why = patience.why_enough(gap, error, float(np.sum(certificate.objective)))
            if self.n_sweeps is None:
                self.n_sweeps = sweeps_worth(costs.computing / n_sweeps, costs.exchanging) if self.comm.size > 1 else n_sweeps
            why, self.n_sweeps, costs.exchanging = share(self.comm, [why, self.n_sweeps, costs.exchanging], 0)
            report = Round(
                number=len(self.reports) + 1,
                phase=phase,
                n_sweeps=n_sweeps,
                objective=float(np.sum(certificate.objective)),
                gap=gap,
                error=error,
                seconds_computing=costs.computing,
                seconds_exchanging=costs.exchanging,
                n_bytes=costs.n_bytes,
                why_last=why,
            )
            self.reports.append(report)
            if self.on_round is not None:
                self.on_round(report)
            if why:
                return certificate

    def finish(self) -> Any:
        """The final planes, and what is learnt from the held-out rows."""
        setting = self.choice.best_setting
        self.model.set_params(**setting)
        table = self.table()
        wide = self.wide(table, is_final=True)
        if self.rounds is None:
            self.rounds = self.make_rounds(table, self.resumed)
            if self.resumed is not None:
                self.rounds.clip(wide)
            self.resumed = None
        self.rounds.forget()
        self.repeat(wide, "final planes", self.tol_gap)
        report = self.reports[-1]
        planes = self.rounds.planes(wide, has_converged=report.why_last != "too many rounds")
        if self.comm.rank != 0:
            return None
        model = self.model
        adopt_planes(model, planes, self.shard.labels.order, None)
        if not planes.has_converged.all():
            warnings.warn(
                f"The fit stopped after max_rounds={self.max_rounds} rounds with a gap of {report.gap:.2g} of the objective. Raise "
                "max_rounds or tol, or shuffle the samples, so that every worker has all ranks.",
                ConvergenceWarning,
                stacklevel=3,
            )
        if self.choice.best is not None and model.probability:
            model._adopt_calibration(calibrate(self.choice.best))
        fitted = model if self.search is None else self.choice.fitted_search(model)
        fitted.rounds_ = self.reports
        return fitted

    # --- interruptions -------------------------------------------------------------------------------------------------------

    def checkpoint(self) -> Checkpoint | None:
        """None before the first round, when there is nothing to keep."""
        if self.rounds is None:
            return None
        state = self.rounds.state()
        common = {
            "reports": [asdict(report) for report in self.reports],
            "n_sweeps": self.n_sweeps,
            "is_final": self.is_final,
            "tol_gap": self.tol_gap,
            "agreement": state.agreement,
            "total_sweeps": state.n_sweeps,
            "free_offsets": None if state.free_offsets is None else state.free_offsets.tolist(),
            "trials": self.choice.records,
        }
        return Checkpoint(common, self.choice.best, state.duals, self.best_duals, self.is_held)

    def start_from(self, checkpoint: Checkpoint | None) -> None:
        """Take up what the worker knows that has come farthest, with our own duals."""
        self.hold_out(None if checkpoint is None else checkpoint.is_held)
        known = None if checkpoint is None else checkpoint.common
        progress = gather_values(self.comm, -1 if known is None else len(known["reports"]))
        root = int(np.argmax(progress))
        if progress[root] < 0:
            return
        common = share(self.comm, known, root)
        self.reports = [Round(**report) for report in common["reports"]]
        self.n_sweeps, self.is_final, self.tol_gap = common["n_sweeps"], common["is_final"], common["tol_gap"]
        if common["trials"]:
            self.choice.replay(common["trials"], self.shared_held_out(None if checkpoint is None else checkpoint.held_out, root))
        free = common["free_offsets"]
        self.resumed = State(
            self.padded(None if checkpoint is None else checkpoint.duals),
            None if free is None else np.array(free),
            common["agreement"],
            common["total_sweeps"],
        )
        if self.choice.best is not None and self.choice.has_more and not self.is_final:
            self.best_duals = self.padded(None if checkpoint is None else checkpoint.best_duals)

    def shared_held_out(self, own: HeldOut | None, root: int) -> HeldOut:
        """What another worker knows of held-out rows, which need not be those of now."""
        weights = np.zeros(0) if own is None or own.weights is None else own.weights[0]
        scores, ranks, weights = (
            share_array(self.comm, array, root)
            for array in (own.scores[0] if own else None, own.ranks[0] if own else None, weights)
        )
        return HeldOut([scores], [ranks], [weights] if len(weights) else None, self.shard.labels.n_ranks)

    def padded(self, duals: NDArray[Any] | None) -> NDArray[Any]:
        """The duals of our rows: those that are known, zeros for others."""
        _, n_cuts, n_lanes, _ = self.table().shape
        n_rows, n_copies = self.shard.n_rows, self.shard.n_copies
        if isinstance(duals, np.memmap) and duals.shape == (n_copies * n_rows, n_cuts, n_lanes):
            return duals  # which need not fit into memory
        found = np.zeros((n_copies, n_rows, n_cuts, n_lanes), dtype=self.shard.X.dtype)
        if duals is not None and n_rows:
            known = duals.reshape(n_copies, -1, n_cuts, n_lanes)[:, :n_rows]
            found[:, : known.shape[1]] = known
        return found.reshape(n_copies * n_rows, n_cuts, n_lanes)


def share_to_hold_out(
    model: OrdinalModel, is_search: bool, holdout: float | None, n_rows: int, n_ranks: int, n_workers: int
) -> float:
    """Of the rows of all workers. A single one ends by its gap, and needs to watch no error."""
    if not is_search and not model.probability:
        to_watch = min(SHARE_TO_WATCH, ROWS_TO_CHOOSE_BY / n_rows) if n_workers > 1 else 0.0
        return to_watch if holdout is None else holdout
    table = model._table(n_ranks)
    n_enough = rows_to_learn_from(table.shape[1] * table.shape[2], n_ranks) if model.probability else 0
    if is_search:
        n_enough = max(n_enough, ROWS_TO_CHOOSE_BY)
    return max(holdout or 0.0, min(LARGEST_SHARE, n_enough / n_rows))


def sweeps_worth(seconds_of_sweep: float, seconds_of_exchange: float) -> int:
    """As long computing as exchanging, within limits: more sweeps make a round better, but ever less so."""
    return int(np.clip(round(seconds_of_exchange / max(seconds_of_sweep, 1e-9)), FEWEST_SWEEPS, MOST_SWEEPS))
