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
    """Ordinal regression: predict ranks from texts or tabular data."""


@app.command()
def train(
    file: Annotated[str, typer.Argument(metavar="FILE", help="csv, tsv, jsonl, parquet or svmlight, also .gz or .zst.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="File to write the model to.")],
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column with the rank, such as stars.")] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Column with texts; repeat it to join several. Without it, all other columns are features."
        ),
    ] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help=f"Model: {', '.join(MODEL_NAMES)}.")] = DEFAULTS.model,
    preset: Annotated[str, typer.Option(metavar="NAME", help="How texts become features: default or paper.")] = DEFAULTS.preset,
    C: Annotated[
        float | None,
        typer.Option("--C", metavar="NUMBER", help="Inverse regularisation strength; chosen by cross-validation if left out."),
    ] = DEFAULTS.C,
    kernel: Annotated[
        str, typer.Option(metavar="NAME", help="Kernel: linear, or rbf, poly or sigmoid, for up to some ten thousand rows.")
    ] = DEFAULTS.kernel,
    gamma: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Kernel coefficient; chosen by cross-validation if left out.")
    ] = DEFAULTS.gamma,
    decision: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="How to choose the predicted rank. " + "; ".join(f"{k}: {v}" for k, v in DECISIONS.items()) + "."
        ),
    ] = DEFAULTS.decision,
    holdout: Annotated[
        float, typer.Option(metavar="SHARE", help="Fraction of rows held out for testing; 0 trains on all rows.")
    ] = DEFAULTS.holdout,
    test: Annotated[str | None, typer.Option(metavar="FILE", help="File to test on, instead of a holdout.")] = None,
    group: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of groups; rows of a group stay together in every split.")
    ] = None,
    ranks: Annotated[str | None, typer.Option(metavar="NAMES", help="The ranks in order, lowest first: low,medium,high.")] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Random seed of the splits and the solver.")] = DEFAULTS.seed,
    jobs: Annotated[int | None, typer.Option(metavar="NUMBER", help="Number of threads; -1 for all processors.")] = DEFAULTS.jobs,
    compact: Annotated[
        float | None,
        typer.Option(
            metavar="BOUND",
            help="Write a smaller file by rounding and dropping weights; no score of a text changes by more than this.",
        ),
    ] = None,
    ngrams: Annotated[
        str | None, typer.Option(metavar="RANGE", help="Length of n-grams, in words or characters: 1-2 for single ones and pairs.")
    ] = DEFAULTS.ngrams,
    analyzer: Annotated[
        str | None, typer.Option(metavar="NAME", help="What n-grams are made of: word, char, or char_wb (characters within words).")
    ] = DEFAULTS.analyzer,
    segmenter: Annotated[
        str | None, typer.Option(metavar="NAME", help="Split texts that have no spaces between words: chinese.")
    ] = DEFAULTS.segmenter,
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="WEIGHTS",
            help="Weight of each rank: balanced, so that rare ranks count as much as common ones, or such as 1=2,5=0.5.",
        ),
    ] = DEFAULTS.class_weight,
    report: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write a report (HTML) with results on the test rows.")
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: Json = False,
) -> Work:
    """Train a model on rated texts or tabular data, test it, and write it to one file."""
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
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows to predict, or - for one text per line of standard input.")],
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="csv, tsv, jsonl or parquet file to write; standard output if left out."
        ),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add a column with the probability of each rank.")] = False,
    rank_set: Annotated[
        float | None,
        typer.Option(
            "--set", metavar="SHARE", help="Add sets of ranks that contain the true one with this probability, such as 0.9."
        ),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
) -> Work:
    """Predict the rank of every row. Files may be larger than memory."""
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
    """Evaluate a model on a file with known ranks."""
    from rankplane.cli import commands
    from rankplane.inputs.reading import Dialect

    return partial(commands.evaluate, model, file, Dialect(delimiter, encoding), as_json)


@app.command()
def explain(
    model: ModelFile,
    text: Annotated[str, typer.Argument(metavar="TEXT", help='A text or, for tabular models, a JSON object: {"age": 31}.')],
    as_json: Json = False,
) -> Work:
    """Explain one prediction: the rank, its probability, and the words that pull it up or down."""
    from rankplane.cli import commands

    return partial(commands.explain, model, text, as_json)


@app.command(name="report")
def report_command(
    model: ModelFile,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Rows with their true ranks that the model was not trained on.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="HTML file to write.")],
    delimiter: Delimiter = None,
    encoding: Encoding = None,
) -> Work:
    """Write an HTML report about a model: plots, errors and settings, in one file."""
    from rankplane.cli import commands
    from rankplane.inputs.reading import Dialect

    return partial(commands.report_command, model, file, output, Dialect(delimiter, encoding))


@app.command(name="demo")
def demo_command(
    output: Annotated[str, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the model and the report.")] = ".",
) -> Work:
    """Train on a sample of rated sentences, explain the steps, and write a report."""
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
