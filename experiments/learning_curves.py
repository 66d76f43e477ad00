"""Beyond the paper: how error and time change with the number of training rows, up to all of 250,000 reviews.

A fifth of the rows is for testing; training rows are the first so many of the rest, in shuffled order.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from experiments import beyond, methods
from experiments.notebook import Job, Line, Notebook, SkipError
from experiments.sets import TITLES, Collection, split_rows, vectorised
from experiments.summaries import collect
from lab import drawing
from lab.data import Data
from lab.tables import number, table

EXPERIMENT = "learning_curves"
SET = "tripadvisor_250k"
SIZES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
QUICK_SIZES = (300, 600, 1_200)
N_SPLITS = 3
PAPER_METHODS = ("SVC", "SVR", "SVMOP", "NPSVOR")
OTHERS = ("NPSVOR calibrated", "Committee", "Committee, column weights", "LIBLINEAR SVC", "fastText", "multinomial logistic")
SHOWN = (*PAPER_METHODS, *OTHERS)
MOST_ROWS = {"multinomial logistic": 50_000}  # more would take it half an hour
ONE_SPLIT_ABOVE = 20_000  # rows: larger samples vary less and cost more
WORDS = """TripAdvisor in its natural, imbalanced distribution, with 50,000 rows for testing and up to 200,000 for training. SVC,
SVR, SVMOP and NPSVOR follow the paper's protocol and features; the others are those of the section above. The curves of other
programs end where they would take too long. Means over three splits up to 20,000 rows, one split above. Seconds are CPU time from
text to the predictions for the test data. fastText predicts row by row in Python, which is most of its time on few training rows.
"""


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    name = "generated" if collection.is_quick else SET
    if not collection.has(name) or (collection.only_sets and name not in collection.only_sets):
        return
    ours = [method for method in SHOWN if method not in beyond.RIVALS]
    rivals = [method for method in SHOWN if method in (beyond.QUICK_RIVALS if collection.is_quick else beyond.RIVALS)]
    for group in (ours, rivals):
        for seed in range(min(collection.n_splits, N_SPLITS)):
            for size in QUICK_SIZES if collection.is_quick else SIZES:
                if seed > 0 and size > ONE_SPLIT_ABOVE:
                    continue
                for method in group:
                    if size <= MOST_ROWS.get(method, size):
                        preset = "paper" if method in PAPER_METHODS else "default"
                        settings = {"preset": preset, "test": 0.2, "size": size}
                        key = collection.key(name, "plain", seed, method=method, settings=settings)
                        yield Job(EXPERIMENT, key, partial(run, collection, name, seed, method, preset, size))


def run(collection: Collection, name: str, seed: int, method: str, preset: str, size: int) -> Line:
    module, options, _ = beyond.ALL.get(method, (None, {}, ""))
    if module is not None and (reason := module.missing()):
        raise SkipError(f"{method}: {reason}.")
    data = sample(collection, name, seed, preset, size)
    vectorise = data.prepared["vectorise_seconds"]
    if method in PAPER_METHODS:
        search, seconds = methods.tuned(data, method, seed)
        found = methods.judged(data, search.predict(data.X_test))
        result = {field: found[field] for field in ("accuracy", "mae", "mse")} | {"note": f"C = {search.best_C_:g}"}
    else:
        answer = beyond.answer(data, method, seed, module, options)
        seconds, vectorise = answer.seconds, 0.0 if answer.reads_texts else vectorise
        result = (answer.measures(data) or {"accuracy": None, "mae": None, "mse": None}) | {"note": answer.note}
    return methods.shape(data) | result | {"size": size, "from_text": round(seconds + vectorise, 3)}


def sample(collection: Collection, name: str, seed: int, preset: str, size: int) -> Data:
    """The first ``size`` training rows and all test rows."""

    def make() -> Data:
        rated = collection.load(name)
        train, test = split_rows(rated.ranks, None, seed)
        return vectorised(rated, train[:size], test, preset)

    return collection.kept(("first", name, seed, preset, size), make)


def section(notebook: Notebook, pictures: Path) -> str:
    lines = notebook.lines(EXPERIMENT)
    if not lines:
        return ""
    # A place is a size here: collect means by (size, method).
    by_size = [line | {"set": line["size"], "split": ""} for line in lines]
    mae, mse, seconds = (collect(by_size, field) for field in ("mae", "mse", "from_text"))
    shown = [method for method in SHOWN if any(method in by_method for by_method in mae.values())]
    figure, panels = drawing.grid(2, 2, 4.6, 3.6)
    for axes, samples, words in ((panels[0], mae, "test MAE"), (panels[1], seconds, "CPU seconds")):
        for index, method in enumerate(shown):
            points = sorted((size, by_method[method].mean) for (size, _), by_method in samples.items() if method in by_method)
            axes.plot(*zip(*points, strict=True), label=method, **drawing.series(index))
        axes.set(xscale="log", xlabel="training rows", ylabel=words)
        axes.grid(alpha=0.3)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
    panels[0].set_title("Error")
    panels[1].set(yscale="log", title="From text to predictions")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    picture = drawing.save(figure, pictures, "learning-curves", "Test MAE and time against the number of training rows")
    sizes = sorted({size for size, _ in mae})
    parts = [f"## Learning curves: {TITLES[lines[0]['set']]}\n", WORDS, picture]
    for title, samples, digits in (("Test MAE", mae, 3), ("Test MSE", mse, 3), ("Seconds", seconds, 1)):
        rows = []
        for size in sizes:
            by_method = samples.get((size, ""), {})
            rows.append((f"{size:,}", *(number(by_method[m].mean, digits) if m in by_method else "" for m in shown)))
        parts += [f"{title}:\n", table(("training rows", *shown), rows)]
    return "\n".join(parts)
