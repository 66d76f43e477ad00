"""Models on tables of few columns against trees and other ordinal models: ``python -m benchmarks.tables.run``.

Every method sees the same splits, and chooses its settings on training rows alone. Those with probabilities answer with the median
for MAE, the mode for accuracy and the rounded mean for MSE. Seconds are of processor time, with the choice of settings.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import Log, options_parser
from benchmarks.tables.sets import TABLES, read_table, split
from lab.competitors import not_installed
from lab.data import data_folder
from lab.measures import Array, measures
from lab.predictions import decoded, for_all
from lab.timing import processor_timed
from rankplane import NPSVOR, SVOR, ColumnEncoder, Committee, CSearchCV
from rankplane.inputs.schema import Inputs, Rows
from rankplane.solver.kernels import gamma_of
from rankplane.training.choices import Choices
from rankplane.training.fitting import train

Fit = Callable[[Array, Array, Array], dict[str, Array]]  # X, ranks, X of test rows: ranks by measure
N_SPLITS, MOST_ROWS = 5, 10_000


def of_probabilities(model: Any) -> Fit:
    """For ``fit`` and ``predict_proba``; ranks that the training rows lack are impossible."""

    def fit(X: Array, ranks: Array, X_test: Array) -> dict[str, Array]:
        present, numbers = np.unique(ranks, return_inverse=True)
        found = decoded(np.asarray(model().fit(X, numbers).predict_proba(X_test)))
        return {name: present[answers] for name, answers in found.items()}

    return fit


def search(model: Any, gammas: bool = False) -> Fit:
    """One of ours, with C and perhaps gamma by the held-out error."""

    def made() -> Any:
        class Scaled:
            def fit(self, X: Array, ranks: Array) -> Any:
                self.scaler = StandardScaler().fit(X)
                scaled = self.scaler.transform(X)
                values = [gamma_of("scale", scaled) * factor for factor in (1 / 16, 1 / 4, 1.0)] if gammas else None
                self.search = CSearchCV(model(), gammas=values).fit(scaled, ranks)
                return self

            def predict_proba(self, X: Array) -> Array:
                return self.search.predict_proba(self.scaler.transform(X))

        return Scaled()

    return of_probabilities(made)


def command(X: Array, ranks: Array, X_test: Array) -> dict[str, Array]:
    """What the command line trains by default: its choices by held-out error."""
    names = [f"x{number}" for number in range(X.shape[1])]
    rows = Rows({name: list(map(float, X[:, i])) for i, name in enumerate(names)}, ranks, np.arange(len(ranks)), {})
    model = train(rows, Inputs("rank", columns=names), Choices(holdout=0, jobs=1)).model
    present = model.classes
    encoder: ColumnEncoder = model.first_step
    columns = {name: X_test[:, i] for i, name in enumerate(names)}
    found = decoded(model.estimator.predict_proba(encoder.transform(columns)))
    return {name: present[answers] for name, answers in found.items()}


def mord_at() -> Any:
    import mord

    return GridSearchCV(
        make_pipeline(StandardScaler(), mord.LogisticAT()),
        {"logisticat__alpha": [0.01, 0.1, 1.0, 10.0, 100.0]},
        scoring="neg_mean_absolute_error",
        cv=5,
    )


def light() -> Any:
    from lightgbm import LGBMClassifier

    parameters = {"num_leaves": [7, 31]}
    model = LGBMClassifier(verbose=-1, n_jobs=1, learning_rate=0.05)
    return GridSearchCV(model, parameters, scoring="neg_mean_absolute_error", cv=3)


def skordinal_svor(X: Array, ranks: Array, X_test: Array) -> dict[str, Array]:
    from skordinal import classifiers

    scaler = StandardScaler().fit(X)
    model = classifiers.SVOR(C=10.0, gamma=gamma_of("scale", scaler.transform(X)))
    return for_all(np.asarray(model.fit(scaler.transform(X), ranks).predict(scaler.transform(X_test))))


METHODS: dict[str, tuple[str, Fit]] = {
    "rankplane train": ("", command),
    "NPSVOR": ("", search(lambda: NPSVOR(probability=True, decision="mae"))),
    "Committee": ("", search(Committee)),
    "SVOR, hinge": ("", search(lambda: SVOR(probability=True, decision="mae"))),
    "SVOR, squared hinge": ("", search(lambda: SVOR(probability=True, decision="mae", loss="squared_hinge"))),
    "SVOR, logistic": ("", search(lambda: SVOR(probability=True, decision="mae", loss="logistic"))),
    "NPSVOR, rbf": ("", search(lambda: NPSVOR(probability=True, decision="mae", kernel="rbf"), gammas=True)),
    "mord LogisticAT": ("mord", of_probabilities(mord_at)),
    "skordinal SVOR, rbf, C = 10": ("skordinal", skordinal_svor),
    "LightGBM": ("lightgbm", of_probabilities(light)),
    "histogram gradient boosting": ("", of_probabilities(lambda: HistGradientBoostingClassifier(early_stopping=False))),
    "random forest": ("", of_probabilities(lambda: RandomForestClassifier(300, min_samples_leaf=2, random_state=0))),
    "logistic regression": ("", of_probabilities(lambda: make_pipeline(StandardScaler(), LogisticRegressionCV(max_iter=1000)))),
}


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.tables.run", __doc__, list(TABLES))
    parser.add_argument("--splits", type=int, default=N_SPLITS, help=f"random splits (default: {N_SPLITS})")
    parser.add_argument("--most-rows", type=int, default=MOST_ROWS, help=f"training rows at most (default: {MOST_ROWS})")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), help="methods by name")
    options = parser.parse_args(arguments)
    log, folder = Log("tables", not options.no_save), data_folder(options.data)
    if folder is None:
        print("There is no data folder: name one by --data.")
        return
    for name in options.sets:
        table = read_table(name, folder)
        for seed in range(options.splits):
            X, ranks, X_test, true = split(*table, seed, options.most_rows)
            shape = {"rows": len(ranks), "columns": X.shape[1], "ranks": int(table[1].max()) + 1, "test_rows": len(true)}
            for method in options.methods:
                package, fit = METHODS[method]
                if package and (reason := not_installed(package, package)):
                    print(f"{method}: left out, {reason}.")
                    continue
                with warnings.catch_warnings(record=True) as warned:
                    warnings.simplefilter("always")
                    seconds, found = processor_timed(partial(fit, X, ranks, X_test))
                n_unfinished = sum("planes stopped" in str(warning.message) for warning in warned)
                scored = {measure: measures(answers, true)[measure] for measure, answers in found.items()}
                print(f"{name} {seed} {method}: {scored} {seconds:.1f} s, {n_unfinished} warnings", flush=True)
                log.write(
                    data={"name": name} | shape,
                    split=seed,
                    competitor=method,
                    measures=scored,
                    seconds=seconds,
                    unfinished=n_unfinished,
                )


if __name__ == "__main__":
    main()
