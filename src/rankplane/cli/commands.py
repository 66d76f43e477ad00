"""What the commands of the command line do: train, predict, evaluate, explain, report, demo.

Results are on disk before anything is told about them.
"""

import io
import json
import os
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np
from rich.console import Console
from rich.text import Text

from rankplane import modelfile
from rankplane.cli import demo, display
from rankplane.files import is_special, naming
from rankplane.inputs import writing
from rankplane.inputs.reading import Batch, Dialect, InputError, OnRead, fingerprint, line_batches, read_all, read_batches
from rankplane.inputs.schema import Inputs, Rows, joined_fields, prepare, take
from rankplane.prediction.decisions import set_in_words
from rankplane.progress import reading_progress, working
from rankplane.report import write_report
from rankplane.streams import output_bytes, show_warning
from rankplane.tabular import CellError
from rankplane.training import fitting as training
from rankplane.training.cautions import Familiarity, KnownWords
from rankplane.training.fitting import Choices


def split_names(names: str | None) -> list[str] | None:
    if names is None:
        return None
    found = [name.strip() for name in names.split(",")]
    if len(found) < 2 or len(set(found)) != len(found) or not all(found):
        raise InputError(f"--ranks must name at least two different ranks, lowest first, as low,medium,high. Got {names}.")
    return found


def printed(value: Any) -> None:
    # Labels are numbers of numpy.
    text = json.dumps(value, ensure_ascii=False, indent=2, default=lambda number: number.item())
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:  # a question mark in the place of a letter would be another name
        text = json.dumps(json.loads(text), indent=2)
    print(text)


def origin(path: str, name: str, fingerprint_name: str) -> dict[str, str]:
    """What a model remembers of a file that it came from. A pipe cannot be read again."""
    return {name: os.path.basename(path)} | ({fingerprint_name: fingerprint(path)} if os.path.isfile(path) else {})


def train(
    file: str,
    output: str,
    choices: Choices,
    *,
    target: str | None,
    text: Sequence[str],
    group: str | None,
    ranks: str | None,
    test: str | None,
    report: str | None,
    dialect: Dialect,
    as_json: bool,
) -> None:
    """Train a model on a file of ranked texts or rows, measure it, and write it to one file."""
    start = time.perf_counter()
    choices.check()
    check_outputs([output, report], [file, test])
    if report and not test and not choices.holdout:
        raise InputError("--report needs rows to measure on: use --holdout or --test.")
    order = split_names(ranks)
    batch = read_shown(file, dialect)
    inputs = Inputs.of(batch, file, target=target, text=text, group=group, ranks=order)
    choices.check_for(inputs)
    rows = prepare(batch, file, inputs)
    known = np.unique(rows.labels) if order is None else np.array(order)
    test_rows = None if test is None else rows_to_test(test, inputs, known, dialect)
    if test_rows is not None and inputs.kind == "text":
        rows.notes["seen_texts"] = len(set(rows.features) & set(test_rows.features) - {""})
    # Not after the training, when the files may be gone.
    origins = origin(file, "source", "fingerprint") | (origin(test, "test", "test_fingerprint") if test is not None else {})
    console = Console(quiet=as_json)
    display.show_data(console, file, rows.notes)
    trained = training.train(rows, inputs, choices, test_rows, int(sys.stderr.isatty()))
    metadata = origins | trained.metadata
    pipeline = trained.pipeline
    # Its weights are compact already, and were measured so.
    modelfile.save_model(pipeline, output, compact=None if choices.compact is None else 0.0, metadata=metadata)
    measured_on = f"rows held out of {os.path.basename(file)}" if test is None else f"rows of {os.path.basename(test)}"
    if report:
        remembered = metadata if is_special(output) else modelfile.read_metadata(output)
        with working(sys.stderr.isatty(), "Writing the page"):
            write_report(report, pipeline, remembered, inputs, trained.test, measured_on)
    if as_json:
        terms = [vars(top) for top in training.telling(pipeline, display.N_TERMS)]
        printed({"warnings": metadata["warnings"], "model": output, **metadata, "telling": terms})
        return
    display.show_trained(console, pipeline, metadata, measured_on)
    for path in filter(None, [output, report]):
        # Whole, however long the name: programs read it too.
        console.print(Text.assemble("Written: ", (path, "bold"), f" ({in_bytes(os.path.getsize(path))})"), soft_wrap=True)
    console.print(f"{metadata['data']['columns']:,} columns, {time.perf_counter() - start:.1f} s in all.", highlight=False)


def in_bytes(n_bytes: int) -> str:
    return (
        f"{n_bytes:,} bytes" if n_bytes < 10_000 else f"{n_bytes / 1e3:,.0f} kB" if n_bytes < 10e6 else f"{n_bytes / 1e6:,.0f} MB"
    )


def read_shown(path: str, dialect: Dialect) -> Batch:
    """A whole file, with a bar while it is read."""
    with reading_progress(sys.stderr.isatty(), f"Reading {os.path.basename(path)}") as on_read:
        return read_all(path, on_read, dialect)


def rows_to_test(path: str, inputs: Inputs, order: Any, dialect: Dialect) -> Rows:
    batch = read_shown(path, dialect)
    labels, present = inputs.labels(batch, path)
    training.check_known(labels, [batch.lines[row] for row in present], order, path)
    if not len(labels):
        raise InputError(f'{path} has no ranks in column "{inputs.target}".')
    fields = joined_fields(batch, path, inputs, present)
    return Rows(take(inputs.features(batch, path), present), labels, present, {}, fields)


def check_outputs(outputs: list[str | None], inputs: list[str | None]) -> None:
    """Before the work, not after it."""
    taken = {os.path.realpath(path): path for path in inputs if path and path != "-"}
    for path in filter(None, outputs):
        folder = os.path.dirname(os.path.realpath(path))
        if os.path.isdir(path):
            raise InputError(f"{path} is a folder, not a file.")
        if not os.path.isdir(folder):
            raise InputError(f"{folder} is not a folder, so {path} cannot be written.")
        if is_special(path):
            continue
        if not os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise InputError(f"{folder} does not allow writing, so {path} cannot be written.")
        if os.path.realpath(path) in taken:
            raise InputError(f"{path} would be overwritten: give the output another name.")
        taken[os.path.realpath(path)] = path


def opened_model(path: str) -> tuple[Any, Inputs, dict[str, Any]]:
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder, not a file.")
    pipeline, metadata = modelfile.open_model(path)
    if "inputs" not in metadata or not hasattr(pipeline, "steps"):
        raise InputError(f"{path} was not written by rankplane train, so it does not say which columns it takes.")
    return pipeline, Inputs(**metadata["inputs"]), metadata


def predict(model: str, file: str, output: str | None, proba: bool, rank_set: float | None, dialect: Dialect) -> None:
    """Add the predicted rank to every row, in the order of the rows; files larger than memory are fine."""
    if rank_set is not None and not 0 < rank_set < 1:
        raise InputError(f"--set must be a share between 0 and 1. Got {rank_set}.")
    if output == "-":
        output = None
    if output is not None:
        writing.check_output(output)
        check_outputs([output], [model, file])
    pipeline, inputs, _ = opened_model(model)
    has_lines = file == "-"
    if has_lines and dialect != Dialect():
        raise InputError("--delimiter and --encoding are for files: lines of standard input are UTF-8.")
    if has_lines and inputs.kind != "text":
        raise InputError(f"{model} takes columns, not texts, so it cannot read lines of standard input.")
    if has_lines:
        inputs = Inputs(inputs.target, ["text"])
    is_shown = sys.stderr.isatty() and not has_lines and output is not None
    with (
        reading_progress(is_shown, f"Reading {os.path.basename(file)}") as on_read,
        closing(rows_to_rank(file, on_read, dialect)) as batches,
    ):
        familiarity, n_rows = Familiarity(pipeline), 0

        def ranked_batches() -> Iterator[Batch]:
            nonlocal n_rows
            for batch in batches:
                yield replace(batch, columns=batch.columns | predictions(pipeline, inputs, batch, file, proba, rank_set))
                n_rows += len(batch)
                if not has_lines:
                    familiarity.look_at(inputs.features(batch, file))

        if not has_lines or output is not None:
            writing.write_batches(output, ranked_batches())
            warn_if_strange(model, file, familiarity)
            if output is not None and not is_special(output):
                print(f"Written: {output} ({n_rows:,} rows, {in_bytes(os.path.getsize(output))})")
            return
        answers = output_bytes()
        for batch in ranked_batches():
            del batch.columns["text"]
            lines = ["\t".join(map(str, values)) + "\n" for values in zip(*batch.columns.values(), strict=True)]
            answers.write("".join(lines).encode("utf-8", "surrogateescape"))
            answers.flush()


def rows_to_rank(file: str, on_read: OnRead, dialect: Dialect) -> Generator[Batch]:
    """Lines of standard input, or the rows of a file."""
    if file != "-":
        yield from read_batches(file, on_read=on_read, dialect=dialect)
        return
    lines = line_batches(cast(io.BufferedReader, sys.stdin.buffer))
    while True:
        with naming("standard input"):
            batch = next(lines, None)
        if batch is None:
            return
        yield batch


@contextmanager
def naming_lines(source: str, lines: Sequence[int]) -> Iterator[None]:
    """What is wrong with a row is wrong on a line of a file."""
    try:
        yield
    except CellError as error:
        raise InputError(f"{source} line {lines[error.row]}: {error}") from None


def predictions(
    pipeline: Any, inputs: Inputs, batch: Batch, source: str, proba: bool, rank_set: float | None
) -> dict[str, list[Any]]:
    """The columns to add to a batch."""
    features = inputs.features(batch, source)
    order = pipeline.classes_.tolist()
    names = ["prediction", *([f"p_{label}" for label in order] if proba else []), *(["set"] if rank_set is not None else [])]
    taken = next((name for name in names if name in batch.columns), None)
    if taken is not None:
        raise InputError(f'{source} has a column "{taken}" already.')
    if not len(batch):
        return {name: [] for name in names}
    with naming_lines(source, batch.lines):
        X = features if len(pipeline.steps) == 1 else pipeline[0].transform(features)
    model = pipeline[-1]
    values = [model.predict(X).tolist()]
    if proba:
        values += np.round(model.predict_proba(X), 6).T.tolist()
    if rank_set is not None:
        values.append(set_in_words(model.predict_set(X, rank_set), order))
    return dict(zip(names, values, strict=True))


def warn_if_trained_on(model: str, file: str, metadata: dict[str, Any]) -> bool:
    is_same = file != "-" and os.path.isfile(file) and metadata.get("fingerprint") == fingerprint(file)
    if is_same:
        show_warning(
            f"{file} is the file that {model} was trained on, so these measures flatter it: train printed those of held-out rows"
        )
    return is_same


def warn_if_strange(model: str, file: str, familiarity: Familiarity) -> None:
    if familiarity.finding:
        show_warning(f"{file}: {familiarity.finding}, so answers say little; it may be unlike what {model} was trained on")


def evaluate(model: str, file: str, dialect: Dialect, as_json: bool) -> None:
    """Measure a model on a file whose ranks are known."""
    pipeline, inputs, metadata = opened_model(model)
    warn_if_trained_on(model, file, metadata)
    order = pipeline.classes_
    true, predicted, familiarity = [], [], Familiarity(pipeline)
    with reading_progress(sys.stderr.isatty(), f"Reading {os.path.basename(file)}") as on_read:
        for batch in read_batches(file, on_read=on_read, dialect=dialect):
            labels, present = inputs.labels(batch, file)
            training.check_known(labels, [batch.lines[row] for row in present], order, file)
            if len(labels):
                true.append(labels)
                features = take(inputs.features(batch, file), present)
                with naming_lines(file, [batch.lines[row] for row in present]):
                    predicted.append(pipeline.predict(features))
                familiarity.look_at(features)
    if not true:
        raise InputError(f"{file} has no rows with a rank.")
    warn_if_strange(model, file, familiarity)
    labels, answers = np.concatenate(true), np.concatenate(predicted)
    metrics = training.compared(labels, {"model": answers}, order, training.trained_ranks(metadata))
    matrix = training.confusion(labels, answers, order)
    if as_json:
        printed({**metrics, "ranks": order.tolist(), "confusion": matrix.tolist()})
        return
    console = Console()
    display.show_metrics(console, metrics, f"rows of {os.path.basename(file)}")
    display.show_confusion(console, matrix, order.tolist())


def explain(model: str, text: str, as_json: bool) -> None:
    """Show the rank of one text, how sure the model is, and which words pull it up or down."""
    pipeline, inputs, _ = opened_model(model)
    if inputs.kind == "svmlight":
        raise InputError(f"{model} takes numbered columns, which say nothing in words.")
    if not training.is_linear(pipeline):
        raise InputError(f"{model} has a kernel: explanations need the weights of a linear model.")
    features: Any = [text]
    if inputs.kind == "table":
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise InputError(f'{model} takes columns, so TEXT must be a JSON object such as {{"{inputs.columns[0]}": 1}}.')
        for name in record.keys() - {inputs.target, inputs.group}:
            Batch({key: [] for key in inputs.columns}, []).column(name, model)  # or a complaint that names the nearest
        features = {name: [record.get(name)] for name in inputs.columns}
    if not as_json:
        display.show_explanation(Console(), pipeline, inputs.target, text if inputs.kind == "text" else None, features)
        return
    shares = dict(zip(map(str, pipeline.classes_.tolist()), pipeline.predict_proba(features)[0].tolist(), strict=True))
    boundaries = [vars(boundary) for boundary in training.boundaries_of(pipeline, features)]
    told = {"prediction": pipeline.predict(features)[0], "probabilities": shares, "boundaries": boundaries}
    if inputs.kind == "text":
        told["words"] = dict(zip(("known", "all"), (int(n[0]) for n in KnownWords(pipeline[0]).count([text])), strict=True))
    printed(told)


def report_command(model: str, file: str, output: str, dialect: Dialect) -> None:
    """Write a page about a model: plots, errors and settings, readable without a network."""
    check_outputs([output], [model, file])
    pipeline, inputs, metadata = opened_model(model)
    is_trained_on = warn_if_trained_on(model, file, metadata)
    rows = rows_to_test(file, inputs, pipeline.classes_, dialect)
    warn_if_strange(model, file, Familiarity(pipeline).look_at(rows.features))
    with working(sys.stderr.isatty(), "Measuring and writing the page"):
        measured_on = f"rows of {os.path.basename(file)}"
        write_report(output, pipeline, metadata, inputs, rows, measured_on, is_trained_on=is_trained_on)
    print(f"Written: {output} ({in_bytes(os.path.getsize(output))})")


def demo_command(output: str) -> None:
    """Train on sentences that people rated, tell the story, and write a page about the model."""
    check_outputs([os.path.join(output, name) for name in (demo.MODEL, demo.PAGE)], [])
    demo.run(output)
