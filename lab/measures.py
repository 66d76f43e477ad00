"""Errors of predicted ranks, computed with numpy for all competitors in the same way. Ranks are numbered from 0."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

MEASURES = ("accuracy", "mae", "mse")
Array = NDArray[Any]


def measures(predictions: Array, truth: Array) -> dict[str, float]:
    error = predictions.astype(float) - truth
    return {
        "accuracy": float(np.mean(error == 0)),
        "mae": float(np.mean(np.abs(error))),
        "mse": float(np.mean(error**2)),
    }


def macro_mae(predictions: Array, truth: Array) -> float:
    """The mean over the ranks that occur of the MAE of their rows."""
    error = np.abs(predictions.astype(float) - truth)
    return float(np.mean([error[truth == rank].mean() for rank in np.unique(truth)]))


def confusion(predictions: Array, truth: Array, n_ranks: int) -> Array:
    """Counts by (true rank, predicted rank)."""
    return np.asarray(confusion_matrix(truth, predictions, labels=range(n_ranks)))
