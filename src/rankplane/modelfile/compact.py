"""Smaller weights for a model file, within a bound on the change of any score."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.base import OrdinalModel
from rankplane.modelfile.values import ValueReader, ValueWriter


def compact_weights(weights: NDArray[Any], bound: float) -> NDArray[Any]:
    """Set small columns to zero, and round the others to half precision if the bound allows.

    For a row x of norm one, changing the weights by d changes a score by |x . d| <= |d|. So columns are dropped, smallest first,
    while the norm of the change from dropping and rounding is at most the bound for every plane.
    """
    squares = weights.astype(np.float64) ** 2
    order = np.argsort(squares.max(axis=1), kind="stable")
    largest = float(np.finfo(np.float16).max)
    halves = np.clip(weights, -largest, largest).astype(np.float16).astype(weights.dtype)
    for rounded in (halves, weights):
        lost = (weights.astype(np.float64) - rounded) ** 2
        # The norm of the change, by the number of dropped columns; all others are rounded.
        more = np.cumsum((squares - lost)[order], axis=0)
        change = np.sqrt(np.vstack([lost.sum(axis=0), lost.sum(axis=0) + more])).max(axis=1)
        if change[0] <= bound:
            break
    compacted = np.array(rounded)
    compacted[order[: int(np.searchsorted(change, bound, side="right")) - 1]] = 0
    return compacted


def compact_model(model: OrdinalModel, bound: float) -> int:
    """Replace the weights of a fitted model by compact ones; returns the number of dropped columns."""
    model.coef_ = compact_weights(np.ascontiguousarray(model.coef_.T), bound).T
    return int(np.sum(~model.coef_.any(axis=0)))


def write_weights(writer: ValueWriter, weights: NDArray[Any], bound: float | None) -> dict[str, Any]:
    if bound is None:
        return writer.array(weights)
    if bound > 0:  # at 0, weights must not change
        weights = compact_weights(weights, bound)
    kept = np.flatnonzero(weights.any(axis=1)).astype(np.int32)
    with np.errstate(over="ignore"):
        halves = weights.astype(np.float16)
    values = halves if np.array_equal(halves, weights) else weights
    dtype = {"dtype": weights.dtype.newbyteorder("<").str}
    if len(kept) * (values.itemsize * values.shape[1] + kept.itemsize) >= values.nbytes:
        # The column numbers would take more space than dropping columns saves.
        return writer.array(values) | dtype
    parts = {"columns": writer.array(kept)["array"], "values": writer.array(values[kept])["array"]}
    return {"sparse": parts, "n_columns": len(weights)} | dtype


def read_weights(reader: ValueReader, stored: dict[str, Any]) -> NDArray[Any]:
    is_sparse = "sparse" in stored
    values = reader.array(stored["sparse"]["values"] if is_sparse else stored["array"])
    dtype = np.dtype(stored.get("dtype", values.dtype.str))
    # The core has loops for these types only.
    if dtype.str not in ("<f4", "<f8") or values.dtype.kind != "f" or values.ndim != 2:
        raise ValueError("weights are not a matrix of numbers")
    if not is_sparse:
        return values.astype(dtype, copy=False)
    weights = np.zeros((int(stored["n_columns"]), values.shape[1]), dtype=dtype)
    weights[reader.array(stored["sparse"]["columns"])] = values
    return weights
