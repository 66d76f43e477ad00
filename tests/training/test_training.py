"""What training makes of a table: notes, splits that keep copies and groups together, and what is measured is what is kept."""

import bz2
import gzip
import hashlib
import re
from contextlib import nullcontext

import numpy as np
import pytest

from rankplane import load_model, modelfile, save_model
from rankplane.cli import main
from rankplane.inputs.reading import Batch, Fingerprint, InputError, read_all
from rankplane.inputs.schema import Inputs, Rows, prepare
from rankplane.modelfile import compact
from rankplane.text import TextVectorizer
from rankplane.training import fitting
from rankplane.training.choices import Choices
from rankplane.training.fitting import searched
from rankplane.training.splitting import hold_out, split
from rankplane.training.wording import data_notes
from reviews import batch_of, make_rows, rows_of, write_csv


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
    assert data_notes(notes)[0] == "3 missing values in review"


def test_whole_numbers_in_a_table_with_gaps_name_ranks():
    labels, _ = Inputs("r", ranks=["1", "2"]).labels(Batch({"r": [1.0, None, 2.0]}, [1, 2, 3]), "t")
    assert labels.tolist() == ["1", "2"]


def test_texts_are_no_categories():
    rows = [{"name": f"word{n}", "age": n, "town": "Ulm" if n % 2 else "Bonn", "risk": n % 3} for n in range(60)]
    inputs = Inputs.of(batch_of(rows), "t.csv", target="risk", text=[], group=None, ranks=None)
    assert inputs.columns == ["age", "town"]
    notes = prepare(batch_of(rows), "t.csv", inputs).notes
    assert data_notes(notes) == ['column "name" is left out: its values hardly ever occur twice']
    only_names = [{"name": row["name"], "risk": row["risk"]} for row in rows]
    with pytest.raises(InputError, match='has no column of numbers or categories beside "risk": name columns of texts by text'):
        Inputs.of(batch_of(only_names), "t.csv", target="risk", text=[], group=None, ranks=None)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_no_rank_is_held_out_whole(share):
    rows = make_rows(60)
    for row in rows:
        row["stars"] = min(row["stars"], 4)
    rows[7]["stars"] = rows[21]["stars"] = 5
    rows[33]["stars"] = 9
    prepared = rows_of(rows)
    kept, held = hold_out(prepared, share, 0)
    assert set(prepared.labels[kept]) == {1, 2, 3, 4, 5, 9}
    assert abs(len(held) - share * 60) < 6


def test_one_group_cannot_be_split():
    rows = [{**row, "author": "Ann"} for row in make_rows(30)]
    prepared = rows_of(rows, group="author")
    with pytest.raises(InputError, match=r"holdout=0\.2 leaves no rows to test on among 30"):
        fitting.train(prepared, Inputs("stars", ["review"]), Choices(C=1.0))


@pytest.mark.parametrize("C", [None, 1.0])
def test_copies_share_a_fold_too(C, monkeypatch):
    rows = make_rows(60)
    asked = []
    fit = fitting.CSearchCV.fit

    def watched(self, X, y, groups=None):
        asked.append(groups)
        return fit(self, X, y, groups=groups)

    monkeypatch.setattr(fitting.CSearchCV, "fit", watched)
    fitting.train(rows_of(rows), Inputs("stars", ["review"]), Choices(C=C))
    prepared = rows_of(rows + rows[:30])
    fitting.train(prepared, Inputs("stars", ["review"]), Choices(C=C, holdout=0))
    assert asked[0] is None
    np.testing.assert_array_equal(asked[1][60:], asked[1][:30])


def test_what_decides_is_what_c_is_chosen_by():
    inputs = Inputs("stars", ["review"])
    found = fitting.train(rows_of(make_rows(80)), inputs, Choices(decision="accuracy")).model.metadata["search"]
    assert found["measure"] == "accuracy"
    assert found["best_C"] == found["C"][int(np.argmax(found["scores"]))]


def test_a_compact_model_is_measured_as_it_is_kept(tmp_path):
    prepared = rows_of(make_rows(200))
    trained = fitting.train(prepared, Inputs("stars", ["review"]), Choices(C=1.0, compact=0.2)).model
    assert list(trained.metadata["metrics"]) == ["rows", "model", "before compacting", "majority", "median"]
    save_model(trained.pipeline, tmp_path / "m", compact=0.0)
    found = load_model(tmp_path / "m")
    np.testing.assert_array_equal(found[-1].coef_, trained.estimator.coef_)
    assert found[-1].coef_.dtype == trained.estimator.coef_.dtype
    save_model(trained.pipeline, tmp_path / "whole")
    weights = trained.estimator.coef_.nbytes
    assert (tmp_path / "whole").stat().st_size - (tmp_path / "m").stat().st_size > 0.4 * weights


def test_columns_of_svmlight_files_are_counted_from_one(ranked):
    X, y = ranked
    prepared = Rows(X, y, np.arange(len(y)), {"rows": len(y)})
    model = fitting.train(prepared, Inputs("label", n_columns=30), Choices(C=1.0, holdout=0)).model
    names = {name for top in model.top_features(30) for name, _ in top.up + top.down}
    assert names == {str(number) for number in range(1, 31)}
    assert modelfile.MODELS["NPSVOR"] is type(model.estimator)


def test_errors_name_parameters_and_on_the_command_line_options():
    with pytest.raises(InputError) as error:
        Choices(kernel="rbf", compact=0.1).check()
    assert str(error.value) == 'compact rounds column weights, which only kernel="linear" has.'
    assert error.value.with_options == "--compact rounds column weights, which only --kernel linear has."
    with pytest.raises(InputError) as error:
        Choices(class_weight="even").check()
    assert str(error.value).startswith("class_weight must be")
    assert error.value.with_options.startswith("--class-weight must be")


def rows_measured(page):
    """How many rows a page was measured on."""
    return int(re.search(r"measured on ([\d,]+) rows", page.read_text(encoding="utf-8"))[1].replace(",", ""))


def test_files_and_rows_are_handled_once(tmp_path, monkeypatch):
    """Training reads its file once, opens no model file, makes one matrix of the test rows, and compacts once."""
    calls = {"files": 0, "models": 0, "compacted": 0, "transformed": []}
    path = write_csv(tmp_path / "t.csv", make_rows(200))
    opened, transform, compact_weights = open, TextVectorizer.transform, compact.compact_weights

    def watched_open(name, *arguments, **options):
        calls["files"] += name == path
        return opened(name, *arguments, **options)

    def watched_transform(self, texts):
        if self.hashing is None:
            calls["transformed"].append(len(texts))
        return transform(self, texts)

    def watched_compact(weights, bound):
        calls["compacted"] += 1
        return compact_weights(weights, bound)

    def watched_read(name):
        calls["models"] += 1

    monkeypatch.setattr("builtins.open", watched_open)
    monkeypatch.setattr(TextVectorizer, "transform", watched_transform)
    monkeypatch.setattr(compact, "compact_weights", watched_compact)
    monkeypatch.setattr(modelfile, "read_file", watched_read)
    arguments = ["--text", "review", "--target", "stars", "--C", "1", "--compact", "0.1", "--report", str(tmp_path / "page.html")]
    assert main(["train", path, *arguments, "-o", str(tmp_path / "m")]) == 0
    assert (calls["files"], calls["models"], calls["compacted"]) == (1, 0, 1)
    n_test = rows_measured(tmp_path / "page.html")
    assert calls["transformed"].count(n_test) == 1


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.bz2", "t.parquet"])
def test_fingerprints_are_of_all_bytes(name, tmp_path):
    path = tmp_path / name
    write_csv(tmp_path / "plain.csv", make_rows(300))
    content = (tmp_path / "plain.csv").read_bytes()
    if name == "t.parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pytest.importorskip("pyarrow").table({"a": list(range(300))}), path)
    else:
        packer = {"gz": gzip.compress, "bz2": lambda bytes_: bz2.compress(bytes_) + b"not packed"}.get(name.split(".")[-1], bytes)
        path.write_bytes(packer(content))
    fingerprint = Fingerprint()
    assert len(read_all(str(path), fingerprint=fingerprint)) == 300
    assert fingerprint.value == f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.mark.parametrize("holdout", [0, 0.3])
@pytest.mark.parametrize("is_text", [True, False])
def test_features_are_forgotten_once_they_are_a_matrix(holdout, is_text, monkeypatch):
    """And a caller who wants to keep them can: train leaves its rows as they are."""
    table = [{"stars": 1 + n % 3, "review": f"good word{n % 9}" * (n % 3 + 1), "size": n % 3} for n in range(90)]
    inputs = Inputs("stars", ["review"] if is_text else [], [] if is_text else ["size"])
    rows = prepare(batch_of(table), "t.csv", inputs)
    choices = Choices(C=1, holdout=holdout, kernel="linear", skewed="none")
    kept, n_left = fitting.train(rows, inputs, choices), []
    assert len(rows.features if is_text else rows.features["size"]) == 90
    training, held = split(rows, holdout, 0)
    monkeypatch.setattr(fitting, "searched", lambda *given: n_left.append(len(given[0].rows.features)) or searched(*given))
    trained = fitting.train_on(training, held, inputs, choices)
    assert n_left == [0]
    assert len(training.features) == 0
    assert trained.model.metadata == kept.model.metadata
    if holdout:
        assert trained.test.rows.labels.tolist() == kept.test.rows.labels.tolist()
        assert len(trained.test.rows.features if is_text else trained.test.rows.features["size"]) == len(held.labels)


def test_the_command_line_uses_all_cores(monkeypatch, tmp_path):
    """As many as the process may use; a model that is loaded later asks for none of them."""
    asked = []
    monkeypatch.setattr(
        "rankplane.validation.effective_n_jobs", lambda n_jobs: asked.append(n_jobs) or (3 if n_jobs == -1 else n_jobs or 1)
    )
    table, model = write_csv(tmp_path / "t.csv", make_rows(60)), str(tmp_path / "m")
    train = ["train", table, "--text", "review", "--target", "stars", "--C", "1", "-o", model]
    assert main(train) == 0
    assert set(asked) <= {-1, 3}
    assert modelfile.read_metadata(model)["choices"]["jobs"] == 3
    assert {step.n_jobs for step in load_model(model)} == {None}
    assert main([*train, "--jobs", "2"]) == 0
    assert modelfile.read_metadata(model)["choices"]["jobs"] == 2
    threads = []
    monkeypatch.setattr("rankplane.cli.commands.overlapped", lambda work, items, n: threads.append(n) or map(work, items))
    monkeypatch.setattr("rankplane.cli.commands.closing", nullcontext)
    for options, expected in (([], 3), (["--jobs", "2"], 2)):
        assert main(["predict", model, table, "-o", str(tmp_path / "o.csv"), *options]) == 0
        assert main(["evaluate", model, table, *options]) == 0
        assert threads == [expected] * 2
        threads.clear()
