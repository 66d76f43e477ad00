"""Descriptions that models share, each written once, and the decorators that put them and the defaults into docstrings.

A docstring without a section "Parameters" gets one from the entries below; defaults are those of the signature, so they are never
typed: ``name : type`` becomes ``name : type, default=value``.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar, cast, dataclass_transform

Model = TypeVar("Model", bound=type)
Documented = TypeVar("Documented", bound=Callable[..., Any])
WIDTH = 100


class Entry(NamedTuple):
    """The type of a parameter or attribute, and what it means."""

    type: str
    description: str


# One entry per parameter, for all models that have it. The default is that of the model's signature.
PARAMETERS = {
    "C": Entry(
        "float",
        "Inverse of the regularisation strength. Must be positive. Larger values fit the training samples more closely.",
    ),
    "loss": Entry(
        "{'hinge', 'squared_hinge', 'logistic'}",
        "How violations of the margin are penalised: ``'hinge'`` linearly, ``'squared_hinge'`` by their square, ``'logistic'`` by "
        "the logistic loss, which is never zero.",
    ),
    "ranks": Entry(
        "array-like of shape (n_ranks,)",
        "The labels in order, lowest first. Required for text labels, unless they are an ordered categorical. Numbers are sorted "
        "if None. May name ranks that do not occur in the training data. Number the labels instead where scikit-learn sorts them: "
        "for scorers of probabilities such as ``'neg_log_loss'``, for ``StackingClassifier``, and for ``cross_val_predict`` with "
        "``predict_proba`` or ``decision_function``.",
    ),
    "class_weight": Entry(
        "dict or 'balanced'",
        "Weight of each label, which multiplies ``C`` for its samples. ``'balanced'`` uses weights inversely proportional to the "
        "label frequencies. If None, all labels have weight one. With a ``decision`` by cost, the weights also multiply the costs "
        "(of ``'mae'``, ``'mse'``, ``'accuracy'`` and matrices), since probabilities are those of the data whatever the weights: "
        "``class_weight='balanced', decision='mae'`` minimises the macro-averaged absolute error.",
    ),
    "tol": Entry(
        "float",
        "Stopping tolerance. If None, a plane has converged when its duality gap is at most 0.2 % of its objective, and small data "
        "(up to 50,000 nonzero values) is solved to the optimum. If a number, a plane has converged when the sum of its violations "
        "in a sweep is at most ``tol`` times that of the first sweep, which costs less for large values such as the 0.1 of the "
        "paper; with a kernel, when its duality gap is at most ``tol**2`` times its objective.",
    ),
    "max_iter": Entry(
        "int",
        "Maximum number of sweeps over the training data. If None, 1,000, or with ``tol=None`` as many as take about a second, "
        "if those are more. With a kernel, one sweep is ``n_samples`` steps.",
    ),
    "shrinking": Entry(
        "bool", "Whether to skip samples that are unlikely to change. They are checked again before the solver stops."
    ),
    "probability": Entry(
        "bool",
        "Whether to enable ``predict_proba`` and ``predict_set``. Planes are then also trained on cross-validation folds, and "
        "probabilities are calibrated on the held-out samples. Of many samples, only as many are held out as that takes.",
    ),
    "decision": Entry(
        "{'ranker', 'mae', 'mse', 'accuracy', 'macro_mae', 'qwk'} or array-like of shape (n_ranks, n_ranks)",
        "How ``predict`` chooses a rank. ``'ranker'`` is the model's own rule. The others need ``probability=True`` and choose the "
        "rank with the lowest expected cost: ``'mae'`` (the median), ``'mse'`` (the rank nearest to the mean), ``'accuracy'`` (the "
        "most likely rank), ``'macro_mae'`` (the absolute error if rare ranks count as much as frequent ones), ``'qwk'`` (the "
        "quadratic weighted kappa), or a matrix ``cost[true, predicted]``. It may be changed after ``fit``, by ``set_params``.",
    ),
    "n_jobs": Entry(
        "int",
        "Number of threads. None means 1, -1 all processors. Results are reproducible for a given number of threads, but may "
        "differ slightly between numbers.",
    ),
    "random_state": Entry(
        "int, RandomState or Generator", "Seed for the order in which samples are visited. None is a fixed seed."
    ),
    "verbose": Entry("int", "Set to 1 to show a progress bar."),
    "column_weight": Entry(
        "'ranks' or array-like of shape (n_features,)",
        "Feature weights. Features with larger weights are regularised less. ``'ranks'`` learns them from how well each feature "
        "separates the ranks, which improves predictions from texts. An array multiplies the columns of X; ``coef_`` applies to "
        "the original X.",
    ),
    "kernel": Entry(
        "{'linear', 'rbf', 'poly', 'sigmoid', 'precomputed'} or callable",
        "Kernel function. ``'linear'`` learns feature weights, from any number of samples; the others keep support vectors, as "
        ":class:`sklearn.svm.SVC` does. With ``'precomputed'``, X is the kernel matrix. A callable takes two sets of samples and "
        "returns their kernel matrix.",
    ),
    "gamma": Entry(
        "{'scale', 'auto'} or float",
        "Coefficient of the kernels ``'rbf'``, ``'poly'`` and ``'sigmoid'``. ``'scale'`` is ``1 / (n_features * X.var())``, "
        "``'auto'`` is ``1 / n_features``.",
    ),
    "degree": Entry("float", "Degree of the kernel ``'poly'``."),
    "coef0": Entry("float", "Independent term of the kernels ``'poly'`` and ``'sigmoid'``."),
    "cache_size": Entry("float", "Size of the kernel cache, in megabytes."),
    "C1": Entry("float", "Like ``C``, for the samples of a plane's own rank. If None, ``C`` is used."),
    "C2": Entry("float", "Like ``C``, for the samples of all other ranks. If None, ``C`` is used."),
    "coupling": Entry(
        "float",
        "How strongly planes of neighbouring ranks, or boundaries, are pulled together. 0 leaves them independent of each other; "
        "with infinity they share one direction. Needs at most 32 planes.",
    ),
    "epsilon": Entry("float", "Half-width of the tube around the target value in which no loss is charged."),
    "ranker": Entry(
        "{'ordered', 'nearest'}",
        "How scores become ranks. ``'ordered'`` counts the boundaries with ``f_k + f_{k+1} > 0``; ``'nearest'`` chooses the plane "
        "with the smallest ``|f_k|``.",
    ),
    "fit_intercept": Entry(
        "bool", "Whether planes have an intercept. It is regularised, like the weight of a feature that is always one."
    ),
    "form": Entry(
        "{'planes', 'thresholds'}",
        "``'planes'`` fits a plane per rank, ``'thresholds'`` one direction with a threshold per boundary.",
    ),
    "solver": Entry(
        "{'dcd2', 'dcd1'}",
        "Dual coordinate descent with one dual variable per sample and plane (``'dcd2'``), or with two for the samples of a "
        "plane's own rank (``'dcd1'``, Algorithm 1 of the paper). Both have the same optimum; ``'dcd1'`` is kept for comparison.",
    ),
}

# In the order in which they are listed. Every model may have each of them.
ATTRIBUTES = {
    "classes_": Entry("ndarray of shape (n_ranks,)", "The labels, in rank order."),
    "coef_": Entry(
        "ndarray of shape (n_planes, n_features)",
        "Feature weights of each plane; a single row for models with one direction. Only with ``kernel='linear'``.",
    ),
    "intercept_": Entry("ndarray of shape (n_intercepts,)", "Intercept of each plane; for threshold models, of each boundary."),
    "support_": Entry(
        "ndarray of shape (n_support,)", "Indices of the support vectors of any plane. Only with a kernel other than ``'linear'``."
    ),
    "support_vectors_": Entry(
        "ndarray or csr_matrix of shape (n_support, n_features)",
        "The support vectors. Empty with ``kernel='precomputed'``. Only with a kernel other than ``'linear'``.",
    ),
    "dual_coef_": Entry(
        "ndarray of shape (n_planes, n_support)",
        "Coefficients of the support vectors. Only with a kernel other than ``'linear'``.",
    ),
    "gamma_": Entry("float", "The value of ``gamma`` that was used. Only with a kernel that has one."),
    "n_iter_": Entry("ndarray of shape (n_planes,)", "Number of sweeps made."),
    "dual_objective_": Entry("ndarray of shape (n_planes,)", "Value of the dual objective, which is minimised."),
    "duality_gap_": Entry(
        "ndarray of shape (n_planes,)", "Upper bound on the difference between the primal objective and its optimum."
    ),
    "n_support_": Entry("ndarray of shape (n_planes,)", "Number of support vectors of each plane."),
    "calibrator_": Entry("object", "Maps scores to probabilities. Only with ``probability=True``."),
    "conformity_": Entry(
        "ndarray of shape (n_samples,)",
        "Conformity scores of the held-out samples, which ``predict_set`` is based on. Only with ``probability=True``.",
    ),
    "conformity_before_": Entry(
        "ndarray of shape (n_samples,)", "The same without the probability of the true rank itself. Only with ``probability=True``."
    ),
    "conformity_ranks_": Entry(
        "ndarray of shape (n_samples,)", "Rank numbers of the held-out samples, from 0. Only with ``probability=True``."
    ),
    "class_prior_": Entry(
        "ndarray of shape (n_ranks,)", "Share of each rank in the held-out samples. Only with ``probability=True``."
    ),
    "expected_qwk_": Entry(
        "float", "Quadratic weighted kappa of ``decision='qwk'`` on the held-out samples. Only with ``probability=True``."
    ),
    "n_features_in_": Entry("int", "Number of features seen during ``fit``."),
    "feature_names_in_": Entry(
        "ndarray of shape (n_features,)", "Names of the features seen during ``fit``. Only if X had string column names."
    ),
}

OF_KERNELS = ("support_", "support_vectors_", "dual_coef_", "gamma_")

# Of the methods that models share.
METHOD_PARAMETERS = {
    "X": Entry(
        "{array-like, sparse matrix} of shape (n_samples, n_features)",
        "Samples. float32 data is processed in float32, all other types in float64. With ``kernel='precomputed'``, the kernel "
        "matrix between these samples and the training samples.",
    ),
    "y": Entry(
        "array-like of shape (n_samples,)",
        "Labels: numbers, an ordered categorical, or any labels that the parameter ``ranks`` puts in order.",
    ),
    "sample_weight": Entry(
        "array-like of shape (n_samples,)",
        "Sample weights, which multiply ``C`` and also count in the calibration of probabilities. Samples with weight 0 are "
        "ignored. If None, all samples have weight one.",
    ),
    "groups": Entry("array-like of shape (n_samples,)", "Group labels. All samples of a group are in the same fold."),
    "coverage": Entry("float", "Probability with which a set should contain the true rank, between 0 and 1."),
    "per_rank": Entry(
        "bool", "Whether each rank is covered with this probability, not only all samples together. Sets are larger then."
    ),
    "score": Entry(
        "{'before', 'after'}",
        "When a rank is added: while the set has little probability ``'before'`` the rank, or ``'after'`` it. Sets by "
        "``'before'`` are smaller. If None, ``'before'``, or ``'after'`` for models saved by older versions.",
    ),
    "feature_names": Entry(
        "array-like of shape (n_features,)",
        "Names of the features. If None, ``feature_names_in_`` or else the column numbers are used.",
    ),
    "top": Entry("int", "Number of features to show in each direction, for each boundary."),
    "n": Entry("int", "Number of features to list in each direction, for each boundary."),
}

SECTION = re.compile(r"^(?:Returns|Attributes|See Also|Notes|References|Examples)\n-+$", re.MULTILINE)
PARAMETER_SECTION = re.compile(r"(?<=^Parameters\n----------\n).*?(?=\n\n\w|\Z)", re.MULTILINE | re.DOTALL)


@dataclass_transform(kw_only_default=True)
def model(cls: Model) -> Model:
    """Make a class with annotated defaults an estimator: an ``__init__`` that stores them, and a docstring that lists them."""
    for name in getattr(cls, "without", ()):
        cls.__annotations__ = {**inspect.get_annotations(cls), name: ClassVar[Any]}  # keeps the value of the base class
    cls = cast(Model, dataclass(eq=False, repr=False, kw_only=True)(cls))
    left_out = OF_KERNELS if "kernel" in getattr(cls, "without", ()) else ()
    attributes = {name: entry for name, entry in ATTRIBUTES.items() if name not in left_out}
    cls.__doc__ = with_section(inspect.cleandoc(cls.__doc__ or ""), "Attributes", attributes)
    return documented(PARAMETERS | METHOD_PARAMETERS)(cls)


def documented(
    entries: Mapping[str, Entry] = MappingProxyType({}), *, methods_like: type | None = None
) -> Callable[[Documented], Documented]:
    """Complete the docstring of a function, or of a class and its public methods, from entries and the signature.

    Methods without a docstring have that of ``methods_like``.
    """

    def complete(documented: Documented) -> Documented:
        if isinstance(documented, type):
            for name, holder in own_methods(documented):
                # A method that is not always there is wrapped by an object that shows its docstring.
                function = getattr(holder, "method", holder)
                if function.__doc__ is None and methods_like is not None:
                    function.__doc__ = getattr(methods_like, name).__doc__
                holder.__doc__ = function.__doc__ = completed(function, entries)
        documented.__doc__ = completed(documented, entries)
        return documented

    return complete


def own_methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods that the class, or a base of this package, defines."""
    for base in cls.__mro__:
        if base.__module__.split(".")[0] == __name__.split(".")[0]:
            for name, value in vars(base).items():
                if not name.startswith("_") and inspect.isfunction(getattr(value, "method", value)):
                    yield name, value


def completed(function: Callable[..., Any], entries: Mapping[str, Entry]) -> str:
    """The docstring, with its parameters and their defaults."""
    text = inspect.cleandoc(function.__doc__ or "")
    parameters = {name: p.default for name, p in inspect.signature(function).parameters.items() if name != "self"}
    if parameters and not PARAMETER_SECTION.search(text):
        text = with_section(text, "Parameters", {name: entries[name] for name in parameters if name in entries})

    def add_default(line: re.Match[str]) -> str:
        default = parameters.get(line[1], inspect.Parameter.empty)
        is_complete = default is inspect.Parameter.empty or ", default=" in line[0]
        return line[0] if is_complete else f"{line[0]}, default={default!r}"

    def add_defaults(lines: re.Match[str]) -> str:
        return re.sub(r"^(\w+) : .*$", add_default, lines[0], flags=re.MULTILINE)

    return PARAMETER_SECTION.sub(add_defaults, text, count=1)


def with_section(text: str, title: str, entries: Mapping[str, Entry]) -> str:
    """The docstring with a section in front of those that come after it."""
    if not entries:
        return text
    lines = [title, "-" * len(title)]
    for name, entry in entries.items():
        lines += [f"{name} : {entry.type}", *wrapped(entry.description)]
    following = SECTION.search(text)
    at = len(text) if following is None else following.start()
    before = text[:at].rstrip()
    return "\n".join([before, "", *lines, "", text[at:]]).rstrip()


def wrapped(description: str) -> list[str]:
    # Literals stay on one line: their blanks are hidden from the wrapping.
    hidden = re.sub(r"``.*?``", lambda literal: literal[0].replace(" ", "\0"), description)
    indent = "    "
    lines = textwrap.wrap(hidden, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]
