"""What is found about rows and models, in words and figures."""

from typing import Any

from rankplane.inputs.schema import RARE

HEADINGS = {"accuracy": "accuracy", "mae": "MAE", "mse": "MSE", "macro_mae": "macro MAE", "qwk": "QWK"}


def data_notes(notes: dict[str, Any]) -> list[str]:
    """What is worth knowing about the rows that were read."""
    missing = notes.get("missing_values", {}).items()
    left_out = notes.get("left_out", {})
    if isinstance(left_out, list):  # as model files of 0.1 have it
        left_out = dict.fromkeys(left_out, RARE)
    lines = [
        *[f"{count:,} missing values in {name}" for name, count in missing if count],
        *[f'column "{name}" is left out: {reason}' for name, reason in left_out.items()],
        *[f'column "{name}" is read as texts, but all its values are numbers' for name in notes.get("number_texts", [])],
        (notes["missing_target"], "rows without a rank are left out"),
        (notes.get("empty_texts"), "texts are empty"),
        (notes.get("duplicate_texts"), "texts are exact copies of others; copies stay on one side of every split"),
        (notes.get("seen_texts"), "texts to measure on occur among the training texts too, which flatters the model"),
    ]
    found = [line if isinstance(line, str) else f"{line[0]:,} {line[1]}" for line in lines if isinstance(line, str) or line[0]]
    nothing = "no missing values" + (", no duplicate texts" if "duplicate_texts" in notes else "")
    return found or [nothing]


def figure(value: float) -> str:
    """A measure with three digits, and zero without a sign."""
    return f"{round(value, 3) + 0.0:.3f}"
