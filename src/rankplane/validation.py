"""Checks of what users pass in. Every message names the parameter, the rule and the value, in one sentence."""

from collections.abc import Callable, Mapping, Sequence, Sized
from numbers import Integral, Real
from types import MethodType
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

MAX_ROWS = 2**31 - 1
MAX_THREADS = 256  # more would only cost memory
MAX_SEED = 2**32 - 1  # as in numpy and scikit-learn


class OnlyIf:
    """A method that an object has only while ``check`` does not raise an AttributeError.

    Like scikit-learn's ``available_if``, but the error of ``check``, which says what to do, reaches the caller.
    """

    def __init__(self, check: Callable[[Any], None], method: Callable[..., Any]) -> None:
        self.check = check
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self.method
        self.check(instance)
        return MethodType(self.method, instance)


def only_if(check: Callable[[Any], None]) -> Callable[[Callable[..., Any]], Any]:
    return lambda method: OnlyIf(check, method)


def check_positive(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be a positive number. Got {value!r}.")
    return float(value)


def check_non_negative(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a non-negative number. Got {value!r}.")
    return float(value)


def check_strength(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0:
        raise ValueError(f"{name} must be a non-negative number or infinity. Got {value!r}.")
    return float(value)


def check_number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"{name} must be a finite number. Got {value!r}.")
    return float(value)


def check_gamma(name: str, value: Any) -> Any:
    if isinstance(value, str) and value in ("scale", "auto"):
        return value
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be 'scale', 'auto' or a positive number. Got {value!r}.")
    return value


def check_count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{name} must be a positive integer. Got {value!r}.")
    return int(value)


def check_non_negative_count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 0:
        raise ValueError(f"{name} must be a non-negative integer. Got {value!r}.")
    return int(value)


def check_bool(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False. Got {value!r}.")
    return bool(value)


def check_choice(name: str, value: Any, choices: Sequence[str | None]) -> Any:
    if not isinstance(value, str | None) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}. Got {value!r}.")
    return value


def check_n_jobs(n_jobs: Any) -> int:
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or a non-zero integer. Got {n_jobs!r}.")
    n_threads = int(effective_n_jobs(n_jobs))
    if n_jobs is not None and int(n_jobs) > MAX_THREADS:
        raise ValueError(f"n_jobs must be at most {MAX_THREADS}. Got {n_jobs}.")
    return min(n_threads, MAX_THREADS)


def seed_of(random_state: Any) -> int:
    """A seed for the core. None is a fixed seed, so that a fit is a function of the data alone."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral) and not isinstance(random_state, bool) and 0 <= int(random_state) <= MAX_SEED:
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    raise ValueError(
        f"random_state must be None, an integer from 0 to {MAX_SEED}, a RandomState or a Generator. Got {random_state!r}."
    )


def check_column_weight(column_weight: Any, n_columns: int, dtype: Any) -> Any:
    """None, 'ranks', or a positive factor per column."""
    if column_weight is None or (isinstance(column_weight, str) and column_weight == "ranks"):
        return column_weight
    rule = f"column_weight must be None, 'ranks' or {n_columns} positive numbers, one per column."
    if isinstance(column_weight, str):
        raise ValueError(f"{rule} Got {column_weight!r}.")
    weights = np.asarray(column_weight, dtype=dtype)
    if weights.shape != (n_columns,):
        raise ValueError(f"{rule} Got an array of shape {weights.shape}.")
    bad = np.flatnonzero(~((weights > 0) & np.isfinite(weights)))
    if len(bad) > 0:
        raise ValueError(f"{rule} Got {weights[bad[0]]} for column {bad[0]}.")
    return weights


def as_rows(X: Any) -> Any:
    """X as the core reads it: csr, its entries in any order, or a C-ordered array. Copied only if necessary."""
    if X.shape[0] > MAX_ROWS:
        raise ValueError(f"X must have at most {MAX_ROWS} samples. Got {X.shape[0]}.")
    if not sp.issparse(X):
        return np.ascontiguousarray(X)
    # Column indices are checked by the core, which reads them all anyway.
    n_entries = min(len(X.indices), len(X.data))
    if len(X.indptr) != X.shape[0] + 1 or X.indptr[0] != 0 or X.indptr[-1] > n_entries or np.any(np.diff(X.indptr) < 0):
        raise ValueError(f"X.indptr must rise from 0 to at most {n_entries}, the number of its stored values.")
    return X


def merged(X: Any) -> Any:
    """X with the columns of each row sorted and in one piece. Copied only if necessary."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def as_labels(y: Any, n_rows: int) -> Any:
    """y as a column of labels, one per row. A categorical is kept, since it has an order."""
    if y is None:
        raise ValueError("y must be given: this estimator requires y to be passed, but the target y is None.")
    labels = y if is_categorical(y) else column_or_1d(np.asarray(y), warn=True)
    if len(labels) != n_rows:
        raise ValueError(
            f"y must have one label per sample of X: inconsistent numbers of samples. Got {len(labels)} labels, {n_rows} samples."
        )
    return labels


def is_categorical(y: Any) -> bool:
    """Whether y has a list of categories. A polars Categorical has none: its order is that of appearance, not of ranks."""
    return isinstance(getattr(getattr(y, "dtype", None), "categories", None), Sized)


def check_known(labels: Any) -> None:
    """Refuse missing values, which a categorical may have."""
    gaps = np.flatnonzero([label is None or label != label for label in np.asarray(labels, dtype=object)])
    if len(gaps):
        raise ValueError(f"y must not contain missing labels. Got {len(gaps)}, the first in row {gaps[0]}.")


def rank_order(labels: Any, ranks: Any) -> NDArray[Any]:
    """The distinct labels in rank order: as given, in the order of a categorical, or ascending if they are numbers."""
    if is_categorical(labels):
        check_known(labels)
    if ranks is not None:
        order = np.asarray(list(ranks))
        if isinstance(ranks, str) or order.ndim != 1 or len(order) < 2 or len(set(order.tolist())) != len(order):
            raise ValueError(f"ranks must name at least two different labels, lowest first. Got {ranks!r}.")
        return order
    if is_categorical(labels):
        categories = labels.dtype.categories
        # polars Enum and pandas Categorical both have `categories`; only pandas has `ordered`.
        if not getattr(labels.dtype, "ordered", True):
            raise ValueError("y must be an ordered categorical, since its order gives the ranks. Got an unordered one.")
        return np.asarray(categories)
    if labels.dtype.kind in "OUST":
        labels = as_numbers(labels)
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise ValueError(f"y must not contain missing or infinite labels. Got {labels[row]} (NaN or inf) in row {row}.")
    if labels.dtype.kind not in "biuf":
        raise ValueError(f"Unknown label type: y must contain numbers, or ranks must be given. Got {labels.dtype}.")
    distinct, counts = np.unique(labels, return_counts=True)
    if labels.dtype.kind == "f" and np.any(distinct % 1) and np.sum(counts == 1) > len(distinct) / 2:
        raise ValueError(
            f"Unknown label type: y must contain ranks, but most of its {len(distinct)} distinct values occur once. "
            "Pass ranks=[...] if these are ranks."
        )
    return distinct


def as_numbers(labels: NDArray[Any]) -> NDArray[Any]:
    """An array of objects as numbers; text is refused, since its order is unknown."""
    try:
        if any(isinstance(label, str) for label in labels):
            raise TypeError
        return np.asarray(labels.tolist(), dtype=np.float64 if any(isinstance(v, float) for v in labels) else np.int64)
    except (TypeError, ValueError, OverflowError):
        example = next((label for label in labels if isinstance(label, str)), labels[0])
        raise ValueError(
            f"y must contain numbers, or ranks must give the order of its labels, lowest first: ranks=['low', ..., 'high']. "
            f"Got {str(example)!r}."
        ) from None


def rank_numbers(labels: Any, order: NDArray[Any]) -> NDArray[np.int32]:
    """Each label's position in the order."""
    labels = np.asarray(labels)
    position = {label: i for i, label in enumerate(order.tolist())}
    distinct, inverse = np.unique(labels.astype(object) if labels.dtype.kind == "O" else labels, return_inverse=True)
    numbers = np.empty(len(distinct), dtype=np.int32)
    for i, label in enumerate(distinct.tolist()):
        if label not in position:
            raise ValueError(f"y must contain only the labels in ranks, {order.tolist()!r}. Got {label!r}.")
        numbers[i] = position[label]
    return numbers[inverse.ravel()]


def rank_weights(class_weight: Any, order: Any, counts: NDArray[Any]) -> NDArray[np.float64] | None:
    """The weight of each rank, from None, "balanced", or a mapping from labels; ``counts`` is how many rows each has, or
    its share of them.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f'class_weight must be None, "balanced" or a dict by label. Got {class_weight!r}.')
        n_present = int(np.sum(counts > 0))
        return np.asarray(counts.sum() / (n_present * np.where(counts > 0, counts, 1)), dtype=np.float64)
    if not isinstance(class_weight, Mapping):
        raise ValueError(f'class_weight must be None, "balanced" or a dict by label. Got {class_weight!r}.')
    position = {label: i for i, label in enumerate(order.tolist())}
    weights = np.ones(len(order))
    for label, weight in class_weight.items():
        plain = label.item() if isinstance(label, np.generic) else label
        if plain not in position:
            raise ValueError(f"class_weight must name labels of y, {order.tolist()!r}. Got {label!r}.")
        weights[position[plain]] = check_positive(f"class_weight[{label!r}]", weight)
    return weights


def check_sample_weight(sample_weight: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    weights = check_weights(sample_weight, n_rows)
    if not np.any(weights):
        raise ValueError("sample_weight must be positive for at least one sample. Got only zeros.")
    return weights


def check_weights(sample_weight: ArrayLike, n_rows: int) -> NDArray[np.float64]:
    """Weights of all rows, or of some of them, which may all be zero."""
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, sample_weight)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one weight per sample, shape ({n_rows},). Got shape {weights.shape}.")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise ValueError(f"sample_weight must contain only finite, non-negative numbers. Got {weights[bad[0]]} in row {bad[0]}.")
    return weights
