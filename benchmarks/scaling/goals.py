"""What is to be reached with more threads and more rows."""

from benchmarks.goals import Goal, spread
from lab.results import Line

# (task, data set) and number of threads: times faster than one of our own threads
SPEEDUPS = {
    ("fit", "largemovie:paper", 2): 1.6,
    ("fit", "largemovie:default", 2): 1.8,
    ("fit", "largemovie:default", 16): 8.0,
    ("fit", "synthetic:600000x1000000x8x80", 16): 6.0,
    ("search", "largemovie:default", 16): 9.0,
    ("committee", "largemovie:default", 16): 9.0,
    ("fit_transform", "largemovie", 16): 9.0,
}
BUSY = 0.9
UNSORTED = 1.1
WHOLE = {"rows": 1_000_000, "seconds": 100.0, "gigabytes": 5.0, "mae": 0.330}


def series_goals(line: Line) -> list[Goal]:
    data = line["data"]["name"]

    def ratio(what: str, i: int, bound: float) -> Goal:
        return Goal(what, data, line["best"][0] / line["best"][i], bound, spread=spread(line["seconds"][0], line["seconds"][i]))

    if line["kind"] == "threads":
        return [
            ratio(f"{line['task'].replace('_', ' ')}: {n} threads, times faster than one", i, SPEEDUPS[line["task"], data, n])
            for i, n in enumerate(line["x"])
            if (line["task"], data, n) in SPEEDUPS
        ]
    if line["kind"].startswith("threads, "):
        return [ratio(f"{line['task']}: two{line['kind']}, times faster than one".replace("twothreads", "two threads"), 1, BUSY)]
    if line["kind"] == "columns of a row":
        sorted_, unsorted = line["seconds"]
        what = f"{line['task']}: time of csr rows with unsorted columns over sorted ones"
        return [Goal(what, data, line["best"][1] / line["best"][0], UNSORTED, is_upper=True, spread=spread(unsorted, sorted_))]
    return []


def whole_goals(line: Line) -> list[Goal]:
    """From a csv file to a tuned, calibrated and measured model."""
    if line["task"] != "train" or line["rows"] != WHOLE["rows"]:
        return []
    what, data = "csv of 1,000,000 reviews to a tested model", f"{line['threads']} threads"
    return [
        Goal(f"{what}: seconds", data, line["seconds"], WHOLE["seconds"], is_upper=True),
        Goal(f"{what}: peak memory, GB", data, line["peak_bytes"] / 1e9, WHOLE["gigabytes"], is_upper=True),
    ]
