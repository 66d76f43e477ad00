"""The two functions for users: fits of parts that Dask knows, and of files."""

from collections.abc import Callable, Sequence
from glob import glob
from typing import Any

from distributed import Client, Future
from sklearn.pipeline import Pipeline, make_pipeline

from rankplane.dask.launch import Shard, available, launch
from rankplane.distributed import Round
from rankplane.distributed.program import Program, batches_of, estimator_of, inputs_of, with_defaults, write
from rankplane.docstrings import documented
from rankplane.estimators import NPSVOR
from rankplane.progress import ProgressBar, ignore
from rankplane.search import CSearchCV
from rankplane.text import TextVectorizer


@documented()
def fit(
    client: Client,
    model: Any,
    parts: Any,
    *,
    workers: Sequence[str] | None = None,
    sweeps: int | None = None,
    max_rounds: int = 100,
    holdout: float | None = None,
    on_round: Callable[[Round], Any] | None = None,
    verbose: int = 0,
) -> Any:
    """Fit a model on data that is spread over the workers of a Dask cluster.

    If a worker dies, the fit goes on from the last round: the rows of the dead worker, which are made again from their tasks or
    files, start anew.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    model : object
        A linear model, a :class:`rankplane.CSearchCV` of one with ``cv='auto'``, or a pipeline of a
        :class:`rankplane.TextVectorizer` and one of these, for parts whose rows are texts. ``n_jobs`` is the number of threads of
        each worker.
    parts : list, tuple or dask collection
        A list with a part for some of the rows each: a tuple ``(X, y)`` or ``(X, y, sample_weight)`` of futures, delayed objects
        or arrays, or a future or delayed object of such a tuple. Or a tuple of Dask arrays, bags or frames, ``(X, y)`` or
        ``(X, y, sample_weight)``, with the same partitions. Or a bag of pairs of a text and its rank.
    workers : sequence of str
        Addresses or names of the workers to use. None means all.
    sweeps : int
        Local sweeps per round, as in :func:`rankplane.distributed.fit_shard`.
    max_rounds : int
        Largest number of rounds, as in :func:`rankplane.distributed.fit_shard`.
    holdout : float
        Share of the samples to hold out, as in :func:`rankplane.distributed.fit_shard`.
    on_round : callable
        Called with a :class:`rankplane.distributed.Round` after every round, in this process.
    verbose : int
        Set to 1 to show a progress bar.

    Returns
    -------
    object
        The fitted model, in this process.

    See Also
    --------
    train : From files to a model with a tuned C.
    rankplane.distributed.fit_shard : What each worker does.

    Examples
    --------
    With a cluster of two workers on this machine:

    >>> import numpy as np
    >>> from distributed import Client  # doctest: +SKIP
    >>> from rankplane import NPSVOR
    >>> X, y = np.linspace(0, 1, 40)[:, None], np.repeat([1, 2, 3, 4], 10)
    >>> with Client(n_workers=2) as client:  # doctest: +SKIP
    ...     model = fit(client, NPSVOR(C=10), [(X[::2], y[::2]), (X[1::2], y[1::2])])
    >>> model.predict([[0.0], [1.0]])  # doctest: +SKIP
    array([1, 4])
    """
    program = Program(model, sweeps, max_rounds, holdout)
    program.check()
    return run(client, program, tasks_of(parts), workers, on_round, verbose)


@documented()
def train(
    client: Client,
    paths: str | Sequence[str],
    *,
    text: str | Sequence[str],
    target: str,
    ranks: Sequence[str] | None = None,
    model: Any = None,
    output: str | None = None,
    workers: Sequence[str] | None = None,
    sweeps: int | None = None,
    max_rounds: int = 100,
    on_round: Callable[[Round], Any] | None = None,
    verbose: int = 0,
) -> Pipeline:
    """Train a model on files of ranked texts, which the workers of a Dask cluster read.

    The vocabulary and the document frequencies are counted over all files, C is chosen on a single holdout, and probabilities are
    calibrated on it.

    Parameters
    ----------
    client : distributed.Client
        The cluster. Its workers must see the files under the same paths.
    paths : str or sequence of str
        The files, or patterns such as ``'reviews-*.parquet'``, in the formats of ``rankplane train``. Every file is read by one
        worker, so there should be at least as many as workers.
    text : str or sequence of str
        The columns of texts.
    target : str
        The column of ranks.
    ranks : sequence of str
        The order of ranks that are not numbers, lowest first.
    model : object
        As in :func:`fit`. None is the model of ``rankplane train``: a :class:`rankplane.TextVectorizer`, and a search over C for
        an :class:`rankplane.NPSVOR` with column weights and probabilities.
    output : str
        File to write the model to, for the command line and ``load_model``.
    workers : sequence of str
        Addresses or names of the workers to use. None means all.
    sweeps : int
        Local sweeps per round, as in :func:`rankplane.distributed.fit_shard`.
    max_rounds : int
        Largest number of rounds, as in :func:`rankplane.distributed.fit_shard`.
    on_round : callable
        Called with a :class:`rankplane.distributed.Round` after every round, in this process.
    verbose : int
        Set to 1 to show a progress bar.

    Returns
    -------
    Pipeline
        The fitted pipeline of a vectorizer and a model.

    See Also
    --------
    fit : For data that Dask knows.

    Examples
    --------
    >>> from rankplane import dask
    >>> model = dask.train(  # doctest: +SKIP
    ...     client, "reviews-*.parquet", text="review", target="stars", output="reviews.rankplane"
    ... )
    """
    patterns = [paths] if isinstance(paths, str) else list(paths)
    found = [path for pattern in patterns for path in sorted(glob(pattern)) or [pattern]]
    if not found:
        raise ValueError("paths must name at least one file. Got none.")
    inputs = inputs_of(found, text=text, target=target, ranks=ranks)
    if model is None:
        model = CSearchCV(NPSVOR(probability=True, decision="mae", column_weight="ranks"))
    if not isinstance(model, Pipeline):
        model = make_pipeline(TextVectorizer(), model)
    program = with_defaults(Program(model, sweeps, max_rounds, inputs=inputs), ranks)
    program.check()
    fitted = estimator_of(run(client, program, found, workers, on_round, verbose))
    if output is not None:
        write(fitted, output, inputs, found)
    return fitted


def run(
    client: Client,
    program: Program,
    parts: list[Any],
    workers: Sequence[str] | None,
    on_round: Callable[[Round], Any] | None,
    verbose: int,
) -> Any:
    """Give each worker its parts, and run the program on them."""
    wanted = None if workers is None else list(workers)
    here = available(client, wanted)
    if not here:
        raise ValueError(
            f"workers must name workers of the cluster. Got {workers!r}." if workers else "The cluster has no workers."
        )
    if not parts:
        raise ValueError("parts must hold at least one part. Got none.")
    n_shards = min(len(here), len(parts))
    shards = []
    for worker, own in zip(here, batches_of(parts, n_shards), strict=False):
        shards.append(Shard(worker, [placed(client, part, worker) for part in own]))
    with ProgressBar(bool(verbose)) as bar:
        move = bar.phase(f"Fitting on {n_shards} workers") or ignore

        def show(report: Round) -> None:
            move(report.number, str(report))
            if on_round is not None:
                on_round(report)

        return launch(client, program, shards, wanted, show)


def placed(client: Client, part: Any, worker: str) -> Any:
    """A part as futures, made where it is needed unless it is there already."""
    if isinstance(part, tuple):
        return tuple(placed(client, value, worker) for value in part)
    if hasattr(part, "__dask_graph__"):
        return client.compute(part, workers=[worker], allow_other_workers=True)
    return part


def tasks_of(parts: Any) -> list[Any]:
    """The parts one by one."""
    if isinstance(parts, list):
        return [tuple(part) if isinstance(part, list) else part for part in parts]
    if isinstance(parts, tuple):
        if any(isinstance(part, Future) or not hasattr(part, "__dask_graph__") for part in parts):
            raise ValueError("parts must be a list of parts, or a tuple of Dask arrays, bags or frames.")
        columns = [partitions_of(part) for part in parts]
        if len({len(column) for column in columns}) > 1:
            counts = ", ".join(str(len(column)) for column in columns)
            raise ValueError(f"parts must have the same number of partitions. Got {counts}.")
        return list(zip(*columns, strict=True))
    if hasattr(parts, "to_delayed"):
        return partitions_of(parts)
    raise ValueError(f"parts must be a list, a tuple of Dask collections, or a bag. Got {type(parts).__name__}.")


def partitions_of(collection: Any) -> list[Any]:
    """The partitions of a collection; an array must be cut between rows only."""
    blocks = getattr(collection, "numblocks", (1,))
    if any(n_blocks != 1 for n_blocks in blocks[1:]):
        raise ValueError(f"parts must hold whole rows: rechunk arrays to one chunk across the columns. Got {blocks} chunks.")
    delayed = collection.to_delayed()
    return list(delayed.ravel() if hasattr(delayed, "ravel") else delayed)
