"""A trained model as the commands use it: what makes columns, the estimator, and what is known about both.

A model file holds a scikit-learn Pipeline, which others can use without this module. Here its parts have names.
"""

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from rankplane import modelfile
from rankplane.inputs.reading import InputError
from rankplane.inputs.schema import Inputs, Rows
from rankplane.prediction.explanations import Explanation, TopFeatures
from rankplane.text import TextVectorizer


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows and the matrix that a model makes of them: made once, since making it takes longer than any use of it."""

    rows: Rows
    X: Any


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """Features become a matrix by ``transform``; whatever answers or explains takes that matrix."""

    first_step: Any  # TextVectorizer, ColumnEncoder, or None where the features are a matrix already
    estimator: Any
    inputs: Inputs
    metadata: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, pipeline: Pipeline, metadata: dict[str, Any]) -> "TrainedModel":
        """The parts of a pipeline whose metadata name its inputs."""
        n_before = len(pipeline.steps) - 1
        first_step = None if n_before == 0 else pipeline[0] if n_before == 1 else pipeline[:-1]
        return cls(first_step, pipeline[-1], Inputs(**metadata["inputs"]), metadata)

    @classmethod
    def open(cls, path: str) -> "TrainedModel":
        """Read a file that ``rankplane train`` wrote."""
        if os.path.isdir(path):
            raise InputError(f"{path} is a folder, not a file.")
        pipeline, metadata = modelfile.open_model(path)
        if "inputs" not in metadata or not hasattr(pipeline, "steps"):
            raise InputError(f"{path} was not written by rankplane train, so it does not say which columns it takes.")
        return cls.of(pipeline, metadata)

    @property
    def steps(self) -> list[Any]:
        return [self.estimator] if self.first_step is None else [self.first_step, self.estimator]

    @property
    def pipeline(self) -> Pipeline:
        """What a model file holds."""
        return Pipeline(list(zip(("features", "model")[-len(self.steps) :], self.steps, strict=True)))

    @property
    def vectorizer(self) -> TextVectorizer | None:
        """What finds the words of texts; None for tables."""
        return self.first_step if isinstance(self.first_step, TextVectorizer) else None

    @property
    def classes(self) -> NDArray[Any]:
        """The ranks, lowest first."""
        return np.asarray(self.estimator.classes_)

    @property
    def is_linear(self) -> bool:
        """Whether the model has weights of columns, to be named and explained by."""
        return hasattr(self.estimator, "coef_")

    @cached_property
    def column_names(self) -> Any:
        """Terms, names of columns, or the numbers that an svmlight file counts them by."""
        if self.first_step is None:
            return np.arange(1, self.estimator.n_features_in_ + 1)
        return self.first_step.get_feature_names_out()

    def transform(self, features: Any) -> Any:
        return features if self.first_step is None else self.first_step.transform(features)

    def encode(self, rows: Rows) -> EncodedRows:
        return EncodedRows(rows, self.transform(rows.features))

    def predict(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.estimator.predict(X))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return np.asarray(self.estimator.predict_proba(X))

    def predict_set(self, X: Any, coverage: float) -> NDArray[np.bool_]:
        return np.asarray(self.estimator.predict_set(X, coverage))

    def top_features(self, n: int) -> list[TopFeatures]:
        """The columns that speak most strongly for either side of each boundary between ranks; none with a kernel."""
        return list(self.estimator.top_features(self.column_names, n=n)) if self.is_linear else []

    def explain(self, X: Any, top: int = 5) -> list[Explanation]:
        """Why each row lies above or below each boundary between ranks."""
        return list(self.estimator.explain(X, self.column_names, top=top))
