# ruff: noqa: RUF001 - letters that look alike are what is tested.
"""N-grams of characters in many scripts, as scikit-learn finds them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from rankplane.text import TextVectorizer

SCRIPTS = {
    "korean": ["방이 깨끗하고 직원이 친절했습니다", "한글 ᄒᆞᆫ글 \u1112\u1161\u11ab글 ㅋㅋㅋㅋ", "다시 오고 싶어요ㅠㅠ"],
    "japanese": ["とても良い映画でした。もう一度見たい!", "ｶﾀｶﾅ カタカナ が か\u3099", "値段が高すぎる…々〆ヵ"],
    "thai": ["ห้องพักสะอาดมาก พนักงานเป็นกันเอง", "น้ำ นํ้า ไม่ดีเลย", "ราคาแพงเกินไป ๆ ฯลฯ"],
    "chinese": ["今天天气很好,我们去公园吧。今天", "第1次,２０２４年 𠮷野家", "很 好 看 的 电影!电影很好看"],
    "arabic": ["الغرفة نظيفة والموظفون ودودون", "مُدَرِّسَةٌ كـــبير ﷺ ﻻ لا", "سيئ جداً ١٢٣"],
    "hindi": ["कमरा साफ़ था, कर्मचारी मिलनसार थे", "क्षत्रिय क़ क\u093c", "नहीं\u200d नहीं\u200c"],
    "emoji": ["great 😀😀 stay 👍🏽 ok", "👩‍👩‍👧 family 🇩🇪🇫🇷 trip", "❤️ ❤ 1️⃣ \U000e0001 tag"],
    "combining": ["cafe\u0301 café e\u0301\u0323 e\u0323\u0301", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘", "ﬁ ﬀ İ ı ΑΣ ΑΣ."],
}


def assert_same(documents, new, **options):
    theirs = TfidfVectorizer(**options)
    try:
        expected = theirs.fit_transform(documents)
    except ValueError:
        with pytest.raises(ValueError, match="no column remains"):
            TextVectorizer(preset="sklearn", **options).fit(documents)
        return
    vectorizer = TextVectorizer(preset="sklearn", n_jobs=2, **options)
    for ours, theirs_too in ((vectorizer.fit_transform(documents), expected), (vectorizer.transform(new), theirs.transform(new))):
        theirs_too.sort_indices()
        np.testing.assert_array_equal(ours.indptr, theirs_too.indptr)
        np.testing.assert_array_equal(ours.indices, theirs_too.indices)
        np.testing.assert_allclose(ours.data, theirs_too.data, rtol=1e-12)
    assert vectorizer.vocabulary_ == theirs.vocabulary_
    analyze, analyze_as_theirs = vectorizer.build_analyzer(), theirs.build_analyzer()
    assert [analyze(document) for document in new] == [analyze_as_theirs(document) for document in new]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("analyzer", ["char", "char_wb"])
@pytest.mark.parametrize("ngram_range", [(1, 4), (2, 5), (4, 7)])
def test_characters_of_scripts(script, analyzer, ngram_range):
    documents = SCRIPTS[script] * 2 + SCRIPTS["emoji"]
    for strip_accents in (None, "unicode", "ascii"):
        assert_same(documents, SCRIPTS["combining"], analyzer=analyzer, ngram_range=ngram_range, strip_accents=strip_accents)


ALPHABET = "aA  \t\n\u3000éé\u0301e\u0301ßΣσς가각ᄒ今あガกี้الً🇩🇪😀\u200d"


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.text(ALPHABET, max_size=30), min_size=1, max_size=5),
    st.sampled_from(["char", "char_wb"]),
    st.integers(1, 6),
    st.integers(0, 5),
    st.integers(1, 2),
)
def test_any_characters(documents, analyzer, shortest, n_more, min_df):
    if min_df <= len(documents):
        ngram_range = (shortest, shortest + n_more)
        assert_same(documents, documents[::-1], analyzer=analyzer, ngram_range=ngram_range, min_df=min_df, sublinear_tf=True)


def test_texts_of_all_lengths_and_alphabets():
    """Long enough for every way to sort: by comparisons, by digits, and n-grams that do not fit into an integer."""
    generator = np.random.default_rng(0)
    for n_letters, length in ((3, 2000), (40, 700), (300, 3000), (20_000, 4000)):
        letters = [chr(0x4E00 + i) for i in range(n_letters)] + [" "]
        texts = ["".join(generator.choice(letters, length)) for _ in range(3)]
        for analyzer in ("char", "char_wb"):
            for ngram_range in ((1, 3), (3, 6)):
                assert_same(texts, texts[:1], analyzer=analyzer, ngram_range=ngram_range)


def test_a_character_more_often_than_a_short_count_can_say():
    assert_same(["ab" * 70_000 + "c" * 200_000, "abc"], ["c" * 66_000], analyzer="char", ngram_range=(1, 2))
