"""Models come back from their files as they were, and other files are refused in one sentence."""

import json
import os
import struct
import time
import warnings
import zlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conftest import make_ranked
from rankplane import NPSVOR, SVR, CSearchCV, RedSVM, load_model, modelfile, save_model
from rankplane.tabular import ColumnEncoder
from rankplane.text import TextVectorizer

REVIEWS = ["awful, broke at once", "bad", "it is okay", "good value", "great, love it", "très bon!"] * 8
STARS = [1, 2, 3, 4, 5, 5] * 8


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.rankplane"
    X, y = make_ranked()
    save_model(NPSVOR().fit(X, y), path)
    return path


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
    assert not found.coef_.flags.writeable, "a view of the file, not a copy"
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
    with pytest.raises(ValueError, match=r"A model file holds NPSVOR, .* Got StandardScaler"):
        save_model(make_pipeline(StandardScaler(), NPSVOR()).fit(ranked[0].toarray(), ranked[1]), path)
    with pytest.raises(ValueError, match="not fitted"):
        save_model(NPSVOR(), path)
    with pytest.raises(ValueError, match="metadata must hold"):
        save_model(NPSVOR().fit(*ranked), path, metadata={"model": object()})
    assert os.listdir(tmp_path) == []


def test_truncated_files_are_refused(saved):
    content = saved.read_bytes()
    for length in [1, 7, 8, 40, 64, 200, len(content) // 2, len(content) - 1]:
        saved.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"m\.rankplane is (truncated|not a model file)"):
            load_model(saved)


def test_a_changed_byte_anywhere_is_noticed(saved):
    content = saved.read_bytes()
    for place in [*range(0, 32), *range(64, len(content), 97)]:
        changed = bytearray(content)
        changed[place] ^= 0x10
        saved.write_bytes(changed)
        with pytest.raises(ValueError, match=r"m\.rankplane (is (damaged|not a model file|truncated)|has format)"):
            load_model(saved)


@pytest.mark.parametrize("content", [b"", b"stars,review\n5,good\n", b"\x80\x04\x95pickle", bytes(500)])
def test_foreign_files_are_refused(content, tmp_path):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="foreign is not a model file of rankplane"):
        load_model(path)


def test_newer_formats_are_refused(saved):
    content = bytearray(saved.read_bytes())
    content[8:12] = struct.pack("<I", modelfile.FORMAT + 1)
    saved.write_bytes(content)
    with pytest.raises(ValueError, match=r"newer than format 2 that this version reads: update rankplane"):
        load_model(saved)


def with_header(path, change):
    """The file with another header and a right check sum, as only intent would write it."""
    content = path.read_bytes()
    *_, n_header, _ = modelfile.PREAMBLE.unpack_from(content)
    header = json.loads(content[64 : 64 + n_header])
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (modelfile.padded(len(text)) - len(text))
    body = text + content[64 + n_header :]
    start = modelfile.PREAMBLE.pack(modelfile.MAGIC, 1, zlib.crc32(body), len(text), 64 + len(body))
    path.write_bytes(start.ljust(64, b"\0") + body)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["model"].update(kind="os.system"),
        lambda header: header["model"]["params"].update(surprise=1),
        lambda header: header["arrays"][0].update(offset=10**9),
        lambda header: header["arrays"][0].update(offset=-64),
        lambda header: header["arrays"][0].update(dtype="O"),
        lambda header: header["arrays"][0].update(shape=[-1]),
        lambda header: header["model"].pop("fitted"),
        lambda header: header["model"]["fitted"]["weights"].update(array=99),
        lambda header: header["model"]["fitted"].pop("classes_"),
        lambda header: header["model"]["fitted"].pop("intercept_"),
        lambda header: header["model"]["params"].update(probability=True),
        lambda header: header["arrays"][0].update(shape=[10**30]),
        lambda header: header["model"]["fitted"]["weights"].update(dtype="O"),
        lambda header: header["model"]["fitted"].update(weights={"sparse": {"columns": 0, "values": 1}, "n_columns": 10**15}),
    ],
)
def test_wrong_contents_are_refused(saved, change):
    with_header(saved, change)
    with pytest.raises(ValueError, match=r"m\.rankplane is damaged or was written by another version"):
        load_model(saved)


@pytest.mark.parametrize("header", ["[" * 100_000, "[]", "{}", '"model"', '{"model": 1, "arrays": [], "metadata": {}}'])
def test_headers_of_another_shape_are_refused(header, tmp_path):
    text = header.encode().ljust(modelfile.padded(len(header)))
    start = modelfile.PREAMBLE.pack(modelfile.MAGIC, 1, zlib.crc32(text), len(text), 64 + len(text))
    (tmp_path / "m.rankplane").write_bytes(start.ljust(64, b"\0") + text)
    with pytest.raises(ValueError, match=r"m\.rankplane is damaged"):
        load_model(tmp_path / "m.rankplane")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=5))
def test_forged_files_are_refused_or_hold_a_model(changes, forged):
    """Bytes changed anywhere, with a check sum to match: a sentence or a model that answers, never anything else."""
    path, content = forged
    *_, n_header, n_bytes = modelfile.PREAMBLE.unpack_from(content)
    body = bytearray(content[64:])
    for place, byte in changes:
        body[int(place * len(body))] = byte
    start = modelfile.PREAMBLE.pack(modelfile.MAGIC, 1, zlib.crc32(body), n_header, n_bytes)
    path.write_bytes(start.ljust(64, b"\0") + body)
    with np.errstate(all="ignore"), warnings.catch_warnings(), suppress(ValueError, TypeError):
        warnings.simplefilter("ignore")
        found = load_model(path)
        # Parameters are checked where they are used, so that is where a wrong one is refused.
        assert len(found.predict(REVIEWS)) == len(REVIEWS)


@pytest.fixture(scope="module")
def forged(tmp_path_factory):
    path = tmp_path_factory.mktemp("forged") / "m.rankplane"
    save_model(make_pipeline(TextVectorizer(), NPSVOR(probability=True, decision="mae")).fit(REVIEWS, STARS), path)
    return path, path.read_bytes()


def test_wrong_vocabularies_are_refused(tmp_path):
    path = tmp_path / "m.rankplane"
    save_model(TextVectorizer().fit(REVIEWS), path)

    def reverse(header):
        level = header["model"]["fitted"]["levels"][0]
        level[2] = level[1]  # counts instead of columns

    with_header(path, reverse)
    with pytest.raises(ValueError, match="is damaged"):
        load_model(path)


def test_a_failed_save_leaves_the_old_file(saved, ranked, monkeypatch):
    before = saved.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_model(NPSVOR(C=3).fit(*ranked), saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_million_columns_load_quickly(tmp_path):
    n_columns = 1_000_000
    X, y = make_ranked(50, 20, dtype=np.float32)
    fitted = NPSVOR().fit(X, y)
    fitted.coef_ = np.random.default_rng(0).standard_normal((n_columns, 5), dtype=np.float32).T
    fitted.n_features_in_ = n_columns
    save_model(fitted, tmp_path / "m")
    start = time.perf_counter()
    found = load_model(tmp_path / "m")
    assert time.perf_counter() - start < 1
    assert found.coef_.shape == (5, n_columns)


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "models").glob("*.rankplane")), ids=lambda path: path.stem)
def test_files_of_every_format_stay_readable(path):
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    found = load_model(path)
    assert found.predict(expected["texts"]).tolist() == expected["ranks"]
    np.testing.assert_allclose(found.predict_proba(expected["texts"]), expected["probabilities"], atol=1e-5)


def test_a_committee_is_kept_whole(tmp_path, ranked):
    from rankplane import Committee, load_model, save_model

    X, y = ranked
    fitted = Committee().fit(X, y)
    save_model(fitted, tmp_path / "committee.rankplane")
    np.testing.assert_allclose(load_model(tmp_path / "committee.rankplane").predict_proba(X), fitted.predict_proba(X))
