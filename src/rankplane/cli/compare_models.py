"""The command compare-models: all models that suit the rows, tuned on the same folds."""

import sys
from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
from rich.console import Console

from rankplane import modelfile
from rankplane.cli import display
from rankplane.cli.commands import check_outputs, printed, rows_to_train, split_names
from rankplane.inputs.reading import Dialect, Fingerprint, InputError, called, files_of
from rankplane.metrics import MEASURES
from rankplane.model_comparison import compare_models as compared
from rankplane.model_comparison import default_models, suited
from rankplane.training import fitting
from rankplane.training.candidates import Candidate
from rankplane.training.choices import Choices, check_one_of
from rankplane.validation import rank_order


def compare_models(
    given: Sequence[str],
    names: Sequence[str],
    measure: str,
    output: str | None,
    choices: Choices,
    *,
    target: str | None,
    text: Sequence[str],
    columns: Sequence[str],
    group: str | None,
    ranks: str | None,
    dialect: Dialect,
    as_json: bool,
) -> None:
    """Tune models on the same folds of the rows, and recommend one."""
    choices.check()
    check_one_of("measure", measure, MEASURES)
    for name in names:
        check_one_of("model", name, modelfile.MODELS)
    if len(set(names)) == 1 or len(set(names)) != len(names):
        raise InputError("--model must name at least two different models, or be left out for all of them.")
    files = files_of(given)
    check_outputs([output], [*files])
    keep = [name for name in (target, *text, *columns, group) if name is not None] if text or columns else None
    named = {"target": target, "text": text, "columns": columns, "group": group, "ranks": split_names(ranks)}
    rows, inputs = rows_to_train(files, dialect, Fingerprint(), keep, **named)
    choices.check_for(inputs)
    console = Console(quiet=as_json)
    display.show_data(console, called(files), rows.notes)
    verbose = int(sys.stderr.isatty())
    labels, group_of = rows.labels, rows.groups
    n_ranks = len(rank_order(labels, inputs.ranks))
    chosen = Candidate(column_weight="ranks" if inputs.text else None)
    options = {"probability": True, "decision": choices.decision, "ranks": inputs.ranks, "column_weight": chosen.column_weight}
    options |= {"random_state": choices.seed, "n_jobs": choices.jobs}
    training, _ = fitting.encoded(fitting.first_step(rows, inputs, choices, chosen, verbose), rows, inputs)
    models = default_models(n_ranks, options)
    found = compared(
        training.X,
        labels,
        {name: models[name] for name in names} if names else suited(models, training.X),
        scoring=measure,
        groups=group_of if len(np.unique(group_of)) < len(labels) else None,
        n_jobs=choices.jobs,
        random_state=choices.seed,
        verbose=verbose,
    )
    if output is not None:
        found.write_page(output)
    if as_json:
        printed(asdict(found) | {"page": output})
        return
    console.print(str(found), highlight=False, soft_wrap=True, markup=False)
    if output is not None:
        console.print(f"Written: {output}", highlight=False, soft_wrap=True, markup=False)
