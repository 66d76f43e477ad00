"""GPOR as an estimator: probabilities, weights, files, sparse rows, searches and messages."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import forging
from conftest import make_curved
from rankplane import GPOR, NPSVOR, CSearchCV, compare_models, load_model, recalibrate, save_model
from rankplane.metrics import mean_absolute_error
from rankplane.self_tuned import SelfTuned

NO_ORDER = {"check_classifiers_classes": "trains on text labels without an order, which are refused on purpose"}
QUICK = {"n_restarts": 0}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([GPOR(n_restarts=0)], expected_failed_checks=lambda _: NO_ORDER)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    return GPOR(**QUICK).fit(*make_curved())


def test_beats_planes_on_curved_boundaries(fitted):
    X, y = make_curved(n_rows=400, seed=0)
    assert mean_absolute_error(y, fitted.predict(X)) < 0.5 * mean_absolute_error(y, NPSVOR().fit(X[:90], y[:90]).predict(X))


def test_probabilities_and_decisions(fitted):
    X, _ = make_curved(seed=1)
    found = fitted.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    scores = fitted.plane_scores(X)
    assert scores.shape == (len(X), 3)
    assert np.all(np.diff(scores, axis=1) < 0)
    median = fitted.classes_[np.argmax(np.cumsum(found, axis=1) >= 0.5, axis=1)]
    np.testing.assert_array_equal(fitted.predict(X), median)
    try:
        np.testing.assert_array_equal(fitted.set_params(decision="ranker").predict(X), median)
        np.testing.assert_array_equal(fitted.set_params(decision="accuracy").predict(X), fitted.classes_[np.argmax(found, axis=1)])
        confidences = fitted.decision_function(X)
        np.testing.assert_array_equal(np.argmax(confidences, axis=1), np.argmax(found, axis=1))
    finally:
        fitted.set_params(decision="mae")


def test_sets_cover_the_rank():
    X, y = make_curved(n_rows=600, seed=2)
    sets = GPOR(**QUICK).fit(X[:200], y[:200]).predict_set(X[200:], coverage=0.8)
    assert 0.74 < np.mean(sets[np.arange(400), y[200:] - 1]) < 0.9


def test_weights_are_repetitions():
    X, y = make_curved(n_rows=60)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    weighted = GPOR(**QUICK).fit(X, y, sample_weight=weights)
    repeated = GPOR(**QUICK).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


def test_few_points_are_near_the_exact_model():
    X, y = make_curved(n_rows=300)
    exact, few = GPOR(**QUICK).fit(X, y), GPOR(n_inducing=80, **QUICK).fit(X, y)
    assert few.inducing_points_.shape == (80, 3)
    assert exact.inducing_points_.shape == (300, 3)
    X, y = make_curved(n_rows=1000)
    errors = [mean_absolute_error(y[300:], fitted.predict(X[300:])) for fitted in (exact, few)]
    assert abs(errors[0] - errors[1]) < 0.05


@pytest.mark.parametrize("recast", [sp.csr_matrix, sp.csc_array, lambda X: X.astype(np.float32).astype(np.float64)])
def test_sparse_rows_are_made_dense(recast):
    X, y = make_curved()
    X = X.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(
        GPOR(**QUICK).fit(recast(X), y).predict_proba(recast(X)), GPOR(**QUICK).fit(X, y).predict_proba(X), atol=1e-9
    )


def test_ranks_without_rows():
    X, y = make_curved()
    fitted = GPOR(ranks=[0, 1, 2, 2.5, 3, 4, 5], **QUICK).fit(X, y)
    shares = fitted.predict_proba(X).mean(axis=0)
    assert np.all(shares[[0, 3, 6]] < 0.02)
    assert np.mean(fitted.predict(X) == y) > 0.8


def test_same_result_whatever_the_order_and_the_threads():
    X, y = make_curved()
    one = GPOR(n_restarts=1).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), GPOR(n_restarts=1, n_jobs=2).fit(X, y).predict_proba(X))
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_array_equal(one.predict_proba(X), GPOR(n_restarts=1).fit(X[order], y[order]).predict_proba(X))


def test_without_ard_all_lengths_are_equal():
    X, y = make_curved()
    assert np.ptp(GPOR(ard=False, **QUICK).fit(X, y).length_scale_) == 0


def test_constant_columns_do_not_matter():
    X, y = make_curved()
    with_more = np.column_stack([X, np.full(len(X), 7.0)])
    np.testing.assert_allclose(
        GPOR(**QUICK).fit(with_more, y).predict_proba(with_more), GPOR(**QUICK).fit(X, y).predict_proba(X), atol=1e-3
    )


def test_file(fitted, tmp_path):
    X, _ = make_curved(seed=3)
    path = tmp_path / "m.rankplane"
    save_model(make_pipeline(StandardScaler(), GPOR(**QUICK)).fit(*make_curved()), path)
    assert load_model(path).predict(X).shape == (90,)
    save_model(fitted, path)
    found = load_model(path)
    np.testing.assert_array_equal(found.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(found.predict_set(X), fitted.predict_set(X))
    assert found.get_params() == fitted.get_params()
    with pytest.raises(ValueError, match=r"needs a linear model\. Got GPOR"):
        save_model(fitted, path, compact=1.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise_", -1.0),
        ("noise_", "one"),
        ("length_scale_", np.zeros(3)),
        ("length_scale_", np.ones(2)),
        ("thresholds_", np.array([0.0, 2.0, 1.0])),
        ("mean_weights_", np.full(90, np.nan)),
        ("variance_weights_", np.ones((90, 89))),
        ("inducing_points_", np.ones((89, 3))),
        ("class_prior_", np.ones(3)),
        ("conformity_", None),
    ],
)
def test_parts_that_do_not_fit_together(name, value, fitted):
    values = fitted._to_values()
    if value is None:
        del values[name]
    else:
        values[name] = value
    with pytest.raises((ValueError, TypeError, AttributeError)):
        GPOR()._from_values(values)


def test_forged_header(fitted, tmp_path):
    path = tmp_path / "m.rankplane"
    save_model(fitted, path)
    header, arrays = forging.unpack(path.read_bytes())
    header["model"]["fitted"]["noise_"] = 0
    path.write_bytes(forging.pack(header, arrays))
    with pytest.raises(ValueError, match=r"m\.rankplane"):
        load_model(path)


def test_recalibrated(fitted):
    X, y = make_curved(n_rows=600, seed=5)
    new = recalibrate(fitted, X, 5 - y)  # the order is turned around
    assert np.mean(new.predict(X) == 5 - y) > 2 * np.mean(fitted.predict(X) == 5 - y)


def test_left_out_rows_stand_for_new_ones():
    X, y = make_curved(n_rows=500, seed=6)
    found = SelfTuned(GPOR(**QUICK), scoring="mae").fit(X[:150], y[:150])
    error = mean_absolute_error(y[150:], found.best_estimator_.predict(X[150:]))
    assert found.best_score_ == pytest.approx(error, abs=0.08)
    assert found.n_splits_ == 5


def test_compared():
    X, y = make_curved(n_rows=200)
    found = compare_models(X, y, {"GPOR": GPOR(**QUICK), "NPSVOR": NPSVOR()}, Cs=[0.1, 1], cv=3)
    assert found.recommended == "GPOR"
    best = found.models[0]
    pairs = [(np.delete(np.arange(200), part), part) for part in np.array_split(np.arange(200), 3)]
    by_hand = SelfTuned(GPOR(**QUICK), scoring="mae", pairs=pairs).fit(X, y)
    assert best.score == pytest.approx(by_hand.best_score_, abs=0.1)
    assert best.params == {}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"ard": 1}, "ard must be True or False. Got 1."),
        ({"n_inducing": 0}, "n_inducing must be a positive integer. Got 0."),
        ({"n_restarts": -1}, "n_restarts must be a non-negative integer. Got -1."),
        ({"max_iter": 0.5}, "max_iter must be a positive integer. Got 0.5."),
        ({"decision": "best"}, "decision must be "),
        ({"n_jobs": 0}, "n_jobs must be None or a non-zero integer. Got 0."),
    ],
)
def test_messages(params, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        GPOR(**params).fit(*make_curved())


def test_refuses_large_sparse_rows():
    X = sp.random_array((3000, 20000), density=1e-4, rng=np.random.default_rng(0)).tocsr()
    with pytest.raises(ValueError, match=r"X must have at most 20,000,000 values.* Got 3,000 x 20,000\."):
        GPOR().fit(X, np.arange(3000) % 3)


def test_has_nothing_to_search():
    with pytest.raises(ValueError, match=r"estimator must be a model with C\. Got GPOR"):
        CSearchCV(GPOR()).fit(*make_curved())


def test_says_when_it_stops_early():
    with pytest.warns(ConvergenceWarning, match="GPOR stopped after 1 steps"):
        GPOR(max_iter=1, **QUICK).fit(*make_curved())


def test_two_rows_and_one_rank():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = GPOR().fit([[0.0], [1.0]], [1, 2])
    low, high = fitted.predict_proba([[0.0], [1.0]])
    assert low[0] > high[0]
    with pytest.raises(ValueError, match="at least two different ranks"):
        GPOR().fit([[0.0], [1.0]], [1, 1])


def test_restarts_do_not_mislead():
    """With little noise and short lengths, Laplace's evidence is far too high: that start is not taken."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(720, 8))
    y = np.digitize(0.7 * X[:, 0] + rng.normal(size=720), [-1.5, -0.5, 1.0])
    fitted = GPOR(n_restarts=3).fit(X[:120], y[:120])
    of_truth = fitted.predict_proba(X[120:])[np.arange(600), y[120:]]
    shares = np.bincount(y[:120]) / 120
    assert -np.mean(np.log(of_truth)) < -np.mean(np.log(shares[y[120:]]))
