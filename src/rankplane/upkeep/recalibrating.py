"""New probabilities for a trained model from new rows, and how much better they are."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.metrics import ranked_probability_scores
from rankplane.prediction.decisions import SetRule
from rankplane.recalibration import with_calibrator
from rankplane.training import measuring
from rankplane.training.costs import deciding
from rankplane.training.model import EncodedRows, TrainedModel
from rankplane.validation import rank_numbers

COVERAGE = 0.9  # of the rank sets that are measured
BEFORE = "before recalibrating"  # the name of the old model among the measures


@dataclass(frozen=True)
class Quality:
    """How good probabilities are on some rows."""

    score: float  # ranked probability score
    coverage: float  # share of rank sets for COVERAGE that contain the true rank
    set_size: float  # in ranks, on average

    @classmethod
    def of(cls, true: NDArray[Any], probabilities: NDArray[np.float64], rule: SetRule) -> "Quality":
        sets = rule.sets(probabilities)
        covered = sets[np.arange(len(true)), true]
        scores = ranked_probability_scores(true, probabilities)
        return cls(float(scores.mean()), float(covered.mean()), float(sets.sum(axis=1).mean()))


def recalibrated(model: TrainedModel, measured: EncodedRows, origins: dict[str, Any]) -> TrainedModel:
    """The model with a calibrator of these rows. Its metadata has the measures of both, on the same rows.

    The new probabilities of a row are measured by a calibrator that was not learnt from it. ``origins`` say where the rows are
    from.
    """
    order, labels = model.classes, measured.rows.labels
    estimator, true = model.estimator, rank_numbers(labels, order)
    scores = estimator.plane_scores(measured.X)
    found = with_calibrator(estimator, scores, labels)
    counts = measuring.rank_counts(labels, order)
    old = {name: model.metadata.get(name) for name in ("version", "date")}
    metadata = {name: value for name, value in model.metadata.items() if name not in old}
    record: dict[str, Any] = origins | {"rows": len(labels), "ranks": counts, "trained": old}
    renewed = replace(model, estimator=found.model, metadata=metadata | {"recalibrated": record})
    # Balanced class weights are those of the new rows.
    renewed = deciding(renewed, (metadata.get("choices") or {}).get("decision"))
    numbers = renewed.estimator._predict_ranks(scores, decisive(renewed, found.probabilities), len(order))
    answers = {"model": order[numbers], BEFORE: model.predict(measured.X)}
    metrics = measuring.compared(labels, answers, order, measuring.trained_ranks(metadata))
    cautions = list(found.cautions)
    if hasattr(estimator, "calibrator_"):
        before = model.predict_proba(measured.X)
        record["probabilities"] = {
            "before": vars(Quality.of(true, before, estimator._set_rule(COVERAGE))),
            "after": vars(Quality.of(true, found.probabilities, found.model._set_rule(COVERAGE))),
        }
        cautions += no_gain(ranked_probability_scores(true, before) - ranked_probability_scores(true, found.probabilities))
    warnings = [*cautions, *(metadata.get("warnings") or [])]
    return replace(renewed, metadata=renewed.metadata | {"metrics": metrics, "warnings": warnings})


def decisive(model: TrainedModel, probabilities: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The probabilities, if the model decides by them."""
    decision = model.estimator.decision
    return None if isinstance(decision, str) and decision == "ranker" else probabilities


def no_gain(gains: NDArray[np.float64]) -> list[str]:
    """A caution if the new probabilities are not measurably better."""
    gain, noise = float(gains.mean()), float(gains.std() / np.sqrt(len(gains)))
    if gain > 2 * noise:
        return []
    verdict = "worse than the old ones" if gain < -2 * noise else "not measurably better than the old ones"
    return [f"The new probabilities are {verdict} on these {len(gains):,} rows. Keep the old model, or use more rows."]
