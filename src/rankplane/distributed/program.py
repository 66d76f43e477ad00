"""What a launcher runs on each worker: parts of the data become rows, and rows a model."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from rankplane import modelfile
from rankplane.distributed.checkpoint import Checkpoint
from rankplane.distributed.comm import Comm, together
from rankplane.distributed.text import fit_vectorizer
from rankplane.distributed.worker import OnRound, fit_shard
from rankplane.inputs.reading import read_batches
from rankplane.inputs.schema import Inputs, take
from rankplane.text import TextVectorizer


@dataclass(frozen=True)
class Program:
    """A fit, ready to be sent to workers. ``model`` may be a pipeline of a ``TextVectorizer`` and a model."""

    model: Any
    sweeps: int | None = None
    max_rounds: int = 100
    holdout: float | None = None
    inputs: Inputs | None = None  # how to read parts that are files

    def check(self) -> None:
        """Refuse what no worker can run."""
        if isinstance(self.model, Pipeline):
            steps = [step for _, step in self.model.steps]
            if len(steps) != 2 or not isinstance(steps[0], TextVectorizer):
                raise ValueError(f"model must be a model, or a pipeline of a TextVectorizer and a model. Got {self.model!r}.")

    def run(self, parts: Sequence[Any], comm: Comm, on_round: OnRound | None = None, checkpoint: Checkpoint | None = None) -> Any:
        """Fit on the parts of this worker and those of all others; returns the fitted model on worker 0."""
        X, y, weights = together(comm, lambda: joined([self.rows_of(part) for part in parts]))
        options: dict[str, Any] = {"sweeps": self.sweeps, "max_rounds": self.max_rounds, "holdout": self.holdout}
        options |= {"sample_weight": weights, "on_round": on_round, "checkpoint": checkpoint}
        if not isinstance(self.model, Pipeline):
            return fit_shard(self.model, X, y, comm, **options)
        (name, step), (name_of_model, model) = self.model.steps
        texts = [] if X is None else X
        vectorizer = fit_vectorizer(step, texts, comm)
        X = together(comm, lambda: vectorizer.transform(texts) if len(texts) else None)
        fitted = fit_shard(model, X, y, comm, **options)
        if fitted is None:
            return None
        vectorizer.set_params(verbose=0)
        return Pipeline([(name, vectorizer), (name_of_model, fitted)])

    def rows_of(self, part: Any) -> tuple[Any, ...]:
        """X, y and, if there are any, weights of a part: of a file, of a tuple of them, or of pairs of a row and its rank."""
        if self.inputs is not None:
            return rows_of_file(os.fspath(part), self.inputs)
        if isinstance(part, tuple) and 2 <= len(part) <= 3 and not is_pair(part):
            return part
        if isinstance(part, list) and all(is_pair(row) for row in part):
            return ([row for row, _ in part], [rank for _, rank in part]) if part else (None, None)
        raise ValueError(f"parts must be (X, y), (X, y, sample_weight) or lists of pairs. Got {type(part).__name__}.")


def is_pair(row: Any) -> bool:
    """A row and its rank."""
    return isinstance(row, tuple) and len(row) == 2 and (np.isscalar(row[1]) or row[1] is None)


def joined(rows: Sequence[tuple[Any, ...]]) -> tuple[Any, Any, Any]:
    """The rows of several parts below each other; None without any."""
    rows = [part for part in rows if part[0] is not None and n_rows_of(part[0]) > 0]
    if not rows:
        return None, None, None
    if len({len(part) for part in rows}) > 1:
        raise ValueError("parts must all have sample weights, or none of them.")
    X, y, *weights = (stacked(values) for values in zip(*rows, strict=True))
    return X, y, weights[0] if weights else None


def n_rows_of(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def stacked(values: Sequence[Any]) -> Any:
    first = values[0]
    if len(values) == 1:
        return first
    if sp.issparse(first):
        return sp.vstack(values, format="csr")
    if isinstance(first, list):
        return [value for part in values for value in part]
    if hasattr(first, "iloc"):
        import pandas

        return pandas.concat(values)
    return np.concatenate(values)


def rows_of_file(path: str, inputs: Inputs) -> tuple[Any, Any]:
    """The texts of a file and their ranks."""
    texts: list[str] = []
    labels: list[Any] = []
    for batch in read_batches(path):
        found, present = inputs.labels(batch, path)
        texts += take(inputs.features(batch, path), present)
        labels += found.tolist()
    return texts, labels


def inputs_of(paths: Sequence[str], *, text: str | Sequence[str], target: str, ranks: Sequence[str] | None) -> Inputs:
    """Which columns of files are texts and ranks, checked against the first file."""
    names = [text] if isinstance(text, str) else list(text)
    if not names:
        raise ValueError("text must name at least one column of texts. Got none.")
    batch = next(iter(read_batches(paths[0], size=256)))
    return Inputs.of(batch, paths[0], target=target, text=names, group=None, ranks=None if ranks is None else list(ranks))


def write(pipeline: Pipeline, path: str, inputs: Inputs, sources: Sequence[str]) -> None:
    """Write a model file that the commands of the command line can use."""
    metadata = {"inputs": asdict(inputs), "sources": [os.path.basename(source) for source in sources]}
    modelfile.write_model(pipeline, path, metadata=metadata)


def estimator_of(pipeline: Pipeline) -> Pipeline:
    """The pipeline with the best estimator of a search in its place."""
    (name, step), (name_of_model, model) = pipeline.steps
    return Pipeline([(name, step), (name_of_model, getattr(model, "best_estimator_", model))])


def batches_of(items: Sequence[Any], n_batches: int) -> Iterator[list[Any]]:
    """Split items into so many batches, neighbours together; the same every time."""
    for numbers in np.array_split(np.arange(len(items)), n_batches):
        yield [items[number] for number in numbers]


def with_defaults(program: Program, ranks: Sequence[str] | None) -> Program:
    """The program with the ranks in their order."""
    model = clone(program.model)
    if ranks is not None:
        estimator = getattr(model[-1], "estimator", model[-1])
        estimator.set_params(ranks=list(ranks))
    return replace(program, model=model)
