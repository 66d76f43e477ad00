"""All models of the package on the same splits of texts and tables: ``python -m benchmarks.models.run``.

Every model chooses C, and gamma if it has a kernel, by the held-out error of the training rows, and calibrates its probabilities on
the same held-out rows; the answers are the median for MAE, the mode for accuracy and the rounded mean for MSE. What its own ranker
answers is measured beside it. Seconds are of processor time: choice, fit, calibration and answers.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.common import Log, options_parser
from benchmarks.models.sets import TABLES, TEXTS, Split, split_of, why_not
from lab.data import data_folder
from lab.display import console
from lab.measures import MEASURES, measures
from lab.predictions import decoded
from lab.timing import processor_timed
from rankplane import (
    KDLOR,
    NPSVOR,
    SVC,
    SVMOP,
    SVOR,
    SVOREX,
    SVR,
    AdversarialOrdinal,
    Committee,
    CrammerSinger,
    CSearchCV,
    RedSVM,
)
from rankplane.solver.kernels import gamma_of

Line = dict[str, Any]
Make = Callable[..., Any]
LINEAR: dict[str, Make] = {
    "NPSVOR": NPSVOR,
    "NPSVOR, squared hinge": partial(NPSVOR, loss="squared_hinge"),
    "NPSVOR, logistic": partial(NPSVOR, loss="logistic"),
    "SVC": SVC,
    "SVC, logistic": partial(SVC, loss="logistic"),
    "Committee": Committee,
    "SVR": SVR,
    "SVMOP": SVMOP,
    "SVMOP, logistic": partial(SVMOP, loss="logistic"),
    "RedSVM": RedSVM,
    "SVOR": SVOR,
    "SVOR, squared hinge": partial(SVOR, loss="squared_hinge"),
    "SVOR, logistic": partial(SVOR, loss="logistic"),
    "SVOREX": SVOREX,
    "SVOREX, logistic": partial(SVOREX, loss="logistic"),
    "KDLOR": KDLOR,
    "CrammerSinger": CrammerSinger,
    "AdversarialOrdinal, planes": AdversarialOrdinal,
    "AdversarialOrdinal, thresholds": partial(AdversarialOrdinal, form="thresholds"),
}
WITH_KERNEL: dict[str, Make] = {
    f"{model.__name__}, rbf": partial(model, kernel="rbf") for model in (NPSVOR, SVC, SVR, SVMOP, RedSVM, SVOR, SVOREX, KDLOR)
}
MODELS = {"text": LINEAR, "table": LINEAR | WITH_KERNEL}
GAMMAS = (1 / 16, 1 / 4, 1.0)  # times 1 / (columns * variance)
ROWS = {"text": 4_000, "table": 1_000}
N_SPLITS = {"text": 1, "table": 3}


def searched(make: Make, data: Split) -> tuple[CSearchCV, dict[str, Any]]:
    """A fitted search, and its answers for the test rows."""
    model = make(probability=True, decision="mae", random_state=0)
    gammas = None if model.get_params().get("kernel", "linear") == "linear" else gamma_of("scale", data.X) * np.array(GAMMAS)
    search = CSearchCV(model, gammas=gammas).fit(data.X, data.ranks)
    found = decoded(search.predict_proba(data.X_test))
    search.best_estimator_.set_params(decision="ranker")
    return search, found | {"ranker": search.predict(data.X_test)}


def measure(make: Make, data: Split) -> Line:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        seconds, (search, answers) = processor_timed(partial(searched, make, data))
    present = search.classes_  # a rank without training rows is never the answer
    ranks = {name: present[found] if name != "ranker" else found for name, found in answers.items()}
    return {
        "measures": {name: measures(ranks[name], data.true)[name] for name in MEASURES},
        "of_ranker": measures(ranks["ranker"], data.true),
        "params": search.best_params_,
        "seconds": seconds,
        "unfinished": sum("planes stopped" in str(warning.message) for warning in warned),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.models.run", __doc__, [*TEXTS, *TABLES])
    parser.add_argument("--splits", type=int, help=f"random splits (default: {N_SPLITS})")
    parser.add_argument("--most-rows", type=int, help=f"training rows at most (default: {ROWS})")
    parser.add_argument("--models", nargs="+", help="models by name (default: all)")
    options = parser.parse_args(arguments)
    log, folder = Log("models", not options.no_save), data_folder(options.data)
    sets = []
    for name in options.sets:
        if folder is None or (reason := why_not(name, folder)):
            console.print(reason if folder is not None else "There is no data folder: name one by --data.")
        else:
            sets.append(name)
    # Split by split, so that a run that is cut short has whole splits.
    for seed in range(options.splits or max(N_SPLITS.values())):
        for name in sets:
            kind = "table" if name in TABLES else "text"
            if seed < (options.splits or N_SPLITS[kind]):
                data = split_of(name, folder, seed, options.most_rows or ROWS[kind])
                measure_all(data, seed, options.models or list(MODELS[kind]), log)


def measure_all(data: Split, seed: int, wanted: list[str], log: Log) -> None:
    for model, make in MODELS[data.kind].items():
        if model in wanted:
            line = measure(make, data)
            shown = " ".join(f"{value:.3f}" for value in line["measures"].values())
            print(f"{data.name} {seed} {model}: {shown}, {line['seconds']:.1f} s", flush=True)
            log.write(data=data.describe(), split=seed, model=model, **line)


if __name__ == "__main__":
    main()
