"""Beyond the paper: NPSVOR calibrated, better features, the decision that fits the measure, and rivals from outside.

Rivals are those of ``benchmarks/accuracy``, on the same splits and the same matrix; each chooses its settings for each measure on
held-out training rows.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from experiments import linear_models, methods
from experiments.layout import SPLITS, cell, honest, join, measure_table, ordered
from experiments.notebook import Job, Line, Notebook, SkipError
from experiments.sets import TEXT_SETS, TITLES, Collection, by_seed
from experiments.summaries import Samples, collect, difference
from lab.competitors import fasttext, liblinear, logistic, mord, rankplane
from lab.data import Data
from lab.predictions import Predictions
from lab.tables import number, table

EXPERIMENT = "beyond"
# Small sets first: a run that is cut short then has most of them.
FIRST = ("treebank", "moviereview", "clothing", "video", "tablets", "largemovie", "douban", "mobilephone", "tripadvisor")
SETS = (*FIRST, *(name for name in TEXT_SETS if name not in FIRST))
MORD_LIMIT = 100.0  # processor seconds, once for choosing alpha and once for alpha = 1

# By name: the module of benchmarks/accuracy that runs it, its options, and the preset.
OURS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "NPSVOR, default features": (None, {}, "default"),
    "NPSVOR calibrated, paper features": (rankplane, {"model": "npsvor"}, "paper"),
    "NPSVOR calibrated": (rankplane, {"model": "npsvor"}, "default"),
    "Committee": (rankplane, {"model": "committee"}, "default"),
    "Committee, column weights": (rankplane, {"model": "committee", "column_weight": "ranks"}, "default"),
}
RIVALS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "LIBLINEAR SVC": (liblinear, {"model": "svc"}, "default"),
    "LIBLINEAR SVR": (liblinear, {"model": "svr"}, "default"),
    "fastText": (fasttext, {}, "default"),
    "multinomial logistic": (logistic, {}, "default"),
    "LogisticAT": (mord, {"limit": MORD_LIMIT}, "default"),
}
ALL = OURS | RIVALS
QUICK_RIVALS = ("LIBLINEAR SVC", "LIBLINEAR SVR")  # the others take minutes however few the rows
N_SPLITS = dict.fromkeys(RIVALS, 3) | {"LogisticAT": 1}  # of those who take long
HONEST_ONLY = ("LogisticAT",)  # whoever takes too long for plain splits too
FROM_PAPER = {"NPSVOR": "NPSVOR, as in the paper"}
WORDS = """*NPSVOR, as in the paper* is from the linear models above. *default features* uses the preset `default` (all words,
`!` and `?`, sublinear tf) and changes nothing else. *calibrated* chooses C by the ranked probability score, calibrates
probabilities on held-out scores, and predicts the median for MAE, the rounded mean for MSE and the mode for accuracy. The other
programs with probabilities (multinomial logistic, fastText, LogisticAT) use the same decision rules.

All other programs get the features of the preset `default`. They are tuned separately for each metric, on a holdout of a fifth of
the training data, on grids with factors of two or four that are extended while the best value is at their end. For our models, C
is chosen by 5-fold cross-validation with a factor of two; the same would take the other programs five times as long. LogisticAT
runs on leak-free splits only; its tuning is stopped after 100 s of CPU time, and then it is tried once more with alpha = 1. Our
calibrator, planes and feature weights were designed on other splits of the same data sets, before these splits were drawn. The
lowest mean of each row is bold. The number of splits differs between methods; those with an interval have several.
"""


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    quick = {name: rival for name, rival in RIVALS.items() if name in QUICK_RIVALS}
    slow = {name: rival for name, rival in RIVALS.items() if name not in QUICK_RIVALS and not collection.is_quick}
    for group in (OURS, quick, slow):
        for name, split, seed in by_seed(collection, SETS):
            for method, (_, _, preset) in group.items():
                is_wanted = method not in HONEST_ONLY or split == collection.honest_way(name)
                if is_wanted and seed < N_SPLITS.get(method, collection.n_splits):
                    key = collection.key(name, split, seed, method=method, settings={"preset": preset, "test": 0.2})
                    yield Job(EXPERIMENT, key, partial(run, collection, name, split, seed, method))


def run(collection: Collection, name: str, split: str, seed: int, method: str) -> Line:
    module, options, preset = ALL[method]
    if module is not None and (reason := module.missing()):
        raise SkipError(f"{method}: {reason}.")
    data = collection.matrices(name, split, seed, preset)
    found = answer(data, method, seed, module, options)
    vectorise = 0.0 if found.reads_texts else data.prepared["vectorise_seconds"]
    result: Line = methods.shape(data) | (found.measures(data) or {"accuracy": None, "mae": None, "mse": None})
    result |= {"note": found.note, "processor_seconds": round(found.seconds, 3), "vectorise_seconds": round(vectorise, 3)}
    return result | {"from_text": round(found.seconds + vectorise, 3)}


def answer(data: Data, method: str, seed: int, module: Any, options: dict[str, Any]) -> Predictions:
    if module is not None:
        return module.run(data, **options)
    search, seconds = methods.tuned(data, "NPSVOR", seed)
    return Predictions(dict.fromkeys(("accuracy", "mae", "mse"), search.predict(data.X_test)), seconds, f"C = {search.best_C_:g}")


def gathered(notebook: Notebook) -> list[Line]:
    """The lines of this experiment, and those of NPSVOR as in the paper."""
    before = notebook.lines(linear_models.EXPERIMENT)
    kept = [
        line | {"method": FROM_PAPER[line["method"]]} for line in before if line["method"] in FROM_PAPER and line["set"] in TITLES
    ]
    return [*(line for line in kept if line["split"] != "given"), *notebook.lines(EXPERIMENT)]


def section(notebook: Notebook, pictures: Path) -> str:
    if not notebook.lines(EXPERIMENT):
        return ""
    lines = gathered(notebook)
    shown = (*FROM_PAPER.values(), *ALL)
    parts = ["## Beyond the paper\n", WORDS]
    for measure in ("mae", "mse"):
        samples = collect(lines, measure)
        parts += [
            f"### Test {measure.upper()}\n",
            measure_table(samples, ordered(samples), shown, {}),
            findings(samples, shown, measure),
        ]
    accuracy = collect(lines, "accuracy")
    rows = []
    for place in ordered(accuracy):
        found = [accuracy[place].get(method) for method in shown]
        best = max(round(sample.mean, 3) for sample in found if sample is not None)
        cells = [cell(sample, sample is not None and round(sample.mean, 3) == best) for sample in found]
        rows.append((TITLES[place[0]], SPLITS[place[1]], *cells))
    parts += ["### Test accuracy\n", table(("data", "split", *shown), rows, left=2), times(lines, shown)]
    return "\n".join(parts)


def findings(samples: Samples, shown: Sequence[str], measure: str) -> str:
    parts = []
    base, ours = FROM_PAPER["NPSVOR"], ("NPSVOR calibrated", "Committee", "Committee, column weights")
    places = honest(ordered(samples))
    for method in ours:
        changes = []
        for place in places:
            if base in samples[place] and method in samples[place]:
                mean, _ = difference(samples[place][method], samples[place][base])
                changes.append(100 * mean / samples[place][base].mean)
        if changes:
            lost = sum(change >= 0 for change in changes)
            parts.append(
                f"- {method} against NPSVOR as in the paper, leak-free splits, {measure.upper()}: "
                f"{max(changes):+.1f} to {min(changes):+.1f} %"
                + (f"; no gain on {lost} of {len(changes)} sets." if lost else f", a gain on all {len(changes)} sets.")
            )
    for rival in RIVALS:
        wins = {method: [] for method in ours}
        met = 0
        for place in places:
            if rival not in samples[place] or not all(method in samples[place] for method in ours):
                continue
            met += 1
            for method in ours:
                # On the splits that both have seen.
                if difference(samples[place][rival], samples[place][method])[0] < 0:
                    wins[method].append(TITLES[place[0]])
        if met:
            against = "; ".join(f"{method} on {join(names)}" for method, names in wins.items())
            parts.append(f"- {rival} ({met} sets, same splits) has a lower {measure.upper()} than: {against}.")
    return "\n".join(parts) + "\n"


def times(lines: list[Line], shown: Sequence[str]) -> str:
    """Processor seconds from raw text to a tuned model."""
    fields = [line | {"from_text": line.get("from_text")} for line in lines]
    samples = collect(fields, "from_text")
    methods_timed = [method for method in shown if any(method in by_method for by_method in samples.values())]
    rows = []
    for place in honest(ordered(samples)):
        found = [samples[place].get(method) for method in methods_timed]
        rows.append((TITLES[place[0]], *(number(sample.mean, 1) if sample else "" for sample in found)))
    words = """### From raw text to a tuned model

CPU seconds of all threads on leak-free splits: vectorising with rankplane (fastText tokenises texts itself), tuning for MAE,
the final fit and the predictions. The other programs profit from our vectoriser here; for the time of scikit-learn's, see
[the benchmarks](benchmarks.md#text).
"""
    return "\n".join([words, table(("data", *methods_timed), rows)])
