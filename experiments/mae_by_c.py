"""The figure of MAE against C: four methods, every set, a fit of its own for every C."""

from collections.abc import Iterator
from pathlib import Path

from experiments import methods
from experiments.layout import join, ordered, place_name, power
from experiments.linear_models import FOUR
from experiments.notebook import Job, Line, Notebook
from experiments.sets import TEXT_SETS, Collection, by_seed
from experiments.summaries import Place, collect
from lab import drawing
from lab.tables import table
from lab.timing import processor_timed

EXPERIMENT = "mae_by_c"
ABOVE = 0.1  # where the paper claims that NPSVOR is best
WORDS = """Trained on the training data and tested on the test data for every C, as in the paper; mean over the splits. The paper
says: *MAE of NPSVOR changes stably with C; for C above 0.1 it is obviously better than the other three.*
"""


def jobs(collection: Collection, notebook: Notebook) -> Iterator[Job]:
    for name, split, seed in by_seed(collection, TEXT_SETS):
        for method in FOUR:
            tol = methods.SVR_TOL if method == "SVR" else methods.TOL
            settings = {"preset": "paper", "test": 0.2, "log2_C": [-5, 5], "tol": tol, "epsilon": methods.EPSILON}
            key = collection.key(name, split, seed, method=method, settings=settings)
            yield Job(
                EXPERIMENT, key, lambda name=name, split=split, seed=seed, method=method: run(collection, name, split, seed, method)
            )


def run(collection: Collection, name: str, split: str, seed: int, method: str) -> Line:
    data = collection.matrices(name, split, seed)
    result: Line = methods.shape(data) | {"C": methods.CS, "mae": [], "mse": [], "processor_seconds": []}
    for C in methods.CS:
        model = methods.make(method, data.n_ranks, seed).set_params(C=C, n_jobs=1)
        seconds, _ = processor_timed(lambda model=model: model.fit(data.X, data.y))
        found = methods.judged(data, model.predict(data.X_test))
        result["mae"].append(found["mae"])
        result["mse"].append(found["mse"])
        result["processor_seconds"].append(round(seconds, 3))
    return result


def curves(notebook: Notebook) -> dict[Place, dict[str, list[float]]]:
    """Mean MAE at every C by place and method, of places that have all four methods."""
    points = [
        line | {"method": (line["method"], C), "mae": mae}
        for line in notebook.lines(EXPERIMENT)
        for C, mae in zip(line["C"], line["mae"], strict=True)
    ]
    samples = collect(points, "mae")
    complete = [place for place in ordered(samples) if len(samples[place]) == len(FOUR) * len(methods.CS)]
    return {place: {m: [samples[place][m, C].mean for C in methods.CS] for m in FOUR} for place in complete}


def section(notebook: Notebook, pictures: Path) -> str:
    places = curves(notebook)
    if not places:
        return ""
    figure, panels = drawing.grid(len(places), 4, 2.9, 2.4)
    rows = []
    for axes, (place, by_method) in zip(panels, places.items(), strict=True):
        for index, (method, errors) in enumerate(by_method.items()):
            axes.plot(methods.CS, errors, label=method, **drawing.series(index))
        axes.set_xscale("log", base=2)
        axes.set_title(", ".join(place_name(place)))
        axes.set(xlabel="C", ylabel="test MAE")
        axes.grid(alpha=0.3)
        best_at = {C: min(FOUR, key=lambda method, at=at: by_method[method][at]) for at, C in enumerate(methods.CS)}
        lost = [power(C) for C, method in best_at.items() if C > ABOVE and method != "NPSVOR"]
        spread = [max(errors) / min(errors) - 1 for errors in by_method.values()]
        rows.append((*place_name(place), join(lost), *(f"{100 * value:.0f} %" for value in spread)))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(FOUR))
    shown = drawing.save(figure, pictures, "mae-against-c", "Test MAE against C of four methods on every set")
    head = (
        "data",
        "split",
        "values of C above 0.1 where another model is better",
        *(f"{method}: worst over best MAE" for method in FOUR),
    )
    return "\n".join(["## MAE against C\n", WORDS, shown, table(head, rows, left=3)])
