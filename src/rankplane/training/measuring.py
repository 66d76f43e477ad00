"""Measures of predictions and of constant baselines on the same rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.inputs.reading import Batch, InputError
from rankplane.metrics import MEASURES
from rankplane.validation import rank_numbers


def rank_counts(labels: NDArray[Any], order: NDArray[Any]) -> dict[str, int]:
    """The number of rows by rank, lowest first, with names as in model files."""
    counts = np.bincount(rank_numbers(labels, order), minlength=len(order))
    return dict(zip(map(str, order.tolist()), counts.tolist(), strict=True))


def trained_ranks(metadata: dict[str, Any]) -> dict[str, int]:
    """The number of training rows by rank, lowest first; older files only have counts that include held-out rows."""
    data = metadata.get("data") or {}
    return dict(data.get("trained_ranks") or data.get("ranks") or {})


def weighed_ranks(metadata: dict[str, Any]) -> dict[str, int]:
    """The number of rows by rank that balanced class weights are inverse to: those that the probabilities were learnt from."""
    return dict((metadata.get("recalibrated") or {}).get("ranks") or trained_ranks(metadata))


def constant_answers(order: NDArray[Any], counts: dict[str, int]) -> dict[str, Any]:
    """The constant baselines: the most frequent rank and the median of training; none if the counts are unknown."""
    places = np.array([counts.get(str(label), 0) for label in order.tolist()], dtype=np.intp)
    if not places.any():
        return {}
    median = np.searchsorted(np.cumsum(places), places.sum() // 2, side="right")
    return {"majority": order[np.argmax(places)], "median": order[median]}


def compared(labels: NDArray[Any], answers: dict[str, NDArray[Any]], order: NDArray[Any], counts: dict[str, int]) -> dict[str, Any]:
    """Measures of predictions and of the constant baselines, all on the same rows."""
    constant = {name: np.full(len(labels), answer) for name, answer in constant_answers(order, counts).items()}
    found = {name: measures(labels, given, order) for name, given in (answers | constant).items()}
    return {"rows": len(labels)} | found


def confusion(true: NDArray[Any], predicted: NDArray[Any], order: NDArray[Any]) -> NDArray[np.intp]:
    """The number of rows by true rank (row) and predicted rank (column)."""
    matrix = np.zeros((len(order), len(order)), dtype=np.intp)
    np.add.at(matrix, (rank_numbers(true, order), rank_numbers(predicted, order)), 1)
    return matrix


def measures(true: NDArray[Any], predicted: NDArray[Any], order: NDArray[Any]) -> dict[str, float]:
    return {name: measure(true, predicted, ranks=order) for name, (measure, _) in MEASURES.items()}


def check_known(labels: NDArray[Any], present: NDArray[np.intp], batch: Batch, order: NDArray[Any], source: str) -> None:
    """Refuse ranks of the rows of a batch that did not occur in training."""
    known = set(order.tolist())
    for label, row in zip(labels.tolist(), present.tolist(), strict=True):
        if label not in known:
            listed = ", ".join(map(str, order.tolist()))
            raise InputError(f"{batch.where(row, source)}: rank {label} never occurred in training, whose ranks are {listed}.")
