"""Models come back from their files as they were, and other files are refused in one sentence."""

import json
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from conftest import make_ranked
from rankplane import NPSVOR, SVR, Committee, CSearchCV, RedSVM, load_model, modelfile, save_model
from rankplane.tabular import ColumnEncoder
from rankplane.text import TextVectorizer
from reviews import REVIEWS, STARS


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_model_comes_back(model, dtype, tmp_path):
    X, y = make_ranked(dtype=dtype)
    fitted = model(probability=True, decision="mae", C=0.5).fit(X, y)
    save_model(fitted, tmp_path / "m.rankplane")
    found = load_model(tmp_path / "m.rankplane")
    assert type(found) is model
    assert found.get_params() == fitted.get_params()
    np.testing.assert_array_equal(found.plane_scores(X), fitted.plane_scores(X))
    np.testing.assert_array_equal(found.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(found.predict_proba(X.toarray()), fitted.predict_proba(X.toarray()))
    np.testing.assert_array_equal(found.predict_set(X, 0.8), fitted.predict_set(X, 0.8))
    assert str(found.explain(X[:2])[1]) == str(fitted.explain(X[:2])[1])
    for name in ("duality_gap_", "n_iter_", "n_support_", "dual_objective_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(fitted, name))
    assert not found.coef_.flags.writeable, "shared by all who hold the model"
    found.fit(X, y)  # and it can be trained again


def test_a_search_becomes_its_best_model(ranked, tmp_path):
    search = CSearchCV(SVR(probability=True), Cs=[0.1, 1.0]).fit(*ranked)
    save_model(search, tmp_path / "m")
    found = load_model(tmp_path / "m")
    assert isinstance(found, SVR)
    np.testing.assert_array_equal(found.predict_proba(ranked[0]), search.predict_proba(ranked[0]))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"preset": "paper", "min_df": 1},
        {"analyzer": "char_wb", "ngram_range": (2, 3)},
        {"hashing": 12},
        {"ngram_range": (1, 3), "max_features": 9, "stop_words": ["it", "at"], "use_idf": False},
    ],
    ids=lambda options: "-".join(options) or "default",
)
def test_vectorizers_come_back(options, tmp_path):
    vectorizer = TextVectorizer(**options).fit(REVIEWS)
    save_model(vectorizer, tmp_path / "v")
    found = load_model(tmp_path / "v")
    assert found.get_params() == vectorizer.get_params()
    assert (found.transform([*REVIEWS, "new words"]) != vectorizer.transform([*REVIEWS, "new words"])).nnz == 0
    if "hashing" not in options:
        assert found.vocabulary_ == vectorizer.vocabulary_


@pytest.mark.parametrize("ranks", [None, ["1", "2", "3", "4", "5"]])
def test_pipelines_come_back(ranks, tmp_path):
    labels = STARS if ranks is None else [str(star) for star in STARS]
    pipeline = make_pipeline(TextVectorizer(), NPSVOR(probability=True, ranks=ranks)).fit(REVIEWS, labels)
    save_model(pipeline, tmp_path / "p", metadata={"metrics": {"mae": 0.5}})
    found = load_model(tmp_path / "p")
    np.testing.assert_array_equal(found.predict(REVIEWS), pipeline.predict(REVIEWS))
    np.testing.assert_array_equal(found.classes_, pipeline.classes_)
    assert found.classes_.dtype == pipeline.classes_.dtype
    metadata = modelfile.read_metadata(tmp_path / "p")
    assert metadata["metrics"] == {"mae": 0.5}
    assert {"version", "date"} <= metadata.keys()


def test_encoders_come_back(tmp_path):
    table = {"age": ["31", "", "55"], "town": ["Köln", None, "Ulm"]}
    encoder = ColumnEncoder().fit(table)
    save_model(encoder, tmp_path / "e")
    found = load_model(tmp_path / "e")
    np.testing.assert_array_equal(found.transform(table).toarray(), encoder.transform(table).toarray())
    assert found.get_feature_names_out().tolist() == ["age", "town=Köln", "town=Ulm"]


def test_parameters_of_all_plain_kinds(ranked, tmp_path):
    X, y = ranked
    cost = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) * 1.5
    fitted = RedSVM(probability=True, decision=cost, class_weight={1: 2.0, 4: 1.0}, ranks=(1, 2, 3, 4)).fit(X, y)
    save_model(fitted, tmp_path / "m")
    found = load_model(tmp_path / "m")
    np.testing.assert_array_equal(found.decision, cost)
    assert found.class_weight == {1: 2.0, 4: 1.0}
    assert found.ranks == (1, 2, 3, 4)
    np.testing.assert_array_equal(found.predict(X), fitted.predict(X))


@pytest.mark.parametrize("bound", [0.0, 0.01, 0.3])
def test_compact_files_keep_their_promise(bound, tmp_path):
    X, y = make_ranked(400, 300, density=0.05)
    fitted = NPSVOR().fit(X, y)
    fitted.coef_ = fitted.coef_ * 0.97 ** np.arange(300)  # as in text, most columns hardly matter
    save_model(fitted, tmp_path / "whole")
    save_model(fitted, tmp_path / "compact", compact=bound)
    found = load_model(tmp_path / "compact")
    assert np.max(np.abs(found.plane_scores(X) - fitted.plane_scores(X))) <= bound + 1e-12
    if bound:
        assert np.count_nonzero(found.coef_) < np.count_nonzero(fitted.coef_)
        assert (tmp_path / "compact").stat().st_size < (tmp_path / "whole").stat().st_size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compact_files_hold_halves(dtype, tmp_path):
    X, y = make_ranked(400, 3000, density=0.01, dtype=dtype)
    fitted = NPSVOR().fit(X, y)
    save_model(fitted, tmp_path / "whole")
    save_model(fitted, tmp_path / "compact", compact=0.01)
    found = load_model(tmp_path / "compact")
    assert found.coef_.dtype == dtype
    assert np.max(np.linalg.norm(found.coef_ - fitted.coef_, axis=1)) <= 0.01
    saved = (tmp_path / "whole").stat().st_size - (tmp_path / "compact").stat().st_size
    assert saved > 0.45 * fitted.coef_.nbytes


def test_weights_too_large_for_halves_stay_whole():
    weights = np.array([[1e5, 1.0], [1e-3, 0.0], [3.14159, 70000.0]])
    found = modelfile.compact_weights(weights, 0.01)
    np.testing.assert_array_equal(found, [[1e5, 1.0], [0.0, 0.0], [3.14159, 70000.0]])


@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), True, "much"])
def test_compact_is_checked(ranked, bad, tmp_path):
    with pytest.raises(ValueError, match="compact must be"):
        save_model(NPSVOR().fit(*ranked), tmp_path / "m", compact=bad)


def test_what_cannot_be_stored_is_refused(ranked, tmp_path):
    path = tmp_path / "m"
    with pytest.raises(ValueError, match="stemmer must be a plain value"):
        save_model(TextVectorizer(stemmer=str.upper).fit(REVIEWS), path)
    with pytest.raises(ValueError, match="tokenizer must be a plain value"):
        save_model(TextVectorizer(tokenizer=str.split).fit(REVIEWS), path)
    with pytest.raises(ValueError, match="random_state must be a plain value"):
        save_model(NPSVOR(random_state=np.random.default_rng(0)).fit(*ranked), path)
    with pytest.raises(ValueError, match=r"A model file holds NPSVOR, .* Got LinearSVC"):
        save_model(LinearSVC().fit(*ranked), path)
    with pytest.raises(ValueError, match="not fitted"):
        save_model(NPSVOR(), path)
    with pytest.raises(ValueError, match=r"C must be a positive number. Got -1"):
        save_model(NPSVOR().fit(*ranked).set_params(C=-1), path)
    with pytest.raises(ValueError, match=r"metadata must be None or a dict. Got \['a'\]"):
        save_model(NPSVOR().fit(*ranked), path, metadata=["a"])
    with pytest.raises(ValueError, match="metadata must hold"):
        save_model(NPSVOR().fit(*ranked), path, metadata={"model": object()})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", [3, True, None, b"m.rankplane", 1.5])
def test_a_path_is_a_path(path, ranked):
    """A number is not an open file: what it is the number of could be anything, such as standard error."""
    sentence = re.escape(f"path must be a str or a path. Got {path!r}.")
    with pytest.raises(TypeError, match=sentence):
        save_model(NPSVOR().fit(*ranked), path)
    for read in (load_model, modelfile.read_metadata, modelfile.open_model):
        with pytest.raises(TypeError, match=sentence):
            read(path)


def test_a_failed_save_leaves_the_old_file(saved, ranked, monkeypatch):
    before = saved.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_model(NPSVOR(C=3).fit(*ranked), saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[1] / "models").glob("*.rankplane")), ids=lambda path: path.stem)
def test_files_of_every_format_stay_readable(path):
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*was written with scikit-learn")  # as any file will be one day
        found = load_model(path)
    assert found.predict(expected["texts"]).tolist() == expected["ranks"]
    np.testing.assert_allclose(found.predict_proba(expected["texts"]), expected["probabilities"], atol=1e-5)


def test_a_committee_is_kept_whole(tmp_path, ranked):
    fitted = Committee().fit(*ranked)
    save_model(fitted, tmp_path / "m")
    np.testing.assert_allclose(load_model(tmp_path / "m").predict_proba(ranked[0]), fitted.predict_proba(ranked[0]))


def test_what_is_loaded_has_a_type(tmp_path):
    """A type checker knows what a loaded model answers with, and takes no cast."""
    api = pytest.importorskip("mypy.api")
    snippet = tmp_path / "service.py"
    snippet.write_text(
        "from rankplane import load_model\n"
        'model = load_model("m.rankplane")\n'
        'reveal_type(model.predict(["good"]))\n'
        'reveal_type(model.predict_proba(["good"]))\n'
        "labels: list[int] = model.classes_.tolist()\n"
        'words = model[:-1].transform(["good"])\n'
        "model[-1].explain(words)\n"
        "model.plane_scores(words)\n"
        'model.predict(rows=["good"])\n'
    )
    config = Path(__file__).parents[2] / "pyproject.toml"
    told, _, _ = api.run([str(snippet), "--config-file", str(config), "--cache-dir", str(tmp_path / "cache")])
    lines = [line.split("service.py:")[1] for line in told.splitlines() if "service.py:" in line]
    assert [line.split(":")[0] for line in lines if ": error:" in line] == ["9"], told
    assert "numpy.ndarray" in lines[0]
    assert "numpy.float64" in lines[1] or "floating" in lines[1]
