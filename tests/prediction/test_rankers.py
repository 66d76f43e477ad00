import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankplane.prediction import rankers

scores_of_planes = arrays(np.float64, st.tuples(st.integers(1, 8), st.integers(2, 7)), elements=st.floats(-5, 5))


@given(scores_of_planes)
def test_by_the_formula_of_the_paper(scores):
    n_ranks = scores.shape[1]
    for row, nearest, ordered in zip(scores, rankers.nearest(scores), rankers.ordered(scores), strict=True):
        assert abs(row[nearest]) == np.min(np.abs(row))
        assert ordered == sum(row[k] + row[k + 1] > 0 for k in range(n_ranks - 1))


@given(scores_of_planes)
def test_ranks_are_in_range(scores):
    n_ranks = scores.shape[1]
    for ranks in (rankers.nearest(scores), rankers.ordered(scores), rankers.largest(scores), rankers.rounded(scores, n_ranks)):
        assert np.all((ranks >= 0) & (ranks < n_ranks))
    assert np.all(rankers.count(scores) <= n_ranks)


def test_small_cases():
    np.testing.assert_array_equal(rankers.nearest(np.array([[2.0, -0.1, -3.0]])), [1])
    np.testing.assert_array_equal(rankers.ordered(np.array([[2.0, -0.1, -3.0], [3.0, 1.0, 0.2], [-1.0, -2.0, -3.0]])), [1, 2, 0])
    np.testing.assert_array_equal(rankers.largest(np.array([[-1.0, 0.5, 0.2]])), [1])
    np.testing.assert_array_equal(rankers.count(np.array([[1.0, -0.5], [0.0, 0.0]])), [1, 0])
    np.testing.assert_array_equal(rankers.rounded(np.array([[0.2], [2.4], [2.6], [99.0]]), 4), [0, 1, 2, 3])
