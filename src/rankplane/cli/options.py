"""Options that several commands have. Imports nothing heavy, since ``--help`` needs them too."""

import inspect
from collections.abc import Callable, Collection
from functools import partial, wraps
from typing import Annotated, Any

import typer

from rankplane.options import DECISIONS
from rankplane.streams import keeping_quiet

Work = Callable[[], None]  # returned by a command, and called once all options are parsed


def completed_by(names: Collection[str]) -> Callable[[str], list[str]]:
    """Completion of an option's value in a shell."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


FORMATS = ("csv", "tsv", "jsonl", "parquet", "svmlight")
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Delimiter = Annotated[str | None, typer.Option(metavar="CHARACTER", help='Column separator of csv files, such as ";" or tab.')]
Encoding = Annotated[str | None, typer.Option(metavar="NAME", help="Encoding of text files, such as latin-1; UTF-8 if left out.")]
Jobs = Annotated[int | None, typer.Option(metavar="NUMBER", help="Number of threads; all cores if left out.", show_default=False)]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="csv, tsv, jsonl, parquet or svmlight, also .gz or .zst; several files are one table. - for standard input.",
    ),
]
Target = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column with the rank, such as stars.")]
TextColumns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column with texts; repeat to join several. Without --text and --column, all columns are features.",
    ),
]
OtherColumns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of numbers, categories, dates or lists of numbers; also together with --text.",
    ),
]
Group = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of groups; rows of a group stay together in every split.")
]
RankNames = Annotated[str | None, typer.Option(metavar="NAMES", help="The ranks in order, lowest first, such as low,medium,high.")]
RankedFiles = Annotated[list[str], typer.Argument(metavar="FILE", help="Rows with their true ranks, in one or several files.")]
UnseenFiles = Annotated[
    list[str], typer.Argument(metavar="FILE", help="Rows with their true ranks that the model was not trained on.")
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Format of files whose names do not show it: {', '.join(FORMATS)}. Standard input is csv by default.",
        autocompletion=completed_by(FORMATS),
    ),
]
Limit = Annotated[int | None, typer.Option(metavar="NUMBER", help="Use the first rows only, this many.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but warnings and errors.")]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model file that train wrote.")]
Decision = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Choose ranks by another decision than in training: {', '.join(DECISIONS)}.",
        autocompletion=completed_by(DECISIONS),
    ),
]


def reads_files(command: Callable[..., Work]) -> Callable[..., Work]:
    """Give a command, in place of its parameter ``dialect``, the options that say how its files are written."""
    signature = inspect.signature(command)
    options = {"delimiter": Delimiter, "encoding": Encoding, "format": Format, "limit": Limit}
    taken: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        asked = options if name == "dialect" else {name: parameter.annotation}
        taken += [parameter.replace(name=each, annotation=annotation) for each, annotation in asked.items()]

    @wraps(command)
    def with_dialect(**given: Any) -> Work:
        from rankplane.inputs.reading import Dialect

        dialect = Dialect(**{name: given.pop(name) for name in options})
        return command(dialect=dialect, **given)

    with_dialect.__signature__ = signature.replace(parameters=taken)  # type: ignore[attr-defined]
    return with_dialect


def quietly(work: Work, is_quiet: bool, *, as_json: bool = False) -> Work:
    return partial(keeping_quiet, work, prints_result=as_json) if is_quiet else work
