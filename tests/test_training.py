"""What training makes of a table: notes, splits that keep copies and groups together, and what is measured is what is kept."""

import numpy as np
import pytest

from rankplane import load_model, modelfile, save_model
from rankplane.inputs.reading import Batch, InputError
from rankplane.inputs.schema import Inputs, Rows, prepare
from rankplane.training import fitting as training
from rankplane.training.fitting import Choices
from test_cli import make_rows


def batch_of(rows):
    return Batch({name: [row[name] for row in rows] for name in rows[0]}, list(range(2, len(rows) + 2)))


def rows_of(rows, **inputs):
    return prepare(batch_of(rows), "t.csv", Inputs("stars", ["review"], **inputs))


def test_notes():
    rows = make_rows(40)
    for row, stars in zip(rows, ["low", "high"] * 20, strict=True):
        row["stars"] = stars
    rows[0]["review"] = rows[1]["review"] = None
    rows[2]["review"] = "  "
    rows[3]["stars"] = ""
    notes = rows_of(rows, ranks=["low", "medium", "high"]).notes
    assert list(notes["ranks"].items()) == [("low", 20), ("medium", 0), ("high", 19)]
    assert (notes["rows"], notes["missing_target"], notes["empty_texts"]) == (40, 1, 3)
    assert notes["missing_values"] == {"review": 3}
    assert training.data_notes(notes)[0] == "3 missing values in review"


def test_whole_numbers_in_a_table_with_gaps_name_ranks():
    labels, _ = Inputs("r", ranks=["1", "2"]).labels(Batch({"r": [1.0, None, 2.0]}, [1, 2, 3]), "t")
    assert labels.tolist() == ["1", "2"]


def test_texts_are_no_categories():
    rows = [{"name": f"word{n}", "age": n, "town": "Ulm" if n % 2 else "Bonn", "risk": n % 3} for n in range(60)]
    inputs = Inputs.of(batch_of(rows), "t.csv", target="risk", text=[], group=None, ranks=None)
    assert inputs.columns == ["age", "town"]
    notes = prepare(batch_of(rows), "t.csv", inputs).notes
    assert training.data_notes(notes) == ['column "name" is left out: its values hardly ever occur twice']
    only_names = [{"name": row["name"], "risk": row["risk"]} for row in rows]
    with pytest.raises(InputError, match='has no column of numbers or categories beside "risk": name columns of texts by --text'):
        Inputs.of(batch_of(only_names), "t.csv", target="risk", text=[], group=None, ranks=None)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_no_rank_is_held_out_whole(share):
    rows = make_rows(60)
    for row in rows:
        row["stars"] = min(row["stars"], 4)
    rows[7]["stars"] = rows[21]["stars"] = 5
    rows[33]["stars"] = 9
    prepared = rows_of(rows)
    kept, held = training.hold_out(prepared, share, 0)
    assert set(prepared.labels[kept]) == {1, 2, 3, 4, 5, 9}
    assert abs(len(held) - share * 60) < 6


def test_one_group_cannot_be_split():
    rows = [{**row, "author": "Ann"} for row in make_rows(30)]
    prepared = rows_of(rows, group="author")
    with pytest.raises(InputError, match=r"--holdout 0\.2 finds no rows to measure on among 30"):
        training.train(prepared, Inputs("stars", ["review"]), Choices(C=1.0))


@pytest.mark.parametrize("C", [None, 1.0])
def test_copies_share_a_fold_too(C, monkeypatch):
    rows = make_rows(60)
    asked = []
    fit = training.CSearchCV.fit

    def watched(self, X, y, groups=None):
        asked.append(groups)
        return fit(self, X, y, groups=groups)

    monkeypatch.setattr(training.CSearchCV, "fit", watched)
    training.train(rows_of(rows), Inputs("stars", ["review"]), Choices(C=C))
    prepared = rows_of(rows + rows[:30])
    training.train(prepared, Inputs("stars", ["review"]), Choices(C=C, holdout=0))
    assert asked[0] is None
    np.testing.assert_array_equal(asked[1][60:], asked[1][:30])


def test_what_decides_is_what_c_is_chosen_by():
    inputs = Inputs("stars", ["review"])
    found = training.train(rows_of(make_rows(80)), inputs, Choices(decision="accuracy")).metadata["search"]
    assert found["measure"] == "accuracy"
    assert found["best_C"] == found["C"][int(np.argmax(found["scores"]))]


def test_a_compact_model_is_measured_as_it_is_kept(tmp_path):
    prepared = rows_of(make_rows(200))
    trained = training.train(prepared, Inputs("stars", ["review"]), Choices(C=1.0, compact=0.2))
    assert list(trained.metadata["metrics"]) == ["rows", "model", "before compacting", "majority", "median"]
    save_model(trained.pipeline, tmp_path / "m", compact=0.0)
    found = load_model(tmp_path / "m")
    np.testing.assert_array_equal(found[-1].coef_, trained.pipeline[-1].coef_)
    assert found[-1].coef_.dtype == trained.pipeline[-1].coef_.dtype
    save_model(trained.pipeline, tmp_path / "whole")
    weights = trained.pipeline[-1].coef_.nbytes
    assert (tmp_path / "whole").stat().st_size - (tmp_path / "m").stat().st_size > 0.4 * weights


def test_columns_of_svmlight_files_are_counted_from_one(ranked):
    X, y = ranked
    prepared = Rows(X, y, np.arange(len(y)), {"rows": len(y)})
    pipeline = training.train(prepared, Inputs("label", n_columns=30), Choices(C=1.0, holdout=0)).pipeline
    names = {name for top in pipeline[-1].top_features(training.column_names(pipeline), n=30) for name, _ in top.up + top.down}
    assert names == {str(number) for number in range(1, 31)}
    assert modelfile.MODELS["NPSVOR"] is type(pipeline[-1])
