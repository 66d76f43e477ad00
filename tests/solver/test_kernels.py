"""Kernels: against scikit-learn's SVC and SVR, the linear models and an independent convex solver, and by the duality gap."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn import svm
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel

import reference
from conftest import MODELS, make_curved, make_ranked, words
from rankplane import KDLOR, NPSVOR, SVC, SVOR, SVR, RedSVM
from rankplane.solver.kernels import Gram, Kernel, gamma_of

TIGHT = {"tol": 1e-6, "max_iter": 100_000}
KERNEL_MATRICES = {"rbf": rbf_kernel, "poly": polynomial_kernel, "sigmoid": sigmoid_kernel}


class FreeSVC(SVC):
    """scikit-learn's: the bias is not penalised."""

    free_offsets = True


class FreeSVR(SVR):
    free_offsets = True


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
    ids=words,
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


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
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
    demands = table[table_rows, :, lane]  # (rows, cuts, 6)
    lo, hi, t, e, *_ = np.moveaxis(demands, -1, 0)
    is_pushed_up, is_pushed_down = hi > 0, lo < 0
    bound = np.maximum(hi, -lo)

    def unpack(v):
        return v[:n_weights], v[n_weights : n_weights + n_cuts], v[n_weights + n_cuts :].reshape(n_rows, n_cuts)

    def objective(v):
        w, b, slack = unpack(v)
        penalty = 0.0 if rho == np.inf else 0.5 * b @ b / rho
        return 0.5 * w @ w + penalty + np.sum(bound * slack)

    def gradient(v):
        w, b, _ = unpack(v)
        return np.concatenate([w, 0 * b if rho == np.inf else b / rho, bound.ravel()])

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


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
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


@pytest.mark.parametrize("model", [*MODELS, KDLOR], ids=lambda model: model.__name__)
def test_a_row_twice_is_a_row_of_weight_two(model):
    X, y = make_curved(n_rows=40)
    twice = model(kernel="rbf", **TIGHT).fit(np.tile(X, (2, 1)), np.tile(y, 2))
    weighted = model(kernel="rbf", **TIGHT).fit(X, y, sample_weight=np.full(len(y), 2.0))
    np.testing.assert_allclose(twice.plane_scores(X), weighted.plane_scores(X), atol=2e-4)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_megabytes", [0.004, 0.1])
@pytest.mark.parametrize("model", [*MODELS, KDLOR], ids=lambda model: model.__name__)
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
@pytest.mark.parametrize("model", [*MODELS, KDLOR], ids=lambda model: model.__name__)
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
