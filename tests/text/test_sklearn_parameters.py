"""Parameters and functions that TextVectorizer shares with TfidfVectorizer."""

import io
import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer, strip_tags
from sklearn.pipeline import make_pipeline

from conftest import words
from rankplane import NPSVOR, TextVectorizer, load_model, save_model

TEXTS = ["Good value, GOOD room!", "not good at all", "the room is not clean", "Müde Kellner", "clean rooms, good", ""]


def backwards(text):
    return text[::-1].lower()


def pieces(text):
    return [piece for piece in text.split("o") if piece]


def without_m(text):
    return text.replace("m", "")


def pair(**options):
    return TextVectorizer(preset="sklearn", **options), TfidfVectorizer(**options)


def assert_same(documents, new=TEXTS, **options):
    ours, theirs = pair(**options)
    for method, texts in (("fit_transform", documents), ("transform", new)):
        found, expected = getattr(ours, method)(texts), getattr(theirs, method)(texts)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-6 if found.dtype == np.float32 else 1e-12)
    assert ours.vocabulary_ == theirs.vocabulary_
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    if options.get("use_idf", True):
        np.testing.assert_allclose(ours.idf_, theirs.idf_, rtol=1e-12 if ours.idf_.dtype == theirs.idf_.dtype else 1e-6)
    assert ours.fixed_vocabulary_ == theirs.fixed_vocabulary_


@pytest.mark.parametrize(
    "options",
    [
        {"binary": True},
        {"binary": True, "analyzer": "char", "use_idf": False, "norm": None},
        {"binary": True, "sublinear_tf": True},
        {"dtype": np.float32},
        {"dtype": np.float64, "ngram_range": (1, 3)},
        {"preprocessor": backwards},
        {"preprocessor": backwards, "analyzer": "char_wb", "ngram_range": (2, 3)},
        {"strip_accents": without_m},
        {"strip_accents": without_m, "lowercase": False, "tokenizer": pieces, "token_pattern": None},
        {"analyzer": pieces},
        {"vocabulary": ["room", "good", "zebra"]},
        {"vocabulary": {"room": 2, "not good": 0, "good": 1}, "ngram_range": (1, 2)},
        pytest.param({"vocabulary": {"good", "clean"}, "norm": "l1", "binary": True}, id="a set"),
        {"vocabulary": ["oo", "ro", "e"], "analyzer": "char", "ngram_range": (1, 2), "use_idf": False},
        {"vocabulary": {" ro": 1, "goo": 0}, "analyzer": "char_wb", "ngram_range": (3, 3), "sublinear_tf": True},
        {"vocabulary": ["good"], "norm": None, "dtype": np.float32},
    ],
    ids=words,
)
def test_equal_scikit_learn(options):
    assert_same(TEXTS, **options)


@pytest.mark.parametrize("kind", ["file", "filename"])
@pytest.mark.parametrize("analyzer", ["word", "char", str.split], ids=["word", "char", "callable"])
def test_input(kind, analyzer, tmp_path):
    for number, text in enumerate(TEXTS):
        (tmp_path / str(number)).write_text(text, encoding="utf-8")
    paths = [tmp_path / str(number) for number in range(len(TEXTS))]

    def given():
        return paths if kind == "filename" else [io.BytesIO(path.read_bytes()) for path in paths]

    ours, theirs = pair(input=kind, analyzer=analyzer)
    np.testing.assert_allclose(ours.fit_transform(given()).toarray(), theirs.fit_transform(given()).toarray(), rtol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ngram_range": (2, 3), "stop_words": "english"},
        {"analyzer": "char", "ngram_range": (1, 3), "strip_accents": "unicode"},
        {"analyzer": "char_wb", "ngram_range": (4, 6)},
        {"analyzer": pieces},
        {"preprocessor": backwards, "tokenizer": pieces, "token_pattern": None},
    ],
    ids=words,
)
def test_functions_equal_scikit_learn(options):
    ours, theirs = pair(**options)
    assert [ours.build_analyzer()(text) for text in TEXTS] == [theirs.build_analyzer()(text) for text in TEXTS]
    assert [ours.build_preprocessor()(text) for text in TEXTS] == [theirs.build_preprocessor()(text) for text in TEXTS]
    assert [ours.build_tokenizer()(text) for text in TEXTS] == [theirs.build_tokenizer()(text) for text in TEXTS]
    assert ours.decode("é".encode()) == theirs.decode("é".encode())
    assert ours.get_stop_words() == theirs.get_stop_words()
    assert pickle.loads(pickle.dumps(ours.build_analyzer()))(TEXTS[0]) == theirs.build_analyzer()(TEXTS[0])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"preset": "paper", "min_df": 1, "max_df": 1.0},
        {"analyzer": {"word": (1, 2), "char_wb": (2, 4)}},
        {"stemmer": "english", "stop_words": ["the"], "min_token_length": 3},
    ],
    ids=words,
)
def test_the_functions_say_what_the_core_does(options):
    vectorizer = TextVectorizer(**{"min_df": 1} | options)
    rows = vectorizer.fit_transform(TEXTS)
    terms = [sorted(set(vectorizer.build_analyzer()(text))) for text in TEXTS]
    assert [sorted(found) for found in vectorizer.inverse_transform(rows)] == terms
    assert [sorted(found) for found in vectorizer.inverse_transform(rows.toarray())] == terms


def test_weights_may_be_set():
    fitted = TextVectorizer(preset="sklearn").fit(TEXTS)
    other = TextVectorizer(preset="sklearn", vocabulary=fitted.vocabulary_)
    with pytest.raises(NotFittedError):
        other.transform(TEXTS)
    other.idf_ = fitted.idf_
    assert (other.transform(TEXTS) != fitted.transform(TEXTS)).nnz == 0
    other.idf_ = 2 * fitted.idf_
    other.norm = None
    np.testing.assert_allclose(other.transform(TEXTS).toarray(), 2 * fitted.set_params(norm=None).transform(TEXTS).toarray())
    for wrong in ([1.0], [np.nan] * len(fitted.idf_)):
        with pytest.raises(ValueError, match=r"idf_ must have a finite number for each of \d+ columns"):
            fitted.idf_ = wrong
    with pytest.raises(ValueError, match="idf_ cannot be set with use_idf=False"):
        TextVectorizer(use_idf=False).idf_ = [1.0]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"analyzer": "char", "stop_words": ["a"]}, "The parameter 'stop_words' will not be used since 'analyzer' != 'word'"),
        ({"analyzer": "char", "token_pattern": r"\w"}, "The parameter 'token_pattern' will not be used since 'analyzer' != 'word'"),
        (
            {"tokenizer": pieces, "token_pattern": "a"},
            "The parameter 'token_pattern' will not be used since 'tokenizer' is not None",
        ),
        ({"analyzer": pieces, "ngram_range": (1, 2)}, "The parameter 'ngram_range' will not be used since 'analyzer' is callable"),
        (
            {"analyzer": pieces, "preprocessor": backwards},
            "The parameter 'preprocessor' will not be used since 'analyzer' is callable",
        ),
        ({"dtype": np.int64}, "Only float32 and float64 'dtype' should be used. int64 becomes float64."),
        (
            {"stop_words": ["you've"]},
            r"Your stop_words may be inconsistent with your preprocessing. .* tokens \['ve', 'you'\] not in",
        ),
    ],
    ids=words,
)
def test_warnings(options, sentence):
    with pytest.warns(UserWarning, match=sentence):
        vectorizer = TextVectorizer(preset="sklearn", **options).fit(TEXTS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vectorizer.transform(TEXTS)


def test_consistent_stop_words_pass_without_a_warning():
    TextVectorizer(preset="paper", min_df=1, max_df=1.0).fit(TEXTS)
    TextVectorizer(stop_words=["you", "ve"], preprocessor=CountVectorizer().build_preprocessor()).fit(TEXTS)
    TextVectorizer(stop_words=["you"], preprocessor=lambda document: document["text"]).fit([{"text": "a room"}] * 2)
    TextVectorizer(min_df=1, preprocessor=strip_tags).fit(["<b>bold</b>"])


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": np.float64},
        {"dtype": "float64", "binary": True},
        {"vocabulary": ["good", "not good", "room"], "ngram_range": (1, 2)},
        {"vocabulary": {"room": 1, "good": 0}, "use_idf": False},
    ],
    ids=words,
)
def test_model_files(options, tmp_path):
    model = make_pipeline(TextVectorizer(preset="sklearn", **options), NPSVOR(C=1)).fit(TEXTS, [4, 2, 1, 3, 4, 3])
    save_model(model, tmp_path / "m.rankplane")
    for loaded in (load_model(tmp_path / "m.rankplane"), pickle.loads(pickle.dumps(model))):
        assert (loaded[0].transform(TEXTS) != model[0].transform(TEXTS)).nnz == 0
        assert loaded.predict(TEXTS).tolist() == model.predict(TEXTS).tolist()


def test_what_model_files_refuse(tmp_path):
    for options, sentence in (
        ({"input": "filename"}, "input must be 'content' to be stored in a model file. Got 'filename'."),
        ({"analyzer": pieces}, "analyzer must be a plain value to be stored in a model file"),
    ):
        model = TextVectorizer(**options, vocabulary=["a"], use_idf=False)
        with pytest.raises(ValueError, match=sentence):
            save_model(make_pipeline(model.fit([]), NPSVOR()), tmp_path / "m.rankplane")
