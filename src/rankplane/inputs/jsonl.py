"""Lines of JSON objects, whose fields may come late or not at all."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from rankplane.inputs.batches import MARK, Batch, InputError, Lines, wanted

MAX_DEPTH = 100  # of lists and objects in a line
BRACKET = re.compile(r"[\[\]{}]")


def without_copies(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise KeyError(f'key "{twice}" occurs twice')
    return record


SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
DECODER = json.JSONDecoder(object_pairs_hook=without_copies)


def record_of(line: str) -> dict[str, Any]:
    """The object of a line; ``ValueError`` with what is wrong."""
    record = parsed_json(line)
    if not isinstance(record, dict):
        raise ValueError("must be a JSON object, one per line")
    return record


def parsed_json(text: str, decoder: json.JSONDecoder = DECODER) -> Any:
    """The value of a JSON text that can be written again; ``ValueError`` with what is wrong."""
    if text.count("[") + text.count("{") > MAX_DEPTH and depth_of(text) > MAX_DEPTH:
        raise ValueError(f"lists and objects are nested deeper than {MAX_DEPTH} levels")
    try:
        value = decoder.decode(text)
    except KeyError as error:
        raise ValueError(error.args[0]) from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise ValueError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
        raise ValueError("a whole number has too many digits") from None
    if SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])[1:-1]
            raise ValueError(f"{half} is half of a pair of surrogates, which is no character") from None
    return value


def depth_of(text: str) -> int:
    """Levels of lists and objects within each other, also of a text that is not JSON.

    The decoder would notice too, but at a depth that follows the recursion limit of the process.
    """
    outside_strings = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    depth = deepest = 0
    for bracket in BRACKET.findall(outside_strings):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def jsonl_batches(text: Lines, path: str, size: int, keep: Collection[str] | None) -> Iterator[Batch]:
    names: dict[str, None] = {}
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    n_batches = 0

    def batch() -> Batch:
        columns = {name: [record.get(name) for record in records] for name in wanted(list(names), keep)}
        return Batch(columns, lines, names=list(names))

    for number, line in enumerate(text, start=1):
        line = line.removeprefix(MARK)
        if not line.strip():
            continue
        try:
            record = record_of(line.rstrip())
        except ValueError as error:
            raise InputError(f"{path} line {number}: {error}.") from None
        names |= dict.fromkeys(record)
        records.append(record)
        lines.append(number)
        if len(records) == size:
            yield batch()
            records, lines, n_batches = [], [], n_batches + 1
    if records or not n_batches:
        yield batch()
