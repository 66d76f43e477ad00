"""The choice of features and model: it finds what the texts need, drops what is worse, and sees no test row."""

import json

import numpy as np
import pytest

from rankplane import NPSVOR, choose_features
from rankplane.cli.app import main
from rankplane.modelfile import MODELS, load_model
from rankplane.text import TextVectorizer
from rankplane.training.candidates import CHARS, WORDS, Candidate, Comparison, Round, expected_losses, in_words, text_candidates
from rankplane.training.wording import choice_rows
from reviews import write_csv

N = 900
RANKS = np.arange(1, 4)
COST = np.abs(RANKS[:, None] - RANKS).astype(float)


def stems(n=N, seed=0):
    """Texts of words that hardly ever occur twice, whose first letters say the rank."""
    rng = np.random.default_rng(seed)
    labels = 1 + np.arange(n) % 3
    endings = ["".join(rng.choice(list("abcdefghij"), 5)) for _ in range(2 * n)]
    starts = {1: "mal", 2: "med", 3: "bon"}
    said = np.where(rng.random(n) < 0.08, rng.integers(1, 4, n), labels)
    return [f"{starts[label]}{endings[row]} xyz{endings[-row]} word{row % 7}" for row, label in enumerate(said.tolist())], labels


def make(candidate):
    return TextVectorizer(**candidate.text), MODELS[candidate.model](column_weight=candidate.column_weight, probability=True)


def comparison(texts, labels, **options):
    groups = np.arange(len(labels))
    return Comparison(texts, labels, groups, ranks=RANKS, cost=COST, make=make, measure="mae", **options)


def test_parts_of_words_are_found_where_whole_words_say_nothing():
    choice = choose_features(*stems())
    record = choice.records[0]
    assert record["what"] == "features"
    assert "characters" in record["chosen"]
    errors = record["rounds"][0]["errors"]
    assert errors[record["chosen"]] < 0.2 < 0.4 < errors[in_words(WORDS)]
    assert choice.vectorizer.analyzer != "word"
    assert choice.model.probability
    assert not hasattr(choice.vectorizer, "vocabulary_")


def test_a_given_model_is_kept():
    choice = choose_features(*stems(), model=NPSVOR(C=2))
    assert [record["what"] for record in choice.records] == ["features"]
    assert type(choice.model) is NPSVOR
    assert choice.model.C == 2


def test_few_texts_are_not_compared():
    texts, labels = stems(60)
    choice = choose_features(texts, labels)
    assert choice.records == []
    assert choice.vectorizer.get_params() == TextVectorizer().get_params()
    assert type(choice.model) is NPSVOR


def test_rounds_drop_what_is_worse_and_grow():
    compared = comparison(*stems())
    candidates = [WORDS, CHARS, Candidate("words 2", {"ngram_range": (2, 2)}), Candidate("rare", {"min_df": 190})]
    chosen, record = compared.choose("features", candidates, [300, 600])
    assert chosen == CHARS
    first, *others = record["rounds"]
    assert first["rows"] == 300
    assert in_words(candidates[3]) not in first["errors"]  # it has no columns
    # Words stay although they are worse; pairs of words do not.
    assert [one["rows"] for one in others] == [600]
    assert set(others[0]["errors"]) == {in_words(WORDS), in_words(CHARS)}
    assert first["noise"][record["chosen"]] == 0
    assert [name for _, name, note in choice_rows(record) if note == "chosen"] == [record["chosen"]]


def test_of_equals_the_first_is_taken():
    texts = [f"{word} number{row}" for row in range(300) for word in ("awful", "fine", "superb")]
    labels = np.tile(RANKS, 300)
    same = [Candidate("words 1", {"ngram_range": (1, 1)}), WORDS]
    for candidates in (same, same[::-1]):
        chosen, record = comparison(texts, labels).choose("features", candidates, [900])
        assert set(record["rounds"][0]["errors"].values()) == {0.0}
        assert chosen == candidates[0]


@pytest.mark.parametrize(("worse_by", "is_taken"), [(0.5, True), (0.9, True), (1.1, False), (3.0, False)])
def test_what_is_trusted_is_taken_within_a_standard_error(worse_by, is_taken):
    texts, labels = stems()
    compared = comparison(texts, labels)
    plain, luckiest, trusted = WORDS, CHARS, Candidate("both", margin=1.0)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(N)
    noise = 0.3 * (noise - noise.mean()) / noise.std()
    errors = np.full(N, 0.4)
    compared.known = {
        (N, in_words(plain)): errors + noise + 0.5 * 0.3 / np.sqrt(N),
        (N, in_words(luckiest)): errors,
        (N, in_words(trusted)): errors + noise + worse_by * 0.3 / np.sqrt(N),
    }
    chosen, _ = compared.choose("features", [plain, luckiest, trusted], [N])
    assert chosen == (trusted if is_taken else luckiest)


def test_few_texts_are_trusted_to_words_with_their_parts_and_many_are_not():
    names = {
        n_texts: [one.words for one in text_candidates(["Das ist gut"] * n_texts) if one.margin == 1]
        for n_texts in (16_000, 16_001)
    }
    assert names == {16_000: ["words 1-2 and characters within words 2-5"], 16_001: []}


def test_errors_are_those_of_rows_that_the_candidate_has_not_seen():
    """Texts that say nothing of the rank: whoever had seen the rows would know them."""
    rng = np.random.default_rng(0)
    texts = [f"word{row} word{row} key{row}" for row in range(N)]
    labels = rng.choice(RANKS, N)
    errors = comparison(texts, labels).errors_of(Candidate("all words", {"min_df": 1}), N)
    assert len(errors) == N  # each row once
    few = comparison(texts, labels).errors_of(Candidate("all words", {"min_df": 1}), 600)
    assert len(few) == pytest.approx(200, abs=3)
    assert errors.mean() == pytest.approx(COST[:, 1].mean(), abs=0.12)


def test_copies_stay_on_one_side():
    rng = np.random.default_rng(0)
    texts = [f"word{row // 6} key{row // 6}" for row in range(N)]
    labels = np.repeat(rng.choice(RANKS[[0, 2]], N // 6), 6)
    options = {"ranks": RANKS[[0, 2]], "cost": COST[:2, :2], "make": make, "measure": "mae"}
    by_group = Comparison(texts, labels, np.arange(N) // 6, **options).errors_of(WORDS, N)
    leaking = Comparison(texts, labels, np.arange(N), **options).errors_of(WORDS, N)
    assert by_group.mean() > 0.4 > 0.2 > leaking.mean()


def test_samples_hold_a_limited_number_of_rows_and_characters():
    compared = comparison(*stems())
    assert compared.sizes(10) == [900]
    assert compared.sizes(5_000) == [500, 900]
    assert compared.sizes(15_000) == [500]
    assert compared.sizes(10**6) == [500]
    assert comparison(*stems(499)).sizes(10) == []
    many = comparison(["a"] * 50_000, np.tile(RANKS, 16_667)[:50_000])
    assert many.sizes(20) == [4_000, 16_000]
    assert many.sizes(1_000) == [2_500, 9_000]


def test_differences_are_continued_to_all_rows():
    """Words that catch up by 0.06 per factor of four are better after another one."""
    few = Round(1_000, {CHARS: 0.50, WORDS: 0.60}, {CHARS: 0.0, WORDS: 0.10}, {CHARS: 0.0, WORDS: 0.003})
    more = Round(4_000, {CHARS: 0.44, WORDS: 0.48}, {CHARS: 0.0, WORDS: 0.04}, {CHARS: 0.0, WORDS: 0.004})
    assert expected_losses([few, more], 4_000)[WORDS] == (0.04, 0.004)
    loss, noise = expected_losses([few, more], 16_000)[WORDS]
    assert loss == pytest.approx(-0.02)
    assert noise == pytest.approx(np.hypot(2 * 0.004, 0.003))
    assert expected_losses([few, more], 16_000)[CHARS] == (0, 0)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Das ist ein gutes Buch", "words 1-2"),
        ("정말 재미있는 영화", "words 1-2"),
        ("这本书非常好看我很喜欢", "characters 1-3"),
        ("とても面白い映画でした", "characters 1-3"),
        ("หนังสือเล่มนี้ดีมากฉันชอบ", "characters 1-3"),
    ],
)
def test_candidates_follow_from_the_script(text, first):
    assert text_candidates([text] * 20)[0].words == first


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auto")
    texts, labels = stems()
    write_csv(folder / "in.csv", [{"review": text, "stars": label} for text, label in zip(texts, labels.tolist(), strict=True)])
    given = ["train", str(folder / "in.csv"), "--text", "review", "--target", "stars", "-o", str(folder / "m")]
    assert main([*given, "--report", str(folder / "r.html")]) == 0
    return folder


def test_the_command_line_chooses_and_tells(trained, capsys):
    assert main(["info", str(trained / "m"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    chosen = [record["chosen"] for record in facts["choice"]]
    assert [record["what"] for record in facts["choice"]] == ["features", "model"]
    assert load_model(trained / "m")[0].analyzer != "word"
    assert facts["model"] in chosen[1]
    # A third of the training rows, of which a fifth of all was held out before.
    assert facts["choice"][0]["rounds"][-1]["rows"] == 720
    page = (trained / "r.html").read_text()
    assert "Choice of features and model" in page
    assert chosen[1] in page
    assert main(["info", str(trained / "m")]) == 0
    shown = capsys.readouterr().out
    assert "Choice of features" in shown
    assert "chosen" in shown


@pytest.mark.parametrize(
    ("options", "choices"),
    [
        (["--preset", "default"], ["model"]),
        (["--ngrams", "1-2"], ["model"]),
        (["--model", "SVOR"], ["features"]),
        (["--model", "SVOR", "--analyzer", "char"], []),
        (["--kernel", "rbf", "--limit", "600"], []),
    ],
)
def test_what_is_given_is_not_chosen(trained, options, choices, tmp_path, capsys):
    given = ["train", str(trained / "in.csv"), "--text", "review", "--target", "stars", "-o", str(tmp_path / "m"), "--json"]
    assert main([*given, "--C", "1", *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [record["what"] for record in told["choice"]] == choices


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"scoring": "qwk"}, "scoring must be one of"),
        ({"X": "one text"}, "X must be a list of texts. Got a str."),
        ({"y": [1, 2]}, "X and y must have the same length. Got 30 texts and 2 labels."),
    ],
)
def test_bad_input_is_one_sentence(options, sentence):
    texts, labels = stems(30)
    with pytest.raises((TypeError, ValueError), match=f"^{sentence}"):
        choose_features(**{"X": texts, "y": labels} | options)
