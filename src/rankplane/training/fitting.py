"""From the rows of a file to a measured model: what ``rankplane train`` does, without the printing.

The model that is measured is the model that is saved: held-out rows are never trained on, not even afterwards.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane import modelfile
from rankplane.gaussian_process import GPOR
from rankplane.inputs.reading import InputError
from rankplane.inputs.schema import Inputs, Rows, texts_in
from rankplane.options import AUTO
from rankplane.progress import working
from rankplane.rank_model import RankModel
from rankplane.search import DEFAULT_CS, CSearchCV
from rankplane.self_tuned import SelfTuned
from rankplane.spreading import spread_of
from rankplane.table_vectorizer import TableVectorizer
from rankplane.tabular import ColumnEncoder
from rankplane.text.parts import NoColumnsError
from rankplane.training import cautions, measuring
from rankplane.training.candidates import (
    CS,
    Candidate,
    Comparison,
    mean_length,
    model_candidates,
    scale_candidates,
    text_candidates,
)
from rankplane.training.choices import Choices, n_threads
from rankplane.training.costs import DecisionCosts
from rankplane.training.kernel_choice import chosen_for, none_of
from rankplane.training.model import EncodedRows, Encoder, TrainedModel
from rankplane.training.splitting import split
from rankplane.validation import rank_numbers, rank_order

Search = CSearchCV | SelfTuned


@dataclass(frozen=True)
class Trained:
    """A model, and the rows that it was measured on; None if no rows were held out."""

    model: TrainedModel
    test: EncodedRows | None


def first_step(rows: Rows, inputs: Inputs, choices: Choices, chosen: Candidate, verbose: int) -> Encoder | None:
    """The step that turns features into a matrix."""
    if inputs.kind == "svmlight":
        return None
    min_df = 1 if len(rows.labels) < 50 else None  # with so few texts, keep rare words
    vectorizer = choices.vectorizer(min_df=min_df, verbose=verbose).set_params(**chosen.text) if inputs.text else None
    if inputs.kind == "text":
        return vectorizer
    if inputs.kind == "table" and all(spread_of(rows.features[name]) is None for name in inputs.columns):
        return ColumnEncoder(skewed=none_of(choices.skewed))
    return TableVectorizer(text=inputs.text, columns=inputs.columns, vectorizer=vectorizer, column_scale=chosen.column_scale)


def encoded(step: Encoder | None, rows: Rows, inputs: Inputs) -> tuple[EncodedRows, EncodedRows]:
    """Fit the step to the rows and transform them: all, whose features are then forgotten, and a sample, which keeps them."""
    sample = rows.sample(cautions.N_SAMPLED).packed()
    try:
        X = rows.features if step is None else step.fit_transform(rows.drained())
    except NoColumnsError:
        raise InputError(cautions.no_columns(step, texts_in(sample.features, inputs), len(rows.labels))) from None
    return EncodedRows(rows, X), EncodedRows(sample, X[rows.sampled(cautions.N_SAMPLED)])


def model_of(inputs: Inputs, choices: Choices, chosen: Candidate, costs: DecisionCosts) -> RankModel:
    options: dict[str, Any] = {"probability": True, "ranks": inputs.ranks} | costs.options()
    options |= {"random_state": choices.seed, "n_jobs": choices.jobs}
    model = modelfile.MODELS[chosen.model]
    if choices.kernel != "linear":
        options["kernel"] = choices.kernel
    elif chosen.column_weight is not None:
        options["column_weight"] = chosen.column_weight
    return model(**{name: value for name, value in options.items() if name not in model.without})


def unmeasured(inputs: Inputs, choices: Choices) -> Candidate:
    """What is not given of features and model, without a look at the rows."""
    has_weights = bool(inputs.text) and choices.preset != "paper" and choices.kernel == "linear"
    return Candidate(model="NPSVOR" if choices.model == AUTO else choices.model, column_weight="ranks" if has_weights else None)


def chosen_by_measurement(
    rows: Rows, inputs: Inputs, choices: Choices, costs: DecisionCosts, verbose: int, n_rows: int | None = None
) -> tuple[Candidate, list[dict[str, Any]]]:
    """What is not given of features and model, and records of how it was chosen. ``n_rows`` is of all rows, if these are some."""
    best = unmeasured(inputs, choices)
    texts = texts_in(rows.features, inputs)
    if texts is None:
        return best, []

    def make(candidate: Candidate) -> tuple[Encoder | None, RankModel]:
        return first_step(rows, inputs, choices, candidate, 0), model_of(inputs, choices, candidate, costs)

    with working(bool(verbose), "Choosing features"):
        comparison = Comparison(
            rows.features,
            rows.labels,
            rows.groups,
            ranks=costs.order,
            cost=costs.cost,
            make=make,
            measure=costs.measure,
            Cs=CS if choices.C is None else [choices.C],
            seed=choices.seed,
            n_rows=n_rows,
        )
        sizes = comparison.sizes(mean_length(texts))
        records = []
        if choices.are_features_open:
            open_to = [replace(one, model=best.model, column_weight=best.column_weight) for one in text_candidates(texts)]
            best, record = comparison.choose("features", open_to, sizes)
            records.append(record)
        if choices.is_model_open and sizes:
            best, record = comparison.choose("model", model_candidates(best), sizes[-1:])
            records.append(record)
        if inputs.kind == "mixed":
            best, record = comparison.choose("columns", scale_candidates(best), sizes[-1:])
            records.append(record)
    return best, [record for record in records if record is not None]


def search_for(model: RankModel, choices: Choices, costs: DecisionCosts, gammas: list[float] | None, verbose: int) -> CSearchCV:
    """The search for the best model, over C and gamma unless they are given."""
    return CSearchCV(
        model,
        Cs=DEFAULT_CS if choices.C is None else [choices.C],
        scoring=costs.measure,
        n_jobs=choices.jobs,
        verbose=verbose,
        gammas=gammas,
    )


def searched(training: EncodedRows, model: RankModel, choices: Choices, costs: DecisionCosts, verbose: int) -> Search:
    """The best model by cross-validation, over C and gamma unless they are given, or the model itself if it has neither."""
    if isinstance(model, GPOR):
        return SelfTuned(model.set_params(verbose=verbose), scoring=costs.measure).fit(training.X, training.rows.labels)
    labels, group_of = training.rows.labels, training.rows.groups
    # Copies of a row in other folds would favour a large C and overestimate accuracy, so they are kept together here too.
    groups = group_of if len(np.unique(group_of)) < len(labels) else None
    return search_for(model, choices, costs, choices.gammas(training.X), verbose).fit(training.X, labels, groups=groups)


def search_record(searching: Search, measure: str) -> dict[str, Any]:
    """The scores of every C that was tried, at the gamma that was chosen."""
    results = searching.cv_results_
    is_of_best = np.array([setting.get("gamma") == searching.best_params_.get("gamma") for setting in results["params"]])
    is_tried = results["why_not_tried"] == ""
    columns = {"C": "param_C", "scores": "mean_test_score", "spread": "se_test_score"}
    record: dict[str, Any] = {name: results[key][is_of_best & is_tried].tolist() for name, key in columns.items()}
    if not np.all(np.isfinite(record["spread"])):  # of a single fold that is too small for parts
        del record["spread"]
    record |= {"not_tried": results["param_C"][is_of_best & ~is_tried].tolist()}
    return {"measure": measure} | record | {"best_C": searching.best_C_}


def train(rows: Rows, inputs: Inputs, choices: Choices, test: Rows | None = None, verbose: int = 0) -> Trained:
    """Fit on the training rows; measure on the held-out ones."""
    choices.check()
    choices.check_for(inputs)
    if test is not None:
        return train_on(rows.take(np.arange(len(rows.labels))), test, inputs, choices, verbose)
    return train_on(*split(rows, choices.holdout, choices.seed), inputs, choices, verbose)


def train_on(rows: Rows, test: Rows, inputs: Inputs, choices: Choices, verbose: int = 0) -> Trained:
    """Fit on rows and measure on others, which may be none. The features of the first are forgotten as soon as they are a matrix:
    a million texts take as much memory as a search.
    """
    labels = rows.labels
    costs = costs_of(labels, inputs, choices)
    of_ranks = replace(inputs, ranks=costs.order.tolist())  # a sample may lack some

    def step_of(some: Rows, settled: Choices) -> Encoder | None:
        return first_step(some, inputs, settled, chosen_by_measurement(some, inputs, settled, costs, 0)[0], 0)

    def tried(some: Rows, settled: Choices) -> Search:
        candidate, _ = chosen_by_measurement(some, inputs, settled, costs, 0)
        encoded_rows, _ = encoded(step_of(some, settled), some, inputs)
        return searched(encoded_rows, model_of(of_ranks, settled, candidate, costs), settled, costs, 0)

    with working(bool(verbose) and inputs.kind == "table", "Comparing"):
        choices, compared = chosen_for(rows, inputs, choices, costs.measure, step_of, tried)
    chosen, records = chosen_by_measurement(rows, inputs, choices, costs, verbose)
    step = first_step(rows, inputs, choices, chosen, verbose)
    training, sample = encoded(step, rows, inputs)
    searching = searched(training, model_of(inputs, choices, chosen, costs), choices, costs, verbose)
    del training
    return concluded(
        step,
        searching,
        costs,
        labels,
        rows.notes,
        sample,
        test,
        inputs,
        choices,
        verbose,
        {"choice": records, "compared": compared},
    )


def costs_of(labels: NDArray[Any], inputs: Inputs, choices: Choices) -> DecisionCosts:
    """What errors cost, for training rows with these labels."""
    order = rank_order(labels, inputs.ranks)
    return DecisionCosts(choices.decision, choices.class_weight, order, rank_numbers(labels, order))


def concluded(
    step: Any,
    searching: Search,
    costs: DecisionCosts,
    labels: NDArray[Any],
    notes: dict[str, Any],
    sample: EncodedRows,
    test: Rows,
    inputs: Inputs,
    choices: Choices,
    verbose: int,
    choice: dict[str, Any],
) -> Trained:
    """The model that a search has found, measured on other rows; on a sample of the training rows if there are none."""
    estimator, order, places = searching.best_estimator_, costs.order, costs.places
    model = TrainedModel(step, estimator, inputs).silenced()
    data = notes | {"trained_on": len(labels), "columns": int(estimator.n_features_in_)}
    data |= {"trained_ranks": measuring.rank_counts(labels, order), "folds": searching.n_splits_}
    metrics, answers = None, {}
    with working(bool(verbose), "Measuring"):
        tested = model.encode(test) if len(test.labels) else None
        if choices.compact is not None:
            # Measured before and after, since the compacted model is the one that is saved.
            answers = {} if tested is None else {"before compacting": model.predict(tested.X)}
            data["dropped_columns"] = modelfile.compact_model(estimator, choices.compact)
        if tested is None:
            poor = costs.poor_gain_in_folds(searching)
        else:
            answers = {"model": model.predict(tested.X)} | answers
            metrics = measuring.compared(test.labels, answers, order, data["trained_ranks"])
            poor = costs.poor_gain(rank_numbers(test.labels, order), rank_numbers(answers["model"], order))
        warnings = cautions.find(model, sample if tested is None else tested, places, poor)
    metadata: dict[str, Any] = {
        "warnings": warnings,
        "inputs": asdict(inputs),
        # The number of threads in use, on which the last bits of a model depend.
        "choices": asdict(choices)
        | {"C": searching.best_C_, "gamma": searching.best_params_.get("gamma"), "jobs": n_threads(choices.jobs)},
        "data": data,
        "search": search_record(searching, costs.measure) if choices.C is None and searching.best_C_ is not None else None,
        "metrics": metrics,
    } | choice
    # Whoever loads the model has not asked for threads either.
    return Trained(replace(model, metadata=metadata).on_threads(None), tested)
