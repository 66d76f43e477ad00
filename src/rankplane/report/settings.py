"""All settings of a model, and the command that trains it again."""

import shlex
from html import escape
from typing import Any

import numpy as np

from rankplane.options import option_name
from rankplane.report.markup import cell, html_table, section
from rankplane.text.settings import PRESETS
from rankplane.training.model import TrainedModel

Settings = list[tuple[str, Any]]
RECORDS = {
    "version": "rankplane",
    "date": "trained",
    "source": "file",
    "fingerprint": "fingerprint",
    "limit": "first rows",
    "test": "measured on",
    "test_fingerprint": "fingerprint of that",
}
HIDDEN = ("verbose", "preset")  # verbose has no effect on the model, and preset is shown with the features


def command_line(metadata: dict[str, Any]) -> str:
    """The command that trains the same model again."""
    inputs, choices = metadata["inputs"], metadata["choices"]
    words = ["rankplane", "train", *metadata.get("source_files", [metadata["source"]])]
    named = {"text": inputs["text"], "column": inputs["columns"] if inputs.get("are_named") else []}
    words += [word for option, names in named.items() for name in names for word in (option_name(option), name)]
    options = {"target": inputs["target"], "group": inputs.get("group"), "ranks": inputs["ranks"]}
    options |= choices | {"test": metadata.get("test")}
    if metadata["search"] is not None:
        options["C"] = None  # the search finds it
    if options["test"]:
        options["holdout"] = None
    for name, value in options.items():
        if value is not None and value is not False and value != []:
            words.append(option_name(name))
            words += [] if value is True else [",".join(map(str, value)) if isinstance(value, list) else str(value)]
    return shlex.join([*words, "-o", "model.rankplane"])


def run_settings(model: TrainedModel) -> Settings:
    """When and from which files the model was trained, and options that are not parameters of its steps."""
    metadata = model.metadata
    shown = {name for step in model.steps for name in step.get_params(deep=False)} | set(HIDDEN)
    choices = [(name, value) for name, value in (metadata.get("choices") or {}).items() if name not in shown]
    folds = (metadata.get("data") or {}).get("folds")
    return [(name, metadata[key]) for key, name in RECORDS.items() if key in metadata] + choices + [("folds", folds)]


def estimator_settings(estimator: Any) -> Settings:
    given = estimator.get_params(deep=False)
    if hasattr(estimator, "gamma_"):
        given["gamma"] = f"{estimator.gamma_:.6g}"
    return [("class", type(estimator).__name__), *given.items()]


def feature_settings(step: Any) -> Settings:
    """Parameters, with those of the preset filled in."""
    given = step.get_params(deep=False)
    preset = PRESETS.get(given.get("preset", ""), {})
    return [
        ("class", type(step).__name__),
        *((name, preset.get(name) if value is None else value) for name, value in given.items()),
    ]


def shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of shape {value.shape}"
    words = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return words if len(words) <= 200 else words[:200] + " …"


def settings_section(model: TrainedModel) -> str:
    metadata = model.metadata
    groups = {"Run": run_settings(model), "Model": estimator_settings(model.estimator)}
    if model.first_step is not None:
        groups["Features"] = feature_settings(model.first_step)
    tables = ""
    for title, settings in groups.items():
        rows = [
            [escape(name.replace("_", " ") if title == "Run" else name), cell(escape(shown(value)), "words")]
            for name, value in settings
            if value is not None and name not in ("verbose",)
        ]
        tables += f"<div><h3>{title}</h3>{html_table(f'Settings: {title}', ['setting', 'value'], rows, 'settings')}</div>"
    command = f"<pre>{escape(command_line(metadata))}</pre>" if "fingerprint" in metadata else ""
    note = "This command trains the same model again, from the same file." if command else ""
    return section("Settings", f'{command}<div class="groups">{tables}</div>', note, "broad")
