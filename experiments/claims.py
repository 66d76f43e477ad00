"""What the paper claims, and whether it holds here: one row each, every number from the lines.

A row in parentheses is not a claim of the paper. Verdicts on errors go by differences paired by split: a set speaks for or against
a claim when the interval of its difference does not hold zero.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from experiments import (
    beyond,
    c1_and_c2,
    confusion,
    descent,
    epsilon,
    linear_models,
    mae_by_c,
    methods,
    small_subsets,
    training_times,
)
from experiments.layout import honest, ordered, plain
from experiments.linear_models import FOUR
from experiments.notebook import Job, Notebook
from experiments.published import LINEAR_MAE, LINEAR_MSE
from experiments.sets import TITLES, Collection
from experiments.summaries import Place, Sample, Samples, Tally, collect, difference, tally
from lab.tables import table

Row = tuple[str, str, str]
WORDS = """*Leak-free* splits keep all copies of a review on one side; data sets without copies are split as in the paper. A
difference is *significant* if its 95 % confidence interval, paired by split, excludes zero. Rows in parentheses are not claims of
the paper.
"""


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    return iter(())


def section(notebook: Notebook, pictures: Path) -> str:
    rows = [row for claim in CLAIMS for row in claim(notebook)]
    if not rows:
        return ""
    return "\n".join(["## The claims at a glance\n", table(("the paper says", "here", "numbers"), rows, left=3), WORDS])


def verdict(found: Tally) -> str:
    if not found.n_sure and not found.n_against:
        return "no significant difference"
    if found.n_against >= found.n_sure:
        return "mixed" if found.n_against == found.n_sure else "does not hold"
    if found.n_against == 0 and found.n_for >= 0.85 * found.n_all:
        return "holds"
    return "holds on most sets" if found.n_for > 0.6 * found.n_all else "holds on some sets"


def share_verdict(n_for: int, n_all: int, of: str = "sets") -> str:
    """Where there is one figure per set and no interval."""
    share = n_for / n_all
    return (
        "holds"
        if share >= 0.85
        else f"holds on most {of}"
        if share > 0.6
        else f"holds on some {of}"
        if share > 0.2
        else "does not hold"
    )


def counts(found: Tally, better: str = "lower") -> str:
    against = f", significantly the opposite on {found.n_against}" if found.n_against else ""
    return f"{better} on {found.n_for} of {found.n_all} sets, significantly on {found.n_sure}{against}"


def linear(notebook: Notebook, measure: str) -> Samples:
    return collect(notebook.lines(linear_models.EXPERIMENT), measure)


def versus(samples: Samples, a: str, b: str, *, choose: Callable[[Samples], list[Place]] = honest) -> Tally:
    """a against b, less being better."""
    places = [place for place in choose(samples) if {a, b} <= samples[place].keys()]
    return tally(difference(samples[place][a], samples[place][b]) for place in places)


def best_of_four(notebook: Notebook) -> Iterator[Row]:
    for measure, paper in (("mae", LINEAR_MAE), ("mse", LINEAR_MSE)):
        n_paper = sum(min(row, key=row.get) == "NPSVOR" for row in paper.values())
        samples = linear(notebook, measure)
        found = {}
        for name, choose in (("plain", plain), ("leak-free", honest)):
            places = [samples[place] for place in choose(samples) if all(method in samples[place] for method in FOUR)]
            found[name] = tally(difference(place["NPSVOR"], next_best(place, "NPSVOR", FOUR)) for place in places)
        if found["leak-free"].n_all:
            yield (
                f"NPSVOR beats SVC, SVR and RedSVM in {measure.upper()} (on {n_paper} of {len(paper)} sets)",
                verdict(found["leak-free"]),
                "; ".join(f"{name} splits: {counts(one, 'best')}" for name, one in found.items()),
            )


def next_best(place: dict[str, Sample], method: str, rivals: Iterable[str]) -> Sample:
    return min((place[rival] for rival in rivals if rival != method), key=lambda sample: sample.mean)


def red_svm(notebook: Notebook) -> Iterator[Row]:
    samples = linear(notebook, "mae")
    found = {name: versus(samples, "SVC", "RedSVM", choose=choose) for name, choose in (("plain", plain), ("leak-free", honest))}
    if found["leak-free"].n_all:
        words = "; ".join(f"{name} splits: SVC {counts(one)}" for name, one in found.items())
        holds = "holds" if found["leak-free"].n_sure else "with copies only" if found["plain"].n_sure else "does not hold"
        yield "RedSVM is inferior even to SVC on some sets (MAE)", holds, words


def others_in(notebook: Notebook) -> Iterator[Row]:
    found = {measure: versus(linear(notebook, measure), "SVMOP", "NPSVOR") for measure in ("mae", "mse")}
    if found["mae"].n_all:
        holds = "SVMOP has a lower MAE" if verdict(found["mae"]).startswith("holds") else "about as good"
        words = "; ".join(f"{measure.upper()} of SVMOP {counts(one)}" for measure, one in found.items())
        yield "(SVMOP, which the paper's table leaves out, against NPSVOR)", holds, words


def new_ranker(notebook: Notebook) -> Iterator[Row]:
    for measure in ("mae", "mse"):
        samples = linear(notebook, measure)
        found = versus(samples, "NPSVOR", "NPSVOR, r_old")
        if found.n_all:
            changes = [100 * mean / samples[p]["NPSVOR, r_old"].mean for p, mean in zip(honest(samples), found.means, strict=False)]
            words = f"{counts(found)}; {min(changes):+.1f} to {max(changes):+.1f} %"
            yield f"r_new is obviously better than r_old in {measure.upper()}", verdict(found), words


def accuracies(notebook: Notebook) -> Iterator[Row]:
    samples = linear(notebook, "accuracy")
    for method, is_claimed_higher in (("SVR", False), ("RedSVM", False), ("NPSVOR", True)):
        low, high = ("SVC", method) if is_claimed_higher else (method, "SVC")
        found = versus(samples, low, high)
        if found.n_all:
            words = f"{method} is more accurate than SVC" if is_claimed_higher else f"{method} is less accurate than SVC"
            yield words, verdict(found), counts(found, "so")


def far_errors(notebook: Notebook) -> Iterator[Row]:
    """What the confusion matrices show: which ends are taken for each other, and where each is right."""
    by_place = {place: confusion.counts_of(notebook, place) for place in honest(ordered(linear(notebook, "mae")))}
    matrices = {place: by_method for place, by_method in by_place.items() if by_method}
    if not matrices:
        return
    shares = [{m: 100 * c / c.sum(axis=1, keepdims=True) for m, c in by_method.items()} for by_method in matrices.values()]
    far = [max(found, key=lambda m, f=found: f[m][0, -1] + f[m][-1, 0]) == "SVC" for found in shares]
    example = dict(zip(matrices, shares, strict=True)).get(("mobilephone", "review"))
    words = f"most of the four on {sum(far)} of {len(far)} sets"
    if example:
        words += "; 5 predicted for 1, Mobilephone: " + ", ".join(f"{m} {found[0, -1]:.1f} %" for m, found in example.items())
    yield "SVC confuses the two ends of the scale more often", share_verdict(sum(far), len(far)), words
    between = [np.mean(np.diag(f["NPSVOR"])[1:-1]) > np.mean(np.diag(f["SVC"])[1:-1]) for f in shares]
    ends = [f["SVC"][0, 0] + f["SVC"][-1, -1] > f["NPSVOR"][0, 0] + f["NPSVOR"][-1, -1] for f in shares]
    both = [a and b for a, b in zip(between, ends, strict=True)]
    words = f"right more often: NPSVOR between the ends on {sum(between)} of {len(shares)} sets, SVC at the ends on {sum(ends)}"
    yield "NPSVOR is right more often between the ends, SVC at the ends", share_verdict(sum(both), len(both)), words


def faster_descent(notebook: Notebook) -> Iterator[Row]:
    for pair, words in (
        (("DCD-1, no shrinking", "DCD-2"), "as the paper has them"),
        (("DCD-1", "DCD-2"), "both with shrinking"),
    ):
        found = {target: descent.ratios(notebook, *pair, target) for target in descent.TARGETS}
        if all(found.values()):
            ratios = found[descent.TARGETS[0]]
            holds = "holds" if min(ratios) > 1.5 else "faster, by less than 50 %" if min(ratios) > 1 else "holds on some sets"
            numbers = "; ".join(
                f"DCD-1 takes {min(r):.2f} to {max(r):.2f} times as long to a distance of {t:g}" for t, r in found.items()
            )
            yield f"DCD-2 is significantly faster than DCD-1 ({words})", holds, numbers


def training(notebook: Notebook) -> Iterator[Row]:
    best = [line["best"] for line in notebook.lines(training_times.EXPERIMENT)]
    if not best:
        return
    both = [s for s in best if {"textbook NPSVOR", "LIBLINEAR SVC", "LIBLINEAR SVR"} <= s.keys()]
    faster = [s["NPSVOR"] < s["SVC"] for s in best]
    fastest = [min(FOUR, key=s.__getitem__) == "SVR" for s in best]
    for words, ours, programs in (
        ("NPSVOR trains faster than SVC", faster, [s["textbook NPSVOR"] < s["LIBLINEAR SVC"] for s in both]),
        (
            "SVR trains fastest",
            fastest,
            [s["LIBLINEAR SVR"] < min(s["textbook NPSVOR"], s["LIBLINEAR SVC"]) for s in both],
        ),
    ):
        numbers = f"in our solver on {sum(ours)} of {len(ours)} sets"
        if programs:
            numbers += (
                f"; among programs that train one plane after another, as the paper's does, on {sum(programs)} of {len(programs)}"
            )
        in_ours, elsewhere = share_verdict(sum(ours), len(ours)), share_verdict(sum(programs), max(1, len(programs)))
        yield (
            words,
            in_ours if not programs or in_ours == elsewhere else f"{elsewhere} for one plane after another; {in_ours} for lanes",
            numbers,
        )


def one_c(notebook: Notebook) -> Iterator[Row]:
    samples = collect(notebook.lines(c1_and_c2.EXPERIMENT), "mae")
    found = versus(samples, "C1 x C2", "C1 = C2")
    if found.n_all:
        bases = [samples[place]["C1 = C2"].mean for place in honest(samples) if len(samples[place]) == 2]
        changes = [100 * mean / base for mean, base in zip(found.means, bases, strict=True)]
        numbers = f"MAE of the grid over both {counts(found)}; {min(changes):+.1f} to {max(changes):+.1f} %"
        yield "Tuning C1 and C2 separately gains little", "holds" if np.median(changes) > -2 else "does not hold", numbers


def stable_in_c(notebook: Notebook) -> Iterator[Row]:
    places = mae_by_c.curves(notebook)
    shown = [places[place] for place in honest(places)]
    if not shown:
        return
    at = [i for i, C in enumerate(methods.CS) if mae_by_c.ABOVE < C]
    won = [min(FOUR, key=lambda m, i=i, b=b: b[m][i]) == "NPSVOR" for b in shown for i in at]
    numbers = f"NPSVOR has the lowest MAE at {sum(won)} of {len(won)} pairs of a data set and such a C, leak-free splits"
    yield "Above C = 0.1 NPSVOR is better than the other three", share_verdict(sum(won), len(won), "pairs"), numbers
    n_stable, words = [], []
    for title, chosen in (("over all C", list(range(len(methods.CS)))), ("above 0.1", at)):
        spread = [{m: max(b[m][i] for i in chosen) / min(b[m][i] for i in chosen) for m in FOUR} for b in shown]
        n_stable.append(sum(min(one, key=one.get) == "NPSVOR" for one in spread))
        median = {m: 100 * (np.median([one[m] for one in spread]) - 1) for m in FOUR}
        words.append(
            f"{title}, worst over best MAE, median: {', '.join(f'{m} +{value:.0f} %' for m, value in median.items())}; "
            f"NPSVOR changes least on {n_stable[-1]} of {len(spread)} sets"
        )
    yield "MAE of NPSVOR changes stably with C", share_verdict(n_stable[0], len(shown)), "; ".join(words)


def role_of_epsilon(notebook: Notebook) -> Iterator[Row]:
    lines = [line | {"method": line["epsilon"]} for line in notebook.lines(epsilon.EXPERIMENT)]
    said = {"mae": "lower MAE", "mse": "lower MSE", "processor_seconds": "less time", "n_support": "fewer support vectors"}
    for field, words in said.items():
        samples = collect(lines, field)
        # The paper has MAE at its lowest near 0.1 and everything else falling up to 0.5.
        for value in (0.1,) if field == "mae" else (0.1, 0.5):
            found = versus(samples, value, 0.0)
            if found.n_all:
                ratios = [samples[p][value].mean / samples[p][0.0].mean for p in honest(samples) if value in samples[p]]
                numbers = f"{counts(found)}; {min(ratios):.3f} to {max(ratios):.3f} of that at epsilon = 0"
                yield f"epsilon = {value:g} gives {words}", verdict(found), numbers


def kernels(notebook: Notebook) -> Iterator[Row]:
    samples = collect(notebook.lines(small_subsets.EXPERIMENT), "mae")
    found = versus(samples, small_subsets.LINEAR, "NPSVOR")
    if found.n_all:
        holds = "no worse" if found.n_against == 0 else "worse on some subsets"
        numbers = f"MAE of linear NPSVOR {counts(found)}; {min(found.means):+.3f} to {max(found.means):+.3f}"
        yield "(linear NPSVOR against RBF NPSVOR on text)", holds, numbers


def copies(notebook: Notebook) -> Iterator[Row]:
    samples = linear(notebook, "mae")
    found = [
        (name, samples[name, "plain"]["NPSVOR"].mean, samples[name, split]["NPSVOR"].mean)
        for name, split in samples
        if split == "review" and "NPSVOR" in samples.get((name, "plain"), {}) and "NPSVOR" in samples[name, split]
    ]
    if found:
        holds = "errors too low with copies" if all(a < b for _, a, b in found) else "no clear effect"
        numbers = "; ".join(f"{TITLES[name]} {a:.3f} with, {b:.3f} without" for name, a, b in found)
        yield "(copies of a review on both sides of the split)", holds, f"MAE of NPSVOR: {numbers}"


def past(notebook: Notebook) -> Iterator[Row]:
    samples = collect(beyond.gathered(notebook), "mae")
    base = beyond.FROM_PAPER["NPSVOR"]
    for method in ("NPSVOR calibrated", "Committee, column weights"):
        found = versus(samples, method, base)
        if found.n_all:
            bases = [samples[place][base].mean for place in honest(samples) if {base, method} <= samples[place].keys()]
            changes = [100 * mean / mean_base for mean, mean_base in zip(found.means, bases, strict=True)]
            numbers = f"MAE {counts(found)}; {min(changes):+.1f} to {max(changes):+.1f} % against NPSVOR as in the paper"
            better = "better" if verdict(found).startswith("holds") else "not significantly better"
            yield f"(beyond the paper: {method})", better, numbers


CLAIMS = (
    best_of_four,
    red_svm,
    others_in,
    new_ranker,
    accuracies,
    far_errors,
    stable_in_c,
    role_of_epsilon,
    one_c,
    faster_descent,
    training,
    kernels,
    copies,
    past,
)
