"""A trained model as the commands use it: the first step, the estimator, and metadata.

A model file holds a scikit-learn Pipeline, which can be used without this module. Here its parts have names.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from rankplane import modelfile
from rankplane.inputs.reading import InputError
from rankplane.inputs.schema import Inputs, Rows, texts_in
from rankplane.prediction.explanations import Explanation, TopFeatures
from rankplane.table_vectorizer import TableVectorizer
from rankplane.tabular import ColumnEncoder
from rankplane.text import TextVectorizer

Encoder = TextVectorizer | ColumnEncoder | TableVectorizer


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows and their matrix, kept together because making the matrix takes longer than any use of it."""

    rows: Rows
    X: Any


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """Features become a matrix by ``transform``; methods that predict or explain take that matrix."""

    first_step: Any  # an Encoder, or None if the features are a matrix already
    estimator: Any
    inputs: Inputs
    metadata: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, pipeline: Pipeline, metadata: dict[str, Any]) -> "TrainedModel":
        """The parts of a pipeline, whose metadata contain its inputs."""
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

    def on_threads(self, n_jobs: int | None) -> "TrainedModel":
        """This model, set to use so many threads; None is the default of the library, one."""
        return self._set(n_jobs=n_jobs)

    def silenced(self) -> "TrainedModel":
        """This model without progress bars."""
        return self._set(verbose=0)

    def _set(self, **params: Any) -> "TrainedModel":
        for step in [*self.steps, *([self.vectorizer] if isinstance(self.first_step, TableVectorizer) else [])]:
            if step is not None:
                step.set_params(**{name: value for name, value in params.items() if name in step.get_params(deep=False)})
        return self

    @classmethod
    def of_loaded(cls, model: Any) -> "TrainedModel":
        """A model that ``load_model`` returned."""
        metadata = getattr(model, "metadata_", {})
        if "inputs" not in metadata or not hasattr(model, "steps"):
            rule = "model must be loaded from a file that rankplane train wrote, which says which columns it takes"
            raise InputError(f"{rule}. Got a {type(model).__name__} {'of another file' if metadata else 'of no file'}.")
        return cls.of(model, metadata)

    @property
    def steps(self) -> list[Any]:
        return [self.estimator] if self.first_step is None else [self.first_step, self.estimator]

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline to save in a model file."""
        return Pipeline(list(zip(("features", "model")[-len(self.steps) :], self.steps, strict=True)))

    @property
    def vectorizer(self) -> TextVectorizer | None:
        """The TextVectorizer; None for tables."""
        step = self.first_step
        return step.vectorizer_ if isinstance(step, TableVectorizer) else step if isinstance(step, TextVectorizer) else None

    @property
    def encoder(self) -> ColumnEncoder | None:
        """The ColumnEncoder; None for texts."""
        step = self.first_step
        return step.encoder_ if isinstance(step, TableVectorizer) else step if isinstance(step, ColumnEncoder) else None

    def texts(self, features: Any) -> Sequence[str] | None:
        """The texts of features, those of several columns joined; None for tables."""
        return texts_in(features, self.inputs)  # type: ignore[no-any-return]

    @property
    def classes(self) -> NDArray[Any]:
        """The ranks, lowest first."""
        return np.asarray(self.estimator.classes_)

    @property
    def is_linear(self) -> bool:
        """Whether the model has column weights, which explanations need."""
        return hasattr(self.estimator, "coef_")

    @cached_property
    def column_names(self) -> Any:
        """Terms, column names, or the column numbers of an svmlight file."""
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

    def predict_both(self, X: Any) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Ranks and probabilities of what ``transform`` returned, in less time than one of them takes alone."""
        estimator = self.estimator
        # What our own steps make needs no checks, which take several times as long as the scores of a row.
        is_ours = isinstance(self.first_step, Encoder) and sp.issparse(X)
        scores = estimator._scores(X) if is_ours else estimator.plane_scores(X)
        ranks, probabilities = estimator._predict_both(scores)
        return ranks, probabilities

    def predict_set(self, X: Any, coverage: float) -> NDArray[np.bool_]:
        return np.asarray(self.estimator.predict_set(X, coverage))

    def top_features(self, n: int) -> list[TopFeatures]:
        """The columns with the largest weights at each boundary between ranks; none with a kernel."""
        return list(self.estimator.top_features(self.column_names, n=n)) if self.is_linear else []

    def explain(self, X: Any, top: int = 5) -> list[Explanation]:
        """Why each row lies above or below each boundary between ranks."""
        return list(self.estimator.explain(X, self.column_names, top=top))
