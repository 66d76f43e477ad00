"""The command ``rankplane``: options, exit codes, and error messages of one line.

User errors are one line on standard error and exit code 2; a traceback means a bug. What the commands do is in ``commands.py``,
which is imported only when one of them runs, so that ``--help`` is fast.
"""

import sys
import warnings
from functools import partial
from typing import Annotated, Any

import typer

from rankplane.cli import options, upkeep
from rankplane.cli.options import (
    Decision,
    Files,
    Group,
    Jobs,
    Json,
    ModelFile,
    OtherColumns,
    Quiet,
    RankedFiles,
    RankNames,
    Target,
    TextColumns,
    UnseenFiles,
    Work,
    completed_by,
    quietly,
)
from rankplane.options import AUTO, DECISIONS, MODEL_NAMES, TrainingOptions
from rankplane.serving.options import LOGS, TOKEN_VARIABLE, ServerOptions
from rankplane.streams import deferring_failures, print_error, show_warning
from rankplane.versions import this_version

app = typer.Typer(pretty_exceptions_enable=False)
# typer contains a copy of click, whose UsageError has no public name there.
UsageError: Any = typer.BadParameter.__mro__[2]
DEFAULTS, SERVER = TrainingOptions(), ServerOptions()
MISTAKE, STOPPED, PIPE_CLOSED = 2, 130, 141  # the last two as shells have them for Ctrl-C and a closed pipe


def version_shown(is_asked: bool) -> None:
    if is_asked:
        print(f"rankplane {this_version()}")
        raise typer.Exit


@app.callback()
def about(
    show_version: Annotated[
        bool, typer.Option("--version", callback=version_shown, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Ordinal regression: predict ranks from texts or tabular data."""


@app.command()
@options.reads_files
def train(
    files: Files,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="File to write the model to.")],
    target: Target = None,
    text: TextColumns = None,
    column: OtherColumns = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"Model: auto (of texts, chosen by measurement), {', '.join(MODEL_NAMES)}.",
            autocompletion=completed_by((AUTO, *MODEL_NAMES)),
        ),
    ] = DEFAULTS.model,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="How texts become features: auto (chosen by measurement), default or paper.")
    ] = DEFAULTS.preset,
    C: Annotated[
        float | None,
        typer.Option("--C", metavar="NUMBER", help="Inverse regularisation strength; chosen by cross-validation if left out."),
    ] = DEFAULTS.C,
    kernel: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Kernel: linear, rbf, poly or sigmoid; all but linear for up to about 10,000 rows. auto: of tables rbf where it "
            "predicts better, else linear.",
        ),
    ] = DEFAULTS.kernel,
    skewed: Annotated[
        str, typer.Option(metavar="NAME", help="Skewed columns of tables: none, log, or auto: log where it predicts better.")
    ] = DEFAULTS.skewed,
    gamma: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Kernel coefficient; chosen by cross-validation if left out.")
    ] = DEFAULTS.gamma,
    decision: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to choose the predicted rank. " + "; ".join(f"{k}: {v}" for k, v in DECISIONS.items()) + ".",
            autocompletion=completed_by(DECISIONS),
        ),
    ] = DEFAULTS.decision,
    holdout: Annotated[
        float, typer.Option(metavar="SHARE", help="Fraction of rows held out for testing; 0 trains on all rows.")
    ] = DEFAULTS.holdout,
    test: Annotated[str | None, typer.Option(metavar="FILE", help="File to test on, instead of a holdout.")] = None,
    group: Group = None,
    ranks: RankNames = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Random seed of the splits and the solver.")] = DEFAULTS.seed,
    jobs: Jobs = DEFAULTS.jobs,
    compact: Annotated[
        float | None,
        typer.Option(
            metavar="BOUND",
            help="Write a smaller file by rounding and dropping weights, changing no score of a text by more than this.",
        ),
    ] = None,
    ngrams: Annotated[
        str | None,
        typer.Option(
            metavar="RANGE", help="Lengths of n-grams, in words or characters, such as 1-2; or one for each analyzer: 1-2,2-5."
        ),
    ] = DEFAULTS.ngrams,
    analyzer: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="What n-grams are made of: word, char, char_wb (characters within words), or several such as word,char_wb.",
        ),
    ] = DEFAULTS.analyzer,
    segmenter: Annotated[
        str | None, typer.Option(metavar="NAME", help="Word segmenter for texts without spaces between words: chinese.")
    ] = DEFAULTS.segmenter,
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="WEIGHTS",
            help="Weights of ranks: balanced (inversely proportional to their frequencies), or such as 1=2,5=0.5.",
        ),
    ] = DEFAULTS.class_weight,
    report: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also write a report (HTML) with results on the test rows.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Train from disk in at most so much memory, such as 2G. If left out, only files that will not fit are.",
        ),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder to keep rows in that are trained on from disk; if left out, one beside the output, removed at the end.",
        ),
    ] = None,
    dialect: Any = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Work:
    """Train a model on rated texts or tabular data, test it, and write it to one file."""
    from rankplane.cli import commands
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
        skewed=skewed,
        gamma=gamma,
        ngrams=ngrams,
        analyzer=analyzer,
        segmenter=segmenter,
        class_weight=class_weight,
    )
    work = partial(
        commands.train,
        files,
        output,
        choices,
        target=target,
        text=text or [],
        columns=column or [],
        group=group,
        ranks=ranks,
        test=test,
        report=report,
        memory=memory,
        cache=cache,
        dialect=dialect,
        as_json=as_json,
    )
    return quietly(work, quiet, as_json=as_json)


@app.command()
@options.reads_files
def predict(
    model: ModelFile,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Rows to predict, or - for one text per line of standard input (with --format, for a table)."
        ),
    ],
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
    decision: Decision = None,
    rank_column: Annotated[str, typer.Option(metavar="NAME", help="Name of the column of predicted ranks.")] = "prediction",
    proba_prefix: Annotated[
        str, typer.Option(metavar="PREFIX", help="What the names of the columns of probabilities begin with, before the rank.")
    ] = "p_",
    set_column: Annotated[str, typer.Option(metavar="NAME", help="Name of the column of sets of ranks.")] = "set",
    jobs: Jobs = DEFAULTS.jobs,
    dialect: Any = None,
    quiet: Quiet = False,
) -> Work:
    """Predict the rank of every row, in the order of the files. Files may be larger than memory."""
    from rankplane.cli import commands
    from rankplane.cli.columns import AddedColumns

    added = AddedColumns(rank_column, proba_prefix if proba else None, set_column, rank_set)
    return quietly(partial(commands.predict, model, files, output, added, dialect, decision, jobs), quiet)


@app.command()
@options.reads_files
def evaluate(
    model: ModelFile,
    files: RankedFiles,
    decision: Decision = None,
    jobs: Jobs = DEFAULTS.jobs,
    dialect: Any = None,
    as_json: Json = False,
) -> Work:
    """Evaluate a model on rows with known ranks."""
    from rankplane.cli import commands

    return partial(commands.evaluate, model, files, dialect, as_json, decision, jobs)


@app.command()
def explain(
    model: ModelFile,
    text: Annotated[str, typer.Argument(metavar="TEXT", help='A text or, for tabular models, a JSON object: {"age": 31}.')],
    decision: Decision = None,
    as_json: Json = False,
) -> Work:
    """Explain one prediction: the rank, its probability, and the features that pull it up or down."""
    from rankplane.cli import commands

    return partial(commands.explain, model, text, as_json, decision)


@app.command(name="report")
@options.reads_files
def report_command(
    model: ModelFile,
    files: UnseenFiles,
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="HTML file to write.")],
    dialect: Any = None,
    quiet: Quiet = False,
) -> Work:
    """Write an HTML report about a model: plots, errors and settings, in one file."""
    from rankplane.cli import commands

    work = partial(commands.report_command, model, files, output, dialect)
    return quietly(work, quiet)


@app.command()
def serve(
    models: Annotated[list[str], typer.Argument(metavar="MODEL [MODEL ...]", help="Model files that train wrote.")],
    host: Annotated[str, typer.Option(metavar="NAME", help="Address to listen on; 0.0.0.0 for all.")] = SERVER.host,
    port: Annotated[int, typer.Option(metavar="NUMBER", help="Port to listen on; 0 takes a free one.")] = SERVER.port,
    workers: Annotated[
        int, typer.Option(metavar="NUMBER", help="Processes; they share the memory of the models.")
    ] = SERVER.workers,
    token_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help=f"File with a token that clients must send; or set {TOKEN_VARIABLE} in the environment."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="Web site whose pages may use the server; repeat for several.")
    ] = None,
    max_body: Annotated[float, typer.Option(metavar="MB", help="Largest request, in megabytes.")] = SERVER.max_body,
    max_rows: Annotated[int, typer.Option(metavar="NUMBER", help="Most rows of a request.")] = SERVER.max_rows,
    max_characters: Annotated[int, typer.Option(metavar="NUMBER", help="Longest text, in characters.")] = SERVER.max_characters,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="Longest time for a request, and for its answer.")
    ] = SERVER.timeout,
    log: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What to log, a line of JSON per request: nothing, requests, or also their texts.",
            autocompletion=completed_by(LOGS),
        ),
    ] = SERVER.log,
) -> Work:
    """Serve models over HTTP, with a page to try them in a browser. A model file that is replaced is taken into use at once."""
    from rankplane.serving.start import serve

    options = ServerOptions(
        host=host,
        port=port,
        workers=workers,
        allow_origin=tuple(allow_origin or ()),
        max_body=max_body,
        max_rows=max_rows,
        max_characters=max_characters,
        timeout=timeout,
        log=log,
    )
    return partial(serve, models, options, token_file)


@app.command(name="demo")
def demo_command(
    output: Annotated[str, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the model and the report.")] = ".",
) -> Work:
    """Train on a sample of rated sentences, explain the steps, and write a report."""
    from rankplane.cli import commands

    return partial(commands.demo_command, output)


# Commands look after models once they are trained; they are listed last.
upkeep.register(app)


def in_words(error: BaseException) -> str:
    """The message of an error."""
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename else ""
        return f"{named}{error.strerror}"
    if isinstance(error, MemoryError):
        return "not enough memory"
    return str(getattr(error, "with_options", error))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    with warnings.catch_warnings(), deferring_failures() as output:
        warnings.showwarning = show_warning
        try:
            given = sys.argv[1:] if arguments is None else arguments
            found = typer.main.get_command(app).main(given or ["--help"], prog_name="rankplane", standalone_mode=False)
            if callable(found):
                found()
            output.finish()
            return found if isinstance(found, int) else 0
        except UsageError as error:
            command = error.ctx.command_path if error.ctx else "rankplane"
            return failed(f"{error.format_message().rstrip('.')}. See {command} --help.")
        except (KeyboardInterrupt, typer.Abort):
            print_error("stopped")
            return STOPPED
        except BrokenPipeError:  # the reader needs no more
            return PIPE_CLOSED
        except (ValueError, TypeError, OSError, MemoryError, ImportError) as error:
            return failed(in_words(error))


def failed(sentence: str) -> int:
    print_error(sentence)
    return MISTAKE
