"""Classes of scikit-learn come back from a model file as they were; what is not on the list is refused by its name."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2, f_classif
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

import forging
from rankplane import NPSVOR, SVOR, CSearchCV, load_model, save_model
from rankplane.modelfile.sklearn_codecs import KNOWN
from rankplane.tabular import ColumnEncoder
from rankplane.text import TextVectorizer

rng = np.random.default_rng(0)
NUMBERS = rng.standard_normal((80, 4)) + np.array([0, 1, 5, 3])
GAPS = np.where(rng.random(NUMBERS.shape) < 0.1, np.nan, NUMBERS)
COUNTS = sp.csr_matrix(rng.poisson(0.7, (80, 6)))
WORDS = np.array([["a", "x"], ["b", "y"], ["c", "x"], ["a", None], ["a", "x"]] * 16, dtype=object)
CODES = np.array([[1, 2.5], [3, np.nan], [2, 2.5], [3, 7.0]] * 20)
TEXTS = ["good day", "bad day now", "a fine night", "so it goes", "très bon"] * 16
TABLE = pd.DataFrame(
    {"age": rng.integers(20, 80, 80), "income": rng.standard_normal(80), "town": ["Ulm", "Köln", "Bonn", "Ulm"] * 20}
)
RANKS = np.digitize(NUMBERS[:, 0] + 0.2 * rng.standard_normal(80), [-0.7, 0.0, 0.7])

TRANSFORMERS = [
    (StandardScaler(), NUMBERS),
    (StandardScaler(with_mean=False), COUNTS),
    (StandardScaler(with_std=False), GAPS),
    (MinMaxScaler(feature_range=(-1, 1), clip=True), NUMBERS),
    (MaxAbsScaler(), COUNTS),
    (RobustScaler(quantile_range=(10.0, 90.0)), NUMBERS),
    (Normalizer("l1"), COUNTS),
    (QuantileTransformer(n_quantiles=20, output_distribution="normal"), NUMBERS),
    (PowerTransformer(), NUMBERS),
    (PowerTransformer("box-cox", standardize=False), np.exp(NUMBERS)),
    (FunctionTransformer(), NUMBERS),
    (SimpleImputer(), GAPS),
    (SimpleImputer(strategy="median", add_indicator=True), GAPS),
    (SimpleImputer(strategy="most_frequent", missing_values=None), WORDS),
    (SimpleImputer(strategy="constant", fill_value=-1), GAPS),
    (OneHotEncoder(), WORDS),
    (OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32), CODES),
    (OneHotEncoder(drop="first"), WORDS),
    (OneHotEncoder(drop="if_binary"), CODES),
    (OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist"), WORDS),
    (OneHotEncoder(max_categories=2, drop="first", handle_unknown="ignore"), WORDS),
    (OneHotEncoder(categories=[["a", "b", "c", "d"], ["x", "y", None]]), WORDS),
    (OrdinalEncoder(), CODES),
    (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2, dtype=np.int32), WORDS),
    (OrdinalEncoder(min_frequency=20), WORDS),
    (CountVectorizer(ngram_range=(1, 2), binary=True, dtype=np.float32), TEXTS),
    (CountVectorizer(vocabulary={"day": 1, "good": 0}, stop_words=["so"]), TEXTS),
    (TfidfVectorizer(), TEXTS),
    (TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3), sublinear_tf=True, stop_words=None, max_features=30), TEXTS),
    (TfidfVectorizer(use_idf=False, norm=None, stop_words="english", strip_accents="unicode"), TEXTS),
    (HashingVectorizer(n_features=64, alternate_sign=False), TEXTS),
    (TfidfTransformer(), COUNTS),
    (TruncatedSVD(2, random_state=0), COUNTS),
    (PCA(2, whiten=True), NUMBERS),
    (SelectKBest(chi2, k=3), COUNTS),
    (SelectKBest(k=2), NUMBERS),
    (Nystroem(gamma=0.1, n_components=10, random_state=0), NUMBERS),
    (Nystroem("laplacian", n_components=10, random_state=0), COUNTS),
    (FeatureUnion([("a", StandardScaler()), ("b", PCA(1)), ("c", "passthrough")], transformer_weights={"b": 2.0}), NUMBERS),
    (FeatureUnion([("a", TextVectorizer(min_df=1)), ("b", TfidfVectorizer(analyzer="char")), ("c", "drop")]), TEXTS),
    (ColumnTransformer([("a", StandardScaler(), [0, 2]), ("b", "passthrough", slice(1, 2))]), NUMBERS),
    (ColumnTransformer([("a", "drop", [0])], remainder=MinMaxScaler()), NUMBERS),
    (ColumnTransformer([("a", PCA(1), np.array([True, True, False, False]))], remainder="passthrough"), NUMBERS),
    (
        ColumnTransformer(
            [
                ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="number")),
                ("town", OneHotEncoder(handle_unknown="ignore"), ["town"]),
                ("letters", TfidfVectorizer(analyzer="char"), "town"),
            ],
            sparse_threshold=1.0,
        ),
        TABLE,
    ),
    (ColumnTransformer([("a", StandardScaler(), TABLE.columns[:2])]).set_output(transform="pandas"), TABLE),
    (Pipeline([("scale", StandardScaler()), ("none", None), ("same", "passthrough"), ("pca", PCA(3))]), NUMBERS),
]


def identify(value):
    return type(value).__name__ if hasattr(value, "fit") else ""


def dense(found):
    return found.toarray() if sp.issparse(found) else np.asarray(found)


def same(found, expected):
    assert type(found) is type(expected)
    assert dense(found).dtype == dense(expected).dtype
    if dense(found).dtype.kind == "f":
        # A file holds matrices row by row. BLAS multiplies those that lie column by column to another last bit.
        np.testing.assert_allclose(dense(found), dense(expected), rtol=1e-12, atol=1e-14)
    else:
        np.testing.assert_array_equal(dense(found), dense(expected))


def rows_of(X, part):
    return X.iloc[part] if isinstance(X, pd.DataFrame) else X[part]


@pytest.mark.parametrize(("transformer", "X"), TRANSFORMERS, ids=identify)
def test_transformers_come_back(transformer, X, tmp_path):
    fitted = clone(transformer).fit(X, RANKS)
    save_model(fitted, tmp_path / "t")
    found = load_model(tmp_path / "t")
    assert type(found) is type(fitted)
    same(found.transform(X), fitted.transform(X))
    same(found.transform(rows_of(X, slice(3, 5))), fitted.transform(rows_of(X, slice(3, 5))))
    if hasattr(fitted, "get_feature_names_out") and not isinstance(transformer, Pipeline | FunctionTransformer):
        np.testing.assert_array_equal(found.get_feature_names_out(), fitted.get_feature_names_out())
    same(clone(found).fit(X, RANKS).transform(X), fitted.transform(X))  # and its settings are those that it was fitted with


def test_every_class_of_the_list_is_tried():
    tried = {type(transformer).__name__ for transformer, _ in TRANSFORMERS} | {"MissingIndicator"}  # which an imputer holds
    assert tried >= KNOWN.keys()


def test_unknown_categories_are_met_as_before(tmp_path):
    for encoder in (
        OneHotEncoder(handle_unknown="ignore"),
        OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist"),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    ):
        encoder.fit(WORDS)
        save_model(encoder, tmp_path / "e")
        new = np.array([["zzz", "x"], ["a", "zzz"]], dtype=object)
        same(load_model(tmp_path / "e").transform(new), encoder.transform(new))


@pytest.mark.parametrize(
    ("vectorizer", "model"),
    [(TfidfVectorizer(), NPSVOR(probability=True, decision="mae")), (HashingVectorizer(n_features=2**10), SVOR())],
    ids=identify,
)
def test_pipelines_come_back(vectorizer, model, tmp_path):
    pipeline = make_pipeline(vectorizer, model).fit(TEXTS, RANKS)
    save_model(pipeline, tmp_path / "m")
    found = load_model(tmp_path / "m")
    np.testing.assert_array_equal(found.predict([*TEXTS, "new words"]), pipeline.predict([*TEXTS, "new words"]))
    np.testing.assert_array_equal(
        found[-1].plane_scores(found[0].transform(TEXTS)), pipeline[-1].plane_scores(pipeline[0].transform(TEXTS))
    )


def test_names_of_columns_come_back(tmp_path):
    table = TABLE[["age", "income"]]
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), NPSVOR()).fit(table, RANKS)
    save_model(pipeline, tmp_path / "m")
    found = load_model(tmp_path / "m")
    assert found.feature_names_in_.tolist() == ["age", "income"]
    assert list(found[0].transform(table).columns) == ["age", "income"]
    np.testing.assert_array_equal(found.predict(table), pipeline.predict(table))
    with pytest.raises(ValueError, match="feature names"):
        found.predict(table[["income", "age"]])


@pytest.mark.parametrize(
    "search",
    [
        GridSearchCV(make_pipeline(StandardScaler(), NPSVOR()), {"npsvor__C": [0.1, 1.0]}, cv=2),
        RandomizedSearchCV(
            make_pipeline(PCA(), SVOR()), {"svor__C": [0.1, 1.0], "pca__n_components": [2, 3]}, n_iter=2, cv=2, random_state=0
        ),
        make_pipeline(StandardScaler(), CSearchCV(NPSVOR(probability=True), Cs=[0.1, 1.0])),
    ],
    ids=identify,
)
def test_searches_become_their_best_model(search, tmp_path):
    search = clone(search).fit(NUMBERS, RANKS)
    save_model(search, tmp_path / "m")
    found = load_model(tmp_path / "m")
    assert isinstance(found, Pipeline)
    assert isinstance(found[-1], NPSVOR | SVOR)
    if hasattr(search, "best_params_"):
        assert {name: found.get_params()[name] for name in search.best_params_} == search.best_params_
    np.testing.assert_array_equal(found.predict(NUMBERS), search.predict(NUMBERS))


@pytest.mark.parametrize(
    ("model", "X", "sentence"),
    [
        (FunctionTransformer(np.log1p), NUMBERS, r"func must be a plain value .* Got <ufunc 'log1p'>"),
        (TfidfVectorizer(tokenizer=str.split, token_pattern=None), TEXTS, "tokenizer must be a plain value"),
        (TfidfVectorizer(analyzer=str.split), TEXTS, "analyzer must be a plain value"),
        (CountVectorizer(preprocessor=str.lower), TEXTS, "preprocessor must be a plain value"),
        (SelectKBest(lambda X, y: f_classif(X, y), k=2), NUMBERS, r"score_func must be one of chi2, .* Got <function"),
        (Nystroem(lambda a, b: 1.0, n_components=3), NUMBERS, "kernel must be a plain value"),
        (PCA(2, random_state=np.random.RandomState(0)), NUMBERS, "random_state must be a plain value"),
        (SplineTransformer(), NUMBERS, r"A model file holds NPSVOR, .*, StandardScaler, .* Got SplineTransformer"),
        (make_pipeline(StandardScaler(), LogisticRegression()), NUMBERS, "A model file holds .* Got LogisticRegression"),
        (ColumnTransformer([("a", SplineTransformer(), [0])]), NUMBERS, "A model file holds .* Got SplineTransformer"),
        (GridSearchCV(NPSVOR(), {"C": [1.0]}, cv=2, refit=False), NUMBERS, r"refit of GridSearchCV must be True .* Got False"),
        (CSearchCV(NPSVOR(), Cs=[1.0], refit=False), NUMBERS, "refit of CSearchCV must be True"),
    ],
    ids=identify,
)  # fmt: skip
def test_what_cannot_be_stored_is_refused(model, X, sentence, tmp_path):
    fitted = model.fit(X, RANKS)
    with pytest.raises(ValueError, match=sentence):
        save_model(fitted, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


class Renamed(StandardScaler):
    pass


def test_a_class_of_the_same_kind_is_not_the_class(tmp_path):
    Renamed.__name__ = "StandardScaler"
    with pytest.raises(ValueError, match=r"A model file holds .* Got StandardScaler"):
        save_model(Renamed().fit(NUMBERS), tmp_path / "m")


@pytest.mark.parametrize(
    "model", [StandardScaler(), TfidfVectorizer(), CSearchCV(NPSVOR()), GridSearchCV(NPSVOR(), {"C": [1.0]})], ids=identify
)
def test_unfitted_parts_are_refused(model, tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        save_model(model, tmp_path / "m")
    with pytest.raises(ValueError, match="not fitted"):
        save_model(make_pipeline(model, ColumnEncoder().fit(TABLE)), tmp_path / "m")


def test_texts_never_name_files(tmp_path):
    (tmp_path / "review").write_text("good day")
    vectorizer = CountVectorizer(input="filename").fit([str(tmp_path / "review")])
    with pytest.raises(ValueError, match=r"input of CountVectorizer must be 'content' .* Got 'filename'"):
        save_model(vectorizer, tmp_path / "m")
    save_model(CountVectorizer().fit(TEXTS), tmp_path / "m")
    header, arrays = forging.unpack((tmp_path / "m").read_bytes())
    header["model"]["params"]["input"] = "filename"
    (tmp_path / "m").write_bytes(forging.pack(header, arrays))
    with pytest.raises(ValueError, match=r"m is damaged .*: input of CountVectorizer must be 'content'"):
        load_model(tmp_path / "m")


def rewrite(path, change):
    header, arrays = forging.unpack(path.read_bytes())
    change(header)
    path.write_bytes(forging.pack(header, arrays))


@pytest.fixture
def scaled(tmp_path):
    path = tmp_path / "m.rankplane"
    save_model(make_pipeline(StandardScaler(), NPSVOR()).fit(NUMBERS, RANKS), path)
    return path


def test_another_scikit_learn_is_warned_of(scaled):
    expected = load_model(scaled).predict(NUMBERS)
    rewrite(scaled, lambda header: header.update({"scikit-learn": sklearn.__version__ + ".post1"}))
    load_model(scaled)  # the same minor version: no warning, which would be an error here
    rewrite(scaled, lambda header: header.update({"scikit-learn": "1.2.3"}))
    sentence = rf"m\.rankplane was written with scikit-learn 1\.2\.3, this is {sklearn.__version__}: its StandardScaler may give"
    with pytest.warns(UserWarning, match=sentence):
        np.testing.assert_array_equal(load_model(scaled).predict(NUMBERS), expected)


def test_files_without_its_classes_do_not_care_for_scikit_learn(tmp_path):
    save_model(make_pipeline(TextVectorizer(), NPSVOR()).fit(TEXTS, RANKS), tmp_path / "m")
    rewrite(tmp_path / "m", lambda header: header.update({"scikit-learn": "1.2.3"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "lacks"),
    [
        (lambda node: node["fitted"].pop("scale_"), "scale_"),
        (lambda node: node["params"].update(new_option=True), "new_option"),
    ],
    ids=["attribute", "parameter"],
)
def test_what_this_scikit_learn_does_not_know_is_refused_with_both_versions(change, lacks, scaled):
    def rewritten(header):
        header["scikit-learn"] = "9.8.7"
        change(header["model"]["steps"][0][1])

    rewrite(scaled, rewritten)
    versions = rf"scikit-learn 9\.8\.7, this is {sklearn.__version__}"
    with pytest.raises(
        ValueError, match=rf"m\.rankplane was written with {versions}, which cannot read its StandardScaler: {lacks} "
    ):
        load_model(scaled)


def test_a_parameter_at_its_default_may_have_gone(scaled):
    def rewritten(header):
        node = header["model"]["steps"][0][1]
        node["params"]["old_option"] = 5
        node["defaults"].append("old_option")

    expected = load_model(scaled).predict(NUMBERS)
    rewrite(scaled, rewritten)
    np.testing.assert_array_equal(load_model(scaled).predict(NUMBERS), expected)


FORGERIES = {
    "frequencies": (TfidfVectorizer(), TEXTS, lambda node: node["fitted"]["_tfidf"]["estimator"]["fitted"].pop("idf_")),
    "terms": (TfidfVectorizer(), TEXTS, lambda node: node["fitted"]["vocabulary_"].update(strings=[1, 1])),
    "columns out": (OneHotEncoder(sparse_output=False), WORDS, lambda node: node["fitted"].update(_n_features_outs=[1, 1])),
    "dropped": (
        OneHotEncoder(drop="first"),
        WORDS,
        lambda node: node["fitted"].update(_drop_idx_after_grouping={"objects": [0, 9]}),
    ),
    "negative": (
        OneHotEncoder(drop="first"),
        WORDS,
        lambda node: node["fitted"].update(_drop_idx_after_grouping={"objects": [0, -9]}),
    ),
    "few columns": (OneHotEncoder(), WORDS, lambda node: node["fitted"].update(n_features_in_=1)),
    "groups": (OneHotEncoder(min_frequency=20), WORDS, lambda node: node["fitted"]["_infrequent_indices"].__setitem__(0, None)),
    "no buckets": (HashingVectorizer(), TEXTS, lambda node: node["params"].update(n_features=0)),
    "processes": (FeatureUnion([("a", StandardScaler())]), NUMBERS, lambda node: node["params"].update(n_jobs=100_000)),
    "claimed columns": (
        ColumnTransformer([("a", StandardScaler(), [0])]),
        NUMBERS,
        lambda node: node["fitted"].update(n_features_in_=2**63 - 1),
    ),
    "claimed names": (Nystroem(n_components=5), NUMBERS, lambda node: node["fitted"].update(_n_features_out=2**40)),
    "indicator": (
        SimpleImputer(add_indicator=True),
        GAPS,
        lambda node: node["fitted"]["indicator_"]["estimator"]["fitted"].update(n_features_in_=2**40),
    ),
    "half a column": (Normalizer(), NUMBERS, lambda node: node["fitted"].update(n_features_in_=4.0)),
    "too many columns": (Normalizer(), NUMBERS, lambda node: node["fitted"].update(n_features_in_=2**40)),
    "means": (StandardScaler(), NUMBERS, lambda node: node["fitted"].update(n_features_in_=9)),
    "code": (FunctionTransformer(), NUMBERS, lambda node: node["params"].update(func="os.system")),
    "score": (SelectKBest(k=2), NUMBERS, lambda node: node["params"].update(score_func="eval")),
    "type": (OneHotEncoder(), WORDS, lambda node: node["params"].update(dtype="V1000000000")),
    "part": (
        FeatureUnion([("a", StandardScaler())]),
        NUMBERS,
        lambda node: node["params"].update(transformer_list=[{"tuple": ["a", 1]}]),
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_attributes_are_refused(name, tmp_path):
    model, X, change = FORGERIES[name]
    path = tmp_path / "m.rankplane"
    save_model(clone(model).fit(X, RANKS), path)
    rewrite(path, lambda header: change(header["model"]))
    with pytest.raises(ValueError, match=r"m\.rankplane is damaged or was written by another version of rankplane: "):
        load_model(path)


def test_unsorted_categories_are_refused(tmp_path):
    """Numbers are looked up by bisection, which would find a place past the last of them."""
    encoder = OneHotEncoder(sparse_output=False).fit(CODES)
    encoder.categories_ = [categories[::-1].copy() for categories in encoder.categories_]
    save_model(encoder, tmp_path / "m")
    with pytest.raises(ValueError, match="OneHotEncoder has unsorted categories"):
        load_model(tmp_path / "m")
