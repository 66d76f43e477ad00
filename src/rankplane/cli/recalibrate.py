"""The command recalibrate: new probabilities for a model, from new rows."""

import os
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from rankplane import modelfile
from rankplane.cli import display
from rankplane.cli.commands import among, check_outputs, in_bytes, origin, printed, rows_to_test, seen_files
from rankplane.inputs.reading import Dialect, Fingerprint, InputError, called, files_of
from rankplane.progress import working
from rankplane.training.model import TrainedModel
from rankplane.training.wording import HEADINGS, format_measure
from rankplane.upkeep.recalibrating import BEFORE, COVERAGE, recalibrated


def recalibrate(model_path: str, given: Sequence[str], output: str, dialect: Dialect, as_json: bool) -> None:
    """Learn the calibrator anew, show what it changes, and write the model to another file."""
    files = files_of(given)
    check_outputs([output], [model_path, *files])
    model, fingerprint = TrainedModel.open(model_path).on_threads(-1), Fingerprint()
    rows = rows_to_test(files, model.inputs, model.classes, dialect, fingerprint)
    if seen := seen_files(model.metadata, files, fingerprint):
        raise InputError(
            f"{seen[0]} is {among(model.metadata)} that {model_path} was trained on, on which it is too sure of itself: "
            "use rows that are new to it."
        )
    with working(sys.stderr.isatty(), "Calibrating"):
        origins = origin(files, "source", "fingerprint", fingerprint, dialect.limit)
        renewed = recalibrated(model, model.encode(rows), origins)
    renewed.on_threads(None)
    compact = (model.metadata.get("choices") or {}).get("compact")
    # The weights of a compact file are as small as they were.
    metadata = modelfile.write_model(renewed.pipeline, output, compact=None if compact is None else 0.0, metadata=renewed.metadata)
    if as_json:
        printed({"warnings": metadata["warnings"], "model": output, **metadata})
        return
    console = Console()
    show(console, called(files), metadata)
    console.print(Text.assemble("Written: ", (output, "bold"), f" ({in_bytes(os.path.getsize(output))})"), soft_wrap=True)


def show(console: Console, file: str, metadata: dict[str, Any]) -> None:
    """Warnings, and the measures before and after."""
    record, metrics = metadata["recalibrated"], metadata["metrics"]
    display.show_warnings(console, metadata["warnings"])
    display.title(console, f"Measured on {record['rows']:,} rows of {os.path.basename(file)}")
    table = display.plain_table()
    for heading in ("", "before", "after"):
        table.add_column(heading, justify="right" if heading else "left")
    if qualities := record.get("probabilities"):
        before, after = qualities["before"], qualities["after"]
        table.add_row("ranked probability score ↓", *(format_measure(quality["score"]) for quality in (before, after)))
        table.add_row(f"true rank in sets for {COVERAGE:.0%}", *(f"{quality['coverage']:.1%}" for quality in (before, after)))
        table.add_row("ranks per set", *(f"{quality['set_size']:.2f}" for quality in (before, after)))
    for measure in HEADINGS:
        table.add_row(display.heading_of(measure), *(format_measure(metrics[name][measure]) for name in (BEFORE, "model")))
    console.print(table)
    note = "↑ more is better, ↓ less is better. After: every row by a calibrator that was learnt from others"
    console.print(Text(note, style="dim"))
