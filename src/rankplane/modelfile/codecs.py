"""Models as trees of plain values: nodes that name classes of a fixed list, their parameters and what they have fitted.

A class of this package says itself what it has fitted, and takes it back (`Stored`); scikit-learn's are in ``sklearn_codecs``.
"""

from dataclasses import fields
from typing import Any, Protocol

from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankplane import estimators, validation
from rankplane.base import OrdinalModel
from rankplane.modelfile.compact import read_weights, write_weights
from rankplane.modelfile.sklearn_codecs import KNOWN, read_known, write_known
from rankplane.modelfile.values import ValueReader, ValueWriter
from rankplane.options import MODEL_NAMES
from rankplane.prediction.calibration import Curved, Multinomial, Probit
from rankplane.rank_model import RankModel
from rankplane.search import CSearchCV
from rankplane.table_vectorizer import TableVectorizer
from rankplane.tabular import ColumnEncoder
from rankplane.text import TextVectorizer


class Stored(Protocol):
    """An estimator of this package, as a model file sees it: constructor parameters, and values that it has fitted."""

    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...

    def _to_values(self) -> dict[str, Any]:
        """Fitted attributes as plain values, arrays, lists of them, and a calibrator. A compact file has fewer ``weights``."""
        ...

    def _from_values(self, values: dict[str, Any]) -> None:
        """Restore what `_to_values` returned, in an object with the same parameters.

        Anybody may have written the file: an exception, by which it counts as damaged, unless the values fit together.
        """
        ...


MODELS: dict[str, type[RankModel]] = {name: getattr(estimators, name) for name in MODEL_NAMES}
# The lists are fixed: no other class can come out of a file.
ENCODERS: tuple[type[Stored], ...] = (TextVectorizer, ColumnEncoder, TableVectorizer)
STORED: dict[str, type[Stored]] = MODELS | {encoder.__name__: encoder for encoder in ENCODERS}
CALIBRATORS: dict[str, type[Any]] = {"Multinomial": Multinomial, "Curved": Curved, "Probit": Probit}  # stored by their fields
SEARCHES = (CSearchCV, GridSearchCV, RandomizedSearchCV)


def best_of(search: Any) -> Any:
    check_is_fitted(search)
    if not hasattr(search, "best_estimator_"):
        raise ValueError(f"refit of {type(search).__name__} must be True for its best model to be saved. Got {search.refit!r}.")
    return search.best_estimator_


class Writer(ValueWriter):
    """Makes a tree of a model."""

    def __init__(self, compact: float | None) -> None:
        super().__init__()
        self.compact = compact

    def node(self, model: Any) -> dict[str, Any]:
        kind = type(model).__name__
        if type(model) in SEARCHES:
            return self.node(best_of(model))
        if type(model) is Pipeline:
            return {"kind": "Pipeline", "steps": [[name, self.step(step)] for name, step in model.steps]}
        if kind in KNOWN and KNOWN[kind].cls is type(model):
            return write_known(self, model)
        if STORED.get(kind) is not type(model):
            listed = [*STORED, *(search.__name__ for search in SEARCHES), "Pipeline", *KNOWN]
            raise ValueError(f"A model file holds {', '.join(listed)}. Got {kind}.")
        given = model.get_params(deep=False)
        check_is_fitted(model)
        values = model._to_values()
        # A part that is cloned to be fitted is stored among what was fitted.
        params = {name: self.value(name, value) for name, value in given.items() if not isinstance(value, BaseEstimator)}
        if self.compact is not None and isinstance(model, RankModel) and "weights" not in values:
            own = f"This one has kernel={model.kernel!r}" if isinstance(model, OrdinalModel) else f"Got {kind}"
            raise ValueError(f"compact drops weights of columns, so it needs a linear model. {own}.")
        return {"kind": kind, "params": params, "fitted": {name: self.fitted(name, value) for name, value in values.items()}}

    def step(self, step: Any) -> Any:
        return step if step is None or isinstance(step, str) else self.node(step)

    def fitted(self, name: str, value: Any) -> Any:
        if name == "weights":
            return write_weights(self, value, self.compact)
        return self.calibrator(value) if name == "calibrator" else self.value(name, value)

    def calibrator(self, calibrator: Any) -> dict[str, Any]:
        kind = type(calibrator).__name__
        if CALIBRATORS.get(kind) is not type(calibrator):
            raise ValueError(f"A model file holds calibrators of the kinds {', '.join(CALIBRATORS)}. Got {kind}.")
        return {"kind": kind} | {
            field.name: self.value(field.name, getattr(calibrator, field.name)) for field in fields(calibrator)
        }


class Reader(ValueReader):
    """Makes a model of its tree. ``foreign`` lists the classes of scikit-learn in it."""

    def __init__(self, arrays: list[Any]) -> None:
        super().__init__(arrays)
        self.foreign: list[str] = []

    def node(self, stored: Any) -> Any:
        kind = stored["kind"]
        if kind == "Pipeline":
            pipeline = Pipeline([(name, self.step(step)) for name, step in stored["steps"]])
            pipeline._validate_steps()
            return pipeline
        if "n_jobs" in stored["params"]:
            validation.check_n_jobs(stored["params"]["n_jobs"])
        if kind in KNOWN:
            self.foreign.append(kind)
            return read_known(self, stored)
        model = STORED[kind](**{name: self.value(value) for name, value in stored["params"].items()})
        model._from_values({name: self.fitted(name, value) for name, value in stored["fitted"].items()})
        return model

    def step(self, stored: Any) -> Any:
        return self.node(stored) if isinstance(stored, dict) else stored

    def fitted(self, name: str, stored: Any) -> Any:
        if name == "weights":
            return read_weights(self, stored)
        return self.calibrator(stored) if name == "calibrator" else self.value(stored)

    def calibrator(self, stored: dict[str, Any]) -> Any:
        cls = CALIBRATORS[stored["kind"]]
        return cls(**{field.name: self.value(stored[field.name]) for field in fields(cls)})
