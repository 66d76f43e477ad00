"""The figure of MAE against C: four methods, every set, a fit of its own for every C."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.common import processor_timed
from experiments import drawing, methods
from experiments.layout import SPLITS, join, power, table
from experiments.linear_models import FOUR, ordered
from experiments.notebook import Job, Line, Notebook
from experiments.sets import TEXT_SETS, TITLES, Lab, by_seed

EXPERIMENT = "price"
WORDS = """Trained on the training rows and judged on the test rows for every C, as in the paper (one split per set). The paper:
*MAE of NPSVOR changes stably with C; for C above 0.1 it is obviously better than the other three.*
"""


def jobs(lab: Lab, notebook: Notebook) -> Iterator[Job]:
    for name, split, seed in by_seed(lab, TEXT_SETS):
        for method in FOUR:
            tol = methods.SVR_TOL if method == "SVR" else methods.TOL
            settings = {"preset": "paper", "test": 0.2, "log2_C": [-5, 5], "tol": tol, "epsilon": methods.EPSILON}
            key = lab.key(name, split, seed, method=method, settings=settings)
            yield Job(EXPERIMENT, key, lambda name=name, split=split, seed=seed, method=method: run(lab, name, split, seed, method))


def run(lab: Lab, name: str, split: str, seed: int, method: str) -> Line:
    data = lab.matrices(name, split, seed)
    result: Line = methods.shape(data) | {"C": methods.CS, "mae": [], "mse": [], "processor_seconds": []}
    for C in methods.CS:
        model = methods.make(method, data.n_ranks, seed).set_params(C=C, n_jobs=1)
        seconds, _ = processor_timed(lambda model=model: model.fit(data.X, data.y))
        found = methods.judged(data, model.predict(data.X_test))
        result["mae"].append(found["mae"])
        result["mse"].append(found["mse"])
        result["processor_seconds"].append(round(seconds, 3))
    return result


def section(notebook: Notebook, pictures: Path) -> str:
    places: dict[tuple[str, str], dict[str, Line]] = {}
    for line in notebook.lines(EXPERIMENT):
        places.setdefault((line["set"], line["split"]), {})[line["method"]] = line
    places = {place: places[place] for place in ordered(places) if len(places[place]) == len(FOUR)}
    if not places:
        return ""
    figure, panels = drawing.grid(len(places), 4, 2.9, 2.4)
    rows = []
    for axes, (place, by_method) in zip(panels, places.items(), strict=True):
        for index, method in enumerate(FOUR):
            line = by_method[method]
            axes.plot(line["C"], line["mae"], label=method, **drawing.series(index))
        axes.set_xscale("log", base=2)
        axes.set_title(f"{TITLES[place[0]]}, {SPLITS[place[1]]}")
        axes.set(xlabel="C", ylabel="test MAE")
        axes.grid(alpha=0.3)
        ours = by_method["NPSVOR"]
        best_at = {}
        for at, C in enumerate(ours["C"]):
            best_at[C] = min(FOUR, key=lambda method, at=at: by_method[method]["mae"][at])
        lost = [power(C) for C, method in best_at.items() if C > 0.1 and method != "NPSVOR"]
        spread = [max(by_method[m]["mae"]) / min(by_method[m]["mae"]) - 1 for m in FOUR]
        rows.append((TITLES[place[0]], SPLITS[place[1]], join(lost), *(f"{100 * value:.0f} %" for value in spread)))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(FOUR))
    shown = drawing.save(figure, pictures, "mae-against-c", "Test MAE against C of four methods on every set")
    head = ("data", "split", "C above 0.1 at which another is better", *(f"{method}: worst over best" for method in FOUR))
    return "\n".join(["## MAE against C\n", WORDS, shown, table(head, rows, left=3)])
