"""The data sets as the paper treats them: texts to TF-IDF, rows to training and test rows.

The paper names two shares of test rows, 30 % and one fifth; its files of Treebank hold a fifth, and so do the splits here. Columns,
document frequencies and C are learnt from training rows alone.

A set may repeat reviews. The split "plain" is the paper's: stratified, copies on both sides. The split "review" keeps all copies of
a review on one side, also in the folds that choose C.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_files
from sklearn.model_selection import train_test_split

from experiments.notebook import SkipError
from lab import text
from lab.data import Data, cache_folder
from lab.display import console
from lab.timing import processor_timed
from rankplane import datasets
from rankplane.solver.folds import assign_parts
from rankplane.text import TextVectorizer

# The sets of the paper, in the order of its tables, as files are called and as it calls them.
PAPER_NAMES = {
    "amazonmp3": "AmazonMp3",
    "video": "Video",
    "tablets": "Tablets",
    "mobilephone": "Mobilephone",
    "cameras": "Cameras",
    "tripadvisor": "TripAdvisor",
    "doctorquality": "DoctorQuality",
    "treebank": "Treebank",
    "treebank_features": "Treebank",
    "moviereview": "MovieReview",
    "yelpreview": "YelpReview",
    "largemovie": "LargeMovie",
    "electronics": "Electronics",
    "healthcare": "HealthCare",
    "appsandroid": "AppsAndroid",
    "homekitchen": "HomeKitchen",
}
TITLES = PAPER_NAMES | {
    "treebank_features": "Treebank, the paper's own features",
    "douban": "Douban (Chinese)",
    "clothing": "Clothing",
    "tripadvisor_250k": "TripAdvisor, 250,000 rows",
    "generated": "Generated",
}
TEXT_SETS = (*(name for name in PAPER_NAMES if name != "treebank_features"), "douban", "clothing")
WITH_COPIES = ("amazonmp3", "video", "tablets", "mobilephone", "cameras")  # reviews listed under several products
FEATURE_FILES = {"treebank_features": ("Treebank.train", "Treebank.test")}
CHINESE = ("douban", "doctorquality")
TEST_SHARE = 0.2
QUICK_ROWS = 1500
QUICK_SETS = ("generated", "moviereview", "treebank", "video")


@dataclass(eq=False)
class RatedSet:
    """Texts with ranks numbered from 0; rows of one group are copies of one review."""

    name: str
    texts: list[str]
    ranks: NDArray[np.int32]
    groups: NDArray[np.int64] | None

    def subset(self, rows: NDArray[np.int64]) -> "RatedSet":
        groups = None if self.groups is None else self.groups[rows]
        return RatedSet(self.name, [self.texts[i] for i in rows], self.ranks[rows], groups)


def split_rows(
    ranks: NDArray[Any], groups: NDArray[Any] | None, seed: int, test_share: float = TEST_SHARE
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training and test rows, stratified; whole groups if there are any."""
    every = np.arange(len(ranks))
    if groups is None:
        train, test = train_test_split(every, test_size=test_share, random_state=seed, stratify=ranks)
        return train, test
    is_test = assign_parts(groups, ranks, np.array([1 - test_share, test_share]), seed) == 1
    return np.random.default_rng(seed).permutation(every[~is_test]), every[is_test]


def vectorizer_for(name: str, preset: str) -> TextVectorizer:
    """The preset; Chinese comes cut into words and knows neither English stop words nor stems."""
    if name in CHINESE and preset == "paper":
        return TextVectorizer(preset=preset, stop_words=False, stemmer=False, min_token_length=1)
    return TextVectorizer(preset=preset)


def segmented(texts: list[str], fingerprint: str) -> list[str]:
    """Chinese texts with blanks between words, cut once and kept in the cache folder."""
    kept = cache_folder() / f"segmented-{fingerprint}.json"
    if not kept.exists():
        try:
            import jieba
        except ImportError:
            raise SkipError("Chinese texts need jieba, of the extra paper.") from None
        jieba.setLogLevel(60)
        kept.write_text(json.dumps([" ".join(jieba.cut(one)) for one in texts]), encoding="utf-8")
    return list(json.loads(kept.read_text(encoding="utf-8")))


@dataclass
class Collection:
    """Where the data lies, and how much of it is used."""

    folder: Path | None
    is_quick: bool = False
    n_splits: int = 5
    only_sets: tuple[str, ...] = ()
    _named: set[str] = field(default_factory=set)
    _matrices: dict[tuple[Any, ...], Data] = field(default_factory=dict)

    def sets(self, names: tuple[str, ...]) -> list[str]:
        """Those that can be had here; the others are named once."""
        if self.is_quick:
            names = QUICK_SETS
        if self.only_sets:
            names = tuple(name for name in names if name in self.only_sets)
        return [name for name in names if self.has(name)]

    def has(self, name: str) -> bool:
        if self.files(name) or name == "generated":
            return True
        if name not in self._named:
            self._named.add(name)
            files = " or ".join(wanted[0] for wanted in possible_files(name))
            console.print(f"{TITLES.get(name, name)} is left out: there is no {files} in the data folder.", highlight=False)
        return False

    def files(self, name: str) -> tuple[Path, ...]:
        """Where a set is: our own file if it is there, else the original one."""
        for wanted in possible_files(name) if self.folder is not None else ():
            if all((self.folder / file).exists() for file in wanted):
                return tuple(self.folder / file for file in wanted)
        return ()

    def ways(self, name: str) -> tuple[str, ...]:
        """How a set is split."""
        if name in FEATURE_FILES:
            return ("given",)
        return ("plain", "review") if name in WITH_COPIES else ("plain",)

    def honest_way(self, name: str) -> str:
        return self.ways(name)[-1]

    def seeds(self, name: str, at_most: int | None = None) -> range:
        wanted = self.n_splits if at_most is None else min(at_most, self.n_splits)
        return range(1 if name in FEATURE_FILES else wanted)

    def key(self, name: str, split: str, seed: int, **more: Any) -> dict[str, Any]:
        """What names a result: the data to the last byte, the split, the seed, and what the caller adds."""
        return {"set": name, "fingerprint": self.fingerprint(name), "split": split, "seed": seed, "rows": self.limit} | more

    @cached_property
    def limit(self) -> int | None:
        return QUICK_ROWS if self.is_quick else None

    def fingerprint(self, name: str) -> str:
        return fingerprint(self.files(name)) if name != "generated" else name

    def load(self, name: str) -> RatedSet:
        return load(name, self.files(name), self.limit)

    def matrices(self, name: str, split: str, seed: int, preset: str = "paper", test_share: float = TEST_SHARE) -> Data:
        """Training and test rows as TF-IDF; ``prepared`` has the texts and the processor seconds that it took."""

        def make() -> Data:
            if name in FEATURE_FILES:
                X, y, X_test, y_test = load_svmlight_files([str(path) for path in self.files(name)])
                y, y_test = (ranks.astype(np.int32) - 1 for ranks in (y, y_test))
                return Data(name, X, y, X_test, y_test)
            return split_and_vectorised(self.load(name), split, seed, preset, test_share)

        return self.kept((name, split, seed, preset, test_share), make)

    def kept(self, what: tuple[Any, ...], make: Callable[[], Data]) -> Data:
        """What was made under that name, if nothing else was made since: jobs on the same rows follow each other."""
        if what not in self._matrices:
            self._matrices.clear()
            self._matrices[what] = make()
        return self._matrices[what]


def split_and_vectorised(rated: RatedSet, split: str, seed: int, preset: str, test_share: float) -> Data:
    groups = rated.groups if split == "review" else None
    train, test = split_rows(rated.ranks, groups, seed, test_share)
    return vectorised(rated, train, test, preset, groups)


def vectorised(
    rated: RatedSet, train: NDArray[np.int64], test: NDArray[np.int64], preset: str, groups: NDArray[np.int64] | None = None
) -> Data:
    """TF-IDF learnt from the training rows."""
    texts, texts_test = ([rated.texts[i] for i in rows] for rows in (train, test))
    vectorizer = vectorizer_for(rated.name, preset)
    seconds, X = processor_timed(lambda: vectorizer.fit_transform(texts))
    data = Data(rated.name, X, rated.ranks[train], vectorizer.transform(texts_test), rated.ranks[test])
    data.groups = None if groups is None else groups[train]
    data.rows, data.rows_test = train, test
    data.prepared |= {"texts": (texts, texts_test), "vectorise_seconds": seconds}
    return data


def possible_files(name: str) -> list[tuple[str, ...]]:
    """The files that a set may come as, relative to the data folder, the preferred ones first."""
    if name in FEATURE_FILES:
        return [tuple(f"{name}/{file}" for file in FEATURE_FILES[name])]
    original = datasets.SOURCES[name].files if name in datasets.SOURCES else ()
    return [(f"{name}.parquet",), *((file,) for file in original)]


@lru_cache(maxsize=64)
def fingerprint(paths: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@lru_cache(maxsize=2)
def load(name: str, paths: tuple[Path, ...], limit: int | None) -> RatedSet:
    if paths and paths[0].suffix == ".parquet":
        frame = text.read_frame(paths[0])
        texts, ranks = text.texts_of(frame)
        groups = np.unique(frame["review_id"].to_numpy(), return_inverse=True)[1] if "review_id" in frame else None
    else:
        found = datasets.load(name, paths[0].parent if paths else None)
        if name in datasets.SOURCES and datasets.SOURCES[name].is_sampled:
            found = found.balanced()
        texts, ranks = found.texts, np.unique(found.ranks, return_inverse=True)[1].astype(np.int32)
        # The original files number no reviews: those with the same text are taken for copies.
        groups = np.unique(np.array(texts, dtype=object), return_inverse=True)[1] if name in WITH_COPIES else None
    if name in CHINESE:
        texts = segmented(texts, fingerprint(paths))
    rated = RatedSet(name, texts, ranks, groups)
    if limit is not None and limit < len(rated.texts):
        rows, _ = train_test_split(np.arange(len(rated.texts)), train_size=limit, random_state=0, stratify=rated.ranks)
        rated = rated.subset(np.sort(rows))
    return rated


def by_seed(collection: Collection, names: tuple[str, ...], at_most: int | None = None) -> Iterator[tuple[str, str, int]]:
    """Sets, splits and seeds, the first seed of every set before the second of any: a run cut short still has all sets."""
    names = tuple(collection.sets(names))
    for seed in range(collection.n_splits if at_most is None else min(at_most, collection.n_splits)):
        for name in names:
            if seed in collection.seeds(name, at_most):
                for way in collection.ways(name):
                    yield name, way, seed
