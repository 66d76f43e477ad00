"""Options of the commands that look after a trained model."""

from functools import partial
from typing import Annotated, Any

import typer

from rankplane.cli import options
from rankplane.cli.options import Json, Quiet, Work, quietly
from rankplane.options import MODEL_NAMES, TrainingOptions

DEFAULTS = TrainingOptions()

AnyModel = Annotated[str, typer.Argument(metavar="MODEL", help="A model file.")]


def info(
    model: AnyModel,
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a model card in Markdown.")] = False,
) -> Work:
    """Show what a model is, what it was trained on, how good it is, and how to use it."""
    from rankplane.cli.info import info as command

    return partial(command, model, as_json, markdown)


@options.reads_files
def compare(
    model: options.ModelFile,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="A model file to compare with, of the same ranks.")],
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Rows with their true ranks that neither was trained on.")],
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Also write the rows whose ranks differ: csv, tsv, jsonl or parquet."),
    ] = None,
    dialect: Any = None,
    as_json: Json = False,
) -> Work:
    """Compare two models on the same rows: differences with intervals, confusions, and which rows changed."""
    from rankplane.cli.compare import compare as command

    return partial(command, model, other, files, output, dialect, as_json)


@options.reads_files
def compare_models(
    files: options.Files,
    target: options.Target = None,
    text: options.TextColumns = None,
    column: options.OtherColumns = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Model to compare; repeat for several. All if left out: {', '.join(MODEL_NAMES)}.",
            autocompletion=options.completed_by(MODEL_NAMES),
        ),
    ] = None,
    measure: Annotated[
        str, typer.Option(metavar="NAME", help="Measure to compare by: mae, mse, accuracy, macro_mae or qwk.")
    ] = "mae",
    output: Annotated[str | None, typer.Option("-o", "--output", metavar="FILE", help="Also write a page (HTML).")] = None,
    group: options.Group = None,
    ranks: options.RankNames = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Random seed of the folds and the solver.")] = DEFAULTS.seed,
    jobs: options.Jobs = DEFAULTS.jobs,
    dialect: Any = None,
    as_json: Json = False,
) -> Work:
    """Tune all models on the same folds of the rows, compare them on held-out rows, and recommend one."""
    from rankplane.cli.compare_models import compare_models as command
    from rankplane.training.choices import Choices

    return partial(
        command,
        files,
        model or [],
        measure,
        output,
        Choices(model="NPSVOR", skewed="none", seed=seed, jobs=jobs),
        target=target,
        text=text or [],
        columns=column or [],
        group=group,
        ranks=ranks,
        dialect=dialect,
        as_json=as_json,
    )


@options.reads_files
def recalibrate(
    model: options.ModelFile,
    files: options.UnseenFiles,
    output: Annotated[str, typer.Option("-o", "--output", metavar="NEW", help="File to write the new model to.")],
    dialect: Any = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Work:
    """Learn the probabilities of a model anew from other rows, without training it again."""
    from rankplane.cli.recalibrate import recalibrate as command

    work = partial(command, model, files, output, dialect, as_json)
    return quietly(work, quiet, as_json=as_json)


def export(
    model: AnyModel,
    onnx: Annotated[str, typer.Option("--onnx", metavar="FILE", help="ONNX file to write; needs the extra onnx.")],
    quiet: Quiet = False,
) -> Work:
    """Write a model of numbers or columns in another format: ONNX."""
    from rankplane.cli.export import export as command

    return quietly(partial(command, model, onnx), quiet)


def register(app: typer.Typer) -> None:
    for command in (info, compare, compare_models, recalibrate, export):
        app.command()(command)
