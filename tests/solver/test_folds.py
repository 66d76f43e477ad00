"""Rows are dealt out by whole groups, every part gets its share of every rank, and folds are walked side by side."""

import time
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import make_ranked
from rankplane.solver.folds import FoldScores, assign_parts, enough_folds, make_folds, walk_folds, widen
from rankplane.solver.lanes import Options


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
    parts = assign_parts(groups, ranks, np.array(shares), seed)
    assert set(parts.tolist()) <= set(range(len(shares)))
    for group in np.unique(groups):
        assert len(set(parts[groups == group].tolist())) == 1
    np.testing.assert_array_equal(parts, assign_parts(groups, ranks, np.array(shares), seed))


@pytest.mark.parametrize("n_copies", [1, 2, 3])
def test_every_part_gets_its_share_of_every_rank(n_copies):
    rng = np.random.default_rng(0)
    ranks = np.repeat(rng.choice(4, 1000, p=[0.6, 0.3, 0.08, 0.02]), n_copies)
    parts = assign_parts(np.repeat(np.arange(1000), n_copies), ranks, np.array([0.7, 0.3]), 1)
    for rank, count in enumerate(np.bincount(ranks)):
        assert abs(np.sum(parts[ranks == rank] == 1) - 0.3 * count) <= n_copies + 1


def test_a_few_rows_of_many_ranks_are_spread():
    parts = assign_parts(np.arange(20), np.arange(20), np.full(5, 0.2), 0)
    assert np.bincount(parts).tolist() == [4, 4, 4, 4, 4]


def test_large_groups_count_as_large():
    groups = np.r_[np.zeros(50), np.ones(30), np.arange(2, 22)].astype(int)
    parts = assign_parts(groups, np.zeros(100, dtype=int), np.array([0.5, 0.5]), 0)
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


def ranks_of(n_rows, seed=0):
    return np.random.default_rng(seed).choice(4, n_rows, p=[0.5, 0.3, 0.15, 0.05]).astype(np.int32)


@pytest.mark.parametrize(
    ("n_rows", "expected"),
    [
        (1000, [200] * 5),
        (5000, [1000] * 5),
        (6000, [1200] * 5),
        (7000, [1400] * 4),
        (10_000, [2000] * 3),
        (15_000, [3000] * 2),
        (25_000, [5000]),
        (100_000, [5000]),
    ],
)
def test_as_many_folds_as_hold_out_enough(n_rows, expected):
    """Enough are 5,000 here."""
    ranks = ranks_of(n_rows)
    folds = enough_folds(5, 5000, ranks[:, None], ranks, None, 0)
    assert [len(test) for test in folds.test] == pytest.approx(expected, abs=4)
    assert len(np.unique(np.concatenate(folds.test))) == sum(len(test) for test in folds.test)
    for is_train, test in zip(folds.is_train, folds.test, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(~is_train), test)
        # About the share of every rank.
        np.testing.assert_allclose(np.bincount(ranks[test]) / len(test), np.bincount(ranks) / n_rows, atol=3 / len(test))


def test_all_folds_where_fewer_would_not_be_enough():
    ranks = ranks_of(3000)
    few, all_five = enough_folds(5, 5000, ranks[:, None], ranks, None, 3), make_folds(5, ranks[:, None], ranks, None, 3)
    np.testing.assert_array_equal(few.is_train, all_five.is_train)


def test_the_rows_held_out_are_whole_groups():
    ranks = ranks_of(20_000)
    groups = np.random.default_rng(1).integers(0, 4000, 20_000)
    folds = enough_folds(5, 2000, None, ranks, groups, 0)
    (test,) = folds.test
    assert len(test) == pytest.approx(2000, rel=0.02)
    assert not np.intersect1d(groups[test], groups[folds.is_train[0]]).size


def test_groups_too_large_for_a_small_part_make_folds():
    groups = np.repeat(np.arange(5), 4000)
    folds = enough_folds(5, 1000, None, ranks_of(20_000), groups, 0)
    assert sorted(groups[test][0] for test in folds.test) == [0, 1, 2, 3, 4]
    assert all(len(test) == 4000 for test in folds.test)


def test_folds_of_any_number_are_one_table():
    """More than eight, which do not fit into a byte, and rows that several folds hold out or none."""
    X, y = make_ranked(n_rows=60)
    rng = np.random.default_rng(0)
    pairs = [(np.setdiff1d(np.arange(60), test), test) for test in (rng.choice(60, 12, replace=False) for _ in range(11))]
    folds = make_folds(pairs, X, (y - 1).astype(np.int32), None, 0)
    table = np.ones((4, 1, 2, 5))
    wide_rows, patterns = widen(table, (y - 1).astype(np.int32), folds, keeps_all=True)
    np.testing.assert_array_equal(wide_rows % 4, y - 1)
    np.testing.assert_array_equal(patterns[wide_rows // 4, 1:], folds.is_train.T)
    assert patterns[:, 0].all()


def scored(n_points):
    return FoldScores([np.full((2, 1), float(n_points))], np.array([1]), False)


class Steps:
    """Stands in for the lanes of a fold: takes down which points are solved, and sleeps where it is told to."""

    def __init__(self, fold, solved, slow):
        self.fold, self.solved, self.slow = fold, solved, slow

    def walk(self, tables, factors, on_report):
        for place in range(len(tables)):
            for _ in range(100 if (self.fold, place) in self.slow else 0):
                on_report()
                time.sleep(0.01)
            self.solved.append((self.fold, place))
            yield scored(place)


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
def test_walks_side_by_side_hand_out_points_in_order(n_threads):
    folds, solved = make_folds(4, np.zeros((40, 1)), ranks_of(40), None, 0), []
    fold_of = {tuple(test): number for number, test in enumerate(folds.test)}
    threads = {}

    def make(fold, options):
        number = fold_of[tuple(fold.test[0])]
        threads[number] = options.n_threads
        return Steps(number, solved, {(1, 2)})

    options = Options(tol=0.1, max_iter=10, n_threads=n_threads)
    started = time.perf_counter()
    with closing(walk_folds(make, folds, options, [None] * 6, [1.0] * 6, is_shared=False)) as points:
        for place, point in zip(range(2), points, strict=False):
            assert [scores[0, 0] for scores in point.held_out] == [place] * 4
    # The slow third point of a fold, which nobody asked for, is not waited for, nor is it begun on one thread.
    assert time.perf_counter() - started < 0.9
    assert (1, 2) not in solved
    assert {(fold, place) for fold in range(4) for place in range(2)} <= set(solved)
    if n_threads == 1:
        assert len(solved) == 8
    assert sum(threads.values()) == max(4, n_threads)


def test_a_fold_does_not_wait_for_the_others():
    """With two threads, the fold that is slow at its first point has the others go on meanwhile."""
    folds, solved = make_folds(3, np.zeros((30, 1)), ranks_of(30), None, 0), []
    fold_of = {tuple(test): number for number, test in enumerate(folds.test)}
    options = Options(tol=0.1, max_iter=10, n_threads=2)

    def make(fold, options):
        return Steps(fold_of[tuple(fold.test[0])], solved, {(0, 0)})

    next(walk_folds(make, folds, options, [None] * 3, [1.0] * 3, is_shared=False))
    assert solved.index((1, 1)) < solved.index((0, 0))


def test_an_error_in_a_fold_is_told():
    def make(fold, options):
        raise RuntimeError("no memory")

    options = Options(tol=0.1, max_iter=10, n_threads=2)
    with pytest.raises(RuntimeError, match="no memory"):
        next(walk_folds(make, make_folds(3, np.zeros((30, 1)), ranks_of(30), None, 0), options, [None], [1.0], is_shared=False))
