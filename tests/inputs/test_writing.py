"""csv that is written with pyarrow and without is the same, and is read as what was written."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankplane.inputs.reading import Reading, text_batches
from rankplane.inputs.writing import quick_rows_of, rows_of, shares_in_words
from rankplane.text.packed import Texts

CELLS = st.text(st.sampled_from('ab,;"\n\r\t |^é日'), max_size=6)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.data(), st.sampled_from(",\t;|^"))
def test_with_pyarrow_and_without(data, delimiter):
    n_rows = data.draw(st.integers(1, 6))
    texts = data.draw(st.lists(CELLS, min_size=n_rows, max_size=n_rows))
    values = data.draw(st.lists(st.one_of(st.none(), st.booleans(), st.floats(), CELLS), min_size=n_rows, max_size=n_rows))
    columns = [Texts.of(texts), values, np.arange(n_rows), np.linspace(0, 1, n_rows).round(6), np.array(["x", "y,z"] * 6)[:n_rows]]
    found = rows_of(columns, delimiter)
    assert bytes(quick_rows_of(columns, delimiter)) == found
    read = list(csv.reader(io.StringIO(found.decode(), newline=""), delimiter=delimiter, strict=True))
    assert [row[0] for row in read] == texts
    if delimiter == ",":
        (batch,) = text_batches(io.BufferedReader(io.BytesIO(b"a,b,c,d,e\n" + found)), "t.csv", "csv", Reading())
        assert list(batch.columns["a"]) == texts


def test_probabilities_have_no_exponents():
    shares = np.array([0, 1, 0.5, 0.25, 1e-6, 1.2e-5, 0.999999, 0.1, 0.123456, 1 / 3])
    words = ["0.0", "1.0", "0.5", "0.25", "0.000001", "0.000012", "0.999999", "0.1", "0.123456", "0.333333"]
    assert shares_in_words(shares) == words
    many = np.random.default_rng(0).random(5000).round(6)
    np.testing.assert_array_equal([float(word) for word in shares_in_words(many)], many)


@pytest.mark.parametrize("labels", [np.array([3, 1, 3]), np.array(["low", "high, or so", "low"])])
def test_predicted_ranks(labels):
    expected = "".join(f'"{label}"\n' if "," in str(label) else f"{label}\n" for label in labels.tolist())
    assert rows_of([labels], ",").decode() == expected
