"""The results of a report in sentences."""

import numpy as np
from numpy.typing import NDArray

from rankplane.options import with_options
from rankplane.report.findings import Findings
from rankplane.report.markup import listed, percent, rows
from rankplane.training.cautions import VocabularyCheck, likely_reason
from rankplane.training.model import EncodedRows, TrainedModel

SMALL_GAIN = 0.05  # share of the median's error; a smaller gain is not worth a model
# A rank with more than half of the rows is the best constant prediction by every measure, and accuracy rewards it.
MOST = 0.5
MANY_TIMES = 10  # ratio of the most to the least frequent rank that deserves a sentence


def headline(found: Findings) -> str:
    near = ""
    if len(found.names) > 2:
        near = f", and at most one rank off for {percent(float(np.mean(found.distance <= 1)))}"
    return f"Right for {percent(found.metrics['model']['accuracy'])} of {rows(found.n_rows)}{near}."


def beside_median(found: Findings) -> str:
    """How the error compares with that of always predicting the median."""
    gained = found.gain_over_median()
    mine = found.metrics["model"]["mae"]
    if gained is None:
        return f"Predictions are {mine:.2f} ranks off on average."
    gain, error = gained
    median, base = found.constants["median"], found.metrics["median"]["mae"]
    against = f"{mine:.2f} ranks off on average, against {base:.2f}"
    if is_no_better(found):
        chance = f", a difference that may be due to chance on {rows(found.n_rows)}" if 0 < gain < 2 * error else ""
        word = "No" if gain <= 0 else "Hardly"
        return f"{word} better than always predicting {median}, the median of training: {against}{chance}."
    return (
        f"Predictions are {mine:.2f} ranks off on average. Always predicting {median}, the median of training, is {base:.2f} off: "
        f"the error of the model is {percent(gain / base)} lower."
    )


def is_no_better(found: Findings) -> bool:
    """Whether always predicting the median is about as good, or not measurably worse on these rows."""
    gained = found.gain_over_median()
    if gained is None:
        return False
    gain, error = gained
    return bool(gain <= max(2 * error, SMALL_GAIN * found.metrics["median"]["mae"]))


def likely_reasons(found: Findings, model: TrainedModel, measured: EncodedRows) -> list[str]:
    """Why a model may be no better than the median on these rows, and what to try."""
    earlier = model.metadata.get("metrics") or {}
    if (
        "median" in earlier
        and not found.was_measured_in_training(model.metadata)
        and earlier["model"]["mae"] < earlier["median"]["mae"]
    ):
        return [
            "When it was trained, it was better than the median: "
            f"{earlier['model']['mae']:.2f} ranks off, against {earlier['median']['mae']:.2f}. "
            "So these rows differ from those of training: compare the two files, or train on rows like these."
        ]
    features = measured.rows.features
    unfamiliar = VocabularyCheck(model).add(features, measured.X).finding
    known = [f"{unfamiliar[0].upper()}{unfamiliar[1:]}."] if unfamiliar else []
    trained = np.repeat(np.arange(len(found.names)), [found.counts.get(name, 0) for name in found.names])
    return [*known, with_options(likely_reason(model, features, trained, unfamiliar is not None))]


def sentences(found: Findings) -> list[str]:
    """Further sentences, most important first."""
    every = [by_rank(found), confusions(found), bias(found), calibration(found), uncertainty(found)]
    return [sentence for sentence in every if sentence]


def by_rank(found: Findings) -> str:
    present = np.flatnonzero(found.n_true)
    if len(present) < 2:
        return f"All these rows have rank {found.names[present[0]]}, so nothing can be said about the others."
    shares, counts = found.recall[present], found.n_true[present]
    # If several are equal, the one with the most cases is the most reliable.
    best, worst = present[np.lexsort((-counts, -shares))[0]], present[np.lexsort((-counts, shares))[0]]
    if found.recall[best] - found.recall[worst] < 0.1:
        low, high = percent(found.recall[worst]), percent(found.recall[best])
        text = f"Finds every rank in {low}{'' if low == high else f' to {high}'} of its cases."
    else:
        text = (
            f"Finds rank {found.names[best]} in {percent(found.recall[best])} of its {found.n_true[best]:,} cases, "
            f"but rank {found.names[worst]} in {percent(found.recall[worst])} of its {found.n_true[worst]:,}."
        )
    never = named(found, (found.n_answered == 0) & (found.n_true > 0))
    if never:
        text += f" It never predicts {never}."
    absent = named(found, found.n_true == 0)
    if absent:
        text += f" No row here has rank {absent}."
    return text


def named(found: Findings, is_meant: NDArray[np.bool_]) -> str:
    return listed([found.names[place] for place in np.flatnonzero(is_meant)], "or")


def confusions(found: Findings) -> str:
    """The pairs of ranks that are confused most often."""
    wrong = found.matrix.copy()
    np.fill_diagonal(wrong, 0)
    pairs = []
    for flat in np.argsort(-wrong, axis=None, kind="stable")[:2]:
        true, answer = divmod(int(flat), len(found.names))
        count = int(wrong[true, answer])
        if count:
            share = percent(count / found.n_true[true])
            pairs.append(f"{found.names[true]} for {found.names[answer]} ({rows(count)}, {share} of rank {found.names[true]})")
    return f"Most often mistakes {listed(pairs)}." if pairs else ""


def bias(found: Findings) -> str:
    """Whether predictions are too high or too low on average."""
    errors = found.predicted - found.true
    mean, error = float(errors.mean()), float(errors.std() / np.sqrt(len(errors)))
    if abs(mean) < max(0.1, 2 * error):
        return ""
    return f"Biased {'upwards' if mean > 0 else 'downwards'}: on average {abs(mean):.2f} ranks too {'high' if mean > 0 else 'low'}."


def calibration(found: Findings) -> str:
    coverage = found.coverage(0.9)[0]
    return (
        f"Probabilities are off by {100 * found.calibration_error():.1f} percentage points on average. Sets of ranks for a "
        f"coverage of {percent(0.9)} contain the true one in {percent(coverage.rate)} of cases, with {coverage.size:.1f} ranks "
        "on average."
    )


def uncertainty(found: Findings) -> str:
    """The uncertainty due to the number of rows, if it is large."""
    low, high = likely_range(found.metrics["model"]["accuracy"], found.n_rows)
    if high - low < 0.1:
        return ""
    return f"{rows(found.n_rows)} are few: on more rows like these, it may be right for {percent(low)} to {percent(high)}."


def likely_range(share: float, n_rows: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    squared = 1.96**2 / n_rows
    middle, half = share + squared / 2, np.sqrt(share * (1 - share) * squared + squared**2 / 4)
    return float((middle - half) / (1 + squared)), float((middle + half) / (1 + squared))


def skew(counts: dict[str, int]) -> str:
    """A sentence if some ranks are so frequent, or so rare, that it matters."""
    seen = {name: count for name, count in counts.items() if count}
    if not seen:
        return ""
    most, least = max(seen, key=seen.__getitem__), min(seen, key=seen.__getitem__)
    share, times = seen[most] / sum(seen.values()), seen[most] / seen[least]
    if share <= MOST and times < MANY_TIMES:
        return ""
    return (
        f"Rank {most} has {percent(share)} of the training rows, {times:,.0f} times as many as rank {least}: predictions favour "
        "frequent ranks, and accuracy does not show it. Macro MAE weights all ranks equally."
    )
