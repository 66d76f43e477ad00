"""What the sections of ``docs/benchmarks.md`` share: which lines are shown, and where they come from."""

from collections.abc import Callable
from typing import Any

from lab.results import Line


def newest(lines: list[Line], key: Callable[[Line], Any]) -> list[list[Line]]:
    """For each key, the lines of its newest run, in the order in which keys first appeared."""
    last: dict[Any, str] = {}
    for line in lines:
        last[key(line)] = max(last.get(key(line), ""), line["run"])
    return [[line for line in lines if key(line) == k and line["run"] == run] for k, run in last.items()]


def newest_of_set(lines: list[Line]) -> list[list[Line]]:
    """The lines of the newest run of every data set."""
    return newest(lines, lambda line: line["data"]["name"])


def origin(line: Line) -> str:
    machine = line["machine"]
    return (
        f"{line['run'][:10]}, commit {line['commit']}, {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_gb']:g} GB, {machine['system']}, huge pages: {machine['huge_pages']}"
    )


def describe(data: Line) -> str:
    return f"{data['rows']:,} rows, {data['columns']:,} columns, {data['entries']:,} entries, {data['ranks']} ranks"
