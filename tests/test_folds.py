"""Rows are dealt out by whole groups, and every part gets its share of every rank."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankplane.solver.folds import deal, make_folds


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n_groups=st.integers(2, 60),
    n_ranks=st.integers(1, 5),
    shares=st.sampled_from([(0.5, 0.5), (0.8, 0.2), (0.2,) * 5]),
)
def test_groups_stay_whole(seed, n_groups, n_ranks, shares):
    rng = np.random.default_rng(seed)
    groups, ranks = rng.integers(0, n_groups, 80), rng.integers(0, n_ranks, 80)
    parts = deal(groups, ranks, np.array(shares), seed)
    assert set(parts.tolist()) <= set(range(len(shares)))
    for group in np.unique(groups):
        assert len(set(parts[groups == group].tolist())) == 1
    np.testing.assert_array_equal(parts, deal(groups, ranks, np.array(shares), seed))


@pytest.mark.parametrize("n_copies", [1, 2, 3])
def test_every_part_gets_its_share_of_every_rank(n_copies):
    rng = np.random.default_rng(0)
    ranks = np.repeat(rng.choice(4, 1000, p=[0.6, 0.3, 0.08, 0.02]), n_copies)
    parts = deal(np.repeat(np.arange(1000), n_copies), ranks, np.array([0.7, 0.3]), 1)
    for rank, count in enumerate(np.bincount(ranks)):
        assert abs(np.sum(parts[ranks == rank] == 1) - 0.3 * count) <= n_copies + 1


def test_a_few_rows_of_many_ranks_are_spread():
    parts = deal(np.arange(20), np.arange(20), np.full(5, 0.2), 0)
    assert np.bincount(parts).tolist() == [4, 4, 4, 4, 4]


def test_large_groups_count_as_large():
    groups = np.r_[np.zeros(50), np.ones(30), np.arange(2, 22)].astype(int)
    parts = deal(groups, np.zeros(100, dtype=int), np.array([0.5, 0.5]), 0)
    assert np.bincount(parts).tolist() == [50, 50]


def test_no_more_folds_than_groups():
    groups, ranks = np.repeat([4, 7, 9], 10), np.tile([0, 1], 15).astype(np.int32)
    folds = make_folds(5, None, ranks, groups, 0)
    assert sorted(sorted(set(groups[test])) for test in folds.test) == [[4], [7], [9]]
    with pytest.raises(ValueError, match="groups must hold at least two different values"):
        make_folds(5, None, ranks, np.zeros(30), 0)
    with pytest.raises(ValueError, match=r"groups must have one entry per row, 30\. Got 3"):
        make_folds(5, None, ranks, np.arange(3), 0)


@pytest.mark.parametrize("n_groups", [2, 3, 4])
def test_no_fold_holds_everything_out(n_groups):
    """Where every group is a rank of its own, as when each rank has one text."""
    groups = np.tile(np.arange(n_groups), 10).astype(np.int32)
    folds = make_folds(5, None, groups, groups, 0)
    assert len(folds.test) > 1
    assert folds.is_train.any(axis=1).all()
