"""The search as a citizen of scikit-learn: scorers, weights and groups by request, nested searches, names of columns."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import accuracy_score, log_loss, make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from conftest import make_curved, make_ranked
from rankplane import NPSVOR, CSearchCV, metrics
from rankplane.base import OrdinalModel

CS = [0.25, 1.0, 4.0]
CV = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def means(scoring, X, y, estimator=None, **fit):
    estimator = NPSVOR() if estimator is None else estimator
    return CSearchCV(estimator, Cs=CS, cv=CV, scoring=scoring).fit(X, y, **fit).cv_results_["mean_test_score"]


def test_a_model_without_table_and_ranker_is_none():
    with pytest.raises(TypeError, match=r"abstract.*_rank.*_table"):
        OrdinalModel()


def test_outer_cross_validation_of_a_precomputed_kernel():
    X, y = make_curved(n_rows=120)
    K = (1 + X @ X.T) ** 2
    outer = StratifiedKFold(3)
    search = CSearchCV(NPSVOR(kernel="precomputed"), Cs=CS, cv=3)
    found = cross_val_predict(search, K, y, cv=outer)
    for train, test in outer.split(X, y):
        alone = clone(search).fit(K[np.ix_(train, train)], y[train])
        np.testing.assert_array_equal(found[test], alone.predict(K[np.ix_(test, train)]))
    assert np.mean(found == y) > 0.5


def test_knows_the_names_of_columns():
    X, y = make_ranked(n_columns=4, density=1.0)
    frame = pd.DataFrame(X.toarray(), columns=list("abcd"))
    search = CSearchCV(NPSVOR(), Cs=[1.0]).fit(frame, y)
    assert search.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        search.predict(frame[["b", "a", "c", "d"]])
    assert not hasattr(search.fit(X, y), "feature_names_in_")


@pytest.mark.parametrize(("of_search", "kept"), [(None, 2), (1, 1)])
def test_leaves_the_estimators_own_threads(ranked, of_search, kept):
    search = CSearchCV(NPSVOR(n_jobs=2), Cs=[1.0], n_jobs=of_search).fit(*ranked)
    assert search.best_estimator_.n_jobs == kept
    assert search.estimator.n_jobs == 2


@pytest.mark.parametrize(
    ("scoring", "name", "sign"),
    [
        ("neg_mean_absolute_error", "mae", -1),
        (make_scorer(mean_absolute_error, greater_is_better=False), "mae", -1),
        (make_scorer(accuracy_score), "accuracy", 1),
        (lambda model, X, y: np.mean(model.predict(X) == y), "accuracy", 1),
        *((scorer, name, 1 if metrics.MEASURES[name][1] else -1) for name, scorer in metrics.scorers().items()),
    ],
)
def test_scorers_say_what_our_measures_say(ranked, scoring, name, sign):
    np.testing.assert_allclose(means(scoring, *ranked), sign * means(name, *ranked), rtol=1e-12)


def test_scorers_see_labels_and_the_rows_of_their_fold(ranked):
    X, y = ranked
    labels = np.array(["a", "b", "c", "d"])
    seen = []

    def judge(model, rows, true):
        seen.append((rows.shape[0], len(model.predict(rows)), set(true) <= set(labels), model.classes_.tolist()))
        assert any((rows != X[test]).nnz == 0 for _, test in CV.split(X, y))
        return 0.5

    search = CSearchCV(NPSVOR(ranks=labels), Cs=CS, cv=CV, scoring=judge).fit(X, labels[y - 1])
    assert seen == [(40, 40, True, list(labels))] * 9
    assert search.best_score_ == 0.5


def test_scorers_of_probabilities_and_confidences():
    X, y = make_ranked(n_rows=300)
    calibrated = NPSVOR(probability=True, decision="mae")
    losses = -means("neg_log_loss", X, y, calibrated)
    for C, found in zip(CS, losses, strict=True):
        expected = [
            log_loss(y[test], clone(calibrated).set_params(C=C).fit(X[train], y[train]).predict_proba(X[test]))
            for train, test in CV.split(X, y)
        ]
        # Other folds within the training rows, so only about the same.
        assert found == pytest.approx(np.mean(expected), abs=0.05)
    with pytest.raises(AttributeError, match="predict_proba"):
        means("neg_log_loss", X, y)
    X, y = make_ranked(n_ranks=2)
    tight = NPSVOR(tol=1e-8, max_iter=100_000)
    of_area = CSearchCV(tight, Cs=[1.0], cv=CV, scoring="roc_auc").fit(X, y)
    assert of_area.best_score_ == pytest.approx(np.mean(cross_val_score(tight, X, y, cv=CV, scoring="roc_auc")), abs=1e-6)


@pytest.mark.parametrize("scoring", ["mae", "qwk", "rps", "accuracy", "neg_mean_absolute_error", make_scorer(accuracy_score)])
def test_score_speaks_of_the_same_measure_as_best_score(scoring):
    """On rows that the search has not seen; larger is better, so that errors are negated."""
    X, y = make_ranked(n_rows=1200, seed=2)
    search = CSearchCV(NPSVOR(probability=True, decision="mae"), Cs=CS, scoring=scoring).fit(X[:600], y[:600])
    sign = -1 if scoring in ("mae", "mse", "macro_mae", "rps") else 1
    assert search.score(X[600:], y[600:]) == pytest.approx(sign * search.best_score_, abs=0.1)
    if scoring == "mae":
        assert search.score(X, y) == -metrics.mean_absolute_error(y, search.predict(X))
        weights = np.linspace(0, 1, len(y))
        assert search.score(X, y, weights) == -metrics.mean_absolute_error(y, search.predict(X), sample_weight=weights)
    if scoring == "rps":
        assert search.score(X, y) == -metrics.ranked_probability_score(y, search.predict_proba(X))


def test_a_search_around_searches_takes_the_best_and_not_the_worst():
    X, y = make_ranked(n_rows=300)
    outer = GridSearchCV(CSearchCV(NPSVOR(), Cs=[1.0]), {"Cs": [[1e-6], [1.0]]}, cv=2).fit(X, y)
    assert outer.best_params_["Cs"] == [1.0]


def test_score_counts_ranks_by_their_places():
    X, y = make_ranked()
    labels = np.array(["bad", "fair", "good", "best"])
    search = CSearchCV(NPSVOR(ranks=labels), Cs=[1.0]).fit(X, labels[y - 1])
    assert search.score(X, labels[y - 1]) == -metrics.mean_absolute_error(labels[y - 1], search.predict(X), ranks=labels)
    by_function = clone(search).set_params(scoring=lambda true, answered: np.mean(true == answered)).fit(X, labels[y - 1])
    assert by_function.score(X, labels[y - 1]) == np.mean(by_function.predict(X) == labels[y - 1])


@pytest.mark.usefixtures("routing")
def test_weights_and_groups_go_to_those_that_request_them():
    X, y = make_ranked()
    weights, groups = np.linspace(0.1, 2, len(y)), np.arange(len(y)) // 2
    requesting = NPSVOR().set_fit_request(sample_weight=True)
    with sklearn.config_context(enable_metadata_routing=False):
        expected = CSearchCV(NPSVOR(), Cs=CS, cv=3).fit(X, y, sample_weight=weights, groups=groups)
    found = CSearchCV(requesting, Cs=CS, cv=3).fit(X, y, sample_weight=weights, groups=groups)
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(found.best_estimator_.coef_, expected.best_estimator_.coef_)
    within = make_pipeline(FunctionTransformer(), clone(found)).fit(X, y, sample_weight=weights, groups=groups)
    np.testing.assert_array_equal(within[-1].best_estimator_.coef_, expected.best_estimator_.coef_)
    # As GridSearchCV has it: what nobody takes is refused.
    with pytest.raises(TypeError, match="not routed to any object"):
        CSearchCV(NPSVOR().set_fit_request(sample_weight=False), Cs=CS, cv=3).fit(X, y, sample_weight=weights)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        CSearchCV(NPSVOR(), Cs=CS).fit(X, y, sample_weight=weights)
    with pytest.raises(TypeError, match="groups"):
        CSearchCV(NPSVOR(), Cs=CS, cv=StratifiedKFold(3)).fit(X, y, groups=groups)
    CSearchCV(NPSVOR(), Cs=CS, cv=GroupKFold(3)).fit(X, y, groups=groups)


@pytest.mark.usefixtures("routing")
def test_a_scorer_gets_weights_if_it_requests_them():
    X, y = make_ranked()
    weights = np.where(y > 2, 3.0, 1.0)
    requesting = NPSVOR().set_fit_request(sample_weight=True)
    wanting, refusing = (make_scorer(mean_absolute_error).set_score_request(sample_weight=wants) for wants in (True, False))
    np.testing.assert_allclose(
        means(wanting, X, y, requesting, sample_weight=weights), means("mae", X, y, requesting, sample_weight=weights), rtol=1e-12
    )
    assert np.all(
        means(refusing, X, y, requesting, sample_weight=weights) != means(wanting, X, y, requesting, sample_weight=weights)
    )
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        means(make_scorer(mean_absolute_error), X, y, requesting, sample_weight=weights)


@pytest.mark.usefixtures("routing")
def test_says_who_takes_what():
    search = CSearchCV(NPSVOR().set_fit_request(sample_weight=True))
    assert search.get_metadata_routing().consumes("fit", {"sample_weight", "groups", "other"}) == {"sample_weight", "groups"}
    assert search.set_score_request(sample_weight=True).get_metadata_routing().consumes("score", {"sample_weight"}) == {
        "sample_weight"
    }
    assert not hasattr(search, "set_fit_request")
