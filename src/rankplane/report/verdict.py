"""What the figures say, in words."""

import numpy as np
from numpy.typing import NDArray

from rankplane.options import with_options
from rankplane.report.findings import Findings
from rankplane.report.markup import listed, percent, rows
from rankplane.training.cautions import Familiarity, likely_reason
from rankplane.training.model import EncodedRows, TrainedModel

SMALL_GAIN = 0.05  # of the median's error: however sure, not worth a model
# Beyond half of the rows, a rank is the answer that needs no model by every measure, and accuracy flatters whoever gives it.
MOST = 0.5
# At ten to one, a row must look ten times likelier to be of the rare rank before that is the most likely one.
MANY_TIMES = 10


def headline(found: Findings) -> str:
    near = ""
    if len(found.names) > 2:
        near = f", and at most one rank off for {percent(float(np.mean(found.distance <= 1)))}"
    return f"Right for {percent(found.metrics['model']['accuracy'])} of {rows(found.n_rows)}{near}."


def beside_median(found: Findings) -> str:
    """How the error compares with that of always answering the median."""
    gained = found.gain_over_median()
    mine = found.metrics["model"]["mae"]
    if gained is None:
        return f"The answers are {mine:.2f} ranks off on average."
    gain, error = gained
    median, base = found.constants["median"], found.metrics["median"]["mae"]
    against = f"{mine:.2f} ranks off on average, against {base:.2f}"
    if is_no_better(found):
        chance = f", a difference that may be chance on {rows(found.n_rows)}" if 0 < gain < 2 * error else ""
        word = "No" if gain <= 0 else "Hardly"
        return f"{word} better than always answering {median}, the median of training: {against}{chance}."
    return (
        f"The answers are {mine:.2f} ranks off on average. Always answering {median}, the median of training, is {base:.2f} off: "
        f"the model makes {percent(gain / base)} less error."
    )


def is_no_better(found: Findings) -> bool:
    """Whether always answering the median does about as well, or as far as these rows can tell."""
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
    strange = Familiarity(model).look_at(features, measured.X).finding
    known = [f"{strange[0].upper()}{strange[1:]}."] if strange else []
    trained = np.repeat(np.arange(len(found.names)), [found.counts.get(name, 0) for name in found.names])
    return [*known, with_options(likely_reason(model, features, trained, strange is not None))]


def sentences(found: Findings) -> list[str]:
    """What else is worth saying first, most important first."""
    told = [by_rank(found), confusions(found), lean(found), trust(found), chance(found)]
    return [sentence for sentence in told if sentence]


def by_rank(found: Findings) -> str:
    present = np.flatnonzero(found.n_true)
    if len(present) < 2:
        return f"All these rows have rank {found.names[present[0]]}, so nothing is known about the others."
    shares, counts = found.found[present], found.n_true[present]
    # Of equal ones, those with more cases, which say more.
    best, worst = present[np.lexsort((-counts, -shares))[0]], present[np.lexsort((-counts, shares))[0]]
    if found.found[best] - found.found[worst] < 0.1:
        low, high = percent(found.found[worst]), percent(found.found[best])
        told = f"Finds every rank in {low}{'' if low == high else f' to {high}'} of its cases."
    else:
        told = (
            f"Finds rank {found.names[best]} in {percent(found.found[best])} of its {found.n_true[best]:,} cases, "
            f"but rank {found.names[worst]} in {percent(found.found[worst])} of its {found.n_true[worst]:,}."
        )
    never = named(found, (found.n_answered == 0) & (found.n_true > 0))
    if never:
        told += f" It never answers {never}."
    absent = named(found, found.n_true == 0)
    if absent:
        told += f" No row here has rank {absent}."
    return told


def named(found: Findings, is_meant: NDArray[np.bool_]) -> str:
    return listed([found.names[place] for place in np.flatnonzero(is_meant)], "or")


def confusions(found: Findings) -> str:
    """The pairs of ranks that are taken for each other most often."""
    wrong = found.matrix.copy()
    np.fill_diagonal(wrong, 0)
    told = []
    for flat in np.argsort(-wrong, axis=None, kind="stable")[:2]:
        true, answer = divmod(int(flat), len(found.names))
        count = int(wrong[true, answer])
        if count:
            share = percent(count / found.n_true[true])
            told.append(f"{found.names[true]} for {found.names[answer]} ({rows(count)}, {share} of rank {found.names[true]})")
    return f"Most often takes {listed(told)}." if told else ""


def lean(found: Findings) -> str:
    """Whether answers are too high or too low on the whole."""
    errors = found.predicted - found.true
    mean, error = float(errors.mean()), float(errors.std() / np.sqrt(len(errors)))
    if abs(mean) < max(0.1, 2 * error):
        return ""
    return f"Leans {'upwards' if mean > 0 else 'downwards'}: answers are {abs(mean):.2f} ranks too {'high' if mean > 0 else 'low'}."


def trust(found: Findings) -> str:
    held = found.coverage(0.9)[0]
    return (
        f"Probabilities are off by {100 * found.promises_off():.1f} points on average. Sets of ranks that are to hold the true "
        f"one in {percent(0.9)} of cases hold it in {percent(held.held)}, with {held.size:.1f} ranks on average."
    )


def chance(found: Findings) -> str:
    """What the number of rows leaves open, where that is much."""
    low, high = likely_range(found.metrics["model"]["accuracy"], found.n_rows)
    if high - low < 0.1:
        return ""
    return f"{rows(found.n_rows)} tell little: on more rows like these, it may be right for {percent(low)} to {percent(high)}."


def likely_range(share: float, n_rows: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    squared = 1.96**2 / n_rows
    middle, half = share + squared / 2, np.sqrt(share * (1 - share) * squared + squared**2 / 4)
    return float((middle - half) / (1 + squared)), float((middle + half) / (1 + squared))


def skew(counts: dict[str, int]) -> str:
    """A sentence where some ranks are so common, or so rare, that it matters."""
    seen = {name: count for name, count in counts.items() if count}
    if not seen:
        return ""
    most, least = max(seen, key=seen.__getitem__), min(seen, key=seen.__getitem__)
    share, times = seen[most] / sum(seen.values()), seen[most] / seen[least]
    if share <= MOST and times < MANY_TIMES:
        return ""
    return (
        f"Rank {most} has {percent(share)} of the training rows, {times:,.0f} times as many as rank {least}: answers lean to "
        "what is common, and accuracy does not show it. Macro MAE counts every rank the same."
    )
