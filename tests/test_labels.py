"""Labels as ranks: their order, their counts, and the weights of rows."""

import numpy as np
import pytest

from rankplane.labels import Labels


def test_order_numbers_and_counts():
    found = Labels.of([2, 0, 2, 1], 4, None)
    assert found.order.tolist() == [0, 1, 2]
    assert found.numbers.tolist() == [2, 0, 2, 1]
    assert found.counts.tolist() == [1, 1, 2]
    assert found.n_ranks == 3


def test_ranks_that_do_not_occur_are_counted():
    found = Labels.of(["low", "high", "low"], 3, ["low", "medium", "high"])
    assert found.numbers.tolist() == [0, 2, 0]
    assert found.counts.tolist() == [2, 0, 1]


def test_row_weights_are_those_of_the_class_times_those_of_the_sample():
    labels = Labels.of([1, 1, 1, 2], 4, None)
    samples = np.array([1.0, 2.0, 0.5, 1.0])
    assert labels.row_weights(None, None) is None
    assert labels.row_weights(None, samples) is samples
    assert labels.row_weights({1: 3, 2: 1}, None).tolist() == [3, 3, 3, 1]
    assert labels.row_weights({1: 3, 2: 1}, samples).tolist() == [3, 6, 1.5, 1]
    balanced = labels.row_weights("balanced", None)
    assert balanced[:3].sum() == pytest.approx(balanced[3])


def test_balanced_by_the_counts_of_all_workers():
    labels = Labels.of([1, 2], 2, None)
    of_all = labels.row_weights("balanced", None, np.array([30, 10]))
    assert of_all[1] == pytest.approx(3 * of_all[0])


@pytest.mark.parametrize(("y", "ranks"), [([3, 3], None), (["low"], ["low", "high"])])
def test_one_rank_is_not_enough(y, ranks):
    with pytest.raises(ValueError, match=r"y must contain at least two different ranks; .* Got only "):
        Labels.of(y, len(y), ranks)
