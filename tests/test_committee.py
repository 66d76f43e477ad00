"""NPSVOR and SVC planes in one solve."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from conftest import make_ranked
from rankplane import NPSVOR, SVC, Committee, CSearchCV
from test_estimators import NO_ORDER

TIGHT = {"tol": 1e-6, "max_iter": 100_000}


FOLDS = "rows that count twice are not two rows when folds are made"
EXPECTED = {
    **NO_ORDER,
    "check_sample_weight_equivalence_on_dense_data": FOLDS,
    "check_sample_weight_equivalence_on_sparse_data": FOLDS,
}
MEDIAN = {"check_classifiers_train": "the median of the probabilities, which keeps errors small, need not be the most likely rank"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [Committee(), Committee(decision="accuracy")],
    expected_failed_checks=lambda estimator: EXPECTED | ({} if estimator.decision == "accuracy" else MEDIAN),
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_its_planes_are_those_of_its_members(ranked, loss):
    X, y = ranked
    both = Committee(C=2.0, loss=loss, **TIGHT).fit(X, y)
    through, around = NPSVOR(C=2.0, loss=loss, **TIGHT).fit(X, y), SVC(C=2.0, **TIGHT).fit(X, y)
    np.testing.assert_allclose(both.coef_, np.vstack([through.coef_, around.coef_]), atol=1e-4)
    plain = clone(both).set_params(probability=False, decision="ranker").fit(X, y)
    np.testing.assert_array_equal(plain.predict(X), through.predict(X))
    np.testing.assert_allclose(both.boundary_planes()[0], through.boundary_planes()[0], atol=1e-3)


def test_searches_like_any_model():
    X, y = make_ranked(n_rows=400, seed=5)
    search = CSearchCV(Committee(), Cs=[0.25, 1.0, 4.0], scoring="rps").fit(X, y)
    assert search.best_estimator_.predict_proba(X).shape == (400, 4)
    assert np.mean(np.abs(search.predict(X) - y)) < 0.5


def test_hears_what_one_member_alone_cannot():
    """A rank that shows by a column of its own, off the line of the others: planes of order alone rate it worse."""
    rng = np.random.default_rng(0)
    y = rng.integers(1, 5, 4000)
    X = np.column_stack([(y == rank) + 1.2 * rng.standard_normal(4000) for rank in range(1, 5)])
    train, test = slice(2000), slice(2000, None)

    def log_loss(model):
        probabilities = model.fit(X[train], y[train]).predict_proba(X[test])
        return -np.mean(np.log(probabilities[np.arange(2000), y[test] - 1]))

    # Planes near their optimum: at the default tolerance it is chance, and the processor, which of them stops where.
    settled = {"C": 0.1, "tol": 1e-3, "max_iter": 10_000}
    assert log_loss(Committee(**settled)) < log_loss(NPSVOR(**settled, probability=True)) - 0.05
