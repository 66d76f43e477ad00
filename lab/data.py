"""The data sets by name: ``largemovie``, ``largemovie:keep``, ``synthetic``, ``synthetic:100000x1000000x8x60``.

A name is a parquet file under the data folder, with the features after the colon ("paper" unless told), or the
generator with rows, columns, ranks and entries per row. Matrices are kept in a cache folder, since making them
takes far longer than any fit.

"paper" and "keep" serve the timing of fits and are split at random, as in the paper. "default" and "trigrams" serve
accuracy and are split so that nothing of a test row was seen in training: see ``honest_split``.
"""

import hashlib
import json
import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, train_test_split

from lab import ROOT, synthetic, text

DEFAULT_DATA = ROOT.parent / "shared" / "data"
QUICK_SYNTHETIC = "20000x100000x8x80"
TEST_SHARE = 0.3
HONEST = ("default", "trigrams")
MAX_HONEST_ROWS = 100_000  # scikit-learn's vectorizer and logistic regression take too long on more
ARRAYS = ("data", "indices", "indptr")
OPTIONAL = ("rows", "rows_test", "groups")


@dataclass(eq=False)
class Data:
    """Training and test rows; ranks are numbered from 0."""

    name: str
    X: sp.csr_matrix
    y: NDArray[np.int32]
    X_test: sp.csr_matrix
    y_test: NDArray[np.int32]
    groups: NDArray[np.int64] | None = None  # training rows of one group are copies of one text
    rows: NDArray[np.int64] | None = None  # which rows of the file the training and the test rows are
    rows_test: NDArray[np.int64] | None = None
    prepared: dict[str, Any] = field(default_factory=dict)  # untimed conversions kept by competitors

    @property
    def n_ranks(self) -> int:
        return int(max(self.y.max(), self.y_test.max())) + 1

    def head(self, n_rows: int) -> Self:
        """The same problem on fewer training rows: the first ones, which are a random sample, since the split has shuffled them."""
        n_rows = min(n_rows, self.X.shape[0])
        fewer = replace(self, name=f"{self.name}[:{n_rows}]", X=self.X[:n_rows], y=self.y[:n_rows])
        return replace(fewer, groups=None, rows=None, rows_test=None, prepared={})

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rows": int(self.X.shape[0]),
            "columns": int(self.X.shape[1]),
            "ranks": self.n_ranks,
            "entries": int(self.X.nnz if sp.issparse(self.X) else self.X.size),
            "test_rows": int(self.X_test.shape[0]),
        }


def data_folder(argument: str | None) -> Path | None:
    """The folder that ``--data`` names, else the usual one, or None where there is none."""
    if argument is not None:
        folder = Path(argument)
        if not folder.is_dir():
            sys.exit(f"--data must be a folder. Got {argument!r}.")
        return folder
    return DEFAULT_DATA if DEFAULT_DATA.is_dir() else None


def cache_folder() -> Path:
    base = os.environ.get("RANKPLANE_BENCH_CACHE")
    folder = Path(base) if base else Path.home() / ".cache" / "rankplane-bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def why_not(name: str, folder: Path | None) -> str | None:
    """Why a data set is not available here, in a sentence; None if it is."""
    base, _, features = name.partition(":")
    if base == "synthetic":
        return None
    if (features or "paper") not in text.FEATURES:
        return f"{name} is left out: features are {' or '.join(text.FEATURES)}, not {features}."
    if folder is None or not (folder / f"{base}.parquet").exists():
        return f"{name} is left out: there is no {base}.parquet in the data folder (--data)."
    if reason := text.missing():
        return f"{name} is left out: {reason}."
    return None


def load(name: str, folder: Path | None) -> Data:
    """The data set of that name, from the cache if possible."""
    base, _, option = name.partition(":")
    if base == "synthetic":
        return make_synthetic(option or QUICK_SYNTHETIC)
    return read(stored(name, folder))


def stored(name: str, folder: Path | None) -> Path:
    """The place of a data set in the cache; prepared if it is not there yet."""
    base, _, option = name.partition(":")
    if base == "synthetic":
        shape = option or QUICK_SYNTHETIC
        kept = cache_folder() / f"{base}-{shape}-{fingerprint(Path(synthetic.__file__).read_text())}"
        if not (kept / "done.json").exists():
            save(make_synthetic(shape), kept)
        return kept
    features = option or "paper"
    assert folder is not None
    path = folder / f"{base}.parquet"
    recipe = repr((path.stat().st_size, text.RECIPE, text.FEATURES[features], TEST_SHARE))
    if features in HONEST:
        recipe += repr((text.TOKEN.pattern, MAX_HONEST_ROWS, "test rows unseen"))
    kept = cache_folder() / f"{base}-{features}-{fingerprint(recipe)}"
    if not (kept / "done.json").exists():
        save(vectorise(path, features), kept)
    return kept


def fingerprint(recipe: str) -> str:
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def read(kept: Path) -> Data:
    base, option, _ = kept.name.rsplit("-", 2)
    # Read, not mapped: a mapped matrix would be paged in during the first fit.
    X, X_test = (
        sp.csr_matrix(tuple(np.load(kept / f"{part}.{array}.npy") for array in ARRAYS), shape=shape)
        for part, shape in json.loads((kept / "done.json").read_text()).items()
    )
    rows, rows_test, groups = (np.load(kept / f"{name}.npy") if (kept / f"{name}.npy").exists() else None for name in OPTIONAL)
    y, y_test = np.load(kept / "y.npy"), np.load(kept / "y_test.npy")
    return Data(f"{base}:{option}", X, y, X_test, y_test, groups, rows, rows_test)


def vectorise(path: Path, features: str) -> Data:
    frame = text.read_frame(path)
    texts, ranks = text.texts_of(frame)
    if features in HONEST:
        train, test, groups = honest_split(frame, ranks)
        test = unseen(texts, train, test)
    else:
        train, test = train_test_split(np.arange(len(texts)), test_size=TEST_SHARE, random_state=0, stratify=ranks)
        groups = None
    vectorizer = text.make_vectorizer(features)
    X = vectorizer.fit_transform([texts[i] for i in train])
    X_test = vectorizer.transform([texts[i] for i in test])
    for matrix in (X, X_test):
        matrix.sort_indices()
    X, X_test = sp.csr_matrix(X), sp.csr_matrix(X_test)
    return Data(path.stem, X, ranks[train], X_test, ranks[test], groups, train, test)


def honest_split(frame: Any, ranks: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]:
    """Training rows, test rows, and the groups of the training rows, if any: copies of one review share a group and
    stay on one side. A split that the file itself names is taken as it is.
    """
    every = np.arange(len(frame))
    if "split" in frame:
        is_test = frame["split"].to_numpy() == "test"
        # Shuffled: files are often sorted, and competitors take the first or the last rows to choose C.
        return np.random.default_rng(0).permutation(every[~is_test]), every[is_test], None
    if "review_id" in frame:
        _, groups = np.unique(frame["review_id"].to_numpy(), return_inverse=True)
        splitter = StratifiedGroupKFold(round(1 / TEST_SHARE * 3), shuffle=True, random_state=0)
        parts = [test for _, test in splitter.split(every, ranks, groups)]
        test = np.concatenate(parts[:3])
        train = np.random.default_rng(0).permutation(np.setdiff1d(every, test))
        return train, test, groups[train]
    if len(every) > MAX_HONEST_ROWS:
        every, _ = train_test_split(every, train_size=MAX_HONEST_ROWS, random_state=0, stratify=ranks)
    train, test = train_test_split(every, test_size=TEST_SHARE, random_state=0, stratify=ranks[every])
    return train, test, None


def unseen(texts: list[str], train: NDArray[np.int64], test: NDArray[np.int64]) -> NDArray[np.int64]:
    """The test rows without those whose tokens are also those of a training row: some texts are in a file twice."""
    keys = [" ".join(text.TOKEN.findall(one.lower())) for one in texts]
    known = {keys[row] for row in train}
    return np.array([row for row in test if keys[row] not in known], dtype=np.int64)


def texts_of(data: Data, folder: Path) -> tuple[list[str], list[str]]:
    """Texts of the training and the test rows, for competitors that read them themselves."""
    assert data.rows is not None
    assert data.rows_test is not None
    texts, _ = text.texts_of(text.read_frame(folder / f"{data.name.partition(':')[0]}.parquet"))
    return [texts[i] for i in data.rows], [texts[i] for i in data.rows_test]


def save(data: Data, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part, matrix in (("X", data.X), ("X_test", data.X_test)):
        for array in ARRAYS:
            np.save(folder / f"{part}.{array}.npy", getattr(matrix, array))
    np.save(folder / "y.npy", data.y)
    np.save(folder / "y_test.npy", data.y_test)
    for name in OPTIONAL:
        if (array := getattr(data, name)) is not None:
            np.save(folder / f"{name}.npy", array)
    # Last, so that an interrupted preparation is not taken for a finished one.
    (folder / "done.json").write_text(json.dumps({"X": data.X.shape, "X_test": data.X_test.shape}))


def make_synthetic(shape: str, seed: int = 0) -> Data:
    n_rows, n_columns, n_ranks, row_entries = (int(number) for number in shape.split("x"))
    n_all = round(n_rows / (1 - TEST_SHARE))
    X, ranks = synthetic.make_rated_rows(n_all, n_columns, n_ranks, row_entries, seed)
    return Data(f"synthetic:{shape}", X[:n_rows], ranks[:n_rows], X[n_rows:], ranks[n_rows:])
