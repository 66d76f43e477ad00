"""scikit-learn's GridSearchCV over LinearSVC(loss="hinge"), one process, without the final fit."""

import warnings
from typing import Any

from benchmarks.search.folds import CS, Searched, fold_by_fold
from lab.data import Data
from lab.timing import timed

VARIANTS: dict[str, dict[str, Any]] = {"scikit-learn GridSearchCV(LinearSVC)": {}}


def missing() -> str | None:
    return None


def run(data: Data, limit: float) -> Searched:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import LinearSVC

    def fit_path(train: Any, test: Any) -> tuple[float, list[float]]:
        model = LinearSVC(loss="hinge", intercept_scaling=1.0, random_state=0)
        grid = GridSearchCV(model, {"C": CS}, cv=[(train, test)], scoring="neg_mean_absolute_error", refit=False)
        with warnings.catch_warnings():
            # Its limit of 1,000 sweeps saves it time at large C: to its advantage here.
            warnings.simplefilter("ignore", ConvergenceWarning)
            seconds, _ = timed(lambda: grid.fit(data.X, data.y))
        return seconds, (-grid.cv_results_["mean_test_score"]).tolist()

    return fold_by_fold(data, limit, fit_path)
