import numpy as np
import pandas as pd
import pytest

from rankplane import NPSVOR, CSearchCV
from rankplane.prediction.explanations import extremes


def test_terms_add_up_to_the_score(model, ranked):
    X, y = ranked
    fitted = model().fit(X, y)
    weights, offsets = fitted.boundary_planes()
    assert weights.shape == (30, 3)
    np.testing.assert_array_equal(fitted.boundary_planes([4, 0, 4])[0], weights[[4, 0, 4]])
    expected = X @ weights + offsets
    for top in (2, 100):
        for row, explanation in enumerate(fitted.explain(X[:10], top=top)):
            for k, boundary in enumerate(explanation.boundaries):
                shown = sum(v for _, v in boundary.up) + sum(v for _, v in boundary.down)
                assert shown + boundary.rest + boundary.bias == pytest.approx(boundary.score, abs=1e-12)
                assert boundary.score == pytest.approx(expected[row, k])
                assert all(v > 0 for _, v in boundary.up)
                assert all(v < 0 for _, v in boundary.down)
                if top == 100:
                    assert boundary.rest == pytest.approx(0, abs=1e-12)


def test_boundaries_decide_the_rank(ranked):
    """Counting the boundaries a row is above is the ranker of the ordered models."""
    from rankplane import KDLOR, SVMOP, SVOR, SVOREX, SVR, RedSVM

    X, y = ranked
    for model in (NPSVOR, SVMOP, RedSVM, SVOR, SVOREX, KDLOR, SVR):
        fitted = model().fit(X, y)
        above = [sum(b.score > 0 for b in e.boundaries) for e in fitted.explain(X)]
        np.testing.assert_array_equal(fitted.predict(X), 1 + np.array(above))


def test_names(ranked):
    X, y = ranked
    names = [f"word{i}" for i in range(30)]
    fitted = NPSVOR().fit(X, y)
    shown = {name for e in fitted.explain(X[:5], names) for b in e.boundaries for name, _ in b.up + b.down}
    assert shown <= set(names)
    frame = pd.DataFrame(X.toarray(), columns=names)
    assert NPSVOR().fit(frame, y).top_features()[0].up[0][0].startswith("word")
    with pytest.raises(ValueError, match=r"feature_names must have one name per feature, 30. Got 2."):
        fitted.explain(X, ["a", "b"])
    with pytest.raises(ValueError, match=r"top must be a positive integer. Got 0."):
        fitted.explain(X, top=0)


def test_top_features_are_the_largest_weights(ranked):
    X, y = ranked
    fitted = NPSVOR().fit(X, y)
    weights, _ = fitted.boundary_planes()
    for k, top in enumerate(fitted.top_features(n=3)):
        assert (top.lower, top.upper) == (k + 1, k + 2)
        assert top.up[0] == (f"column {np.argmax(weights[:, k])}", pytest.approx(weights[:, k].max()))
        assert top.down[0] == (f"column {np.argmin(weights[:, k])}", pytest.approx(weights[:, k].min()))
        assert len(top.up) == len(top.down) == 3


def test_in_words(ranked):
    X, y = ranked
    text = str(NPSVOR().fit(X, y).explain(X.toarray()[0])[0])
    assert "above 1|2" in text or "below 1|2" in text
    assert "bias" in text


def test_through_a_search(ranked):
    search = CSearchCV(NPSVOR(), Cs=[1.0]).fit(*ranked)
    assert len(search.explain(ranked[0][:2])) == 2
    assert len(search.top_features()) == 3


@pytest.mark.parametrize("n_columns", [1, 5, 20, 21, 500])
def test_the_most_important_of_many_columns(n_columns):
    values = np.random.default_rng(0).standard_normal(n_columns).round(1)
    up, down = extremes(values, np.arange(n_columns), 10, None)
    assert [value for _, value in up] == sorted(values[values > 0].tolist(), reverse=True)[:10]
    assert [value for _, value in down] == sorted(values[values < 0].tolist())[:10]
    assert all(values[int(name.split()[1])] == value for name, value in up + down)
