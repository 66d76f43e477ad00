"""Models as trees of plain values: nodes that name classes of a fixed list, their parameters and what they have fitted."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankplane import estimators, validation
from rankplane._core import Vocabulary
from rankplane.base import OrdinalModel
from rankplane.modelfile.compact import read_weights, write_weights
from rankplane.modelfile.sklearn_codecs import KNOWN, read_known, write_known
from rankplane.modelfile.values import ValueReader, ValueWriter
from rankplane.options import MODEL_NAMES
from rankplane.parameters import check_parameters
from rankplane.prediction import decisions
from rankplane.prediction.calibration import Curved, Multinomial
from rankplane.search import CSearchCV
from rankplane.solver.kernels import GAMMA_KERNELS, is_linear
from rankplane.tabular import ColumnEncoder
from rankplane.text import TextVectorizer

MODELS: dict[str, type[OrdinalModel]] = {name: getattr(estimators, name) for name in MODEL_NAMES}
CALIBRATORS: dict[str, type[Any]] = {"Multinomial": Multinomial, "Curved": Curved}
SEARCHES = (CSearchCV, GridSearchCV, RandomizedSearchCV)
NO_COLUMN = 2**32 - 1


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
        is_known = kind in KNOWN and KNOWN[kind].cls is type(model)
        writers: dict[type, Callable[[Any], dict[str, Any]]] = {TextVectorizer: self.vectorizer, ColumnEncoder: self.encoder}
        write = self.model if MODELS.get(kind) is type(model) else writers.get(type(model))
        if write is None and not is_known:
            listed = [*MODELS, *(search.__name__ for search in SEARCHES), "Pipeline", "TextVectorizer", "ColumnEncoder", *KNOWN]
            raise ValueError(f"A model file holds {', '.join(listed)}. Got {kind}.")
        if write is None:
            return write_known(self, model)
        params = {name: self.value(name, value) for name, value in model.get_params(deep=False).items()}
        check_is_fitted(model)
        return {"kind": kind, "params": params, "fitted": write(model)}

    def step(self, step: Any) -> Any:
        return step if step is None or isinstance(step, str) else self.node(step)

    def vectorizer(self, vectorizer: TextVectorizer) -> dict[str, Any]:
        if not hasattr(vectorizer, "_vocabulary"):
            return {}
        terms, ends, levels = vectorizer._vocabulary.__getstate__()
        fitted: dict[str, Any] = {
            "terms": self.array(np.frombuffer(terms, dtype=np.uint8)),
            "ends": self.array(ends),
            "levels": [[self.array(part) for part in level] for level in levels],
            "is_joined": bool(vectorizer._is_joined),
            "n_documents": int(vectorizer.n_documents_),
        }
        if hasattr(vectorizer, "idf_"):
            fitted["idf"] = self.array(vectorizer.idf_)
        return fitted

    def encoder(self, encoder: ColumnEncoder) -> dict[str, Any]:
        return {name: self.value(name, getattr(encoder, name)) for name in encoder.fitted}

    def model(self, model: OrdinalModel) -> dict[str, Any]:
        check_parameters(model)  # they may have been set after the fit
        held = [name for name in model.fitted if hasattr(model, name)]
        fitted = {name: self.value(name, getattr(model, name)) for name in held if name not in ("coef_", "calibrator_")}
        if "coef_" in held:
            fitted["weights"] = write_weights(self, np.ascontiguousarray(model.coef_.T), self.compact)
        elif self.compact is not None:
            raise ValueError(f"compact drops weights of columns, so it needs a linear model. This one has kernel={model.kernel!r}.")
        if "calibrator_" in held:
            fitted["calibrator"] = self.calibrator(model.calibrator_)
        return fitted

    def calibrator(self, calibrator: Any) -> dict[str, Any]:
        kind = type(calibrator).__name__
        if CALIBRATORS.get(kind) is not type(calibrator):
            raise ValueError(f"A model file holds calibrators of the kinds {', '.join(CALIBRATORS)}. Got {kind}.")
        return {"kind": kind} | {
            field.name: self.value(field.name, getattr(calibrator, field.name)) for field in fields(calibrator)
        }


class Reader(ValueReader):
    """Makes a model of its tree. ``foreign`` lists the classes of scikit-learn that were met."""

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
        params = {name: self.value(value) for name, value in stored["params"].items()}
        fitted = stored["fitted"]
        if kind == "TextVectorizer":
            return self.vectorizer(TextVectorizer(**params), fitted)
        if kind == "ColumnEncoder":
            return self.encoder(ColumnEncoder(**params), fitted)
        return self.model(MODELS[kind](**params), fitted)

    def step(self, stored: Any) -> Any:
        return self.node(stored) if isinstance(stored, dict) else stored

    def vectorizer(self, vectorizer: TextVectorizer, fitted: dict[str, Any]) -> TextVectorizer:
        settings = vectorizer._settings()
        if settings.hashing is not None:
            return vectorizer
        levels = [(self.array(keys), self.array(counts), self.array(columns)) for keys, counts, columns in fitted["levels"]]
        if len(levels) > settings.ngram_range[1]:
            raise ValueError("the vocabulary has longer n-grams than ngram_range")
        columns = np.concatenate([level[2] for level in levels])
        columns = columns[columns != NO_COLUMN]
        # The core indexes by these without looking.
        if len(columns) and not (columns.max() < len(columns) and np.all(np.bincount(columns) == 1)):
            raise ValueError("the columns of the vocabulary are not numbered one by one")
        vocabulary = Vocabulary.__new__(Vocabulary)
        vocabulary.__setstate__((bytes(self.array(fitted["terms"])), self.array(fitted["ends"]), levels))
        vectorizer._vocabulary = vocabulary
        vectorizer._column_of = None
        vectorizer._is_joined = bool(fitted["is_joined"])
        vectorizer.n_documents_ = int(fitted["n_documents"])
        if "idf" in fitted:
            vectorizer.idf_ = self.array(fitted["idf"])
        if settings.use_idf and vectorizer.idf_.shape != columns.shape:
            raise ValueError("the vocabulary and its frequencies do not match")
        return vectorizer

    def encoder(self, encoder: ColumnEncoder, fitted: dict[str, Any]) -> ColumnEncoder:
        for name in encoder.fitted:
            setattr(encoder, name, self.value(fitted[name]))
        names, categories = encoder.names_, encoder.categories_
        is_sound = isinstance(names, list) and all(isinstance(name, str) for name in names) and isinstance(categories, dict)
        is_sound = is_sound and all(isinstance(listed, list) for listed in categories.values())
        n_numbers = len([name for name in names if name not in categories])
        if not is_sound or not encoder.means_.shape == encoder.deviations_.shape == (n_numbers,):
            raise ValueError("the columns do not match their means or categories")
        return encoder

    def model(self, model: OrdinalModel, fitted: dict[str, Any]) -> OrdinalModel:
        check_parameters(model)
        for name, stored in fitted.items():
            if name in model.fitted:
                setattr(model, name, self.value(stored))
        if "weights" in fitted:
            model.coef_ = read_weights(self, fitted["weights"]).T
        if "calibrator" in fitted:
            stored = dict(fitted["calibrator"])
            setattr(model, "calibrator_", self.calibrator(CALIBRATORS[stored.pop("kind")], stored))  # noqa: B010
        needed = ["classes_", "intercept_", "n_features_in_", *(["calibrator_", "conformity_"] if model.probability else [])]
        missing = next((name for name in needed if not hasattr(model, name)), None)
        if missing:
            raise ValueError(f"{missing} is missing")
        check_model(model)
        return model

    def calibrator(self, cls: type[Any], stored: dict[str, Any]) -> Any:
        return cls(**{field.name: self.value(stored[field.name]) for field in fields(cls)})


def check_model(model: OrdinalModel) -> None:
    """Whether all parts have the shapes that the number of ranks, planes and columns asks for."""
    classes, intercept = model.classes_, model.intercept_
    if not (isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) >= 2):
        raise ValueError("the ranks are not a list of two and more")
    n_ranks, n_columns = len(classes), model.n_features_in_
    n_cuts, n_lanes = table_shape(model, n_ranks)
    has_weights = is_linear(model.kernel)
    if has_weights != ("coef_" in vars(model)):
        raise ValueError("the weights do not match the kernel")
    weights = model.coef_ if has_weights else model.dual_coef_
    columns = model.coef_ if has_weights else model.support_vectors_
    if weights.ndim != 2 or len(weights) != n_lanes or intercept.shape != (n_cuts * n_lanes,) or intercept.dtype.kind != "f":
        raise ValueError("the weights do not match the number of ranks")
    if columns.ndim != 2 or columns.shape[1] != n_columns:
        raise ValueError("the weights do not match the number of columns")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and names.shape != (n_columns,):
        raise ValueError("the names do not match the number of columns")
    if not has_weights:
        check_support(model, n_columns)
    if model.probability:
        check_probability(model, n_cuts * n_lanes)
    if decisions.is_by_cost(model.decision):
        decisions.cost_matrix(model.decision, n_ranks)
        if not model.probability:
            raise ValueError("the decision needs probabilities")


def table_shape(model: OrdinalModel, n_ranks: int) -> tuple[int, int]:
    """Cuts and lanes. A table grows evenly with the ranks; that of very many is too large to make for its shape alone."""
    (cuts, lanes), (more_cuts, more_lanes) = (model._table(n).shape[1:3] for n in (2, 3))
    return cuts + (n_ranks - 2) * (more_cuts - cuts), lanes + (n_ranks - 2) * (more_lanes - lanes)


def check_support(model: OrdinalModel, n_columns: int) -> None:
    rows, weights, support = model.support_vectors_, model.dual_coef_, model.support_
    is_precomputed = model.kernel == "precomputed"
    n_rows = len(support) if is_precomputed else rows.shape[0]
    if weights.shape[1] != n_rows or weights.dtype.kind != "f" or rows.dtype.str not in ("<f4", "<f8"):
        raise ValueError("the support rows do not match their coefficients")
    if is_precomputed and not (support.dtype.kind in "iu" and np.all((support >= 0) & (support < n_columns))):
        raise ValueError("the support rows are not rows of training")
    if model.kernel in GAMMA_KERNELS:
        validation.check_positive("gamma_", model.gamma_)


def check_probability(model: OrdinalModel, n_scores: int) -> None:
    with np.errstate(all="ignore"):
        probabilities = model.calibrator_.probabilities(np.zeros((1, n_scores)))
    if probabilities.shape != (1, len(model.classes_)) or probabilities.dtype.kind != "f":
        raise ValueError("the calibrator does not match the ranks")
    if model.conformity_.ndim != 1 or model.conformity_.dtype.kind != "f":
        raise ValueError("the conformity is not a list of numbers")
