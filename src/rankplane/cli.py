"""The command ``rankplane``: train, predict, evaluate, explain, report, demo.

The only file that prints and exits. Whatever goes wrong on the user's side is one line on standard error and exit code 2; a
traceback means a bug.
"""

import io
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib.metadata import version
from typing import Annotated, Any, cast

import numpy as np
import typer
from rich.console import Console
from rich.text import Text

from rankplane import demo, display, modelfile, training, writing
from rankplane.cautions import Familiarity, KnownWords
from rankplane.decisions import set_in_words
from rankplane.files import is_special
from rankplane.inputs import joined_fields
from rankplane.progress import reading_progress, working
from rankplane.reading import Batch, Dialect, InputError, OnRead, fingerprint, line_batches, read_all, read_batches
from rankplane.report import write_report
from rankplane.tabular import CellError
from rankplane.training import DECISIONS, Choices, Inputs, Rows

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
# typer carries click inside itself, where the base of its complaints has no public name.
UsageError: Any = typer.BadParameter.__mro__[2]
DEFAULTS = Choices()
STOPPED = 130  # exit code after Ctrl-C, as shells have it
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Delimiter = Annotated[str | None, typer.Option(metavar="CHARACTER", help='Column separator of csv files, such as ";" or tab.')]
Encoding = Annotated[str | None, typer.Option(metavar="NAME", help="Encoding of text files, such as latin-1; UTF-8 if left out.")]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model file that train wrote.")]


def split_names(names: str | None) -> list[str] | None:
    if names is None:
        return None
    found = [name.strip() for name in names.split(",")]
    if len(found) < 2 or len(set(found)) != len(found) or not all(found):
        raise InputError(f"--ranks must name at least two different ranks, lowest first, as low,medium,high. Got {names}.")
    return found


def printed(value: Any) -> None:
    # Labels are numbers of numpy.
    print(json.dumps(value, ensure_ascii=False, indent=2, default=lambda number: number.item()))


def version_shown(is_asked: bool) -> None:
    if is_asked:
        print(f"rankplane {version('rankplane')}")
        raise typer.Exit


@app.callback()
def about(
    show_version: Annotated[
        bool, typer.Option("--version", callback=version_shown, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Ordinal regression: train on rated texts or tables, and predict the rank."""


@app.command()
def train(
    file: Annotated[str, typer.Argument(metavar="FILE", help="csv, tsv, jsonl, parquet or svmlight, also .gz or .zst.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Where to write the model.")],
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column with the ranks.")] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column with texts; give it again to join several. Without it, columns are features."),
    ] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help=", ".join(modelfile.MODELS))] = DEFAULTS.model,
    preset: Annotated[str, typer.Option(metavar="NAME", help="How texts become columns: default or paper.")] = DEFAULTS.preset,
    C: Annotated[
        float | None, typer.Option("--C", metavar="NUMBER", help="Price of violations; searched if left out.")
    ] = DEFAULTS.C,
    kernel: Annotated[
        str, typer.Option(metavar="NAME", help="linear; or rbf, poly, sigmoid, for at most some ten thousand rows.")
    ] = DEFAULTS.kernel,
    gamma: Annotated[float | None, typer.Option(metavar="NUMBER", help="Of the kernel; searched if left out.")] = DEFAULTS.gamma,
    decision: Annotated[
        str, typer.Option(metavar="NAME", help="What to answer with: " + "; ".join(f"{k}: {v}" for k, v in DECISIONS.items()) + ".")
    ] = DEFAULTS.decision,
    holdout: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of rows to measure on; 0 trains on all.")
    ] = DEFAULTS.holdout,
    test: Annotated[str | None, typer.Option(metavar="FILE", help="File to measure on instead of a holdout.")] = None,
    group: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column whose equal values stay together in splits.")] = None,
    ranks: Annotated[str | None, typer.Option(metavar="NAMES", help="Names of the ranks, lowest first: low,medium,high.")] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Of the splits and the solver.")] = DEFAULTS.seed,
    jobs: Annotated[int | None, typer.Option(metavar="NUMBER", help="Threads; -1 for all processors.")] = DEFAULTS.jobs,
    compact: Annotated[
        float | None,
        typer.Option(
            metavar="BOUND", help="Write a smaller file: round and drop weights; no score of a text changes by more than this."
        ),
    ] = None,
    ngrams: Annotated[
        str | None, typer.Option(metavar="RANGE", help="Words, or characters, that make a column: 1-2 for single ones and pairs.")
    ] = DEFAULTS.ngrams,
    analyzer: Annotated[
        str | None, typer.Option(metavar="NAME", help="What columns are made of: word, char, or char_wb, characters within words.")
    ] = DEFAULTS.analyzer,
    segmenter: Annotated[
        str | None, typer.Option(metavar="NAME", help="Find the words of texts without blanks: chinese.")
    ] = DEFAULTS.segmenter,
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="WEIGHTS", help="What errors on each rank cost: balanced, so that rare ranks count as much, or 1=2,5=0.5."
        ),
    ] = DEFAULTS.class_weight,
    report: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a page about the model, measured on the held-out rows.")
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: Json = False,
) -> None:
    """Train a model on a file of ranked texts or rows, measure it, and write it to one file."""
    start = time.perf_counter()
    added = {"ngrams": ngrams, "analyzer": analyzer, "segmenter": segmenter, "class_weight": class_weight}
    choices = Choices(model, preset, C, decision, 0 if test else holdout, seed, jobs, compact, kernel, gamma, **added)
    choices.check()
    check_outputs([output, report], [file, test])
    if report and not test and not holdout:
        raise InputError("--report needs rows to measure on: use --holdout or --test.")
    order = split_names(ranks)
    dialect = Dialect(delimiter, encoding)
    batch = read_shown(file, dialect)
    inputs = Inputs.of(batch, file, target=target, text=text or [], group=group, ranks=order)
    choices.check_for(inputs)
    rows = training.prepare(batch, file, inputs)
    known = np.unique(rows.labels) if order is None else np.array(order)
    test_rows = None if test is None else rows_to_test(test, inputs, known, dialect)
    if test_rows is not None and inputs.kind == "text":
        rows.notes["seen_texts"] = len(set(rows.features) & set(test_rows.features) - {""})
    console = Console(quiet=as_json)
    display.show_data(console, file, rows.notes)
    trained = training.train(rows, inputs, choices, test_rows, int(sys.stderr.isatty()))
    metadata = {"source": os.path.basename(file), "fingerprint": fingerprint(file)} | trained.metadata
    if test is not None:
        metadata |= {"test": os.path.basename(test), "test_fingerprint": fingerprint(test)}
    pipeline = trained.pipeline
    # Its weights are compact already, and were measured so.
    modelfile.save_model(pipeline, output, compact=None if compact is None else 0.0, metadata=metadata)
    measured_on = f"rows held out of {os.path.basename(file)}" if test is None else f"rows of {os.path.basename(test)}"
    if report:
        with working(sys.stderr.isatty(), "Writing the page"):
            write_report(report, pipeline, modelfile.read_metadata(output), inputs, trained.test, measured_on)
    if as_json:
        printed(
            {
                "warnings": metadata["warnings"],
                "model": output,
                **metadata,
                "telling": [vars(top) for top in training.telling(pipeline, display.N_TERMS)],
            }
        )
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
    return Rows(training.take(inputs.features(batch, path), present), labels, present, {}, fields)


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


@app.command()
def predict(
    model: ModelFile,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows to rank, or - for one text per line of standard input.")],
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="csv, tsv, jsonl or parquet; else standard output.")
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add a column per rank with its probability.")] = False,
    rank_set: Annotated[
        float | None, typer.Option("--set", metavar="SHARE", help="Add sets that hold the rank this often, as 0.9.")
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
) -> None:
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
    dialect = Dialect(delimiter, encoding)
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
        for batch in ranked_batches():
            del batch.columns["text"]
            for values in zip(*batch.columns.values(), strict=True):
                print("\t".join(map(str, values)))
            sys.stdout.flush()


def rows_to_rank(file: str, on_read: OnRead, dialect: Dialect) -> Generator[Batch]:
    """Lines of standard input, or the rows of a file."""
    if file == "-":
        yield from line_batches(cast(io.BufferedReader, sys.stdin.buffer))
    else:
        yield from read_batches(file, on_read=on_read, dialect=dialect)


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


@app.command()
def evaluate(
    model: ModelFile,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows with their true ranks.")],
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: Json = False,
) -> None:
    """Measure a model on a file whose ranks are known."""
    pipeline, inputs, metadata = opened_model(model)
    warn_if_trained_on(model, file, metadata)
    order = pipeline.classes_
    true, predicted, familiarity = [], [], Familiarity(pipeline)
    with reading_progress(sys.stderr.isatty(), f"Reading {os.path.basename(file)}") as on_read:
        for batch in read_batches(file, on_read=on_read, dialect=Dialect(delimiter, encoding)):
            labels, present = inputs.labels(batch, file)
            training.check_known(labels, [batch.lines[row] for row in present], order, file)
            if len(labels):
                true.append(labels)
                features = training.take(inputs.features(batch, file), present)
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


@app.command()
def explain(
    model: ModelFile,
    text: Annotated[str, typer.Argument(metavar="TEXT", help='A text; for models of columns a JSON object: {"age": 31}.')],
    as_json: Json = False,
) -> None:
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


@app.command(name="report")
def report_command(
    model: ModelFile,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows with their true ranks that the model was not trained on.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Where to write the page.")],
    delimiter: Delimiter = None,
    encoding: Encoding = None,
) -> None:
    """Write a page about a model: plots, errors and settings, readable without a network."""
    check_outputs([output], [model, file])
    pipeline, inputs, metadata = opened_model(model)
    is_trained_on = warn_if_trained_on(model, file, metadata)
    rows = rows_to_test(file, inputs, pipeline.classes_, Dialect(delimiter, encoding))
    warn_if_strange(model, file, Familiarity(pipeline).look_at(rows.features))
    with working(sys.stderr.isatty(), "Measuring and writing the page"):
        measured_on = f"rows of {os.path.basename(file)}"
        write_report(output, pipeline, metadata, inputs, rows, measured_on, is_trained_on=is_trained_on)
    print(f"Written: {output} ({in_bytes(os.path.getsize(output))})")


@app.command(name="demo")
def demo_command(
    output: Annotated[str, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the model and the page.")] = ".",
) -> None:
    """Train on sentences that people rated, tell the story, and write a page about the model."""
    check_outputs([os.path.join(output, name) for name in (demo.MODEL, demo.PAGE)], [])
    demo.run(output)


def in_words(error: BaseException) -> str:
    """One line for what went wrong."""
    if isinstance(error, BrokenPipeError):
        return "standard output was closed before all of it was written"
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename else ""
        return f"{named}{error.strerror}"
    if isinstance(error, MemoryError):
        return "not enough memory"
    return " ".join(str(error).split())


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"rankplane: warning: {in_words(Warning(str(message)))}", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = show_warning
        try:
            given = sys.argv[1:] if arguments is None else arguments
            code = typer.main.get_command(app).main(given or ["--help"], prog_name="rankplane", standalone_mode=False)
            sys.stdout.flush()
            if code == STOPPED:  # typer's answer to Ctrl-C, in place of the exception
                raise KeyboardInterrupt
        except UsageError as error:
            return failed(f"{error.format_message().rstrip('.')}. See rankplane --help.")
        except (KeyboardInterrupt, typer.Abort):
            print("rankplane: stopped", file=sys.stderr)
            return STOPPED
        except (ValueError, TypeError, OSError, MemoryError, ImportError) as error:
            if isinstance(error, OSError):
                leave_output()
            return failed(in_words(error))
        except SystemExit:  # how the library under typer answers to a closed pipe
            leave_output()
            return failed(in_words(BrokenPipeError()))
    return 0


def leave_output() -> None:
    """Python would complain at its end about what standard output did not take."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def failed(sentence: str) -> int:
    print(f"rankplane: {' '.join(sentence.split())}", file=sys.stderr)
    return 2


def run() -> None:
    # Whoever asks a process to end, such as timeout, gives it time to clean up, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())


if __name__ == "__main__":
    run()
