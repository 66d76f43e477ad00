"""``python -m rankplane.demo``: every model on made-up ratings, in a table."""

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.console import Console
from rich.table import Table as RichTable

from rankplane import metrics
from rankplane.estimators import NPSVOR, SVC, SVMOP, SVOR, SVR, RedSVM


def make_ratings(n_rows: int, n_columns: int, n_ranks: int, words_per_row: int, seed: int) -> tuple[Any, Any]:
    """Rows like TF-IDF of reviews: words by Zipf's law, some of which lean to praise or blame; ranks by what they add up to."""
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, n_columns + 1)
    words = rng.choice(n_columns, size=(n_rows, words_per_row), p=frequency / frequency.sum())
    counts = sp.csr_matrix(
        (np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, words_per_row)), shape=(n_rows, n_columns)
    )
    counts.sum_duplicates()
    rarity = np.log((1 + n_rows) / (1 + np.bincount(counts.indices, minlength=n_columns))) + 1
    X = counts @ sp.diags(rarity)
    X = sp.diags(1 / np.sqrt(X.multiply(X).sum(axis=1)).A1) @ X
    leaning = rng.standard_normal(n_columns) * (rng.random(n_columns) < 0.3)
    opinion = X @ leaning + 0.1 * rng.standard_normal(n_rows)
    ranks = 1 + np.searchsorted(np.quantile(opinion, np.arange(1, n_ranks) / n_ranks), opinion)
    return sp.csr_matrix(X, dtype=np.float32), ranks


def main() -> None:
    n_train, n_test = 20_000, 5_000
    X, y = make_ratings(n_train + n_test, 10_000, 5, 60, seed=0)
    X_train, y_train, X_test, y_test = X[:n_train], y[:n_train], X[n_train:], y[n_train:]
    console = Console()
    console.print(f"{n_train:,} made-up reviews of 60 words, {X.shape[1]:,} columns, ranks 1 to 5; tested on {n_test:,} more.\n")
    table = RichTable(title="Linear ordinal models", title_justify="left")
    table.add_column("model")
    for heading in ("accuracy", "MAE", "MSE", "seconds", "sweeps"):
        table.add_column(heading, justify="right")
    for model in (NPSVOR, SVC, SVR, SVMOP, RedSVM, SVOR):
        start = time.perf_counter()
        fitted = model(n_jobs=-1).fit(X_train, y_train)
        seconds = time.perf_counter() - start
        predicted = fitted.predict(X_test)
        table.add_row(
            model.__name__,
            f"{metrics.accuracy(y_test, predicted):.3f}",
            f"{metrics.mean_absolute_error(y_test, predicted):.3f}",
            f"{metrics.mean_squared_error(y_test, predicted):.3f}",
            f"{seconds:.3f}",
            str(int(fitted.n_iter_.max())),
        )
    console.print(table)


if __name__ == "__main__":
    main()
