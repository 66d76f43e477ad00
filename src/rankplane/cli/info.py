"""The command info: what a model file says of its model."""

import os
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankplane import modelfile
from rankplane.cli import display
from rankplane.cli.commands import in_bytes, printed
from rankplane.inputs.reading import InputError
from rankplane.prediction.explanations import TopFeatures
from rankplane.training.wording import data_notes
from rankplane.upkeep.card import card
from rankplane.upkeep.facts import Facts, cleaned, decision_in_words, facts_of, needed_columns


def info(path: str, as_json: bool, markdown: bool) -> None:
    """Print what a model file says, as tables, JSON or Markdown."""
    if as_json and markdown:
        raise InputError("--json and --markdown exclude each other.")
    if os.path.isdir(path):
        raise InputError(f"{path} is a folder, not a file.")
    model, metadata = modelfile.open_model(path)
    console = Console()
    try:
        facts = facts_of(path, model, metadata)
        with console.capture() as shown:
            show(console, cleaned(facts))
        text = card(cleaned(facts)) if markdown else shown.get()
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):  # anybody may have written the metadata
        raise InputError(f"{path} has metadata that train did not write: read_metadata shows them.") from None
    if as_json:
        printed(facts)
        return
    print(text, end="")


def show(console: Console, facts: Facts) -> None:
    console.print(Text.assemble((facts["file"], "bold"), f" ({in_bytes(facts['bytes'])})"), soft_wrap=True)
    display.show_warnings(console, facts["warnings"])
    display.title(console, "Model")
    print_pairs(console, of_model(facts))
    if facts["trained"] or facts["recalibrated"]:
        show_data(console, facts)
    display.show_choice(console, facts["choice"])
    if facts["metrics"]:
        display.show_metrics(console, facts["metrics"], facts["measured_on"])
    if facts.get("important"):
        display.title(console, "Most important features")
        display.show_terms(console, [TopFeatures(**found) for found in facts["important"]])
    if facts["metadata"]:
        display.title(console, "Metadata")
        print_pairs(console, list(facts["metadata"].items()))
    display.title(console, "Use")
    for lines in facts["usage"].values():
        for line in lines:
            console.print(Text(line), soft_wrap=True)  # to be copied
        if lines is not facts["usage"]["python"] and lines:
            console.print()


def print_pairs(console: Console, pairs: list[tuple[str, Any]]) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    for name, value in pairs:
        table.add_row(name, Text(str(value)))
    console.print(table)


def of_model(facts: Facts) -> list[tuple[str, Any]]:
    written = ("written", f"{facts['date']}, by rankplane {facts['version']}")
    if "ranks" not in facts:
        return [("class", facts["model"]), written]
    kernel = "" if facts["kernel"] == "linear" else f", {facts['kernel']} kernel"
    probabilities = "calibrated on held-out rows" if facts["has_probabilities"] else "none"
    pairs = [
        ("class", f"{facts['model']}{kernel}: {facts['summary'].rstrip('.')}"),
        ("ranks", ", ".join(map(str, facts["ranks"]))),
        ("predicts", f"{decision_in_words(facts)} ({facts['decision']})"),
        ("probabilities", probabilities),
        ("takes", needed_columns(facts)),
        ("steps", ", ".join(facts["steps"])),
        ("weights", f"of {facts['columns']:,} columns"),
        ("C", None if facts["C"] is None else f"{facts['C']:g}"),
        ("gamma", None if facts["gamma"] is None else f"{facts['gamma']:.6g}"),
        written,
    ]
    return [(name, value) for name, value in pairs if value is not None]


def show_data(console: Console, facts: Facts) -> None:
    if trained := facts["trained"]:
        data = trained["data"]
        first = f", first {trained['limit']:,} rows" if "limit" in trained else ""
        display.title(console, f"Trained on {data.get('trained_on', 0):,} rows of {trained.get('source')}{first}")
        counts = data.get("trained_ranks") or data.get("ranks") or {}
        if "missing_target" in data and counts:
            display.show_ranks(console, counts, data_notes(data))
        if "fingerprint" in trained:
            console.print(Text(trained["fingerprint"], style="dim"), soft_wrap=True)
    if record := facts["recalibrated"]:
        display.title(console, f"Recalibrated on {record['rows']:,} rows of {record.get('source')}")
        if "fingerprint" in record:
            console.print(Text(record["fingerprint"], style="dim"), soft_wrap=True)
