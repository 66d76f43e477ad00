"""The classes of scikit-learn that a model file holds: the fitted attributes of each, and checks of them.

The list is fixed, and attributes are set by the names in it alone, so that a file can bring neither code nor surprises. Where
scikit-learn's compiled code, or scipy's, would index by an attribute without looking, the attribute is checked here.
"""

import inspect
from collections import UserList
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2, f_classif, f_regression, mutual_info_classif, mutual_info_regression
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from rankplane.modelfile.values import ValueReader, ValueWriter

NUMBERS = tuple(np.dtype(letter).name for letter in "?bhilBHILefd")
TYPES = (*dict.fromkeys(NUMBERS), "object")
SCORES = {function.__name__: function for function in (chi2, f_classif, f_regression, mutual_info_classif, mutual_info_regression)}
MAX_COLUMNS = 2**31 - 1  # as many as a sparse matrix of int32 has
# Of every class; some have no columns, or no names of them.
COMMON = ("n_features_in_", "feature_names_in_", "_sklearn_output_config")


def require(is_so: Any, kind: str, what: str) -> None:
    if not is_so:
        raise ValueError(f"{kind} has {what}")


def check_nothing(model: Any) -> None:
    pass


def check_text(vectorizer: Any) -> None:
    # With input="filename" in an untrusted model file, texts could name any file to read.
    if vectorizer.input != "content":
        kind = type(vectorizer).__name__
        raise ValueError(f"input of {kind} must be 'content' to be stored in a model file. Got {vectorizer.input!r}.")


def check_vocabulary(vectorizer: Any) -> None:
    check_text(vectorizer)
    # It has warned when it was fitted.
    vectorizer._stop_words_id = id(vectorizer.stop_words)
    if isinstance(vectorizer, TfidfVectorizer):
        require(isinstance(vectorizer._tfidf, TfidfTransformer), "TfidfVectorizer", "no weights")
        n_known = len(getattr(vectorizer._tfidf, "idf_", vectorizer.vocabulary_))
        require(n_known == len(vectorizer.vocabulary_), "TfidfVectorizer", "frequencies that do not match its vocabulary")


def check_frequencies(transformer: TfidfTransformer) -> None:
    require(hasattr(transformer, "idf_") or not transformer.use_idf, "TfidfTransformer", "no frequencies")


def check_imputer(imputer: SimpleImputer) -> None:
    if not hasattr(imputer, "_fill_dtype"):  # before scikit-learn 1.7 they were one
        imputer._fill_dtype = imputer._fit_dtype
    indicator = imputer.indicator_
    is_sound = isinstance(indicator, MissingIndicator) and indicator.n_features_in_ == imputer.n_features_in_
    require(indicator is None or is_sound, "SimpleImputer", "a wrong indicator")


def check_power(transformer: PowerTransformer) -> None:
    has_scaler = isinstance(getattr(transformer, "_scaler", None), StandardScaler)
    require(has_scaler or not transformer.standardize, "PowerTransformer", "no scaler")


def are_places(numbers: Any, n: int) -> bool:
    """Whether all entries of an array are integers from 0 to n - 1."""
    is_whole = isinstance(numbers, np.ndarray) and numbers.ndim == 1 and numbers.dtype.kind in "iu"
    return is_whole and bool(np.all((numbers >= 0) & (numbers < n)))


def is_ascending(numbers: Any) -> bool:
    known = numbers[:-1] if len(numbers) and numbers[-1] != numbers[-1] else numbers  # NaN comes last
    return bool(np.all(known[:-1] < known[1:]) and np.all(known == known))


def check_categories(encoder: Any) -> None:
    """Categories, and groups of infrequent ones: codes are made of their places, and one-hot columns of codes."""
    kind, n_columns = type(encoder).__name__, encoder.n_features_in_
    require(len(encoder.categories_) == n_columns, kind, "categories of another number of columns")
    for categories in encoder.categories_:
        require(isinstance(categories, np.ndarray) and categories.ndim == 1 and len(categories), kind, "no list of categories")
        # Numbers are looked up by bisection.
        require(categories.dtype.kind in "OU" or is_ascending(categories), kind, "unsorted categories")
    if not encoder._infrequent_enabled:
        return
    groups, places = encoder._infrequent_indices, encoder._default_to_infrequent_mappings
    require(len(groups) == len(places) == n_columns, kind, "groups of another number of columns")
    for categories, group, place in zip(encoder.categories_, groups, places, strict=True):
        require((group is None) == (place is None), kind, "half a group")
        if group is not None:
            is_sound = are_places(group, len(categories)) and len(group) > 0 and are_places(place, len(categories) - len(group) + 1)
            require(is_sound and len(place) == len(categories), kind, "a group of unknown categories")


def check_one_hot(encoder: OneHotEncoder) -> None:
    check_categories(encoder)
    dropped = encoder._drop_idx_after_grouping
    n_columns = encoder.n_features_in_
    dropped = [None] * n_columns if dropped is None else dropped
    groups = encoder._infrequent_indices if encoder._infrequent_enabled else [None] * n_columns
    require(len(dropped) == n_columns, "OneHotEncoder", "dropped categories of another number of columns")
    n_out = []
    for categories, group, drop in zip(encoder.categories_, groups, dropped, strict=True):
        n_grouped = len(categories) - (0 if group is None else len(group) - 1)
        require(drop is None or (type(drop) is int and 0 <= drop < n_grouped), "OneHotEncoder", "an unknown category to drop")
        n_out.append(n_grouped - (drop is not None))
    require(encoder._n_features_outs == n_out, "OneHotEncoder", "columns that do not match its categories")


def check_selector(selector: SelectKBest) -> None:
    require(selector.scores_.ndim == 1, "SelectKBest", "scores that are no list")


def check_nystroem(transformer: Nystroem) -> None:
    n_out = transformer.components_.shape[0]
    is_sound = transformer._n_features_out == n_out and transformer.normalization_.shape == (n_out, n_out)
    require(is_sound, "Nystroem", "rows that do not match its columns")


def check_columns(transformer: ColumnTransformer) -> None:
    # Every column belongs to a part or to the remainder. The count must be checked, since names are made for so many columns.
    indices = {index for listed in transformer._transformer_to_input_indices.values() for index in listed}
    require(
        indices == set(range(len(indices))) and transformer.n_features_in_ == len(indices), "ColumnTransformer", "other columns"
    )
    names = [name for name, _, _ in transformer.transformers_]
    is_sound = all(isinstance(name, str) for name in names) and set(names) <= transformer._transformer_to_input_indices.keys()
    require(is_sound and len(set(names)) == len(names), "ColumnTransformer", "wrong names")
    for _, part, _ in transformer.transformers_:
        is_known = part in ("drop", "passthrough") if isinstance(part, str) else hasattr(part, "transform")
        require(is_known, "ColumnTransformer", "a part that does not transform")


def check_union(union: FeatureUnion) -> None:
    union._validate_transformers()


@dataclass(frozen=True)
class Known:
    """A class of the list."""

    cls: type
    fitted: tuple[str, ...] = ()  # attributes without which it cannot predict
    by_column: tuple[str, ...] = ()  # those whose last axis is the columns of X
    optional: tuple[str, ...] = ()
    check: Callable[[Any], None] = check_nothing

    @property
    def attributes(self) -> tuple[str, ...]:
        return (*self.fitted, *self.by_column, *self.optional, *COMMON)


GROUPS = ("_infrequent_indices", "_default_to_infrequent_mappings")
VARIANCES = ("explained_variance_", "explained_variance_ratio_", "singular_values_")
KNOWN = {
    known.cls.__name__: known
    for known in (
        Known(StandardScaler, ("n_samples_seen_",), ("mean_", "var_", "scale_")),
        Known(MinMaxScaler, ("n_samples_seen_",), ("min_", "scale_", "data_min_", "data_max_", "data_range_")),
        Known(MaxAbsScaler, ("n_samples_seen_",), ("max_abs_", "scale_")),
        Known(RobustScaler, (), ("center_", "scale_")),
        Known(Normalizer),
        Known(QuantileTransformer, ("n_quantiles_", "references_"), ("quantiles_",)),
        Known(PowerTransformer, (), ("lambdas_",), ("_scaler",), check_power),
        Known(FunctionTransformer),
        Known(SimpleImputer, ("indicator_", "_fit_dtype"), ("statistics_",), ("_fill_dtype",), check_imputer),
        Known(MissingIndicator, ("features_", "_n_features", "_precomputed")),
        Known(
            OneHotEncoder,
            ("categories_", "drop_idx_", "_drop_idx_after_grouping", "_infrequent_enabled", "_n_features_outs"),
            optional=GROUPS,
            check=check_one_hot,
        ),
        Known(OrdinalEncoder, ("categories_", "_infrequent_enabled", "_missing_indices"), optional=GROUPS, check=check_categories),
        Known(CountVectorizer, ("vocabulary_", "fixed_vocabulary_"), check=check_vocabulary),
        Known(TfidfVectorizer, ("vocabulary_", "fixed_vocabulary_", "_tfidf"), check=check_vocabulary),
        Known(HashingVectorizer, check=check_text),
        Known(TfidfTransformer, optional=("idf_",), check=check_frequencies),
        Known(TruncatedSVD, VARIANCES, ("components_",)),
        Known(
            PCA,
            (*VARIANCES, "n_components_", "n_samples_", "noise_variance_", "_fit_svd_solver"),
            ("components_", "mean_"),
        ),
        Known(SelectKBest, ("pvalues_",), ("scores_",), check=check_selector),
        Known(Nystroem, ("normalization_", "component_indices_", "_n_features_out"), ("components_",), check=check_nystroem),
        Known(
            ColumnTransformer,
            ("transformers_", "_columns", "_transformer_to_input_indices", "output_indices_", "sparse_output_"),
            check=check_columns,
        ),
        Known(FeatureUnion, check=check_union),
    )
}


def write_dtype(writer: ValueWriter, name: str, value: Any) -> Any:
    found = np.dtype(value).name
    if found not in TYPES:
        raise ValueError(f"{name} must be a type of numbers to be stored in a model file. Got {value!r}.")
    return found


def read_dtype(reader: ValueReader, stored: Any) -> Any:
    if stored not in TYPES:
        raise ValueError(f"unknown type {stored!r}")
    return np.dtype(stored)


def write_score(writer: ValueWriter, name: str, value: Any) -> Any:
    function = getattr(value, "__name__", "")
    if SCORES.get(function) is not value:
        raise ValueError(
            f"{name} must be one of {', '.join(SCORES)} to be stored in a model file, which holds no code. Got {value!r}."
        )
    return function


def write_vocabulary(writer: ValueWriter, name: str, value: dict[Any, Any]) -> Any:
    """The terms in the order of their columns, which they are then sure to have."""
    terms = sorted(value, key=value.__getitem__)
    if not all(isinstance(term, str) for term in terms):
        raise ValueError(
            f"{name} must hold texts to be stored in a model file. Got {next(t for t in terms if not isinstance(t, str))!r}."
        )
    return writer.strings(terms)


def read_vocabulary(reader: ValueReader, stored: Any) -> dict[str, int]:
    terms = reader.strings(stored["strings"])
    found = {term: column for column, term in enumerate(terms)}
    if len(found) != len(terms):
        raise ValueError("a term has two columns")
    return found


def write_parts(writer: ValueWriter, name: str, value: list[tuple[Any, Any, Any]]) -> Any:
    """Parts of a ColumnTransformer. Columns may be of any kind of list, such as that of a data frame."""
    return writer.value(name, [(part, model, plain_columns(columns)) for part, model, columns in value])


def plain_columns(columns: Any) -> Any:
    if isinstance(columns, UserList):  # as scikit-learn before 1.9 kept the rest
        return list(columns.data)
    return np.asarray(columns) if hasattr(columns, "__array__") else columns


Write = Callable[[ValueWriter, str, Any], Any]
Read = Callable[[ValueReader, Any], Any]
# Parameters and attributes that are no plain values, by their names, which mean the same in every class.
SPECIAL: dict[str, tuple[Write, Read]] = {
    "dtype": (write_dtype, lambda reader, stored: read_dtype(reader, stored).type),
    "_fit_dtype": (write_dtype, read_dtype),
    "_fill_dtype": (write_dtype, read_dtype),
    "score_func": (write_score, lambda reader, stored: SCORES[stored]),
    "vocabulary_": (write_vocabulary, read_vocabulary),
    "transformers_": (write_parts, ValueReader.value),
    "_columns": (lambda writer, name, value: len(value), lambda reader, stored: stored),
}


def write_named(writer: ValueWriter, name: str, value: Any) -> Any:
    return SPECIAL[name][0](writer, name, value) if name in SPECIAL else writer.value(name, value)


def read_named(reader: ValueReader, name: str, stored: Any) -> Any:
    return SPECIAL[name][1](reader, stored) if name in SPECIAL else reader.value(stored)


def is_default(cls: type, name: str, value: Any) -> bool:
    default = inspect.signature(cls).parameters[name].default
    return value is default or (type(value) is type(default) and isinstance(value, str | float | int | tuple) and value == default)


def params_of(model: Any) -> dict[str, Any]:
    params: dict[str, Any] = model.get_params(deep=False)
    if isinstance(model, ColumnTransformer):
        del params["transformers"]  # as fitted, they are among the attributes
        if not isinstance(params["remainder"], str):
            params["remainder"] = model.named_transformers_.get("remainder", "drop")
    return params


def write_known(writer: ValueWriter, model: Any) -> dict[str, Any]:
    cls = type(model)
    known = KNOWN[cls.__name__]
    if cls is not HashingVectorizer:  # has nothing to fit, which scikit-learn has no tag for before 1.7
        check_is_fitted(model)
    if isinstance(model, CountVectorizer | HashingVectorizer):
        check_text(model)
    params = params_of(model)
    return {
        "kind": cls.__name__,
        "params": {name: write_named(writer, name, value) for name, value in params.items()},
        # Another version of scikit-learn need not have these.
        "defaults": [name for name, value in params.items() if is_default(cls, name, value)],
        "fitted": {name: write_named(writer, name, vars(model)[name]) for name in known.attributes if name in vars(model)},
    }


def read_known(reader: ValueReader, node: dict[str, Any]) -> Any:
    kind, stored = node["kind"], node["fitted"]
    known = KNOWN[kind]
    has = inspect.signature(known.cls).parameters
    lacks = [name for name in node["params"] if name not in has and name not in node["defaults"]]
    lacks += [name for name in (*known.fitted, *known.by_column) if name not in stored]
    if lacks:
        raise ValueError(f"{lacks[0]} of {kind} is not known here")
    params = {name: read_named(reader, name, value) for name, value in node["params"].items() if name in has}
    fitted = {name: read_named(reader, name, stored[name]) for name in known.attributes if name in stored}
    if known.cls is ColumnTransformer:
        complete_columns(params, fitted)
    model = known.cls(**params)
    if hasattr(model, "_parameter_constraints"):
        model._validate_params()
    for name, value in fitted.items():
        setattr(model, name, value)
    n_columns = fitted.get("n_features_in_", 0)
    require(type(n_columns) is int and 0 <= n_columns <= MAX_COLUMNS, kind, "no count of columns")
    for name in known.by_column:
        value = fitted[name]
        is_sound = value is None or (isinstance(value, np.ndarray) and 1 <= value.ndim <= 2) or hasattr(value, "indptr")
        require(
            is_sound and (value is None or value.shape[-1] == model.n_features_in_), kind, f"{name} of another number of columns"
        )
    known.check(model)
    return model


def complete_columns(params: dict[str, Any], fitted: dict[str, Any]) -> None:
    """Restore what a ColumnTransformer has twice. Fitted parts also serve as the given ones: a new fit clones them."""
    parts, n_named = fitted["transformers_"], fitted["_columns"]
    params["transformers"] = parts[:n_named]
    fitted["_columns"] = [columns for _, _, columns in parts[:n_named]]
    rest = [(name, params["remainder"], columns) for name, _, columns in parts[n_named:]]
    fitted["_remainder"] = rest[0] if rest else ("remainder", params["remainder"], [])
