"""Models with a kernel as their users see them: parameters, files, searches, the command line."""

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from command import interrupted_fit
from conftest import MODELS, make_curved, words
from rankplane import KDLOR, NPSVOR, SVC, SVMOP, SVOR, SVR, Committee, CSearchCV, load_model, save_model
from rankplane.cli import main
from rankplane.solver import tables
from rankplane.solver.kernels import Gram, Kernel
from rankplane.solver.lanes import Options, solve_planes

TIGHT = {"tol": 1e-6, "max_iter": 100_000}
NO_ORDER = {"check_classifiers_classes": "trains on text labels without an order, which are refused on purpose"}


ALL_ROWS = dict.fromkeys(
    ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"],
    "gamma='scale' is the spread of all rows, whatever their weights",
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [NPSVOR(kernel="rbf", tol=1e-5), SVC(kernel="poly", coef0=1.0, tol=1e-5), SVOR(kernel="rbf", tol=1e-5)],
    expected_failed_checks=lambda estimator: NO_ORDER | ALL_ROWS,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


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


@pytest.mark.parametrize("model", [*MODELS, KDLOR], ids=lambda model: model.__name__)
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
    with pytest.raises(AttributeError, match=r"coef_ is only available with kernel='linear'\. Got kernel='rbf'\."):
        _ = fitted.coef_
    for ask in (fitted.explain, lambda X: fitted.top_features()):
        with pytest.raises(
            ValueError, match=r"Explanations need feature weights, which only kernel='linear' has\. Got kernel='rbf'\."
        ):
            ask(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "cosine"}, "kernel must be one of 'linear', 'rbf', 'poly', 'sigmoid', 'precomputed'. Got 'cosine'."),
        ({"kernel": "rbf", "gamma": -1}, "gamma must be 'scale', 'auto' or a positive number. Got -1."),
        ({"kernel": "rbf", "gamma": "large"}, "gamma must be 'scale', 'auto' or a positive number. Got 'large'."),
        ({"kernel": "poly", "degree": -2}, "degree must be a non-negative number. Got -2."),
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
            r"kernel must return an array of shape \(90, 90\) for these numbers of rows. Got \(2, 2\).",
        ),
        ({"kernel": lambda a, b: np.full((len(a), len(b)), np.nan)}, "kernel must return finite numbers. Got NaN or infinity."),
    ],
    ids=words,
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
    from rankplane.solver.folds import make_folds

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
    with pytest.warns(UserWarning, match=r"planes stopped at max_iter=1 .* Raise max_iter, raise tol or lower C"):
        fitted = NPSVOR(kernel="rbf", C=1e6, tol=1e-6, max_iter=1).fit(*curved)
    assert np.all(fitted.n_iter_ == 1)


def test_ctrl_c_stops_a_kernel_solve():
    model = "NPSVOR(kernel='rbf', C=1e6, tol=1e-9, max_iter=10**6)"
    assert interrupted_fit((3000, 2), model, 1.5) == "unfitted\n"


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
    assert said["important"] == []
    assert len(said["search"]["C"]) == len(said["search"]["scores"]) == 11
    assert said["metrics"]["model"]["mae"] < 0.7 < said["metrics"]["median"]["mae"]
    assert "with gamma = " in (tmp_path / "page.html").read_text(encoding="utf-8")
    model = str(tmp_path / "m.rankplane")
    assert main(["predict", model, str(path), "-o", str(tmp_path / "out.csv"), "--proba"]) == 0
    assert main(["evaluate", model, str(path)]) == 0
    assert main(["explain", model, '{"a": 1, "b": 0, "c": 0}']) == 2
    assert "explanations need the weights of a linear model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kernel", "cosine"], "--kernel must be one of auto, linear, rbf, poly, sigmoid. Got cosine."),
        (["--gamma", "1"], "--gamma needs a kernel that has one: --kernel rbf or poly or sigmoid."),
        (["--kernel", "rbf", "--gamma", "-1"], "--gamma must be a positive number. Got -1.0."),
        (["--kernel", "rbf", "--compact", "0.01"], "--compact rounds column weights, which only --kernel linear has."),
    ],
)
def test_the_command_line_refuses(tmp_path, capsys, options, message):
    assert train_by_command(tmp_path, *options)[0] == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "m.rankplane").exists()
