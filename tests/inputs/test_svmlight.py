"""Two parsers of the same lines: the quick one says what the exact one says, or nothing."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankplane.inputs.batches import InputError
from rankplane.inputs.svmlight import exact_matrix, quick_matrix

columns = st.one_of(
    st.integers(-1, 12).map(str), st.sampled_from(["+1", "1_0", "2147483647", "2147483648", "9" * 30, "٣", "x", ""])
)
values = st.one_of(st.floats().map(repr), st.sampled_from(["1", "+1", "1_0", "1e400", "-0", "0x1", "", "1:2", "٣", "\x1c1"]))
parts = st.one_of(st.tuples(columns, values).map(":".join), st.sampled_from(["qid:3", "qid:", "3", ":"]))
rows = st.lists(parts, max_size=4).flatmap(
    lambda listed: st.sampled_from([" ", "\t", "\x0b", "\u2003"]).map(lambda gap: gap.join(listed))
)


@given(st.lists(st.tuples(st.sampled_from(["1", "good", "1:1"]), rows), min_size=1, max_size=3))
@example([("1", "1:0.5 3:-1e-3"), ("good", "qid:1 2:7"), ("2", "")])
def test_parsers_agree(pairs):
    labels, cells = [label for label, _ in pairs], [row for _, row in pairs]
    quick = quick_matrix(labels, cells)
    try:
        exact = exact_matrix(labels, cells, [*range(len(pairs))], "t.svm")
    except InputError:
        assert quick is None
        return
    if quick is not None:
        assert quick.shape == exact.shape
        exact.sort_indices()
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(quick, part), getattr(exact, part))


@pytest.mark.parametrize("row", ["1:0.5 3:-1e-3 7:1e+10", "qid:1 2:7", "1:1\r\n"])
def test_plain_lines_take_the_quick_way(row):
    assert quick_matrix(["1", "good"], [row, "2:1"]) is not None
