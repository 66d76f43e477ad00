"""Texts and columns in one matrix: what each kind of column becomes, how they are scaled, and sentences for what fits neither."""

import datetime
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankplane import NPSVOR, ColumnEncoder, TableVectorizer, TextVectorizer, load_model, predict_rows, save_model
from rankplane.cli.app import main
from rankplane.spreading import moment_of
from rankplane.tabular import CellError

N = 120
WORDS = {1: "awful broke", 2: "poor slow", 3: "fine usual", 4: "good solid"}
STARS = [1 + row % 4 for row in range(N)]  # of which the words of every fifth row say something else
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=3 * row) for row in range(N)]
TABLE = {
    "review": [f"{WORDS[star if row % 5 else 1 + row % 3]} thing{row % 7} number{row}" for row, star in enumerate(STARS)],
    "price": [10.0 * star + row % 5 for row, star in enumerate(STARS)],
    "shop": ["north" if row % 3 else "south" for row in range(N)],
    "sold": DAYS,
    "vector": [[float(star), row % 2 - 0.5, 0.25] for row, star in enumerate(STARS)],
}


@parametrize_with_checks([TableVectorizer(text=[])])
def test_scikit_learn_checks(estimator, check):
    """None is expected to fail."""
    check(estimator)


KINDS = {
    "dict": lambda table: table,
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars, arrays": lambda table: pl.DataFrame(table, schema_overrides={"vector": pl.Array(pl.Float64, 3)}),
    "pyarrow": pa.table,
    "pandas, dates": lambda table: pd.DataFrame(table).assign(sold=pd.to_datetime(pd.Series(table["sold"]))),
    "matrix": lambda table: table | {"vector": np.array(table["vector"])},
    "texts of dates": lambda table: table | {"sold": [str(day) for day in table["sold"]]},
    "json lists": lambda table: table | {"vector": [json.dumps(numbers) for numbers in table["vector"]]},
}


@pytest.fixture(scope="module")
def fitted():
    return TableVectorizer(text="review").fit(TABLE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_same_matrix(kind, fitted):
    table = KINDS[kind](TABLE)
    X = clone(fitted).fit_transform(table)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X.toarray(), fitted.transform(TABLE).toarray())
    np.testing.assert_array_equal(fitted.transform(table).toarray(), X.toarray())


def test_words_come_first_and_columns_in_brackets(fitted):
    names = fitted.get_feature_names_out().tolist()
    words = TextVectorizer().fit(TABLE["review"])
    n_words = len(words.get_feature_names_out())
    assert names[:n_words] == words.get_feature_names_out().tolist()
    np.testing.assert_array_equal(fitted.transform(TABLE)[:, :n_words].toarray(), words.transform(TABLE["review"]).toarray())
    months = [f"[sold.month={month}]" for month in sorted({day.strftime("%B") for day in DAYS})]
    weekdays = [f"[sold.weekday={day}]" for day in sorted({day.strftime("%A") for day in DAYS})]
    places = [f"[vector.{place}]" for place in range(3)]
    assert names[n_words:] == ["[price]", "[shop=north]", "[shop=south]", "[sold]", *months, *weekdays, *places]
    assert fitted.feature_names_in_.tolist() == list(TABLE)
    assert fitted.n_features_in_ == 5


@pytest.mark.parametrize("scale", [0.25, 1.0, 3.0])
def test_columns_have_the_asked_length_beside_texts_of_length_one(scale):
    vectorizer = TableVectorizer(text="review", column_scale=scale)
    X = vectorizer.fit_transform(TABLE).toarray()
    n_words = len(vectorizer.vectorizer_.get_feature_names_out())
    np.testing.assert_allclose(np.linalg.norm(X[:, :n_words], axis=1), 1, rtol=1e-5)
    assert np.sqrt(np.mean(np.sum(X[:, n_words:] ** 2, axis=1))) == pytest.approx(scale, rel=1e-5)


def test_columns_alone_are_those_of_the_encoder_and_lists_count_as_one():
    plain = ["price", "shop"]
    encoded = ColumnEncoder(columns=plain).fit_transform(TABLE)
    vectorizer = TableVectorizer(text=[], columns=plain)
    np.testing.assert_array_equal(vectorizer.fit_transform(TABLE).toarray(), encoded.toarray())
    assert vectorizer.get_feature_names_out().tolist() == ["price", "shop=north", "shop=south"]
    varying = {"vector": [numbers[:2] for numbers in TABLE["vector"]]}
    X = TableVectorizer(text=[]).fit_transform(varying).toarray()
    assert np.mean(np.sum(X**2, axis=1)) == pytest.approx(1)


def test_texts_alone_and_several_columns_of_texts():
    table = {"title": ["good", None, "bad"], "review": ["good thing", "bad", float("nan")]}
    X = TableVectorizer(text=["title", "review"], vectorizer=TextVectorizer(min_df=1)).fit_transform(table)
    joined = TextVectorizer(min_df=1).fit_transform(["good\ngood thing", "\nbad", "bad\n"])
    np.testing.assert_array_equal(X.toarray(), joined.toarray())


def test_dates_are_days_months_weekdays_and_hours():
    moments = ["2024-02-29 18:30:00", "2024-03-01T06:00:00+02:00", None, "2024-03-02"]
    vectorizer = TableVectorizer(text=[]).fit({"at": moments})
    names = vectorizer.get_feature_names_out().tolist()
    assert names == [
        "at", "at.month=February", "at.month=March", "at.weekday=Friday", "at.weekday=Saturday", "at.weekday=Thursday",
        "at.hour=0:00", "at.hour=18:00", "at.hour=6:00",
    ]  # fmt: skip
    X = vectorizer.transform({"at": moments}).toarray()
    # 18:30 is 9 1/2 hours before 6:00 at two hours east of Greenwich, which is 4:00, and missing dates are as the mean.
    days = np.array([18.5 / 24, 1 + 4 / 24, np.nan, 2])
    np.testing.assert_allclose(X[[0, 1, 3], 0], ((days - np.nanmean(days)) / np.nanstd(days))[[0, 1, 3]])
    assert not X[2].any()
    assert [names[place] for place in np.flatnonzero(X[1, 1:]) + 1] == ["at.month=March", "at.weekday=Friday", "at.hour=6:00"]
    # The same moment in whatever form, and months that training has not seen.
    same = [np.datetime64("2024-02-29T18:30"), pd.Timestamp("2024-02-29 18:30"), datetime.datetime(2024, 2, 29, 18, 30)]
    np.testing.assert_array_equal(vectorizer.transform({"at": same}).toarray(), X[[0, 0, 0]])
    assert vectorizer.transform({"at": ["2024-07-01"]}).toarray()[0, 1:3].tolist() == [0, 0]


@pytest.mark.parametrize("value", ["2024-02-30", "2024", "soon", 20240101, [2024, 1, 1], None])
def test_what_is_no_date(value):
    assert moment_of(value) is None


BAD = {
    "a word among dates": ({"sold": ["2024-01-01", "soon"]}, "Column 'sold' must hold dates, as it did in training. Got"),
    "a longer list": ({"vector": [[1, 2, 3], [1, 2, 3, 4]]}, "Column 'vector' must hold lists of 3 numbers, as it did in"),
    "a number for a list": ({"vector": [1, 2]}, "Column 'vector' must hold lists of 3 numbers, as it did in training. Got 1."),
    "words in a list": ({"vector": [[1, 2, 3], ["a", "b", "c"]]}, "Column 'vector' must hold lists of 3 numbers, as it did in"),
    "a word for a number": ({"price": [1, "cheap"]}, "Column 'price' must hold numbers, as it did in training. Got 'cheap'."),
    "lengths": ({"price": [1]}, "X must have columns of one length. Got 1 values in 'price', 2 in 'shop'."),
    "texts": ({"review": ["a"]}, "X must have columns of one length. Got 1 texts and 2 other values."),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_values_are_one_sentence(case, fitted):
    change, sentence = BAD[case]
    table = {name: values[:2] for name, values in TABLE.items()} | change
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}") as caught:
        fitted.transform(table)
    if "length" not in sentence:
        assert isinstance(caught.value, CellError)
        assert caught.value.row == (0 if case == "a number for a list" else 1)


@pytest.mark.parametrize(
    ("params", "table", "sentence"),
    [
        ({"text": "title"}, TABLE, 'X has no column "title": its columns are'),
        ({"text": "review", "columns": ["prise"]}, TABLE, 'X has no column "prise": did you mean "price"?'),
        ({"text": "review", "columns": ["review"]}, TABLE, 'columns must not name "review", which text names.'),
        ({"text": 3}, TABLE, "text must be the name of a column, or a list of different names. Got 3."),
        ({"text": ["review", "review"]}, TABLE, "text must be the name of a column, or a list of different names. Got ['review'"),
        ({"text": "review", "column_scale": 0}, TABLE, "column_scale must be a positive number. Got 0."),
        ({"text": []}, {}, "X must have at least one column."),
        ({"text": []}, {"a": [{"b": 1}]}, "Column 'a' must hold numbers or words, not objects. Got {'b': 1}."),
        ({"text": []}, {"a": [[1], [1, 2]]}, "Column 'a' must hold numbers or words, not lists. Got [1]."),
        ({"text": []}, {"a": [[1]], "a.0": [1]}, 'X has a column "a.0", which is also a part of another column: rename it.'),
    ],
)
def test_bad_parameters_are_one_sentence(params, table, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        TableVectorizer(**params).fit(table)


def test_a_model_file_holds_it(fitted, tmp_path):
    vectorizer = clone(fitted).set_params(vectorizer=TextVectorizer(ngram_range=(1, 1)), column_scale=2.0)
    pipeline = make_pipeline(vectorizer, NPSVOR(probability=True)).fit(TABLE, STARS)
    save_model(pipeline, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(TABLE), pipeline.predict_proba(TABLE))
    assert loaded[0].get_feature_names_out().tolist() == pipeline[0].get_feature_names_out().tolist()
    # As an unfitted part, the vectorizer has its parameters again.
    assert loaded[0].vectorizer.ngram_range == (1, 1)
    np.testing.assert_array_equal(clone(loaded[0]).fit_transform(TABLE).toarray(), pipeline[0].transform(TABLE).toarray())


def named(*names):
    return [word for name in names for word in ("--column", name)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    pa.parquet.write_table(pa.table(TABLE | {"stars": STARS, "other": ["x"] * N}), folder / "in.parquet")
    given = ["train", str(folder / "in.parquet"), "--target", "stars", "--text", "review"]
    assert (
        main([*given, *named("price", "shop", "sold", "vector"), "-o", str(folder / "m"), "--report", str(folder / "r.html")]) == 0
    )
    return folder


def test_the_command_line_trains_and_tells_what_it_takes(trained, capsys):
    assert main(["info", str(trained / "m"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["inputs"]["text"] == ["review"]
    assert facts["inputs"]["columns"] == ["price", "shop", "sold", "vector"]
    assert facts["steps"] == ["TableVectorizer", "NPSVOR"]
    told = {name for found in facts["important"] for name, _ in [*found["up"], *found["down"]]}
    assert "[price]" in told
    assert told & {"awful", "poor", "fine", "good"}
    assert main(["info", str(trained / "m")]) == 0
    assert "text in column review; columns price, shop, sold, vector" in capsys.readouterr().out
    page = (trained / "r.html").read_text()
    assert "Most important terms and columns" in page
    assert "--text review --column price --column shop --column sold --column vector" in page


def test_rows_are_predicted_from_files_and_as_dicts(trained, capsys):
    assert main(["predict", str(trained / "m"), str(trained / "in.parquet"), "-o", str(trained / "out.csv")]) == 0
    by_file = pd.read_csv(trained / "out.csv")["prediction"].tolist()
    rows = [{name: TABLE[name][row] for name in TABLE} for row in range(N)]
    assert predict_rows(load_model(trained / "m"), rows).tolist() == by_file
    assert np.mean(np.array(by_file) == STARS) > 0.9
    capsys.readouterr()
    given = {"review": "good thing1", "price": 41, "shop": "north", "sold": "2024-05-01", "vector": [4, 0.5, 0.25]}
    assert main(["explain", str(trained / "m"), json.dumps(given), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["words"] == {"known": 2, "all": 2}
    for boundary in told["boundaries"]:
        terms = dict(map(tuple, boundary["up"] + boundary["down"]))
        assert sum(terms.values()) + boundary["rest"] + boundary["bias"] == pytest.approx(boundary["score"])
    assert {"[price]", "good"} <= {name for b in told["boundaries"] for name, _ in b["up"] + b["down"]}
    assert main(["explain", str(trained / "m"), json.dumps(given)]) == 0
    assert "[price]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (named("review"), '--column must not name "review", which --text names.'),
        (named("price", "price"), '--column must name different columns. Got "price" twice.'),
        (named("stars"), '--column must not name "stars", the column of the ranks: the model would see what to predict.'),
        (named("pric"), 'has no column "pric": did you mean "price"?'),
        (named("mixed"), 'Of "mixed", it holds lists.'),
    ],
)
def test_columns_that_cannot_be_features(options, sentence, tmp_path, capsys):
    table = TABLE | {"stars": STARS, "mixed": [[1.0] * (1 + row % 2) for row in range(N)]}
    pa.parquet.write_table(pa.table(table), tmp_path / "in.parquet")
    given = ["train", str(tmp_path / "in.parquet"), "--target", "stars", "--text", "review", "-o", str(tmp_path / "m")]
    assert main([*given, *options]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_columns_without_texts_are_those_that_were_named(tmp_path, capsys):
    pa.parquet.write_table(pa.table(TABLE | {"stars": STARS}), tmp_path / "in.parquet")
    given = ["train", str(tmp_path / "in.parquet"), "--target", "stars", "-o", str(tmp_path / "m"), "--C", "1", "--json"]
    for names, step in ((["price", "shop"], "ColumnEncoder"), (["sold", "vector"], "TableVectorizer")):
        assert main([*given, *named(*names)]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["inputs"]["columns"] == names
        assert "left_out" not in told["data"]
        assert type(load_model(tmp_path / "m")[0]).__name__ == step
