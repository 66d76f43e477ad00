"""What ``rankplane train`` does with files that are larger than memory."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane import modelfile
from rankplane.distributed.shard import can_be_dealt
from rankplane.inputs.fingerprints import Fingerprint
from rankplane.inputs.reading import STDIN, Dialect, InputError, format_of, widened
from rankplane.inputs.schema import Inputs, Rows
from rankplane.options import AUTO, named
from rankplane.out_of_core.folder import Folder
from rankplane.out_of_core.memory import IN_MEMORY, Plan, available, parse_size, size_of
from rankplane.out_of_core.passes import Source
from rankplane.out_of_core.work import Work
from rankplane.progress import ProgressBar
from rankplane.search import CSearchCV
from rankplane.text.parts import NoColumnsError
from rankplane.training.candidates import ROUNDS, Candidate
from rankplane.training.choices import Choices
from rankplane.training.fitting import Trained, chosen_by_measurement, concluded, costs_of, model_of, search_for, unmeasured
from rankplane.training.model import EncodedRows


@dataclass(frozen=True)
class Limits:
    """In how much memory to train. ``needed`` is what training in memory would take, if that was the reason."""

    memory: int
    needed: int | None = None


def limits_for(
    files: Sequence[str], memory: str | None, cache: str | None, choices: Choices, dialect: Dialect, *, has_texts: bool
) -> Limits | None:
    """Limits where they are asked for, or where the files will not fit into memory; None to train in memory."""
    reason = why_not(files, choices)
    if memory is not None or cache is not None:
        if reason:
            raise InputError(f"{named('memory' if memory is not None else 'cache')} is for files that are read twice: {reason}.")
        return Limits(parse_size(memory) if memory is not None else (available() or 2 << 30) // 2)
    if dialect.limit is not None:
        return None
    free, needed = available(), size_of(files) * IN_MEMORY
    is_possible = reason is None and (has_texts or all(format_of(path)[0] == "svmlight" for path in files))
    return Limits(free // 2, needed) if free is not None and needed > free and is_possible else None


def why_not(files: Sequence[str], choices: Choices) -> str | None:
    """Why files cannot be trained on from disk."""
    if STDIN in files:
        return "standard input can be read only once"
    if choices.kernel not in ("linear", AUTO):
        return f"{named('kernel', choices.kernel)} needs all rows in memory"
    if choices.model != AUTO and not can_be_dealt(modelfile.MODELS[choices.model]()):
        return f"{named('model', choices.model)} needs all rows in memory"
    return None


def train(
    source: Source,
    choices: Choices,
    limits: Limits,
    folder: Folder,
    rows_for_test: Callable[[Inputs, Any], Rows | None],
    verbose: int,
) -> tuple[Trained, Fingerprint]:
    """Fit on files, and measure on rows that are held out, or on those that are there for the inputs and labels of training."""
    inputs, tests = source.inputs, list[Rows | None]()
    choices = choices.settled("none", "linear")
    chosen, records = chosen_by_sample(source, choices, limits, verbose)

    def search(labels: NDArray[Any]) -> CSearchCV:
        tests.append(rows_for_test(inputs, labels))
        costs = costs_of(labels, inputs, choices)
        return search_for(model_of(inputs, choices, chosen, costs), choices, costs, None, 0)

    like = modelfile.MODELS[chosen.model](probability=True)
    vectorizer = choices.vectorizer().set_params(**chosen.text) if inputs.kind == "text" else None
    work = Work(source, search, asdict(choices), like, vectorizer, limits.memory, choices.holdout, verbose=verbose)
    try:
        with folder:
            searching, counted = work.run(folder)
    except NoColumnsError:
        raise InputError("No word occurs in enough of the training texts to learn from.") from None
    if inputs.kind == "svmlight":
        inputs = replace(inputs, n_columns=counted.n_columns)
    costs = costs_of(counted.labels, inputs, choices)
    rows = tests[0] or counted.test
    if inputs.kind == "svmlight":
        rows = replace(rows, features=widened(rows.features, counted.n_columns))
    features: Any = counted.sample.features
    sample = EncodedRows(counted.sample, features if counted.step is None else counted.step.transform(features))
    trained = concluded(
        counted.step,
        searching,
        costs,
        counted.labels,
        counted.notes,
        sample,
        rows,
        inputs,
        choices,
        verbose,
        {"choice": records, "compared": []},
    )
    return trained, counted.fingerprint


def chosen_by_sample(source: Source, choices: Choices, limits: Limits, verbose: int) -> tuple[Candidate, list[dict[str, Any]]]:
    """What is not given of features and model, by measurement on rows drawn from all of them, which takes a pass of its own.

    A fit that goes on chooses again, and finds the same.
    """
    inputs = source.inputs
    if inputs.kind != "text" or not (choices.are_features_open or choices.is_model_open):
        return unmeasured(inputs, choices), []
    chunk = Plan.of(limits.memory, 0).chunk
    with ProgressBar(bool(verbose)) as bar:
        # A power of two: what the program itself takes varies a little from run to run.
        size = min(1 << (chunk.bit_length() - 1), ROUNDS[-1][1])
        rows, n_rows = source.sample(size, choices.holdout, bar.phase("Drawing rows", 1.0))
    if len(np.unique(rows.labels)) < 2:
        return unmeasured(inputs, choices), []
    return chosen_by_measurement(rows, inputs, choices, costs_of(rows.labels, inputs, choices), verbose, n_rows)
