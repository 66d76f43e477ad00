"""New probabilities for a fitted model, from samples that it was not trained on. Its planes stay as they are."""

import copy
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankplane import validation
from rankplane.docstrings import documented
from rankplane.modelfile import Model
from rankplane.modelfile.codecs import SEARCHES, best_of
from rankplane.prediction.calibration import count_parameters
from rankplane.prediction.probabilities import calibrate
from rankplane.rank_model import RankModel
from rankplane.solver.training_set import HeldOut

ROWS_PER_PARAMETER = 10  # with fewer, the log loss may be higher by a twentieth of a nat for that alone (see `rows_to_learn_from`)


@dataclass(frozen=True, eq=False)
class Recalibrated:
    """A model with a new calibrator.

    ``probabilities`` are those of the samples it was learnt from, each by a calibrator that was learnt from others, so that they
    can be compared with those of before. ``cautions`` are sentences.
    """

    model: RankModel
    probabilities: NDArray[np.float64]
    cautions: list[str]


@documented()
def recalibrate(model: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Model:
    """Learn the probabilities of a fitted model anew, from other samples.

    Only the calibrator and the conformity scores of rank sets are replaced, so that probabilities, decisions by expected cost and
    the coverage of rank sets hold for samples like these. Planes, explanations and ``decision='ranker'`` stay the same.

    Parameters
    ----------
    model : object
        A fitted model of this package, with or without probabilities, a search, or a Pipeline that ends in a model. It is not
        changed.
    X : object
        Samples that the model was not trained on, in the form that ``model.predict`` takes.
    y : array-like of shape (n_samples,)
        Their labels.
    sample_weight : array-like of shape (n_samples,)
        Sample weights. If None, all samples have weight one.

    Returns
    -------
    object
        The model with new probabilities; of a search, its best estimator. Its parameter ``probability`` is True.

    Warns
    -----
    UserWarning
        If the samples are few, or some rank does not occur in them: it gets the probability 0.

    See Also
    --------
    sklearn.calibration.CalibratedClassifierCV : Calibration of any classifier.

    Notes
    -----
    On samples that the planes were trained on, the model would become overconfident.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import NPSVOR, recalibrate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 2))
    >>> y = np.digitize(X[:, 0], [-1, 1])
    >>> model = NPSVOR(probability=True, decision="mae").fit(X[:500], y[:500])
    >>> shifted = np.digitize(X[:, 0] + 1, [-1, 1])  # the same samples are rated more highly now
    >>> new = recalibrate(model, X[500:1500], shifted[500:1500])
    >>> bool(new.score(X[1500:], shifted[1500:]) > model.score(X[1500:], shifted[1500:]))
    True
    """
    given = best_of(model) if isinstance(model, SEARCHES) else model
    steps = given.steps if isinstance(given, Pipeline) else [("model", given)]
    estimator = steps[-1][1]
    if not isinstance(estimator, RankModel):
        raise ValueError(f"model must be a model of this package or a Pipeline that ends in one. Got {type(estimator).__name__}.")
    check_is_fitted(estimator)
    rows = given[:-1].transform(X) if len(steps) > 1 else X
    found = with_calibrator(estimator, estimator.plane_scores(rows), y, sample_weight)
    for caution in found.cautions:
        warnings.warn(caution, UserWarning, stacklevel=2)
    return Pipeline([*steps[:-1], (steps[-1][0], found.model)]) if isinstance(given, Pipeline) else found.model


def with_calibrator(
    estimator: RankModel, scores: NDArray[Any], y: ArrayLike, sample_weight: ArrayLike | None = None
) -> Recalibrated:
    """A copy of the model with a calibrator of these plane scores and labels."""
    order = estimator.classes_
    labels = validation.as_labels(y, len(scores))
    if validation.is_categorical(labels):
        validation.check_known(labels)
    numbers = validation.rank_numbers(labels, order)
    weights = None if sample_weight is None else validation.check_sample_weight(sample_weight, len(scores))
    used = np.flatnonzero(np.ones(len(scores)) if weights is None else weights)
    counts = np.bincount(numbers[used], minlength=len(order))
    if np.count_nonzero(counts) < 2:
        raise ValueError(f"y must contain at least two different ranks of {order.tolist()!r}. Got {np.count_nonzero(counts)}.")
    of_rows = None if weights is None else [weights[used]]
    found = calibrate(HeldOut([scores[used]], [numbers[used]], of_rows, len(order)))
    renewed: RankModel = copy.copy(estimator)
    if "probability" not in renewed.without:
        renewed.set_params(probability=True)
    renewed._adopt_calibration(found)
    return Recalibrated(renewed, found.probabilities[0], cautions_of(counts, order.tolist(), scores.shape[1]))


def cautions_of(counts: NDArray[np.intp], order: list[Any], n_planes: int) -> list[str]:
    n_rows, n_parameters = int(counts.sum()), count_parameters(n_planes, len(order))
    cautions = []
    if n_rows < ROWS_PER_PARAMETER * n_parameters:
        enough = ROWS_PER_PARAMETER * n_parameters
        cautions.append(
            f"{n_rows:,} samples are few for a calibrator with {n_parameters:,} parameters: its probabilities are rough with "
            f"fewer than {enough:,}."
        )
    if absent := [str(label) for label, count in zip(order, counts, strict=True) if not count]:
        listed = ", ".join(absent)
        cautions.append(
            f"No sample has rank {listed}, so the model gives {'it' if len(absent) == 1 else 'them'} the probability 0."
        )
    return cautions
