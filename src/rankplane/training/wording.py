"""Notes about rows, and the format of measures."""

from typing import Any

from rankplane.inputs.schema import RARE

HEADINGS = {"accuracy": "accuracy", "mae": "MAE", "mse": "MSE", "macro_mae": "macro MAE", "qwk": "QWK"}
MEASURED = {"majority": "most frequent"}  # other names for what was measured


def data_notes(notes: dict[str, Any]) -> list[str]:
    """Notes about the rows that were read."""
    missing = notes.get("missing_values", {}).items()
    left_out = notes.get("left_out", {})
    if isinstance(left_out, list):  # in model files of version 0.1
        left_out = dict.fromkeys(left_out, RARE)
    lines = [
        *[f"{count:,} missing values in {name}" for name, count in missing if count],
        *[f'column "{name}" is left out: {reason}' for name, reason in left_out.items()],
        *[f'column "{name}" is read as texts, but all its values are numbers' for name in notes.get("number_texts", [])],
        (notes["missing_target"], "rows without a rank are left out"),
        (notes.get("empty_texts"), "texts are empty"),
        (notes.get("duplicate_texts"), "texts are exact copies of others; copies stay on one side of every split"),
        (notes.get("seen_texts"), "test texts also occur among the training texts, which makes the model look better than it is"),
    ]
    found = [line if isinstance(line, str) else f"{line[0]:,} {line[1]}" for line in lines if isinstance(line, str) or line[0]]
    nothing = "no missing values" + (", no duplicate texts" if "duplicate_texts" in notes else "")
    return found or [nothing]


def measured_on(metadata: dict[str, Any]) -> str:
    """Which rows the measures in a model file are of."""
    if record := metadata.get("recalibrated"):
        return f"rows of {record.get('source')}, each by a calibrator of others"
    test = metadata.get("test")
    return f"rows held out of {metadata.get('source', 'the training file')}" if test is None else f"rows of {test}"


def format_measure(value: float) -> str:
    """A measure with three digits; zero has no sign."""
    return f"{round(value, 3) + 0.0:.3f}"


def choice_headings(record: dict[str, Any]) -> list[str]:
    """Of the columns of numbers in a table of candidates: one for each sample."""
    name = "MAE" if record["measure"] in ("mae", "macro_mae") else "MSE" if record["measure"] == "mse" else "error"
    return [f"{name}, {one['rows']:,} rows" for one in record["rounds"]]


def choice_rows(record: dict[str, Any]) -> list[tuple[list[str], str, str]]:
    """For each candidate its errors by sample, its name and a note: the chosen one first, then those that stayed longest."""
    rounds = record["rounds"]
    n_rounds = {name: sum(name in one["errors"] for one in rounds) for name in rounds[0]["errors"]}
    last = {name: rounds[n_rounds[name] - 1]["errors"][name] for name in n_rounds}
    rows = []
    for name in sorted(n_rounds, key=lambda name: (name != record["chosen"], -n_rounds[name], last[name])):
        cells = [f"{one['errors'][name]:.4f}" if name in one["errors"] else "" for one in rounds]
        is_close = n_rounds[name] == len(rounds) and last[name] <= last[record["chosen"]] + rounds[-1]["noise"][name]
        rows.append((cells, name, "chosen" if name == record["chosen"] else "within one standard error" if is_close else ""))
    return rows
