"""What fits mean to hold: ratios of times, threads and memory."""

from typing import Any

from benchmarks.goals import Goal, name_of, spread
from lab.results import Line

Lines = list[Line]
LARGE = 1_000_000


def fit_goals(lines: Lines) -> list[Goal]:
    """Goals of one data set, from the fit lines of one run."""
    counted = {line["competitor"]: line for line in lines if line["counts"]}
    goals: list[Goal] = []
    if not counted:
        return goals
    data, ranks = lines[0]["data"]["name"], lines[0]["data"]["ranks"]
    # A small set fits into the cache, so that memory does not matter: ratios are shown, but no claim is made.
    is_large = lines[0]["data"]["entries"] >= LARGE

    def add(what: str, over: Line | None, under: Line | None, bound: float | None = None, is_upper: bool = False) -> None:
        if over is not None and under is not None:
            by_rounds = spread(over["seconds"], under["seconds"])
            goals.append(Goal(what, data, over["best"] / under["best"], bound, is_upper, by_rounds))

    textbook, svc, svr = (counted.get(name) for name in ("textbook DCD-2", "LIBLINEAR -s 3", "LIBLINEAR -s 13"))
    for threads in (1, 2):
        who, plain = name_of(threads), counted.get(f"rankplane NPSVOR, {name_of(threads)}")
        equal = matching(lines, "textbook DCD-2", threads)
        bound = 8.0 if is_large and threads == 1 else None
        add(f"NPSVOR, {who}: times faster than the textbook solver at equal gap", textbook, equal, bound)
        bound = 15.0 if data.startswith("largemovie") and threads == 2 else None
        add(f"NPSVOR, {who}: times faster than LIBLINEAR -s 3", svc, plain, bound)
        bound = (1.2 if threads == 1 else 1.0) if is_large and ranks == 8 else None
        add(f"NPSVOR, {who}: time of {ranks} planes over LIBLINEAR -s 13, one plane", plain, svr, bound, is_upper=True)
        equal = matching(lines, "LIBLINEAR -s 3", threads)
        add(f"SVC, {who}: times faster than LIBLINEAR -s 3 at equal objective", svc, equal)
        equal = matching(lines, "LIBLINEAR -s 13", threads)
        add(f"SVR, {who}: times faster than LIBLINEAR -s 13 at equal objective", svr, equal)
    return goals


def matching(lines: Lines, rival: str, threads: int) -> dict[str, Any] | None:
    """Our line whose answer was fitted to be no worse than the rival's."""
    found = [line for line in lines if line["counts"] and rival in line["matches"] and line["threads"] == threads]
    return min(found, key=lambda line: line["best"]) if found else None


MEMORY = {"fit": 1.2, "search": 2.4, "probabilities": 2.4}


def memory_goals(lines: Lines) -> list[Goal]:
    """Against what one plain fit cannot do without, whatever the task."""
    return [
        Goal(
            f"NPSVOR, {line['task']}, {name_of(line['threads'])}, tol={line['tol']:g}: "
            "peak memory over W, alpha and column indices",
            line["data"]["name"],
            line["ratio"],
            MEMORY[line["task"]],
            True,
        )
        for line in lines
    ]
