"""Models as ONNX graphs: a runtime of its own gives the same answers, and what cannot be expressed is refused by name."""

import sys

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import rankplane
from command import complaint
from conftest import make_curved, make_ranked
from rankplane import (
    KDLOR,
    NPSVOR,
    SVC,
    SVMOP,
    SVOR,
    SVOREX,
    SVR,
    AdversarialOrdinal,
    ColumnEncoder,
    Committee,
    CrammerSinger,
    CSearchCV,
    RedSVM,
    TextVectorizer,
    load_model,
)
from rankplane.cli import main
from rankplane.options import MODEL_NAMES
from reviews import make_rows, write_csv

pytest.importorskip("onnx", reason="needs the extra onnx")
runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime, to run the graphs")

ALL = [NPSVOR, SVC, SVMOP, SVOR, SVOREX, SVR, KDLOR, CrammerSinger, AdversarialOrdinal, Committee, RedSVM]


def test_every_model_is_tested():
    assert {make.__name__ for make in ALL} | {"GPOR"} == set(MODEL_NAMES)


def run(model, inputs):
    """What the runtime says, by output."""
    proto = rankplane.onnx.convert(model)
    import onnx

    onnx.checker.check_model(proto, full_check=True)
    session = runtime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def check_equal(model, X, inputs=None, rtol=1e-9):
    """Labels are equal; so are scores and probabilities, but for the order of sums."""
    dense = X.toarray() if hasattr(X, "toarray") else X
    found = run(model, {"X": dense} if inputs is None else inputs)
    np.testing.assert_array_equal(found["label"], model.predict(X))
    scores = model.plane_scores(X) if hasattr(model, "plane_scores") else model[-1].plane_scores(model[:-1].transform(X))
    np.testing.assert_allclose(found["plane_scores"], scores, rtol=rtol, atol=10 * rtol)
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=10 * rtol, atol=10 * rtol)
    return found


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("n_ranks", [2, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_models_and_decisions(make, n_ranks, dtype):
    X, y = make_ranked(n_rows=300, n_ranks=n_ranks, dtype=dtype)
    rtol = 1e-5 if dtype == np.float32 else 1e-9
    model = make(probability=True).fit(X, y)
    for decision in ("ranker", "mae", "mse", "accuracy", np.arange(n_ranks**2).reshape(n_ranks, -1) % 7):
        found = check_equal(model.set_params(decision=decision), X, rtol=rtol)
    assert found["plane_scores"].dtype == dtype
    assert found["probabilities"].dtype == np.float64
    assert found["label"].dtype == np.int64


@pytest.mark.parametrize("make", [make for make in ALL if make is not Committee])
def test_models_without_probabilities(make):
    X, y = make_ranked(n_rows=200)
    assert set(check_equal(make().fit(X, y), X)) == {"label", "plane_scores"}


def test_the_nearest_plane_and_many_ranks():
    X, y = make_ranked(n_rows=200)
    check_equal(NPSVOR(ranker="nearest", fit_intercept=False).fit(X, y), X)
    X, y = make_ranked(n_rows=900, n_ranks=23)
    check_equal(NPSVOR(probability=True, decision="mae").fit(X, y), X)
    check_equal(Committee().fit(X, y), X)


def test_a_rank_without_rows():
    X, y = make_ranked(n_rows=300)
    model = NPSVOR(probability=True, decision="mae", ranks=[0, 1, 2, 3, 4]).fit(X, y)
    assert np.all(check_equal(model, X)["probabilities"][:, 0] == 0)


@pytest.mark.parametrize("labels", [["bad", "fair", "good", "best"], [0.5, 1.0, 1.5, 2.0], [False, True]])
def test_labels(labels):
    X, y = make_ranked(n_rows=200, n_ranks=len(labels))
    found = check_equal(NPSVOR(ranks=labels).fit(X, np.array(labels)[y - 1]), X)
    assert found["label"].tolist() == np.array(labels)[NPSVOR().fit(X, y).predict(X) - 1].tolist()


@pytest.mark.parametrize(
    "options", [{"kernel": "rbf"}, {"kernel": "poly", "degree": 2, "coef0": 1}, {"kernel": "sigmoid", "gamma": 0.1}]
)
@pytest.mark.parametrize("make", [NPSVOR, SVOR, Committee])
def test_kernels(make, options):
    X, y = make_curved(n_rows=150)
    options = options | {"loss": "hinge"}  # as bounded as the duals, also for the sigmoid, which is no inner product
    check_equal(make(probability=True, decision="mae", **options).fit(X, y), X)
    check_equal(make(**options).fit(X.astype(np.float32), y), X.astype(np.float32), rtol=1e-5)


def test_kernels_of_sparse_rows():
    X, y = make_ranked(n_rows=150)
    check_equal(NPSVOR(kernel="rbf").fit(X, y), X)


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        MinMaxScaler((-1, 3)),
        MinMaxScaler(clip=True),
        MaxAbsScaler(),
        RobustScaler(),
        RobustScaler(with_centering=False, with_scaling=False),
    ],
    ids=str,
)
def test_scalers(scaler):
    X, y = make_curved(n_rows=150)
    model = make_pipeline(scaler, "passthrough", NPSVOR(probability=True, decision="mae")).fit(X, y)
    check_equal(model, 2 * X, rtol=1e-8)


def test_columns_of_a_table():
    rng = np.random.default_rng(0)
    n_rows = 300
    table = {
        "age": np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(50, 10, n_rows)),
        "smoker": rng.choice(["yes", "no", "", "never"], n_rows),
        "weight": rng.normal(70, 5, n_rows),
        "empty": np.full(n_rows, 3.0),
    }
    y = np.digitize(np.nan_to_num(table["age"], nan=50) + 10 * (table["smoker"] == "yes"), [45, 55])
    model = make_pipeline(ColumnEncoder(), StandardScaler(with_mean=False), NPSVOR(probability=True, decision="mae")).fit(table, y)
    new = {name: values[:40].copy() for name, values in table.items()}
    new["smoker"][:4], new["weight"][:2], new["age"][2] = "unheard of", np.nan, np.nan
    inputs = {name: values.reshape(-1, 1).astype(object if name == "smoker" else np.float64) for name, values in new.items()}
    check_equal(model, new, inputs)
    none = {name: values[:0] for name, values in inputs.items()}
    assert run(model, none)["label"].shape == (0,)


def test_columns_of_an_array():
    X, y = make_curved(n_rows=150)
    model = make_pipeline(ColumnEncoder(), NPSVOR()).fit(X, y)
    check_equal(model, X, {f"column {place}": X[:, [place]] for place in range(3)})


def test_searches():
    X, y = make_ranked()
    for search in (
        CSearchCV(NPSVOR(), Cs=[0.1, 1]),
        GridSearchCV(make_pipeline(MaxAbsScaler(), NPSVOR()), {"npsvor__C": [1]}, cv=2),
    ):
        search.fit(X, y)
        np.testing.assert_array_equal(run(search, {"X": X.toarray()})["label"], search.predict(X))


class Subclass(NPSVOR):
    """Anything could be different about it."""


def test_what_cannot_be_expressed_is_refused_by_name():
    X, y = make_curved()
    texts = ["good", "bad", "good phone", "bad phone"] * 5
    for model, told in [
        (
            make_pipeline(TextVectorizer(min_df=1), NPSVOR()).fit(texts, [2, 1] * 10),
            r"^TextVectorizer cannot be exported to ONNX: ",
        ),
        (make_pipeline(TfidfVectorizer(), NPSVOR()).fit(texts, [2, 1] * 10), r"^TfidfVectorizer cannot be exported"),
        (
            make_pipeline(PCA(2), NPSVOR()).fit(X, y),
            r"^PCA cannot be exported to ONNX: only ColumnEncoder, StandardScaler, .* alone",
        ),
        (make_pipeline(StandardScaler(), ColumnEncoder(), NPSVOR()).fit(X, y), r"^ColumnEncoder .* must come first"),
        (NPSVOR(kernel="precomputed").fit(X @ X.T, y), r"^kernel='precomputed' cannot be exported to ONNX: only linear, rbf, poly"),
        (NPSVOR(kernel=lambda a, b: a @ b.T).fit(X, y), "cannot be exported to ONNX: only linear"),
        (LogisticRegression().fit(X, y), r"^model must be one of NPSVOR, .* Got LogisticRegression\.$"),
        (Subclass().fit(X, y), r"Got Subclass\.$"),
        (StandardScaler().fit(X), r"Got StandardScaler\.$"),
        (None, r"Got NoneType\.$"),
    ]:
        with pytest.raises(ValueError, match=told):
            rankplane.onnx.convert(model)
    with pytest.raises(ValueError, match="not fitted"):
        rankplane.onnx.convert(NPSVOR())


def test_a_graph_too_large_for_its_format_is_refused(monkeypatch, saved, tmp_path, capsys):
    monkeypatch.setattr(rankplane.onnx, "MAX_BYTES", 100)
    told = complaint(capsys, ["export", saved, "--onnx", tmp_path / "m.onnx"])
    assert told.startswith("model must have at most 100 bytes of weights to be exported to ONNX. Got ")
    assert not (tmp_path / "m.onnx").exists()


def test_a_missing_library_is_named(monkeypatch, saved, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "onnx", None)
    told = complaint(capsys, ["export", saved, "--onnx", tmp_path / "m.onnx"])
    assert told == "Export to ONNX needs onnx: pip install 'rankplane[onnx]'."
    assert not (tmp_path / "m.onnx").exists()


# The command.


def test_export_of_a_table(tmp_path, capsys):
    rows = [{"age": 20 + n % 60, "smoker": "yes" if n % 3 else "no", "risk": 1 + n % 60 // 20} for n in range(120)]
    write_csv(tmp_path / "t.csv", rows)
    model, graph = str(tmp_path / "m.rankplane"), str(tmp_path / "m.onnx")
    assert main(["train", str(tmp_path / "t.csv"), "--target", "risk", "--C", "1", "-o", model]) == 0
    capsys.readouterr()
    assert main(["export", model, "--onnx", graph]) == 0
    told = capsys.readouterr().out
    assert "age" in told
    assert "smoker" in told
    assert f"Written: {graph}" in told
    session = runtime.InferenceSession(graph)
    inputs = {"age": np.array([[row["age"]] for row in rows], float), "smoker": np.array([[row["smoker"]] for row in rows], object)}
    label, shares = session.run(["label", "probabilities"], inputs)
    loaded = load_model(model)
    table = {name: [row[name] for row in rows] for name in ("age", "smoker")}
    np.testing.assert_array_equal(label, loaded.predict(table))
    np.testing.assert_allclose(shares, loaded.predict_proba(table), rtol=1e-9)


def test_export_of_texts_is_refused(tmp_path, capsys):
    model = str(tmp_path / "m.rankplane")
    table = write_csv(tmp_path / "t.csv", make_rows(60))
    assert main(["train", table, "--text", "review", "--target", "stars", "--C", "1", "-o", model]) == 0
    capsys.readouterr()
    assert complaint(capsys, ["export", model, "--onnx", tmp_path / "m.onnx"]).startswith(
        "TextVectorizer cannot be exported to ONNX"
    )
    assert "would be overwritten" in complaint(capsys, ["export", model, "--onnx", model])
    assert "is not a model file" in complaint(capsys, ["export", table, "--onnx", tmp_path / "m.onnx"])
    assert "--onnx" in complaint(capsys, ["export", model])
    assert not (tmp_path / "m.onnx").exists()
