"""The function for users: a fit from files that are larger than memory."""

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from sklearn.pipeline import Pipeline

from rankplane.distributed import Round
from rankplane.docstrings import documented
from rankplane.estimators import NPSVOR
from rankplane.inputs.delimited import PLAIN
from rankplane.inputs.reading import files_of
from rankplane.out_of_core.folder import Folder
from rankplane.out_of_core.memory import available, parse_size
from rankplane.out_of_core.passes import Source
from rankplane.out_of_core.work import Work
from rankplane.search import CSearchCV
from rankplane.text import TextVectorizer
from rankplane.validation import seed_of


@documented()
def fit(
    model: Any,
    paths: str | Sequence[str],
    *,
    target: str | None = None,
    text: str | Sequence[str] | None = None,
    ranks: Sequence[str] | None = None,
    memory: str | int | None = None,
    cache: str | os.PathLike[str] | None = None,
    sweeps: int | None = None,
    max_rounds: int = 100,
    on_round: Callable[[Round], Any] | None = None,
    verbose: int = 0,
) -> Any:
    """Fit a model on files that are larger than memory.

    The files are read twice: first to count, then to write their rows to blocks on disk. The fit sweeps over one block after
    another. Weights stay in memory. The planes are those of a fit in memory, up to the duality gap.

    Parameters
    ----------
    model : object
        A linear model of this package, or a :class:`rankplane.CSearchCV` of one with ``cv='auto'``; for texts, also a pipeline of
        a :class:`rankplane.TextVectorizer` and one of these. None is the model of ``rankplane train``.
    paths : str or sequence of str
        The files, or patterns such as ``'reviews-*.csv.gz'``: tables with columns of texts, or svmlight files.
    target : str
        The column of ranks. Not needed for svmlight files.
    text : str or sequence of str
        The columns of texts. None for svmlight files.
    ranks : sequence of str
        The order of ranks that are not numbers, lowest first.
    memory : int or str
        The most memory that the process may take, in bytes or in words such as ``'2G'``. None is half of what is free.
    cache : str or path-like
        Folder for the blocks, on a disk with about five times as much room as the files take. It is kept: a fit that was
        interrupted goes on where it was if it is called again. None is a folder of its own in the working directory, which is
        removed at the end.
    sweeps : int
        Sweeps over each block before the next one. None means 5.
    max_rounds : int
        Largest number of rounds over all blocks for a value of C, and for the final planes.
    on_round : callable
        Called with a :class:`rankplane.distributed.Round` after every round.
    verbose : int
        Set to 1 to show a progress bar.

    Returns
    -------
    object
        The fitted model, or pipeline.

    See Also
    --------
    rankplane.dask.train : Train on files with the workers of a Dask cluster.

    Notes
    -----
    If there are more n-grams than fit into the memory, those in the fewest documents are left out, as by a larger ``min_df``.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankplane import NPSVOR
    >>> from rankplane.out_of_core import fit
    >>> path = os.path.join(tempfile.mkdtemp(), "rows.svm")
    >>> with open(path, "w") as file:
    ...     _ = file.writelines(f"{1 + i // 10} 1:{i / 40}\\n" for i in range(40))
    >>> fit(NPSVOR(C=10), path).predict([[0.0], [1.0]])
    array([1, 4])
    """
    files = files_of([paths] if isinstance(paths, str) else list(paths))
    names = [] if text is None else [text] if isinstance(text, str) else list(text)
    if model is None:
        model = CSearchCV(NPSVOR(probability=True, decision="mae", column_weight="ranks" if names else None))
    vectorizer, last = None, model
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps]
        if len(steps) != 2 or not isinstance(steps[0], TextVectorizer):
            raise ValueError(f"model must be a model, or a pipeline of a TextVectorizer and a model. Got {model!r}.")
        vectorizer, last = steps
    elif names:
        vectorizer = TextVectorizer()
    estimator = last.estimator if isinstance(last, CSearchCV) else last
    if ranks is not None:
        estimator.set_params(ranks=list(ranks))
    if memory is None:
        memory = (available() or 2 << 30) // 2
    seed = seed_of(estimator.random_state)
    source = Source.of(files, PLAIN, seed, target=target, text=names, group=None, ranks=None if ranks is None else list(ranks))
    settings = (type(estimator).__name__, sorted((name, repr(value)) for name, value in last.get_params().items()))
    work = Work(
        source,
        lambda labels: last,
        settings,
        estimator,
        vectorizer,
        parse_size(memory),
        sweeps=sweeps,
        max_rounds=max_rounds,
        on_round=on_round,
        verbose=verbose,
    )
    own = tempfile.mkdtemp(prefix="rankplane-", dir=os.getcwd()) if cache is None else None
    try:
        with Folder(own or str(cache), is_kept=own is None) as folder:
            fitted, counted = work.run(folder)
    finally:
        if own is not None:
            shutil.rmtree(own, ignore_errors=True)
    if counted.step is None:
        return fitted
    first, second = [name for name, _ in model.steps] if isinstance(model, Pipeline) else ("features", "model")
    return Pipeline([(first, counted.step), (second, fitted)])
