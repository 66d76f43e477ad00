"""The ratios that the package means to hold, computed from result lines, so that the console and the docs cannot
differ.
"""

from dataclasses import dataclass
from typing import Any

Line = dict[str, Any]
Lines = list[Line]
LARGE = 1_000_000


@dataclass(frozen=True)
class Goal:
    """A ratio of two best times (or sizes), and the bound it is held to; None where it is only reported."""

    what: str
    data: str
    ratio: float
    bound: float | None
    is_upper: bool = False
    spread: str = ""  # the range of the ratio within single rounds

    @property
    def verdict(self) -> str:
        if self.bound is None:
            return ""
        is_held = self.ratio <= self.bound if self.is_upper else self.ratio >= self.bound
        return ("yes" if is_held else "no") + f" ({'at most' if self.is_upper else 'at least'} {self.bound:g})"


def spread(over: list[float], under: list[float]) -> str:
    ratios = [a / b for a, b in zip(over, under, strict=False)]
    return f"{min(ratios):.1f} to {max(ratios):.1f}" if len(ratios) > 1 else ""


def fit_goals(lines: Lines) -> list[Goal]:
    """Goals of one data set, from the fit lines of one run."""
    counted = {line["competitor"]: line for line in lines if line["counts"]}
    goals: list[Goal] = []
    if not counted:
        return goals
    data, ranks = lines[0]["data"]["name"], lines[0]["data"]["ranks"]
    # A toy fits into the cache, where nobody waits for memory: ratios are shown, nothing is claimed.
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
        bound = 12.0 if data.startswith("largemovie") and threads == 2 else None
        add(f"NPSVOR, {who}: times faster than LIBLINEAR -s 3", svc, plain, bound)
        bound = 1.2 if is_large and ranks == 8 else None
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


def thread_goals(lines: Lines) -> list[Goal]:
    """From the scaling lines of kind "threads on features"."""
    return [
        Goal(
            "NPSVOR: two threads, times faster than one",
            line["data"]["name"],
            line["best"][0] / line["best"][1],
            1.6,
            spread=spread(*line["seconds"]),
        )
        for line in lines
        if line["kind"] == "threads on features"
    ]


def memory_goals(lines: Lines) -> list[Goal]:
    return [
        Goal(
            f"NPSVOR, {name_of(line['threads'])}, tol={line['tol']:g}: peak memory over W, alpha and column indices",
            line["data"]["name"],
            line["ratio"],
            1.2,
            True,
        )
        for line in lines
    ]


def search_goals(lines: Lines) -> list[Goal]:
    best = {line["competitor"]: line["best"] for line in lines if line["kind"] == "search"}
    ours = best.get("rankplane CSearchCV, 2 threads")
    rival = next((name for name in best if name.startswith("LIBLINEAR")), None)
    if ours is None or rival is None:
        return []
    what = "Search of C, 2 threads: times faster than as many LIBLINEAR fits"
    return [Goal(what, lines[0]["data"]["name"], best[rival] / ours, 40.0)]


def text_goals(lines: Lines) -> list[Goal]:
    return [
        Goal(
            "Vectorizing, paper preset, 2 threads: times faster than scikit-learn with PyStemmer",
            line["data"],
            line["times_faster_than_scikit_learn"],
            15.0,
        )
        for line in lines
        if line["competitor"] == "rankplane" and line["task"] == "paper"
    ]


def name_of(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"
