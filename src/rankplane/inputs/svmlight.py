"""Lines ``label column:value ...``, columns counted from 1, as rows of a matrix.

scikit-learn's parser takes two thirds of the time of ours, but wants labels to be numbers and columns in order, and cannot say
which line is wrong. So it goes first, and ours reads what it refuses.
"""

import importlib
import io
import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankplane.inputs.batches import MARK, Batch, InputError, Lines

MAX_COLUMN = 2**31 - 1  # what column numbers of a matrix can hold
LABEL = "label"  # the only named column of an svmlight file
SIGNED_COLUMN = re.compile(r"\s\+")


def svmlight_batches(text: Lines, path: str, size: int) -> Iterator[Batch]:
    labels: list[str] = []
    rows: list[str] = []
    lines: list[int] = []
    n_batches = 0

    def batch() -> Batch:
        found = quick_matrix(labels, rows)
        return Batch({LABEL: labels}, lines, exact_matrix(labels, rows, lines, path) if found is None else found)

    for number, line in enumerate(text, start=1):
        parts = line.removeprefix(MARK).partition("#")[0].split(None, 1)
        if not parts:
            continue
        labels.append(parts[0])
        rows.append(parts[1] if len(parts) > 1 else "")
        lines.append(number)
        if len(labels) == size:
            yield batch()
            labels, rows, lines, n_batches = [], [], [], n_batches + 1
    if labels or not n_batches:
        yield batch()


def quick_matrix(labels: list[str], rows: list[str]) -> Any:
    """What scikit-learn reads; None where it fails, or takes what we would not."""
    text = "".join(f"0 {row}\n" for row in rows)
    # 1_000 and +1 are numbers in Python, but no columns.
    if "_" in text or ("+" in text and SIGNED_COLUMN.search(text)) or ":" in "".join(labels):
        return None
    try:
        matrix, _ = importlib.import_module("sklearn.datasets").load_svmlight_file(io.BytesIO(text.encode()), zero_based=False)
    except (ValueError, OverflowError):
        return None
    # Rows without entries would have a column.
    is_sound = matrix.nnz > 0 and matrix.shape[1] <= MAX_COLUMN and np.all(np.isfinite(matrix.data))
    return matrix if is_sound else None


def exact_matrix(labels: list[str], rows: list[str], lines: list[int], path: str) -> Any:
    """``InputError`` with the line and what is wrong with it."""
    starts = [0]
    columns, values = list[int](), list[float]()
    for label, row, number in zip(labels, rows, lines, strict=True):
        try:
            if ":" in label:
                raise ValueError("the label is missing")
            entries = svmlight_entries([part for part in row.split() if not part.startswith("qid:")])
        except ValueError as error:
            raise InputError(f"{path} line {number}: must be svmlight, label column:value ...: {error}.") from None
        columns += entries.keys()
        values += entries.values()
        starts.append(len(columns))
    shape = (len(labels), max(columns, default=-1) + 1)
    return sp.csr_matrix((np.array(values), np.array(columns, dtype=np.int64), np.array(starts)), shape=shape)


def svmlight_entries(parts: list[str]) -> dict[int, float]:
    """Values by column, counted from 0; ``ValueError`` with what is wrong."""
    cells = [part.partition(":") for part in parts]
    digits = "".join([column for column, _, _ in cells])
    # Most lines are good, which can be seen at once; for the others, entry by entry is soon enough.
    if digits.isascii() and digits.isdigit() and len(digits) < 19 * len(cells):
        with suppress(ValueError):
            found = {int(column) - 1: float(value) for column, _, value in cells}
            if len(found) == len(cells) and min(found) >= 0 and max(found) < MAX_COLUMN and math.isfinite(sum(found.values())):
                return found
    entries = [svmlight_entry(part) for part in parts]
    if len(dict(entries)) != len(entries):
        twice = Counter(column for column, _ in entries).most_common(1)[0][0]
        raise ValueError(f"column {twice + 1} occurs twice")
    return dict(entries)


def svmlight_entry(part: str) -> tuple[int, float]:
    """Column, counted from 0, and value; ``ValueError`` with what is wrong."""
    column, colon, value = part.partition(":")
    if not colon:
        raise ValueError(f'"{part}" has no colon')
    if not (column.isascii() and column.isdigit()):
        raise ValueError(f'"{column}" is no column number')
    # Nobody needs more digits, and Python has a limit for them.
    number = int(column) if len(column) < 20 else MAX_COLUMN + 1
    if not 1 <= number <= MAX_COLUMN:
        raise ValueError(f"columns are counted from 1 to {MAX_COLUMN}")
    found = float(value)
    if not math.isfinite(found):
        raise ValueError(f'the value "{value}" of column {column} is not a finite number')
    return number - 1, found
