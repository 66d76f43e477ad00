"""Draws ``docs/benchmarks.md``, and its pictures, from the JSON lines under ``results/`` and nothing else: ``python -m
benchmarks.docs``.

The newest run of each data set is shown, with everyone who took part in it, winners and losers.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.accuracy.predictions import MEASURES
from benchmarks.accuracy.rankplane import VARIANTS as OURS
from benchmarks.accuracy.run import judged, losses
from benchmarks.common import console, read_lines
from benchmarks.data import ROOT
from benchmarks.fit import goals, plots

Line = dict[str, Any]
MEBIBYTE = 2**20
PROBLEMS = {"npsvor": "NPSVOR", "svc": "SVC", "svr": "SVR"}

INTRODUCTION = """# Benchmarks

Drawn by `python -m benchmarks.docs` from the JSON lines in `benchmarks/results/`; nothing here is typed by hand.

- Everyone fits the same rows and ranks in the same process, in turns; the best of several rounds counts. Only the fit
  is timed: loading, conversions of X into a competitor's own structures, warm-up and prediction are not.
- All solve with C = 1, epsilon = 0.1 and a bias penalised like a weight.
- *excess* is how far the objective, recomputed in double from the weights, lies above a certified lower bound of its
  problem (the largest dual value known). *gap* is the duality gap over the dual value: the primal is recomputed, the
  dual is what the solver reports (the textbook solver's is recomputed too). A time counts only with an excess below 10 %.
- Stopping rules differ, so equal tolerances are not equal answers: rows "as good as" a rival ran at the tolerance,
  found in steps of a quarter, at which our gap (textbook) or objective (LIBLINEAR) is no worse than that rival's.
- The textbook solver is `benchmarks/fit/textbook.cpp`: plane after plane, in double, compiled with `-O3`.
- Text sets are TF-IDF of unigrams and bigrams from 70 % of the rows. *paper*: stop words removed, stems, min_df 3,
  max_df 0.5; *keep*: all words, min_df 2, sublinear tf. The phone reviews hold copies of the same review on both sides
  of the split, which flatters the accuracy of every competitor alike.
- Ratios are of best times; *by rounds* is the range of the same ratio within single rounds, which shows the noise.
- A synthetic set is named by rows x columns x ranks x entries per row.
"""

ACCURACY_INTRODUCTION = """## Accuracy

The test rows are 30 % of the rows, stratified, copies of a review on one side; Treebank has its own split. A test row whose
tokens are also those of a training row is left out: some texts are in a file twice. Features are the `default` preset made
with scikit-learn's vectorizer (all words, `!` and `?`, bigrams, min_df 2, sublinear tf; Chinese by characters), the same
matrix for everyone; fastText reads the same tokens. Of `tripadvisor_250k` a stratified 100,000 rows are used.

Ranks are mode, median and rounded mean of the probabilities for accuracy, MAE and MSE, for everyone who has probabilities.
Everyone chooses settings without the test rows: we by the ranked probability score, once; rivals for each measure on its own,
on grids that go on as long as their end is best (a note says where that stopped too early). mord has a time limit.
Seconds are of processor time, all threads together, and include choosing. These runs counted BLAS threads that only waited, and up
to three final fits of a rival; `docs/reproduction.md` compares seconds without either.
"""

MANY_RANKS_INTRODUCTION = """## Calibrators of many ranks

`python -m benchmarks.calibrators.many_ranks`: a column of a table, cut into quantiles, predicted from the others by
NPSVOR with C = 1. *curved* is what the models use: beyond ten ranks neighbouring planes are averaged and weights are
smooth in the rank. *plain* has a weight per plane and rank and is left out beyond 30 ranks, where it takes minutes.
*cumulative* has a logistic curve per boundary.
"""
CALIBRATORS_INTRODUCTION = """## Calibrators

*multinomial*: logistic regression on all plane scores; *curved*: on the scores and their distances from the planes, what
`probability=True` uses; *cumulative*: a logistic curve per boundary, forced to be monotone. Trained on the same held-out
scores, judged on the test rows of the accuracy section. RPS is the ranked probability score.
"""
TEXT_INTRODUCTION = """## Text

From documents in memory to a csr matrix, two threads for whoever has them, best of several turns. *matrix*: whether columns,
entries and values are those of scikit-learn's `TfidfVectorizer`; *paper* is bigrams with stop words dropped and stems, for
scikit-learn with PyStemmer, `min_df=3`, `max_df=0.5`; *transform* is of documents not seen before.
"""
KERNEL_INTRODUCTION = """## Kernels

RBF, C = 1, the same gamma for everyone; tables are standardised. scikit-learn leaves the bias free of penalty: "free bias" is
our solver on that very problem, the objective recomputed from the dual variables, and *excess* is how far it lies above a
certified lower bound. Our models as they are penalise the bias, except SVOR. Rivals stop at their default tolerance, we at
`tol=0.01`, a duality gap of 1e-4 of the objective. skordinal takes dense rows; rows of text are given to it as coordinates
with the same distances.
"""
# Who, against which of ours, and what about it.
KERNEL_RATIOS = (
    ("scikit-learn SVC, rank by rank", "rankplane SVC, free bias, 1 thread", ", same problem"),
    ("scikit-learn SVC, rank by rank", "rankplane SVC, 1 thread", ""),
    ("scikit-learn SVR", "rankplane SVR, free bias, 1 thread", ", same problem"),
    ("skordinal SVOR", "rankplane SVOR, 1 thread", ""),
    ("skordinal REDSVM", "rankplane RedSVM, 1 thread", ""),
)
ANSWERS = ("search", "separate", "separate_tight")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A markdown table whose source is aligned too; the first ``left`` columns are text, the rest numbers."""
    cells = [list(head), *(list(row) for row in rows)]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        padded = (cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * w if i < left else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([line(cells[0]), line(rule), *(line(row) for row in cells[1:])]) + "\n"


def newest(lines: list[Line], key: Callable[[Line], Any]) -> list[list[Line]]:
    """For each key, the lines of its newest run, in the order in which keys first appeared."""
    last: dict[Any, str] = {}
    for line in lines:
        last[key(line)] = max(last.get(key(line), ""), line["run"])
    return [[line for line in lines if key(line) == k and line["run"] == run] for k, run in last.items()]


def origin(line: Line) -> str:
    machine = line["machine"]
    return (
        f"{line['run'][:10]}, commit {line['commit']}, {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_gb']:g} GB, {machine['system']}, huge pages: {machine['huge_pages']}"
    )


def describe(data: Line) -> str:
    return f"{data['rows']:,} rows, {data['columns']:,} columns, {data['entries']:,} entries, {data['ranks']} ranks"


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f} %"


def number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def goal_section(found: list[goals.Goal]) -> str:
    rows = [(g.what, g.data, g.verdict, number(g.ratio, 2), g.spread) for g in found if g.bound is not None]
    if not rows:
        return ""
    head = ("ratio of best times, or of sizes", "data", "held?", "measured", "by rounds")
    return "## What we mean to hold\n\n" + table(head, rows, left=3)


def fit_section(runs: list[list[Line]]) -> str:
    parts = ["## Fit\n"] if runs else []
    for lines in runs:
        parts.append(f"### {lines[0]['data']['name']}\n\n{describe(lines[0]['data'])}. {origin(lines[0])}.\n")
        rows = []
        for line in sorted(lines, key=lambda line: (line["model"], line["best"])):
            answer, is_limit = line["answer"], line["note"].startswith("given up")
            note = line["note"] if line["counts"] or line["note"] else "answer too far off, not counted"
            rows.append(
                (
                    line["competitor"],
                    PROBLEMS.get(line["model"], line["model"]),
                    note,
                    ("> " if is_limit else "") + number(line["best"]),
                    str(len(line["seconds"])),
                    percent(answer.get("excess")),
                    percent(answer.get("relative_gap")),
                    *(number(answer.get(key)) for key in ("accuracy", "mae", "mse")),
                )
            )
        head = ("competitor", "problem", "note", "seconds", "best of", "excess", "gap", "accuracy", "MAE", "MSE")
        parts.append(table(head, rows, left=3))
        ratios = [(goal.what, number(goal.ratio, 2), goal.spread) for goal in goals.fit_goals(lines)]
        if ratios:
            parts.append(table(("ratio of best times", "measured", "by rounds"), ratios))
    return "\n".join(parts)


def scaling_section(lines: list[Line], pictures: list[Path], folder: Path) -> str:
    parts = ["## How the time grows\n\nNPSVOR, tol = 0.1 unless told otherwise.\n"] if lines else []
    parts += [f"![Time of a fit against {path.stem.split('-')[-1]}]({path.relative_to(folder)})\n" for path in pictures]
    for line in lines:
        head = (line["kind"].split()[0], "seconds", "sweeps", "ns per entry and sweep", "against the first")
        rows = [
            (
                f"{x:,.0f}",
                number(best),
                str(sweeps),
                number(best / sweeps / entries * 1e9, 2),
                number(best / line["best"][0], 2),
            )
            for x, best, sweeps, entries in zip(line["x"], line["best"], line["sweeps"], line["entries"], strict=True)
        ]
        parts.append(f"### {line['kind']}: {line['data']['name']}\n\n{origin(line)}.\n\n{table(head, rows, left=0)}")
    return "\n".join(parts)


def memory_section(lines: list[Line]) -> str:
    if not lines:
        return ""
    rows = []
    for line in lines:
        sizes = [number(line[key] / MEBIBYTE, 1) for key in ("X", "weights", "duals", "indices", "peak")]
        rows.append((line["data"]["name"], str(line["threads"]), f"{line['tol']:g}", *sizes, number(line["ratio"], 2)))
    head = ("data", "threads", "tol", "X", "W", "alpha", "indices", "peak beyond X", "ratio")
    return (
        "## Memory\n\nPeak of one NPSVOR fit in a fresh process, in MiB, beyond X and all that was loaded before; the\n"
        "ratio is to W, alpha (both padded to the SIMD width) and one copy of the column indices.\n"
        f"{origin(lines[-1])}.\n\n" + table(head, rows)
    )


def accuracy_section(lines: list[Line]) -> str:
    """Everyone's measures by data set. The newest line of each competitor counts; what beats us is named."""
    if not lines:
        return ""
    newest_lines = [run[-1] for run in newest(lines, lambda line: (line["data"]["name"], line["competitor"]))]
    sets = list(dict.fromkeys(line["data"]["name"] for line in newest_lines))
    parts, summary = [], []
    for name in sets:
        found = judged([line for line in newest_lines if line["data"]["name"] == name])
        found.sort(key=lambda line: line["competitor"] not in OURS)
        rows = []
        for line in found:
            beaten = [", ".join(losses(line["ours_is_at_least_as_good"], ours)) for ours in OURS]
            cells = ["" if line["measures"] is None else number(line["measures"][m], 4) for m in MEASURES]
            rows.append((line["competitor"], *beaten, line["note"], *cells, number(line["seconds"], 1)))
        about = found[0]["data"]
        by_review = " Split by review: no copy of a test review was trained on." if about["split_by_review"] else ""
        head = ("competitor", *(f"beats {ours} in" for ours in OURS), "note", "accuracy", "MAE", "MSE", "CPU seconds")
        size = f"{describe(about)}, {about['test_rows']:,} test rows."
        parts.append(f"### Accuracy: {name}\n\n{size}{by_review} {origin(found[0])}.\n\n{table(head, rows, 2 + len(OURS))}")
        rivals = [line for line in found if line["competitor"] not in OURS and line["measures"] is not None]
        lost = [[(line["competitor"], m) for line in rivals for m in losses(line["ours_is_at_least_as_good"], o)] for o in OURS]
        told = ["; ".join(f"{m} to {who}" for who, m in cells) or "none" for cells in lost]
        summary.append((name, *told, str(len(MEASURES) * len(rivals))))
    head = ("data", *(f"lost by {ours}" for ours in OURS), "comparisons")
    return "\n".join([ACCURACY_INTRODUCTION, table(head, summary, 1 + len(OURS)), *parts])


def search_section(runs: list[list[Line]]) -> str:
    parts = ["## Search\n\nEleven values of C on five folds; the fit with the best C is part of our time only.\n"] if runs else []
    for lines in runs:
        parts.append(f"### Search: {lines[0]['data']['name']}\n\n{describe(lines[0]['data'])}. {origin(lines[0])}.\n")
        searches = [line for line in lines if line["kind"] == "search"]
        ours = [line for line in searches if line["competitor"].startswith("rankplane")]
        rows = [
            (line["competitor"], line["note"], number(line["best"], 2), *(number(line["best"] / o["best"], 1) for o in ours))
            for line in searches
        ]
        over = tuple(f"over {line['competitor'].removeprefix('rankplane ')}" for line in ours)
        parts.append(table(("competitor", "note", "seconds", *over), rows, left=2))
        rows = [
            (f"{line['C']:g}", "yes" if line["agrees"] else "no", *(number(line[k], 4) for k in ANSWERS))
            for line in lines
            if line["kind"] == "answer"
        ]
        parts.append(table(("C", "same?", "MAE of the search", "of separate fits", "of tight separate fits"), rows, left=2))
        rows = [
            (
                goals.name_of(line["threads"]),
                number(min(line["plain"])),
                number(min(line["with_probability"])),
                number(line["ratio"], 2),
            )
            for line in lines
            if line["kind"] == "probability"
        ]
        parts.append(table(("NPSVOR, C = 1", "plain fit, seconds", "with probability=True", "ratio"), rows))
    return "\n".join(parts)


def text_section(runs: list[list[Line]]) -> str:
    """Vectorizers by data set and task."""
    if not runs:
        return ""
    rows = [
        (
            line["data"],
            line["task"],
            line["competitor"].replace("scikit_learn", "scikit-learn"),
            "same" if line["is_same_answer"] else "another",
            number(line["seconds"]),
            number(line["megabytes_per_second"], 1),
            number(line["times_faster_than_scikit_learn"], 1),
        )
        for lines in runs
        for line in sorted(lines, key=lambda line: line["seconds"])
    ]
    head = ("texts", "task", "vectorizer", "matrix", "seconds", "MB/s", "times faster than scikit-learn")
    return f"{TEXT_INTRODUCTION}\n{origin(runs[-1][-1])}.\n\n{table(head, rows, left=4)}"


def calibrators_section(runs: list[list[Line]]) -> str:
    if not runs:
        return ""
    head = ("data", "log loss", "RPS", "accuracy", "MAE", "MSE")
    keys = ("log_loss", "rps", *MEASURES)
    parts = [CALIBRATORS_INTRODUCTION + f"{origin(runs[-1][-1])}.\n"]

    def compare(title: str, variants: dict[str, Line]) -> None:
        """One table: the variants of every set, and how often each is best."""
        rows, best = [], {name: dict.fromkeys(keys, 0) for name in variants}
        n_sets = 0
        for lines in runs:
            found = {
                name: next((line for line in lines if all(line.get(k) == v for k, v in asked.items())), None)
                for name, asked in variants.items()
            }
            if any(line is None for line in found.values()):
                continue
            n_sets += 1
            values = {name: line["measures"] for name, line in found.items() if line is not None}
            for name, line in values.items():
                rows.append((f"{lines[0]['data']['name']}, {name}", *(number(line[k], 4) for k in keys)))
            for k in keys:
                sign = -1 if k == "accuracy" else 1
                best[min(values, key=lambda name: sign * values[name][k])][k] += 1
        if n_sets:
            rows += [(f"best of {n_sets} sets: {name}", *(str(count[k]) for k in keys)) for name, count in best.items()]
            parts.append(f"### {title}\n\n{table(head, rows)}")

    usual = {"planes": "NPSVOR", "folds": 5, "C_chosen_by": "rps", "calibrator": "curved"}
    compare("Calibrators", {c: usual | {"calibrator": c} for c in ("multinomial", "curved", "cumulative")})
    planes = ("NPSVOR", "NPSVOR, squared hinge", "SVC", "Committee", "Committee, hinge", "Committee, column weights")
    compare("Planes under the curved calibrator", {p: usual | {"planes": p} for p in planes})
    compare("Choice of C", {f"C by {how}": usual | {"C_chosen_by": how} for how in ("rps", "MAE of the ranker")})
    for p in ("NPSVOR", "Committee"):
        compare(f"Folds: {p}", {f"{n} folds": usual | {"planes": p, "folds": n} for n in (5, 3)})
    return "\n".join(parts)


def many_ranks_section(runs: list[list[Line]]) -> str:
    if not runs:
        return ""
    rows = [
        (
            f"{line['data']['name']}, {line['data']['ranks']} ranks",
            line["calibrator"],
            *(number(line["measures"][k], 4) for k in ("log_loss", "rps", "mae")),
            number(line["seconds"], 2),
        )
        for lines in runs
        for line in lines
    ]
    head = ("data", "calibrator", "log loss", "RPS", "MAE", "processor seconds")
    return f"{MANY_RANKS_INTRODUCTION}\n{origin(runs[-1][-1])}.\n\n{table(head, rows, left=2)}"


def coverage_section(lines: list[Line]) -> str:
    """What rank sets promise and hold, a row per data set."""
    promised = sorted({line["coverage"] for line in lines})
    by_set: dict[str, dict[float, Line]] = {}
    for line in lines:
        by_set.setdefault(line["data"]["name"], {})[line["coverage"]] = line["measures"]
    if not by_set:
        return ""
    rows = []
    for name, found in by_set.items():
        n_ranks = next(line["data"]["ranks"] for line in lines if line["data"]["name"] == name)
        rows.append(
            (f"{name}, {n_ranks} ranks", *(number(found[c][k], d) for c in promised for k, d in (("held", 3), ("size", 2))))
        )
    head = ("data", *(cell for c in promised for cell in (f"asked {c:g}: held", "ranks per set")))
    return f"## Rank sets\n\nOf NPSVOR, on the test rows of the accuracy section. {origin(lines[-1])}.\n\n{table(head, rows)}"


def kernel_section(lines: list[Line]) -> str:
    """Fits by data set, then searches: the newest line of each competitor."""
    if not lines:
        return ""
    newest_lines = [run[-1] for run in newest(lines, lambda line: (line["kind"], line["data"]["name"], line["competitor"]))]
    fits = [line for line in newest_lines if line["kind"] == "fit"]
    parts, ratios = [], []
    for name in dict.fromkeys(line["data"]["name"] for line in fits):
        found = [line for line in fits if line["data"]["name"] == name]
        about = found[0]["data"]
        rows = [
            (
                line["competitor"],
                line["note"] if line["counts"] or line["note"] else "answer too far off, not counted",
                ("> " if line["note"].startswith("given up") else "") + number(line["best"]),
                str(len(line["seconds"])),
                percent(line["answer"].get("excess")),
                number(line["answer"].get("accuracy")),
                number(line["answer"].get("mae")),
            )
            for line in sorted(found, key=lambda line: (line["problem"], line["best"]))
        ]
        head = ("competitor", "note", "seconds", "best of", "excess", "accuracy", "MAE")
        size = f"{describe(about)}, {about['test_rows']:,} test rows, gamma = {about['gamma']:.3g}."
        parts.append(f"### Kernel fits: {name}\n\n{size} {origin(found[0])}.\n\n{table(head, rows, 2)}")
        by_name = {line["competitor"]: line for line in found}
        ratios.append((name, *(kernel_ratio(by_name, rival, ours) for rival, ours, _ in KERNEL_RATIOS)))
    head = ("times faster, one thread", *(f"{rival}{about}" for rival, _, about in KERNEL_RATIOS))
    searches = [line for line in newest_lines if line["kind"] == "search"]
    if searches:
        about, grid = searches[0]["data"], searches[0]["grid"]
        rows = [(line["competitor"], line["note"], number(line["seconds"], 1), number(line.get("test_mae"))) for line in searches]
        told = (
            f"{grid['gammas']} values of gamma, {grid['Cs']} of C, {grid['folds']} folds. {describe(about)}. {origin(searches[0])}."
        )
        parts.append(f"### Kernel search: {about['name']}\n\n{told}\n\n{table(('search', 'note', 'seconds', 'test MAE'), rows, 2)}")
    maps = [line for line in newest_lines if line["kind"] == "maps"]
    if maps:
        columns = list(dict.fromkeys(line["competitor"] for line in maps))
        names = list(dict.fromkeys(line["data"]["name"] for line in maps))
        by_place = {(line["data"]["name"], line["competitor"]): f"{line['mae']:.3f} ({line['seconds']:.1f})" for line in maps}
        rows = [(name, *(by_place.get((name, column), "") for column in columns)) for name in names]
        told = f"NPSVOR, C = {maps[0]['C']:g}: test MAE, and in brackets seconds of processor time of the fit. {origin(maps[0])}."
        parts.append(f"### Approximate kernels\n\n{told}\n\n{table(('data', *columns), rows)}")
    return "\n".join([KERNEL_INTRODUCTION, table(head, ratios), *parts])


def kernel_ratio(by_name: dict[str, Line], rival: str, ours: str) -> str:
    if rival not in by_name or ours not in by_name:
        return ""
    is_limit = by_name[rival]["note"].startswith("given up")
    return ("> " if is_limit else "") + number(by_name[rival]["best"] / by_name[ours]["best"], 1)


def versions_section(lines: list[Line]) -> str:
    last = max(lines, key=lambda line: line["run"])
    return "## Versions\n\n" + ", ".join(f"{name} {version}" for name, version in last["versions"].items()) + ".\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.docs", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder to write to")
    folder = parser.parse_args(arguments).out
    fit = newest(read_lines("fit"), lambda line: line["data"]["name"])
    scaling = [run[-1] for run in newest(read_lines("scaling"), lambda line: (line["kind"], line["data"]["name"]))]
    memory = [run[-1] for run in newest(read_lines("memory"), lambda line: (line["data"]["name"], line["threads"], line["tol"]))]
    accuracy = read_lines("accuracy")
    search = newest(read_lines("search"), lambda line: line["data"]["name"])
    calibrators = newest(read_lines("calibrators"), lambda line: line["data"]["name"])
    coverage = [line for run in newest(read_lines("coverage"), lambda line: line["data"]["name"]) for line in run]
    many_ranks = newest(read_lines("many_ranks"), lambda line: (line["data"]["name"], line["data"]["ranks"]))
    kernel = read_lines("kernel")
    text = newest([line for line in read_lines("vectorize") if "competitor" in line], lambda line: (line["data"], line["task"]))
    every = [line for run in [*fit, *search, *calibrators] for line in run] + scaling + memory + accuracy + kernel
    if not every:
        console.print("There are no results yet. Run benchmarks.fit.run or another of the runs first.")
        return
    pictures = plots.draw(scaling, folder / "images")
    held = [goal for run in fit for goal in goals.fit_goals(run)] + goals.thread_goals(scaling) + goals.memory_goals(memory)
    held += [goal for run in search for goal in goals.search_goals(run)] + [goal for run in text for goal in goals.text_goals(run)]
    sections = [
        INTRODUCTION,
        goal_section(held),
        fit_section(fit),
        scaling_section(scaling, pictures, folder),
        memory_section(memory),
        accuracy_section(accuracy),
        search_section(search),
        text_section(text),
        kernel_section(kernel),
        calibrators_section(calibrators),
        many_ranks_section(many_ranks),
        coverage_section(coverage),
        versions_section(every),
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.md").write_text("\n".join(section for section in sections if section))
    console.print(f"Wrote {folder / 'benchmarks.md'} and {len(pictures)} pictures.")


if __name__ == "__main__":
    main()
