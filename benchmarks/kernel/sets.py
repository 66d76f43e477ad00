"""The data sets by name: a table (``abalone_ord``), or the first rows of a text set (``largemovie:3500``).

Columns of a table are standardised, as kernels want them. Seven tenths of its rows train; a text set has its own test rows, of
which as many are used as make up the other three tenths.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lab import data as text_sets
from lab.data import TEST_SHARE, Data

TABLES = ("winequality-red", "abalone_ord", "winequality-white", "kinematics")


@dataclass(eq=False, kw_only=True)
class KernelData(Data):
    """Rows in float64, dense or sparse, and the gamma for all competitors."""

    gamma: float

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"gamma": self.gamma}


def why_not(name: str, folder: Path | None) -> str | None:
    base, _, n_rows = name.partition(":")
    if n_rows:
        return text_sets.why_not(base, folder)
    if folder is None or not (folder / "tabular" / f"{base}.csv").exists():
        return f"{name} is left out: there is no tabular/{base}.csv in the data folder (--data)."
    return None


def load(name: str, folder: Path | None) -> KernelData:
    base, _, n_rows = name.partition(":")
    if n_rows:
        whole = text_sets.load(base, folder).head(int(n_rows))
        n_test = round(int(n_rows) * TEST_SHARE / (1 - TEST_SHARE))
        X, X_test = (sp.csr_matrix(part, dtype=np.float64) for part in (whole.X, whole.X_test[:n_test]))
        # Rows of text have length one: distances are at most the root of two.
        return KernelData(name, X, whole.y.astype(np.int64), X_test, whole.y_test[:n_test].astype(np.int64), gamma=1.0)
    assert folder is not None
    cells = np.genfromtxt(folder / "tabular" / f"{base}.csv", delimiter=",", skip_header=1, dtype=str)
    values = np.char.strip(cells, '"').astype(float)
    values = values[np.random.default_rng(0).permutation(len(values))]
    X, ranks = values[:, 1:], values[:, 0].astype(np.int64)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    n_train = round((1 - TEST_SHARE) * len(ranks))
    ranks = np.unique(ranks, return_inverse=True)[1].astype(np.int64)
    return KernelData(base, X[:n_train], ranks[:n_train], X[n_train:], ranks[n_train:], gamma=1 / X.shape[1])
