# ruff: noqa: RUF001 - letters that look alike are what is tested.
"""TextVectorizer against scikit-learn's TfidfVectorizer."""

import pickle

import numpy as np
import pytest
import Stemmer
from sklearn.base import clone
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from rankplane.text import TextVectorizer

SKLEARN_PATTERN = r"(?u)\b\w\w+\b"

ENGLISH = [
    "The room was clean, and the staff were friendly!",
    "Not clean. Not friendly. Would NOT stay here again...",
    "It's OK: 3 stars out of 5, a bit over-priced (and_under_scored) for what it is",
    "the the the room the room",
    "A a I x 7",
    "",
    "   \t\n ",
]
ACCENTS = [
    "Über naïve café, ÀÉÎÕÜ çédille",
    "cafe\u0301 et café",
    "İstanbul ISTANBUL ıstanbul",
    "ﬁne ﬁnal ½ ² Ⅷ K Å",
    "Straße STRASSE ẞ",
]
GREEK = ["ΟΔΥΣΣΕΥΣ ΣΑΣ Σ ΑΣ", "ΑΣ. ΑΣΑ ΑΣ'Α Σ'", "ΌΣΟΣ\u0301 ΑΣ\u00adΑ ΑΣ\u00ad", "ΣΣΣ ΣΣ. σς"]
CHINESE = [
    "今天天气很好,我们去公园吧。今天",
    "很 好 看 的 电影!电影很好看",
    "第1次,２０２４年",
    "東京 とうきょう トウキョウ",
]
KOREAN = ["방이 깨끗하고 직원이 친절했습니다", "직원이 친절했습니다 다시 오고 싶어요", "한글 ᄒᆞᆫ글 \u1112\u1161\u11ab글"]
EMOJI = ["great 😀😀 stay 👍🏽 ok", "👩‍👩‍👧 family 🇩🇪 trip", "𝒳𝓎 𝔸𝔹 𐐀𐐁 \U000e0001 tag"]
HUGE = ["word " * 50_000 + "Tail", "x" * 200_000, "é" * 70_001 + " " + "ab" * 9, "a b" + " " * 100_000 + "cd ef"]
SURROGATES = ["a\ud800b cd", "\udfff\ud800 xy \ud83d\ude00z"]
CORPORA = {
    "english": ENGLISH,
    "accents": ACCENTS,
    "greek": GREEK,
    "chinese": CHINESE,
    "korean": KOREAN,
    "emoji": EMOJI,
    "huge": HUGE,
    "surrogates": SURROGATES,
    "all": [*ENGLISH, *ACCENTS, *GREEK, *CHINESE, *KOREAN, *EMOJI, *HUGE],
}


def assert_same(documents, new=(), n_jobs=2, ours=None, **settings):
    """Vocabulary, idf and every value equal those of scikit-learn, for seen and unseen documents."""
    theirs = TfidfVectorizer(**settings)
    expected = theirs.fit_transform(documents)
    settings = {"token_pattern": SKLEARN_PATTERN, "sublinear_tf": False, "min_df": 1, "ngram_range": (1, 1)} | settings
    if settings.get("analyzer", "word") != "word":
        del settings["token_pattern"]
    vectorizer = TextVectorizer(**settings | (ours or {}), n_jobs=n_jobs)
    matrix = vectorizer.fit_transform(documents)
    assert vectorizer.vocabulary_ == theirs.vocabulary_
    assert vectorizer.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    if settings.get("use_idf", True):
        np.testing.assert_allclose(vectorizer.idf_, theirs.idf_, rtol=1e-12)
    assert_close(matrix, expected)
    assert_close(vectorizer.transform([*documents, *new]), theirs.transform([*documents, *new]))


def assert_close(matrix, expected):
    assert matrix.dtype == np.float32
    assert matrix.shape == expected.shape
    assert matrix.has_sorted_indices
    for row in range(matrix.shape[0]):
        columns = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        assert np.all(np.diff(columns) > 0)
    expected = expected.tocsr()
    expected.sort_indices()
    np.testing.assert_array_equal(matrix.indptr, expected.indptr)
    np.testing.assert_array_equal(matrix.indices, expected.indices)
    np.testing.assert_allclose(matrix.data, expected.data, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (2, 2), (1, 3), (2, 4)])
def test_equals_scikit_learn(name, ngram_range):
    if name == "surrogates" or (name == "huge" and ngram_range[1] > 2):
        ngram_range = (1, 1)
    assert_same(CORPORA[name] * 2, new=["unseen words the room", *ENGLISH, *CHINESE], ngram_range=ngram_range)


@pytest.mark.parametrize(
    "settings",
    [
        {"min_df": 2},
        {"min_df": 3, "max_df": 0.5},
        {"min_df": 0.04, "max_df": 0.3},
        {"max_df": 4},
        {"max_features": 7},
        {"max_features": 20, "max_df": 0.4},
        {"stop_words": "english"},
        {"stop_words": ["the", "room", "很"]},
        {"sublinear_tf": True},
        {"use_idf": False},
        {"smooth_idf": False},
        {"norm": "l1"},
        {"norm": None},
        {"lowercase": False},
        {"strip_accents": "unicode"},
        {"strip_accents": "ascii"},
        {"strip_accents": "unicode", "lowercase": False},
        {"token_pattern": r"(?u)\b\w+\b"},
        {"token_pattern": r"(?u)\b\w\w\w+\b"},
        {"token_pattern": r"(?u)\b\w+\b|[!?]"},
        {"token_pattern": r"[a-z]+"},
        {"token_pattern": r"(\w)\w*"},
        {"token_pattern": r"\S+\s\S+"},
    ],
    ids=str,
)
@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (2, 3)])
def test_equals_scikit_learn_with(settings, ngram_range):
    documents = [*ENGLISH, *ACCENTS, *GREEK, *CHINESE, *KOREAN, *EMOJI] * 2
    assert_same(documents, new=["unseen the room"], ngram_range=ngram_range, **settings)


@pytest.mark.parametrize("analyzer", ["char", "char_wb"])
@pytest.mark.parametrize("ngram_range", [(1, 1), (2, 4), (5, 9)])
@pytest.mark.parametrize("strip_accents", [None, "unicode"])
def test_character_analyzers_equal_scikit_learn(analyzer, ngram_range, strip_accents):
    documents = [*ENGLISH, *ACCENTS, *CHINESE, *KOREAN, *EMOJI, "a\u00a0\u2003b\x1cc\x85d  e", " lead", "trail  "]
    assert_same(documents, new=["\n", "new"], analyzer=analyzer, ngram_range=ngram_range, strip_accents=strip_accents)


def test_tokenizer_callable_equals_scikit_learn():
    settings = {"tokenizer": str.split, "ngram_range": (1, 2)}
    theirs = TfidfVectorizer(token_pattern=None, **settings)
    expected = theirs.fit_transform(ENGLISH)
    vectorizer = TextVectorizer(min_df=1, sublinear_tf=False, **settings)
    assert_close(vectorizer.fit_transform(ENGLISH), expected)
    assert vectorizer.vocabulary_ == theirs.vocabulary_


def test_tokens_with_blanks_merge_as_in_scikit_learn():
    # "a b" + "c" and "a" + "b c" are the same n-gram.
    documents = ["a b|c|a|b c|\x01|a\x01", "a|b c|a b|c|a\x01b"]
    settings = {"tokenizer": lambda text: text.split("|"), "ngram_range": (1, 2)}
    theirs = TfidfVectorizer(token_pattern=None, **settings)
    expected = theirs.fit_transform(documents)
    vectorizer = TextVectorizer(min_df=1, sublinear_tf=False, **settings)
    assert_close(vectorizer.fit_transform(documents), expected)
    assert vectorizer.vocabulary_ == theirs.vocabulary_
    assert_close(vectorizer.transform(["a b|c", "z|a"]), theirs.transform(["a b|c", "z|a"]))


def make_documents(n_documents, seed=0):
    """Texts with the long tail of real ones: word i is about 1 / i as frequent as the first."""
    generator = np.random.default_rng(seed)
    words = np.array([f"{letter}{i}" for i in range(800) for letter in "tgbr"])
    ranks = np.minimum(generator.zipf(1.3, size=(n_documents, 60)) - 1, len(words) - 1)
    return [" ".join(words[row[: 5 + i % 56]]) for i, row in enumerate(ranks)]


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 7, 64, -1])
def test_same_matrix_for_any_number_of_threads(n_jobs):
    documents = make_documents(6000)
    one = TextVectorizer(ngram_range=(1, 3)).fit(documents)
    many = TextVectorizer(ngram_range=(1, 3), n_jobs=n_jobs)
    matrix = many.fit_transform(documents)
    expected = one.transform(documents)
    assert one.vocabulary_ == many.vocabulary_
    np.testing.assert_array_equal(matrix.indptr, expected.indptr)
    np.testing.assert_array_equal(matrix.indices, expected.indices)
    np.testing.assert_array_equal(matrix.data, expected.data)


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (1, 3)])
@pytest.mark.parametrize("min_df", [1, 2, 5])
def test_equals_scikit_learn_on_many_documents(ngram_range, min_df):
    documents = make_documents(5000)
    assert_same(documents, new=make_documents(100, seed=1), ngram_range=ngram_range, min_df=min_df, max_df=0.3)


def test_paper_preset_is_stop_words_then_stems_then_pairs():
    documents = [*ENGLISH, "Rooms cleaned daily; cleaning the rooms is friendliness", "cleaner rooms"] * 2
    stemmer = Stemmer.Stemmer("english")
    words = TfidfVectorizer().build_tokenizer()

    def tokenize(text):
        return stemmer.stemWords([word for word in words(text) if word not in ENGLISH_STOP_WORDS])

    theirs = TfidfVectorizer(tokenizer=tokenize, token_pattern=None, ngram_range=(1, 2), min_df=3, max_df=0.5)
    expected = theirs.fit_transform(documents)
    vectorizer = TextVectorizer(preset="paper")
    assert_close(vectorizer.fit_transform(documents), expected)
    assert vectorizer.vocabulary_ == theirs.vocabulary_
    assert_close(vectorizer.transform(["new rooms"]), theirs.transform(["new rooms"]))


def test_default_preset_keeps_marks_stop_words_and_short_words():
    vectorizer = TextVectorizer().fit(["Is it a joke?! No", "is it a joke?! no"])
    assert set(vectorizer.get_feature_names_out()) == {
        *["!", "?", "a", "is", "it", "joke", "no"],
        *["! no", "? !", "a joke", "is it", "it a", "joke ?"],
    }


def test_what_is_passed_wins_over_the_preset():
    vectorizer = TextVectorizer(preset="paper", stop_words=False, stemmer=False, min_df=1, max_df=1.0, ngram_range=(1, 1))
    vectorizer.fit(["the running dogs x"])
    assert vectorizer.get_feature_names_out().tolist() == ["dogs", "running", "the"]


def test_stemmer_callable_sees_each_distinct_token_once_and_may_drop():
    seen = []

    def stem(token):
        seen.append(token)
        return None if token == "drop" else token[:3]

    vectorizer = TextVectorizer(stemmer=stem, min_df=1)
    vectorizer.fit(["walked walking drop walked", "drop walker"])
    assert sorted(seen) == ["drop", "walked", "walker", "walking"]
    assert vectorizer.get_feature_names_out().tolist() == ["wal", "wal wal"]


@pytest.mark.parametrize("settings", [{}, {"ngram_range": (1, 2)}, {"stop_words": "english"}, {"norm": "l1"}])
@pytest.mark.parametrize("analyzer", ["word", "char_wb"])
def test_hashing_equals_hashing_vectorizer(settings, analyzer):
    if analyzer == "char_wb" and "stop_words" in settings:
        pytest.skip("characters know no stop words")
    documents = [*ENGLISH, *ACCENTS, *CHINESE]
    theirs = HashingVectorizer(n_features=2**12, alternate_sign=False, analyzer=analyzer, **settings).transform(documents)
    if analyzer == "word":
        settings = settings | {"token_pattern": SKLEARN_PATTERN}
    vectorizer = TextVectorizer(hashing=12, sublinear_tf=False, analyzer=analyzer, **{"ngram_range": (1, 1)} | settings)
    assert_close(vectorizer.transform(documents), theirs)
    assert_close(vectorizer.fit_transform(documents), theirs)
    with pytest.raises(AttributeError, match="no vocabulary"):
        vectorizer.vocabulary_  # noqa: B018


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 3)])
def test_pickle_keeps_the_answer(ngram_range):
    documents = make_documents(300)
    vectorizer = TextVectorizer(ngram_range=ngram_range, max_df=0.4).fit(documents)
    again = pickle.loads(pickle.dumps(vectorizer))
    assert again.vocabulary_ == vectorizer.vocabulary_
    assert (again.transform(documents) != vectorizer.transform(documents)).nnz == 0


def test_works_in_a_grid_search_over_a_pipeline():
    documents = ["good fine", "fine good good", "bad awful", "awful bad bad"] * 6
    target = [1, 1, 0, 0] * 6
    pipeline = make_pipeline(TextVectorizer(), LogisticRegression())
    search = GridSearchCV(pipeline, {"textvectorizer__min_df": [1, 2], "textvectorizer__ngram_range": [(1, 1), (1, 2)]}, cv=2)
    search.fit(documents, target)
    assert search.best_score_ == 1.0
    assert clone(pipeline).fit(np.array(documents), target).score(documents, target) == 1.0


def test_refitting_forgets():
    vectorizer = TextVectorizer(min_df=1, ngram_range=(1, 1))
    assert vectorizer.fit_transform(["a b"]).shape == (1, 2)
    assert vectorizer.fit_transform(["c d e"]).shape == (1, 3)
    assert vectorizer.set_params(use_idf=False).fit(["x"]).get_feature_names_out().tolist() == ["x"]
    assert not hasattr(vectorizer, "idf_")


def test_segmenter_cuts_chinese():
    pytest.importorskip("jieba")
    vectorizer = TextVectorizer(segmenter="chinese", min_df=1, ngram_range=(1, 1))
    names = vectorizer.fit(["今天天气很好!我们去公园吧。"]).get_feature_names_out().tolist()
    assert "公园" in names
    assert "!" in names
    assert "。" not in names


@pytest.mark.parametrize(
    "options",
    [
        *[{"ngram_range": (1, 1)}, {"ngram_range": (1, 3)}, {"ngram_range": (2, 3)}, {"ngram_range": (1, 2), "max_features": 5}],
        *[{"analyzer": "char"}, {"analyzer": "char_wb"}, {"preset": "paper", "min_df": 1}, {"min_df": 2, "max_df": 0.7}],
    ],
)
def test_sizes_of_ngrams(options):
    vectorizer = TextVectorizer(**{"min_df": 1, **options}).fit(["a good value!", "not a good value", "values are good", "a value"])
    names = vectorizer.get_feature_names_out()
    sizes = [len(name) if "analyzer" in options else name.count(" ") + 1 for name in names]
    assert vectorizer._ngram_sizes().tolist() == sizes
