"""Rows as dicts get the predictions that the same rows of a file get, and what does not fit is named by its place."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

from rankplane import NPSVOR, TextVectorizer, load_model, predict_rows, save_model
from rankplane.cli import main
from rankplane.training.model import TrainedModel
from rankplane.training.rows import features_of_rows
from reviews import REVIEWS, STARS, make_rows, read_csv, write_csv


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rows")


def trained(folder, name, data, *options):
    path = str(folder / name)
    assert main(["train", data, "--C", "1", "--holdout", "0", *options, "-o", path]) == 0
    return path


@pytest.fixture(scope="module")
def of_texts(folder):
    data = write_csv(folder / "reviews.csv", make_rows(150))
    return trained(folder, "texts.rankplane", data, "--target", "stars", "--text", "title", "--text", "review")


@pytest.fixture(scope="module")
def of_columns(folder):
    rows = [{"age": 20 + n % 60, "smoker": ["yes", "no", ""][n % 3], "risk": ["low", "high"][n % 60 // 30]} for n in range(120)]
    data = write_csv(folder / "patients.csv", rows)
    return trained(folder, "table.rankplane", data, "--target", "risk", "--ranks", "low,high")


@pytest.fixture(scope="module")
def of_numbers(folder):
    data = folder / "numbers.svmlight"
    data.write_text("".join(f"{n % 3} {n % 3 + 1}:{1 + n % 5} 4:{n % 7}\n" for n in range(90)))
    return trained(folder, "numbers.rankplane", str(data))


def predictions_of_file(folder, model, name, text):
    (folder / name).write_text(text)
    assert main(["predict", model, str(folder / name), "--proba", "-o", str(folder / "out.csv")]) == 0
    rows = read_csv(folder / "out.csv")
    return [row["prediction"] for row in rows], [[float(v) for k, v in row.items() if k.startswith("p_")] for row in rows]


def check_like_file(folder, model, name, text, rows):
    ranks, shares = predictions_of_file(folder, model, name, text)
    loaded = load_model(model)
    assert [str(rank) for rank in predict_rows(loaded, rows).tolist()] == ranks
    np.testing.assert_allclose(predict_rows(loaded, rows, method="predict_proba"), shares, atol=1e-6)


def test_texts_are_joined_as_in_training(folder, of_texts):
    rows = [{name: row[name] for name in ("review", "id", "title")} for row in make_rows(30, seed=5)]
    rows += [{"review": None, "title": "great"}, {"review": 5, "title": ""}]
    check_like_file(folder, of_texts, "new.jsonl", "".join(json.dumps(row) + "\n" for row in rows), rows)
    assert len(set(predict_rows(load_model(of_texts), rows).tolist())) > 2


def test_columns_are_encoded_as_in_training(folder, of_columns):
    rows = [{"smoker": "yes", "age": 71}, {"smoker": "unheard of", "age": 24, "town": "Ulm"}, {"smoker": None, "age": "30.5"}]
    check_like_file(folder, of_columns, "later.jsonl", "".join(json.dumps(row) + "\n" for row in rows), rows)


def test_columns_may_have_numbers_for_names(folder, of_numbers):
    rows = [{"1": 3.5, "4": 2}, {2: 4, "9": 1}, {}]
    check_like_file(folder, of_numbers, "later.svmlight", "0 1:3.5 4:2\n0 2:4 9:1\n0\n", rows)


def test_no_rows(of_texts, of_columns):
    assert predict_rows(load_model(of_texts), []).shape == (0,)
    assert predict_rows(load_model(of_columns), [], method="predict_proba").shape == (0, 2)


@pytest.mark.parametrize(
    ("model", "rows", "sentence"),
    [
        ("of_texts", [{"title": "", "review": ""}, {"title": "", "Review": 1}], 'rows[1] has no column "review": did you mean "Re'),
        ("of_texts", [{"title": ["a"], "review": ""}], "rows[0]: column \"title\" holds lists, which are no texts. Got ['a']."),
        ("of_texts", ["great"], "rows[0] must be a dict with a value for each column. Got 'great'."),
        ("of_columns", [{"age": 1, "smoker": ""}, {"age": "old", "smoker": ""}], "rows[1]: Column 'age' must hold numbers"),
        ("of_columns", [{"age": 1}], 'rows[0] has no column "smoker": its columns are age.'),
        ("of_columns", [{}], 'rows[0] has no column "age": its columns are none.'),
        ("of_numbers", [{}, {"one": 1}], "rows[1] must have column numbers as keys, from 1. Got 'one'."),
        ("of_numbers", [{"0": 1}], "rows[0] must have column numbers as keys, from 1. Got '0'."),
        ("of_numbers", [{"1": float("nan")}], "rows[0]: column 1 must hold a finite number. Got nan."),
    ],
)
def test_a_row_that_does_not_fit_is_named(model, rows, sentence, request):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        predict_rows(load_model(request.getfixturevalue(model)), rows)


def test_arguments_that_do_not_fit(of_texts, tmp_path):
    model = load_model(of_texts)
    with pytest.raises(TypeError, match=re.escape("rows must be a list of dicts, one per sample. Got a dict.")):
        predict_rows(model, {"title": "great", "review": "great"})
    with pytest.raises(ValueError, match=r"method must be one of 'predict', 'predict_proba'\. Got 'guess'\."):
        predict_rows(model, [], method="guess")
    pipeline = make_pipeline(TextVectorizer(), NPSVOR()).fit(REVIEWS, STARS)
    rule = "model must be loaded from a file that rankplane train wrote, which says which columns it takes. Got a Pipeline of "
    with pytest.raises(ValueError, match=rule + "no file."):
        predict_rows(pipeline, [])
    save_model(pipeline, tmp_path / "p")
    with pytest.raises(ValueError, match=rule + "another file."):
        predict_rows(load_model(tmp_path / "p"), [])


PLAIN_CELLS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
CELLS = PLAIN_CELLS | st.lists(st.none()) | st.dictionaries(st.text(), st.none())


@given(st.lists(st.dictionaries(st.sampled_from(["title", "review", "age", "smoker", "1", "x"]), CELLS), max_size=3))
@settings(max_examples=100, deadline=None)
def test_any_rows_are_predicted_or_refused_in_a_sentence(of_texts, of_columns, of_numbers, rows):
    for path in (of_texts, of_columns, of_numbers):
        model = load_model(path)
        try:
            shares = predict_rows(model, rows, method="predict_proba")
        except ValueError as refused:
            sentence = str(refused)
        else:
            sentence = "rows["
            assert shares.shape == (len(rows), len(model.classes_))
            assert np.isfinite(shares).all()
            np.testing.assert_allclose(shares.sum(axis=1), 1)
        assert sentence.startswith("rows[")


def test_ranks_and_probabilities_at_once_are_those_of_each(of_texts, of_columns, of_numbers):
    """Also where rows that our own steps made skip the checks of those of others."""
    for path, rows in {
        of_texts: [{"title": "great", "review": "awful waste"}, {"title": "", "review": ""}],
        of_columns: [{"age": 5, "smoker": "yes"}, {"age": None, "smoker": None}],
        of_numbers: [{"1": 2}, {}],
    }.items():
        model = TrainedModel.open(path)
        X = model.transform(features_of_rows(model, rows))
        ranks, probabilities = model.predict_both(X)
        np.testing.assert_array_equal(ranks, model.predict(X))
        np.testing.assert_array_equal(probabilities, model.predict_proba(X))
