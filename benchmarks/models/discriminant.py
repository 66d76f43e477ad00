"""KDLOR on many texts, beside two models that are solved by sweeps: ``python -m benchmarks.models.discriminant``.

One fit of each at fixed C, on one thread: processor seconds, and by how much the peak of the memory rises above texts and matrix.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Log, options_parser
from lab import text
from lab.data import data_folder
from lab.display import console
from lab.measures import measures
from lab.memory import peak_bytes, reset_peak
from lab.timing import processor_timed
from rankplane import KDLOR, NPSVOR, SVOR, TextVectorizer

PRESETS = {"largemovie": "paper", "tripadvisor_250k": "default"}
MODELS: dict[str, Any] = {
    "KDLOR, C = 1": partial(KDLOR, C=1.0),
    "KDLOR, C = 10": partial(KDLOR, C=10.0),
    "SVOR, C = 1": SVOR,
    "NPSVOR, C = 1": NPSVOR,
}
TEST_SHARE = 0.3


def matrices(name: str, folder: Path) -> tuple[Any, Any, Any, Any]:
    """Training rows and ranks, test rows and ranks."""
    texts, ranks = text.texts_of(text.read_frame(folder / f"{name}.parquet"))
    order = np.random.default_rng(0).permutation(len(texts))
    train, test = np.split(order, [round((1 - TEST_SHARE) * len(texts))])
    vectorizer = TextVectorizer(preset=PRESETS[name])
    X = vectorizer.fit_transform([texts[i] for i in train])
    return X, ranks[train], vectorizer.transform([texts[i] for i in test]), ranks[test]


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.models.discriminant", __doc__, list(PRESETS))
    options = parser.parse_args(arguments)
    log, folder = Log("discriminant", not options.no_save), data_folder(options.data)
    for name in options.sets:
        if folder is None or not (folder / f"{name}.parquet").exists():
            console.print(f"{name} is left out: there is no {name}.parquet in the data folder (--data).")
            continue
        X, ranks, X_test, true = matrices(name, folder)
        data = {"name": name, "features": PRESETS[name], "rows": X.shape[0], "columns": X.shape[1], "entries": int(X.nnz)}
        data |= {"ranks": len(np.unique(ranks)), "X": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes}
        for model, make in MODELS.items():
            make().fit(X[:500], ranks[:500])  # imports
            reset_peak()
            before = peak_bytes()
            seconds, fitted = processor_timed(partial(make().fit, X, ranks))
            peak = peak_bytes() - before
            gap = float(np.max(fitted.duality_gap_ / np.abs(fitted.dual_objective_)))
            errors = measures(fitted.predict(X_test) - np.min(ranks), true - np.min(ranks))
            print(f"{name}, {model}: {seconds:.1f} s, {peak / 2**20:.0f} MB, MAE {errors['mae']:.3f}, gap {gap:.2g}", flush=True)
            log.write(
                data=data,
                model=model,
                seconds=seconds,
                peak=peak,
                sweeps=int(fitted.n_iter_.max()),
                gap=gap,
                measures=errors,
            )


if __name__ == "__main__":
    main()
