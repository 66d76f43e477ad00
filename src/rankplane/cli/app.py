"""The command ``rankplane``: its options, its exit codes, and one line for every mistake.

Whatever goes wrong on the user's side is one line on standard error and exit code 2; a traceback means a bug. What the commands do
is in ``commands.py``, which is imported when one of them is to run: options alone are read, and shown by ``--help``, at once.
"""

import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Annotated, Any

import typer

from rankplane.options import DECISIONS, MODEL_NAMES, Options
from rankplane.streams import complain, show_warning, telling

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
# typer carries click inside itself, where the base of its complaints has no public name.
UsageError: Any = typer.BadParameter.__mro__[2]
DEFAULTS = Options()
MISTAKE, STOPPED, PIPE_CLOSED = 2, 130, 141  # the last two are what shells have for Ctrl-C and for a pipe whose reader left
Work = Callable[[], None]  # what a command returns: its work, to be done when its options are read
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Delimiter = Annotated[str | None, typer.Option(metavar="CHARACTER", help='Column separator of csv files, such as ";" or tab.')]
Encoding = Annotated[str | None, typer.Option(metavar="NAME", help="Encoding of text files, such as latin-1; UTF-8 if left out.")]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model file that train wrote.")]


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
    model: Annotated[str, typer.Option(metavar="NAME", help=", ".join(MODEL_NAMES))] = DEFAULTS.model,
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
) -> Work:
    """Train a model on a file of ranked texts or rows, measure it, and write it to one file."""
    from rankplane.cli import commands
    from rankplane.inputs.reading import Dialect
    from rankplane.training.choices import Choices

    choices = Choices(
        model=model,
        preset=preset,
        C=C,
        decision=decision,
        holdout=0 if test else holdout,
        seed=seed,
        jobs=jobs,
        compact=compact,
        kernel=kernel,
        gamma=gamma,
        ngrams=ngrams,
        analyzer=analyzer,
        segmenter=segmenter,
        class_weight=class_weight,
    )
    return partial(
        commands.train,
        file,
        output,
        choices,
        target=target,
        text=text or [],
        group=group,
        ranks=ranks,
        test=test,
        report=report,
        dialect=Dialect(delimiter, encoding),
        as_json=as_json,
    )


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
) -> Work:
    """Add the predicted rank to every row, in the order of the rows; files larger than memory are fine."""
    from rankplane.cli import commands
    from rankplane.inputs.reading import Dialect

    return partial(commands.predict, model, file, output, proba, rank_set, Dialect(delimiter, encoding))


@app.command()
def evaluate(
    model: ModelFile,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows with their true ranks.")],
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: Json = False,
) -> Work:
    """Measure a model on a file whose ranks are known."""
    from rankplane.cli import commands
    from rankplane.inputs.reading import Dialect

    return partial(commands.evaluate, model, file, Dialect(delimiter, encoding), as_json)


@app.command()
def explain(
    model: ModelFile,
    text: Annotated[str, typer.Argument(metavar="TEXT", help='A text; for models of columns a JSON object: {"age": 31}.')],
    as_json: Json = False,
) -> Work:
    """Show the rank of one text, how sure the model is, and which words pull it up or down."""
    from rankplane.cli import commands

    return partial(commands.explain, model, text, as_json)


@app.command(name="report")
def report_command(
    model: ModelFile,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows with their true ranks that the model was not trained on.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Where to write the page.")],
    delimiter: Delimiter = None,
    encoding: Encoding = None,
) -> Work:
    """Write a page about a model: plots, errors and settings, readable without a network."""
    from rankplane.cli import commands
    from rankplane.inputs.reading import Dialect

    return partial(commands.report_command, model, file, output, Dialect(delimiter, encoding))


@app.command(name="demo")
def demo_command(
    output: Annotated[str, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the model and the page.")] = ".",
) -> Work:
    """Train on sentences that people rated, tell the story, and write a page about the model."""
    from rankplane.cli import commands

    return partial(commands.demo_command, output)


def in_words(error: BaseException) -> str:
    """What went wrong."""
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename else ""
        return f"{named}{error.strerror}"
    if isinstance(error, MemoryError):
        return "not enough memory"
    return str(getattr(error, "with_options", error))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    with warnings.catch_warnings(), telling() as told:
        warnings.showwarning = show_warning
        try:
            given = sys.argv[1:] if arguments is None else arguments
            found = typer.main.get_command(app).main(given or ["--help"], prog_name="rankplane", standalone_mode=False)
            if callable(found):
                found()
            told.finish()
            return found if isinstance(found, int) else 0
        except UsageError as error:
            return failed(f"{error.format_message().rstrip('.')}. See rankplane --help.")
        except (KeyboardInterrupt, typer.Abort):
            complain("stopped")
            return STOPPED
        except BrokenPipeError:  # the reader has what it wanted
            return PIPE_CLOSED
        except (ValueError, TypeError, OSError, MemoryError, ImportError) as error:
            return failed(in_words(error))


def failed(sentence: str) -> int:
    complain(sentence)
    return MISTAKE
