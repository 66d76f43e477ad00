"""From a table to a measured model: what ``rankplane train`` does, without the printing.

The model that is measured is the model that is kept: rows held out for the measuring are never trained on.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rankplane import modelfile
from rankplane.inputs.reading import InputError
from rankplane.inputs.schema import Inputs, Rows
from rankplane.progress import working
from rankplane.search import DEFAULT_CS, CSearchCV
from rankplane.tabular import ColumnEncoder
from rankplane.text import TextVectorizer
from rankplane.text.vectorizer import NoColumnsError
from rankplane.training import cautions, measuring
from rankplane.training.choices import Choices
from rankplane.training.model import EncodedRows, TrainedModel
from rankplane.training.splitting import split
from rankplane.training.weighing import Weighing, spread_of
from rankplane.validation import rank_numbers, rank_order


@dataclass(frozen=True)
class Trained:
    """A model, and the rows that it was measured on; None where nothing is held out."""

    model: TrainedModel
    test: EncodedRows | None


def first_step(inputs: Inputs, choices: Choices, n_rows: int, verbose: int) -> TextVectorizer | ColumnEncoder | None:
    """What makes columns of the features."""
    if inputs.kind == "text":
        min_df = 1 if n_rows < 50 else None  # of so few texts, every word counts
        return choices.vectorizer(min_df=min_df, verbose=verbose)
    return ColumnEncoder() if inputs.kind == "table" else None


def encoded(step: TextVectorizer | ColumnEncoder | None, rows: Rows) -> EncodedRows:
    """The rows as the step sees them once it is fitted to them."""
    try:
        return EncodedRows(rows, rows.features if step is None else step.fit_transform(rows.features))
    except NoColumnsError:
        raise InputError(cautions.no_columns(step, rows.features)) from None


def searched(training: EncodedRows, inputs: Inputs, choices: Choices, weighing: Weighing, verbose: int) -> CSearchCV:
    """The best model by cross-validation, over C and gamma where they are left open."""
    labels, together = training.rows.labels, training.rows.together
    options: dict[str, Any] = {"probability": True, "ranks": inputs.ranks} | weighing.options()
    options |= {"random_state": choices.seed, "n_jobs": choices.jobs}
    if choices.kernel != "linear":
        options["kernel"] = choices.kernel
    elif inputs.kind == "text" and choices.preset == "default":
        options["column_weight"] = "ranks"  # what predicts best, as the preset is
    searching = CSearchCV(
        modelfile.MODELS[choices.model](**options),
        Cs=DEFAULT_CS if choices.C is None else [choices.C],
        cv=min(5, len(labels)),
        scoring=weighing.measure,
        n_jobs=choices.jobs,
        verbose=verbose,
        gammas=choices.gammas(training.X),
    )
    # Copies of a row in other folds would flatter a large C and promise too much, so they stay together here too.
    groups = together if len(np.unique(together)) < len(labels) else None
    return searching.fit(training.X, labels, groups=groups)


def search_record(searching: CSearchCV, measure: str) -> dict[str, Any]:
    """The scores of every C, at the gamma that was chosen."""
    results = searching.cv_results_
    is_shown = [setting.get("gamma") == searching.best_params_.get("gamma") for setting in results["params"]]
    record = {name: results[key][is_shown].tolist() for name, key in (("C", "param_C"), ("scores", "mean_test_score"))}
    spread = spread_of(searching)[is_shown].tolist()
    return {"measure": measure} | record | {"spread": spread, "best_C": searching.best_C_}


def silenced(step: Any, estimator: Any) -> None:
    """Whoever loads the model has not asked for bars."""
    estimator.set_params(verbose=0)
    if isinstance(step, TextVectorizer):
        step.set_params(verbose=0)


def train(rows: Rows, inputs: Inputs, choices: Choices, test: Rows | None = None, verbose: int = 0) -> Trained:
    """Fit on the training rows; measure on the held-out ones."""
    choices.check()
    choices.check_for(inputs)
    train_rows, test = split(rows, choices.holdout, choices.seed) if test is None else (rows, test)
    labels = train_rows.labels
    step = first_step(inputs, choices, len(labels), verbose)
    training = encoded(step, train_rows)
    order = rank_order(labels, inputs.ranks)
    places = rank_numbers(labels, order)
    weighing = Weighing(choices.decision, choices.class_weight, order, places)
    searching = searched(training, inputs, choices, weighing, verbose)
    estimator = searching.best_estimator_
    silenced(step, estimator)
    model = TrainedModel(step, estimator, inputs)
    data = rows.notes | {"trained_on": len(labels), "columns": int(estimator.n_features_in_)}
    data |= {"trained_ranks": measuring.rank_counts(labels, order), "folds": searching.n_splits_}
    metrics, answers = None, {}
    with working(bool(verbose), "Measuring"):
        tested = model.encode(test) if len(test.labels) else None
        if choices.compact is not None:
            # Measured before and after, since what is kept is what is to be measured.
            answers = {} if tested is None else {"before compacting": model.predict(tested.X)}
            data["dropped_columns"] = modelfile.compact_model(estimator, choices.compact)
        if tested is None:
            poor = weighing.poor_gain_in_folds(searching)
        else:
            answers = {"model": model.predict(tested.X)} | answers
            metrics = measuring.compared(test.labels, answers, order, data["trained_ranks"])
            poor = weighing.poor_gain(rank_numbers(test.labels, order), rank_numbers(answers["model"], order))
        warnings = cautions.find(model, training if tested is None else tested, places, poor)
    metadata: dict[str, Any] = {
        "warnings": warnings,
        "inputs": asdict(inputs),
        "choices": asdict(choices) | {"C": float(estimator.C), "gamma": searching.best_params_.get("gamma")},
        "data": data,
        "search": search_record(searching, weighing.measure) if choices.C is None else None,
        "metrics": metrics,
    }
    return Trained(replace(model, metadata=metadata), tested)
