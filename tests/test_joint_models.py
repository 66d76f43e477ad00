"""The models whose planes, thresholds or duals depend on each other, against an independent convex solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from conftest import make_curved, make_ranked
from rankplane import KDLOR, SVOR, SVOREX, AdversarialOrdinal, CrammerSinger, CSearchCV
from rankplane.base import Trainer
from rankplane.solver import tables
from rankplane.solver.folds import make_folds
from reference import loss

TIGHT = {"tol": 1e-8, "max_iter": 2_000_000}


def least(n_free, n_slacks, penalised, C, rows, margins, order=None):
    """Minimise half the squares of the penalised variables plus C times the slacks, by sequential quadratic programming.

    Row i of ``rows``, (constraint, variable), times the variables plus its slack is at least its margin; margins come with the
    number of the slack.
    """
    A = np.zeros((len(rows), n_free + n_slacks))
    A[:, :n_free] = rows
    A[np.arange(len(rows)), n_free + np.array([slack for _, slack in margins])] = 1.0
    at_least = np.array([margin for margin, _ in margins])
    if order is not None:
        A, at_least = np.vstack([A, np.pad(order, ((0, 0), (0, n_slacks)))]), np.append(at_least, np.zeros(len(order)))
    squares = np.append(np.asarray(penalised, dtype=float), np.zeros(n_slacks))
    costs = np.append(np.zeros(n_free), np.full(n_slacks, C))
    solved = minimize(
        lambda v: 0.5 * v @ (squares * v) + costs @ v,
        np.append(np.zeros(n_free), np.full(n_slacks, 10.0)),
        jac=lambda v: squares * v + costs,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: A @ v - at_least, "jac": lambda v: A},
        bounds=[(None, None)] * n_free + [(0, None)] * n_slacks,
        options={"maxiter": 2000, "ftol": 1e-13},
    )
    return solved.fun, solved.x[:n_free]


def unit(n, k):
    return np.eye(n)[k]


def least_of_planes(X, ranks, C, n_ranks, pairs):
    """``pairs(true)`` lists shares of the scores and what is added; the loss is the largest of them minus the true score."""
    with_one = np.column_stack([X, np.ones(len(X))])
    rows, margins = [], []
    for i, x in enumerate(with_one):
        for shares, lead in pairs(ranks[i]):
            rows.append(np.outer(unit(n_ranks, ranks[i]) - shares, x).ravel())
            margins.append((lead, i))
    return least(n_ranks * with_one.shape[1], len(X), np.ones(n_ranks * with_one.shape[1]), C, np.array(rows), margins)


def small_problem(n_ranks=3):
    X, y = make_ranked(n_rows=18, n_columns=2, n_ranks=n_ranks, density=1.0, seed=3)
    return X.toarray(), y


@pytest.mark.parametrize("C", [0.3, 3.0])
@pytest.mark.parametrize("model", [CrammerSinger, AdversarialOrdinal])
def test_joined_planes_against_a_convex_solver(model, C):
    X, y = small_problem()
    if model is CrammerSinger:
        optimum, v = least_of_planes(X, y - 1, C, 3, lambda true: [(unit(3, k), float(k != true)) for k in range(3)])
    else:
        every = [(0.5 * (unit(3, j) + unit(3, k)), 0.5 * (j - k)) for j in range(3) for k in range(3)]
        optimum, v = least_of_planes(X, y - 1, C, 3, lambda true: every)
    ours = model(C=C, **TIGHT).fit(X, y)
    assert -ours.dual_objective_.sum() == pytest.approx(optimum, rel=1e-6)
    np.testing.assert_allclose(np.column_stack([ours.coef_, ours.intercept_]), v.reshape(3, 3), atol=2e-3)
    assert 0 <= ours.duality_gap_.sum() <= 1e-6 * optimum


@pytest.mark.parametrize("C", [0.3, 3.0])
def test_adversarial_thresholds_against_a_convex_solver(C):
    """The loss in its general form, with all pairs of ranks, on scores whose differences are those of the boundaries."""
    X, y = small_problem()
    rows, margins = [], []
    for i, x in enumerate(X):
        # The score of rank k is the sum of the k boundary scores below it.
        score = np.array([np.concatenate([k * x, (np.arange(2) < k).astype(float)]) for k in range(3)])
        for j in range(3):
            for k in range(3):
                rows.append(score[y[i] - 1] - 0.5 * (score[j] + score[k]))
                margins.append((0.5 * (j - k), i))
    optimum, v = least(4, len(X), np.ones(4), C, np.array(rows), margins)
    ours = AdversarialOrdinal(C=C, form="thresholds", **TIGHT).fit(X, y)
    assert -ours.dual_objective_[0] == pytest.approx(optimum, rel=1e-6)
    np.testing.assert_allclose(np.append(ours.coef_[0], ours.intercept_), v, atol=2e-3)


def least_of_ordered_thresholds(X, ranks, C):
    n_columns, n_cuts = X.shape[1], int(ranks.max())
    rows, margins = [], []
    for x, rank in zip(X, ranks, strict=True):
        for cut, side in ((rank - 1, 1.0), (rank, -1.0)):
            if 0 <= cut < n_cuts:
                rows.append(side * np.concatenate([x, unit(n_cuts, cut)]))
                margins.append((1.0, len(margins)))
    order = np.array([np.concatenate([np.zeros(n_columns), unit(n_cuts, k) - unit(n_cuts, k + 1)]) for k in range(n_cuts - 1)])
    penalised = np.append(np.ones(n_columns), np.zeros(n_cuts))
    return least(n_columns + n_cuts, len(margins), penalised, C, np.array(rows), margins, order)


def cost_of_neighbours(w, b, X, ranks, C):
    z = X @ w[:, None] + b
    rows = np.arange(len(X))
    below, above = np.column_stack([np.full(len(X), np.inf), z]), np.column_stack([z, np.full(len(X), -np.inf)])
    return 0.5 * w @ w + C * np.sum(np.maximum(0, 1 - below[rows, ranks]) + np.maximum(0, 1 + above[rows, ranks]))


def out_of_order():
    """Few rows of the ranks in the middle, each near the far end: the first threshold wants to be above the last."""
    rng = np.random.default_rng(0)
    centres, sizes = np.array([0.0, 0.9, 0.1, 1.0]), [9, 3, 3, 9]
    X = np.column_stack([np.repeat(centres, sizes) + 0.3 * rng.standard_normal(24), 0.1 * rng.standard_normal(24)])
    return 2 * X, np.repeat([1, 2, 3, 4], sizes)


@pytest.mark.parametrize("C", [0.3, 2.0])
@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("is_active", [True, False])
def test_explicit_constraints_against_a_convex_solver(C, kernel, is_active):
    X, y = out_of_order() if is_active else small_problem(4)
    optimum, v = least_of_ordered_thresholds(X, y - 1, C)
    ours = SVOREX(C=C, kernel=kernel, **TIGHT).fit(X if kernel == "linear" else X @ X.T, y)
    w = ours.coef_[0] if kernel == "linear" else ours.dual_coef_[0] @ X[ours.support_]
    reached = cost_of_neighbours(w, ours.intercept_, X, y - 1, C)
    assert np.all(np.diff(ours.intercept_) <= 0)
    assert -ours.dual_objective_[0] == pytest.approx(reached, rel=1e-5), "the gap is closed"
    assert 0 <= ours.duality_gap_[0] <= 1e-5 * optimum
    assert reached <= cost_of_neighbours(v[:2], v[2:], X, y - 1, C) * (1 + 1e-6), "no worse than what the other solver finds"
    assert reached == pytest.approx(optimum, rel=1e-3)
    if is_active:
        assert np.any(np.diff(ours.intercept_) == 0)


def test_constraints_are_needed():
    """Without them, the thresholds of the data above are not in order."""

    class Unordered(SVOREX):
        def _solver_options(self, n_ranks):
            return {}

    free, ordered = (model(**TIGHT).fit(*out_of_order()) for model in (Unordered, SVOREX))
    assert np.any(np.diff(free.intercept_) > 0.1)
    assert -ordered.dual_objective_[0] > -free.dual_objective_[0] + 1e-3


def test_two_ranks_need_no_order():
    X, y = make_ranked(n_ranks=2, seed=10)
    np.testing.assert_allclose(SVOREX(**TIGHT).fit(X, y).coef_, SVOR(**TIGHT).fit(X, y).coef_, atol=1e-5)


def direct_kdlor(X, ranks, C, weights=None):
    """Direction and boundaries by inverting a matrix and a general solver."""
    weights = np.ones(len(X)) if weights is None else weights
    means = np.array([np.average(X[ranks == k], axis=0, weights=weights[ranks == k]) for k in range(ranks.max() + 1)])
    from_mean = X - means[ranks]
    A = np.eye(X.shape[1]) + C * (from_mean.T * weights) @ from_mean
    steps = np.diff(means, axis=0)
    G = steps @ np.linalg.solve(A, steps.T)
    n = len(G)
    start = np.full(n, 1 / n)
    scale = np.trace(G)
    solved = minimize(
        lambda a: 0.5 * a @ G @ a / scale,
        start,
        jac=lambda a: G @ a / scale,
        method="SLSQP",
        bounds=[(0, None)] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(n)},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    w = np.linalg.solve(A, steps.T @ solved.x)
    return w, -0.5 * (means[:-1] + means[1:]) @ w, 0.5 * solved.x @ G @ solved.x


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_kdlor_is_what_a_direct_solution_finds(C, is_weighted):
    X, y = make_ranked(n_rows=60, n_columns=6, density=0.6, seed=5)
    weights = np.random.default_rng(0).integers(0, 3, 60).astype(float) if is_weighted else np.ones(60)
    w, b, value = direct_kdlor(X.toarray()[weights > 0], y[weights > 0] - 1, C, weights[weights > 0])
    ours = KDLOR(C=C, tol=1e-6).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_[0], w, atol=1e-4 * np.abs(w).max())
    np.testing.assert_allclose(ours.intercept_, b, atol=1e-4 * np.abs(b).max())
    assert -ours.dual_objective_[0] == pytest.approx(value, rel=1e-6)
    dense = KDLOR(C=C, tol=1e-6, kernel="precomputed").fit((X @ X.T).toarray(), y, sample_weight=weights)
    np.testing.assert_allclose(dense.plane_scores((X @ X.T).toarray()), ours.plane_scores(X), atol=1e-4 * np.abs(w).max())


def test_kdlor_is_that_of_skordinal():
    """Its ridge is on coefficients of rows, which is that on weights where columns are orthonormal."""
    skordinal = pytest.importorskip("skordinal.classifiers", reason="needs skordinal")
    X, y = make_ranked(n_rows=60, n_columns=5, density=1.0, seed=5)
    X, ridge = np.linalg.qr(X.toarray())[0], 0.05
    theirs = skordinal.KDLOR(kernel="linear", u=ridge, tol=1e-14, max_iter=1000).fit(X, y)
    means = np.array([X[y == rank].mean(axis=0) for rank in range(1, 5)])
    ours = KDLOR(C=len(X) / (ridge * np.sum(np.square(X - means[y - 1]))), tol=1e-7).fit(X, y)
    direction, length = X.T @ theirs.dual_coef_, np.linalg.norm(ours.coef_)
    np.testing.assert_allclose(ours.coef_[0] / length, direction / np.linalg.norm(direction), atol=1e-9)
    np.testing.assert_allclose(-ours.intercept_ / length, theirs.thresholds_ / np.linalg.norm(direction), atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_kdlor_with_a_kernel_and_a_small_cache():
    X, y = make_curved(n_rows=150)
    whole, limited = (KDLOR(C=10, kernel="rbf", gamma=1.0, tol=1e-6, cache_size=size).fit(X, y) for size in (200, 0.01))
    np.testing.assert_allclose(whole.plane_scores(X), limited.plane_scores(X), atol=1e-8)
    assert np.mean(whole.predict(X) == y) > 0.7 > np.mean(KDLOR().fit(X, y).predict(X) == y)


def test_thresholds_of_a_search_are_those_of_fits():
    """Calibrators learn from scores of the folds; with all duals at their bounds, thresholds move far without a violation."""
    X, y = make_ranked(n_rows=3000, n_columns=2000, n_ranks=5, density=0.02, seed=4)
    X = X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))).tocsr()
    kept = np.sort(np.concatenate([np.flatnonzero(y == rank)[:n] for rank, n in enumerate((520, 400, 480, 530, 570), 1)]))
    X, y = X[kept], y[kept]
    trainer = Trainer(SVOREX(C=0.03), X, y, None)
    folds = make_folds(5, X, trainer.rows.labels.numbers, None, 0)
    lanes = trainer.rows.folds(trainer.table(), folds, trainer.rows.options.for_folds(), scales_C=True)
    lanes.run(trainer.table())
    trainer.solve()
    spread = (X @ trainer.model.coef_[0]).std()
    assert np.all(np.abs(lanes.lanes.solver.offsets().T - trainer.model.intercept_) < 2 * spread)


@pytest.mark.parametrize("C", [1.0, 32.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_kdlor_of_more_rows_than_columns_and_rare_ranks(C, kernel):
    """Unfinished products of means have large negative eigenvalues here, and steps beyond the rounding errors lead away."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 10)) @ rng.normal(size=(10, 10))
    X /= X.std(axis=0)
    y = np.searchsorted(np.quantile(z := X @ rng.normal(size=10) + rng.normal(size=900), [0.01, 0.05, 0.5, 0.9, 0.99]), z)
    fitted = KDLOR(C=C, kernel=kernel, tol=1e-4).fit(X, y)
    assert fitted.n_iter_[0] < 1000
    assert fitted.duality_gap_[0] <= 1e-8 * abs(fitted.dual_objective_[0])
    if kernel == "linear":
        numbers = np.unique(y, return_inverse=True)[1]
        w, _, value = direct_kdlor(X, numbers, C)
        np.testing.assert_allclose(fitted.coef_[0], w, atol=1e-3 * np.abs(w).max())
        assert -fitted.dual_objective_[0] == pytest.approx(value, rel=1e-6)


def test_kdlor_where_ranks_are_missing():
    X, y = make_ranked(n_rows=80, seed=2)
    fitted = KDLOR(ranks=[0, 1, 2, 2.5, 3, 4, 5]).fit(X, y)
    assert fitted.intercept_.shape == (6,)
    assert np.all(np.diff(fitted.intercept_) <= 0)
    assert set(fitted.predict(X)) <= {1.0, 2.0, 3.0, 4.0}
    plain = KDLOR().fit(X, y)
    np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))


def test_adversarial_planes_predict_the_largest_score():
    X, y = make_ranked(n_rows=400, seed=8)
    planes, thresholds = (AdversarialOrdinal(C=10, form=form).fit(X[:300], y[:300]) for form in ("planes", "thresholds"))
    np.testing.assert_array_equal(planes.predict(X), planes.classes_[np.argmax(planes.plane_scores(X), axis=1)])
    errors = [np.mean(np.abs(fitted.predict(X[300:]) - y[300:])) for fitted in (planes, thresholds)]
    assert errors[0] < 1.3 * errors[1]
    assert errors[0] < 0.4


@pytest.mark.parametrize("C", [0.3, 2.0])
@pytest.mark.parametrize("true", range(4))
def test_adversarial_tables_are_the_loss(C, true):
    rng = np.random.default_rng(true)
    for _ in range(20):
        z = -np.sort(-rng.normal(scale=2, size=3))
        f = np.append(0, np.cumsum(z))
        ranks = np.arange(4)
        expected = C * (0.5 * np.max(f + ranks) + 0.5 * np.max(f - ranks) - f[true])
        table = tables.adversarial_thresholds(4, C)
        found = sum(loss(z[cut], table[half * 4 + true, cut, 0]) for half in range(2) for cut in range(3))
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("model", [CrammerSinger(), AdversarialOrdinal()], ids=["CrammerSinger", "AdversarialOrdinal"])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000))
def test_order_of_rows_and_doubled_rows(model, seed):
    rng = np.random.default_rng(seed)
    X, y = make_ranked(n_rows=30, n_columns=5, seed=seed)
    if len(np.unique(y)) < 4:
        return
    fit = type(model)(C=1.0, **TIGHT).fit
    ours = fit(X, y).coef_
    order = rng.permutation(30)
    np.testing.assert_allclose(fit(X[order], y[order]).coef_, ours, atol=1e-4)
    doubled = type(model)(C=0.5, **TIGHT).fit(sp.vstack([X, X]).tocsr(), np.tile(y, 2)).coef_
    np.testing.assert_allclose(doubled, ours, atol=1e-4)
    np.testing.assert_allclose(ours.sum(axis=0), 0, atol=1e-9)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("model", [SVOREX, KDLOR, CrammerSinger, AdversarialOrdinal])
def test_folds_are_fits_of_their_own(model, n_threads):
    """A path over C on all folds at once gives the scores of single fits."""
    X, y = make_ranked(n_rows=90, n_columns=12, seed=1)
    search = CSearchCV(model(tol=1e-5, max_iter=20_000, n_jobs=n_threads), Cs=[0.1, 1.0, 4.0], cv=3, patience=None).fit(X, y)
    from rankplane.solver.folds import make_folds

    folds = make_folds(3, X, (y - 1).astype(np.int32), None, 0)
    for k, C in enumerate([0.1, 1.0, 4.0]):
        for fold, test in enumerate(folds.test):
            alone = model(C=C, tol=1e-5, max_iter=20_000).fit(X[folds.is_train[fold]], y[folds.is_train[fold]])
            error = np.mean(np.abs(alone.predict(X[test]) - y[test]))
            assert search.cv_results_[f"split{fold}_test_score"][k] == pytest.approx(error, abs=2.1 / len(test))


def test_too_many_ranks_and_kernels_are_refused():
    X, y = make_ranked(n_rows=200, n_columns=20, n_ranks=40, seed=9)
    with pytest.raises(ValueError, match=r"^y must have at most 32 ranks for CrammerSinger\. Got 40\.$"):
        CrammerSinger().fit(X, y)
    assert len(AdversarialOrdinal(form="thresholds").fit(X, y).intercept_) == 39
    for name in ("loss", "kernel", "shrinking"):
        assert name not in CrammerSinger().get_params()
    assert "loss" not in KDLOR().get_params()
    with pytest.raises(ValueError, match=r"^form must be"):
        AdversarialOrdinal(form="both").fit(X, y)
