"""The columns that predictions add to a table."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankplane.inputs.reading import Batch, InputError
from rankplane.prediction.decisions import set_in_words
from rankplane.training.model import TrainedModel


@dataclass(frozen=True)
class AddedColumns:
    """Names of the columns of ranks, probabilities and sets of ranks, and which of them are wanted."""

    rank: str = "prediction"
    proba_prefix: str | None = None  # None without probabilities
    rank_set: str = "set"
    coverage: float | None = None  # None without sets

    def check(self) -> None:
        if self.coverage is not None and not 0 < self.coverage < 1:
            raise InputError(f"--set must be a number between 0 and 1. Got {self.coverage}.")
        for option, name in {"--rank-column": self.rank, "--set-column": self.rank_set}.items():
            if not name.strip():
                raise InputError(f"{option} must be a name, which is not empty.")

    def names(self, order: list[Any]) -> list[str]:
        of_ranks = [] if self.proba_prefix is None else [f"{self.proba_prefix}{label}" for label in order]
        return [self.rank, *of_ranks, *([] if self.coverage is None else [self.rank_set])]

    def of(self, model: TrainedModel, X: Any, batch: Batch) -> dict[str, Any]:
        """The columns of a batch, whose matrix is X: lists or arrays."""
        order = model.classes.tolist()
        names = self.names(order)
        for place, name in enumerate(names):
            if name in batch.columns or name in names[:place]:
                file = batch.file_of(0, "")
                owner = f'{file} has a column "{name}"' if name in batch.columns else f'Another added column is called "{name}"'
                raise InputError(f"{owner} already: use --rank-column, --proba-prefix or --set-column for other names.")
        if not len(batch):
            return {name: [] for name in names}
        ranks = model.predict(X)
        values: list[Any] = [ranks.tolist() if ranks.dtype.kind == "f" else ranks]
        if self.proba_prefix is not None:
            values += list(np.round(model.predict_proba(X), 6).T)
        if self.coverage is not None:
            values.append(set_in_words(model.predict_set(X, self.coverage), order))
        return dict(zip(names, values, strict=True))
