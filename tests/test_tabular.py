"""Columns of tables: from every kind of table the same matrix, and sentences for those that make none."""

import datetime
import importlib.util
import re
import subprocess
import sys
import textwrap
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankplane import NPSVOR, load_model, save_model
from rankplane.tabular import CellError, ColumnEncoder, is_missing, is_number

TABLE = {"age": [31, None, 55, 40], "town": ["Ulm", "Bonn", None, "Ulm"], "smokes": [True, False, True, None]}


def rows_of(table):
    return np.array([list(row) for row in zip(*table.values(), strict=True)], dtype=object)


KINDS = {
    "dict": lambda table: table,
    "pandas": pd.DataFrame,
    "pandas, nullable": lambda table: pd.DataFrame(table).convert_dtypes(),
    "pandas, categorical": lambda table: pd.DataFrame(table).astype({"town": "category"}),
    "polars": pl.DataFrame,
    "polars, categorical": lambda table: pl.DataFrame(table, schema_overrides={"town": pl.Categorical}),
    "pyarrow": pa.table,
    "pyarrow, dictionary": lambda table: pa.table(table | {"town": pa.array(table["town"]).dictionary_encode()}),
    "pyarrow batch": lambda table: pa.RecordBatch.from_pydict(table),
    "dict of arrays": lambda table: {name: np.array(values, dtype=object) for name, values in table.items()},
    "dict of series": lambda table: {name: pd.Series(values) for name, values in table.items()},
    "array": rows_of,
    "lists": lambda table: rows_of(table).tolist(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_matrix(kind):
    expected = ColumnEncoder().fit(TABLE)
    encoder = ColumnEncoder().fit(KINDS[kind](TABLE))
    np.testing.assert_allclose(encoder.transform(KINDS[kind](TABLE)).toarray(), expected.transform(TABLE).toarray(), atol=1e-12)
    assert encoder.n_features_in_ == 3
    names = [f"column {place}" for place in range(3)] if kind in ("array", "lists") else list(TABLE)
    assert encoder.names_ == names
    assert encoder.get_feature_names_out().tolist() == [names[0], f"{names[1]}=Bonn", f"{names[1]}=Ulm", names[2]]


@pytest.mark.parametrize("kind", KINDS)
def test_fitted_on_a_frame_and_asked_with_another_kind(kind):
    encoder = ColumnEncoder().fit(pd.DataFrame(TABLE))
    np.testing.assert_allclose(encoder.transform(KINDS[kind](TABLE)).toarray(), encoder.transform(TABLE).toarray())


def test_names_find_columns_and_places_those_of_arrays():
    encoder = ColumnEncoder(columns=["town", "age"]).fit(pd.DataFrame(TABLE))
    expected = encoder.transform(TABLE).toarray()
    assert encoder.get_feature_names_out().tolist() == ["town=Bonn", "town=Ulm", "age"]
    shuffled = {"more": [[1]] * 4, "age": TABLE["age"], "town": TABLE["town"]}
    np.testing.assert_array_equal(encoder.transform(shuffled).toarray(), expected)
    np.testing.assert_array_equal(encoder.transform(rows_of(TABLE)[:, [1, 0]]).toarray(), expected)
    unnamed = ColumnEncoder().fit(rows_of(TABLE))
    np.testing.assert_array_equal(unnamed.transform(TABLE).toarray(), unnamed.transform(rows_of(TABLE)).toarray())
    numbered = pd.DataFrame(rows_of(TABLE))
    assert ColumnEncoder().fit(numbered).feature_names_in_.tolist() == ["0", "1", "2"]


def test_names_as_scikit_learn_has_them():
    encoder = ColumnEncoder()
    assert not hasattr(encoder, "n_features_in_")
    assert not hasattr(encoder, "feature_names_in_")
    encoder.fit(TABLE)
    assert encoder.feature_names_in_.tolist() == list(TABLE)
    assert encoder.get_feature_names_out(list(TABLE)).tolist() == encoder.get_feature_names_out().tolist()
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        encoder.get_feature_names_out(["a", "b", "c"])
    encoder = clone(encoder).fit(rows_of(TABLE))
    assert not hasattr(encoder, "feature_names_in_")
    assert encoder.get_feature_names_out(["a", "b", "c"]).tolist() == ["a", "b=Bonn", "b=Ulm", "c"]
    with pytest.raises(ValueError, match=r"should have length equal to number of features, 3\. Got 2 names\."):
        encoder.get_feature_names_out(["a", "b"])


def test_set_output():
    encoder = ColumnEncoder(sparse_output=False).set_output(transform="pandas")
    found = encoder.fit_transform(pd.DataFrame(TABLE, index=list("wxyz")))
    assert list(found.columns) == ["age", "town=Bonn", "town=Ulm", "smokes"]
    assert list(found.index) == list("wxyz")
    assert list(encoder.set_output(transform="polars").transform(TABLE).columns) == list(found.columns)
    with pytest.raises(ValueError, match="Try to set the transformer output to a dense array"):
        ColumnEncoder().set_output(transform="pandas").fit_transform(TABLE)


@parametrize_with_checks([ColumnEncoder(), ColumnEncoder(sparse_output=False)])
def test_scikit_learn_checks(estimator, check):
    """None is expected to fail."""
    check(estimator)


def test_some_columns_of_an_array():
    X = np.arange(12.0).reshape(4, 3)
    found = ColumnEncoder(columns=["column 1"]).fit(X).transform(X)
    np.testing.assert_array_equal(found.toarray(), ColumnEncoder().fit_transform(X[:, 1:2]).toarray())
    with pytest.raises(ValueError, match='X has no column "column 1": did you mean "column 0"'):
        ColumnEncoder(columns=["column 1"]).fit(X).transform(X[:, :1])


BAD = {
    "unknown column": ({"aeg": [1], "town": ["Ulm"], "smokes": [1]}, 'X has no column "age": did you mean "aeg"?'),
    "no column like it": ({"x": [1], "y": [2]}, 'X has no column "age": its columns are x, y.'),
    "too few columns": (np.ones((2, 2)), "X has 2 features, but ColumnEncoder is expecting 3 features as input."),
    "word among numbers": (TABLE | {"age": [1, 2, "old", 4]}, "Column 'age' must hold numbers, as it did in training. Got 'old'."),
    "list among numbers": (TABLE | {"age": [1, [2], 3, 4]}, "Column 'age' must hold numbers, as it did in training. Got [2]."),
    "list among words": (
        TABLE | {"town": ["Ulm", ["Bonn"], "", ""]},
        "Column 'town' must hold numbers or words, not lists. Got ['Bonn'].",
    ),
    "unequal lengths": (TABLE | {"town": ["Ulm"]}, "X must have columns of one length. Got 4 values in 'age', 1 in 'town'."),
    "a word for a column": ({"age": [1], "town": "Ulm", "smokes": [1]}, "Column 'town' must be a list of values. Got 'Ulm'."),
    "a number for a column": ({"age": 31, "town": ["Ulm"], "smokes": [1]}, "Column 'age' must be a list of values. Got 31."),
    "two dimensions": (
        {"age": np.ones((4, 2)), "town": [""], "smokes": [1]},
        "Column 'age' must have one dimension. Got an array of",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_one_sentence(case, tmp_path):
    table, sentence = BAD[case]
    pipeline = make_pipeline(ColumnEncoder(), NPSVOR()).fit(TABLE, [1, 2, 1, 2])
    save_model(pipeline, tmp_path / "m")
    for model in (pipeline, load_model(tmp_path / "m")):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
            model.predict(table)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({}, "X must have at least one column."),
        ({"a": []}, "X must have at least one row."),
        (pd.DataFrame({"a": []}), "X must have at least one row."),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), 'X has a column "a" twice.'),
        (pl.LazyFrame({"a": [1]}), "X must be a table in memory: collect() it first. Got a LazyFrame."),
        (np.ones(3), "Expected 2D array"),
        (sp.eye_array(3), "Sparse data was passed"),
    ],
)
def test_tables_that_nothing_can_be_learnt_of(table, sentence):
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(sentence)}"):
        ColumnEncoder().fit(table)


UNFIT = {
    "dates": [datetime.date(2024, 1, 31), None],
    "times": [datetime.datetime(2024, 1, 31, tzinfo=datetime.UTC)],
    "durations": [datetime.timedelta(1)],
    "numpy dates": np.array(["2024-01-31", "NaT"], dtype="datetime64[ns]"),
    "numpy durations": np.array([1, 2], dtype="timedelta64[s]"),
    "pandas dates": pd.to_datetime(pd.Series(["2024-01-31", None])),
    "pandas dates with a zone": pd.to_datetime(pd.Series(["2024-01-31"])).dt.tz_localize("UTC"),
    "polars dates": pl.Series([datetime.date(2024, 1, 31)]),
    "arrow times": pa.array([1], pa.timestamp("ns", tz="UTC")),
    "lists": [[1, 2], None],
    "objects": ["x", {"a": 1}],
    "tuples": [(1, 2)],
    "polars lists": pl.Series([[1], [2]]),
    "arrow objects": pa.array([{"a": 1}]),
    "bytes": [b"12", b"x"],
    "complex": [1j],
}


@pytest.mark.parametrize("case", UNFIT)
def test_values_that_are_neither_numbers_nor_words(case):
    kind = case.split()[-1]
    words = {"times": "dates or times", "dates": "dates or times", "durations": "dates or times", "tuples": "lists"}
    words |= {"zone": "dates or times", "complex": "complex numbers"}
    with pytest.raises(CellError, match=f"^Column 'a' must hold numbers or words, not {words.get(kind, kind)}. Got "):
        ColumnEncoder().fit({"a": UNFIT[case]})


@pytest.mark.parametrize(
    "values",
    [
        [Decimal("1.5"), Decimal("2.5")],
        ["1.5", " 2.5 "],
        [np.float32(1.5), np.float32(2.5)],
        np.array([1.5, 2.5], dtype=np.float16),
        pa.array([Decimal("1.5"), Decimal("2.5")]),
        pl.Series([Decimal("1.5"), Decimal("2.5")]),
        pd.Series([1.5, 2.5], dtype="Float32"),
    ],
)
def test_numbers_of_all_kinds(values):
    encoder = ColumnEncoder().fit({"a": values})
    assert (encoder.means_.tolist(), encoder.deviations_.tolist()) == ([2.0], [0.5])
    np.testing.assert_array_equal(encoder.transform({"a": values}).toarray(), [[-1], [1]])


def test_booleans_are_numbers_however_they_are_written():
    encoder = ColumnEncoder().fit({"a": ["true", "False", "TRUE", ""]})
    assert encoder.categories_ == {}
    for values in ([True, False], ["true", "false"], [1, 0], np.array([True, False])):
        expected = encoder.transform({"a": ["true", "False"]}).toarray()
        np.testing.assert_array_equal(encoder.transform({"a": values}).toarray(), expected)


def test_numbers_at_the_edges():
    largest = np.finfo(float).max
    encoder = ColumnEncoder().fit({"a": [largest, -largest, np.nan, None], "b": [2**64, "", 0, None], "c": [5e-324, 0, 0, 0]})
    found = encoder.transform({"a": [largest, np.nan], "b": [2**64, None], "c": [5e-324, 0]}).toarray()
    np.testing.assert_allclose(found[:, :2], [[1, 1], [0, 0]])
    assert np.all(np.isfinite(found))
    same = ColumnEncoder().fit({"a": [0.1] * 3})  # whose deviation is not zero when it is computed
    np.testing.assert_allclose(same.transform({"a": [0.1, 0.3]}).toarray(), [[0], [0.2]])


@pytest.mark.parametrize("infinite", [np.inf, -np.inf, "inf", "1e999", 10**400, -(10**400)])
def test_infinite_numbers_are_refused(infinite):
    rows = {"a": [1.0, infinite, 2.0]}
    message = f"Column 'a' must hold finite numbers. Got {repr(infinite)[:57]}"  # and no more of a long one
    with pytest.raises(ValueError, match=re.escape(message)):
        ColumnEncoder().fit(rows)
    with pytest.raises(ValueError, match=re.escape(message)):
        ColumnEncoder().fit({"a": [1.0, 3.0]}).transform(rows)
    with pytest.raises(ValueError, match=re.escape("Column 'a' must hold finite numbers. Got inf")):
        ColumnEncoder().fit(pd.DataFrame({"a": [1.0, np.inf]}))
    assert ColumnEncoder().fit({"a": ["inf", "red"]}).categories_ == {"a": ["inf", "red"]}


def test_words_that_python_takes_for_numbers():
    assert not is_number("1_000")
    assert is_number("1e3")
    assert [is_missing(value) for value in (True, False, 0, np.True_, np.False_)] == [False] * 5
    assert is_missing(pd.NA)
    assert is_missing(pd.NaT)
    assert not is_missing(np.array([np.nan, 1]))
    assert ColumnEncoder().fit({"a": ["1_000", "2_000"]}).categories_ == {"a": ["1_000", "2_000"]}


def test_no_rows_to_transform():
    assert ColumnEncoder().fit(TABLE).transform({name: [] for name in TABLE}).shape == (0, 4)
    assert ColumnEncoder().fit(rows_of(TABLE)).transform(rows_of(TABLE)[:0]).shape == (0, 4)


def test_many_columns():
    X = np.arange(40_000.0).reshape(2, 20_000)
    np.testing.assert_array_equal(ColumnEncoder().fit_transform(X).toarray(), np.repeat([[-1.0], [1.0]], 20_000, axis=1))


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy comes with the linters")
def test_types_accept_every_kind_of_table(tmp_path):
    snippet = """
        import numpy as np
        import pandas as pd
        import polars as pl
        from rankplane.tabular import ColumnEncoder

        encoder = ColumnEncoder(columns=["a"], sparse_output=False)
        encoder.fit(pd.DataFrame({"a": [1]})).transform(pl.DataFrame({"a": [1]}))
        encoder.fit({"a": [1], "b": [2]}).transform({"a": ("x", None)})
        encoder.fit(np.ones((2, 2))).transform([[1.0, 2.0]])
        encoder.fit({"a": np.ones(2)}).transform({"a": pd.Series([1]), "b": pl.Series([2])})

        class Frame:
            columns = ["a"]

            def __getitem__(self, name: str) -> list[int]:
                return [1]

        encoder.fit(Frame()).get_feature_names_out().tolist()
        encoder.fit(3.5j, weights=[1])
    """
    (tmp_path / "snippet.py").write_text(textwrap.dedent(snippet))
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-pandas.*]\nignore_missing_imports = True\n")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(tmp_path / "cache"), "snippet.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 1, done.stdout + done.stderr
    assert 'Unexpected keyword argument "weights"' in errors[0]
