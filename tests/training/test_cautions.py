"""Warnings are true: said when a model knows few words or gains little, and not otherwise."""

import numpy as np
import pytest

from rankplane import NPSVOR
from rankplane.inputs.schema import Inputs, Rows
from rankplane.options import with_options
from rankplane.text import TextVectorizer
from rankplane.training.cautions import KnownWords, VocabularyCheck, find, script_without_blanks
from rankplane.training.model import TrainedModel

CHINESE = ["首先你得忍着看完第一遍,觉得不知道在说什么;看了第二遍,觉得好像有点意思", "这部电影真的很好看,五星推荐"]


@pytest.mark.parametrize(
    ("script", "texts"),
    [
        ("Chinese", CHINESE),
        ("Chinese", ["IMAX 版本的画面非常震撼人心,值得一看"]),
        ("Japanese", ["この映画はとても面白かったです。また見たいと思います。"]),
        ("Japanese", ["コーヒーメーカーはすばらしい"]),
        ("Thai", ["หนังเรื่องนี้สนุกมากและนักแสดงเก่งมาก"]),
        ("Lao", ["ຮູບເງົາເລື່ອງນີ້ດີຫຼາຍ"]),
        ("Khmer", ["ភាពយន្តនេះល្អណាស់"]),
        ("Burmese", ["ဒီရုပ်ရှင်ကအရမ်းကောင်းတယ်"]),
        (None, ["A wonderful film, and I enjoyed every minute of it."]),
        (None, ["这 部 电影 真的 很 好看 , 五星 推荐"]),  # words are separated already
        (None, ["이 영화는 정말 재미있었어요"]),
        (None, ["यह फिल्म बहुत अच्छी है"]),
        (None, ["Великолепный фильм, всем советую"]),
        (None, ["A film called 首先你得忍着看完第一遍, which I have not seen but would like to see very much"]),
        (None, [""]),
        (None, []),
    ],
)
def test_scripts_without_blanks(script, texts):
    assert script_without_blanks(texts) == script


def counts_of(vectorizer, texts):
    """Known words and all words of each text."""
    known, counted = KnownWords(vectorizer).count(texts, vectorizer.transform(texts))
    return known.tolist(), counted.tolist()


def test_known_words_are_counted():
    vectorizer = TextVectorizer(min_df=1).fit(["good screen", "bad screen!"])
    texts = ["good bad good film", "", "!", "nothing here", "screen"]
    assert counts_of(vectorizer, texts) == ([2, 0, 1, 0, 1], [3, 0, 1, 2, 1])
    assert counts_of(vectorizer, ["", "nothing"]) == ([0, 0], [0, 1])


@pytest.mark.parametrize(
    ("options", "noun", "expected"),
    [
        ({"ngram_range": (2, 2)}, "terms", (1, 2)),
        ({"analyzer": "char", "ngram_range": (1, 2)}, "characters", (9, 11)),
        ({"preset": "paper", "min_df": 1, "max_df": 1.0}, "words", (2, 3)),
    ],
)
def test_what_counts_as_a_word(options, noun, expected):
    vectorizer = TextVectorizer(**{"min_df": 1} | options).fit(["good screen", "bad screens"])
    assert KnownWords(vectorizer).noun == noun
    known, counted = counts_of(vectorizer, ["good screen film" if noun != "characters" else "good screen!k"])
    assert (known[0], counted[0]) == expected


def fitted(texts, ranks, **options):
    vectorizer = TextVectorizer(min_df=1, **options)
    return TrainedModel(vectorizer, NPSVOR(probability=True).fit(vectorizer.fit_transform(texts), ranks), Inputs("rank", ["text"]))


def finding_of(model, texts):
    return VocabularyCheck(model).add(texts, model.transform(texts)).finding


def found(model, features, places, poor):
    """What `find` says of a model that was measured on these features, in the words of the command line."""
    measured = model.encode(Rows(features, places, places, {}))
    return [with_options(sentence) for sentence in find(model, measured, places, poor)]


def test_few_texts_of_many_are_looked_at():
    model = fitted(["good screen", "bad screen"] * 10, [1, 2] * 10)
    check, texts = VocabularyCheck(model), ["unknown words only"] * 700
    for _ in range(5):
        check.add(texts, model.transform(texts))
    assert check.n_checked <= 1000
    assert check.finding == "the model knows less than half of the words in 100% of the texts"
    assert finding_of(model, ["good screen"] * 3 + ["unknown words"] * 2) is None
    assert finding_of(model, ["", "..."]) is None  # nothing to know
    assert VocabularyCheck(model).add([], None).finding is None


def test_the_likely_reason():
    texts, places = ["good screen", "bad screen"] * 200, np.tile([0, 1], 200)
    model = fitted(texts, places)
    assert found(model, texts, places, None) == []
    poor = "the model is no better"
    assert found(model, texts, places, poor)[0] == "The model is no better."
    assert "little to do with the texts" in found(model, texts, places, poor)[-1]
    assert "only 100 rows" in found(model, texts, places[:100], poor)[-1]
    assert "90% of the rows have rank 0" in found(model, texts, np.repeat([0, 1], [360, 40]), poor)[-1]
    unknown = found(model, ["never seen"], places, None)
    assert unknown[0] == "The model knows less than half of the words in 100% of the texts."
    assert "--analyzer char_wb" in unknown[1]
    assert "--segmenter chinese or --analyzer char --ngrams 1-3" in found(model, CHINESE, places, None)[-1]
    # Who takes characters already is not told to take characters.
    by_character = fitted(CHINESE * 200, places, analyzer="char")
    assert found(by_character, CHINESE, places, None) == []
    assert "little to do with the texts" in found(by_character, CHINESE, places, poor)[-1]
    table = TrainedModel(None, NPSVOR().fit(places[:, None], places), Inputs("rank", n_columns=1))
    assert "--kernel rbf" in found(table, places[:, None], places, poor)[-1]


def test_a_library_is_told_of_parameters():
    places = np.tile([0, 1], 200)
    table = TrainedModel(None, NPSVOR().fit(places[:, None], places), Inputs("rank", n_columns=1))
    measured = table.encode(Rows(places[:, None], places, places, {}))
    told = find(table, measured, places, "the model is no better")[-1]
    assert 'Check target, or try kernel="rbf"' in told
    assert "--" not in told
