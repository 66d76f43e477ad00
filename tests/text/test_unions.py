"""Columns of several analyzers in one matrix."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from rankplane import NPSVOR, TextVectorizer, load_model, save_model
from rankplane.training.cautions import KnownWords
from rankplane.training.highlights import term_spans

TEXTS = ["Good value, good room!", "not good", "the room is not clean", "방이 깨끗하고 좋아요", "clean rooms", ""] * 2
UNION = {"word": (1, 2), "char_wb": (2, 4)}
UNIONS = [UNION, {"char": (1, 3), "word": (1, 1)}, {"word": (1, 1), "char": (2, 2), "char_wb": (3, 5)}]
SETTINGS = [{}, {"min_df": 1, "norm": None}, {"max_features": 7}, {"use_idf": False, "norm": "l1"}, {"hashing": 8}]
RATED = [4, 2, 1, 5, 3, 3] * 2


def parts_of(union, **settings):
    return [TextVectorizer(analyzer=name, ngram_range=ngram_range, **settings) for name, ngram_range in union.items()]


@pytest.mark.parametrize(
    "union", [UNION, {"char": (1, 3), "word": (1, 1)}, {"word": (1, 1), "char": (2, 2), "char_wb": (3, 5)}], ids=str
)
@pytest.mark.parametrize(
    "settings", [{}, {"min_df": 1, "norm": None}, {"max_features": 7}, {"use_idf": False}, {"hashing": 8}], ids=str
)
def test_columns_are_those_of_each_analyzer_side_by_side(union, settings):
    vectorizer = TextVectorizer(analyzer=union, **settings)
    matrix = vectorizer.fit_transform(TEXTS)
    parts = parts_of(union, **settings)
    share = {None: 1, "l1": 1 / len(union), "l2": len(union) ** -0.5}[settings.get("norm", "l2")]
    expected = share * sp.hstack([part.fit_transform(TEXTS) for part in parts])
    assert matrix.shape == expected.shape
    assert matrix.has_sorted_indices
    assert matrix.has_canonical_format
    np.testing.assert_allclose((matrix - expected).data, 0, atol=1e-6)
    new = ["a good cleaning", "방이"]
    expected = share * sp.hstack([part.transform(new) for part in parts])
    np.testing.assert_allclose((vectorizer.transform(new) - expected).data, 0, atol=1e-6)
    if "hashing" not in settings:
        names = [f"{name}__{term}" for name, part in zip(union, parts, strict=True) for term in part.get_feature_names_out()]
        assert vectorizer.get_feature_names_out().tolist() == names
        assert vectorizer.vocabulary_ == {name: column for column, name in enumerate(names)}


def test_a_dict_of_one_analyzer_is_that_analyzer():
    one, other = (
        TextVectorizer(analyzer={"char": (1, 2)}).fit(TEXTS),
        TextVectorizer(analyzer="char", ngram_range=(1, 2)).fit(TEXTS),
    )
    assert one.vocabulary_ == other.vocabulary_


def test_lengths_left_out_are_those_of_the_preset_and_usual_ones_for_characters():
    given = TextVectorizer(analyzer={"word": (1, 2), "char": (1, 4), "char_wb": (2, 5)}).fit(TEXTS)
    assert TextVectorizer(analyzer={"word": None, "char": None, "char_wb": None}).fit(TEXTS).vocabulary_ == given.vocabulary_


def in_batches(texts):
    return (texts[i : i + 5] for i in range(0, len(texts), 5))


@pytest.mark.parametrize("make", [iter, in_batches, np.array], ids=["iterator", "batches", "array"])
def test_documents_are_read_once(make):
    vectorizer = TextVectorizer(analyzer=UNION)
    expected = vectorizer.fit_transform(TEXTS)
    assert (vectorizer.fit_transform(make(TEXTS)) != expected).nnz == 0


def test_a_tokenizer_applies_to_words_only():
    vectorizer = TextVectorizer(analyzer=UNION, tokenizer=str.split, min_df=1)
    names = vectorizer.fit(TEXTS).get_feature_names_out()
    assert "word__value," in names
    assert "char_wb__ goo" in names


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"analyzer": {}}, "analyzer must be a name, or a dict"),
        ({"analyzer": {"words": (1, 2)}}, "analyzer must be a name, or a dict"),
        ({"analyzer": UNION, "ngram_range": (1, 2)}, "ngram_range must be left out with a dict"),
        ({"analyzer": {"char": (1, 2), "char_wb": (2, 3)}, "stemmer": "english"}, "stemmer must be left out"),
        ({"analyzer": {"word": (2, 1), "char": (1, 2)}}, "ngram_range must be a pair"),
    ],
    ids=str,
)
def test_refusals(settings, rule):
    with pytest.raises(ValueError, match=rule):
        TextVectorizer(**settings).fit(TEXTS)


def test_model_files_and_pickles(tmp_path):
    model = make_pipeline(TextVectorizer(analyzer=UNION), NPSVOR(C=1)).fit(TEXTS, RATED)
    save_model(model, tmp_path / "m.rankplane")
    again = clone(model).fit(TEXTS, RATED)
    for loaded in (load_model(tmp_path / "m.rankplane"), pickle.loads(pickle.dumps(model)), again):
        assert loaded.predict(TEXTS).tolist() == model.predict(TEXTS).tolist()
        assert loaded[0].vocabulary_ == model[0].vocabulary_


def test_spans_are_in_the_columns_of_their_analyzer():
    vectorizer = TextVectorizer(analyzer=UNION, min_df=1).fit(TEXTS)
    names = vectorizer.get_feature_names_out()
    found = {(names[column], start, end) for start, end, column in term_spans(vectorizer, "not good")}
    assert {("word__not good", 0, 8), ("word__good", 4, 8), ("char_wb__ goo", 4, 8)} <= found


def test_known_words_of_a_union_are_words():
    vectorizer = TextVectorizer(analyzer={"char": (1, 3), "word": (1, 2)}).fit(TEXTS)
    texts = ["good room zzz"]
    known, counted = KnownWords(vectorizer).count(texts, vectorizer.transform(texts))
    assert (known.tolist(), counted.tolist()) == ([2], [3])


@pytest.mark.parametrize(
    "options", [{"vocabulary": ["good", "room"], "use_idf": False}, {"analyzer": str.split, "min_df": 1}], ids=["fixed", "callable"]
)
def test_known_words_of_other_vectorizers(options):
    vectorizer = TextVectorizer(ngram_range=(1, 1), **options) if "vocabulary" in options else TextVectorizer(**options)
    vectorizer.fit(TEXTS)
    known, counted = KnownWords(vectorizer).count(["good room zzz"], vectorizer.transform(["good room zzz"]))
    assert (known.tolist(), counted.tolist()) == ([2], [3])


def test_explanations_name_the_analyzer(tmp_path):
    model = make_pipeline(TextVectorizer(analyzer=UNION, min_df=1), NPSVOR(C=1)).fit(TEXTS, RATED)
    names = model[0].get_feature_names_out()
    reasons = model[-1].explain(model[0].transform(["not clean"]), names, top=20)[0]
    assert "word__not clean" in str(reasons)
    assert "char_wb__ cl" in str(reasons)
