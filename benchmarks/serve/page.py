"""Requests per second, and the time until an answer."""

from pathlib import Path
from statistics import median

from benchmarks.common import read_lines
from benchmarks.goals import Goal
from benchmarks.layout import origin
from lab.results import Line
from lab.tables import number, table

OURS, THEIRS = "rankplane serve", "FastAPI and scikit-learn"
TIMES = 5.0
LATE = 10.0  # milliseconds
INTRODUCTION = """## Serving

`rankplane serve` beside the server that tutorials show, FastAPI around a scikit-learn pipeline (TF-IDF of words and pairs,
logistic regression), with {workers} processes each, both trained on the same {texts:,} texts. The program that sends the
requests, wrk, runs on the same machine: each connection asks again as soon as it is answered. Medians of {rounds} runs in turns of
{seconds:.0f} seconds; milliseconds are from a request to its answer.
"""


def shown() -> list[Line]:
    """The newest run."""
    lines = read_lines("serve")
    last = max((line["run"] for line in lines), default="")
    return [line for line in lines if line["run"] == last]


def middle(lines: list[Line], field: str) -> float:
    return median(line[field] for line in lines)


def pick(lines: list[Line], **wanted: object) -> list[Line]:
    return [line for line in lines if all(line[field] == value for field, value in wanted.items())]


def settings(lines: list[Line]) -> list[tuple[int, int]]:
    """Rows and connections, in the order in which they were measured."""
    return list(dict.fromkeys((line["rows"], line["connections"]) for line in pick(lines, kind="throughput")))


def held() -> list[Goal]:
    lines, goals = shown(), []
    for rows, connections in settings(lines):
        ours, theirs = (pick(lines, kind="throughput", server=s, rows=rows, connections=connections) for s in (OURS, THEIRS))
        if ours and theirs:
            ratio = middle(ours, "requests_per_second") / middle(theirs, "requests_per_second")
            rounds = [a["requests_per_second"] / b["requests_per_second"] for a, b in zip(ours, theirs, strict=False)]
            about = f"{rows} texts, {connections} connections"
            goals.append(
                Goal("requests per second, over FastAPI's", about, ratio, TIMES, spread=f"{min(rounds):.1f} to {max(rounds):.1f}")
            )
    if half := pick(lines, kind="half load"):
        goals.append(
            Goal("milliseconds to 99 % of answers at half load, of 10", "1 text", middle(half, "p99") / LATE, 1.0, is_upper=True)
        )
    return goals


def section(folder: Path) -> str:
    lines = shown()
    if not lines:
        return ""
    rows = []
    for n_rows, connections in settings(lines):
        for server in (OURS, THEIRS):
            if found := pick(lines, kind="throughput", server=server, rows=n_rows, connections=connections):
                times = [number(middle(found, name), 1) for name in ("p50", "p95", "p99")]
                failed = sum(line["failed"] for line in found)
                rows.append(
                    (server, str(n_rows), str(connections), number(middle(found, "requests_per_second"), 0), *times, f"{failed:g}")
                )
    for line in pick(lines, kind="half load")[:1]:
        found = pick(lines, kind="half load")
        times = [number(middle(found, name), 1) for name in ("p50", "p95", "p99")]
        failed = sum(line["failed"] for line in found)
        rate = number(middle(found, "requests_per_second"), 0)
        rows.append((f"{OURS}, at a fixed rate", "1", str(line["connections"]), rate, *times, f"{failed:g}"))
    head = ("server", "texts per request", "connections", "requests per second", "p50 ms", "p95 ms", "p99 ms", "failed")
    first = lines[0]
    n_rounds = 1 + max(line["round"] for line in lines)
    about = INTRODUCTION.format(workers=first["workers"], texts=first["texts"], rounds=n_rounds, seconds=first["seconds"])
    return f"{about}\n{origin(lines[-1])}.\n\n{table(head, rows)}"
