"""Two passes over files that are larger than memory. The first counts: ranks, n-grams, entries. The second writes rows to blocks.

Rows come in chunks. What a pass has made of a chunk is a file in the folder, complete or absent, so a pass that was interrupted
reads the files again, but works only on the chunks that are missing. Rows go to blocks at random, rows that are held out to blocks
of their own, and copies of a text go wherever their first one goes.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankplane.distributed.text import Counts, Merge, least_documents, part_of
from rankplane.files import replacing
from rankplane.inputs.reading import Batch, Dialect, Fingerprint, InputError, called, packed, read_batches, widened
from rankplane.inputs.schema import Inputs, Rows, take
from rankplane.inputs.svmlight import MAX_COLUMN
from rankplane.options import named as named_option
from rankplane.out_of_core.counting import ByFiles, StoredCounts, store
from rankplane.out_of_core.folder import Folder
from rankplane.out_of_core.memory import N_TOGETHER, Plan
from rankplane.progress import ProgressBar
from rankplane.solver.blocks import Blocks, write_block
from rankplane.tabular import is_missing
from rankplane.text import TextVectorizer
from rankplane.text.packed import Texts, concatenated
from rankplane.text.parts import count, read
from rankplane.validation import check_n_jobs

BATCH = 1024  # rows, so that long texts do not fill the memory at once
N_SAMPLED = 1000  # rows to look at when there are none to test on
OnRead = Callable[[float], None]


@dataclass(frozen=True)
class Source:
    """Files and how to read them, as often as needed."""

    files: list[str]
    inputs: Inputs
    dialect: Dialect
    seed: int

    @classmethod
    def of(cls, files: list[str], dialect: Dialect, seed: int, **named: Any) -> "Source":
        """Files whose first rows tell which columns they have; how many an svmlight file has, only all rows do."""
        batch, name = next(iter(read_batches(files, size=256, dialect=dialect))), called(files)
        inputs = Inputs.of(batch, name, **named)
        if inputs.columns:
            raise InputError(
                f"{name} has columns of numbers and categories, which must fit into memory: name columns of texts by "
                f"{named_option('text')}, or use svmlight files."
            )
        return cls(files, replace(inputs, n_columns=MAX_COLUMN) if inputs.kind == "svmlight" else inputs, dialect, seed)

    def batches(self, on_read: OnRead | None, fingerprint: Fingerprint | None = None) -> Iterator[Batch]:
        keep = None if self.inputs.kind == "svmlight" else [*self.inputs.names, *filter(None, [self.inputs.group])]
        return read_batches(self.files, size=BATCH, on_read=on_read, dialect=self.dialect, fingerprint=fingerprint, keep=keep)

    def chunks(
        self, n_bytes: int, on_read: OnRead | None, notes: "Notes | None" = None, fingerprint: Fingerprint | None = None
    ) -> Iterator["Chunk"]:
        """The rows with a rank, some of them at a time; the same every time."""
        gathered: list[Chunk] = []
        n_rows = 0
        for batch in self.batches(on_read, fingerprint):
            name = batch.file_of(0, called(self.files))
            labels, present = self.inputs.labels(batch, name)
            features = take(self.inputs.features(batch, name), present)
            if notes is not None:
                notes.add(batch, name, self.inputs, present)
            if not len(labels):
                continue
            features = packed(features) if self.inputs.kind == "text" else features
            gathered.append(Chunk(features, labels, self._keys(batch, name, features, present, n_rows)))
            n_rows += len(labels)
            if sum(chunk.n_bytes for chunk in gathered) >= n_bytes:
                yield Chunk.joined(gathered)
                gathered = []
        if gathered:
            yield Chunk.joined(gathered)

    def sample(self, n_bytes: int, test_share: float, on_read: OnRead | None) -> tuple[Rows, int]:
        """Rows drawn at random that take at most so many bytes, and one of each rank; how many rows there are. Rows that may be set
        aside to test on are not among them.
        """
        kept, firsts, known, share, n_rows = list[Chunk](), list[Chunk](), set[Any](), 1.0, 0
        for chunk in self.chunks(n_bytes, on_read):
            n_rows += len(chunk.labels)
            chunk = chunk.take(fraction(chunk.keys) >= test_share)
            is_first = np.zeros(len(chunk.labels), dtype=bool)
            is_first[[i for label, i in zip(*np.unique(chunk.labels, return_index=True), strict=True) if label not in known]] = True
            known |= set(chunk.labels[is_first].tolist())
            firsts.append(own_copy(chunk.take(is_first)))
            kept.append(own_copy(chunk.take(scattered(chunk.keys) >= 1 - share)))
            while (taken := sum(part.n_bytes for part in kept)) > n_bytes:
                share *= 0.9 * n_bytes / taken
                kept = [own_copy(part.take(scattered(part.keys) >= 1 - share)) for part in kept]
        return rows_of([*kept, *firsts], {}, self.inputs.n_columns or 0), n_rows

    def _keys(self, batch: Batch, name: str, features: Any, present: NDArray[np.intp], n_before: int) -> NDArray[np.uint64]:
        """Numbers that look random, the same for rows that belong together."""
        if self.inputs.group is not None:
            values: Any = (str(value).encode() for value in take(batch.column(self.inputs.group, name), present))
        elif isinstance(features, Texts):
            values = (key or b"" for key in Texts.keys(features))
        else:
            values = (str(number).encode() for number in range(n_before, n_before + len(present)))
        salt = self.seed.to_bytes(16, "little")
        digests = b"".join(hashlib.blake2b(value, digest_size=8, key=salt).digest() for value in values)
        return np.frombuffer(digests, dtype=np.uint64)


@dataclass(frozen=True)
class Chunk:
    """Some rows, with keys that tell where they go."""

    features: Any
    labels: NDArray[Any]
    keys: NDArray[np.uint64]

    @property
    def n_bytes(self) -> int:
        return self.features.n_bytes if isinstance(self.features, Texts) else 12 * int(self.features.nnz)

    @classmethod
    def joined(cls, chunks: Sequence["Chunk"]) -> "Chunk":
        features = [chunk.features for chunk in chunks]
        labels, keys = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("labels", "keys"))
        if isinstance(features[0], Texts):
            return cls(concatenated(features), labels, keys)
        width = max(part.shape[1] for part in features)
        for part in features:
            part.resize(part.shape[0], width)
        return cls(sp.vstack(features, format="csr"), labels, keys)

    def take(self, is_wanted: NDArray[np.bool_]) -> "Chunk":
        rows = np.flatnonzero(is_wanted)
        return Chunk(take(self.features, rows), self.labels[rows], self.keys[rows])


@dataclass
class Notes:
    """What ``rankplane train`` says about a table, gathered row by row."""

    rows: int = 0
    missing_target: int = 0
    empty_texts: int = 0
    missing_values: Counter[str] = field(default_factory=Counter)

    def add(self, batch: Batch, name: str, inputs: Inputs, present: NDArray[np.intp]) -> None:
        self.rows += len(batch)
        self.missing_target += len(batch) - len(present)
        for column in inputs.text:
            self.missing_values[column] += sum(map(is_missing, take(batch.column(column, name), present)))
        if inputs.text:
            self.empty_texts += sum(not text.strip() for text in take(inputs.features(batch, name), present))

    def as_words(self, ranks: dict[str, int], n_copies: int) -> dict[str, Any]:
        found: dict[str, Any] = {"rows": self.rows, "missing_target": self.missing_target, "ranks": ranks}
        if self.missing_values:
            found["missing_values"] = dict(self.missing_values)
            found |= {"number_texts": [], "empty_texts": self.empty_texts, "duplicate_texts": n_copies}
        return found


def fraction(keys: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Keys as numbers from 0 to 1."""
    return keys.astype(np.float64) / 2.0**64


def scattered(keys: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Other numbers from 0 to 1: the rows to test on have the smallest keys, so that these are no measure of chance any more."""
    mixed = (keys * np.uint64(0x9E3779B97F4A7C15)) ^ (keys >> np.uint64(29))
    return fraction(mixed * np.uint64(0xBF58476D1CE4E5B9))


@dataclass(frozen=True)
class Counted:
    """What the first pass has found: of the rows to train on, and the rows to test on."""

    labels: NDArray[Any]
    keys: NDArray[np.uint64]
    n_columns: int
    n_entries: int
    step: TextVectorizer | None
    test: Rows
    sample: Rows
    notes: dict[str, Any]
    fingerprint: Fingerprint


def first_pass(
    source: Source,
    folder: Folder,
    plan: Plan,
    vectorizer: TextVectorizer | None,
    test_share: float,
    most_columns: int,
    on_read: OnRead | None,
) -> Counted:
    """Count, and set the rows to test on aside."""
    settings = () if vectorizer is None else vectorizer._settings()
    is_hashing = bool(settings) and settings[0].hashing is not None
    notes, fingerprint = Notes(), Fingerprint()
    labels, keys, tests, samples, counts = [], [], list[Chunk](), list[Chunk](), [list[StoredCounts]() for _ in settings]
    n_columns = n_entries = n_rows = 0
    for number, chunk in enumerate(source.chunks(plan.chunk, on_read, notes, fingerprint)):
        is_test = fraction(chunk.keys) < test_share
        if is_test.any():
            tests.append(own_copy(chunk.take(is_test)))
            chunk = chunk.take(~is_test)
        labels.append(chunk.labels)
        keys.append(chunk.keys)
        if sum(len(part.labels) for part in samples) < N_SAMPLED:
            samples.append(own_copy(chunk.take(np.arange(len(chunk.labels)) < N_SAMPLED)))
        n_rows += len(chunk.labels)
        if not isinstance(chunk.features, Texts):
            n_columns = max(n_columns, int(chunk.features.indices.max(initial=-1)) + 1)
            n_entries += int(chunk.features.nnz)
        elif is_hashing:
            n_entries += chunk.features.n_bytes // 4  # about so many words
        else:
            assert vectorizer is not None
            paths = [folder.path / f"counts-{part}-{number:05d}.npz" for part in range(len(settings))]
            if not all(path.exists() for path in paths):
                corpora = read(chunk.features, settings, check_n_jobs(vectorizer.n_jobs), ProgressBar(False))
                for path, corpus, own in zip(paths, corpora, settings, strict=True):
                    store(path, Counts.of(count(corpus, own), own))
                del corpora, corpus
            for path, of_part in zip(paths, counts, strict=True):
                of_part.append(StoredCounts(path))
    if not labels:
        raise InputError(f'{called(source.files)} has no ranks in column "{source.inputs.target}".')
    if is_hashing:
        n_columns = sum(2 ** (own.hashing or 0) for own in settings)
    elif vectorizer is not None:
        parts = []
        for own, of_part in zip(settings, counts, strict=True):
            merge = Merge(ByFiles(folder.path, plan.n_shares), least_documents(own, n_rows), most_columns // len(settings))
            terms, levels = merge.run(of_part, max(stored.n_levels for stored in of_part))
            n_entries += sum(int(level[1].sum()) for level in levels)
            parts.append(part_of(own, terms, levels, n_rows, check_n_jobs(vectorizer.n_jobs)))
            folder.state["least"] = max(folder.state.get("least", 1), merge.least)
            del terms, levels
        vectorizer._adopt(parts, n_rows, check_n_jobs(vectorizer.n_jobs))
        n_columns = sum(part.n_columns for part in parts)
        folder.remove(["counts-"])
    all_labels, all_keys = np.concatenate(labels), np.concatenate(keys)
    names = {str(label): n for label, n in zip(*np.unique(all_labels, return_counts=True), strict=True)}
    n_copies = len(all_keys) - len(np.unique(all_keys)) if source.inputs.group is None else 0
    order = source.inputs.ranks or list(names)
    spoken = notes.as_words({rank: int(names.get(rank, 0)) for rank in order}, n_copies)
    test, sample = (rows_of(part, spoken, n_columns) for part in (tests, samples))
    return Counted(all_labels, all_keys, n_columns, n_entries, vectorizer, test, sample, spoken, fingerprint)


def own_copy(chunk: Chunk) -> Chunk:
    """The same without the memory of other rows."""
    features = chunk.features.packed() if isinstance(chunk.features, Texts) else chunk.features.copy()
    return Chunk(features, chunk.labels, chunk.keys)


def rows_of(chunks: list[Chunk], notes: dict[str, Any], n_columns: int) -> Rows:
    """Rows as measuring takes them."""
    if not chunks:
        return Rows([], np.zeros(0), np.zeros(0, dtype=np.intp), notes)
    chunk = Chunk.joined(chunks)
    features = chunk.features if isinstance(chunk.features, Texts) else widened(chunk.features, n_columns)
    return Rows(features, chunk.labels, np.unique(chunk.keys, return_inverse=True)[1].ravel(), notes)


def save_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """A file of arrays that is there when it is complete."""
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


@dataclass(frozen=True)
class Layout:
    """Which block each row goes to; those that are held out go to the first ones."""

    block_of: NDArray[np.int32]
    n_blocks: int
    is_held: NDArray[np.bool_]

    @classmethod
    def of(cls, keys: NDArray[np.uint64], share: float, n_entries: int, entries_of_block: int, seed: int) -> "Layout":
        is_held = scattered(keys) < share
        random = np.random.default_rng(seed)
        block_of, n_blocks = np.zeros(len(keys), dtype=np.int32), 0
        for rows in (np.flatnonzero(is_held), np.flatnonzero(~is_held)):
            if len(rows):
                n_here = max(1, -(-n_entries * len(rows) // len(keys) // entries_of_block))
                block_of[rows] = n_blocks + random.permutation(np.arange(len(rows)) % n_here)
                n_blocks += n_here
        return cls(block_of, n_blocks, is_held)

    @property
    def order(self) -> NDArray[np.intp]:
        """The rows in the order of their blocks."""
        return np.argsort(self.block_of, kind="stable")


def second_pass(
    source: Source,
    folder: Folder,
    plan: Plan,
    counted: Counted,
    layout: Layout,
    test_share: float,
    on_read: OnRead | None,
) -> Blocks:
    """Write the rows of each chunk in the order of their blocks, then gather the blocks."""
    first, n_chunks = 0, 0
    for number, chunk in enumerate(source.chunks(plan.chunk, on_read)):
        if test_share > 0:
            chunk = chunk.take(fraction(chunk.keys) >= test_share)
        own = layout.block_of[first : first + len(chunk.labels)]
        if len(own) != len(chunk.labels) or not np.array_equal(chunk.keys, counted.keys[first : first + len(own)]):
            raise InputError(f"{called(source.files)} changed while it was read.")
        first, n_chunks = first + len(own), number + 1
        stored = StoredRows(folder.path, number)
        if not stored.is_there:
            X = chunk.features if counted.step is None else counted.step.transform(chunk.features)
            stored.write(X, own, layout.n_blocks)
    if first != len(layout.block_of):
        raise InputError(f"{called(source.files)} changed while it was read.")
    chunks = [StoredRows(folder.path, number) for number in range(n_chunks)]
    facts = []
    for block in range(layout.n_blocks):
        X = gathered([chunk.rows_of(block) for chunk in chunks], counted.n_columns)
        facts.append(write_block(folder.path, block, X))
    blocks = Blocks(folder.path, facts, counted.n_columns, X.dtype, N_TOGETHER)
    blocks.save()
    folder.remove(["chunk-"])
    return blocks


class StoredRows:
    """The rows of a chunk on disk, in the order of their blocks, so that those of a block are a run. Arrays are mapped."""

    NAMES = ("data", "indices", "starts", "ends")  # the last one is there when all are

    def __init__(self, folder: Path, number: int) -> None:
        self.paths = [folder / f"chunk-{number:05d}-{name}.npy" for name in self.NAMES]

    @property
    def is_there(self) -> bool:
        return self.paths[-1].exists()

    def write(self, X: sp.csr_matrix, block_of: NDArray[np.int32], n_blocks: int) -> None:
        X = X[np.argsort(block_of, kind="stable")]
        ends = np.cumsum(np.bincount(block_of, minlength=n_blocks))
        for path, array in zip(self.paths, (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int64), ends), strict=True):
            with replacing(path) as file:
                np.save(file, array)

    def rows_of(self, block: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        data, indices, all_starts, ends = (np.load(path, mmap_mode="r") for path in self.paths)
        first, last = (int(ends[block - 1]) if block else 0), int(ends[block])
        starts = np.array(all_starts[first : last + 1])
        entries = slice(int(starts[0]), int(starts[-1]))
        return data[entries], indices[entries], np.diff(starts)


def gathered(parts: Sequence[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]], n_columns: int) -> sp.csr_matrix:
    """One matrix of rows of several chunks."""
    data, indices, sizes = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return sp.csr_matrix((data, indices, starts.astype(np.int64)), shape=(len(sizes), n_columns), copy=False)
