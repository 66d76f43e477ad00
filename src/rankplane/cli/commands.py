"""The commands of the command line: train, predict, evaluate, explain, report, demo.

Results are written before anything is printed about them.
"""

import io
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, cast

import numpy as np
from rich.console import Console
from rich.text import Text

from rankplane import modelfile
from rankplane.cli import demo, display
from rankplane.cli.columns import AddedColumns
from rankplane.files import errors_naming, is_special
from rankplane.inputs import writing
from rankplane.inputs.batches import first_rows
from rankplane.inputs.reading import (
    STDIN,
    Batch,
    Dialect,
    Fingerprint,
    InputError,
    called,
    files_of,
    line_batches,
    packed,
    read_all,
    read_batches,
    source_name,
)
from rankplane.inputs.schema import Inputs, Rows, joined_fields, packed_texts, prepare, take, texts_in
from rankplane.out_of_core import training
from rankplane.out_of_core.folder import Folder
from rankplane.out_of_core.passes import Source
from rankplane.overlap import overlapped
from rankplane.progress import reading_progress, working
from rankplane.report import write_report
from rankplane.streams import output_bytes, show_warning
from rankplane.tabular import CellError
from rankplane.text.packed import Texts
from rankplane.training import fitting, measuring
from rankplane.training.cautions import KnownWords, VocabularyCheck
from rankplane.training.choices import Choices, n_threads
from rankplane.training.costs import deciding
from rankplane.training.fitting import Trained
from rankplane.training.model import TrainedModel
from rankplane.training.splitting import split


def split_names(names: str | None) -> list[str] | None:
    if names is None:
        return None
    found = [name.strip() for name in names.split(",")]
    if len(found) < 2 or len(set(found)) != len(found) or not all(found):
        raise InputError(f"--ranks must name at least two different ranks, lowest first, such as low,medium,high. Got {names}.")
    return found


def printed(value: Any) -> None:
    # Labels are numpy scalars.
    text = json.dumps(value, ensure_ascii=False, indent=2, default=lambda number: number.item())
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:  # escape such letters, since question marks would change names
        text = json.dumps(json.loads(text), indent=2)
    print(text)


def origin(
    paths: Sequence[str], name: str, fingerprint_name: str, fingerprint: Fingerprint, limit: int | None = None
) -> dict[str, Any]:
    """The names and the fingerprint of files, for the metadata of a model; if there are several files, also those of each."""
    names = [os.path.basename(source_name(path)) for path in paths]
    found: dict[str, Any] = {name: called(names)}
    if fingerprint.value is not None:
        found[fingerprint_name] = fingerprint.value
    if len(paths) > 1:
        found |= {f"{name}_files": names, f"{fingerprint_name}s": fingerprint.values}
    return found if limit is None else found | {"limit": limit}


def train(
    given: Sequence[str],
    output: str,
    choices: Choices,
    *,
    target: str | None,
    text: Sequence[str],
    columns: Sequence[str],
    group: str | None,
    ranks: str | None,
    test: str | None,
    report: str | None,
    memory: str | None,
    cache: str | None,
    dialect: Dialect,
    as_json: bool,
) -> None:
    """Train a model on files of ranked texts or rows, measure it, and write it to one file."""
    start = time.perf_counter()
    choices.check()
    files, test_files = files_of(given), files_of([] if test is None else [test])
    check_outputs([output, report], [*files, *test_files])
    if report and not test and not choices.holdout:
        raise InputError("--report needs rows to test on: use --holdout or --test.")
    order = split_names(ranks)
    named: dict[str, Any] = {"target": target, "text": text, "columns": columns, "group": group, "ranks": order}
    console, test_fingerprint = Console(quiet=as_json), Fingerprint()

    def rows_for_test(inputs: Inputs, labels: Any) -> Rows | None:
        if not test_files:
            return None
        known = np.unique(labels) if order is None else np.array(order)
        of_test = replace(dialect, format=None, limit=None)  # which are of the files to train on
        return rows_to_test(test_files, inputs, known, of_test, test_fingerprint)

    limits = training.limits_for(files, memory, cache, choices, dialect, has_texts=bool(text) and not columns)
    if limits is None:
        trained, fingerprint = train_in_memory(console, files, dialect, choices, named, rows_for_test)
    else:
        folder = Folder(cache or f"{output}.blocks", is_kept=cache is not None)
        display.show_limits(console, called(files), limits, folder.path)
        source = Source.of(files, dialect, choices.seed, **named)
        choices.check_for(source.inputs)
        trained, fingerprint = training.train(source, choices, limits, folder, rows_for_test, int(sys.stderr.isatty()))
        display.show_data(console, called(files), trained.model.metadata["data"])
    origins = origin(files, "source", "fingerprint", fingerprint, dialect.limit)
    if test_files:
        origins |= origin(test_files, "test", "test_fingerprint", test_fingerprint)
    model = display.with_origins(trained.model, origins)
    # The weights were compacted before the model was measured.
    compact = None if choices.compact is None else 0.0
    remembered = modelfile.write_model(model.pipeline, output, compact=compact, metadata=model.metadata)
    measured_on = f"rows of {origins['test']}" if test_files else f"rows held out of {origins['source']}"
    if report and trained.test is not None:
        with working(sys.stderr.isatty(), "Writing the page"):
            write_report(report, replace(model, metadata=remembered), trained.test, measured_on)
    if as_json:
        terms = [vars(top) for top in model.top_features(display.N_TERMS)]
        printed({"warnings": model.metadata["warnings"], "model": output, **model.metadata, "important": terms})
        return
    display.show_trained(console, model, measured_on)
    for path in filter(None, [output, report]):
        # Not wrapped, since programs may read the name.
        console.print(Text.assemble("Written: ", (path, "bold"), f" ({in_bytes(os.path.getsize(path))})"), soft_wrap=True)
    console.print(f"{model.metadata['data']['columns']:,} columns, {time.perf_counter() - start:.1f} s in all.", highlight=False)


def train_in_memory(
    console: Console,
    files: Sequence[str],
    dialect: Dialect,
    choices: Choices,
    named: dict[str, Any],
    rows_for_test: Callable[[Inputs, Any], Rows | None],
) -> tuple[Trained, Fingerprint]:
    """Read whole files, and train on them."""
    fingerprint, features = Fingerprint(), [*named["text"], *named["columns"]]
    keep = [name for name in (named["target"], *features, named["group"]) if name is not None] if features else None
    rows, inputs = rows_to_train(files, dialect, fingerprint, keep, **named)
    choices.check_for(inputs)
    held = rows_for_test(inputs, rows.labels)
    if held is not None and inputs.text:
        seen, shown = (cast(Texts, packed(texts_in(part.features, inputs))) for part in (rows, held))
        rows.notes["seen_texts"] = seen.n_shared(shown)
    display.show_data(console, called(files), rows.notes)
    if held is None:
        rows, held = split(rows, choices.holdout, choices.seed)  # and the whole is forgotten
    return fitting.train_on(rows, held, inputs, choices, int(sys.stderr.isatty())), fingerprint


def in_bytes(n_bytes: int) -> str:
    return (
        f"{n_bytes:,} bytes" if n_bytes < 10_000 else f"{n_bytes / 1e3:,.0f} kB" if n_bytes < 10e6 else f"{n_bytes / 1e6:,.0f} MB"
    )


def read_shown(paths: Sequence[str], dialect: Dialect, fingerprint: Fingerprint, keep: Sequence[str] | None) -> Batch:
    """Read whole files, with a progress bar."""
    with reading_progress(sys.stderr.isatty(), f"Reading {os.path.basename(called(paths))}") as on_read:
        return read_all(paths, on_read, dialect, fingerprint, keep)


def rows_to_train(
    paths: Sequence[str], dialect: Dialect, fingerprint: Fingerprint, keep: Sequence[str] | None, **named: Any
) -> tuple[Rows, Inputs]:
    """The rows of files and what they are. Other columns are forgotten, and so is the table."""
    batch, source = read_shown(paths, dialect, fingerprint, keep), called(paths)
    inputs = Inputs.of(batch, source, **named)
    return prepare(batch, source, inputs), inputs


def rows_to_test(paths: Sequence[str], inputs: Inputs, order: Any, dialect: Dialect, fingerprint: Fingerprint) -> Rows:
    batch, source = read_shown(paths, dialect, fingerprint, inputs.names), called(paths)
    labels, present = inputs.labels(batch, source)
    measuring.check_known(labels, present, batch, order, source)
    if not len(labels):
        raise InputError(f'{source} has no ranks in column "{inputs.target}".')
    fields = joined_fields(batch, source, inputs, present)
    features = take(inputs.features(batch, source), present)
    return Rows(packed_texts(features, inputs), labels, present, {}, fields)


def check_outputs(outputs: list[str | None], inputs: list[str | None]) -> None:
    """Refuse outputs that cannot be written, before any work is done."""
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


def predict(
    model_path: str,
    given: Sequence[str],
    output: str | None,
    added: AddedColumns,
    dialect: Dialect,
    decision: str | None = None,
    jobs: int | None = None,
) -> None:
    """Add the predicted rank to every row, in the order of the rows. Files may be larger than memory."""
    added.check()
    n_jobs = n_threads(jobs)
    if output == "-":
        output = None
    has_lines = STDIN in given and dialect.format is None
    if has_lines and len(given) > 1:
        raise InputError("Lines of standard input, -, cannot be read together with files: use --format if it is a table.")
    files = list(given) if has_lines else files_of(given)
    if output is not None:
        writing.check_output(output)
        check_outputs([output], [model_path, *files])
    model = deciding(TrainedModel.open(model_path), decision)
    if has_lines and dialect != Dialect(limit=dialect.limit):
        raise InputError("--delimiter and --encoding are for files: lines of standard input are UTF-8.")
    if has_lines and model.inputs.kind != "text":
        raise InputError(f"{model_path} takes columns, not texts, so it cannot read lines of standard input.")
    if has_lines:
        dialect.check(source_name(STDIN), "text")
        model = replace(model.on_threads(n_jobs), inputs=Inputs(model.inputs.target, ["text"]))
        answer_lines(model, output, added, dialect.limit)
        return
    vocabulary_check, n_rows = VocabularyCheck(model), 0

    def ranked(batch: Batch) -> tuple[Batch, Any, Any]:
        features, X = matrix_of(model, batch)
        return replace(batch, columns={**batch.columns, **added.of(model, X, batch)}), features, X

    def ranked_batches(batches: Iterator[Batch]) -> Iterator[Batch]:
        nonlocal n_rows
        # Every thread has rows of its own, so that none waits for another.
        model.on_threads(1)
        with closing(overlapped(ranked, batches, n_jobs)) as results:
            for batch, features, X in results:
                yield batch
                n_rows += len(batch)
                vocabulary_check.add(features, X)

    with reading_progress(sys.stderr.isatty() and output is not None, f"Reading {os.path.basename(called(files))}") as on_read:
        writing.write_batches(output, ranked_batches(read_batches(files, on_read=on_read, dialect=dialect)))
    warn_if_unfamiliar(model_path, called(files), vocabulary_check)
    if output is not None and not is_special(output):
        print(f"Written: {output} ({n_rows:,} rows, {in_bytes(os.path.getsize(output))})")


def answer_lines(model: TrainedModel, output: str | None, added: AddedColumns, limit: int | None) -> None:
    """Predict the rank of every line of standard input; without an output, as soon as it is there."""

    def ranked_batches() -> Iterator[Batch]:
        for batch in read_lines(limit):
            _, X = matrix_of(model, batch)
            yield replace(batch, columns={**batch.columns, **added.of(model, X, batch)})

    if output is not None:
        n_rows = writing.write_batches(output, ranked_batches())
        if not is_special(output):
            print(f"Written: {output} ({n_rows:,} rows, {in_bytes(os.path.getsize(output))})")
        return
    stream = output_bytes()
    for batch in ranked_batches():
        columns = [writing.as_cells(values) for name, values in batch.columns.items() if name != "text"]
        stream.write("".join("\t".join(values) + "\n" for values in zip(*columns, strict=True)).encode("utf-8", "surrogateescape"))
        stream.flush()


def read_lines(limit: int | None) -> Iterator[Batch]:
    """Lines of standard input."""
    lines = first_rows(line_batches(cast(io.BufferedReader, sys.stdin.buffer)), limit)
    while True:
        with errors_naming("standard input"):
            batch = next(lines, None)
        if batch is None:
            return
        yield replace(batch, files=((0, source_name(STDIN)),))


def matrix_of(model: TrainedModel, batch: Batch, rows: Any = None) -> tuple[Any, Any]:
    """The features of rows of a batch, by default of all, and their matrix. Errors in a row name its line in the file."""
    source = batch.file_of(0, "")
    features = model.inputs.features(batch, source)
    places = np.arange(len(batch)) if rows is None else rows
    if rows is not None:
        features = take(features, rows)
    if not len(places):  # some steps refuse empty input
        return features, None
    try:
        return features, model.transform(features)
    except CellError as error:
        raise InputError(f"{batch.where(int(places[error.row]), source)}: {error}") from None


def seen_files(metadata: dict[str, Any], files: Sequence[str], fingerprint: Fingerprint) -> list[str]:
    """Those of the files whose fingerprints are in the metadata of a model, as its origin."""
    own = [metadata.get("fingerprint"), *metadata.get("fingerprints", [])]
    # Files have none if only their first rows were read.
    found = zip(files, fingerprint.files, strict=False)
    return [source_name(file) for file, of_file in found if of_file.value is not None and of_file.value in own]


def among(metadata: dict[str, Any]) -> str:
    return "among the files" if "fingerprints" in metadata else "the file"


def warn_if_trained_on(path: str, model: TrainedModel, files: Sequence[str], fingerprint: Fingerprint) -> bool:
    """Whether the model was trained or recalibrated on one of these files."""
    metadata, record = model.metadata, model.metadata.get("recalibrated") or {}
    if seen := seen_files(metadata, files, fingerprint):
        show_warning(
            f"{seen[0]} is {among(metadata)} that {path} was trained on, so these results are too good: "
            "train printed those of held-out rows"
        )
    elif seen := seen_files(record, files, fingerprint):
        show_warning(f"{seen[0]} is {among(record)} that {path} was recalibrated on, so these results are a little too good")
    return bool(seen)


def warn_if_unfamiliar(path: str, file: str, vocabulary_check: VocabularyCheck) -> None:
    if vocabulary_check.finding:
        show_warning(
            f"{file}: {vocabulary_check.finding}, so predictions are unreliable; it may be unlike what {path} was trained on"
        )


def evaluate(
    model_path: str,
    given: Sequence[str],
    dialect: Dialect,
    as_json: bool,
    decision: str | None = None,
    jobs: int | None = None,
) -> None:
    """Measure a model on files whose ranks are known."""
    n_jobs, files = n_threads(jobs), files_of(given)
    model, source = deciding(TrainedModel.open(model_path), decision).on_threads(1), called(files)
    inputs, order = model.inputs, model.classes
    true, predicted, vocabulary_check, fingerprint = [], [], VocabularyCheck(model), Fingerprint()

    def answered(batch: Batch) -> tuple[Any, Any, Any, Any]:
        file = batch.file_of(0, source)
        labels, present = inputs.labels(batch, file)
        measuring.check_known(labels, present, batch, order, file)
        features, X = matrix_of(model, batch, present)
        return labels, features, X, model.predict(X) if len(labels) else None

    with reading_progress(sys.stderr.isatty(), f"Reading {os.path.basename(source)}") as on_read:
        batches = read_batches(files, on_read=on_read, dialect=dialect, fingerprint=fingerprint, keep=inputs.names)
        with closing(overlapped(answered, batches, n_jobs)) as results:
            for labels, features, X, answers in results:
                if len(labels):
                    true.append(labels)
                    predicted.append(answers)
                    vocabulary_check.add(features, X)
    if not true:
        raise InputError(f"{source} has no rows with a rank.")
    warn_if_trained_on(model_path, model, files, fingerprint)
    warn_if_unfamiliar(model_path, source, vocabulary_check)
    labels, answers = np.concatenate(true), np.concatenate(predicted)
    metrics = measuring.compared(labels, {"model": answers}, order, measuring.trained_ranks(model.metadata))
    matrix = measuring.confusion(labels, answers, order)
    if as_json:
        printed({**metrics, "ranks": order.tolist(), "confusion": matrix.tolist()})
        return
    console = Console()
    display.show_metrics(console, metrics, f"rows of {os.path.basename(source)}")
    display.show_confusion(console, matrix, order.tolist())


def record_features(path: str, inputs: Inputs, given: str) -> Any:
    """The columns of one row that is given as a JSON object."""
    used, example = [*inputs.text, *inputs.columns], '"a text"' if inputs.text else "1"
    try:
        record = json.loads(given)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise InputError(f'{path} takes columns, so TEXT must be a JSON object such as {{"{used[0]}": {example}}}.')
    for name in record.keys() - {inputs.target, inputs.group}:
        Batch({key: [] for key in used}, []).column(name, path)  # raises if unknown, naming the nearest column
    return inputs.features(Batch({name: [record.get(name)] for name in used}, [1]), path)


def explain(model_path: str, text: str, as_json: bool, decision: str | None = None) -> None:
    """Show the predicted rank of one text, the probabilities, and the words that pull it up or down."""
    model = deciding(TrainedModel.open(model_path), decision)
    if model.inputs.kind == "svmlight":
        raise InputError(f"{model_path} takes numbered columns without names, which cannot be explained.")
    if not model.is_linear:
        needed = "explanations need the weights of a linear model: train with --kernel linear"
        raise InputError(f"{model_path} has a kernel, but {needed}.")
    features: Any = [text] if model.inputs.kind == "text" else record_features(model_path, model.inputs, text)
    if not as_json:
        display.show_explanation(Console(), model, features)
        return
    X = model.transform(features)
    shares = dict(zip(map(str, model.classes.tolist()), model.predict_proba(X)[0].tolist(), strict=True))
    boundaries = [vars(boundary) for boundary in model.explain(X)[0].boundaries]
    output = {"prediction": model.predict(X)[0], "probabilities": shares, "boundaries": boundaries}
    if (texts := model.texts(features)) is not None and model.vectorizer is not None:
        known, counted = KnownWords(model.vectorizer).count(texts, X)
        output["words"] = {"known": int(known[0]), "all": int(counted[0])}
    printed(output)


def report_command(model_path: str, given: Sequence[str], output: str, dialect: Dialect) -> None:
    """Write an HTML report about a model: plots, errors and settings, in one file."""
    files = files_of(given)
    check_outputs([output], [model_path, *files])
    model, fingerprint = TrainedModel.open(model_path).on_threads(-1), Fingerprint()
    rows = rows_to_test(files, model.inputs, model.classes, dialect, fingerprint)
    is_trained_on = warn_if_trained_on(model_path, model, files, fingerprint)
    with working(sys.stderr.isatty(), "Measuring and writing the page"):
        measured = model.encode(rows)
        measured_on = f"rows of {os.path.basename(called(files))}"
        write_report(output, model, measured, measured_on, is_trained_on=is_trained_on)
    warn_if_unfamiliar(model_path, called(files), VocabularyCheck(model).add(rows.features, measured.X))
    print(f"Written: {output} ({in_bytes(os.path.getsize(output))})")


def demo_command(output: str) -> None:
    """Train on rated sentences, explain the steps, and write a report."""
    check_outputs([os.path.join(output, name) for name in (demo.MODEL, demo.PAGE)], [])
    demo.run(output)
