"""Log loss of models that are fitted to few rows, against that of the frequencies of the ranks: ``python -m
benchmarks.calibrators.few_rows``.

Random samples of 20 to 500 rows of every set. Rows of ranks that a sample lacks are not tested: neither the model nor the
frequencies know of them. Texts become TF-IDF of the sample's own words. A model that is worse than the frequencies by no more than
``(ranks - 1) / 2n`` is within their own noise: so much do frequencies of n rows lose on average because they are those of n rows.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Log, options_parser
from benchmarks.tables.sets import TABLES, read_table
from lab import text
from lab.data import data_folder
from rankplane import NPSVOR, TextVectorizer

TEXTS = ("treebank", "moviereview", "largemovie", "video", "tablets", "mobilephone", "tripadvisor", "clothing", "douban")
N_SAMPLES, N_TEST = 200, 300
SMALLEST, LARGEST = 20, 500
ROUNDING = 1e-6  # the strongest penalty leaves the frequencies but for this


class Rows(NamedTuple):
    """Features of any kind, and rank numbers."""

    features: Any
    ranks: Any
    is_text: bool


def read(name: str, folder: Path) -> Rows:
    if name in TABLES:
        X, ranks = read_table(name, folder)
        return Rows(X, ranks, False)
    texts, ranks = text.texts_of(text.read_frame(folder / f"{name}.parquet"))
    return Rows(np.array(texts, dtype=object), ranks, True)


def encoded(rows: Rows, train: Any, test: Any) -> tuple[Any, Any]:
    if rows.is_text:
        vectorizer = TextVectorizer(min_df=1).fit(rows.features[train].tolist())
        return vectorizer.transform(rows.features[train].tolist()), vectorizer.transform(rows.features[test].tolist())
    X, X_test = rows.features[train], rows.features[test]
    deviation = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    return (X - X.mean(axis=0)) / deviation, (X_test - X.mean(axis=0)) / deviation


def losses(rows: Rows, n_samples: int) -> Iterator[tuple[int, float, float, float]]:
    """Size of the sample, log losses on test rows of the model and of the frequencies, and the noise of these."""
    for seed in range(n_samples):
        rng = np.random.default_rng(seed)
        n_train = round(SMALLEST * (LARGEST / SMALLEST) ** rng.uniform())
        order = rng.permutation(len(rows.ranks))
        half = len(order) // 2
        train, test = order[: min(n_train, half)], order[-min(N_TEST, half) :]
        present, counts = np.unique(rows.ranks[train], return_counts=True)
        test = test[np.isin(rows.ranks[test], present)]
        if len(present) < 2 or not len(test):
            continue
        X, X_test = encoded(rows, train, test)
        model = NPSVOR(probability=True).fit(X, rows.ranks[train])
        true = np.searchsorted(present, rows.ranks[test])
        of_truth = model.predict_proba(X_test)[np.arange(len(test)), true]
        of_frequencies = (counts / len(train))[true]
        noise = (len(present) - 1) / (2 * len(train))
        yield len(train), float(-np.log(of_truth).mean()), float(-np.log(of_frequencies).mean()), noise


def measure(name: str, rows: Rows, n_samples: int) -> Iterator[dict[str, Any]]:
    """One line by size of the samples."""
    found = np.array(list(losses(rows, n_samples)))
    for low, high in ((20, 50), (50, 150), (150, 501)):
        sizes, of_model, of_frequencies, noise = found[(found[:, 0] >= low) & (found[:, 0] < high)].T
        worse = of_model - of_frequencies
        yield {
            "data": {"name": name, "rows": f"{low} to {high - 1}", "samples": len(sizes)},
            "measures": {
                "log_loss": float(of_model.mean()),
                "log_loss_of_frequencies": float(of_frequencies.mean()),
                "worse": float(np.mean(worse > ROUNDING)),
                "beyond_noise": float(np.mean(worse > noise)),
                "most_worse": float(max(0.0, worse.max())),
            },
        }


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.calibrators.few_rows", __doc__, [*TABLES, *TEXTS])
    parser.add_argument("--samples", type=int, default=N_SAMPLES, help=f"samples of every set (default: {N_SAMPLES})")
    options = parser.parse_args(arguments)
    log, folder = Log("few_rows", not options.no_save), data_folder(options.data)
    if folder is None:
        print("There is no data folder: name one by --data.")
        return
    for name in options.sets:
        for line in measure(name, read(name, folder), options.samples):
            print(line["data"], {key: round(value, 4) for key, value in line["measures"].items()}, flush=True)
            log.write(**line)


if __name__ == "__main__":
    main()
