"""Models tuned on the same folds, and compared."""

import numpy as np
import pytest

from conftest import make_curved, make_ranked
from rankplane import NPSVOR, SVC, SVOR, SVR, CSearchCV, compare_models
from rankplane.metrics import mean_absolute_error
from rankplane.model_comparison import default_models, suited
from rankplane.options import MODEL_NAMES
from rankplane.solver.folds import make_folds

CS = [0.1, 1.0, 10.0]


def test_scores_are_those_of_single_searches():
    X, y = make_ranked(n_rows=150)
    found = compare_models(X, y, ["NPSVOR", SVR(C=5)], Cs=CS, cv=3)
    folds = make_folds(3, X, (y - 1).astype(np.int32), None, 0)
    pairs = [(np.flatnonzero(train), test) for train, test in zip(folds.is_train, folds.test, strict=True)]
    for model in found.models:
        search = CSearchCV({"NPSVOR": NPSVOR(), "SVR": SVR()}[model.name], Cs=CS, cv=pairs).fit(X, y)
        assert model.params == search.best_params_
        sizes = [len(test) for test in folds.test]
        parts = [search.cv_results_[f"split{fold}_test_score"][search.best_index_] for fold in range(3)]
        assert model.score == pytest.approx(np.average(parts, weights=sizes))
    best, other = found.models
    assert best.score <= other.score
    assert best.difference == best.low == best.high == 0
    assert other.difference == pytest.approx(other.score - best.score)
    assert other.low <= other.difference <= other.high


def test_all_models():
    X, y = make_ranked(n_rows=90, n_columns=6, density=0.6)
    found = compare_models(X, y, Cs=[1.0], cv=3)
    assert {model.name for model in found.models} == set(MODEL_NAMES)
    assert found.recommended in MODEL_NAMES
    assert found.models[0].name in found.reason
    assert str(found).count("\n") == len(MODEL_NAMES) + 2


def test_gpor_is_left_out_of_large_tables():
    models = default_models(4, {})
    assert "GPOR" in suited(models, np.zeros((3000, 20)))
    assert set(models) - set(suited(models, np.zeros((3001, 20)))) == {"GPOR"}
    assert set(models) - set(suited(models, np.zeros((100, 21)))) == {"GPOR"}


def test_a_clear_difference_is_recognised():
    X, y = make_curved(n_rows=300)
    models = {"line": SVOR(), "curve": SVOR(kernel="rbf", gamma=1.0)}
    found = compare_models(X, y, models, Cs=[10.0])
    assert [model.name for model in found.models] == ["curve", "line"]
    assert found.models[1].is_clear
    assert found.recommended == "curve"
    assert found.reason.startswith("curve has the lowest MAE")
    assert found.reason.endswith("; all others are clearly worse.")


def test_larger_is_better_for_accuracy():
    X, y = make_ranked(n_rows=120)
    found = compare_models(X, y, ["SVC", "SVOR", "SVR"], Cs=CS, scoring="accuracy", cv=3)
    scores = [model.score for model in found.models]
    assert scores == sorted(scores, reverse=True)
    assert "highest accuracy" in found.reason


def test_text_labels_and_groups():
    X, y = make_ranked(n_rows=120)
    names = np.array(["low", "mid", "high", "top"])
    groups = np.arange(120) // 2
    found = compare_models(X, names[y - 1], ["SVOR", "SVR"], ranks=names, Cs=CS, groups=groups, cv=4)
    numbers = compare_models(X, y, ["SVOR", "SVR"], Cs=CS, groups=groups, cv=4)
    assert [model.score for model in found.models] == [model.score for model in numbers.models]
    assert compare_models(X, names[y - 1], [SVOR(ranks=names), SVR(ranks=names)], Cs=[1.0]).n_samples == 120


def test_page(tmp_path):
    X, y = make_ranked(n_rows=90)
    found = compare_models(X, y, {"<one>": SVOR(), "two": SVC()}, Cs=[1.0], cv=3)
    found.write_page(tmp_path / "models.html")
    page = (tmp_path / "models.html").read_text(encoding="utf-8")
    assert "&lt;one&gt;" in page
    assert "<one>" not in page
    assert page.count("<svg") == 1
    assert page.count("<circle") == 2


@pytest.mark.parametrize(
    ("models", "scoring", "message"),
    [
        (["SVOR"], "mae", r"^models must be at least two\. Got 1\.$"),
        (["SVOR", "Ridge"], "mae", r"^models must be one of .*Got 'Ridge'\.$"),
        ([SVOR(), SVOR(C=2)], "mae", r"^models must have different names; .* Got two of SVOR\.$"),
        ([SVOR(), 3], "mae", r"^models must be names or models of this package, .* Got 3\.$"),
        (["SVOR", "SVR"], "rps", r"^scoring must be one of .*Got 'rps'\.$"),
    ],
)
def test_what_is_refused(models, scoring, message):
    X, y = make_ranked(n_rows=40)
    with pytest.raises(ValueError, match=message):
        compare_models(X, y, models, scoring=scoring)


def test_measure_is_that_of_the_predictions():
    X, y = make_ranked(n_rows=60)
    found = compare_models(X, y, ["SVOR", "SVR"], Cs=[1.0], cv=[(np.arange(40), np.arange(40, 60))])
    for model in found.models:
        fitted = {"SVOR": SVOR, "SVR": SVR}[model.name](C=1.0, tol=1e-6).fit(X[:40], y[:40])
        assert model.score == pytest.approx(mean_absolute_error(y[40:], fitted.predict(X[40:])), abs=0.06)
