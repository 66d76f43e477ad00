"""The JSON that comes in, checked: every mistake is one sentence that names the field, the rule and the value."""

import difflib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rankplane.inputs.jsonl import parsed_json, without_copies
from rankplane.serving.errors import RequestError
from rankplane.serving.models import ServedModel
from rankplane.serving.options import ServerOptions
from rankplane.training.rows import features_of_rows

INPUTS = ("text", "texts", "row", "rows")
FIELDS = ("model", *INPUTS, "set", "explain")
EXPLAINED_ROWS, EXPLAINED_CHARACTERS = 20, 20_000
CELL = 20  # characters that a cell of a table counts as


def refuse_constant(constant: str) -> None:
    raise KeyError(f"not JSON: {constant}")  # as `without_copies` refuses keys; a ValueError would be taken for the decoder's own


DECODER = json.JSONDecoder(object_pairs_hook=without_copies, parse_constant=refuse_constant)


@dataclass(frozen=True, eq=False)
class Question:
    """Rows to predict, as the first step of the model takes them."""

    served: ServedModel
    source: str  # the field that the rows came in
    features: Any
    n_rows: int
    n_characters: int
    coverage: float | None
    explains: bool


def question_of(body: bytes, models: Mapping[str, ServedModel], options: ServerOptions) -> Question:
    """The question in the body of a request; raises `RequestError`."""
    asked = object_of(body)
    for name in asked:
        if name not in FIELDS:
            raise RequestError(400, f"{shown(name)} is not a field of the request{nearest(name, FIELDS)}")
    given = [name for name in INPUTS if name in asked]
    if len(given) != 1:
        raise RequestError(
            400, f"The request must have one of the fields text, texts, row and rows. Got {' and '.join(given) or 'none'}."
        )
    served = model_of(asked.get("model"), models)
    source, values = given[0], asked[given[0]]
    if source in ("text", "row"):
        values = [values]
    elif not isinstance(values, list):
        raise RequestError(400, f"{source} must be a list. Got {shown(values)}.")
    if len(values) > options.max_rows:
        raise RequestError(413, f"{source} must have at most {options.max_rows:,} items. Got {len(values):,}.")
    take = texts_of if source in ("text", "texts") else rows_of
    features = take(served, source, values, options)
    n_characters = weight_of(served, features, len(values))
    explains = checked_flag("explain", asked.get("explain", False))
    if explains:
        check_explained(served, len(values), n_characters)
    return Question(served, source, features, len(values), n_characters, coverage_of(asked.get("set")), explains)


def object_of(body: bytes) -> dict[str, Any]:
    try:
        asked = parsed_json(body.decode("utf-8-sig"), DECODER)
    except UnicodeDecodeError as error:
        raise RequestError(400, f"The body must be UTF-8 text: byte {error.start + 1} is none.") from None
    except ValueError as error:
        raise RequestError(400, f"The body cannot be read: {error}.") from None
    if not isinstance(asked, dict):
        raise RequestError(400, f"The body must be a JSON object. Got {shown(asked)}.")
    return asked


def model_of(name: Any, models: Mapping[str, ServedModel]) -> ServedModel:
    if name is None and len(models) == 1:
        return next(iter(models.values()))
    if isinstance(name, str) and name in models:
        return models[name]
    raise RequestError(400, f"model must be one of {', '.join(models)}. Got {shown(name)}.")


def place_of(source: str, place: int) -> str:
    return f"{source}[{place}]" if source.endswith("s") else source


def texts_of(served: ServedModel, source: str, values: list[Any], options: ServerOptions) -> list[str]:
    if served.kind != "text":
        columns = ", ".join(column["name"] for column in served.description["columns"][:20])
        takes = f"rows of columns ({columns})" if columns else "rows of numbered columns"
        raise RequestError(400, f"{served.name} takes {takes}, not texts: use the field row or rows.")
    for place, value in enumerate(values):
        if not isinstance(value, str):
            raise RequestError(400, f"{place_of(source, place)} must be a string. Got {shown(value)}.")
        if len(value) > options.max_characters:
            raise too_long(place_of(source, place), value, options)
    return values


def too_long(place: str, value: str, options: ServerOptions) -> RequestError:
    return RequestError(413, f"{place} must have at most {options.max_characters:,} characters. Got {len(value):,}.")


def rows_of(served: ServedModel, source: str, values: list[Any], options: ServerOptions) -> Any:
    for place, row in enumerate(values):
        if not isinstance(row, dict):
            raise RequestError(400, f"{place_of(source, place)} must be an object with a value for each column. Got {shown(row)}.")
        for name, value in row.items():
            if isinstance(value, str) and len(value) > options.max_characters:
                raise too_long(f"{place_of(source, place)}.{name[:60]}", value, options)
    try:
        return features_of_rows(served.model, values)
    except ValueError as error:
        raise RequestError(400, of_row(error, source)) from None


def of_row(error: ValueError, source: str) -> str:
    """The sentence of an error about rows, for a field that holds one row only."""
    return str(error).replace("rows[0]", "row", 1) if source == "row" else str(error)


def weight_of(served: ServedModel, features: Any, n_rows: int) -> int:
    """About how much work the rows are, in characters."""
    if served.kind == "text":
        return sum(map(len, features))
    if served.kind == "numbers":
        return CELL * int(features.nnz)
    texts = served.model.inputs.text
    n_characters = sum(len(value) for name in texts for value in features[name])
    return n_characters + CELL * n_rows * (len(features) - len(texts))


def coverage_of(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, float) or not 0 < value < 1:
        raise RequestError(400, f"set must be a probability between 0 and 1, such as 0.9. Got {shown(value)}.")
    return value


def checked_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RequestError(400, f"{name} must be true or false. Got {shown(value)}.")
    return value


def check_explained(served: ServedModel, n_rows: int, n_characters: int) -> None:
    if not served.explains:
        raise RequestError(
            400, f"{served.name} cannot be explained: that needs the weights of a linear model, and columns with names."
        )
    if n_rows > EXPLAINED_ROWS:
        raise RequestError(413, f"explain is for at most {EXPLAINED_ROWS} rows at once. Got {n_rows}.")
    if n_characters > EXPLAINED_CHARACTERS:
        raise RequestError(413, f"explain is for at most {EXPLAINED_CHARACTERS:,} characters at once. Got {n_characters:,}.")


def nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f": did you mean {near[0]}?" if near else f": it has {', '.join(known)}."


def shown(value: Any) -> str:
    """A value as JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
