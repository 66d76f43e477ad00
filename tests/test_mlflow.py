"""The MLflow flavour, with a real MLflow whose store is a folder of the test."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from conftest import make_curved
from rankplane import NPSVOR, ColumnEncoder, TextVectorizer, read_metadata, save_model
from rankplane.cli import main
from reviews import make_rows, write_csv

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
mlflow = pytest.importorskip("mlflow", reason="needs the extra mlflow")
pytest.importorskip("sqlalchemy", reason="needs SQLAlchemy, for the store of MLflow")

# MLflow and what it is made of warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")

import rankplane.mlflow as flavour  # noqa: E402


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlflow")
    before = os.getcwd()
    os.chdir(folder)
    mlflow.set_tracking_uri(f"sqlite:///{folder}/store.db")
    mlflow.create_experiment("reviews", artifact_location=(folder / "artifacts").as_uri())
    mlflow.set_experiment("reviews")
    yield folder
    os.chdir(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    write_csv(folder / "reviews.csv", make_rows(150))
    texts = ["--text", "review", "--text", "title", "--target", "stars", "--C", "1"]
    assert main(["train", str(folder / "reviews.csv"), *texts, "-o", str(folder / "stars.rankplane")]) == 0
    write_csv(folder / "risks.csv", [{"age": n, "smoker": "yes" if n % 3 else "no", "risk": 1 + n // 40} for n in range(120)])
    assert main(["train", str(folder / "risks.csv"), "--target", "risk", "--C", "1", "-o", str(folder / "risk.rankplane")]) == 0
    return folder


def files_of(folder):
    return {str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file()}


def test_save_and_load(tmp_path):
    X, y = make_curved()
    model = NPSVOR(probability=True).fit(X, y)
    flavour.save_model(model, tmp_path / "m", metadata={"owner": "reviews team"})
    assert files_of(tmp_path / "m") == {"MLmodel", "conda.yaml", "python_env.yaml", "requirements.txt", "data/model.rankplane"}
    assert (tmp_path / "m" / "requirements.txt").read_text().split()[1:] == [f"rankplane=={flavour.this_version()}"]
    np.testing.assert_array_equal(flavour.load_model(str(tmp_path / "m")).predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(mlflow.pyfunc.load_model(str(tmp_path / "m")).predict(X), model.predict(X))
    assert type(mlflow.pyfunc.load_model(str(tmp_path / "m")).get_raw_model()) is NPSVOR
    assert mlflow.models.Model.load(str(tmp_path / "m")).metadata == {"owner": "reviews team"}


def test_nothing_is_pickled(tmp_path, monkeypatch):
    import pickle

    import cloudpickle

    def refuse(*_, **__):
        raise AssertionError("pickled")

    for module, names in ((pickle, ("dump", "load", "dumps", "loads")), (cloudpickle, ("dump", "dumps"))):
        for name in names:
            monkeypatch.setattr(module, name, refuse)
    X, y = make_curved()
    flavour.save_model(NPSVOR().fit(X, y), tmp_path / "m")
    assert len(flavour.load_model(str(tmp_path / "m")).predict(X)) == len(X)
    assert len(mlflow.pyfunc.load_model(str(tmp_path / "m")).predict(X)) == len(X)
    assert not [name for name in files_of(tmp_path / "m") if "pkl" in name]


def test_a_run_and_the_registry(store, folder):
    rows = pd.DataFrame(make_rows(20, seed=1))
    with mlflow.start_run() as run:
        info = flavour.log_model(
            str(folder / "stars.rankplane"),
            "stars",
            input_example=rows[["review", "title"]],
            registered_model_name="stars",
            params={"C": 1},
            tags={"language": "en"},
        )
    assert "rankplane" in info.flavors
    assert mlflow.get_logged_model(info.model_id).tags["language"] == "en"
    assert info.signature.inputs.input_names() == ["review", "title"]
    expected = flavour.load_model(info.model_uri).predict([f"{a}\n{b}" for a, b in zip(rows.review, rows.title, strict=True)])
    for uri in (info.model_uri, "models:/stars/1", f"runs:/{run.info.run_id}/stars"):
        function = mlflow.pyfunc.load_model(uri)
        np.testing.assert_array_equal(function.predict(rows[["title", "review"]]), expected)
    assert type(flavour.load_model("models:/stars/1")).__name__ == "Pipeline"


def test_a_file_keeps_what_it_says_of_itself(folder, tmp_path):
    flavour.save_model(folder / "stars.rankplane", tmp_path / "m")
    assert read_metadata(tmp_path / "m" / "data" / "model.rankplane") == read_metadata(folder / "stars.rankplane")


def test_probabilities(folder, tmp_path):
    flavour.save_model(folder / "stars.rankplane", tmp_path / "m", pyfunc_predict_fn="predict_proba")
    rows = pd.DataFrame(make_rows(5))[["title", "review"]]
    shares = mlflow.pyfunc.load_model(str(tmp_path / "m")).predict(rows)
    assert list(shares.columns) == ["1", "2", "3", "4", "5"]
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    ranks = mlflow.pyfunc.load_model(str(tmp_path / "m"), model_config={"pyfunc_predict_fn": "predict"}).predict(rows)
    assert set(ranks) <= {1, 2, 3, 4, 5}


def test_tables(folder, tmp_path):
    flavour.save_model(folder / "risk.rankplane", tmp_path / "m")
    function, model = mlflow.pyfunc.load_model(str(tmp_path / "m")), flavour.load_model(str(tmp_path / "m"))
    table = pd.DataFrame({"smoker": ["yes", None, "no"], "more": [1, 2, 3], "age": [10.0, np.nan, 100.0]})
    expected = model.predict({"age": [10.0, None, 100.0], "smoker": ["yes", None, "no"]})
    np.testing.assert_array_equal(function.predict(table), expected)


@pytest.mark.parametrize("make", [list, np.array, pd.Series, lambda texts: pd.DataFrame({"text": texts})])
def test_models_of_python_take_texts(make, tmp_path):
    texts = ["good phone", "bad phone", "good", "bad"] * 5
    model = make_pipeline(TextVectorizer(min_df=1), NPSVOR()).fit(texts, [2, 1, 2, 1] * 5)
    flavour.save_model(model, tmp_path / "m")
    function = flavour._load_pyfunc(str(tmp_path / "m" / "data" / "model.rankplane"))
    assert function.predict(make(["good", "bad"])).tolist() == [2, 1]


def test_frames_with_and_without_names(tmp_path):
    X, y = make_curved()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for number, (model, of) in enumerate(((NPSVOR(), X), (NPSVOR(), frame), (make_pipeline(ColumnEncoder(), NPSVOR()), frame))):
        model.fit(of, y)
        flavour.save_model(model, tmp_path / str(number))
        np.testing.assert_array_equal(mlflow.pyfunc.load_model(str(tmp_path / str(number))).predict(frame), model.predict(of))


def test_bad_input(folder, tmp_path):
    X, y = make_curved()
    model = NPSVOR().fit(X, y)
    with pytest.raises(ValueError, match=r"^pyfunc_predict_fn must be one of 'predict', 'predict_proba'. Got 'rank'.$"):
        flavour.save_model(model, tmp_path / "m", pyfunc_predict_fn="rank")
    with pytest.raises(ValueError, match=r"reviews.csv is not a model file of rankplane"):
        flavour.save_model(folder / "reviews.csv", tmp_path / "m")
    with pytest.raises(FileNotFoundError):
        flavour.save_model("absent.rankplane", tmp_path / "m")
    with pytest.raises(ValueError, match=r"A model file holds .* Got dict"):
        flavour.save_model({}, tmp_path / "m")
    with pytest.raises(ValueError, match=r"^conda_env must be None if"):
        flavour.save_model(model, tmp_path / "m", conda_env={}, extra_pip_requirements=["jieba"])
    assert not (tmp_path / "m").exists()
    flavour.save_model(folder / "stars.rankplane", tmp_path / "m", extra_pip_requirements=["jieba"])
    assert "jieba" in (tmp_path / "m" / "requirements.txt").read_text()
    function = mlflow.pyfunc.load_model(str(tmp_path / "m"))
    with pytest.raises(Exception, match='the input has no column "title"'):
        function.predict(pd.DataFrame({"review": ["good"]}))
    text = (tmp_path / "m" / "MLmodel").read_text()
    (tmp_path / "m" / "MLmodel").write_text(re.sub(r"  rankplane:\n(    .*\n)+", "", text))
    with pytest.raises(ValueError, match=r"^model_uri must lead to a model with the flavour rankplane. Got python_function at"):
        flavour.load_model(str(tmp_path / "m"))
    save_model(make_pipeline(TextVectorizer(min_df=1), NPSVOR()).fit(["a b", "b b", "a a"] * 5, [1, 2, 3] * 5), tmp_path / "t")
    with pytest.raises(ValueError, match=r"^the input must be a list of texts or one column of them. Got 2 columns.$"):
        flavour._load_pyfunc(str(tmp_path / "t")).predict(pd.DataFrame({"a": ["x"], "b": ["y"]}))


def test_a_missing_library_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mlflow.pyfunc", None)
    with pytest.raises(ImportError, match=r"^The MLflow flavour needs mlflow: pip install 'rankplane\[mlflow\]'.$"):
        flavour.save_model(NPSVOR(), tmp_path / "m")
