"""Gaussian process ordinal regression: against dense algebra, finite differences and direct integration."""

import tracemalloc

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

from rankplane.prediction.calibration import Probit
from rankplane.solver.gaussian_process import Chart, Covariance, Evidence, Mode, Parameters, Rows, learn, process_of, spread_points
from rankplane.solver.ordinal_likelihood import Likelihood, log_probabilities

N_RANKS = 4


def made_rows(n_rows=40, n_columns=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    ranks = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n_rows), [-0.5, 0.5, 1.2])
    return Rows.of(X, ranks, rng.uniform(0.5, 2, n_rows), N_RANKS)[0]


def dense_kernel(A, B, lengths):
    return np.exp(-0.5 * np.sum(np.square((A[:, None] - B[None]) / lengths), axis=2))


def ends(likelihood, f, rows):
    edges = np.concatenate([[-np.inf], likelihood.thresholds, [np.inf]])
    return ((edges[rows.ranks + place] - f) / likelihood.noise for place in (0, 1))


def log_likelihood(likelihood, f, rows):
    """Of one or several vectors f, without any care for tails."""
    low, high = ends(likelihood, f, rows)
    return np.log(np.maximum(norm.cdf(high) - norm.cdf(low), 1e-300)) @ rows.weights


def derivatives(likelihood, f, rows):
    """The gradient of the log likelihood and minus its second derivatives, as quotients of those of the probability."""
    low, high = ends(likelihood, f, rows)
    p, s = norm.cdf(high) - norm.cdf(low), likelihood.noise
    first = (norm.pdf(low) - norm.pdf(high)) / s
    second = (np.clip(low, -99, 99) * norm.pdf(low) - np.clip(high, -99, 99) * norm.pdf(high)) / s**2
    return rows.weights * first / p, rows.weights * ((first / p) ** 2 - second / p)


def dense_laplace(K, likelihood, rows):
    """Mode, evidence and posterior covariance as textbooks have them."""
    f = np.zeros(len(K))
    for _ in range(100):
        g, W = derivatives(likelihood, f, rows)
        f = 0.5 * f + 0.5 * K @ np.linalg.solve(np.eye(len(K)) + W[:, None] * K, W * f + g)
    g, W = derivatives(likelihood, f, rows)
    determinant = np.linalg.slogdet(np.eye(len(K)) + K * W)[1]
    return f, log_likelihood(likelihood, f, rows) - 0.5 * f @ g - 0.5 * determinant, K - K @ np.linalg.solve(K + np.diag(1 / W), K)


@pytest.mark.parametrize("f", [-3.0, 0.1, 2.5])
@pytest.mark.parametrize("rank", range(N_RANKS))
def test_derivatives_of_the_likelihood(f, rank):
    likelihood = Likelihood(0.4, np.array([-1.0, 0.1, 0.8]))
    ranks, weights, step = np.array([rank]), np.array([1.5]), 1e-5

    def terms(f, likelihood=likelihood):
        return likelihood.terms(likelihood.ends(np.array([f]), ranks), weights)

    low, here, high = terms(f - step), terms(f), terms(f + step)
    assert here.value[0] == pytest.approx(likelihood.log(np.array([f]), ranks, weights))
    assert (high.value - low.value)[0] / (2 * step) == pytest.approx(here.first[0], rel=1e-6)
    assert -(high.first - low.first)[0] / (2 * step) == pytest.approx(here.curvature[0], rel=1e-6)
    assert -(high.curvature - low.curvature)[0] / (2 * step) == pytest.approx(here.third[0], rel=1e-5, abs=1e-6)

    def check(slopes, other):
        higher, lower = terms(f, other(step)), terms(f, other(-step))
        moved = [(one - two)[0] / (2 * step) for one, two in zip(higher[:3], lower[:3], strict=True)]
        own = [weights[0] * part[0] * sign for part, sign in zip(slopes, (1, 1, -1), strict=True)]
        np.testing.assert_allclose(moved, own, rtol=1e-5, atol=1e-7)

    ends = likelihood.ends(np.array([f]), ranks)
    check(likelihood.of_log_noise(ends), lambda h: Likelihood(0.4 * np.exp(h), likelihood.thresholds))
    if rank < N_RANKS - 1:
        check(likelihood.of_high(ends), lambda h: Likelihood(0.4, likelihood.thresholds + h * (np.arange(3) == rank)))
    if rank > 0:
        check(likelihood.of_low(ends), lambda h: Likelihood(0.4, likelihood.thresholds + h * (np.arange(3) == rank - 1)))


def test_tails():
    """A probability that is zero in double precision has a logarithm all the same, equal on both sides."""
    low, high = np.array([40.0, 50.0, -np.inf]), np.array([41.0, np.inf, -45.0])
    found = log_probabilities(low, high)
    np.testing.assert_allclose(found, log_probabilities(-high, -low))
    np.testing.assert_allclose(found, [norm.logsf(40), norm.logsf(50), norm.logcdf(-45)])
    likelihood = Likelihood(0.01, np.array([0.0, 1e-3]))
    terms = likelihood.terms(likelihood.ends(np.array([3.0, -3.0, 0.0]), np.array([0, 2, 1])), np.ones(3))
    assert all(np.all(np.isfinite(part)) for part in terms)
    np.testing.assert_allclose(terms.curvature[:2], 1e4, rtol=1e-3)


@pytest.mark.parametrize("noise", [0.3, 0.5, 5.0])
def test_all_rows_as_points_is_the_exact_model(noise):
    rows, lengths = made_rows(), np.array([0.9, 1.4])
    likelihood = Likelihood(noise, np.array([-0.7, 0.1, 0.9]))
    covariance = Covariance.of(rows.X, rows.X, lengths)
    found = Mode.find(covariance, likelihood, rows, np.zeros(len(rows)))
    K = dense_kernel(rows.X, rows.X, lengths)
    f, value, posterior = dense_laplace(K, likelihood, rows)
    np.testing.assert_allclose(found.f, f, atol=2e-5)
    assert found.log_evidence == pytest.approx(value, abs=1e-3)
    np.testing.assert_allclose(found.variances, np.diag(posterior), rtol=1e-3, atol=1e-6)
    # Predictions: mean and variance of the latent value elsewhere.
    X = np.random.default_rng(1).normal(size=(5, 2))
    across = dense_kernel(X, rows.X, lengths)
    mean = across @ found.terms.first
    W = found.terms.curvature
    variances = 1 - np.einsum("ij,ji->i", across, np.linalg.solve(K + np.diag(1 / W), across.T))
    scores = process_of(found, rows.X, Parameters(lengths, likelihood)).scores(X)
    np.testing.assert_allclose(scores, likelihood.scores(mean, variances), atol=2e-5)


def test_some_points_are_fitc():
    """The mode, the evidence and predictions with the dense covariance that inducing points stand for."""
    rows, lengths, likelihood = made_rows(), np.array([0.9, 1.4]), Likelihood(0.4, np.array([-0.7, 0.1, 0.9]))
    points = rows.X[::4]
    found = Mode.find(Covariance.of(points, rows.X, lengths), likelihood, rows, np.zeros(len(rows)))
    among = dense_kernel(points, points, lengths) + 1e-8 * np.eye(len(points))
    across = dense_kernel(points, rows.X, lengths)
    Q = across.T @ np.linalg.solve(among, across)
    K = Q + np.diag(1 - np.diag(Q))
    f, value, posterior = dense_laplace(K, likelihood, rows)
    np.testing.assert_allclose(found.f, f, atol=2e-5)
    assert found.log_evidence == pytest.approx(value, abs=1e-3)
    np.testing.assert_allclose(found.variances, np.diag(posterior), rtol=1e-3)
    X = np.random.default_rng(1).normal(size=(5, 2))
    elsewhere = dense_kernel(X, points, lengths) @ np.linalg.solve(among, across)
    variances = 1 - np.einsum("ij,ji->i", elsewhere, np.linalg.solve(K + np.diag(1 / found.terms.curvature), elsewhere.T))
    scores = process_of(found, points, Parameters(lengths, likelihood)).scores(X)
    np.testing.assert_allclose(scores, likelihood.scores(elsewhere @ np.linalg.solve(K, found.f), variances), atol=2e-5)


@pytest.mark.parametrize("has_own_lengths", [True, False])
@pytest.mark.parametrize("n_points", [10, 40])
@pytest.mark.parametrize("noise", [0.05, 1.0])
def test_gradient_of_the_evidence(has_own_lengths, n_points, noise):
    rows = made_rows()
    chart = Chart.of(rows, has_own_lengths)
    vector = chart.start(np.random.default_rng(3))
    vector[chart.n_lengths] = np.log(noise)
    evidence = Evidence(rows, chart, rows.X[:n_points])
    _, gradient = evidence(vector)
    step = 1e-4
    moved = [(evidence(vector + step * one)[0] - evidence(vector - step * one)[0]) / (2 * step) for one in np.eye(len(vector))]
    np.testing.assert_allclose(gradient, moved, atol=2e-5 * np.abs(gradient).max())


@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.parametrize("noise", [0.7, 3.0])
def test_tiny_problems_by_direct_integration(n_rows, noise):
    """The mode is that of the posterior density, and Laplace's evidence and predictions are near those by integration."""
    X = np.array([[0.0], [0.7], [2.0]])[:n_rows]
    rows = Rows(X, np.array([0, 2, 1])[:n_rows].astype(np.intp), np.ones(n_rows), 3)
    lengths, likelihood = np.array([1.0]), Likelihood(noise, np.array([-0.5, 0.6]))
    K = dense_kernel(X, X, lengths)
    found = Mode.find(Covariance.of(X, X, lengths), likelihood, rows, np.zeros(n_rows))
    inverse = np.linalg.inv(K)
    best = minimize(lambda f: 0.5 * f @ inverse @ f - log_likelihood(likelihood, f, rows), np.zeros(n_rows), tol=1e-12)
    np.testing.assert_allclose(found.f, best.x, atol=1e-5)
    # A Gauss-Hermite product rule, after the Cholesky factor has made the prior round.
    nodes, shares = np.polynomial.hermite_e.hermegauss(40)
    grid = np.stack(np.meshgrid(*[nodes] * n_rows, indexing="ij"), axis=-1).reshape(-1, n_rows)
    weights = np.prod(np.stack(np.meshgrid(*[shares] * n_rows, indexing="ij"), axis=-1).reshape(-1, n_rows), axis=1)
    weights = weights / np.sqrt(2 * np.pi) ** n_rows
    values = grid @ np.linalg.cholesky(K).T
    density = weights * np.exp(log_likelihood(likelihood, values, rows))
    assert found.log_evidence == pytest.approx(np.log(density.sum()), abs=0.02 if noise > 1 else 0.1)
    new = np.array([[1.0]])
    across = dense_kernel(new, X, lengths)
    means = values @ np.linalg.solve(K, across.T).ravel()
    variance = 1 - float((across @ inverse @ across.T)[0, 0])
    exact = density @ Probit.probabilities(likelihood.scores(means, np.full(len(means), variance))) / density.sum()
    scores = process_of(found, X, Parameters(lengths, likelihood)).scores(new)
    np.testing.assert_allclose(Probit.probabilities(scores)[0], exact, atol=0.003 if noise > 1 else 0.02)


def test_exact_evidence_of_one_row():
    likelihood, rows = Likelihood(0.7, np.array([-0.5, 0.6])), Rows(np.zeros((1, 1)), np.array([1]), np.ones(1), 3)
    exact, _ = quad(lambda f: norm.pdf(f) * np.exp(log_likelihood(likelihood, np.array([f]), rows)), -8, 8)
    assert exact == pytest.approx(Probit.probabilities(likelihood.scores(np.zeros(1), np.ones(1)))[0, 1])


def test_left_out_is_near_fits_without_the_row():
    rows, lengths, likelihood = made_rows(25), np.array([0.9, 1.4]), Likelihood(0.5, np.array([-0.7, 0.1, 0.9]))

    def mode(rows):
        return Mode.find(Covariance.of(rows.X, rows.X, lengths), likelihood, rows, np.zeros(len(rows)))

    scores = likelihood.scores(*mode(rows).left_out())
    for i in range(len(rows)):
        others = rows.take(np.delete(np.arange(len(rows)), i))
        without = process_of(mode(others), others.X, Parameters(lengths, likelihood)).scores(rows.X[[i]])
        np.testing.assert_allclose(Probit.probabilities(scores[[i]]), Probit.probabilities(without), atol=0.05)


def test_learns_which_column_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    ranks = np.digitize(np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=150), [-0.5, 0.5])
    rows, _ = Rows.of(X, ranks, np.ones(150), 3)
    options = {"has_own_lengths": True, "n_restarts": 1, "max_iter": 100, "seed": 0, "n_threads": 1}
    found = learn(rows, 150, **options)
    lengths = found.process.lengths
    assert found.has_converged
    assert lengths[1] < 0.2 * min(lengths[0], lengths[2])
    few = learn(rows, 60, **options)
    assert few.process.points.shape == (60, 3)
    assert found.log_evidence - 8 < few.log_evidence < found.log_evidence + 8
    assert np.mean(np.sum(few.held_out > 0, axis=1) == rows.ranks) > 0.8


def test_equal_rows_are_one_with_their_weight():
    X, ranks = np.array([[1.0], [2.0], [1.0], [1.0]]), np.array([0, 1, 0, 1])
    rows, place = Rows.of(X, ranks, np.array([1.0, 2.0, 3.0, 4.0]), 2)
    assert sorted(zip(rows.X.ravel(), rows.ranks, rows.weights, strict=True)) == [(1, 0, 4), (1, 1, 4), (2, 1, 2)]
    np.testing.assert_array_equal(rows.X[place], X)
    np.testing.assert_array_equal(rows.ranks[place], ranks)


def test_points_are_distinct_rows():
    X = np.repeat(np.arange(5.0), 4)[:, None]
    chosen = spread_points(X, 10, np.random.default_rng(0))
    assert sorted(X[chosen].ravel()) == [0, 1, 2, 3, 4]


def test_prior_of_likelihood_integrates():
    """Averaged over the prior of the latent value, probabilities are those with both variances added."""
    likelihood = Likelihood(0.6, np.array([-0.4, 0.3]))
    draws = multivariate_normal(0, 1).rvs(200_000, random_state=0)
    mean = Probit.probabilities(likelihood.scores(draws, np.zeros(len(draws)))).mean(axis=0)
    np.testing.assert_allclose(mean, Probit.probabilities(likelihood.scores(np.zeros(1), np.ones(1)))[0], atol=4e-3)


def test_memory_is_linear_in_rows():
    """A matrix of all pairs of rows would take 72 MB."""
    rng = np.random.default_rng(0)
    rows, _ = Rows.of(rng.normal(size=(3000, 2)), rng.integers(0, 3, 3000), np.ones(3000), 3)
    tracemalloc.start()
    try:
        learn(rows, 15, has_own_lengths=True, n_restarts=0, max_iter=2, seed=0, n_threads=1)
        assert tracemalloc.get_traced_memory()[1] < 15e6
    finally:
        tracemalloc.stop()
