"""Dates and lists of numbers as columns of numbers and categories, which `ColumnEncoder` takes.

A date becomes its number of days since 1970, which has an order, and its month, weekday and hour, which recur. A list becomes a
column of numbers for each of its places.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.tabular import CellError, is_missing, shortened

DATE = re.compile(r"\s*\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?\s*(Z|UTC|[+-]\d\d(:?\d\d)?)?)?\s*")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
EPOCH = date(1970, 1, 1).toordinal()
# What a column is spread into: the parts of a date, or the number of its places.
Spread = list[str] | int


def moment_of(value: Any) -> datetime | None:
    """The date and time that a value stands for, in the time zone it was written in; None for anything else."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, str):
        if not DATE.fullmatch(value):
            return None
        try:
            value = datetime.fromisoformat(re.sub(r"\s+(?=[Z+-]|$)", "", value.strip().replace("UTC", "Z")))
        except ValueError:  # as of February 30
            return None
    if isinstance(value, datetime):
        return value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else None


def numbers_of(value: Any) -> NDArray[np.float64] | None:
    """The numbers of a list, which may be written as JSON; None for anything else."""
    if isinstance(value, str):
        if not value.lstrip().startswith("["):
            return None
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__len__"):
        return None
    try:
        numbers = np.asarray(value)
        is_plain = numbers.ndim == 1 and len(numbers) > 0 and numbers.dtype.kind in "biuf"
        return numbers.astype(np.float64) if is_plain else None
    except (TypeError, ValueError):
        return None


def is_absent(value: Any) -> bool:
    return not hasattr(value, "__len__") and is_missing(value) if not isinstance(value, str) else is_missing(value)


def spread_of(values: Any) -> Spread | None:
    """What a column is spread into; None for columns that stay as they are."""
    if isinstance(values, np.ndarray):  # of numbers
        return None
    present = [value for value in values if not is_absent(value)]
    if not present:
        return None
    if moment_of(present[0]) is not None:
        moments = list(map(moment_of, present))
        if any(moment is None for moment in moments):
            return None
        has_hours = any(moment is not None and (moment.hour or moment.minute or moment.second) for moment in moments)
        return ["month", "weekday", "hour"] if has_hours else ["month", "weekday"]
    first = numbers_of(present[0])
    if first is None or any(found is None or len(found) != len(first) for found in map(numbers_of, present)):
        return None
    return len(first)


def spread_names(name: str, spread: Spread) -> list[str]:
    if isinstance(spread, int):
        return [f"{name}.{place}" for place in range(spread)]
    return [name, *(f"{name}.{part}" for part in spread)]


def spread_column(name: str, values: Any, spread: Spread) -> dict[str, Any]:
    """The columns that a column is spread into."""
    columns = spread_list(name, values, spread) if isinstance(spread, int) else spread_dates(name, values, spread)
    return dict(zip(spread_names(name, spread), columns, strict=True))


def spread_list(name: str, values: Any, n_places: int) -> list[Any]:
    found = np.full((len(values), n_places), np.nan)
    for row, value in enumerate(values):
        if is_absent(value):
            continue
        numbers = numbers_of(value)
        if numbers is None or len(numbers) != n_places:
            rule = f"Column {name!r} must hold lists of {n_places:,} numbers, as it did in training"
            raise CellError(f"{rule}. Got {shortened(value)}.", row)
        found[row] = numbers
    return list(np.ascontiguousarray(found.T))


def spread_dates(name: str, values: Any, parts: list[str]) -> list[Any]:
    days = np.full(len(values), np.nan)
    recurring: dict[str, list[str | None]] = {part: [None] * len(values) for part in parts}
    for row, value in enumerate(values):
        if is_absent(value):
            continue
        moment = moment_of(value)
        if moment is None:
            raise CellError(f"Column {name!r} must hold dates, as it did in training. Got {shortened(value)}.", row)
        plain = moment if moment.tzinfo is None else moment.astimezone(UTC)
        seconds = 3600 * plain.hour + 60 * plain.minute + plain.second
        days[row] = plain.toordinal() - EPOCH + seconds / 86400
        told = {"month": MONTHS[moment.month - 1], "weekday": WEEKDAYS[moment.weekday()], "hour": f"{moment.hour}:00"}
        for part in parts:
            recurring[part][row] = told[part]
    return [days, *recurring.values()]


def check_spread(stored: Any) -> None:
    """Refuse what no column was spread into: anybody may have written the file that it was read from."""
    for spread in stored.values():
        is_list = type(spread) is int and 0 < spread < 2**31
        if not is_list and spread not in (["month", "weekday"], ["month", "weekday", "hour"]):
            raise ValueError("columns are spread into unknown parts")
