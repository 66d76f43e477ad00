"""What the commands of the command line do: train, predict, evaluate, explain, report, demo.

Results are on disk before anything is told about them.
"""

import io
import json
import os
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, cast

import numpy as np
from rich.console import Console
from rich.text import Text

from rankplane import modelfile
from rankplane.cli import demo, display
from rankplane.files import is_special, naming
from rankplane.inputs import writing
from rankplane.inputs.reading import Batch, Dialect, Fingerprint, InputError, OnRead, line_batches, read_all, read_batches
from rankplane.inputs.schema import Inputs, Rows, joined_fields, prepare, take
from rankplane.prediction.decisions import set_in_words
from rankplane.progress import reading_progress, working
from rankplane.report import write_report
from rankplane.streams import output_bytes, show_warning
from rankplane.tabular import CellError
from rankplane.training import fitting, measuring
from rankplane.training.cautions import Familiarity, KnownWords
from rankplane.training.choices import Choices
from rankplane.training.model import TrainedModel


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


def origin(path: str, name: str, fingerprint_name: str, fingerprint: Fingerprint) -> dict[str, str]:
    """What a model remembers of a file that it came from."""
    return {name: os.path.basename(path)} | ({} if fingerprint.value is None else {fingerprint_name: fingerprint.value})


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
    fingerprint, test_fingerprint = Fingerprint(), Fingerprint()
    batch = read_shown(file, dialect, fingerprint)
    inputs = Inputs.of(batch, file, target=target, text=text, group=group, ranks=order)
    choices.check_for(inputs)
    rows = prepare(batch, file, inputs)
    known = np.unique(rows.labels) if order is None else np.array(order)
    test_rows = None if test is None else rows_to_test(test, inputs, known, dialect, test_fingerprint)
    if test_rows is not None and inputs.kind == "text":
        rows.notes["seen_texts"] = len(set(rows.features) & set(test_rows.features) - {""})
    origins = origin(file, "source", "fingerprint", fingerprint)
    if test is not None:
        origins |= origin(test, "test", "test_fingerprint", test_fingerprint)
    console = Console(quiet=as_json)
    display.show_data(console, file, rows.notes)
    trained = fitting.train(rows, inputs, choices, test_rows, int(sys.stderr.isatty()))
    model = display.remembering(trained.model, origins)
    # Its weights are compact already, and were measured so.
    compact = None if choices.compact is None else 0.0
    remembered = modelfile.write_model(model.pipeline, output, compact=compact, metadata=model.metadata)
    measured_on = f"rows held out of {os.path.basename(file)}" if test is None else f"rows of {os.path.basename(test)}"
    if report and trained.test is not None:
        with working(sys.stderr.isatty(), "Writing the page"):
            write_report(report, replace(model, metadata=remembered), trained.test, measured_on)
    if as_json:
        terms = [vars(top) for top in model.top_features(display.N_TERMS)]
        printed({"warnings": model.metadata["warnings"], "model": output, **model.metadata, "telling": terms})
        return
    display.show_trained(console, model, measured_on)
    for path in filter(None, [output, report]):
        # Whole, however long the name: programs read it too.
        console.print(Text.assemble("Written: ", (path, "bold"), f" ({in_bytes(os.path.getsize(path))})"), soft_wrap=True)
    console.print(f"{model.metadata['data']['columns']:,} columns, {time.perf_counter() - start:.1f} s in all.", highlight=False)


def in_bytes(n_bytes: int) -> str:
    return (
        f"{n_bytes:,} bytes" if n_bytes < 10_000 else f"{n_bytes / 1e3:,.0f} kB" if n_bytes < 10e6 else f"{n_bytes / 1e6:,.0f} MB"
    )


def read_shown(path: str, dialect: Dialect, fingerprint: Fingerprint) -> Batch:
    """A whole file, with a bar while it is read."""
    with reading_progress(sys.stderr.isatty(), f"Reading {os.path.basename(path)}") as on_read:
        return read_all(path, on_read, dialect, fingerprint)


def rows_to_test(path: str, inputs: Inputs, order: Any, dialect: Dialect, fingerprint: Fingerprint) -> Rows:
    batch = read_shown(path, dialect, fingerprint)
    labels, present = inputs.labels(batch, path)
    measuring.check_known(labels, [batch.lines[row] for row in present], order, path)
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


def predict(model_path: str, file: str, output: str | None, proba: bool, rank_set: float | None, dialect: Dialect) -> None:
    """Add the predicted rank to every row, in the order of the rows; files larger than memory are fine."""
    if rank_set is not None and not 0 < rank_set < 1:
        raise InputError(f"--set must be a share between 0 and 1. Got {rank_set}.")
    if output == "-":
        output = None
    if output is not None:
        writing.check_output(output)
        check_outputs([output], [model_path, file])
    model = TrainedModel.open(model_path)
    has_lines = file == "-"
    if has_lines and dialect != Dialect():
        raise InputError("--delimiter and --encoding are for files: lines of standard input are UTF-8.")
    if has_lines and model.inputs.kind != "text":
        raise InputError(f"{model_path} takes columns, not texts, so it cannot read lines of standard input.")
    if has_lines:
        model = replace(model, inputs=Inputs(model.inputs.target, ["text"]))
    is_shown = sys.stderr.isatty() and not has_lines and output is not None
    with (
        reading_progress(is_shown, f"Reading {os.path.basename(file)}") as on_read,
        closing(rows_to_rank(file, on_read, dialect)) as batches,
    ):
        familiarity, n_rows = Familiarity(model), 0

        def ranked_batches() -> Iterator[Batch]:
            nonlocal n_rows
            for batch in batches:
                features = model.inputs.features(batch, file)
                X = transformed(model, features, file, batch.lines)
                yield replace(batch, columns=batch.columns | predictions(model, X, batch, file, proba, rank_set))
                n_rows += len(batch)
                if not has_lines:
                    familiarity.look_at(features, X)

        if not has_lines or output is not None:
            writing.write_batches(output, ranked_batches())
            warn_if_strange(model_path, file, familiarity)
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


def transformed(model: TrainedModel, features: Any, source: str, lines: Sequence[int]) -> Any:
    """What the model makes of the rows of these lines. What is wrong with a row is wrong on a line of a file."""
    if not len(lines):  # not every step takes no rows
        return None
    try:
        return model.transform(features)
    except CellError as error:
        raise InputError(f"{source} line {lines[error.row]}: {error}") from None


def predictions(
    model: TrainedModel, X: Any, batch: Batch, source: str, proba: bool, rank_set: float | None
) -> dict[str, list[Any]]:
    """The columns to add to a batch, of whose rows the model makes X."""
    order = model.classes.tolist()
    names = ["prediction", *([f"p_{label}" for label in order] if proba else []), *(["set"] if rank_set is not None else [])]
    taken = next((name for name in names if name in batch.columns), None)
    if taken is not None:
        raise InputError(f'{source} has a column "{taken}" already.')
    if not len(batch):
        return {name: [] for name in names}
    values = [model.predict(X).tolist()]
    if proba:
        values += np.round(model.predict_proba(X), 6).T.tolist()
    if rank_set is not None:
        values.append(set_in_words(model.predict_set(X, rank_set), order))
    return dict(zip(names, values, strict=True))


def warn_if_trained_on(path: str, model: TrainedModel, file: str, fingerprint: Fingerprint) -> bool:
    is_same = fingerprint.value is not None and model.metadata.get("fingerprint") == fingerprint.value
    if is_same:
        show_warning(
            f"{file} is the file that {path} was trained on, so these measures flatter it: train printed those of held-out rows"
        )
    return is_same


def warn_if_strange(path: str, file: str, familiarity: Familiarity) -> None:
    if familiarity.finding:
        show_warning(f"{file}: {familiarity.finding}, so answers say little; it may be unlike what {path} was trained on")


def evaluate(model_path: str, file: str, dialect: Dialect, as_json: bool) -> None:
    """Measure a model on a file whose ranks are known."""
    model = TrainedModel.open(model_path)
    inputs, order = model.inputs, model.classes
    true, predicted, familiarity, fingerprint = [], [], Familiarity(model), Fingerprint()
    with reading_progress(sys.stderr.isatty(), f"Reading {os.path.basename(file)}") as on_read:
        for batch in read_batches(file, on_read=on_read, dialect=dialect, fingerprint=fingerprint):
            labels, present = inputs.labels(batch, file)
            lines = [batch.lines[row] for row in present]
            measuring.check_known(labels, lines, order, file)
            if len(labels):
                features = take(inputs.features(batch, file), present)
                X = transformed(model, features, file, lines)
                true.append(labels)
                predicted.append(model.predict(X))
                familiarity.look_at(features, X)
    if not true:
        raise InputError(f"{file} has no rows with a rank.")
    warn_if_trained_on(model_path, model, file, fingerprint)
    warn_if_strange(model_path, file, familiarity)
    labels, answers = np.concatenate(true), np.concatenate(predicted)
    metrics = measuring.compared(labels, {"model": answers}, order, measuring.trained_ranks(model.metadata))
    matrix = measuring.confusion(labels, answers, order)
    if as_json:
        printed({**metrics, "ranks": order.tolist(), "confusion": matrix.tolist()})
        return
    console = Console()
    display.show_metrics(console, metrics, f"rows of {os.path.basename(file)}")
    display.show_confusion(console, matrix, order.tolist())


def record_features(path: str, inputs: Inputs, given: str) -> dict[str, list[Any]]:
    """The columns of one row that is given as a JSON object."""
    try:
        record = json.loads(given)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise InputError(f'{path} takes columns, so TEXT must be a JSON object such as {{"{inputs.columns[0]}": 1}}.')
    for name in record.keys() - {inputs.target, inputs.group}:
        Batch({key: [] for key in inputs.columns}, []).column(name, path)  # or a complaint that names the nearest
    return {name: [record.get(name)] for name in inputs.columns}


def explain(model_path: str, text: str, as_json: bool) -> None:
    """Show the rank of one text, how sure the model is, and which words pull it up or down."""
    model = TrainedModel.open(model_path)
    if model.inputs.kind == "svmlight":
        raise InputError(f"{model_path} takes numbered columns, which say nothing in words.")
    if not model.is_linear:
        raise InputError(f"{model_path} has a kernel: explanations need the weights of a linear model.")
    is_text = model.inputs.kind == "text"
    features: Any = [text] if is_text else record_features(model_path, model.inputs, text)
    if not as_json:
        display.show_explanation(Console(), model, features)
        return
    X = model.transform(features)
    shares = dict(zip(map(str, model.classes.tolist()), model.predict_proba(X)[0].tolist(), strict=True))
    boundaries = [vars(boundary) for boundary in model.explain(X)[0].boundaries]
    told = {"prediction": model.predict(X)[0], "probabilities": shares, "boundaries": boundaries}
    if is_text:
        known, counted = KnownWords(model.first_step).count([text], X)
        told["words"] = {"known": int(known[0]), "all": int(counted[0])}
    printed(told)


def report_command(model_path: str, file: str, output: str, dialect: Dialect) -> None:
    """Write a page about a model: plots, errors and settings, readable without a network."""
    check_outputs([output], [model_path, file])
    model, fingerprint = TrainedModel.open(model_path), Fingerprint()
    rows = rows_to_test(file, model.inputs, model.classes, dialect, fingerprint)
    is_trained_on = warn_if_trained_on(model_path, model, file, fingerprint)
    with working(sys.stderr.isatty(), "Measuring and writing the page"):
        measured = model.encode(rows)
        measured_on = f"rows of {os.path.basename(file)}"
        write_report(output, model, measured, measured_on, is_trained_on=is_trained_on)
    warn_if_strange(model_path, file, Familiarity(model).look_at(rows.features, measured.X))
    print(f"Written: {output} ({in_bytes(os.path.getsize(output))})")


def demo_command(output: str) -> None:
    """Train on sentences that people rated, tell the story, and write a page about the model."""
    check_outputs([os.path.join(output, name) for name in (demo.MODEL, demo.PAGE)], [])
    demo.run(output)
