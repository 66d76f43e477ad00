"""scikit-learn's multinomial logistic regression, C by a holdout; mode, median and rounded mean of its
probabilities.
"""

import warnings
from typing import Any

from lab.data import Data
from lab.measures import Array
from lab.predictions import Part, Predictions, Ranks, decoded, tuned

PATHS = {"C =": [4.0, 16.0]}
VARIANTS: dict[str, dict[str, Any]] = {"scikit-learn LogisticRegression": {}}


def missing() -> str | None:
    return None


def run(data: Data) -> Predictions:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    def fit(part: Part, _: Array | None, __: str, C: float) -> Ranks:
        with warnings.catch_warnings():
            # The last digits of the weights change no rank; its default of 100 steps is what everyone uses.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return decoded(LogisticRegression(C=C).fit(part.X, part.y).predict_proba(part.X_test))

    return tuned(data, PATHS, 4.0, fit)
