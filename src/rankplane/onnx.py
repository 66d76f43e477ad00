"""A fitted model as an ONNX graph: the same planes, calibrator and decision, computed by any runtime.

The graph computes what ``predict`` computes, in the same precision, operator by operator. What ONNX has no operators for, such as
the words of a text, is refused by name. Needs the extra ``onnx``.
"""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from rankplane.base import OrdinalModel
from rankplane.docstrings import Entry, documented
from rankplane.estimators import (
    KDLOR,
    NPSVOR,
    SVC,
    SVMOP,
    SVOR,
    SVOREX,
    SVR,
    AdversarialOrdinal,
    Committee,
    CrammerSinger,
    RedSVM,
)
from rankplane.files import replacing
from rankplane.modelfile.codecs import SEARCHES, best_of
from rankplane.prediction import decisions
from rankplane.prediction.calibration import MAX_SCORE, Curved, Multinomial, averaged
from rankplane.prediction.fitted import FittedKernel, fitted_of
from rankplane.solver.kernels import GAMMA_KERNELS, square_norms
from rankplane.tabular import ColumnEncoder
from rankplane.versions import this_version

__all__ = ["convert", "save_model"]

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8  # as old as the operators allow, so that old runtimes can read the graph
MAX_BYTES = 2**31 - 1  # of a file in the format of protobuf
MODEL = Entry(
    "object",
    "A fitted model of this package, a search, or a Pipeline of a model after a ColumnEncoder, StandardScaler, MinMaxScaler, "
    "MaxAbsScaler or RobustScaler. With a kernel, it must be 'rbf', 'poly' or 'sigmoid'.",
)


def load_library() -> Any:
    try:
        return import_module("onnx")
    except ImportError:
        raise ImportError("Export to ONNX needs onnx: pip install 'rankplane[onnx]'.") from None


class Graph:
    """Operators in the order in which they are applied. A value is the name of what an operator returns."""

    def __init__(self) -> None:
        self.onnx = load_library()
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def _name(self) -> str:
        return f"v{len(self.nodes) + len(self.constants)}"

    def input(self, name: str, dtype: Any, width: int) -> str:
        self.inputs.append(self.tensor(name, dtype, width))
        return name

    def tensor(self, name: str, dtype: Any, width: int | None) -> Any:
        shape = ["rows"] if width is None else ["rows", width]
        return self.onnx.helper.make_tensor_value_info(name, self.type_of(dtype), shape)

    def type_of(self, dtype: Any) -> int:
        kind = np.dtype(object) if np.dtype(dtype).kind in "OUT" else np.dtype(dtype)
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(kind))

    def constant(self, values: Any) -> str:
        name, values = self._name(), np.asarray(values)
        if values.dtype.kind in "OUT":
            words = [str(value).encode() for value in values.tolist()]
            self.constants.append(self.onnx.helper.make_tensor(name, self.type_of(object), values.shape, words))
        else:
            self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(values).reshape(values.shape), name))
        return name

    def node(self, kind: str, *values: str, name: str | None = None, domain: str = "", **attributes: Any) -> str:
        output = name or self._name()
        self.nodes.append(self.onnx.helper.make_node(kind, list(values), [output], domain=domain, **attributes))
        return output

    def cast(self, value: str, dtype: Any) -> str:
        return self.node("Cast", value, to=self.type_of(dtype))

    def columns(self, value: str, first: int, last: int) -> str:
        ends = [self.constant(np.array([number])) for number in (first, last, 1)]
        return self.node("Slice", value, *ends)

    def count(self, conditions: str) -> str:
        """How many conditions of each row are true."""
        return self.node("ReduceSum", self.cast(conditions, np.int64), self.constant(np.array([1])), keepdims=0)

    def model(self, outputs: list[Any], description: str) -> Any:
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, "rankplane", self.inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        model.producer_name, model.producer_version, model.doc_string = "rankplane", this_version(), description
        return model


# Steps before the model.


def shift_and_divisor(step: Any) -> tuple[Any, Any]:
    """Of a scaler: it subtracts the one and divides by the other."""
    if isinstance(step, StandardScaler):
        return (step.mean_ if step.with_mean else 0.0), (step.scale_ if step.with_std else 1.0)
    if isinstance(step, RobustScaler):
        return (step.center_ if step.with_centering else 0.0), (step.scale_ if step.with_scaling else 1.0)
    if isinstance(step, MaxAbsScaler):
        return 0.0, step.scale_
    return -step.min_ / step.scale_, 1 / step.scale_


def scaled(graph: Graph, value: str, step: Any, dtype: Any) -> str:
    shift, divisor = (graph.constant(np.asarray(part, dtype=dtype)) for part in shift_and_divisor(step))
    value = graph.node("Div", graph.node("Sub", value, shift), divisor)
    if getattr(step, "clip", False):  # of MinMaxScaler, and of MaxAbsScaler
        low, high = step.feature_range if isinstance(step, MinMaxScaler) else (-1, 1)
        value = graph.node("Clip", value, *(graph.constant(np.asarray(end, dtype=dtype)) for end in (low, high)))
    return value


def encoded(graph: Graph, step: ColumnEncoder, dtype: Any) -> str:
    """Every column is an input of its own; what stands for numbers may be missing."""
    parts, n_numeric = [], 0
    for name in step.names_:
        if name in step.categories_:
            column = graph.input(name, object, 1)
            if not (categories := step.categories_[name]):
                continue
            one_hot = graph.node("OneHotEncoder", column, domain="ai.onnx.ml", cats_strings=categories, zeros=1)
            shape = graph.constant(np.array([0, len(categories)]))  # 0 keeps the number of rows
            parts.append(graph.cast(graph.node("Reshape", one_hot, shape), np.float64))
            continue
        column = graph.input(name, np.float64, 1)
        mean, deviation = (graph.constant(moment[n_numeric]) for moment in (step.means_, step.deviations_))
        is_missing = graph.node("Or", graph.node("IsNaN", column), graph.node("IsInf", column))
        number = column
        if np.isfinite(step.spreads_[n_numeric]):
            median, spread = (graph.constant(middle[n_numeric]) for middle in (step.medians_, step.spreads_))
            distance = graph.node("Sub", column, median)
            size = graph.node("Add", graph.node("Div", graph.node("Abs", distance), spread), graph.constant(np.float64(1)))
            number = graph.node("Mul", graph.node("Sign", distance), graph.node("Log", size))
        number = graph.node("Div", graph.node("Sub", number, mean), deviation)
        parts.append(graph.node("Where", is_missing, graph.constant(np.float64(0)), number))
        n_numeric += 1
    return graph.cast(graph.node("Concat", *parts, axis=1), dtype)


SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)


def features(graph: Graph, steps: list[Any], n_features: int, dtype: Any) -> str:
    """The columns of the model, from inputs by name if columns have names."""
    kinds = ", ".join(scaler.__name__ for scaler in SCALERS)
    value: str | None = None
    for place, step in enumerate(steps):
        if type(step) is ColumnEncoder and place == 0:
            value = encoded(graph, step, dtype)
        elif type(step) in SCALERS:
            value = scaled(graph, value or graph.input("X", dtype, n_features_of(step)), step, dtype)
        else:
            name = type(step).__name__
            rule = "a ColumnEncoder must come first" if name == "ColumnEncoder" else f"only ColumnEncoder, {kinds} before the model"
            raise ValueError(f"{name} cannot be exported to ONNX: {rule} can be. Export the model alone, for the columns it makes.")
    return value or graph.input("X", dtype, n_features)


def n_features_of(step: Any) -> int:
    return int(step.n_features_in_)


# The model.


def plane_scores(graph: Graph, model: OrdinalModel, X: str) -> str:
    found = fitted_of(model)
    if not isinstance(found, FittedKernel):
        weights = np.ascontiguousarray(found.column_weights())
        products = graph.node("MatMul", X, graph.constant(weights))
        return graph.node("Add", products, graph.constant(model.intercept_), name="plane_scores")
    kernel = found.kernel
    support = found.rows.toarray() if sp.issparse(found.rows) else np.asarray(found.rows)
    X = graph.cast(X, np.float64)
    # The factor of the products is that of a matrix: runtimes fuse a product and its factor, which they take in single precision.
    factor = -2.0 if kernel.name == "rbf" else kernel.gamma
    argument = graph.node("MatMul", X, graph.constant(factor * support.T.astype(np.float64)))
    if kernel.name == "rbf":
        own = graph.node("ReduceSum", graph.node("Mul", X, X), graph.constant(np.array([1])), keepdims=1)
        argument = graph.node("Add", graph.node("Add", argument, own), graph.constant(square_norms(found.rows)))
        argument = graph.node("Max", argument, graph.constant(np.float64(0)))
        values = graph.node("Exp", graph.node("Mul", argument, graph.constant(np.float64(-kernel.gamma))))
    else:
        argument = graph.node("Add", argument, graph.constant(np.float64(kernel.coef0)))
        is_poly = kernel.name == "poly"
        values = graph.node("Pow", argument, graph.constant(np.float64(kernel.degree))) if is_poly else graph.node("Tanh", argument)
    products = graph.node("MatMul", values, graph.constant(found.duals.T))
    return graph.node("Add", products, graph.constant(model.intercept_.astype(np.float64)), name="plane_scores")


def probabilities(graph: Graph, calibrator: Multinomial, scores: str, n_planes: int, dtype: Any) -> str:
    """`Multinomial.probabilities`, or that of `Curved`."""
    n_inputs, n_ranks = len(calibrator.weights) - 1, calibrator.weights.shape[1]
    is_curved = isinstance(calibrator, Curved)
    ends = (graph.constant(np.asarray(end, dtype=dtype)) for end in (-MAX_SCORE, MAX_SCORE))
    inputs = graph.node("Clip", scores, *ends)
    if n_inputs != n_planes * (2 if is_curved else 1):  # many ranks; a mean of planes is a product with a matrix
        inputs = graph.node("MatMul", inputs, graph.constant(averaged(np.eye(n_planes, dtype=dtype), n_ranks)))
    inputs = graph.cast(inputs, np.float64)
    if is_curved:
        one = graph.constant(np.float64(1))
        root = graph.node("Sqrt", graph.node("Add", one, graph.node("Mul", inputs, inputs)))
        inputs = graph.node("Concat", inputs, graph.node("Sub", root, one), axis=1)
    odds = graph.node("MatMul", inputs, graph.constant(calibrator.weights[:-1]))
    return graph.node("Softmax", graph.node("Add", odds, graph.constant(calibrator.weights[-1])), axis=1, name="probabilities")


def is_positive(graph: Graph, value: str, dtype: Any) -> str:
    return graph.node("Greater", value, graph.constant(np.zeros((), dtype=dtype)))


def count(graph: Graph, scores: str, n_planes: int, dtype: Any) -> str:
    return graph.count(is_positive(graph, scores, dtype))


def ordered(graph: Graph, scores: str, n_planes: int, dtype: Any) -> str:
    boundaries = graph.node("Add", graph.columns(scores, 0, n_planes - 1), graph.columns(scores, 1, n_planes))
    return graph.count(is_positive(graph, boundaries, dtype))


def nearest(graph: Graph, scores: str, n_planes: int, dtype: Any) -> str:
    return graph.node("ArgMin", graph.node("Abs", scores), axis=1, keepdims=0)


def largest(graph: Graph, scores: str, n_planes: int, dtype: Any) -> str:
    return graph.node("ArgMax", scores, axis=1, keepdims=0)


RANKERS: dict[type[OrdinalModel], Callable[[Graph, str, int, Any], str]] = {
    NPSVOR: ordered,
    SVC: largest,
    SVMOP: count,
    RedSVM: count,
    SVOR: count,
    SVOREX: count,
    KDLOR: count,
    CrammerSinger: largest,
}


def rank_numbers(graph: Graph, model: OrdinalModel, scores: str, n_planes: int, dtype: Any) -> str:
    """The model's own rule, as its `_rank`."""
    n_ranks = len(model.classes_)
    if type(model) is SVR:
        ends = (graph.constant(np.asarray(end, dtype=dtype)) for end in (1, n_ranks))
        whole = graph.cast(graph.node("Clip", graph.node("Round", scores), *ends), np.int64)
        return graph.node("Reshape", graph.node("Sub", whole, graph.constant(np.int64(1))), graph.constant(np.array([-1])))
    if type(model) is Committee:
        return ordered(graph, graph.columns(scores, 0, n_ranks), n_ranks, dtype)
    if type(model) is AdversarialOrdinal:
        return (largest if model.form == "planes" else count)(graph, scores, n_planes, dtype)
    rule = nearest if getattr(model, "ranker", "ordered") == "nearest" else RANKERS[type(model)]
    return rule(graph, scores, n_planes, dtype)


def least_cost(graph: Graph, model: OrdinalModel, shares: str) -> str:
    cost = model._costs(len(model.classes_))
    return graph.node("ArgMin", graph.node("MatMul", shares, graph.constant(cost)), axis=1, keepdims=0)


def steps_of(model: Any) -> tuple[list[Any], OrdinalModel]:
    """The steps before the model, and the model, if ONNX can express it."""
    given = best_of(model) if isinstance(model, SEARCHES) else model
    steps = [step for _, step in given.steps] if isinstance(given, Pipeline) else [given]
    *before, last = [step for step in steps if step is not None and not isinstance(step, str)] or [None]
    known: tuple[type[OrdinalModel], ...] = (*RANKERS, SVR, Committee, AdversarialOrdinal)
    if type(last) not in known:
        names = ", ".join(kind.__name__ for kind in known)
        raise ValueError(f"model must be one of {names}, or a Pipeline that ends in one. Got {type(last).__name__}.")
    check_is_fitted(last)
    if last.kernel not in ("linear", *GAMMA_KERNELS):
        raise ValueError(f"kernel={last.kernel!r} cannot be exported to ONNX: only linear, {', '.join(GAMMA_KERNELS)} can be.")
    return before, last


@documented({"model": MODEL})
def convert(model: Any) -> Any:
    """Convert a fitted model to an ONNX graph.

    Returns
    -------
    onnx.ModelProto
        A graph with the input ``X`` of shape (n_samples, n_features) or, after a ColumnEncoder, an input of shape (n_samples, 1)
        for each column: numbers as doubles, categories as strings. Its outputs are ``label``, ``plane_scores`` and, with
        ``probability=True``, ``probabilities``.

    See Also
    --------
    save_model : Write the graph to a file.

    Examples
    --------
    >>> from rankplane import NPSVOR
    >>> from rankplane.onnx import convert
    >>> graph = convert(NPSVOR().fit([[1.0], [2.0], [3.0]], [1, 2, 3])).graph
    >>> [output.name for output in graph.output]
    ['label', 'plane_scores']
    """
    before, last = steps_of(model)
    graph, found = Graph(), fitted_of(last)
    is_kernel = isinstance(found, FittedKernel)
    given = found.rows.dtype if isinstance(found, FittedKernel) else last.coef_.dtype
    dtype, n_planes = np.dtype(np.float64) if is_kernel else given, len(last.intercept_)
    scores = plane_scores(graph, last, features(graph, before, last.n_features_in_, given))
    outputs = [graph.tensor("label", last.classes_.dtype, None), graph.tensor("plane_scores", dtype, n_planes)]
    numbers = None
    if last.probability:
        shares = probabilities(graph, last.calibrator_, scores, n_planes, dtype)
        outputs.append(graph.tensor("probabilities", np.float64, len(last.classes_)))
        numbers = least_cost(graph, last, shares) if decisions.is_by_cost(last.decision) else None
    numbers = numbers or rank_numbers(graph, last, scores, n_planes, dtype)
    graph.node("Gather", graph.constant(last.classes_), numbers, name="label")
    n_bytes = sum(constant.ByteSize() for constant in graph.constants)
    if n_bytes > MAX_BYTES:
        raise ValueError(f"model must have at most {MAX_BYTES} bytes of weights to be exported to ONNX. Got {n_bytes}.")
    return graph.model(outputs, f"{type(last).__name__} of {len(last.classes_)} ranks")


@documented({"model": MODEL})
def save_model(model: Any, path: str | os.PathLike[str]) -> Any:
    """Write a fitted model to an ONNX file.

    An existing file is replaced in one step.

    Parameters
    ----------
    model : object
        A model that ``convert`` can convert.
    path : str or os.PathLike
        File to write, by convention ending in ``.onnx``.

    Returns
    -------
    onnx.ModelProto
        What was written.

    See Also
    --------
    convert : The same in memory, with the inputs and outputs of the graph.
    rankplane.save_model : Save any model, in a file of this package.

    Examples
    --------
    >>> from rankplane import NPSVOR
    >>> from rankplane.onnx import save_model
    >>> written = save_model(NPSVOR().fit([[1.0], [2.0], [3.0]], [1, 2, 3]), "stars.onnx")
    """
    proto = convert(model)
    content = proto.SerializeToString()
    with replacing(path) as file:
        file.write(content)
    return proto
