"""How well answers do, beside answers that need no model, all on the same rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.inputs.reading import InputError
from rankplane.metrics import MEASURES
from rankplane.validation import rank_numbers


def rank_counts(labels: NDArray[Any], order: NDArray[Any]) -> dict[str, int]:
    """How many rows have each rank, lowest first, under the names that a model file can hold."""
    counts = np.bincount(rank_numbers(labels, order), minlength=len(order))
    return dict(zip(map(str, order.tolist()), counts.tolist(), strict=True))


def trained_ranks(metadata: dict[str, Any]) -> dict[str, int]:
    """How many training rows have each rank, lowest first; older files have only counts that include the held-out rows."""
    data = metadata.get("data") or {}
    return dict(data.get("trained_ranks") or data.get("ranks") or {})


def constant_answers(order: NDArray[Any], counts: dict[str, int]) -> dict[str, Any]:
    """The answers that need no model, commonest rank and median of training; none where no counts are known."""
    places = np.array([counts.get(str(label), 0) for label in order.tolist()], dtype=np.intp)
    if not places.any():
        return {}
    median = np.searchsorted(np.cumsum(places), places.sum() // 2, side="right")
    return {"majority": order[np.argmax(places)], "median": order[median]}


def compared(labels: NDArray[Any], answers: dict[str, NDArray[Any]], order: NDArray[Any], counts: dict[str, int]) -> dict[str, Any]:
    """Measures of some answers and of the constant ones, all on the same rows."""
    constant = {name: np.full(len(labels), answer) for name, answer in constant_answers(order, counts).items()}
    found = {name: measures(labels, given, order) for name, given in (answers | constant).items()}
    return {"rows": len(labels)} | found


def confusion(true: NDArray[Any], predicted: NDArray[Any], order: NDArray[Any]) -> NDArray[np.intp]:
    """How many rows of each rank, by row, were given each rank, by column."""
    matrix = np.zeros((len(order), len(order)), dtype=np.intp)
    np.add.at(matrix, (rank_numbers(true, order), rank_numbers(predicted, order)), 1)
    return matrix


def measures(true: NDArray[Any], predicted: NDArray[Any], order: NDArray[Any]) -> dict[str, float]:
    return {name: measure(true, predicted, ranks=order) for name, (measure, _) in MEASURES.items()}


def check_known(labels: NDArray[Any], lines: Sequence[int], order: NDArray[Any], source: str) -> None:
    """Refuse ranks that training never saw."""
    known = set(order.tolist())
    for label, line in zip(labels.tolist(), lines, strict=True):
        if label not in known:
            listed = ", ".join(map(str, order.tolist()))
            raise InputError(f"{source} line {line}: rank {label} never occurred in training, whose ranks are {listed}.")
