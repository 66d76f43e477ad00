"""The JSON that goes out: ranks, probabilities, rank sets, and why."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankplane.prediction.explanations import Boundary
from rankplane.serving.batching import Judged
from rankplane.serving.questions import Question
from rankplane.training.highlights import shaded, text_pulls

N_TERMS = 8  # on each side of a boundary


ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)  # NaN is not JSON


def dumped(value: Any) -> bytes:
    return ENCODER.encode(value).encode()


def answer_to(question: Question, judged: Judged, explanations: Sequence[dict[str, Any]] | None) -> dict[str, Any]:
    served = question.served
    predictions: list[dict[str, Any]] = [
        {"rank": rank, "probabilities": dict(zip(served.rank_names, shares, strict=True))}
        for rank, shares in zip(judged.ranks, judged.probabilities, strict=True)
    ]
    if judged.members is not None and question.coverage is not None:
        for prediction, members in zip(predictions, judged.members, strict=True):
            prediction["set"] = [served.ranks[place] for place in np.flatnonzero(members)]
    if explanations is not None:
        for prediction, explanation in zip(predictions, explanations, strict=True):
            prediction["explanation"] = explanation
    return {"model": served.name, "version": served.version, "predictions": predictions}


def explanations_of(question: Question, judged: Judged) -> list[dict[str, Any]]:
    """Why each row got its rank: its scores at the boundaries between ranks and, of a text, the pull of its words."""
    served = question.served
    model, texts = served.model, served.model.texts(question.features)
    X = model.transform(question.features)
    found: list[dict[str, Any]] = []
    for row, explained in enumerate(model.explain(X, top=N_TERMS)):
        rank = served.ranks.index(judged.ranks[row])
        boundaries = explained.boundaries
        explanation: dict[str, Any] = {
            "boundaries": [plain(boundary) for boundary in boundaries],
            "decided_at": deciding(boundaries, rank),
            "above": sum(boundary.score > 0 for boundary in boundaries),
        }
        if texts is not None:
            text = texts[row]
            pieces = shaded(text, text_pulls(model, text, X[row]))
            explanation["pieces"] = [[piece, round(share, 3)] for piece, share in pieces]
            if served.words is not None:
                known, counted = served.words.count([text], X[row])
                explanation["words"] = {"known": int(known[0]), "all": int(counted[0]), "are": served.words.noun}
        found.append(explanation)
    return found


def deciding(boundaries: Sequence[Boundary], rank: int) -> int:
    """The boundary beside the predicted rank that the row is nearest to: there, the least change would give another rank."""
    beside = [place for place in (rank - 1, rank) if 0 <= place < len(boundaries)]
    return min(beside, key=lambda place: abs(boundaries[place].score))


def plain(boundary: Boundary) -> dict[str, Any]:
    """A boundary in values that JSON has; labels are numpy's."""

    def label(value: Any) -> Any:
        return value.item() if isinstance(value, np.generic) else value

    return {
        "lower": label(boundary.lower),
        "upper": label(boundary.upper),
        "score": round(boundary.score, 4),
        "bias": round(boundary.bias, 4),
        "up": [[name, round(value, 4)] for name, value in boundary.up],
        "down": [[name, round(value, 4)] for name, value in boundary.down],
        "rest": round(boundary.rest, 4),
    }
