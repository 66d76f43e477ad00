"""Probabilities, decisions and rank sets."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks.calibrators.cumulative import Cumulative
from conftest import make_ranked
from rankplane import NPSVOR
from rankplane.prediction import calibration, decisions
from rankplane.prediction.calibration import Curved, LogisticProblem, Multinomial
from rankplane.solver.blas import one_thread

masses = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(2, 6)), elements=st.floats(0.01, 1)).map(
    lambda p: p / p.sum(axis=1, keepdims=True)
)


def held_out(n_rows=3000, n_ranks=5, seed=0):
    rng = np.random.default_rng(seed)
    ranks = rng.integers(0, n_ranks, n_rows).astype(np.int32)
    return (ranks[:, None] - np.arange(n_ranks)) * 0.5 + rng.standard_normal((n_rows, n_ranks)), ranks


def test_rows_far_from_all_others_have_probabilities_too():
    X, y = make_ranked(n_rows=200)
    model = NPSVOR(probability=True, decision="mae").fit(X, y)
    far = 1e200 * np.ones((2, X.shape[1])) * [[1], [-1]]
    shares = model.predict_proba(far)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_a_row_of_weight_zero_is_as_good_as_absent():
    X, y = make_ranked(n_rows=400)
    weights = np.where(y == y.max(), 0.0, 1.0)
    model = NPSVOR(probability=True, tol=1e-3).fit(X, y, sample_weight=weights)
    assert np.all(model.predict_proba(X)[:, -1] == 0), "nothing was ever seen of the highest rank"
    assert len(model.conformity_) == np.sum(weights > 0)


def test_weights_count_as_copies_do():
    scores, ranks = held_out(2400)
    weights = np.where(ranks == 2, 1, 3)
    parts = [slice(0, 1200), slice(1200, 2400)]
    of_parts = [scores[part] for part in parts], [ranks[part] for part in parts]
    copied = [[np.repeat(v, weights[part], axis=0) for v, part in zip(of, parts, strict=True)] for of in of_parts]
    found = Multinomial.fit_leaving_out(*of_parts, 5, [weights[part].astype(float) for part in parts])
    expected = Multinomial.fit_leaving_out(*copied, 5)
    # Near, not equal: the pull to zero is per row, and copies are more rows.
    for ours, theirs in zip([found[0], *found[1]], [expected[0], *expected[1]], strict=True):
        np.testing.assert_allclose(ours.probabilities(scores), theirs.probabilities(scores), atol=0.015)
    plain, _ = Multinomial.fit_leaving_out(*of_parts, 5)
    assert np.max(np.abs(plain.probabilities(scores) - found[0].probabilities(scores))) > 0.2


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_calibrators_keep_to_one_thread_of_the_linear_algebra(monkeypatch):
    seen = []

    def watched(work):
        def working(*arguments, **options):
            seen.append(blas_threads())
            return work(*arguments, **options)

        return working

    for name in ("probabilities", "objective", "gradient", "curvature"):
        monkeypatch.setattr(LogisticProblem, name, watched(getattr(LogisticProblem, name)))
    monkeypatch.setattr(calibration, "softmax", watched(calibration.softmax))
    scores, ranks = held_out(500)
    with threadpool_limits(2, user_api="blas"):
        Curved.fit_leaving_out([scores[:250], scores[250:]], [ranks[:250], ranks[250:]], 5)
        Curved.fit(scores, ranks, 5).probabilities(scores)
        assert blas_threads() == {2}, "as before"
    assert len(seen) > 10
    assert set.union(*seen) == {1}


def test_one_thread_lasts_until_the_last_user_leaves_whichever_thread_that_is():
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as another:
        first, second = one_thread(), one_thread()
        first.__enter__()
        another.submit(second.__enter__).result()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        another.submit(second.__exit__, None, None, None).result()
        assert blas_threads() == {2}


def test_fits_at_the_same_time_give_the_same_bits():
    X, y = make_ranked(n_rows=1500, n_ranks=8)

    def fitted(_):
        model = NPSVOR(probability=True, n_jobs=2).fit(X, y)
        return model.calibrator_.weights.tobytes() + model.conformity_.tobytes() + model.predict_proba(X).tobytes()

    alone = fitted(None)
    with ThreadPoolExecutor(3) as pool:
        assert set(pool.map(fitted, range(12))) == {alone}


@pytest.mark.parametrize("n_ranks", [11, 40, 200])
def test_many_ranks_take_few_inputs_and_know_their_neighbours(n_ranks):
    rng = np.random.default_rng(0)
    place = rng.random(3000)
    ranks = np.clip(place * n_ranks, 0, n_ranks - 1).astype(np.int32)
    seen = place + 0.05 * rng.standard_normal(3000)
    scores = (seen[:, None] - (np.arange(n_ranks) + 0.5) / n_ranks) * 8
    calibrator = Curved.fit(scores[:2000], ranks[:2000], n_ranks)
    assert calibrator.weights.shape[0] <= 2 * calibration.MANY + 1
    probabilities = calibrator.probabilities(scores[2000:])
    loss = -np.log(probabilities[np.arange(1000), ranks[2000:]]).mean()
    # What is seen is off by 0.05: no calibrator can do better than the entropy of that, and 60 rows a rank do not tell more.
    assert loss < np.log(0.05 * n_ranks * np.sqrt(2 * np.pi * np.e)) + (0.1 if n_ranks < 100 else 0.2)
    medians = np.argmax(np.cumsum(probabilities, axis=1) >= 0.5, axis=1)
    assert np.abs(medians - ranks[2000:]).mean() < 0.05 * n_ranks


def test_up_to_ten_ranks_nothing_is_averaged():
    scores, ranks = held_out(n_ranks=10)
    assert Curved.fit(scores, ranks, 10).weights.shape == (21, 10)


def test_planes_of_a_committee_are_averaged_kind_by_kind():
    scores = np.concatenate([np.zeros((2, 23)), np.ones((2, 23))], axis=1)
    means = calibration.averaged(scores, 23)
    assert means.shape == (2, 2 * 8)
    np.testing.assert_array_equal(means, np.repeat([[0.0, 1.0]], 8, axis=1).repeat(2, axis=0))


def test_weights_for_every_plane_of_many_ranks_are_understood():
    """As older versions wrote them."""
    rng = np.random.default_rng(0)
    scores, weights = rng.standard_normal((5, 14)), rng.standard_normal((29, 14))
    z = np.column_stack([scores, np.sqrt(1 + scores**2) - 1]) @ weights[:-1] + weights[-1]
    np.testing.assert_allclose(Curved(weights).probabilities(scores), softmax(z, axis=1))


@given(arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(2, 6)), elements=st.floats(-1e9, 1e9)))
def test_softmax_is_that_of_scipy(scores):
    scores[:, 1:2] = -np.inf  # as ranks have that no row was of
    np.testing.assert_array_equal(calibration.softmax(scores), softmax(scores, axis=1))


def test_waves_are_orthonormal_and_sum_to_zero():
    for n_ranks in (2, 3, 10, 57):
        basis = calibration.cosines(n_ranks)
        np.testing.assert_allclose(basis.T @ basis, np.eye(n_ranks - 1), atol=1e-12)
        np.testing.assert_allclose(basis.sum(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize("n_ranks", [4, 30])
def test_curvature_is_the_slope_of_the_gradient(n_ranks):
    scores, ranks = held_out(400, n_ranks)
    weights = np.random.default_rng(1).uniform(0.5, 2, 400)
    problem = Curved.problem(scores, ranks, n_ranks, weights)
    nothing = np.zeros((problem.F.shape[1], problem.cosines.shape[1]))
    T = problem.take_step(nothing, 0.05 * np.cos(np.arange(len(problem.as_vector(nothing)))))
    hessian = problem.curvature(T)

    def slope(T):
        return problem.as_vector(problem.gradient(problem.objective(T)[1]) + problem.penalty_gradient(T))

    for number in np.linspace(0, len(hessian) - 1, 12).astype(int):
        step = np.zeros(len(hessian))
        step[number] = 1e-5
        found = (slope(problem.take_step(T, step)) - slope(problem.take_step(T, -step))) / 2e-5
        np.testing.assert_allclose(hessian[number], found, atol=1e-3 * np.abs(hessian).max())


@pytest.mark.parametrize("n_rows", [400, 20_000])
def test_multinomial_is_logistic_regression(n_rows):
    scores, ranks = held_out(n_rows)
    penalty = max(1.0, 1e-3 * n_rows / 6)
    scale = scores.std(axis=0)
    theirs = LogisticRegression(C=1 / penalty, tol=1e-8, max_iter=10_000).fit(scores / scale, ranks)
    expected = theirs.predict_proba(scores / scale)
    np.testing.assert_allclose(Multinomial.fit(scores, ranks, 5).probabilities(scores), expected, atol=2e-3)


@pytest.mark.parametrize("calibrator_class", [Multinomial, Curved])
def test_leaving_out_is_fitting_the_others(calibrator_class):
    parts = [held_out(800, seed=s) for s in range(4)]
    scores, ranks = [s for s, _ in parts], [r for _, r in parts]
    _, left_out = calibrator_class.fit_leaving_out(scores, ranks, 5)
    for i, calibrator in enumerate(left_out):
        others = [k for k in range(4) if k != i]
        fitted = calibrator_class.fit(np.concatenate([scores[k] for k in others]), np.concatenate([ranks[k] for k in others]), 5)
        np.testing.assert_allclose(calibrator.probabilities(scores[i]), fitted.probabilities(scores[i]), atol=0.02)


def test_curved_sees_a_rank_between_two_others():
    """One score, low and high ranks on its two sides of the middle one: only a curve can make the middle rank likely."""
    rng = np.random.default_rng(0)
    score = rng.standard_normal((4000, 1)) * 2
    odds_of_middle = 1 / (1 + np.exp(2 * score[:, 0] ** 2 - 2))
    ranks = np.where(rng.random(4000) < odds_of_middle, 1, np.where(rng.random(4000) < 0.5, 0, 2)).astype(np.int32)

    def log_loss(calibrator):
        return -np.mean(np.log(calibrator.fit(score, ranks, 3).probabilities(score)[np.arange(4000), ranks]))

    assert log_loss(Curved) < log_loss(Multinomial) - 0.1
    far = Curved.fit(score, ranks, 3).probabilities(np.array([[-1e6], [1e6]]))
    np.testing.assert_allclose(far.sum(axis=1), 1)


@pytest.mark.parametrize("n_rows", [60, 200])
def test_few_rows_promise_little(n_rows):
    """On few rows the curved calibrator is no worse on new rows than guessing by frequencies, and hardly worse than straight."""
    scores, ranks = held_out(20_000, seed=1)
    new = np.arange(n_rows, 20_000)

    def log_loss(calibrator):
        fitted = calibrator.fit(scores[:n_rows], ranks[:n_rows], 5)
        return -np.mean(np.log(fitted.probabilities(scores[new])[np.arange(len(new)), ranks[new]]))

    assert log_loss(Curved) < np.log(5)
    assert log_loss(Curved) < log_loss(Multinomial) + 0.02


def test_separable_scores_are_no_trouble():
    ranks = np.repeat(np.arange(3, dtype=np.int32), 50)
    scores = np.eye(3)[ranks] * 10
    probabilities = Multinomial.fit(scores, ranks, 3).probabilities(scores)
    assert np.all(probabilities[np.arange(150), ranks] > 0.9)


def test_cumulative_is_monotone_and_sums_to_one():
    scores, ranks = held_out()
    boundaries = scores[:, :-1] + scores[:, 1:]
    probabilities = Cumulative.fit(boundaries, ranks, 5).probabilities(boundaries)
    assert np.all(probabilities >= 0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert np.mean(np.argmax(probabilities, axis=1) == ranks) > 0.4


def test_probabilities_of_every_model(model):
    X, y = make_ranked(n_rows=2000, seed=1)
    fitted = model(probability=True, ranks=[0, 1, 2, 3, 4]).fit(X, y)
    probabilities = fitted.predict_proba(X)
    assert probabilities.shape == (2000, 5)
    assert np.all(probabilities >= 0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert np.all(probabilities[:, 0] == 0)  # never seen
    # Better than guessing by the frequencies, whose mean log is -log 4.
    assert np.mean(np.log(probabilities[np.arange(2000), y])) > -np.log(4) + 0.1


def test_the_planes_are_those_of_a_plain_fit(model, ranked):
    X, y = ranked
    plain, calibrated = model().fit(X, y), model(probability=True).fit(X, y)
    np.testing.assert_allclose(calibrated.coef_, plain.coef_, atol=1e-9)
    np.testing.assert_allclose(calibrated.duality_gap_, plain.duality_gap_, rtol=1e-6)
    np.testing.assert_array_equal(calibrated.predict(X), plain.predict(X))


def test_named_decisions_are_mode_median_and_mean():
    p = np.array([[0.4, 0.0, 0.25, 0.35], [0.1, 0.2, 0.3, 0.4]])
    assert decisions.least_cost(p, decisions.cost_matrix("accuracy", 4)).tolist() == [0, 3]
    assert decisions.least_cost(p, decisions.cost_matrix("mae", 4)).tolist() == [2, 2]
    assert decisions.least_cost(p, decisions.cost_matrix("mse", 4)).tolist() == [2, 2]
    never_low = np.array([[0, 0, 0, 0], [9, 0, 1, 1], [9, 1, 0, 1], [9, 1, 1, 0]])
    assert decisions.least_cost(p, decisions.cost_matrix(never_low, 4)).tolist() == [3, 3]


@given(masses)
def test_decisions_minimise_what_they_name(p):
    n_ranks = p.shape[1]
    means = p @ np.arange(n_ranks)
    answered = decisions.least_cost(p, decisions.cost_matrix("mse", n_ranks))
    assert np.all(np.abs(answered - means) <= 0.5 + 1e-9)
    medians = decisions.least_cost(p, decisions.cost_matrix("mae", n_ranks))
    below, upto = (np.array([row[: k + i].sum() for row, k in zip(p, medians, strict=True)]) for i in (0, 1))
    assert np.all(below <= 0.5 + 1e-9)
    assert np.all(upto >= 0.5 - 1e-9)


def test_decision_changes_predict(model):
    X, y = make_ranked(n_rows=1500, seed=2)
    fitted = model(probability=True, decision="mae").fit(X, y)
    expected = 1 + np.argmax(np.cumsum(fitted.predict_proba(X), axis=1) >= 0.5 - 1e-12, axis=1)
    np.testing.assert_array_equal(fitted.predict(X), expected)
    always_top = model(probability=True, decision=np.ones((4, 4)) - np.eye(4)[:, [3]] * 0 - np.array([0, 0, 0, 1.0])).fit(X, y)
    assert set(always_top.predict(X)) == {4}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"decision": "mae"}, r"decision must be 'ranker' unless probability=True. Got 'mae'."),
        ({"decision": "best", "probability": True}, r'decision must be "ranker", "mae", .* Got \'best\'.'),
        ({"decision": np.ones((2, 2)), "probability": True}, r"decision must be .* shape \(4, 4\). Got shape \(2, 2\)."),
        ({"probability": "yes"}, r"probability must be True or False. Got 'yes'."),
    ],
)
def test_bad_parameters(ranked, parameters, message):
    with pytest.raises(ValueError, match=message):
        NPSVOR(**parameters).fit(*ranked)


def test_no_probabilities_without_asking(ranked):
    fitted = NPSVOR().fit(*ranked)
    for method in ("predict_proba", "predict_set"):
        with pytest.raises(AttributeError, match=r"probability=True|has no attribute"):
            getattr(fitted, method)(ranked[0])


@given(masses, st.floats(0.05, 0.99), st.sampled_from(decisions.SCORES), st.integers(0, 99))
def test_sets_are_intervals_around_the_mode(p, threshold, score, seed):
    n_ranks = p.shape[1]
    limits = threshold + np.random.default_rng(seed).uniform(-0.3, 0.3, n_ranks)
    for thresholds in (np.full(n_ranks, threshold), limits):
        sets = decisions.SetRule(score, thresholds).sets(p)
        for row, members in zip(p, sets, strict=True):
            inside = np.flatnonzero(members)
            assert len(inside) > 0
            assert np.array_equal(inside, np.arange(inside[0], inside[-1] + 1))
            assert members[np.argmax(row)]
        wider = decisions.SetRule(score, thresholds + 0.2).sets(p)
        assert np.all(wider >= sets)
        assert np.all(decisions.SetRule("before", thresholds).sets(p) >= decisions.SetRule("after", thresholds).sets(p))
    assert np.all(decisions.SetRule(score, np.full(n_ranks, np.inf)).sets(p))


def test_threshold_is_the_conformal_quantile():
    mass = np.arange(1, 100) / 100  # of 99 rows, the 90 % threshold is the 90th
    assert decisions.conformal_threshold(mass, 0.9) == 0.9
    assert decisions.conformal_threshold(mass[:5], 0.9) == np.inf


@pytest.mark.parametrize("coverage", [0.7, 0.9])
@pytest.mark.parametrize("score", decisions.SCORES)
def test_coverage_by_simulation(coverage, score):
    """Over many draws, new rows have their rank in the set as often as asked, or more often: the most likely rank is always in."""
    covered, uncut, sizes, by_rank = [], [], [], []
    for seed in range(8):
        X, y = make_ranked(n_rows=1200, n_columns=40, n_ranks=5, seed=seed)
        fitted = NPSVOR(probability=True).fit(X[:600], y[:600])
        sets = fitted.predict_set(X[600:], coverage, score=score)
        new = np.arange(600), y[600:] - 1
        covered.append(np.mean(sets[new]))
        sizes.append(sets.sum(axis=1).mean())
        threshold = decisions.conformal_threshold(fitted.conformity_, coverage)
        uncut.append(np.mean(decisions.entry_mass(fitted.predict_proba(X[600:]))[new] <= threshold))
        of_each = fitted.predict_set(X[600:], coverage, per_rank=True, score=score)[new]
        by_rank.append([of_each[new[1] == rank].mean() for rank in range(5)])
    assert np.mean(uncut) == pytest.approx(coverage, abs=0.03)
    assert np.min(np.mean(by_rank, axis=0)) >= coverage - 0.04
    assert np.mean(covered) >= coverage - 0.03
    assert np.mean(sizes) < 4


def test_sets_in_words(ranked):
    X, y = ranked
    sets = NPSVOR(probability=True).fit(X, y).predict_set(X[:3])
    assert all(word[0] in "1234" for word in decisions.set_in_words(sets, [1, 2, 3, 4]))
    members = np.array([[True, False, False], [False, True, True]])
    assert decisions.set_in_words(members, ["low", "mid", "high"]) == ["low", "mid-high"]


def test_bad_coverage(ranked):
    fitted = NPSVOR(probability=True).fit(*ranked)
    with pytest.raises(ValueError, match=r"coverage must be a number between 0 and 1. Got 90."):
        fitted.predict_set(ranked[0], 90)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_held_out_scores_are_on_the_scale_of_the_fit(model, C):
    """At a small C scores grow with the number of rows; the calibrator must see them as the planes of all rows will give them."""
    X, y = make_ranked(n_rows=1700, n_columns=20, n_ranks=4, seed=5)
    fitted = model(C=C, probability=True, decision="mae").fit(X[:1100], y[:1100])
    probabilities = fitted.predict_proba(X[1100:])
    promised, kept = probabilities.max(axis=1).mean(), np.mean(np.argmax(probabilities, axis=1) == y[1100:] - 1)
    assert promised == pytest.approx(kept, abs=0.08)


@pytest.mark.filterwarnings("ignore:All samples have the same probabilities")
def test_scores_that_vary_by_rounding_only_are_calibrated():
    """Columns that hardly any row has: all planes are flat, but for the last bits."""
    rng = np.random.default_rng(0)
    X = sp.csr_matrix((np.ones(500), rng.integers(0, 500_000, 500), np.arange(501)), shape=(500, 500_000))[:, :10]
    model = NPSVOR(probability=True).fit(X, np.arange(500) % 5 + 1)
    np.testing.assert_allclose(model.predict_proba(X), 0.2, atol=0.05)
