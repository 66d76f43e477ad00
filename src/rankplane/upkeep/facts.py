"""What a model file says of its model: what it is, what it was trained on, how good it is, and how to use it."""

import inspect
import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from rankplane.inputs.reading import printable
from rankplane.inputs.schema import Inputs
from rankplane.options import DECISIONS
from rankplane.prediction.explanations import TopFeatures
from rankplane.rank_model import RankModel
from rankplane.training.wording import measured_on

Facts = dict[str, Any]
N_TERMS = 8
BY_COST = "the rank of least expected cost"
ORIGINS = ["source", "source_files", "fingerprint", "fingerprints", "limit"]
ORIGINS += ["test", "test_files", "test_fingerprint", "test_fingerprints"]
OWN_KEYS = {*ORIGINS, "version", "date", "warnings", "inputs", "choices", "compared", "data", "choice", "search", "metrics"}
OWN_KEYS |= {"recalibrated"}


def facts_of(path: str, model: Any, metadata: dict[str, Any]) -> Facts:
    """Plain values, in the order in which they are shown, of what a file contains; to be `cleaned` for a terminal."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    estimator, inputs = steps[-1], metadata.get("inputs")
    facts: Facts = {"file": os.path.basename(path), "bytes": os.path.getsize(path), "model": type(estimator).__name__}
    facts |= {"steps": [type(step).__name__ for step in steps], "version": metadata.get("version"), "date": metadata.get("date")}
    if isinstance(estimator, RankModel):
        facts |= facts_of_estimator(estimator)
        facts["important"] = [vars(found) for found in important(model, estimator)]
    facts |= {"inputs": inputs, "trained": facts_of_training(metadata), "recalibrated": metadata.get("recalibrated")}
    facts |= {
        "choice": metadata.get("choice") or [],
        "search": metadata.get("search"),
        "metrics": metadata.get("metrics"),
        "measured_on": measured_on(metadata) if metadata.get("metrics") else None,
    }
    facts |= {"warnings": metadata.get("warnings") or []}
    facts["metadata"] = {name: value for name, value in metadata.items() if name not in OWN_KEYS}
    return facts | {"usage": usage(path, facts)}


def facts_of_estimator(estimator: RankModel) -> Facts:
    decision = estimator.decision if isinstance(estimator.decision, str) else "costs"
    return {
        "summary": inspect.cleandoc(type(estimator).__doc__ or "").partition("\n")[0],
        "ranks": estimator.classes_.tolist(),
        "columns": int(estimator.n_features_in_),
        "kernel": estimator.kernel if isinstance(estimator.kernel, str) else "callable",
        "C": float(estimator.C) if hasattr(estimator, "C") else None,
        "gamma": getattr(estimator, "gamma_", None),
        "decision": decision,
        "has_probabilities": bool(estimator.probability),
    }


def facts_of_training(metadata: dict[str, Any]) -> Facts | None:
    """Of a file that ``rankplane train`` wrote."""
    data = metadata.get("data")
    if not isinstance(data, dict):
        return None
    origin = {name: metadata[name] for name in ORIGINS if name in metadata}
    return origin | {"choices": metadata.get("choices") or {}, "data": data}


def important(model: Any, estimator: RankModel) -> list[TopFeatures]:
    """The features with the largest weights at each boundary; none with a kernel, or if the features have no names."""
    if not hasattr(estimator, "coef_"):
        return []
    names = getattr(estimator, "feature_names_in_", None)
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        names = None
        with suppress(AttributeError, ValueError):  # as of steps that give no names
            names = model[:-1].get_feature_names_out()
    return [] if names is None else list(estimator.top_features(names, n=N_TERMS))


def usage(path: str, facts: Facts) -> dict[str, list[str]]:
    """Commands for a shell, and lines of Python."""
    python = ["from rankplane import load_model", "", f"model = load_model({path!r})"]
    if "ranks" not in facts:
        return {"shell": [], "python": python}
    given = facts["inputs"]
    inputs = Inputs(**given) if isinstance(given, dict) else None
    predict = f"model.predict({python_input(inputs)})"
    python += [predict, predict.replace("predict", "predict_proba", 1)] if facts["has_probabilities"] else [predict]
    if inputs is None:
        return {"shell": [], "python": python}
    files = ("new.svm", "rated.svm") if inputs.kind == "svmlight" else ("new.csv", "rated.csv")
    shell = [["predict", path, files[0], "-o", "ranked.csv"], ["evaluate", path, files[1]]]
    if inputs.kind == "text" and facts["kernel"] == "linear":
        shell.append(["explain", path, "a text"])
    return {"shell": [shlex.join(["rankplane", *words]) for words in shell], "python": python}


def python_input(inputs: Inputs | None) -> str:
    if inputs is None:
        return "X"
    if inputs.kind == "text":
        joined = ", ".join(f"row[{name!r}]" for name in inputs.text)
        return f'["\\n".join([{joined}]) for row in rows]' if len(inputs.text) > 1 else '["a text"]'
    if inputs.columns:
        return "{" + ", ".join(f"{name!r}: [...]" for name in [*inputs.text, *inputs.columns]) + "}"
    return "X"


def decision_in_words(facts: Facts) -> str:
    return DECISIONS.get(facts["decision"], BY_COST)


def needed_columns(facts: Facts) -> str | None:
    """What a file to predict must have."""
    given = facts["inputs"]
    if not isinstance(given, dict):
        return None
    inputs = Inputs(**given)
    if inputs.kind == "svmlight":
        return f"svmlight, {inputs.n_columns:,} numbered columns"
    parts = []
    for noun, names in {"text in ": inputs.text, "": inputs.columns}.items():
        if names:
            parts.append(f"{noun}{'column' if len(names) == 1 else 'columns'} {', '.join(names)}")
    return "; ".join(parts)


def cleaned(value: Any, clean: Callable[[str], str] = printable) -> Any:
    """The value with all its strings fit to be shown: anybody may have written the file."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): cleaned(item, clean) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(item, clean) for item in value]
    return value.item() if isinstance(value, np.generic) else value
