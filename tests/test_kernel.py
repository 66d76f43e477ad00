"""Kernels: against scikit-learn's SVC and SVR, the linear models and an independent convex solver, and by the duality gap."""

import json
import pickle
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn import svm
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from conftest import MODELS, make_ranked
from rankplane import NPSVOR, SVC, SVMOP, SVOR, SVR, Committee, CSearchCV, RedSVM, load_model, save_model, tables
from rankplane.cli import main
from rankplane.kernels import Gram, Kernel, gamma_of
from rankplane.solve import Options, solve_planes

TIGHT = {"tol": 1e-6, "max_iter": 100_000}
NO_ORDER = {"check_classifiers_classes": "trains on text labels without an order, which are refused on purpose"}
KERNEL_MATRICES = {"rbf": rbf_kernel, "poly": polynomial_kernel, "sigmoid": sigmoid_kernel}


class FreeSVC(SVC):
    """scikit-learn's: the bias is not penalised."""

    free_offsets = True


class FreeSVR(SVR):
    free_offsets = True


def make_curved(n_rows=90, n_columns=3, n_ranks=4, seed=0, dtype=np.float64):
    """Dense rows whose rank no plane can tell."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns)).astype(dtype)
    hidden = np.square(X[:, 0]) - X[:, 1] + 0.2 * rng.standard_normal(n_rows)
    return X, 1 + np.searchsorted(np.quantile(hidden, np.arange(1, n_ranks) / n_ranks), hidden)


@pytest.fixture
def curved():
    return make_curved()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [NPSVOR(kernel="rbf", tol=1e-5), SVC(kernel="poly", coef0=1.0, tol=1e-5), SVOR(kernel="rbf", tol=1e-5)],
    expected_failed_checks=lambda estimator: NO_ORDER,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- scikit-learn's SVC and SVR ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": 0.3},
        {"kernel": "rbf", "gamma": "auto"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.5},
        {"kernel": "poly", "coef0": 0.5},
        {"kernel": linear_kernel},
    ],
    ids=str,
)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_svor_of_two_ranks_is_svc(curved, parameters, is_sparse):
    """Two ranks have one threshold, free of penalty: the binary SVC, whose bias is."""
    X, y = curved
    X = sp.csr_matrix(X) if is_sparse else X
    ours = SVOR(C=2.0, **parameters, **TIGHT).fit(X, y > 2)
    theirs = svm.SVC(C=2.0, **parameters, tol=1e-9).fit(X, y > 2)
    np.testing.assert_allclose(ours.plane_scores(X).ravel(), theirs.decision_function(X), atol=2e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-5)
    scores = ours.plane_scores(X[:7])
    np.testing.assert_allclose(scores, ours.plane_scores(X)[:7], atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_planes_with_free_offsets_are_svc_and_svr(seed):
    X, y = make_curved(seed=seed)
    ours = FreeSVC(C=3.0, kernel="rbf", gamma=0.4, **TIGHT).fit(X, y).plane_scores(X)
    for plane in range(4):
        theirs = svm.SVC(C=3.0, gamma=0.4, tol=1e-9).fit(X, y == plane + 1)
        np.testing.assert_allclose(ours[:, plane], theirs.decision_function(X), atol=5e-5)
    theirs = svm.SVR(C=3.0, gamma=0.4, epsilon=0.2, tol=1e-9).fit(X, y)
    ours = FreeSVR(C=3.0, kernel="rbf", gamma=0.4, epsilon=0.2, **TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.plane_scores(X).ravel(), theirs.predict(X), atol=5e-5)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_weights_of_rows_are_those_of_svc(curved, kernel):
    X, y = curved
    weights = np.random.default_rng(3).integers(0, 3, len(y)).astype(float)
    ours = SVOR(kernel=kernel, **TIGHT).fit(X, y > 2, sample_weight=weights)
    theirs = svm.SVC(kernel=kernel, tol=1e-9).fit(X, y > 2, sample_weight=weights)
    np.testing.assert_allclose(ours.plane_scores(X).ravel(), theirs.decision_function(X), atol=2e-5)
    assert np.all(weights[ours.support_] > 0)
    balanced = SVOR(kernel=kernel, class_weight="balanced", **TIGHT).fit(X, y > 1)
    theirs = svm.SVC(kernel=kernel, class_weight="balanced", tol=1e-9).fit(X, y > 1)
    np.testing.assert_allclose(balanced.plane_scores(X).ravel(), theirs.decision_function(X), atol=2e-5)


# --- the linear models ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_linear_kernel_is_the_linear_model(model, loss, is_sparse):
    X, y = make_ranked()
    X = X if is_sparse else X.toarray()
    linear = model(loss=loss, tol=1e-9, max_iter=1_000_000).fit(X, y)
    kernel = model(loss=loss, kernel=linear_kernel, tol=1e-7, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(kernel.plane_scores(X), linear.plane_scores(X), atol=1e-4)
    np.testing.assert_allclose(kernel.dual_objective_, linear.dual_objective_, rtol=1e-6)
    np.testing.assert_allclose(X.T @ np.eye(len(y))[:, kernel.support_] @ kernel.dual_coef_.T, linear.coef_.T, atol=1e-4)


def test_the_penalised_bias_is_a_constant_in_the_kernel(curved):
    """Where ours differs from scikit-learn's SVC: the bias is penalised like a weight, so K + 1 without bias is the same."""
    X, y = curved
    K = rbf_kernel(X, gamma=0.5)
    biased = NPSVOR(kernel="rbf", gamma=0.5, **TIGHT).fit(X, y)
    unbiased = NPSVOR(kernel="precomputed", fit_intercept=False, **TIGHT).fit(K + 1, y)
    assert np.all(unbiased.intercept_ == 0)
    np.testing.assert_allclose(biased.plane_scores(X), unbiased.plane_scores(K + 1), atol=2e-5)
    np.testing.assert_allclose(biased.intercept_, biased.dual_coef_.sum(axis=1), atol=1e-9)


# --- an independent convex solver ----------------------------------------------------------------------------------------------


def least_primal(K, table, table_rows, lane, rho):
    """The primal with slack variables, by sequential quadratic programming: minimum and scores.

    Rows are written in a space where the kernel is their inner product. For thresholds this is the problem with implicit
    constraints of Chu and Keerthi: every row pulls at every threshold, and nothing says that the thresholds are ordered.
    """
    values, vectors = np.linalg.eigh(K)
    features = (vectors * np.sqrt(np.maximum(values, 0)))[:, values > 1e-10]
    n_rows, n_weights, n_cuts = *features.shape, table.shape[1]
    demands = table[table_rows, :, lane]  # (rows, cuts, 5)
    lo, hi, t, e, _ = np.moveaxis(demands, -1, 0)
    is_pushed_up, is_pushed_down = hi > 0, lo < 0
    price = np.maximum(hi, -lo)

    def unpack(v):
        return v[:n_weights], v[n_weights : n_weights + n_cuts], v[n_weights + n_cuts :].reshape(n_rows, n_cuts)

    def objective(v):
        w, b, slack = unpack(v)
        penalty = 0.0 if rho == np.inf else 0.5 * b @ b / rho
        return 0.5 * w @ w + penalty + np.sum(price * slack)

    def gradient(v):
        w, b, _ = unpack(v)
        return np.concatenate([w, 0 * b if rho == np.inf else b / rho, price.ravel()])

    no_slack = np.zeros((n_rows * n_cuts, n_rows * n_cuts))
    score_of = np.concatenate([np.repeat(features, n_cuts, axis=0), np.tile(np.eye(n_cuts), (n_rows, 1)), no_slack], axis=1)
    slack_of = np.concatenate([np.zeros((n_rows * n_cuts, n_weights + n_cuts)), np.eye(n_rows * n_cuts)], axis=1)
    rows = [
        (slack_of + score_of)[is_pushed_up.ravel()],  # slack >= (t - e) - z
        (slack_of - score_of)[is_pushed_down.ravel()],  # slack >= z - (t + e)
        slack_of,
    ]
    bounds = [(t - e)[is_pushed_up], -(t + e)[is_pushed_down], np.zeros(n_rows * n_cuts)]
    A, b = np.concatenate(rows), np.concatenate(bounds)
    start = np.concatenate([np.zeros(n_weights + n_cuts), np.full(n_rows * n_cuts, 10.0)])
    found = minimize(
        objective,
        start,
        jac=gradient,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    # It may complain that it finds no way down from the optimum; what counts is that the constraints hold: the value then is an
    # upper bound of the minimum, as the dual's is a lower one.
    assert np.min(A @ found.x - b) > -1e-8
    w, offsets, _ = unpack(found.x)
    return found.fun, (features @ w)[:, None] + offsets


@pytest.mark.parametrize("estimator", [NPSVOR, SVC, SVR, RedSVM, SVOR], ids=lambda model: model.__name__)
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_an_independent_solver_finds_the_same(estimator, kernel):
    X, y = make_curved(n_rows=24, n_ranks=3, seed=5)
    parameters = {"kernel": kernel, "gamma": 0.5} | ({"coef0": 1.0, "degree": 2} if kernel == "poly" else {})
    fitted = estimator(C=1.5, **parameters, **TIGHT).fit(X, y)
    K = rbf_kernel(X, gamma=0.5) if kernel == "rbf" else polynomial_kernel(X, gamma=0.5, coef0=1.0, degree=2)
    table = fitted._table(3)
    for lane in range(table.shape[2]):
        minimum, scores = least_primal(K, table, y - 1, lane, np.inf if fitted.free_offsets else 1.0)
        assert -fitted.dual_objective_[lane] == pytest.approx(minimum, rel=1e-5)
        ours = fitted.plane_scores(X)[:, lane : lane + 1] if table.shape[1] == 1 else fitted.plane_scores(X)
        np.testing.assert_allclose(ours, scores, atol=5e-3)


# --- certificates and invariants -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
def test_the_gap_is_a_certificate(model, loss, tol):
    """The gap is the primal, computed plainly in a space where the kernel is an inner product, plus the dual; and it closes."""
    X, y = make_curved(n_rows=60)
    fitted = model(C=0.8, loss=loss, kernel="rbf", gamma=0.4, tol=tol).fit(X, y)
    K = rbf_kernel(X, gamma=0.4)
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0))
    duals = np.zeros((len(y), len(fitted.dual_coef_)))
    duals[fitted.support_] = fitted.dual_coef_.T
    table = fitted._table(4)
    if not fitted.free_offsets:
        offsets = fitted.intercept_.reshape(table.shape[1], table.shape[2])
        primal = reference.primal(features, features.T @ duals, offsets, table, y - 1)
        np.testing.assert_allclose(fitted.duality_gap_, primal + fitted.dual_objective_, atol=1e-7 * primal.max())
    assert np.all(fitted.duality_gap_ >= 0)
    assert np.all(fitted.duality_gap_ <= tol**2 * (fitted.duality_gap_ - fitted.dual_objective_))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(MODELS), st.sampled_from(["rbf", "poly"]))
def test_the_order_of_rows_does_not_matter(seed, estimator, kernel):
    X, y = make_curved(n_rows=40, seed=seed % 7)
    order = np.random.default_rng(seed).permutation(len(y))
    one = estimator(kernel=kernel, tol=1e-5).fit(X, y)
    other = estimator(kernel=kernel, tol=1e-5).fit(X[order], y[order])
    np.testing.assert_allclose(one.dual_objective_, other.dual_objective_, rtol=1e-7)
    # Free offsets need not be unique: between two ranks that are well apart, a threshold may lie anywhere.
    scores = [fitted.plane_scores(X) - fitted.free_offsets * fitted.intercept_ for fitted in (one, other)]
    np.testing.assert_allclose(*scores, atol=5e-3)


def test_a_row_twice_is_a_row_of_weight_two(model):
    X, y = make_curved(n_rows=40)
    twice = model(kernel="rbf", **TIGHT).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    weighted = model(kernel="rbf", **TIGHT).fit(X, y, sample_weight=np.full(len(y), 2.0))
    np.testing.assert_allclose(twice.plane_scores(X), weighted.plane_scores(X), atol=2e-4)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_megabytes", [0.004, 0.1])
def test_a_small_cache_changes_nothing_but_time(model, is_sparse, n_megabytes):
    X, y = make_curved(n_rows=150)
    X = sp.csr_matrix(X) if is_sparse else X
    whole = model(kernel="rbf", tol=1e-4).fit(X, y)
    cached = model(kernel="rbf", tol=1e-4, cache_size=n_megabytes).fit(X, y)
    np.testing.assert_allclose(cached.dual_objective_, whole.dual_objective_, rtol=1e-6)
    np.testing.assert_allclose(cached.plane_scores(X), whole.plane_scores(X), atol=2e-2)


def test_rows_beyond_the_working_set_are_heard():
    """More rows than are worked on at a time, with and without that."""
    X, y = make_curved(n_rows=1500, n_ranks=3)
    part = NPSVOR(kernel="rbf", tol=1e-3).fit(X, y)
    whole = NPSVOR(kernel="rbf", tol=1e-3, shrinking=False).fit(X, y)
    np.testing.assert_allclose(part.dual_objective_, whole.dual_objective_, rtol=1e-5)
    assert np.all(part.duality_gap_ <= 1e-6 * -part.dual_objective_ * 1.01)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_threads_change_no_bit(model, n_jobs):
    X, y = make_curved(n_rows=300, dtype=np.float32)
    one = model(kernel="rbf", n_jobs=1).fit(X, y)
    many = model(kernel="rbf", n_jobs=n_jobs).fit(X, y)
    np.testing.assert_array_equal(one.dual_coef_, many.dual_coef_)
    np.testing.assert_array_equal(one.plane_scores(X), many.plane_scores(X))


def test_single_precision_is_close(curved):
    X, y = curved
    wide = NPSVOR(kernel="rbf", tol=1e-4).fit(X, y)
    narrow = NPSVOR(kernel="rbf", tol=1e-4).fit(X.astype(np.float32), y)
    assert narrow.support_vectors_.dtype == np.float32
    np.testing.assert_allclose(narrow.plane_scores(X), wide.plane_scores(X), atol=2e-3)
    # Rows far from the origin: their distances are small differences of large numbers.
    far = NPSVOR(kernel="rbf", gamma=0.3, tol=1e-4).fit((X + 1000).astype(np.float32), y)
    near = NPSVOR(kernel="rbf", gamma=0.3, tol=1e-4).fit((X + 1000).astype(np.float32).astype(float), y)
    np.testing.assert_allclose(far.plane_scores(X + 1000), near.plane_scores(X + 1000), atol=2e-2)


@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_kernel_rows_are_those_of_scikit_learn(name, is_sparse):
    X, _ = make_ranked(n_rows=50)
    X = X if is_sparse else X.toarray()
    parameters = {"gamma": 0.7} | ({} if name == "rbf" else {"coef0": 0.3}) | ({"degree": 4} if name == "poly" else {})
    gram = Gram(Kernel(name, **parameters), X, n_bytes=10 * 80 * 8, n_threads=1)
    expected = KERNEL_MATRICES[name](X, **parameters)
    np.testing.assert_allclose(gram.diagonal(), expected.diagonal(), atol=1e-12)
    for rows in (np.array([3, 1, 44]), np.array([44, 2, 3]), np.arange(10), np.arange(20, 30), np.array([3, 25])):
        np.testing.assert_allclose(gram.cache[gram.slots(rows)], expected[rows], atol=1e-12)
    other = gram.with_gamma(1.9)
    np.testing.assert_allclose(
        other.cache[other.slots(np.array([5]))][0], KERNEL_MATRICES[name](X, **(parameters | {"gamma": 1.9}))[5]
    )


@pytest.mark.parametrize("is_sparse", [False, True])
def test_gamma_is_that_of_scikit_learn(ranked, is_sparse):
    X, y = ranked
    X = X if is_sparse else X.toarray()
    for gamma in ("scale", "auto", 0.25):
        assert gamma_of(gamma, X) == pytest.approx(svm.SVC(gamma=gamma).fit(X, y)._gamma)
    assert gamma_of("scale", np.ones((3, 2))) == 1.0


# --- the models as their users see them ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [*MODELS, Committee], ids=lambda model: model.__name__)
def test_a_kernel_finds_what_no_plane_can(estimator):
    X, y = make_curved(n_rows=400)
    linear, kernel = (estimator(C=2.0, kernel=kernel).fit(X[:300], y[:300]) for kernel in ("linear", "rbf"))
    assert kernel.score(X[300:], y[300:]) > linear.score(X[300:], y[300:]) + 0.1
    n_planes = kernel._table(4).shape[2]
    assert kernel.dual_coef_.shape == (n_planes, len(kernel.support_))
    np.testing.assert_array_equal(kernel.support_vectors_, X[kernel.support_])
    assert np.all(np.any(kernel.dual_coef_ != 0, axis=0))
    assert kernel.intercept_.shape == linear.intercept_.shape
    assert kernel.n_support_.shape == kernel.n_iter_.shape == (n_planes,)
    expected = rbf_kernel(X, kernel.support_vectors_, gamma=kernel.gamma_) @ kernel.dual_coef_.T + kernel.intercept_
    np.testing.assert_allclose(kernel.plane_scores(X), expected, atol=1e-10)


@pytest.mark.parametrize("estimator", [NPSVOR, SVOR, Committee], ids=lambda model: model.__name__)
def test_probabilities_sets_and_decisions(estimator):
    X, y = make_curved(n_rows=300)
    fitted = estimator(kernel="rbf", C=2.0, probability=True, decision="mae").fit(X[:200], y[:200])
    probabilities = fitted.predict_proba(X[200:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert np.mean(np.abs(fitted.predict(X[200:]) - y[200:])) < 0.6
    sets = fitted.predict_set(X[200:], coverage=0.9)
    assert np.mean(sets[np.arange(100), y[200:] - 1]) > 0.8


def test_precomputed_is_the_same(model, curved):
    X, y = curved
    K = rbf_kernel(X, gamma=0.5)
    by_name = model(kernel="rbf", gamma=0.5, probability=True).fit(X[:60], y[:60])
    precomputed = model(kernel="precomputed", probability=True).fit(K[:60, :60], y[:60])
    np.testing.assert_allclose(precomputed.plane_scores(K[60:, :60]), by_name.plane_scores(X[60:]), atol=1e-6)
    np.testing.assert_allclose(precomputed.predict_proba(K[60:, :60]), by_name.predict_proba(X[60:]), atol=1e-4)
    assert precomputed.support_vectors_.shape == (0, 60)


def test_grid_search_splits_a_precomputed_kernel(curved):
    X, y = curved
    by_name = GridSearchCV(NPSVOR(kernel="rbf", gamma=0.5), {"C": [0.1, 1.0, 10.0]}, cv=3).fit(X, y)
    precomputed = GridSearchCV(NPSVOR(kernel="precomputed"), {"C": [0.1, 1.0, 10.0]}, cv=3).fit(rbf_kernel(X, gamma=0.5), y)
    np.testing.assert_allclose(by_name.cv_results_["mean_test_score"], precomputed.cv_results_["mean_test_score"])


def test_sparse_and_dense_rows_may_be_mixed(curved):
    X, y = curved
    dense, sparse = (NPSVOR(kernel="rbf", tol=1e-5).fit(rows, y) for rows in (X, sp.csr_matrix(X)))
    for fitted in (dense, sparse):
        np.testing.assert_allclose(fitted.plane_scores(sp.csr_matrix(X)), fitted.plane_scores(X), atol=1e-9)
    np.testing.assert_allclose(dense.plane_scores(X), sparse.plane_scores(X), atol=1e-3)


def test_a_fitted_model_can_be_copied_and_cloned(curved):
    X, y = curved
    fitted = SVMOP(kernel="poly", degree=2, coef0=1.0).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    assert clone(fitted).get_params() == fitted.get_params()
    fitted.set_params(kernel="linear", degree=3, coef0=0.0).fit(X, y)
    assert not hasattr(fitted, "dual_coef_")
    assert fitted.coef_.shape == (3, 3)


def test_what_needs_weights_says_so(curved):
    X, y = curved
    fitted = NPSVOR(kernel="rbf").fit(X, y)
    with pytest.raises(AttributeError, match=r"coef_ needs a linear model: there are no weights of columns with kernel='rbf'."):
        _ = fitted.coef_
    for ask in (fitted.explain, lambda X: fitted.top_features()):
        with pytest.raises(ValueError, match=r"Explanations need .* a linear model\. This one has kernel='rbf'\."):
            ask(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "cosine"}, "kernel must be one of 'linear', 'rbf', 'poly', 'sigmoid', 'precomputed'. Got 'cosine'."),
        ({"kernel": "rbf", "gamma": -1}, "gamma must be 'scale', 'auto' or a positive number. Got -1."),
        ({"kernel": "rbf", "gamma": "large"}, "gamma must be 'scale', 'auto' or a positive number. Got 'large'."),
        ({"kernel": "poly", "degree": -2}, "degree must be a number that is not negative. Got -2."),
        ({"kernel": "poly", "coef0": float("nan")}, "coef0 must be a finite number. Got nan."),
        ({"kernel": "rbf", "cache_size": 0}, "cache_size must be a positive number. Got 0."),
        (
            {"gamma": 0.5},
            "gamma must be left at 'scale' unless kernel is 'rbf' or 'poly' or 'sigmoid'. Got 0.5 with kernel='linear'.",
        ),
        ({"kernel": "rbf", "degree": 2}, "degree must be left at 3 unless kernel is 'poly'. Got 2 with kernel='rbf'."),
        ({"kernel": "rbf", "coef0": 1.0}, "coef0 must be left at 0.0 unless kernel is 'poly' or 'sigmoid'. Got 1.0 with"),
        ({"kernel": "rbf", "solver": "dcd1"}, "solver must be 'dcd2' with a kernel. Got 'dcd1' with kernel='rbf'."),
        ({"kernel": "rbf", "column_weight": "ranks"}, "column_weight must be None with a kernel. Got 'ranks' with kernel='rbf'."),
        ({"kernel": "precomputed"}, r"X must be a square matrix with kernel='precomputed', .* Got \(90, 3\)."),
        (
            {"kernel": lambda a, b: np.ones((2, 2))},
            r"kernel must return an array of shape \(90, 90\) for so many rows. Got \(2, 2\).",
        ),
        ({"kernel": lambda a, b: np.full((len(a), len(b)), np.nan)}, "kernel must return finite numbers. Got NaN or infinity."),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(curved, parameters, message):
    with pytest.raises(ValueError, match=message):
        NPSVOR(**parameters).fit(*curved)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed"])
def test_model_files(curved, kernel, is_sparse, tmp_path):
    X, y = curved
    X = rbf_kernel(X) if kernel == "precomputed" else sp.csr_matrix(X) if is_sparse else X
    fitted = NPSVOR(kernel=kernel, probability=True, decision="mae").fit(X, y)
    save_model(fitted, tmp_path / "m")
    found = load_model(tmp_path / "m")
    assert found.get_params() == fitted.get_params()
    for name in ("support_", "dual_coef_", "intercept_", "duality_gap_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(fitted, name))
    np.testing.assert_array_equal(found.predict_proba(X), fitted.predict_proba(X))
    with pytest.raises(ValueError, match=r"compact drops weights of columns, so it needs a linear model. This one has kernel="):
        save_model(fitted, tmp_path / "m", compact=0.01)


def test_a_kernel_that_is_code_is_not_stored(curved, tmp_path):
    fitted = NPSVOR(kernel=linear_kernel).fit(*curved)
    with pytest.raises(ValueError, match="kernel must be a plain value to be stored in a model file, which holds no code"):
        save_model(fitted, tmp_path / "m")
    assert not (tmp_path / "m").exists()


# --- searching -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [NPSVOR, SVOR, SVR], ids=lambda model: model.__name__)
@pytest.mark.parametrize("cache_size", [200, 0.05])
def test_a_search_scores_what_single_fits_score(estimator, cache_size):
    X, y = make_curved(n_rows=120)
    gammas, Cs = [0.1, 0.5], [0.25, 1.0, 4.0]
    model = estimator(kernel="rbf", tol=1e-3, cache_size=cache_size)
    search = CSearchCV(model, Cs=Cs, gammas=gammas, cv=3, scoring="accuracy").fit(X, y)
    grid = GridSearchCV(model, {"C": Cs, "gamma": gammas}, cv=list(_folds(search, X, y)), scoring="accuracy").fit(X, y)
    theirs = {
        (p["C"], p["gamma"]): score
        for p, score in zip(grid.cv_results_["params"], grid.cv_results_["mean_test_score"], strict=True)
    }
    for parameters, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True):
        assert score == pytest.approx(theirs[parameters["C"], parameters["gamma"]], abs=0.02)
    assert len(search.cv_results_["params"]) == 6
    assert set(search.cv_results_["param_gamma"]) == {0.1, 0.5}
    best = search.best_params_
    single = estimator(kernel="rbf", tol=1e-3, **best).fit(X, y)
    assert search.best_estimator_.gamma_ == best["gamma"]
    np.testing.assert_allclose(search.plane_scores(X), single.plane_scores(X), atol=1e-2)


def _folds(search, X, y):
    from rankplane.folds import make_folds

    folds = make_folds(3, X, (y - 1).astype(np.int32), None, 0)
    for fold in range(3):
        yield np.flatnonzero(folds.is_train[fold]), folds.test[fold]


def test_a_search_over_gamma_with_probabilities():
    X, y = make_curved(n_rows=200)
    search = CSearchCV(NPSVOR(kernel="rbf", probability=True), Cs=[0.5, 2.0], gammas=[1e-4, 0.5], cv=3, scoring="rps").fit(X, y)
    assert search.best_params_["gamma"] == 0.5
    assert search.predict_proba(X).shape == (200, 4)


def test_a_search_walks_a_precomputed_kernel(curved):
    X, y = curved
    by_name = CSearchCV(SVC(kernel="rbf", gamma=0.5), Cs=[0.5, 2.0], cv=3).fit(X, y)
    precomputed = CSearchCV(SVC(kernel="precomputed"), Cs=[0.5, 2.0], cv=3).fit(rbf_kernel(X, gamma=0.5), y)
    np.testing.assert_allclose(by_name.cv_results_["mean_test_score"], precomputed.cv_results_["mean_test_score"], atol=0.02)


@pytest.mark.parametrize(
    ("estimator", "gammas", "message"),
    [
        (NPSVOR(), [1.0], r"gammas must be None with kernel='linear', which has no gamma. Got \[1.0\]."),
        (NPSVOR(kernel="rbf"), [1.0, -1.0], "gammas must be a positive number. Got -1.0."),
        (NPSVOR(kernel="rbf"), [], "gammas must name at least one positive number. Got none."),
    ],
)
def test_bad_gammas_are_refused(curved, estimator, gammas, message):
    with pytest.raises(ValueError, match=message):
        CSearchCV(estimator, gammas=gammas).fit(*curved)


# --- while it runs -------------------------------------------------------------------------------------------------------------


def test_progress_is_reported(curved):
    X, y = curved
    reports = []
    gram = Gram(Kernel("rbf", 0.5), X, 1e6, 1)
    table = tables.npsvor(4, 1.0, 1.0, 0.1, "hinge")
    solve_planes(
        gram, table, (y - 1).astype(np.int32), Options(tol=1e-3, max_iter=1000), on_report=lambda *news: reports.append(news)
    )
    sweeps, _, lanes, violations = reports[-1]
    assert sweeps >= 1
    assert list(lanes) == [0, 1, 2, 3]
    assert max(violations) < max(reports[0][3])


def test_too_few_steps_are_warned_of(curved):
    with pytest.warns(UserWarning, match=r"planes stopped at max_iter=1 .* Raise max_iter or tol"):
        fitted = NPSVOR(kernel="rbf", C=1e6, tol=1e-6, max_iter=1).fit(*curved)
    assert np.all(fitted.n_iter_ == 1)


def test_ctrl_c_stops_a_kernel_solve():
    script = """
        import signal
        import numpy as np
        from rankplane import NPSVOR
        signal.signal(signal.SIGINT, signal.default_int_handler)
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((3000, 2)), rng.integers(0, 5, 3000)
        estimator = NPSVOR(kernel="rbf", C=1e6, tol=1e-9, max_iter=10**6)
        print("go", flush=True)
        try:
            estimator.fit(X, y)
        except KeyboardInterrupt:
            print("fitted" if hasattr(estimator, "dual_coef_") else "unfitted", flush=True)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "go\n"
    time.sleep(1.5)
    asked = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[0] == "unfitted\n"
    assert child.returncode == 0
    # A bound on a hang rather than a timing.
    assert time.monotonic() - asked < 10


# --- the command line ----------------------------------------------------------------------------------------------------------


def train_by_command(tmp_path, *options):
    X, y = make_curved(n_rows=160)
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,c,rank", comments="", fmt="%.6g")
    return main(["train", str(path), "--target", "rank", "-o", str(tmp_path / "m.rankplane"), *options]), path


def test_the_command_line_trains_a_kernel(tmp_path, capsys):
    status, path = train_by_command(tmp_path, "--kernel", "rbf", "--json", "--report", str(tmp_path / "page.html"))
    assert status == 0
    said = json.loads(capsys.readouterr().out)
    assert said["choices"]["kernel"] == "rbf"
    assert said["choices"]["gamma"] > 0
    assert said["telling"] == []
    assert len(said["search"]["C"]) == len(said["search"]["scores"]) == 11
    assert said["metrics"]["model"]["mae"] < 0.7 < said["metrics"]["median"]["mae"]
    assert "columns have no weights" in (tmp_path / "page.html").read_text(encoding="utf-8")
    model = str(tmp_path / "m.rankplane")
    assert main(["predict", model, str(path), "-o", str(tmp_path / "out.csv"), "--proba"]) == 0
    assert main(["evaluate", model, str(path)]) == 0
    assert main(["explain", model, '{"a": 1, "b": 0, "c": 0}']) == 2
    assert "explanations need the weights of a linear model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kernel", "cosine"], "--kernel must be one of linear, rbf, poly, sigmoid. Got cosine."),
        (["--gamma", "1"], "--gamma needs a kernel that has one: --kernel rbf or poly or sigmoid."),
        (["--kernel", "rbf", "--gamma", "-1"], "--gamma must be a positive number. Got -1.0."),
        (["--kernel", "rbf", "--compact", "0.01"], "--compact rounds weights of columns, which only --kernel linear has."),
    ],
)
def test_the_command_line_refuses(tmp_path, capsys, options, message):
    assert train_by_command(tmp_path, *options)[0] == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "m.rankplane").exists()
