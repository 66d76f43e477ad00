"""The vocabulary of the documents of many workers, exactly that of all of them in one place.

Level by level: first terms, then pairs of those that remain, and so on. Each worker counts its own documents, whatever ``min_df``
is. The n-grams are distributed to workers by a hash; each adds up its share, drops those in too few documents of all, and sends
the rest to all. Numbers of n-grams are their places in the order of the result, so longer ones travel as pairs of numbers.
"""

import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankplane._core import Corpus, Vocabulary
from rankplane.distributed.comm import Bytes, Comm, exchange, gather, together
from rankplane.docstrings import documented
from rankplane.progress import ProgressBar
from rankplane.text import TextVectorizer
from rankplane.text.parts import Part, choose_columns, count, read
from rankplane.text.settings import Settings
from rankplane.validation import check_n_jobs

TERM = np.uint64(0xFFFFFFFF)
SPREAD = np.uint64(0x9E3779B97F4A7C15)
CAP = 1 << 20  # documents, beyond which n-grams are as frequent as can be
Keys = NDArray[np.uint64]
Places = NDArray[np.int64]  # of n-grams of this worker in the result; -1 for those that are not


@documented()
def fit_vectorizer(vectorizer: TextVectorizer, X: Sequence[Any], comm: Comm) -> TextVectorizer:
    """Learn the vocabulary and the document frequencies of the documents of all workers.

    Parameters
    ----------
    vectorizer : TextVectorizer
        The settings, the same on all workers. With ``hashing`` there is nothing to learn.
    X : sequence of str or bytes
        The documents of this worker, of which there may be none.
    comm : object
        The workers, as in :func:`fit_shard`.

    Returns
    -------
    TextVectorizer
        The fitted vectorizer, the same on all workers and that of all documents in one place. Its ``transform`` makes the rows of
        this worker.

    See Also
    --------
    fit_shard : Fit a model on the samples of all workers.

    Examples
    --------
    >>> from rankplane import TextVectorizer
    >>> from rankplane.distributed import Threads, fit_vectorizer
    >>> texts = ["great screen", "poor battery", "great battery", "poor screen"]
    >>> def work(comm):
    ...     return fit_vectorizer(TextVectorizer(ngram_range=(1, 1), min_df=2), texts[comm.rank :: comm.size], comm)
    >>> Threads(2).run(work)[0].get_feature_names_out().tolist()
    ['battery', 'great', 'poor', 'screen']
    """
    fitted: TextVectorizer = clone(vectorizer)
    settings = together(comm, fitted._settings)
    if settings[0].hashing is not None:
        return fitted
    n_threads = together(comm, lambda: check_n_jobs(fitted.n_jobs))
    corpora = together(comm, lambda: read(X, settings, n_threads, ProgressBar(False)))
    n_documents = int(comm.allreduce(np.array([len(X)], dtype=np.int64))[0])
    parts = [fit_part(own, corpus, n_documents, comm) for own, corpus in zip(settings, corpora, strict=True)]
    fitted._adopt(parts, n_documents, n_threads)
    return fitted


def fit_part(settings: Settings, corpus: Corpus, n_documents: int, comm: Comm) -> Part:
    """The columns of one analyzer."""
    own = Counts.of(together(comm, lambda: count(corpus, settings)), settings)
    n_levels = int(max(part[0] for part in gather(comm, np.array([own.n_levels], dtype=np.int64))))
    merge = Merge(ByWorkers(comm), least_documents(settings, n_documents))
    return part_of(settings, *merge.run([own], n_levels), n_documents, corpus.n_threads)


def least_documents(settings: Settings, n_documents: int) -> int:
    """In how many documents an n-gram must be."""
    least = settings.min_df if isinstance(settings.min_df, int) else settings.min_df * n_documents
    return max(1, math.ceil(least))


def part_of(settings: Settings, terms: list[bytes], levels: list["Level"], n_documents: int, n_threads: int) -> Part:
    """The columns of terms and n-grams that were found."""
    ends = np.cumsum([len(term) for term in terms], dtype=np.int64)
    vocabulary, first, numbered = Vocabulary.__new__(Vocabulary), 0, []
    for keys, counts, _ in levels:
        numbered.append((keys, counts.astype(np.uint32), np.arange(first, first + len(counts), dtype=np.uint32)))
        first += len(counts)
    vocabulary.__setstate__((b"".join(terms), ends, numbered))
    part = Part(settings, vocabulary, is_joined=False)
    choose_columns(part, n_documents, n_threads, [level[2] for level in levels] if settings.max_features is not None else None)
    return part


Level = tuple[Keys, NDArray[np.uint64], NDArray[np.uint64]]  # keys, in how many documents, how often


class Counts:
    """The n-grams of some documents: in how many they are and, if that was counted, how often."""

    def __init__(self, text: bytes, ends: NDArray[np.int64], levels: list[Level]) -> None:
        self.text, self.ends, self.levels = text, ends, levels
        self.places: dict[int, Places] = {}  # by level

    @classmethod
    def of(cls, vocabulary: Vocabulary, settings: Settings) -> "Counts":
        has_occurrences = settings.max_features is not None
        if has_occurrences:
            vocabulary.choose_columns(1, math.inf)
            occurrences = vocabulary.occurrence_counts()
        text, ends, found = vocabulary.__getstate__()
        levels = []
        for keys, n_documents, columns in found:
            counts = occurrences[columns] if has_occurrences else np.zeros(len(n_documents))
            levels.append((keys.astype(np.uint64), n_documents.astype(np.uint64), counts.astype(np.uint64)))
        return cls(text, ends, levels)

    @property
    def n_levels(self) -> int:
        return len(self.levels)

    @property
    def terms(self) -> list[bytes]:
        return cut(self.text, self.ends)

    def level(self, number: int) -> Level:
        return self.levels[number] if number < len(self.levels) else nothing()

    def keep(self, number: int, places: Places) -> None:
        self.places[number] = places

    def places_of(self, number: int) -> Places:
        return self.places[number]


class Shares(Protocol):
    """Distributes n-grams to shares, so that all counts of an n-gram are in one share."""

    n_shares: int

    def distribute(self, parts: Iterable[list[Bytes]]) -> Iterator[list[Bytes]]:
        """Take what each part of the documents has for each share; yields what all parts had for each of our shares."""
        ...

    def join(self, found: Bytes) -> list[Bytes]:
        """What was found in the shares of all workers."""
        ...


class ByWorkers:
    """A share for each worker, which has one part of the documents."""

    def __init__(self, comm: Comm) -> None:
        self.comm, self.n_shares = comm, comm.size

    def distribute(self, parts: Iterable[list[Bytes]]) -> Iterator[list[Bytes]]:
        for part in parts:
            yield exchange(self.comm, part)

    def join(self, found: Bytes) -> list[Bytes]:
        return gather(self.comm, found)


class Merge:
    """Adds up the counts of all documents, and keeps n-grams that are in enough of them.

    With ``most``, the largest number of n-grams to keep, "enough" becomes more as long as there are more of them.
    """

    def __init__(self, shares: Shares, least: int, most: int | None = None) -> None:
        self.shares, self.least, self.most = shares, least, most

    def run(self, parts: Sequence[Counts], n_levels: int) -> tuple[list[bytes], list[Level]]:
        """The terms, and the levels of n-grams of them."""
        terms, level = self.merge_terms(parts)
        levels = [level]
        for number in range(1, n_levels):
            level = self.merge_level(parts, number, is_last=number == n_levels - 1)
            if not len(level[1]):
                break
            levels.append(level)
        return self.pruned(terms, levels)

    def merge_terms(self, parts: Sequence[Counts]) -> tuple[list[bytes], Level]:
        found: list[tuple[bytes, int, int]] = []
        for received in self.shares.distribute(map(self.split_terms, parts)):
            totals: dict[bytes, list[int]] = {}
            for part in received:
                for term, documents, often in zip(*unpack_terms(part), strict=True):
                    total = totals.setdefault(term, [0, 0])
                    total[0] += documents
                    total[1] += often
            remaining = {term: total for term, total in totals.items() if total[0] >= self.least}
            counts = np.array(list(remaining.values()), dtype=np.uint64).reshape(-1, 2)
            for part in self.shares.join(pack_terms(list(remaining), counts[:, 0], counts[:, 1])):
                found += zip(*unpack_terms(part), strict=True)
            if self.most is not None and len(found) > self.most:
                self.raise_least([np.array([documents for _, documents, _ in found])])
                found = [each for each in found if each[1] >= self.least]
        found.sort()
        kept = [term for term, _, _ in found]
        place_of = {term: place for place, term in enumerate(kept)}
        for each in parts:
            own = each.terms
            each.keep(0, np.fromiter((place_of.get(term, -1) for term in own), np.int64, len(own)))
        counts = np.array([rest for _, *rest in found], dtype=np.uint64).reshape(-1, 2)
        return kept, (np.zeros(0, dtype=np.uint64), counts[:, 0], counts[:, 1])

    def split_terms(self, part: Counts) -> list[Bytes]:
        terms, (_, n_documents, n_occurrences) = part.terms, part.level(0)
        n_shares, sent = self.shares.n_shares, []
        share_of = np.fromiter((zlib.crc32(term) % n_shares for term in terms), np.int64, len(terms))
        for share in range(n_shares):
            mine = np.flatnonzero(share_of == share)
            sent.append(pack_terms([terms[i] for i in mine.tolist()], n_documents[mine], n_occurrences[mine]))
        return sent

    def merge_level(self, parts: Sequence[Counts], number: int, *, is_last: bool) -> Level:
        """The n-grams of the next length."""
        found: list[Level] = []
        for received in self.shares.distribute(self.split_level(part, number) for part in parts):
            total = added_up([unpack(part) for part in received])
            total = take(total, total[1] >= self.least)
            found += [unpack(part) for part in self.shares.join(pack(total))]
            if self.most is not None and sum(len(level[0]) for level in found) > self.most:
                self.raise_least([level[1] for level in found])
                found = [take(level, level[1] >= self.least) for level in found]
        level = added_up(found)
        for part in parts if not is_last else ():
            keys, is_known = self.keys_of(part, number)
            places = np.full(len(is_known), -1, dtype=np.int64)
            if len(level[0]):
                nearest = np.minimum(np.searchsorted(level[0], keys), len(level[0]) - 1)
                places[is_known] = np.where(level[0][nearest] == keys, nearest, -1)
            part.keep(number, places)
        return level

    def keys_of(self, part: Counts, number: int) -> tuple[Keys, NDArray[np.bool_]]:
        """What all documents call the n-grams of a part whose beginning and end are kept; and which these are."""
        keys = part.level(number)[0]
        pairs = part.places_of(number - 1)[keys >> np.uint64(32)], part.places_of(0)[keys & TERM]
        is_known = (pairs[0] >= 0) & (pairs[1] >= 0)
        return pairs[0][is_known].astype(np.uint64) << np.uint64(32) | pairs[1][is_known].astype(np.uint64), is_known

    def split_level(self, part: Counts, number: int) -> list[Bytes]:
        keys, is_known = self.keys_of(part, number)
        _, n_documents, n_occurrences = part.level(number)
        level = keys, n_documents[is_known], n_occurrences[is_known]
        n_shares = self.shares.n_shares
        share_of = (keys * SPREAD >> np.uint64(33)) % np.uint64(n_shares)
        return [pack(take(level, share_of == share)) for share in range(n_shares)]

    def raise_least(self, n_documents: list[NDArray[Any]]) -> None:
        """Ask for as many documents as leave few enough n-grams."""
        assert self.most is not None
        counts = np.bincount(np.minimum(np.concatenate(n_documents).astype(np.int64), CAP))
        n_left = np.cumsum(counts[::-1])[::-1]  # by how many documents are asked for
        enough = np.flatnonzero(n_left <= self.most)
        self.least = max(self.least, int(enough[0]) if len(enough) else CAP)

    def pruned(self, terms: list[bytes], levels: list[Level]) -> tuple[list[bytes], list[Level]]:
        """Without n-grams that are in too few documents, now that it is known how many are enough."""
        if self.most is None:
            return terms, levels
        if sum(len(level[1]) for level in levels) > self.most:
            self.raise_least([level[1] for level in levels])
        kept = levels[0][1] >= self.least
        of_terms = places = np.where(kept, np.cumsum(kept) - 1, -1)
        found = [(nothing()[0], levels[0][1][kept], levels[0][2][kept])]
        for level in levels[1:]:
            # An n-gram that is in enough documents has a beginning and an end that are.
            is_kept = level[1] >= self.least
            keys = level[0][is_kept]
            pairs = places[keys >> np.uint64(32)], of_terms[keys & TERM]
            keys = pairs[0].astype(np.uint64) << np.uint64(32) | pairs[1].astype(np.uint64)
            found.append((keys, level[1][is_kept], level[2][is_kept]))
            places = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
        return [term for term, is_in in zip(terms, kept.tolist(), strict=True) if is_in], found


def nothing() -> Level:
    return np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64)


def take(level: Level, rows: NDArray[Any]) -> Level:
    return level[0][rows], level[1][rows], level[2][rows]


def added_up(levels: list[Level]) -> Level:
    """The counts of several levels, in the order of their keys."""
    keys, n_documents, n_occurrences = (np.concatenate(parts) for parts in zip(*levels, strict=True))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, dtype=np.intp)
    if not len(starts):
        return nothing()
    return keys[starts], np.add.reduceat(n_documents[order], starts), np.add.reduceat(n_occurrences[order], starts)


def cut(text: bytes, ends: NDArray[np.int64]) -> list[bytes]:
    return [text[a:b] for a, b in itertools.pairwise([0, *ends.tolist()])]


def pack(level: Level) -> Bytes:
    return np.concatenate(level).view(np.uint8)


def unpack(part: Bytes) -> Level:
    keys, n_documents, n_occurrences = np.frombuffer(part.tobytes(), dtype=np.uint64).reshape(3, -1)
    return keys, n_documents, n_occurrences


def pack_terms(terms: list[bytes], n_documents: NDArray[np.uint64], n_occurrences: NDArray[np.uint64]) -> Bytes:
    numbers = np.concatenate([[len(terms)], [len(term) for term in terms], n_documents, n_occurrences]).astype(np.uint64)
    return np.concatenate([numbers.view(np.uint8), np.frombuffer(b"".join(terms), dtype=np.uint8)])


def unpack_terms(part: Bytes) -> tuple[list[bytes], list[int], list[int]]:
    whole = part.tobytes()
    n_terms = int(np.frombuffer(whole[:8], dtype=np.uint64)[0])
    lengths, n_documents, n_occurrences = np.frombuffer(whole[8 : 8 * (1 + 3 * n_terms)], dtype=np.uint64).reshape(3, -1)
    text = whole[8 * (1 + 3 * n_terms) :]
    return cut(text, np.cumsum(lengths).astype(np.int64)), n_documents.tolist(), n_occurrences.tolist()
