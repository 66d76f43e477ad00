"""Requests per second, and the time until an answer."""

from pathlib import Path
from statistics import median

from benchmarks.common import read_lines
from benchmarks.goals import Goal, spread
from benchmarks.layout import newest, origin
from benchmarks.serve.servers import OURS, THEIRS
from lab.results import Line
from lab.tables import number, table

OF_A_RUN = ("throughput", "half load")
TIMES = 5.0
LATE = 10.0  # milliseconds
INTRODUCTION = """## Serving

`rankplane serve` beside the server that tutorials show, FastAPI around a scikit-learn pipeline (TF-IDF of words and pairs,
logistic regression), with {workers} processes each, both trained on the same {texts:,} texts of {data}
(`python -m benchmarks.serve.run`). The program that sends the requests, wrk, runs on the same machine, and each of its connections
asks again as soon as it is answered; *half load* is half of the most requests per second that a server has answered. Answers were
compared with those of the model without a server before anything was timed. Medians of {rounds} runs in turns of {seconds:.0f}
seconds; milliseconds are from a request to its answer, and microseconds are processor time of the server per request.
"""
SOAK = """{minutes:g} minutes of mixed requests from {clients} clients to {workers} workers, with a new model every {every:.0f}
seconds (`python -m benchmarks.serve.soak`): {sent}. {outcome}, and memory changed by {grown:+.1f} MB from the first to the last
third of that time.
"""
SENT = {
    "one": "with one text",
    "batch": "with 32 texts",
    "why": "for reasons",
    "bad": "that must be refused",
    "half": "broken off in the middle",
}


def shown() -> list[Line]:
    """The newest run."""
    return next(iter(newest(pick(read_lines("serve"), OF_A_RUN), lambda line: "")), [])


def soaks() -> list[Line]:
    return next(iter(newest(pick(read_lines("serve"), ("soak",)), lambda line: "")), [])


def middle(lines: list[Line], field: str) -> float:
    return median(line[field] for line in lines)


def pick(lines: list[Line], kinds: tuple[str, ...], **wanted: object) -> list[Line]:
    return [line for line in lines if line["kind"] in kinds and all(line[field] == value for field, value in wanted.items())]


def settings(lines: list[Line]) -> list[tuple[str, int, int]]:
    """Kinds, rows and connections, in the order in which they were measured."""
    return list(dict.fromkeys((line["kind"], line["rows"], line["connections"]) for line in lines))


def held() -> list[Goal]:
    lines, goals = shown(), []
    for kind, rows, connections in settings(lines):
        ours, theirs = (pick(lines, (kind,), server=server, rows=rows, connections=connections) for server in (OURS, THEIRS))
        if kind == "half load":
            late = [line["p99"] / LATE for line in ours]
            goals.append(Goal("99 % of answers at half load, over 10 ms", name_of(rows), median(late), 1.0, is_upper=True))
        elif ours and theirs:
            asked = f"{name_of(rows)}, {connections} connection{'s' * (connections > 1)}"
            rates = [[line["requests_per_second"] for line in found] for found in (ours, theirs)]
            ratio = median(rates[0]) / median(rates[1])
            goals.append(Goal("requests per second, over FastAPI's", asked, ratio, TIMES, spread=spread(*rates)))
    return goals


def name_of(rows: int) -> str:
    return "1 text" if rows == 1 else f"{rows} texts"


def section(folder: Path) -> str:
    lines = shown()
    if not lines:
        return soak_section()
    rows = []
    for kind, n_rows, connections in settings(lines):
        for server in (OURS, THEIRS):
            if found := pick(lines, (kind,), server=server, rows=n_rows, connections=connections):
                name = f"{server}, {kind}" if kind == "half load" else server
                digits = {"requests_per_second": 0, "p50": 1, "p95": 1, "p99": 1, "processor_us": 0}
                cells = [number(middle(found, field), places) for field, places in digits.items()]
                failed = sum(line["failed"] for line in found)
                rows.append((name, str(n_rows), str(connections), *cells, f"{failed:g}"))
    head = ("server", "texts", "connections", "requests per second", "p50 ms", "p95 ms", "p99 ms", "processor us", "failed")
    first = lines[0]
    n_rounds = 1 + max(line["round"] for line in lines)
    about = INTRODUCTION.format(rounds=n_rounds, **{name: first[name] for name in ("workers", "texts", "data", "seconds")})
    return f"{about}\n{origin(lines[-1])}.\n\n{table(head, rows)}\n{soak_section()}"


def soak_section() -> str:
    """The newest long load."""
    for line in soaks():
        sent = ", ".join(f"{count:,} {SENT[kind]}" for kind, count in line["requests"].items())
        outcome = f"{line['faults'] or 'No'} requests were lost, answered wrongly, or refused for no reason"
        every = line["seconds"] / line["replacements"]
        facts = {name: line[name] for name in ("clients", "workers")}
        about = SOAK.format(
            minutes=round(line["seconds"] / 60, 1), every=every, sent=sent, outcome=outcome, grown=line["grown_mb"], **facts
        )
        return f"{about}\n{origin(line)}.\n"
    return ""
