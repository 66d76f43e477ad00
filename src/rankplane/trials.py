"""The settings that a search has tried, the best one, and when to stop trying larger values of C.

Held-out error over C has one valley, and values of C beyond it cost most. So a walk ends once ``patience`` values in a row were
worse than the best of the walk by more than the noise. Both are judged on the same held-out rows, so what they have in common
cancels out in their difference. With ``d_i`` how much worse a value is on fold i of n, it is worse if

    mean(d) > sd(d) / sqrt(n),

the standard error of that mean. Folds that are too few to show a standard error are cut into parts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.solver.folds import FoldScores
from rankplane.solver.training_set import FEW

Setting = dict[str, float]
Floats = NDArray[np.float64]


def in_words(setting: Setting) -> str:
    return " ".join(f"{name}={value:.4g}" for name, value in setting.items())


@dataclass(frozen=True)
class Trial:
    """A setting with its scores on each fold; ``parts`` are those that show the noise. None of it if it was not tried, which
    ``why_not`` gives the reason for.
    """

    setting: Setting
    folds: Floats
    parts: Floats
    n_iter: int = 0
    is_settled: bool = False
    seconds: float = np.nan
    why_not: str = ""

    @property
    def mean(self) -> float:
        return float(self.folds.mean())

    @property
    def standard_error(self) -> float:
        n_parts = len(self.parts)
        return float(self.parts.std(ddof=1) / np.sqrt(n_parts)) if n_parts > 1 else np.nan


class Walk:
    """One walk up a path of settings: its best so far, and the settings in a row that were worse."""

    def __init__(self, sign: float, patience: int | None) -> None:
        self.sign = sign
        self.patience = patience
        self.best: Trial | None = None
        self.worse: list[Trial] = []

    def add(self, trial: Trial) -> None:
        if self.best is None or self.sign * trial.mean > self.sign * self.best.mean:
            self.best, self.worse = trial, []
        elif self._is_worse(self.best, trial):
            self.worse.append(trial)
        else:
            self.worse = []

    def _is_worse(self, best: Trial, trial: Trial) -> bool:
        losses = self.sign * (best.parts - trial.parts)
        return len(losses) >= FEW and bool(losses.mean() > losses.std(ddof=1) / np.sqrt(len(losses)))

    @property
    def is_over(self) -> bool:
        return self.patience is not None and len(self.worse) >= self.patience

    @property
    def why_over(self) -> str:
        assert self.best is not None
        worse = " and ".join(in_words(trial.setting) for trial in self.worse)
        return f"{worse} worse than {in_words(self.best.setting)} by more than the noise"


class Trials:
    """All settings of a search, in its order."""

    def __init__(self, is_greater_better: bool, patience: int | None) -> None:
        self.sign = 1.0 if is_greater_better else -1.0
        self.patience = patience
        self.all: list[Trial] = []
        self.best_index = -1
        self.walk = self.new_walk()

    def new_walk(self) -> Walk:
        self.walk = Walk(self.sign, self.patience)
        return self.walk

    def add(self, setting: Setting, point: FoldScores, folds: Sequence[float], parts: Sequence[float]) -> bool:
        """Record the scores of a setting; returns whether it is the best so far: of equally good ones, the smallest."""
        n_iter = int(point.n_sweeps.max())
        trial = Trial(setting, np.array(folds), np.array(parts), n_iter, point.is_settled, point.seconds)
        self.all.append(trial)
        self.walk.add(trial)
        is_best = self.best_index < 0 or self._merit(trial) > self._merit(self.best)
        if is_best:
            self.best_index = len(self.all) - 1
        return is_best

    def leave_out(self, settings: Iterable[Setting]) -> None:
        """Record settings that are not tried because their walk has ended."""
        unknown = np.full_like(self.all[-1].folds, np.nan)
        self.all += [Trial(setting, unknown, unknown, why_not=self.walk.why_over) for setting in settings]

    @property
    def best(self) -> Trial:
        return self.all[self.best_index]

    def _merit(self, trial: Trial) -> tuple[float, ...]:
        """The mean score, larger being better, then smaller settings; NaN is the worst."""
        signed = self.sign * trial.mean
        return (-np.inf if np.isnan(signed) else signed, *(-value for value in trial.setting.values()))

    def results(self) -> dict[str, Any]:
        """``cv_results_``, as in scikit-learn's searches."""
        trials = self.all
        results: dict[str, Any] = {
            f"param_{name}": np.array([trial.setting[name] for trial in trials]) for name in trials[0].setting
        }
        results["params"] = [trial.setting for trial in trials]
        scores = np.array([trial.folds for trial in trials])
        results |= {f"split{fold}_test_score": scores[:, fold] for fold in range(scores.shape[1])}
        results["mean_test_score"] = scores.mean(axis=1)
        results["std_test_score"] = scores.std(axis=1)
        results["se_test_score"] = np.array([trial.standard_error for trial in trials])
        merits = np.array([self._merit(trial)[0] for trial in trials])
        results["rank_test_score"] = np.array([1 + np.sum(merits > merit) for merit in merits], dtype=np.int32)
        is_out = [trial.why_not != "" for trial in trials]
        results["n_iter"] = np.ma.array([trial.n_iter for trial in trials], mask=is_out if any(is_out) else np.ma.nomask)
        results["is_settled"] = np.array([trial.is_settled for trial in trials])
        results["fit_time"] = np.array([trial.seconds for trial in trials])
        results["why_not_tried"] = np.array([trial.why_not for trial in trials], dtype=object)
        return results
