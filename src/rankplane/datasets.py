"""Sets of rated texts: those of the papers, from the user's files, one from the package index, and generated ones.

>>> from rankplane import datasets
>>> made = datasets.load("generated")
>>> len(made.texts), sorted(set(made.ranks.tolist()))
(4000, [1, 2, 3, 4, 5])
"""

import ast
import csv
import gzip
import hashlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.docstrings import documented
from rankplane.files import replacing

__all__ = ["OfflineError", "RatedTexts", "load"]

Pairs = Iterator[tuple[str, int]]


@documented()
@dataclass(frozen=True)
class RatedTexts:
    """A set of texts with their ranks.

    Parameters
    ----------
    name : str
        Name of the set.
    texts : list of str
        The texts.
    ranks : ndarray of shape (n_texts,)
        Rank of each text.

    See Also
    --------
    load : Load a set by its name.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane.datasets import RatedTexts
    >>> RatedTexts("mine", ["bad", "good", "great"], np.array([1, 2, 2])).balanced().ranks.tolist()
    [1, 2]
    """

    name: str
    texts: list[str]
    ranks: NDArray[np.int64]

    def balanced(self, seed: int = 0) -> "RatedTexts":
        """Draw a random sample with equally many texts of every rank.

        Parameters
        ----------
        seed : int
            Seed of the sample.

        Returns
        -------
        RatedTexts
            As many texts of every rank as the rarest rank has, in their original order.
        """
        rng = np.random.default_rng(seed)
        least = int(np.unique(self.ranks, return_counts=True)[1].min())
        of_rank = [rng.choice(np.flatnonzero(self.ranks == rank), least, replace=False) for rank in np.unique(self.ranks)]
        rows = np.sort(np.concatenate(of_rank))
        return RatedTexts(self.name, [self.texts[row] for row in rows], self.ranks[rows])


@dataclass(frozen=True)
class Source:
    """The source of a set: a page, the files to look for in ``data_home``, their parser, and the expected number of texts.

    From sets that are ``is_sampled``, the paper drew samples with equally many texts of every rank: they are expected to have at
    least as many texts as it reports, and `RatedTexts.balanced` draws such a sample.
    """

    page: str
    files: tuple[str, ...]
    parse: Callable[[Path], Pairs]
    n_texts: int
    is_sampled: bool = False


class OfflineError(OSError):
    """The sentences cannot be downloaded.

    See Also
    --------
    load : Raises it for ``'sentences'``, on first use.

    Examples
    --------
    >>> from rankplane import datasets
    >>> try:  # doctest: +SKIP
    ...     data = datasets.load("sentences")
    ... except datasets.OfflineError:
    ...     data = datasets.load("generated")
    """


def data_folder(data_home: str | os.PathLike[str] | None) -> Path:
    """``data_home``, or ``$RANKPLANE_DATA``, or a folder in the user's cache."""
    chosen = data_home or os.environ.get("RANKPLANE_DATA")
    if chosen:
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "rankplane"


def lines_of(content: bytes, encoding: str = "utf-8") -> list[str]:
    """The lines of a text. Not by splitlines, which also splits at characters that texts may contain."""
    return [line for line in content.decode(encoding, "replace").replace("\r\n", "\n").split("\n") if line]


def files_in(path: Path, pattern: str) -> Iterator[tuple[re.Match[str], bytes]]:
    """Files of a folder, a zip or a tar, packed or not, whose whole names match."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            found = re.fullmatch(pattern, f"{path.name}/{file.relative_to(path).as_posix()}")
            if found and file.is_file():
                yield found, file.read_bytes()
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as packed:
            for name in packed.namelist():
                found = re.fullmatch(pattern, name)
                if found:
                    yield found, packed.read(name)
    else:
        with tarfile.open(path) as archive:
            for member in archive:
                found = re.fullmatch(pattern, member.name.removeprefix("./"))
                content = archive.extractfile(member) if found else None
                if found and content is not None:
                    yield found, content.read()


def parse_large_movie(path: Path) -> Pairs:
    """``aclImdb/train/pos/12_8.txt``: one file per review, its rating after the underscore; 5 and 6 do not occur."""
    for found, content in files_in(path, r"aclImdb/(?:train|test)/(?:pos|neg)/\d+_(\d+)\.txt"):
        yield content.decode("utf-8").replace("<br />", "\n"), int(found[1])


def parse_movie_review(path: Path) -> Pairs:
    """``scaledata/<author>/subj.<author>`` has a review per line, ``label.4class.<author>`` its class from 0 to 3."""
    contents = {
        (found[2], found[1]): lines_of(content, "latin-1")
        for found, content in files_in(path, r"scaledata/([^/]+)/(subj|label\.4class)\.\1")
    }
    for kind, author in sorted(contents):
        if kind == "subj":
            for text, label in zip(contents[kind, author], contents["label.4class", author], strict=True):
                yield text, int(label) + 1


def parse_treebank(path: Path) -> Pairs:
    """Sentences, phrases by number, and the sentiment of phrases from 0 to 1, cut into five ranks."""
    contents = {found[1]: lines_of(content) for found, content in files_in(path, r"stanfordSentimentTreebank/(\w+)\.txt")}
    numbers = dict(line.rsplit("|", 1) for line in contents["dictionary"])
    sentiment = dict(line.split("|") for line in contents["sentiment_labels"][1:])
    for line in contents["datasetSentences"][1:]:
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


def rated(rating: Any, *texts: Any) -> Pairs:
    """A review, unless it lacks its rating, from 1 to 5, or its text."""
    text = "\n".join(str(part).strip() for part in texts if part)
    with suppress(TypeError, ValueError):
        if text and float(rating) in (1, 2, 3, 4, 5):
            yield text, int(float(rating))


def parse_entities(path: Path, folder: str = "") -> Pairs:
    """A file per hotel or product with its reviews, as JSON or as lines of ``<Name>value``; of one folder, if named."""
    for found, content in files_in(path, rf"(?:.*/)?{folder}[^/]*\.(json|dat|txt)"):
        if found[1] == "json":
            for review in json.loads(content.decode("utf-8", "replace"))["Reviews"]:
                rating = review.get("Overall") or (review.get("Ratings") or {}).get("Overall")
                yield from rated(rating, review.get("Title"), review.get("Content"))
        else:
            yield from tagged_reviews(content)


def tagged_reviews(content: bytes) -> Pairs:
    """Reviews are separated by a blank line or a new author; the lines before the first one describe the hotel."""
    fields: dict[str, str] = {}
    for line in [*content.decode("utf-8", "replace").split("\n"), ""]:
        found = re.match(r"<([^<>=]+)>(.*)", line.strip())
        if not line.strip() or (found and found[1] == "Author"):
            yield from rated(fields.get("Overall"), fields.get("Title"), fields.get("Content"))
            fields = {}
        if found:
            fields[found[1]] = found[2]


def parse_product_lines(path: Path) -> Pairs:
    """A review per line, as JSON or, in older files, as a Python literal, which is parsed and never executed."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            try:
                review = json.loads(line)
            except ValueError:
                review = ast.literal_eval(line)
            yield from rated(review.get("overall"), review.get("summary"), review.get("reviewText"))


def parse_yelp(path: Path) -> Pairs:
    """A review per line as JSON, in a file or an archive of the challenge; or csv without a header, stars first."""
    if path.suffix == ".json":
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                yield from yelp_review(line)
        return
    for found, content in files_in(path, r"(?:.*/)?(?:[^/]*_(review)\.json|(?:train|test)\.csv)"):
        if found[1]:
            for line in lines_of(content):
                yield from yelp_review(line)
        else:
            for stars, text in csv.reader(io.StringIO(content.decode("utf-8"), newline="")):
                yield from rated(stars, text.replace("\\n", "\n").replace('\\"', '"'))


def yelp_review(line: str) -> Pairs:
    review = json.loads(line)
    yield from rated(review.get("stars"), review.get("text"))


def parse_tab_lines(path: Path) -> Pairs:
    """A text per line: its rank, a tab, the text."""
    for line in lines_of(path.read_bytes()):
        rank, text = line.split("\t", 1)
        yield text, int(rank)


RATED_SENTENCES = "vaderSentiment-3.3.2.tar.gz"
RATED_SENTENCES_SHA256 = "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9"
PATIENCE = 300  # seconds
RATED_SENTENCES_CUTS = (-1.5, -0.5, 0.5, 1.5)  # of mean ratings from -4 to 4, into five ranks


def parse_rated_sentences(path: Path) -> Pairs:
    """Movie and product reviews, editorials and tweets; each line has a number, the mean rating by several people, and the text."""
    check_sum(path, path.read_bytes())
    with tarfile.open(path) as package:
        inner = package.extractfile("vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz")
        assert inner is not None
        with tarfile.open(fileobj=io.BytesIO(inner.read())) as archive:
            for member in sorted(archive.getmembers(), key=lambda member: member.name):
                content = archive.extractfile(member) if member.name.endswith("_GroundTruth.txt") else None
                for line in [] if content is None else lines_of(content.read()):
                    _, rating, text = line.split("\t", 2)
                    yield text, 1 + int(np.searchsorted(RATED_SENTENCES_CUTS, float(rating)))


def check_sum(path: Path, content: bytes) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != RATED_SENTENCES_SHA256:
        raise ValueError(f"{path} is not the expected file: its sha256 is {found}. Remove it and try again.")


def fetch_rated_sentences(folder: Path) -> Path:
    """Download the source distribution with the sentences, once.

    pip knows the package index, proxies and certificates. It checks the digest before it opens the file, runs its setup script
    in an environment of its own to learn what it is, and installs nothing.
    """
    path = folder / RATED_SENTENCES
    if path.exists():
        return path
    name, version = RATED_SENTENCES.removesuffix(".tar.gz").split("-")
    with tempfile.TemporaryDirectory() as scratch:
        wanted = Path(scratch, "requirements.txt")
        wanted.write_text(f"{name}=={version} --hash=sha256:{RATED_SENTENCES_SHA256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
        command += ["--retries", "1", "--no-deps", "--no-binary", name, "--dest", scratch]
        command += ["--require-hashes", "--requirement", str(wanted)]
        try:
            ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise OfflineError(f"{RATED_SENTENCES} cannot be downloaded: pip took more than {PATIENCE} seconds") from None
        if ended.returncode:
            raise OfflineError(f"{RATED_SENTENCES} cannot be downloaded: {complaint_of(ended.stderr)}")
        content = Path(scratch, RATED_SENTENCES).read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)
    return path


def complaint_of(stderr: bytes) -> str:
    """What pip says last, for people to read: its errors, if there are any, begin with that word."""
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["pip failed"])[-1]


OPENINGS = ("I bought this last month", "It came as a gift", "We use it every day", "My second one", "Ordered it for work")
THINGS = ("the battery", "the screen", "the sound", "the case", "the handle", "the manual", "the service", "the price")
OPINIONS = {
    1: ("is awful", "broke at once", "is a complete waste", "never worked", "is terrible"),
    2: ("is rather poor", "disappoints", "is not good", "feels cheap", "could be much better"),
    3: ("is okay", "is average", "does its job", "is neither good nor bad", "is fine"),
    4: ("is good", "works well", "is quite nice", "is better than expected", "is solid"),
    5: ("is excellent", "is simply great", "is the best I have had", "is perfect", "is wonderful"),
}


def generated_reviews(n_texts: int = 4000, seed: int = 0) -> Pairs:
    """Generated reviews: mostly opinions of the rank, and some of neighbouring ranks, as noise."""
    rng = random.Random(seed)
    for _ in range(n_texts):
        rank = rng.choices(range(1, 6), weights=(2, 1, 2, 3, 4))[0]
        sentences = [rng.choice(OPENINGS)]
        for thing in rng.sample(THINGS, rng.randint(1, 4)):
            felt = min(5, max(1, rank + rng.choices((-2, -1, 0, 1, 2), weights=(1, 3, 8, 3, 1))[0]))
            sentences.append(f"{thing} {rng.choice(OPINIONS[felt])}")
        yield ". ".join(sentences) + ".", rank


WANG_PAGE = "www.cs.virginia.edu/~hw5x/dataset.html"
PRODUCTS_PAGE = "jmcauley.ucsd.edu/data/amazon"


def products_of(folder: str, n_texts: int) -> Source:
    parse = partial(parse_entities, folder=f"{folder}/")
    return Source(WANG_PAGE, ("AmazonReviews.zip", "AmazonReviews"), parse, n_texts, is_sampled=True)


def product_lines(category: str, n_texts: int) -> Source:
    return Source(PRODUCTS_PAGE, (f"reviews_{category}_5.json.gz",), parse_product_lines, n_texts, is_sampled=True)


SOURCES = {
    "amazonmp3": Source(WANG_PAGE, ("AmazonMp3.zip", "AmazonMp3"), parse_entities, 10_391, is_sampled=True),
    "video": products_of("video_surveillance", 22_281),
    "tablets": products_of("tablets", 35_166),
    "mobilephone": products_of("mobilephone", 69_891),
    "cameras": products_of("cameras", 138_011),
    "tripadvisor": Source(
        WANG_PAGE, ("TripAdvisorJson.tar.bz2", "Review_Texts.zip", "TripAdvisor"), parse_entities, 65_326, is_sampled=True
    ),
    "doctorquality": Source(
        "its authors, who have not published it (github.com/huadong2014/LinearNPSVOR), a rank, a tab and a text per line",
        ("DoctorQuality.tsv",),
        parse_tab_lines,
        119_879,
        is_sampled=True,
    ),
    "treebank": Source("nlp.stanford.edu/sentiment", ("stanfordSentimentTreebank.zip",), parse_treebank, 11_855),
    "moviereview": Source("www.cs.cornell.edu/people/pabo/movie-review-data", ("scale_data.tar.gz",), parse_movie_review, 5_006),
    "yelpreview": Source(
        "www.yelp.com/dataset",
        ("yelp_academic_dataset_review.json", "yelp_dataset.tar", "yelp_review_full_csv.tgz"),
        parse_yelp,
        1_121_671,
        is_sampled=True,
    ),
    "largemovie": Source("ai.stanford.edu/~amaas/data/sentiment", ("aclImdb_v1.tar.gz",), parse_large_movie, 50_000),
    "electronics": product_lines("Electronics", 409_041),
    "healthcare": product_lines("Health_and_Personal_Care", 82_251),
    "appsandroid": product_lines("Apps_for_Android", 220_566),
    "homekitchen": product_lines("Home_and_Kitchen", 120_856),
}
NAMES = (*SOURCES, "sentences", "generated")


@documented()
def load(name: str, data_home: str | os.PathLike[str] | None = None) -> RatedTexts:
    """Load a set of rated texts.

    Parameters
    ----------
    name : str
        ``'sentences'`` are 23,700 sentences that people rated (MIT licence), downloaded on first use. ``'generated'`` are made-up
        reviews. The sets of the paper are read from their original files, which you download yourself; the error for a missing
        file says where from: ``'amazonmp3'``, ``'video'``, ``'tablets'``, ``'mobilephone'``, ``'cameras'``, ``'tripadvisor'``,
        ``'doctorquality'``, ``'treebank'``, ``'moviereview'``, ``'yelpreview'``, ``'largemovie'``, ``'electronics'``,
        ``'healthcare'``, ``'appsandroid'`` or ``'homekitchen'``.
    data_home : str or os.PathLike
        Folder of the files. If None, ``$RANKPLANE_DATA``, or else ``rankplane`` in the user's cache folder.

    Returns
    -------
    RatedTexts
        The texts and their ranks. Many of the paper's sets are samples with equally many texts of every rank, which
        ``balanced`` draws.

    See Also
    --------
    RatedTexts : What is returned.

    Examples
    --------
    >>> from rankplane import datasets
    >>> len(datasets.load("generated").texts)
    4000
    """
    folder = data_folder(data_home)
    if name == "generated":
        pairs = generated_reviews()
    elif name == "sentences":
        pairs = parse_rated_sentences(fetch_rated_sentences(folder))
    elif name in SOURCES:
        pairs = original_texts(name, folder)
    else:
        raise ValueError(f"name must be one of {', '.join(NAMES)}. Got {name!r}.")
    texts, ranks = [], []
    for text, rank in pairs:
        texts.append(text)
        ranks.append(rank)
    return RatedTexts(name, texts, np.array(ranks, dtype=np.int64))


def original_texts(name: str, folder: Path) -> Pairs:
    """The texts of a set of the paper, with a warning if they are not as expected."""
    source = SOURCES[name]
    path = next((folder / file for file in source.files if (folder / file).exists()), None)
    if path is None:
        raise FileNotFoundError(f"{name} needs {' or '.join(source.files)} in {folder}: get it from {source.page}.")
    n_texts = 0
    try:
        for pair in source.parse(path):
            yield pair
            n_texts += 1
    except (KeyError, ValueError, SyntaxError, EOFError, tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is not the file that {source.page} offers, or is damaged: {error}.") from None
    if n_texts < source.n_texts or (n_texts > source.n_texts and not source.is_sampled):
        expected = f"{'at least ' if source.is_sampled else ''}{source.n_texts:,}"
        warnings.warn(f"{path} holds {n_texts:,} texts where {expected} were expected: is it whole?", stacklevel=3)
