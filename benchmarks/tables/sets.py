"""Tables with ranks: ``tabular/*.csv`` of the data folder, the rank in the first column."""

from pathlib import Path

import numpy as np

from lab.measures import Array

TABLES = ("auto_ord", "stock_ord", "winequality-red", "winequality-white", "abalone_ord", "kinematics", "californiahousing")
TRAIN_SHARE = 0.7


def read_table(name: str, folder: Path) -> tuple[Array, Array]:
    """Columns as they are in the file, and rank numbers."""
    cells = np.genfromtxt(folder / "tabular" / f"{name}.csv", delimiter=",", skip_header=1, dtype=str)
    values = np.char.strip(cells, '"').astype(float)
    return values[:, 1:], np.unique(values[:, 0], return_inverse=True)[1].ravel()


def split(X: Array, ranks: Array, seed: int, most_rows: int) -> tuple[Array, Array, Array, Array]:
    """Training and test rows of a random split; of very many rows, fewer train."""
    order = np.random.default_rng(seed).permutation(len(ranks))
    n_train = round(TRAIN_SHARE * len(ranks))
    train, test = order[: min(n_train, most_rows)], order[n_train:]
    return X[train], ranks[train], X[test], ranks[test]
