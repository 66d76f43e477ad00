"""The search over C against what it replaces: one fit per fold and value."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from conftest import MODELS, make_ranked
from rankplane import NPSVOR, SVC, SVOREX, CSearchCV
from rankplane import metrics as m
from rankplane.prediction import decisions
from rankplane.prediction.calibration import Curved
from rankplane.search import settings_of

CS = [0.25, 1.0, 4.0]
VALLEY = {"n_rows": 6000, "n_columns": 3000, "density": 0.01, "seed": 5}  # of held-out error over C: .82 ... .54 ... .55
TIGHT = {"tol": 1e-7, "max_iter": 100_000}


def fold_by_fold(estimator, X, y, folds, measure=m.mean_absolute_error):
    """The plain way."""
    return [measure(y[test], clone(estimator).fit(X[train], y[train]).predict(X[test])) for train, test in folds]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_equals_one_fit_per_fold(model, ranked, n_jobs):
    X, y = ranked
    cv = StratifiedKFold(4, shuffle=True, random_state=1)
    search = CSearchCV(model(**TIGHT), Cs=CS, cv=cv, n_jobs=n_jobs).fit(X, y)
    for i, C in enumerate(CS):
        expected = fold_by_fold(model(C=C, **TIGHT), X, y, cv.split(X, y))
        found = [search.cv_results_[f"split{k}_test_score"][i] for k in range(4)]
        # At a small C, as many rows may pull a threshold between neighbours up as down: any place in an interval is optimal.
        if model is SVOREX and C < 1:
            continue
        # A row on a boundary may fall to either side of it.
        np.testing.assert_allclose(found, expected, atol=1.1 / 30)
    assert search.best_score_ == np.min(search.cv_results_["mean_test_score"])
    assert search.best_C_ == CS[search.best_index_]
    np.testing.assert_array_equal(search.predict(X), model(C=search.best_C_, **TIGHT).fit(X, y).predict(X))


def test_a_walk_over_many_lanes_is_the_same_on_any_number_of_threads():
    """More lanes than a block holds: threads share blocks, whose sizes must not show in the result."""
    X, y = make_ranked(n_rows=400, n_ranks=8)
    one, two = (CSearchCV(NPSVOR(tol=1e-3), Cs=CS, refit=False, n_jobs=n).fit(X, y).cv_results_ for n in (1, 2))
    for key in ("mean_test_score", "std_test_score", "n_iter"):
        np.testing.assert_array_equal(one[key], two[key])


def test_a_warm_start_lands_where_a_cold_one_does():
    """All losses, tight: what a walk finds at its end must not depend on where it began."""
    X, y = make_ranked(n_rows=300, n_ranks=4)
    folds = list(StratifiedKFold(3).split(X, y))
    for loss in ("hinge", "squared_hinge", "logistic"):
        walked, fresh = (CSearchCV(NPSVOR(loss=loss, **TIGHT), Cs=Cs, cv=folds, refit=False).fit(X, y) for Cs in (CS, CS[-1:]))
        assert walked.cv_results_["mean_test_score"][-1] == pytest.approx(fresh.best_score_, abs=0.011)


@pytest.mark.parametrize("scoring", ["mae", "mse", "accuracy", "macro_mae", "qwk"])
def test_scorings(ranked, scoring):
    X, y = ranked
    search = CSearchCV(NPSVOR(), Cs=CS, scoring=scoring).fit(X, y)
    means = search.cv_results_["mean_test_score"]
    is_better = max if scoring in ("accuracy", "qwk") else min
    assert search.best_score_ == is_better(means)
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1


def test_callable_scoring_sees_labels(ranked):
    X, y = ranked
    labels = np.array(["a", "b", "c", "d"])
    search = CSearchCV(NPSVOR(ranks=labels), Cs=CS, scoring=lambda t, p: np.mean(t == p)).fit(X, labels[y - 1])
    by_name = CSearchCV(NPSVOR(ranks=labels), Cs=CS, scoring="accuracy").fit(X, labels[y - 1])
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], by_name.cv_results_["mean_test_score"])


def test_results_make_a_frame(ranked):
    import pandas as pd

    frame = pd.DataFrame(CSearchCV(NPSVOR(), Cs=CS).fit(*ranked).cv_results_)
    assert len(frame) == 3
    assert {"param_C", "mean_test_score", "std_test_score", "split4_test_score", "n_iter", "is_settled"} <= set(frame.columns)


def test_path_ends_where_no_dual_touches_its_bound():
    """Separable rows: beyond some C the hinge solution has no bounded dual and is the same for all larger C."""
    X, y = make_ranked(n_rows=60, n_columns=200, density=0.5, seed=1)
    search = CSearchCV(NPSVOR(**TIGHT), Cs=2.0 ** np.arange(-3, 12), cv=3).fit(X, y)
    settled = search.cv_results_["is_settled"]
    assert settled.any()
    assert not settled[0]
    assert np.all(np.diff(settled.astype(int)) >= 0)
    assert np.all(search.cv_results_["n_iter"][settled] == 0)
    first = int(np.argmax(settled))
    for fold in range(3):
        scores = search.cv_results_[f"split{fold}_test_score"]
        assert len(set(scores[first - 1 :])) == 1
    squared = CSearchCV(NPSVOR(loss="squared_hinge"), Cs=2.0 ** np.arange(-3, 12), cv=3).fit(X, y)
    assert not squared.cv_results_["is_settled"].any()


def test_c1_and_c2(ranked):
    X, y = ranked
    search = CSearchCV(NPSVOR(**TIGHT), Cs=[0.5, 1.0, 2.0], C1s=[0.25, 1.0], cv=3).fit(X, y)
    assert len(search.cv_results_["params"]) == 6
    cv = [(np.flatnonzero(~np.isin(np.arange(120), t)), t) for t in np.array_split(np.arange(120), 3)]
    search = CSearchCV(NPSVOR(**TIGHT), Cs=[0.5, 1.0, 2.0], C1s=[0.25, 1.0], cv=cv).fit(X, y)
    for i, setting in enumerate(search.cv_results_["params"]):
        expected = np.mean(fold_by_fold(NPSVOR(**setting, **TIGHT), X, y, cv))
        assert search.cv_results_["mean_test_score"][i] == pytest.approx(expected, abs=0.02)
    assert set(search.best_params_) == {"C1", "C2"}


def test_paths_share_a_ratio():
    paths = settings_of([1, 2, 4], [1, 2])
    assert sum(map(len, paths)) == 6
    for path in paths:
        assert len({s["C1"] / s["C2"] for s in path}) == 1
        assert [s["C2"] for s in path] == sorted(s["C2"] for s in path)


@pytest.mark.parametrize("cv", [3, ShuffleSplit(4, test_size=0.3, random_state=0), StratifiedKFold(3)], ids=str)
def test_splitters(ranked, cv):
    X, y = ranked
    search = CSearchCV(NPSVOR(**TIGHT), Cs=[1.0], cv=cv).fit(X, y)
    if not isinstance(cv, int):
        expected = np.mean(fold_by_fold(NPSVOR(**TIGHT), X, y, cv.split(X, y)))
        assert search.best_score_ == pytest.approx(expected, abs=0.02)
    assert search.n_splits_ == (4 if isinstance(cv, ShuffleSplit) else 3)


def test_groups_stay_together(ranked):
    """Every row four times: with copies on both sides of a split the error looks far too small."""
    X, y = make_ranked(n_rows=100, n_columns=300, density=0.1, seed=3)
    X4, y4, groups = sp.vstack([X] * 4).tocsr(), np.tile(y, 4), np.tile(np.arange(100), 4)
    apart = CSearchCV(NPSVOR(), Cs=[4.0]).fit(X4, y4, groups=groups)
    mixed = CSearchCV(NPSVOR(), Cs=[4.0]).fit(X4, y4)
    assert mixed.best_score_ < 0.5 * apart.best_score_
    by_splitter = CSearchCV(NPSVOR(), Cs=[4.0], cv=GroupKFold(5)).fit(X4, y4, groups=groups)
    assert by_splitter.best_score_ > 2 * mixed.best_score_


def test_a_rank_missing_from_folds(model):
    X, y = make_ranked(n_rows=80, seed=4)
    y[0] = 9  # a single row of its rank
    search = CSearchCV(model(), Cs=CS).fit(X, y)
    assert search.classes_.tolist() == [1, 2, 3, 4, 9]
    assert np.isfinite(search.best_score_)


def test_weights_reach_the_folds(ranked):
    X, y = ranked
    weights = np.where(np.arange(120) % 2, 0.0, 1.0)
    search = CSearchCV(NPSVOR(**TIGHT), Cs=[1.0], cv=StratifiedKFold(3)).fit(X, y, sample_weight=weights)
    expected = []
    for train, test in StratifiedKFold(3).split(X, y):
        kept = train[weights[train] > 0]
        expected.append(m.mean_absolute_error(y[test], NPSVOR(**TIGHT).fit(X[kept], y[kept]).predict(X[test])))
    assert search.best_score_ == pytest.approx(np.mean(expected), abs=0.02)


def test_probability_reuses_the_held_out_scores(ranked, monkeypatch):
    from rankplane.solver.folds import FoldLanes

    calls = []
    plain = FoldLanes.__init__
    monkeypatch.setattr(FoldLanes, "__init__", lambda self, *a, **k: (calls.append(1), plain(self, *a, **k))[1])
    X, y = ranked
    search = CSearchCV(NPSVOR(probability=True, decision="mae"), Cs=CS).fit(X, y)
    assert len(calls) == 1
    probabilities = search.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert search.predict_set(X, 0.8).shape == (120, 4)


def test_judges_what_the_estimator_would_predict():
    """With a decision, the score of a fold is that of a calibrator of the others; for "rps", of its probabilities."""
    X, y = make_ranked(n_rows=600, seed=4)
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    by_ranker = CSearchCV(NPSVOR(probability=True), Cs=CS, cv=cv, scoring="mse").fit(X, y)
    by_mean = CSearchCV(NPSVOR(probability=True, decision="mse"), Cs=CS, cv=cv, scoring="mse").fit(X, y)
    assert np.any(by_ranker.cv_results_["mean_test_score"] != by_mean.cv_results_["mean_test_score"])
    by_probability = CSearchCV(NPSVOR(probability=True), Cs=CS, cv=cv, scoring="rps").fit(X, y)
    for i, C in enumerate(CS):
        mse, rps = [], []
        for train, test in cv.split(X, y):
            fitted = NPSVOR(C=C, probability=True, decision="mse").fit(X[train], y[train])
            mse.append(m.mean_squared_error(y[test], fitted.predict(X[test])))
            rps.append(m.ranked_probability_score(y[test], fitted.predict_proba(X[test])))
        # Other folds within the training rows, so only about the same.
        assert by_mean.cv_results_["mean_test_score"][i] == pytest.approx(np.mean(mse), abs=0.03)
        assert by_probability.cv_results_["mean_test_score"][i] == pytest.approx(np.mean(rps), abs=0.02)
    assert by_probability.best_score_ == np.min(by_probability.cv_results_["mean_test_score"])


def test_probabilities_fit_the_planes():
    """The planes of the last fit score rows on the scale that the calibrator has learnt, or probabilities would be off."""
    X, y = make_ranked(n_rows=3000, n_columns=400, density=0.05, seed=6)
    train, test = slice(2000), slice(2000, None)
    for loss in ("hinge", "squared_hinge", "logistic"):
        found, expected = (
            CSearchCV(NPSVOR(probability=True, loss=loss, tol=tol, max_iter=100_000), Cs=CS, scoring="rps").fit(X[train], y[train])
            for tol in (0.1, 1e-3)
        )
        scores = [m.ranked_probability_score(y[test], search.predict_proba(X[test])) for search in (found, expected)]
        assert scores[0] == pytest.approx(scores[1], rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scoring": "rps"}, r"scoring must not be 'rps' unless the estimator has probability=True. Got 'rps'."),
        ({"estimator": "NPSVOR"}, r"estimator must be a model of this package, such as NPSVOR\(\). Got 'NPSVOR'."),
        ({"Cs": [-1.0]}, r"Cs must be a positive number. Got -1.0."),
        ({"Cs": []}, r"Cs must name at least one positive number. Got none."),
        ({"estimator": SVC(), "C1s": [1.0]}, r"C1s must be None for SVC, which has no C1. Got \[1.0\]."),
        ({"scoring": "luck"}, r"scoring must be one of 'mae', .* Got 'luck'."),
        ({"cv": 1}, r"cv must be a splitter or a number of folds from 2 to the number of rows, 120. Got 1."),
        ({"cv": "five"}, r"cv must be 'auto', a number of folds, a splitter or pairs of indices. Got 'five'."),
        ({"patience": 0}, r"patience must be a positive integer. Got 0."),
        ({"refit": "yes"}, r"refit must be True or False. Got 'yes'."),
        ({"estimator": NPSVOR(epsilon=-1)}, r"epsilon must be a non-negative number. Got -1."),
    ],
)
def test_bad_arguments_are_refused(ranked, arguments, message):
    with pytest.raises(ValueError, match=message):
        CSearchCV(**{"estimator": NPSVOR(), **arguments}).fit(*ranked)


def test_without_refit_there_is_no_prediction(ranked):
    search = CSearchCV(NPSVOR(), Cs=CS, refit=False).fit(*ranked)
    assert search.best_C_ in CS
    with pytest.raises(AttributeError, match="refit=True"):
        search.predict(ranked[0])


def test_verbose_shows_progress(ranked, terminal):
    CSearchCV(NPSVOR(probability=True), Cs=CS, verbose=1).fit(*ranked)
    shown = terminal()
    for phase in ("Searching NPSVOR", "Final fit", "Calibrating"):
        assert phase in shown.ever
    assert shown.left == ""
    CSearchCV(NPSVOR(), Cs=[1.0], verbose=1).fit(*ranked)
    assert "Searching" not in terminal().ever


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [CSearchCV(MODELS[0](tol=1e-9), Cs=[1.0], cv=2)],
    expected_failed_checks=lambda _: {
        "check_classifiers_classes": "trains on text labels without an order, which are refused on purpose",
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_weights_count_in_the_score():
    X, y = make_ranked(n_rows=300)
    weights = np.where(np.arange(300) < 150, 1.0, 0.0)
    folds = [(np.setdiff1d(np.arange(300), test), test) for test in np.array_split(np.arange(150), 3)]
    weighted = CSearchCV(NPSVOR(tol=1e-4), Cs=[0.1, 1.0], cv=folds).fit(X, y, sample_weight=weights)
    alone = CSearchCV(NPSVOR(tol=1e-4), Cs=[0.1, 1.0], cv=[(train[train < 150], test) for train, test in folds]).fit(
        X[:150], y[:150]
    )
    np.testing.assert_allclose(weighted.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"], atol=0.01)


def test_a_row_that_counts_twice_is_two_rows():
    """In the planes of the folds, in their scores and in the last fit, if both are held out together."""
    X, y = make_ranked(n_rows=150)
    twice = np.arange(0, 150, 3)
    tests = np.array_split(np.random.default_rng(0).permutation(150), 3)
    folds = [(np.setdiff1d(np.arange(150), test), test) for test in tests]
    row_of = np.concatenate([np.arange(150), twice])
    copied = [tuple(np.flatnonzero(np.isin(row_of, part)) for part in fold) for fold in folds]
    for scoring in ("mae", "mse", "accuracy", "qwk"):
        tight = NPSVOR(**TIGHT)
        weights = np.where(np.isin(np.arange(150), twice), 2.0, 1.0)
        weighted = CSearchCV(tight, Cs=CS, cv=folds, scoring=scoring).fit(X, y, sample_weight=weights)
        doubled = CSearchCV(tight, Cs=CS, cv=copied, scoring=scoring).fit(X[row_of], y[row_of])
        plain = CSearchCV(tight, Cs=CS, cv=folds, scoring=scoring).fit(X, y)
        found, expected, without = (search.cv_results_["mean_test_score"] for search in (weighted, doubled, plain))
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        np.testing.assert_allclose(weighted.best_estimator_.coef_, doubled.best_estimator_.coef_, atol=1e-4)
        assert np.all(np.abs(found - without) > 1e-3)


def test_a_walk_that_ends_early_finds_the_same():
    """What is tried is as in the full grid, the best C too; what is left out comes last, and says why."""
    X, y = make_ranked(**VALLEY)
    Cs = 2.0 ** np.arange(-3, 9)
    for estimator in (NPSVOR(), NPSVOR(column_weight="ranks"), NPSVOR(probability=True, decision="mae")):
        full, early = (CSearchCV(estimator, Cs=Cs, patience=patience).fit(X, y) for patience in (None, 2))
        is_tried = early.cv_results_["why_not_tried"] == ""
        assert 0 < is_tried.sum() < len(Cs)
        assert (full.cv_results_["why_not_tried"] == "").all()
        for key in ("mean_test_score", "n_iter", "split3_test_score"):
            np.testing.assert_array_equal(early.cv_results_[key][is_tried], full.cv_results_[key][is_tried])
        assert early.best_C_ == full.best_C_ == early.cv_results_["params"][early.best_index_]["C"]
        assert early.cv_results_["rank_test_score"][early.best_index_] == 1
        np.testing.assert_array_equal(early.predict(X), full.predict(X))


def test_every_path_has_its_own_end():
    X, y = make_ranked(**VALLEY)
    Cs = 2.0 ** np.arange(-6, 9)
    search = CSearchCV(NPSVOR(), Cs=Cs, C1s=[0.5, 64.0]).fit(X, y)
    results = search.cv_results_
    assert len(results["params"]) == 30
    assert search.best_params_ == results["params"][search.best_index_]
    for path in settings_of(Cs, [0.5, 64.0]):
        is_tried = [results["why_not_tried"][results["params"].index(setting)] == "" for setting in path]
        assert is_tried == sorted(is_tried, reverse=True)
        assert is_tried[0]


def test_results_with_values_left_out_make_a_frame():
    import pandas as pd

    X, y = make_ranked(**VALLEY)
    frame = pd.DataFrame(CSearchCV(NPSVOR(), Cs=2.0 ** np.arange(-6, 9)).fit(X, y).cv_results_)
    left_out = frame[frame["why_not_tried"] != ""]
    assert len(left_out) > 0
    assert left_out[["mean_test_score", "n_iter", "fit_time"]].isna().all(axis=None)
    assert (left_out["rank_test_score"] == frame["mean_test_score"].notna().sum() + 1).all()


@pytest.mark.parametrize("scoring", ["mae", "rps"])
def test_a_single_split_judges_calibrated_answers_as_folds_do(scoring):
    """By calibrators that the judged rows had no part in: refitted here, part by part."""
    X, y = make_ranked(n_rows=3000, n_columns=300, density=0.1, seed=5)
    order = np.random.default_rng(0).permutation(3000)
    train, test = order[600:], order[:600]
    model = NPSVOR(probability=True, decision="mae")
    single = CSearchCV(model, Cs=CS, cv=[(train, test)], scoring=scoring, refit=False).fit(X, y)
    folds = CSearchCV(model, Cs=CS, cv=5, scoring=scoring, refit=False).fit(X, y)
    for i, C in enumerate(CS):
        scores = NPSVOR(C=C / 0.8, tol=1e-3).fit(X[train], y[train]).plane_scores(X[test])
        found = np.empty((600, 4))
        for part in range(10):
            is_out = np.arange(600) % 10 == part
            calibrator = Curved.fit(scores[~is_out], (y[test][~is_out] - 1).astype(np.int32), 4)
            found[is_out] = calibrator.probabilities(scores[is_out])
        if scoring == "rps":
            expected = m.ranked_probability_score(y[test], found, ranks=[1, 2, 3, 4])
        else:
            expected = m.mean_absolute_error(y[test], 1 + decisions.least_cost(found, decisions.cost_matrix("mae", 4)))
        assert single.cv_results_["mean_test_score"][i] == pytest.approx(expected, abs=0.012)
        assert single.cv_results_["mean_test_score"][i] == pytest.approx(folds.cv_results_["mean_test_score"][i], rel=0.1)


def test_a_single_split_has_a_standard_error():
    """Of parts of its rows: about that of the mean over all of them."""
    X, y = make_ranked(n_rows=6000, n_columns=300, density=0.1, seed=5)
    test = np.arange(0, 6000, 2)
    cv = [(np.setdiff1d(np.arange(6000), test), test)]
    search = CSearchCV(NPSVOR(), Cs=[1.0], cv=cv, refit=False).fit(X, y)
    errors = np.abs(NPSVOR().fit(X[cv[0][0]], y[cv[0][0]]).predict(X[test]) - y[test])
    assert search.cv_results_["se_test_score"][0] == pytest.approx(errors.std() / np.sqrt(len(errors)), rel=0.7)
    assert search.n_splits_ == 1
    assert search.cv_results_["std_test_score"][0] == 0


def test_of_many_rows_only_enough_are_held_out(monkeypatch):
    monkeypatch.setattr("rankplane.search.ROWS_TO_CHOOSE_BY", 1500)
    X, y = make_ranked(n_rows=12_000, n_columns=3000, density=0.01, seed=5)
    Cs = 2.0 ** np.arange(-5, 6)
    few, five = (CSearchCV(NPSVOR(), Cs=Cs, cv=cv, patience=None).fit(X[:9000], y[:9000]) for cv in ("auto", 5))
    assert (few.n_splits_, five.n_splits_) == (1, 5)
    errors = [m.mean_absolute_error(y[9000:], search.predict(X[9000:])) for search in (few, five)]
    assert errors[0] <= errors[1] + 0.02


def test_scores_of_a_setting_are_dropped_when_it_is_judged():
    """Memory does not grow with the number of settings, but for the best one and the last."""
    X, y = make_ranked(n_rows=4000, n_columns=5, n_ranks=8)
    peaks = []
    for n_settings in (4, 40):
        tracemalloc.start()
        CSearchCV(NPSVOR(), Cs=np.geomspace(1e-3, 1e-2, n_settings), refit=False, patience=None).fit(X, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2 * 4000 * 8 * 8
