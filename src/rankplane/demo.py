"""``rankplane demo`` or ``python -m rankplane.demo``: from rated sentences to a model and a page about it, told step by step."""

import os
import time

from rich.console import Console

from rankplane import datasets, display, modelfile, training
from rankplane.files import replacing
from rankplane.reading import Batch
from rankplane.report import make_report
from rankplane.training import Choices, Inputs

MODEL, PAGE = "demo.rankplane", "demo.html"


def rated_texts(console: Console, data_home: str | None) -> datasets.RatedTexts:
    """Sentences that people rated, or made-up ones where there is no network."""
    try:
        return datasets.load("sentences", data_home)
    except datasets.OfflineError as error:
        console.print(f"Offline: {error}. The demo runs on made-up reviews instead.", style="yellow", highlight=False)
        return datasets.load("generated")


def run(folder: str = ".", data_home: str | None = None, console: Console | None = None) -> None:
    """Load, train, tell, and write a model and a page to ``folder``."""
    console = console or Console()
    start = time.perf_counter()
    data = rated_texts(console, data_home)
    batch = Batch({"text": list(data.texts), "rank": data.ranks.tolist()}, list(range(1, len(data.texts) + 1)))
    inputs = Inputs("rank", ["text"])
    rows = training.prepare(batch, data.name, inputs)
    display.show_data(console, data.name, rows.notes)
    began = time.perf_counter()
    trained = training.train(rows, inputs, Choices(jobs=-1))
    seconds = time.perf_counter() - began
    metadata = {"source": data.name} | trained.metadata
    n_problems = 5 * len(metadata["search"]["C"]) * len(trained.pipeline.classes_)
    console.print(f"\nFrom text to a tuned and calibrated model in {seconds:.1f} s: {n_problems} planes were trained on the way.")
    display.show_search(console, metadata["search"])
    display.show_metrics(console, metadata["metrics"], "Held out")
    names = trained.pipeline[0].get_feature_names_out()
    display.show_terms(console, trained.pipeline[-1].top_features(names, n=display.N_TERMS))
    model, page = os.path.join(folder, MODEL), os.path.join(folder, PAGE)
    modelfile.save_model(trained.pipeline, model, metadata=metadata)
    text = make_report(trained.pipeline, modelfile.read_metadata(model), inputs, trained.test, data.name)
    with replacing(page) as file:
        file.write(text.encode("utf-8", "replace"))
    console.print(
        f"\nWritten in {time.perf_counter() - start:.1f} s in all: [bold]{model}[/bold], and a page about it: [bold]{page}[/bold]"
    )
    console.print(f'Try: rankplane explain {model} "not bad at all, I love it"', highlight=False)


if __name__ == "__main__":
    run()
