"""The command ``rankplane``: train, predict, evaluate, explain, report, demo.

The only file that prints and exits. Whatever goes wrong on the user's side is one line on standard error and exit code 2; a
traceback means a bug.
"""

import json
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from rankplane import demo, display, modelfile, training, writing
from rankplane.decisions import set_in_words
from rankplane.files import replacing
from rankplane.highlights import shaded, text_pulls
from rankplane.reading import Batch, InputError, fingerprint, line_batches, read_all, read_batches
from rankplane.report import make_report
from rankplane.training import Choices, Inputs, Rows

app = typer.Typer(
    help="Ordinal regression: train on rated texts or tables, and predict the rank.",
    add_completion=False,
    pretty_exceptions_enable=False,
)
# typer carries click inside itself, where the base of its complaints has no public name.
UsageError: Any = typer.BadParameter.__mro__[2]
DEFAULTS = Choices()
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
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


@app.command()
def train(
    file: Annotated[str, typer.Argument(metavar="FILE", help="csv, tsv, jsonl, parquet or svmlight, also .gz or .zst.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Where to write the model.")],
    target: Annotated[str | None, typer.Option(help="Column with the ranks.")] = None,
    text: Annotated[
        list[str] | None, typer.Option(help="Column with texts; several are joined. None: columns are features.")
    ] = None,
    model: Annotated[str, typer.Option(help=", ".join(modelfile.MODELS))] = DEFAULTS.model,
    preset: Annotated[str, typer.Option(help="How texts become columns: default or paper.")] = DEFAULTS.preset,
    C: Annotated[float | None, typer.Option("--C", help="Price of violations; searched if left out.")] = DEFAULTS.C,
    decision: Annotated[str, typer.Option(help="Measure to answer for: mae, mse, accuracy, or ranker.")] = DEFAULTS.decision,
    holdout: Annotated[float, typer.Option(help="Share of rows to measure on; 0 trains on all.")] = DEFAULTS.holdout,
    test: Annotated[str | None, typer.Option(help="File to measure on instead of a holdout.")] = None,
    group: Annotated[str | None, typer.Option(help="Column whose equal values stay together in splits.")] = None,
    ranks: Annotated[str | None, typer.Option(help="Names of the ranks, lowest first: low,medium,high.")] = None,
    seed: Annotated[int, typer.Option(help="Of the split and the solver.")] = DEFAULTS.seed,
    jobs: Annotated[int | None, typer.Option(help="Threads; -1 for all processors.")] = DEFAULTS.jobs,
    compact: Annotated[float | None, typer.Option(help="Drop small weights; no score changes by more than this.")] = None,
    report: Annotated[str | None, typer.Option(help="Write a page about the model, measured on the held-out rows.")] = None,
    as_json: Json = False,
) -> None:
    """Train a model on a file of ranked texts or rows, measure it, and write it to one file."""
    choices = Choices(model=model, preset=preset, C=C, decision=decision, holdout=0 if test else holdout, seed=seed, jobs=jobs)
    choices.check()
    for path in [output, *([report] if report else [])]:
        check_folder(path)
    if report and not test and not holdout:
        raise InputError("--report needs rows to measure on: use --holdout or --test.")
    order = split_names(ranks)
    batch = read_all(file)
    inputs = Inputs.of(batch, file, target=target, text=text or [], group=group, ranks=order)
    rows = training.prepare(batch, file, inputs, group)
    # Progress goes where it does not mix with what is printed.
    console = Console(quiet=as_json)
    display.show_data(console, file, rows.notes)
    test_rows = None if test is None else rows_to_test(test, inputs, np.unique(rows.labels) if order is None else np.array(order))
    verbose = int(console.is_terminal and not as_json)
    trained = training.train(rows, inputs, choices, test_rows, verbose)
    metadata = {"fingerprint": fingerprint(file), "source": os.path.basename(file)} | trained.metadata
    modelfile.save_model(trained.pipeline, output, compact=compact, metadata=metadata)
    if report:
        write_page(
            report,
            trained.pipeline,
            modelfile.read_metadata(output),
            inputs,
            trained.test,
            test or f"rows held out of {os.path.basename(file)}",
        )
    if as_json:
        printed({"model": output, **metadata, "telling": [vars(top) for top in telling(trained.pipeline)]})
        return
    display.show_search(console, metadata["search"])
    display.show_metrics(console, metadata["metrics"], "Held out" if test is None else test)
    display.show_terms(console, telling(trained.pipeline))
    for path in [output, *([report] if report else [])]:
        console.print(f"Written: [bold]{escape(path)}[/bold] ({os.path.getsize(path):,} bytes)")


def write_page(path: str, pipeline: Any, metadata: dict[str, Any], inputs: Inputs, rows: Rows, source: str) -> None:
    page = make_report(pipeline, metadata, inputs, rows, os.path.basename(source) if os.path.exists(source) else source)
    with replacing(path) as file:
        file.write(page.encode("utf-8", "replace"))


def telling(pipeline: Any) -> Any:
    names = pipeline[0].get_feature_names_out() if len(pipeline.steps) > 1 else None
    return pipeline[-1].top_features(names, n=display.N_TERMS)


def rows_to_test(path: str, inputs: Inputs, order: Any) -> Rows:
    batch = read_all(path)
    labels, present = inputs.labels(batch, path)
    training.check_known(labels, [batch.lines[row] for row in present], order, path)
    if not len(labels):
        raise InputError(f'{path} has no ranks in column "{inputs.target}".')
    return Rows(training.take(inputs.features(batch, path), present), labels, None, present, {})


def check_folder(path: str) -> None:
    """Before the work, not after it."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder, not a file.")
    if not os.path.isdir(folder):
        raise InputError(f"{folder} is not a folder, so {path} cannot be written.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder} does not allow writing, so {path} cannot be written.")


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
    output: Annotated[str | None, typer.Option("-o", "--output", help="csv, tsv, jsonl or parquet; else standard output.")] = None,
    proba: Annotated[bool, typer.Option(help="Add a column per rank with its probability.")] = False,
    rank_set: Annotated[float | None, typer.Option("--set", help="Add sets that hold the rank this often, as 0.9.")] = None,
) -> None:
    """Add the predicted rank to every row, in the order of the rows; files larger than memory are fine."""
    if rank_set is not None and not 0 < rank_set < 1:
        raise InputError(f"--set must be a share between 0 and 1. Got {rank_set}.")
    pipeline, inputs, _ = opened_model(model)
    if output is not None:
        writing.check_output(output)
        check_folder(output)
    if file == "-":
        if inputs.kind != "text":
            raise InputError(f"{model} takes columns, not texts, so it cannot read lines of standard input.")
        inputs = Inputs(inputs.target, ["text"])
        batches = line_batches(sys.stdin.buffer)
    else:
        batches = read_batches(file)

    def ranked() -> Iterator[writing.Columns]:
        for batch in batches:
            yield batch.columns | predictions(pipeline, inputs, batch, file, proba, rank_set)

    if file == "-" and output is None:
        for columns in ranked():
            del columns["text"]
            for values in zip(*columns.values(), strict=True):
                print("\t".join(map(str, values)))
        sys.stdout.flush()
        return
    writing.write_batches(output, ranked())


def predictions(
    pipeline: Any, inputs: Inputs, batch: Batch, source: str, proba: bool, rank_set: float | None
) -> dict[str, list[Any]]:
    features = inputs.features(batch, source)
    order = pipeline.classes_
    columns: dict[str, list[Any]] = {"prediction": []}
    if proba:
        columns |= {f"p_{label}": [] for label in order.tolist()}
    if rank_set is not None:
        columns["set"] = []
    taken = next((name for name in columns if name in batch.columns), None)
    if taken is not None:
        raise InputError(f'{source} has a column "{taken}" already.')
    if not len(batch):
        return columns
    X = features if len(pipeline.steps) == 1 else pipeline[0].transform(features)
    model = pipeline[-1]
    columns["prediction"] = model.predict(X).tolist()
    if proba:
        for label, share in zip(order.tolist(), model.predict_proba(X).T, strict=True):
            columns[f"p_{label}"] = [round(p, 6) for p in share.tolist()]
    if rank_set is not None:
        columns["set"] = set_in_words(model.predict_set(X, rank_set), order.tolist())
    return columns


@app.command()
def evaluate(
    model: ModelFile,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows with their true ranks.")],
    as_json: Json = False,
) -> None:
    """Measure a model on a file whose ranks are known."""
    pipeline, inputs, _ = opened_model(model)
    order = pipeline.classes_
    true, predicted = [], []
    for batch in read_batches(file):
        labels, present = inputs.labels(batch, file)
        training.check_known(labels, [batch.lines[row] for row in present], order, file)
        if len(labels):
            true.append(labels)
            predicted.append(pipeline.predict(training.take(inputs.features(batch, file), present)))
    if not true:
        raise InputError(f"{file} has no rows.")
    labels, answers = np.concatenate(true), np.concatenate(predicted)
    metrics = {"rows": len(labels), "model": training.measures(labels, answers, order)}
    place = {label: i for i, label in enumerate(order.tolist())}
    matrix = np.zeros((len(order), len(order)), dtype=np.intp)
    np.add.at(matrix, ([place[label] for label in labels.tolist()], [place[label] for label in answers.tolist()]), 1)
    if as_json:
        printed({**metrics, "ranks": order.tolist(), "confusion": matrix.tolist()})
        return
    console = Console()
    display.show_metrics(console, metrics, file)
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
    console = Console()
    features: Any = [text]
    if inputs.kind == "table":
        try:
            record = json.loads(text)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise InputError(f'{model} takes columns, so TEXT must be a JSON object such as {{"{inputs.columns[0]}": 1}}.')
        features = {name: [record.get(name)] for name in inputs.columns}
    answer = pipeline.predict(features)[0]
    order = pipeline.classes_.tolist()
    probabilities = pipeline.predict_proba(features)[0]
    names = pipeline[0].get_feature_names_out()
    boundaries = pipeline[-1].explain(pipeline[0].transform(features), names, top=5)[0].boundaries
    if as_json:
        shares = {str(label): float(share) for label, share in zip(order, probabilities, strict=True)}
        printed({"prediction": answer.item(), "probabilities": shares, "boundaries": [vars(b) for b in boundaries]})
        return
    console.print(f"{escape(inputs.target)}: [bold]{escape(str(answer))}[/bold]")
    display.show_probabilities(console, order, probabilities, answer.item())
    if inputs.kind == "text":
        console.print(display.coloured(shaded(text, text_pulls(pipeline, text))))
        console.print("[green]green[/green] pulls up, [red]red[/red] pulls down")
    for boundary in boundaries:
        console.print(str(boundary), style="dim", highlight=False, markup=False)


@app.command(name="report")
def report_command(
    model: ModelFile,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows with their true ranks that the model was not trained on.")],
    output: Annotated[str, typer.Option("-o", "--output", help="Where to write the page.")],
) -> None:
    """Write a page about a model: plots, errors and settings, readable without a network."""
    check_folder(output)
    pipeline, inputs, metadata = opened_model(model)
    rows = rows_to_test(file, inputs, pipeline.classes_)
    write_page(output, pipeline, metadata, inputs, rows, file)
    print(f"Written: {output}")


@app.command(name="demo")
def demo_command(
    output: Annotated[str, typer.Option("-o", "--output", help="Folder for the model and the page.")] = ".",
) -> None:
    """Train on sentences that people rated, tell the story, and write a page about the model."""
    check_folder(os.path.join(output, demo.MODEL))
    demo.run(output)


def in_words(error: BaseException) -> str:
    """One line for what went wrong."""
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
            typer.main.get_command(app).main(arguments, prog_name="rankplane", standalone_mode=False)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever reads has enough
            leave_output()
        except UsageError as error:
            return failed(f"{error.format_message()} See rankplane --help.")
        except (KeyboardInterrupt, typer.Abort):
            print("rankplane: stopped", file=sys.stderr)
            return 130
        except (ValueError, TypeError, OSError, MemoryError, ImportError) as error:
            if isinstance(error, OSError):
                leave_output()
            return failed(in_words(error))
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
    sys.exit(main())


if __name__ == "__main__":
    run()
