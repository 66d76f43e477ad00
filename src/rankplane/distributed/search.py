"""Which settings a fit over workers tries, and which is best."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankplane.base import OrdinalModel
from rankplane.distributed.shard import Shard
from rankplane.fold_predictions import FoldPredictions
from rankplane.prediction.calibration import rows_to_learn_from
from rankplane.scoring import Scoring, scoring_of
from rankplane.search import ROWS_OF_A_PART, CSearchCV, factors_of
from rankplane.solver.folds import FoldScores
from rankplane.solver.training_set import HeldOut
from rankplane.trials import Setting, Trials, in_words


@dataclass(frozen=True)
class Step:
    """A setting, with how much wider its bounds are than those before; 0 at the start of a path."""

    path: int
    setting: Setting
    factor: float


@dataclass(frozen=True)
class Path:
    """The settings to try, path by path: of a search, or none, which is the model as it is."""

    steps: list[list[Step]]
    scoring: Scoring | None

    @classmethod
    def of(cls, search: CSearchCV | None, model: OrdinalModel) -> "Path":
        if search is None:
            return cls([[Step(0, {}, 0.0)]], None)
        settings, variants = search._check_parameters()
        if variants != [{}]:
            raise ValueError("gammas and couplings must be None for a fit over workers.")
        if not (isinstance(search.cv, str) and search.cv == "auto"):
            raise ValueError(f"cv must be 'auto' for a fit over workers, which holds out one set of samples. Got {search.cv!r}.")
        steps = []
        for number, path in enumerate(settings):
            factors = [0.0, *factors_of(path)[1:]]
            steps.append([Step(number, setting, factor) for setting, factor in zip(path, factors, strict=True)])
        return cls(steps, scoring_of(search.scoring, model))


class Choice:
    """The settings tried so far, their scores, and what comes next. The same on all workers; only worker 0 judges."""

    def __init__(self, path: Path, search: CSearchCV | None, model: OrdinalModel, shard: Shard) -> None:
        self.path, self.search, self.model, self.shard = path, search, model, shard
        self.records: list[dict[str, Any]] = []
        self.best: HeldOut | None = None
        self.trials: Trials | None = None
        if path.scoring is not None and search is not None:
            self.trials = Trials(path.scoring.is_greater_better, search.patience)
        self.place = (0, 0)

    @property
    def has_more(self) -> bool:
        return self.next_step() is not None

    @property
    def best_setting(self) -> Setting:
        return self.trials.best.setting if self.trials is not None else {}

    def name_of(self, setting: Setting) -> str:
        return in_words(setting) if setting else "without held-out rows"

    def next_step(self) -> Step | None:
        path, step = self.place
        return self.path.steps[path][step] if path < len(self.path.steps) else None

    def judge(self, setting: Setting, held_out: HeldOut, n_sweeps: int) -> dict[str, Any]:
        """The scores of a setting, as plain numbers."""
        if self.path.scoring is None:
            return {"folds": [], "parts": [], "n_sweeps": n_sweeps}
        n_planes, n_ranks = held_out.scores[0].shape[1], self.shard.labels.n_ranks
        model = self.model.__class__(**(self.model.get_params(deep=False) | setting))
        found = FoldPredictions(model, self.shard.labels.order, held_out, rows_to_learn_from(n_planes, n_ranks))
        folds = self._scores(found)
        parts = folds
        if min(len(ranks) for ranks in held_out.of_parts().ranks) >= ROWS_OF_A_PART:
            parts = self._scores(found.of_parts())
        return {"folds": folds, "parts": parts, "n_sweeps": n_sweeps}

    def _scores(self, predictions: FoldPredictions) -> list[float]:
        assert self.path.scoring is not None
        # Held-out rows stay with their workers: scorers get rows without columns, and predictions that are known.
        rows: Sequence[Any] = [np.zeros((len(ranks), 0)) for ranks in predictions.held_out.ranks]
        return self.path.scoring.of_folds(predictions, rows)

    def take(self, record: dict[str, Any], held_out: HeldOut) -> bool:
        """Take down what worker 0 found; returns whether the setting is the best so far."""
        step = self.next_step()
        assert step is not None
        self.records.append(record)
        path, number = self.place
        is_best, is_over = True, number + 1 == len(self.path.steps[path])
        if self.trials is not None:
            if number == 0:
                self.trials.new_walk()
            point = FoldScores([], np.array([record["n_sweeps"]]), False)
            is_best = self.trials.add(step.setting, point, record["folds"], record["parts"])
            if self.trials.walk.is_over and not is_over:
                self.trials.leave_out([left.setting for left in self.path.steps[path][number + 1 :]])
                is_over = True
        self.place = (path + 1, 0) if is_over else (path, number + 1)
        if is_best:
            self.best = held_out
        return is_best

    def replay(self, records: list[dict[str, Any]], best: HeldOut) -> None:
        """Take down what was found before an interruption."""
        for record in records:
            self.take(record, best)

    def fitted_search(self, model: OrdinalModel) -> CSearchCV:
        assert self.search is not None
        assert self.trials is not None
        self.search._take_results(self.trials, 1, model, self.shard.labels.order)
        if self.search.refit:
            self.search.best_estimator_ = model
        return self.search
