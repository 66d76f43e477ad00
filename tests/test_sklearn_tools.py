"""The models under scikit-learn's tools: cloned, searched, calibrated, explained, shown."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.inspection import permutation_importance
from sklearn.metrics import log_loss, make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, cross_val_predict, learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils import get_tags

from conftest import MODELS, make_ranked
from rankplane import NPSVOR, ColumnEncoder, Committee, CSearchCV, TextVectorizer, metrics

ALL = [*(model() for model in MODELS), Committee(), CSearchCV(NPSVOR(), Cs=[1.0], cv=3)]
TEXTS = ["good value", "bad value", "great value", "awful value"] * 5
STARS = [4, 2, 5, 1] * 5


@pytest.fixture(params=ALL, ids=lambda estimator: type(estimator).__name__)
def estimator(request):
    return clone(request.param)


def test_clones_are_alike_and_apart(estimator, ranked):
    fitted = estimator.fit(*ranked)
    copy = clone(fitted)
    assert repr(copy) == repr(fitted)
    assert not hasattr(copy, "classes_")
    np.testing.assert_array_equal(copy.fit(*ranked).predict(ranked[0]), fitted.predict(ranked[0]))


def test_within_a_pipeline_within_a_search(estimator, ranked):
    X, y = ranked
    name = "csearchcv__estimator__max_iter" if isinstance(estimator, CSearchCV) else f"{type(estimator).__name__.lower()}__max_iter"
    search = GridSearchCV(
        make_pipeline(MaxAbsScaler(), estimator), {name: [100_000, 200_000]}, cv=3, scoring=metrics.scorers(), refit="mae"
    )
    search.fit(X, y)
    assert -1 < search.best_score_ < 0
    assert search.cv_results_["mean_test_qwk"][0] > 0.3


def test_predicts_what_it_has_not_seen(estimator, ranked):
    X, y = ranked
    leanings = cross_val_predict(estimator, X, y, cv=3, method="decision_function")
    assert leanings.shape == (len(y), 4)
    assert np.mean(np.abs(cross_val_predict(estimator, X, y, cv=3) - y)) < np.mean(np.abs(np.median(y) - y))


def test_is_calibrated(estimator):
    X, y = make_ranked(n_rows=300)
    probabilities = CalibratedClassifierCV(estimator, cv=3).fit(X[:200], y[:200]).predict_proba(X[200:])
    assert log_loss(y[200:], probabilities) < np.log(4) - 0.1


def test_is_inspected(estimator):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = np.digitize(X[:, 1], [-0.7, 0.0, 0.7])
    found = permutation_importance(estimator.fit(X, y), X, y, n_repeats=3, random_state=0).importances_mean
    assert np.argmax(found) == 1
    assert found[1] > 0.2


def test_learns_from_more_rows(estimator):
    X, y = make_ranked(n_rows=400, n_columns=10)
    _, _, held_out = learning_curve(estimator, X, y, cv=3, train_sizes=[0.1, 1.0], scoring="neg_mean_absolute_error")
    assert held_out[1].mean() > held_out[0].mean()


def test_tags(estimator):
    tags = get_tags(estimator)
    assert is_classifier(estimator)
    assert tags.target_tags.required
    assert tags.classifier_tags.multi_class
    assert (tags.input_tags.sparse, tags.input_tags.pairwise) == (True, False)
    inner = {"estimator__kernel" if isinstance(estimator, CSearchCV) else "kernel": "precomputed"}
    of_kernel = get_tags(clone(estimator).set_params(**inner)).input_tags
    assert (of_kernel.sparse, of_kernel.pairwise) == (False, True)


@pytest.mark.parametrize("shown", [*ALL, TextVectorizer(), ColumnEncoder()], ids=lambda estimator: type(estimator).__name__)
def test_is_shown_with_its_parameters(shown):
    page = shown._repr_html_()
    assert all(f'<td class="param">{name}</td>' in page for name in shown.get_params(deep=False))
    assert "user-set" not in TextVectorizer()._repr_html_().split("<body>")[-1].split("</style>")[-1]


def test_is_shown_with_what_was_learnt(ranked):
    page = make_pipeline(MaxAbsScaler(), CSearchCV(NPSVOR(epsilon=0.25), Cs=[0.5, 1.0])).fit(*ranked)._repr_html_()
    assert all(shown in page for shown in ("best_C_", "NPSVOR", "0.25"))


def test_texts_stay_sparse_where_frames_are_wanted():
    """As with scikit-learn's TfidfVectorizer, whose matrix no frame could hold either."""
    with sklearn.config_context(transform_output="pandas"):
        assert TextVectorizer().fit_transform(TEXTS).format == "csr"
        assert make_pipeline(TextVectorizer(), NPSVOR()).fit(TEXTS, STARS).predict(["great value"]).tolist() == [5]
        frame = pd.DataFrame({"text": TEXTS, "age": range(20)})
        found = ColumnTransformer(
            [("text", TextVectorizer(), "text"), ("age", ColumnEncoder(sparse_output=False), ["age"])], sparse_threshold=1
        )
        with sklearn.config_context(transform_output="default"):
            assert found.fit_transform(frame).shape == (20, len(found.get_feature_names_out()))


def test_an_error_is_not_maximised(ranked):
    by_name = CSearchCV(NPSVOR(), Cs=[0.01, 1.0], scoring="mae").fit(*ranked)
    by_function = CSearchCV(NPSVOR(), Cs=[0.01, 1.0], scoring=metrics.mean_absolute_error).fit(*ranked)
    assert by_function.best_C_ == by_name.best_C_ == 1.0
    assert by_function.best_score_ == by_name.best_score_
    sentence = (
        r"^scoring must be a callable that is larger for better predictions\. Got mean_absolute_error: pass "
        r"make_scorer\(mean_absolute_error, greater_is_better=False\) instead\.$"
    )
    with pytest.raises(ValueError, match=sentence):
        CSearchCV(NPSVOR(), scoring=mean_absolute_error).fit(*ranked)


@pytest.mark.parametrize("n_ranks", [2, 4])
@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr", make_scorer(log_loss, response_method="predict_proba")])
def test_scorers_of_probabilities_find_the_columns_of_named_ranks(n_ranks, scoring):
    """They take columns to be sorted by label; ranks by name are not."""
    X, y = make_ranked(n_rows=300, n_ranks=n_ranks)
    names = np.array(["low", "high"] if n_ranks == 2 else ["low", "medium", "high", "highest"])
    numbered = CSearchCV(NPSVOR(probability=True), Cs=[1.0], cv=3, scoring=scoring).fit(X, y)
    named = CSearchCV(NPSVOR(probability=True, ranks=names), Cs=[1.0], cv=3, scoring=scoring).fit(X, names[y - 1])
    assert named.best_score_ == pytest.approx(numbered.best_score_, rel=1e-6)
    assert named.score(X, names[y - 1]) == pytest.approx(numbered.score(X, y), rel=1e-6)


def test_two_named_ranks_lean_the_right_way():
    X, y = make_ranked(n_ranks=2)
    names = np.array(["low", "high"])
    search = CSearchCV(NPSVOR(ranks=names), Cs=[1.0], cv=3, scoring="roc_auc").fit(X, names[y - 1])
    assert search.best_score_ > 0.8
    assert search.score(X, names[y - 1]) > 0.8
