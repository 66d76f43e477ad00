"""What the paper claims, and whether it holds here: one row each, every number from the lines."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from experiments import (
    beyond,
    confusion,
    descent,
    epsilon,
    linear_models,
    methods,
    price,
    small_subsets,
    training_times,
    two_prices,
)
from experiments.layout import table
from experiments.linear_models import FOUR, honest, ordered, plain
from experiments.notebook import Job, Notebook
from experiments.published import LINEAR_MAE, LINEAR_MSE
from experiments.sets import TITLES, Lab
from experiments.summaries import Samples, collect, difference

Row = tuple[str, str, str]


def jobs(lab: Lab, notebook: Notebook) -> Iterator[Job]:
    return iter(())


def verdict(n_yes: int, n_all: int) -> str:
    share = n_yes / n_all
    return (
        "holds"
        if share >= 0.85
        else "holds on most sets"
        if share > 0.6
        else "holds on some sets"
        if share > 0.2
        else "does not hold"
    )


def section(notebook: Notebook, pictures: Path) -> str:
    rows = [row for claim in CLAIMS for row in claim(notebook)]
    if not rows:
        return ""
    words = "*Honest* splits keep all copies of a review on one side; sets without copies are split as in the paper.\n"
    return "\n".join(["## The claims at a glance\n", table(("the paper says", "here", "numbers"), rows, left=3), words])


def linear(notebook: Notebook, measure: str) -> Samples:
    return collect(notebook.lines(linear_models.EXPERIMENT), measure)


def best_of_four(notebook: Notebook) -> Iterator[Row]:
    for measure, paper in (("mae", LINEAR_MAE), ("mse", LINEAR_MSE)):
        n_paper = sum(min(row, key=row.get) == "NPSVOR" for row in paper.values())
        samples = linear(notebook, measure)
        found = {}
        for name, choose in (("plain", plain), ("honest", honest)):
            places = [place for place in choose(samples) if all(method in samples[place] for method in FOUR)]
            best = sum(min(FOUR, key=lambda m, p=place: samples[p][m].mean) == "NPSVOR" for place in places)
            found[name] = (best, len(places))
        if found["honest"][1]:
            numbers = "; ".join(f"best on {n} of {n_all} sets, {name} splits" for name, (n, n_all) in found.items())
            yield (
                f"NPSVOR beats SVC, SVR and RedSVM in {measure.upper()} (on {n_paper} of {len(paper)} sets)",
                verdict(*found["honest"]),
                numbers,
            )


def others_in(notebook: Notebook) -> Iterator[Row]:
    samples = linear(notebook, "mae")
    places = [place for place in honest(samples) if {"NPSVOR", "SVMOP"} <= samples[place].keys()]
    if places:
        changes = [100 * (samples[p]["SVMOP"].mean / samples[p]["NPSVOR"].mean - 1) for p in places]
        n_better = sum(change < 0 for change in changes)
        squares = linear(notebook, "mse")
        n_square = sum(squares[p]["SVMOP"].mean < squares[p]["NPSVOR"].mean for p in places)
        numbers = (
            f"SVMOP: lower MAE than NPSVOR on {n_better} of {len(places)} sets ({min(changes):+.1f} to {max(changes):+.1f} %), "
        )
        numbers += f"lower MSE on {n_square}"
        yield "(SVMOP is not in its table)", "matters" if n_better > len(places) / 2 else "changes little", numbers


def new_ranker(notebook: Notebook) -> Iterator[Row]:
    samples = linear(notebook, "mae")
    pairs = [samples[place] for place in honest(samples) if {"NPSVOR", "NPSVOR, r_old"} <= samples[place].keys()]
    if pairs:
        found = [difference(pair["NPSVOR"], pair["NPSVOR, r_old"]) for pair in pairs]
        n_lower = sum(mean <= 0 for mean, _ in found)
        n_sure = sum(half is not None and mean < -half for mean, half in found)
        worst, best = max(mean for mean, _ in found), min(mean for mean, _ in found)
        numbers = (
            f"MAE {best:+.3f} to {worst:+.3f}; not higher on {n_lower} of {len(pairs)} sets, lower beyond the interval on {n_sure}"
        )
        yield "r_new is obviously better than r_old", "a small gain" if n_lower > len(pairs) / 2 else "does not hold", numbers


def faster_descent(notebook: Notebook) -> Iterator[Row]:
    by_set: dict[str, dict[str, float | None]] = {}
    for line in notebook.lines(descent.EXPERIMENT):
        by_set.setdefault(line["set"], {})[line["method"]] = descent.seconds_to(line, 1e-2)
    ratios = [s["DCD-1"] / s["DCD-2"] for s in by_set.values() if s.get("DCD-1") and s.get("DCD-2")]
    if ratios:
        numbers = f"DCD-1 takes {min(ratios):.2f} to {max(ratios):.2f} times as long to a distance of 1 %"
        yield "DCD-2 is significantly faster than DCD-1", "holds, by a little" if min(ratios) > 1 else "holds on some sets", numbers


def training(notebook: Notebook) -> Iterator[Row]:
    best = [line["best"] for line in notebook.lines(training_times.EXPERIMENT)]
    if best:
        faster = [seconds["NPSVOR"] < seconds["SVC"] for seconds in best]
        programs = [s["textbook NPSVOR"] < s["LIBLINEAR SVC"] for s in best if {"textbook NPSVOR", "LIBLINEAR SVC"} <= s.keys()]
        numbers = f"in our solver on {sum(faster)} of {len(faster)} sets"
        numbers += f"; textbook NPSVOR against LIBLINEAR SVC on {sum(programs)} of {len(programs)}" if programs else ""
        yield (
            "NPSVOR trains faster than SVC",
            verdict(sum(programs or faster), len(programs or faster)) + " for such programs",
            numbers,
        )


def one_price(notebook: Notebook) -> Iterator[Row]:
    samples = collect(notebook.lines(two_prices.EXPERIMENT), "mae")
    pairs = [by_method for place, by_method in samples.items() if place in honest(samples) and len(by_method) == 2]
    if pairs:
        changes = [100 * difference(p["C1 x C2"], p["C1 = C2"])[0] / p["C1 = C2"].mean for p in pairs]
        numbers = f"MAE {min(changes):+.1f} to {max(changes):+.1f} % on {len(pairs)} sets with the grid of both"
        yield "Tuning C1 and C2 apart gains little", "holds" if min(changes) > -3 else "holds on most sets", numbers


def stable_in_price(notebook: Notebook) -> Iterator[Row]:
    places = price.curves(notebook)
    shown = [places[place] for place in honest(places)]
    if shown:
        at = [i for i, C in enumerate(methods.CS) if price.ABOVE < C]
        won = [min(FOUR, key=lambda m, i=i, b=b: b[m][i]) == "NPSVOR" for b in shown for i in at]
        numbers = f"NPSVOR has the lowest MAE at {sum(won)} of {len(won)} pairs of a set and a C above 0.1, honest splits"
        yield "Above C = 0.1 NPSVOR is better than the other three", verdict(sum(won), len(won)), numbers


def role_of_epsilon(notebook: Notebook) -> Iterator[Row]:
    lines = [line | {"method": line["epsilon"]} for line in notebook.lines(epsilon.EXPERIMENT)]
    ratios: dict[str, list[float]] = {}
    for field in ("mae", "mse", "processor_seconds", "n_support"):
        samples = collect(lines, field)
        for place in honest(samples):
            if {0.0, 0.1} <= samples[place].keys():
                ratios.setdefault(field, []).append(samples[place][0.1].mean / samples[place][0.0].mean)
    said = {"mae": "lower MAE", "mse": "lower MSE", "processor_seconds": "less time", "n_support": "fewer support vectors"}
    for field, values in ratios.items():
        n_lower = sum(value < 1 for value in values)
        numbers = f"epsilon = 0.1 over 0: {min(values):.3f} to {max(values):.3f}, below 1 on {n_lower} of {len(values)} sets"
        yield f"epsilon = 0.1 gives {said[field]}", verdict(n_lower, len(values)), numbers


def kernels(notebook: Notebook) -> Iterator[Row]:
    samples = collect(notebook.lines(small_subsets.EXPERIMENT), "mae")
    places = [place for place in honest(ordered(samples)) if all(method in samples[place] for method in small_subsets.SHOWN)]
    if places:
        changes = [samples[p][small_subsets.LINEAR].mean - samples[p]["NPSVOR"].mean for p in places]
        numbers = f"linear minus RBF NPSVOR, MAE: {min(changes):+.3f} to {max(changes):+.3f} on {len(places)} subsets"
        yield (
            "On text, linear NPSVOR is as good as with a kernel",
            "holds" if np.median(changes) < 0.01 else "does not hold",
            numbers,
        )


def far_errors(notebook: Notebook) -> Iterator[Row]:
    counts = confusion.counts_of(notebook, ("mobilephone", "review")) or confusion.counts_of(notebook, ("mobilephone", "plain"))
    if counts:
        far = {method: 100 * (c[0, -1] / c[0].sum()) for method, c in counts.items()}
        numbers = "rank 1 answered with 5, Mobilephone: " + ", ".join(f"{method} {share:.1f} %" for method, share in far.items())
        yield (
            "SVC errs far more often than the ordered models",
            "holds" if max(far, key=far.get) == "SVC" else "does not hold",
            numbers,
        )


def copies(notebook: Notebook) -> Iterator[Row]:
    samples = linear(notebook, "mae")
    found = [
        f"{TITLES[name]} {samples[name, 'plain']['NPSVOR'].mean:.3f} with, {samples[name, split]['NPSVOR'].mean:.3f} without"
        for name, split in samples
        if split == "review" and "NPSVOR" in samples.get((name, "plain"), {}) and "NPSVOR" in samples[name, split]
    ]
    if found:
        yield (
            "(copies of a review on both sides of the split)",
            "errors too low",
            f"MAE of NPSVOR, copies in the test rows: {'; '.join(found)}",
        )


def past(notebook: Notebook) -> Iterator[Row]:
    samples = collect(beyond.gathered(notebook), "mae")
    base = beyond.FROM_PAPER["NPSVOR"]
    for method in ("NPSVOR calibrated", "Committee, column weights"):
        pairs = [samples[place] for place in honest(samples) if {base, method} <= samples[place].keys()]
        if pairs:
            changes = [100 * difference(pair[method], pair[base])[0] / pair[base].mean for pair in pairs]
            numbers = f"MAE {min(changes):+.1f} to {max(changes):+.1f} % against NPSVOR as in the paper, {len(pairs)} sets"
            better = [change < 0 for change in changes]
            yield (
                f"(past the paper: {method})",
                "better on " + ("all sets" if all(better) else f"{sum(better)} of {len(better)}"),
                numbers,
            )


CLAIMS = (
    best_of_four,
    others_in,
    new_ranker,
    far_errors,
    stable_in_price,
    role_of_epsilon,
    one_price,
    faster_descent,
    training,
    kernels,
    copies,
    past,
)
