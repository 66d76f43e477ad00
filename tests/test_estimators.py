"""The estimators: against scikit-learn where models meet, against an independent convex solver, and as citizens of scikit-learn."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import rankplane
from conftest import EVERY_MODEL, make_ranked
from rankplane import (
    GPOR,
    KDLOR,
    NPSVOR,
    SVC,
    SVMOP,
    SVOR,
    SVOREX,
    SVR,
    AdversarialOrdinal,
    Committee,
    CrammerSinger,
    CSearchCV,
    RedSVM,
    TextVectorizer,
)
from rankplane.options import MODEL_NAMES

TIGHT = {"tol": 1e-8, "max_iter": 2_000_000}
NO_ORDER = {"check_classifiers_classes": "trains on text labels without an order, which are refused on purpose"}


# The checks train on unscaled columns, some with a handful of sweeps: not converging is no failure there.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([model() for model in EVERY_MODEL], expected_failed_checks=lambda _: NO_ORDER)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# scikit-learn has few checks of what takes texts, and warns of those that it leaves out.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("estimator", [TextVectorizer(), TextVectorizer(hashing=10)], ids=str)
def test_scikit_learn_checks_of_texts(estimator):
    assert "passed" in {result["status"] for result in check_estimator(estimator)}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_svc_is_linear_svc(ranked, loss, fit_intercept):
    X, y = ranked
    ours = SVC(C=0.7, loss=loss, fit_intercept=fit_intercept, **TIGHT).fit(X, y)
    theirs = LinearSVC(C=0.7, loss=loss, fit_intercept=fit_intercept, tol=1e-9, max_iter=1_000_000, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, np.broadcast_to(theirs.intercept_, (4,)), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), ours.classes_[np.argmax(ours.plane_scores(X), axis=1)])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_svr_is_linear_svr(ranked, loss):
    X, y = ranked
    theirs = LinearSVR(
        C=0.7,
        epsilon=0.1,
        loss={"hinge": "epsilon_insensitive"}.get(loss, "squared_epsilon_insensitive"),
        tol=1e-9,
        max_iter=1_000_000,
    ).fit(X, y)
    ours = SVR(C=0.7, epsilon=0.1, loss=loss, **TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_.ravel(), theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.plane_scores(X).ravel(), theirs.predict(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), np.clip(np.rint(ours.plane_scores(X).ravel()), 1, 4))


def test_svmop_is_one_svc_per_boundary(ranked):
    X, y = ranked
    ours = SVMOP(**TIGHT).fit(X, y)
    for boundary in range(3):
        binary = LinearSVC(loss="hinge", tol=1e-9, max_iter=1_000_000, random_state=0).fit(X, y > boundary + 1)
        np.testing.assert_allclose(ours.coef_[boundary], binary.coef_[0], atol=1e-4)


def least_threshold_objective(X, ranks, C, penalty):
    """RedSVM or SVOR with slack variables, by scipy's sequential quadratic programming: minimum, direction, offsets."""
    n_rows, n_columns = X.shape
    n_cuts = ranks.max()
    side = np.where(ranks[:, None] > np.arange(n_cuts), 1.0, -1.0)

    def unpack(v):
        return v[:n_columns], v[n_columns : n_columns + n_cuts], v[n_columns + n_cuts :].reshape(n_rows, n_cuts)

    def objective(v):
        w, b, slack = unpack(v)
        return 0.5 * w @ w + penalty * 0.5 * b @ b + C * slack.sum()

    def gradient(v):
        w, b, slack = unpack(v)
        return np.concatenate([w, penalty * b, np.full(slack.size, C)])

    margins = np.zeros((n_rows * n_cuts, n_columns + n_cuts + n_rows * n_cuts))
    for i in range(n_rows):
        for k in range(n_cuts):
            margins[i * n_cuts + k, :n_columns] = side[i, k] * X[i]
            margins[i * n_cuts + k, n_columns + k] = side[i, k]
            margins[i * n_cuts + k, n_columns + n_cuts + i * n_cuts + k] = 1.0
    start = np.zeros(margins.shape[1])
    start[n_columns + n_cuts :] = 1.0
    solved = minimize(
        objective,
        start,
        jac=gradient,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: margins @ v - 1, "jac": lambda v: margins},
        bounds=[(None, None)] * (n_columns + n_cuts) + [(0, None)] * (n_rows * n_cuts),
        options={"maxiter": 2000, "ftol": 1e-13},
    )
    return solved.fun, *unpack(solved.x)[:2]


@pytest.mark.parametrize(("model", "penalty"), [(RedSVM, 1.0), (SVOR, 0.0)])
@pytest.mark.parametrize("C", [0.3, 2.0])
def test_threshold_models_against_a_convex_solver(model, penalty, C):
    X, y = make_ranked(n_rows=24, n_columns=3, n_ranks=4, density=1.0, seed=3)
    least, w, b = least_threshold_objective(X.toarray(), y - 1, C, penalty)
    ours = model(C=C, **TIGHT).fit(X, y)
    assert -ours.dual_objective_[0] == pytest.approx(least, rel=1e-5)
    np.testing.assert_allclose(ours.coef_[0], w, atol=1e-3)
    if penalty:
        np.testing.assert_allclose(ours.intercept_, b, atol=1e-3)


def test_svor_thresholds_fall_and_carry_no_penalty():
    """A constant column is one more offset: of no use to SVOR, whose offsets are free, and of use to RedSVM, whose are not."""
    X, y = make_ranked(n_rows=200, n_columns=5, density=1.0, seed=4)
    with_constant = sp.csr_matrix(np.hstack([X.toarray(), np.ones((200, 1))]))
    free, pulled = SVOR(C=0.1, **TIGHT), RedSVM(C=0.1, **TIGHT)
    least = free.fit(X, y).dual_objective_
    assert np.all(np.diff(free.intercept_) < 0)
    np.testing.assert_allclose(free.fit(with_constant, y).dual_objective_, least, rtol=1e-6)
    assert abs(free.coef_[0, 5]) < 1e-4
    assert pulled.fit(with_constant, y).dual_objective_[0] > pulled.fit(X, y).dual_objective_[0] + 1e-3


def test_gap_closes_for_all(model, ranked):
    losses = ({"loss": "hinge"}, {"loss": "squared_hinge"}, {"loss": "logistic"}) if "loss" in model().get_params() else ({},)
    for loss in losses:
        fitted = model(**loss, **TIGHT).fit(*ranked)
        assert np.all(fitted.duality_gap_ >= 0)
        assert np.all(fitted.duality_gap_ <= 1e-6 * np.abs(fitted.dual_objective_))


@pytest.mark.parametrize("solver", ["dcd2", "dcd1"])
def test_treebank_optima(data_folder, solver):
    """What the paper's own solver finds on the paper's own features."""
    from sklearn.datasets import load_svmlight_file

    folder = data_folder / "treebank_features"
    if not folder.is_dir():
        pytest.skip("no treebank_features among the data sets")
    X, y = load_svmlight_file(str(folder / "Treebank.train"))
    X_test, y_test = load_svmlight_file(str(folder / "Treebank.test"), n_features=X.shape[1])
    fitted = NPSVOR(tol=1e-6, max_iter=5000, solver=solver).fit(X, y)
    optima = [-738.77765, -2511.57412, -3594.58938, -2595.07983, -832.12516]
    np.testing.assert_allclose(fitted.dual_objective_, optima, rtol=1e-5)
    np.testing.assert_allclose(fitted.n_support_, [3910, 6772, 7482, 6830, 4284], rtol=2e-3)
    assert np.mean(np.abs(fitted.predict(X_test) - y_test)) == pytest.approx(0.7866, abs=0.003)


def test_rankers_of_npsvor(ranked):
    X, y = ranked
    for ranker in ("ordered", "nearest"):
        fitted = NPSVOR(ranker=ranker).fit(X, y)
        scores = fitted.plane_scores(X)
        expected = np.argmin(np.abs(scores), axis=1) if ranker == "nearest" else np.sum(scores[:, 1:] + scores[:, :-1] > 0, axis=1)
        np.testing.assert_array_equal(fitted.predict(X), 1 + expected)


def test_shapes(model, ranked):
    X, y = ranked
    # Minimises the absolute error, and by so much regularisation that hardly any of so few rows leaves the ranks in the middle.
    fitted = (model(C=10) if model is AdversarialOrdinal else model()).fit(X, y)
    n_planes = {SVMOP: 3, SVR: 1, RedSVM: 1, SVOR: 1, SVOREX: 1, KDLOR: 1}.get(model, 4)
    assert fitted.coef_.shape == (n_planes, 30)
    assert fitted.intercept_.shape == ((3,) if model in (RedSVM, SVOR, SVOREX, KDLOR) else (n_planes,))
    for name in ("n_iter_", "dual_objective_", "duality_gap_", "n_support_"):
        assert getattr(fitted, name).shape == (n_planes,)
    assert fitted.plane_scores(X).shape == (120, len(fitted.intercept_))
    np.testing.assert_allclose(fitted.plane_scores(X), X @ fitted.coef_.T + fitted.intercept_, atol=1e-12)
    assert np.mean(fitted.predict(X) == y) > 0.5


def test_a_smaller_c1_cares_less_for_the_own_rank(ranked):
    X, y = ranked
    own = [np.mean(np.abs(NPSVOR(C1=C1, C2=1.0, **TIGHT).fit(X, y).plane_scores(X)[np.arange(120), y - 1])) for C1 in (0.01, 1.0)]
    assert own[0] > own[1]
    np.testing.assert_array_equal(NPSVOR(C=0.3).fit(X, y).coef_, NPSVOR(C1=0.3, C2=0.3).fit(X, y).coef_)


def test_class_weight(model, ranked):
    X, y = ranked
    by_label = model(class_weight={1: 5.0}, **TIGHT).fit(X, y)
    by_row = model(**TIGHT).fit(X, y, sample_weight=np.where(y == 1, 5.0, 1.0))
    np.testing.assert_allclose(by_label.coef_, by_row.coef_, atol=1e-6)
    counts = np.bincount(y)[1:]
    balanced = model(class_weight="balanced", **TIGHT).fit(X, y)
    same = model(class_weight={k + 1: 120 / (4 * counts[k]) for k in range(4)}, **TIGHT).fit(X, y)
    np.testing.assert_allclose(balanced.coef_, same.coef_, atol=1e-6)


def test_hundreds_of_ranks():
    X, y = make_ranked(n_rows=900, n_columns=20, n_ranks=300, seed=9)
    fitted = NPSVOR().fit(X, y)
    assert fitted.coef_.shape == (300, 20)
    assert np.corrcoef(fitted.predict(X), y)[0, 1] > 0.7


def test_two_ranks(model):
    X, y = make_ranked(n_ranks=2, seed=10)
    assert np.mean(model(C=10).fit(X, y).predict(X) == y) > 0.85


def test_sklearn_machinery(model, ranked, tmp_path):
    X, y = ranked
    fitted = model(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    assert clone(fitted).get_params() == fitted.get_params()
    search = GridSearchCV(make_pipeline(MaxAbsScaler(), model()), {f"{model.__name__.lower()}__C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.3
    scored = cross_validate(model(), X, y, cv=3, scoring="neg_mean_absolute_error")
    assert np.all(scored["test_score"] > -2)


def test_public_names():
    models = {model.__name__ for model in [*EVERY_MODEL, Committee, GPOR]}
    others = {
        "CSearchCV",
        "ColumnEncoder",
        "TableVectorizer",
        "TextVectorizer",
        "choose_features",
        "compare_models",
        "load_model",
        "predict_rows",
        "read_metadata",
        "recalibrate",
        "save_model",
        "set_in_words",
    }
    assert set(rankplane.__all__) == models | others
    assert models == set(MODEL_NAMES)
    for name in rankplane.__all__:
        assert getattr(rankplane, name).__name__ == name


@pytest.mark.parametrize(
    "model",
    [
        NPSVOR(),
        NPSVOR(ranker="nearest"),
        SVC(),
        SVR(),
        SVMOP(),
        RedSVM(),
        SVOR(),
        SVOREX(),
        KDLOR(),
        Committee(),
        CrammerSinger(),
        AdversarialOrdinal(),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_ranks", [2, 5])
def test_leans_most_to_the_rank_it_predicts(model, n_ranks):
    X, y = make_ranked(n_rows=150, n_ranks=n_ranks)
    model = clone(model).fit(X, y)
    confidences = model.decision_function(X)
    if n_ranks == 2:
        assert confidences.shape == (150,)
        np.testing.assert_array_equal(model.classes_[(confidences > 0).astype(int)], model.predict(X))
        return
    assert confidences.shape == (150, 5)
    np.testing.assert_array_equal(model.classes_[np.argmax(confidences, axis=1)], model.predict(X))
    nothing = model.decision_function(np.zeros((1, X.shape[1])))
    assert np.sum(nothing == nothing.max()) == 1


@pytest.mark.parametrize("probability", [False, True])
def test_calibrated_by_scikit_learn(probability):
    X, y = make_ranked(n_rows=300)
    shares = CalibratedClassifierCV(NPSVOR(probability=probability), cv=3).fit(X, y).predict_proba(X)
    loss = -np.log(shares[np.arange(len(y)), y - 1]).mean()
    assert loss < np.log(4) - 0.2, "much better than knowing nothing"


def test_says_how_to_get_probabilities():
    X, y = make_ranked()
    for model in (NPSVOR().fit(X, y), NPSVOR(), CSearchCV(NPSVOR(), Cs=[1.0]).fit(X, y), CSearchCV(NPSVOR())):
        for name in ("predict_proba", "predict_set"):
            assert not hasattr(model, name)
            with pytest.raises(AttributeError, match=r"^NPSVOR has no probabilities: make it with NPSVOR\(probability=True\)"):
                getattr(model, name)


@pytest.mark.parametrize("decision", ["ranker", "mae", "accuracy"])
def test_ranks_and_probabilities_at_once_are_those_of_each(model, decision, ranked):
    X, y = ranked
    fitted = model(probability=True, decision=decision).fit(X, y)
    ranks, probabilities = fitted._predict_both(fitted.plane_scores(X))
    np.testing.assert_array_equal(ranks, fitted.predict(X))
    np.testing.assert_array_equal(probabilities, fitted.predict_proba(X))


def overlapping(n_rows=400):
    """Ranks that depend on the first column a little, the middle one by far the most frequent."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    return X, np.digitize(rng.normal(size=n_rows) + 0.1 * X[:, 0], [-1, 1.5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("name", ["SVOR", "SVOREX"])
def test_probabilities_that_are_all_the_same_are_warned_of(name, C, dtype):
    X, y = overlapping()
    model = getattr(rankplane, name)(C=C, probability=True)
    with pytest.warns(UserWarning, match=f"All samples have the same probabilities: with loss='hinge', ranks .* cost {name} least"):
        model.fit(X.astype(dtype), y)
    # The mean of the rarer rows as a mix of the others, of which each is used once at most: no direction separates them.
    for boundary in (1, 2):
        rarer = y < boundary if np.mean(y < boundary) < 0.5 else y >= boundary
        mix = linprog(
            np.zeros(np.sum(~rarer)),
            A_eq=np.vstack([X[~rarer].T, np.ones(np.sum(~rarer))]),
            b_eq=np.append(X[rarer].sum(axis=0), rarer.sum()),
            bounds=(0, 1),
        )
        assert mix.success


@pytest.mark.filterwarnings("error")
def test_other_losses_and_weights_that_are_small_are_not_warned_of():
    X, y = overlapping()
    for loss in ("squared_hinge", "logistic"):
        model = rankplane.SVOR(loss=loss, probability=True).fit(X, y)
        assert np.argmax(np.abs(model.coef_)) == 0
    for C in (1e-9, 1e-3):
        rankplane.SVOR(C=C, probability=True).fit(np.arange(40.0)[:, None], np.arange(40) // 10)
