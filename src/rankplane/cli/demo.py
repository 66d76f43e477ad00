"""``rankplane demo``: from rated sentences to a model and a report, step by step."""

import os
import shutil
import sys
import time
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from rankplane import datasets, modelfile
from rankplane.cli import display
from rankplane.inputs.reading import Batch
from rankplane.inputs.schema import Inputs, prepare
from rankplane.progress import working
from rankplane.report import write_report
from rankplane.training import fitting
from rankplane.training.choices import Choices

MODEL, PAGE = "demo.rankplane", "demo.html"
SENTENCE = "The plot is rather thin, but the actors are wonderful and I enjoyed it."
REVIEW = "The battery is awful, but the screen is simply great."
STORY = (
    "Sentences of movie and product reviews, editorials and tweets, each rated by several people (vaderSentiment 3.3.2, MIT "
    "licence). Their mean ratings make five ranks, from 1, very negative, to 5, very positive."
)


def rated_texts(console: Console, data_home: str | None) -> datasets.RatedTexts:
    """Sentences rated by people, or generated reviews if there is no network."""
    try:
        with console.status("Downloading sentences, once"):
            found = datasets.load("sentences", data_home)
    except datasets.OfflineError as error:
        console.print(Text(f"Offline: {error}. The demo runs on generated reviews instead.", style="bold"))
        return datasets.load("generated")
    console.print(Text(STORY))
    return found


def run(folder: str = ".", data_home: str | None = None, console: Console | None = None) -> None:
    """Load, train, show the results, and write a model and a report to ``folder``."""
    console = console or Console()
    start = time.perf_counter()
    data = rated_texts(console, data_home)
    batch = Batch({"text": list(data.texts), "rank": data.ranks.tolist()}, list(range(1, len(data.texts) + 1)))
    inputs = Inputs("rank", ["text"])
    rows = prepare(batch, data.name, inputs)
    console.print()
    display.show_data(console, data.name, rows.notes)
    began = time.perf_counter()
    trained = fitting.train(rows, inputs, Choices(jobs=-1), verbose=int(console.is_terminal))
    seconds = time.perf_counter() - began
    model = display.with_origins(trained.model, {"source": data.name})
    measured_on = f"{data.name} held out"
    path, page = os.path.join(folder, MODEL), os.path.join(folder, PAGE)
    remembered = modelfile.write_model(model.pipeline, path, metadata=model.metadata)
    if trained.test is not None:  # always so: there are enough sentences for a holdout
        with working(console.is_terminal, "Writing the page"):
            write_report(page, replace(model, metadata=remembered), trained.test, measured_on)
    n_planes = 5 * len(model.metadata["search"]["C"]) * len(model.classes)
    summary = f"{seconds:.1f} s from text to a tuned and calibrated model; {n_planes} planes were trained."
    console.print()
    console.print(Text(summary, style="bold"))
    display.show_trained(console, model, measured_on)
    text = REVIEW if data.name == "generated" else SENTENCE
    display.title(console, "Why this rank?")
    display.show_explanation(console, model, [text])
    console.print()
    console.print(Text.assemble("Report, to open in a browser: ", (page, "bold"), "; model: ", (path, "bold")))
    console.print(Text(f'Try: {command()} explain {path} "{text}"'))
    console.print(Text(f"{time.perf_counter() - start:.1f} s in all."))


def command() -> str:
    """How to run ``rankplane`` here: after ``make demo`` it is in an environment that is not active."""
    beside = os.path.join(os.path.dirname(sys.executable), "rankplane")
    return "rankplane" if shutil.which("rankplane") or not os.path.exists(beside) else os.path.relpath(beside)
