"""Packed texts are what a list of them is."""

import gc
import weakref

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankplane._core import Corpus
from rankplane.inputs.arrow import arrow_of, texts_of_arrow
from rankplane.text import TextVectorizer
from rankplane.text.packed import Texts, concatenated
from test_bindings import make_corpus

LETTERS = st.text(st.one_of(st.sampled_from("ab \udc80"), st.characters()), max_size=4)
LISTS = st.lists(st.one_of(st.none(), LETTERS), max_size=9)
QUICK = settings(max_examples=100, deadline=None, derandomize=True, database=None)


@QUICK
@given(st.lists(LISTS, max_size=4), st.data())
def test_as_a_list(parts, data):
    values = [value for part in parts for value in part]
    texts = concatenated(map(Texts.of, parts))
    assert (len(texts), list(texts), texts) == (len(values), values, values)
    start, stop, step = data.draw(st.tuples(*[st.one_of(st.none(), st.integers(-12, 12))] * 2, st.integers(1, 3)))
    assert texts[start:stop:step] == values[start:stop:step]
    rows = sorted(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=12))) if values else []
    taken = texts.take(np.array(rows, dtype=np.intp))
    assert taken == [values[row] for row in rows]
    assert taken.packed() == taken
    assert taken.packed().n_bytes == sum(len(part.buffer) for part in taken.packed().parts)
    assert taken.filled() == [value or "" for value in taken]
    for row in (*range(len(values)), *range(-len(values), 0)):
        assert texts[row] == values[row]
    for row in (len(values), -len(values) - 1):
        with pytest.raises(IndexError):
            texts[row]


@QUICK
@given(LISTS, LISTS)
def test_equal_texts_have_the_same_number(values, others):
    numbers: dict = {}
    texts = concatenated([Texts.of(values), Texts.of(others)])
    assert texts.alike().tolist() == [numbers.setdefault(value, len(numbers)) for value in values + others]
    assert Texts.of(values).n_shared(Texts.of(others)) == len(set(values) & set(others) - {"", None})


def test_texts_with_the_same_hash_are_told_apart(monkeypatch):
    monkeypatch.setattr(Texts, "hashes", lambda self: np.zeros(len(self), dtype=np.int64))
    texts = Texts.of(["a", "b", None, "a", "", "b"])
    assert texts.alike().tolist() == [0, 1, 2, 0, 3, 1]
    assert texts.n_shared(Texts.of(["c", "b", "", None])) == 1


def test_rows_are_taken_in_order():
    with pytest.raises(ValueError, match="rows must be in ascending order"):
        Texts.of(["a", "b"]).take(np.array([1, 0]))


@QUICK
@given(st.lists(st.one_of(st.none(), st.text(max_size=4)), max_size=9), st.data())
def test_to_and_from_pyarrow(values, data):
    start = data.draw(st.integers(0, len(values)))
    for kind in (pa.string(), pa.large_string()):
        array = pa.array(values, kind)
        assert texts_of_arrow(array) == values
        assert texts_of_arrow(array[start:]) == values[start:]
        assert texts_of_arrow(pa.chunked_array([array, array[start:]])) == values + values[start:]
    for texts, expected in (
        (Texts.of(values), values),
        (Texts.of(values)[start:], values[start:]),
        (Texts.of(values)[::2], values[::2]),
    ):
        assert arrow_of(texts).to_pylist() == expected
        arrow_of(texts).validate(full=True)


def test_a_drained_column_frees_its_memory_part_by_part():
    texts = concatenated(Texts.of(["x" * 100]) for _ in range(3))
    buffers = [weakref.ref(part.buffer) for part in texts.parts]
    alive = []
    for _ in texts.drained():
        gc.collect()
        alive.append(sum(buffer() is not None for buffer in buffers))
    assert alive == [3, 2, 1]
    assert len(texts) == 0


@pytest.mark.parametrize("n_bytes", [1, 10, 10_000])
def test_parts_are_read_together(n_bytes, monkeypatch):
    monkeypatch.setattr("rankplane.text.documents._N_BYTES", n_bytes)
    documents = [["good value", None], [""], ["not good", "ünïcode"]]
    expected = TextVectorizer(min_df=1).fit_transform([document or "" for part in documents for document in part])
    found = TextVectorizer(min_df=1, n_jobs=2).fit_transform(concatenated(map(Texts.of, documents)))
    assert (found != expected).nnz == 0


@pytest.mark.parametrize(
    ("starts", "ends", "sentence"),
    [
        ([0], [5], "must lie within"),
        ([-1], [2], "must lie within"),
        ([2], [1], "must lie within"),
        ([0, 1], [1], "as many starts as ends"),
    ],
)
def test_pieces_that_do_not_fit(starts, ends, sentence):
    corpus: Corpus = make_corpus(())
    text = np.frombuffer(b"good", dtype=np.uint8)
    with pytest.raises(ValueError, match=sentence):
        corpus.add_pieces([(text, np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64))], None)
