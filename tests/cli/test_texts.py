"""The command line on texts of all kinds: how to make columns of them, and a word when that fails."""

import html
import json
import random
import re
import shlex

import numpy as np
import pytest

from command import complaint
from rankplane import load_model, modelfile
from rankplane.cli import main
from reviews import make_rows, make_words, read_csv, write_csv

GOOD, BAD = ["好看", "精彩", "喜欢", "感人"], ["无聊", "难看", "讨厌", "垃圾"]
PLAIN = list("的一是不了在人有我他这中大来上国个到说们")


def make_chinese(n_rows, seed=0, between=""):
    """Two clauses that hardly ever occur twice, and one that often does but says nothing."""
    rng = random.Random(seed)
    rows = []
    for _ in range(n_rows):
        stars = rng.randint(1, 5)
        words = make_words(rng, stars, 8, PLAIN, GOOD, BAD)
        clauses = words[:6], words[6:], [rng.choice(["看完", "电影", "昨天"])]
        rows.append({"review": ",".join(between.join(clause) for clause in clauses), "stars": stars})
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    write_csv(folder / "chinese.csv", make_chinese(300))
    write_csv(folder / "words.csv", make_chinese(300, between=" "))
    write_csv(folder / "english.csv", make_rows(300))
    return folder


def trained(folder, capsys, name, *options):
    arguments = ["--text", "review", "--target", "stars", "-o", str(folder / f"{name}.rankplane"), "--json"]
    assert main(["train", str(folder / f"{name}.csv"), *arguments, *options]) == 0
    return json.loads(capsys.readouterr().out)


WORDS = ("--preset", "default")


def test_texts_without_blanks_are_warned_of(folder, capsys):
    told = trained(folder, capsys, "chinese", *WORDS, "--C", "1", "--report", str(folder / "page.html"))
    assert next(iter(told)) == "warnings"
    assert "than always predicting" in told["warnings"][0]
    assert told["warnings"][1] == "The model knows less than half of the words in 100% of the texts."
    assert told["warnings"][2].endswith("Try --segmenter chinese or --analyzer char --ngrams 1-3.")
    assert modelfile.read_metadata(folder / "chinese.rankplane")["warnings"] == told["warnings"]
    train = ["train", str(folder / "chinese.csv"), "--text", "review", "--target", "stars", "-o", str(folder / "m"), "--C", "1"]
    assert main([*train, *WORDS]) == 0
    story = capsys.readouterr().out
    assert story.index("Warning: The model is") < story.index("Measured on")
    assert main(["explain", str(folder / "m"), "从未见过"]) == 0
    assert "Known words: 0 of" in capsys.readouterr().out


@pytest.mark.parametrize("holdout", ["0.2", "0"])
def test_the_remedy_works(folder, capsys, holdout):
    told = trained(folder, capsys, "chinese", "--analyzer", "char", "--ngrams", "1-3", "--C", "1", "--holdout", holdout)
    assert told["warnings"] == []
    assert told["choices"]["analyzer"] == "char"
    assert not told["metrics"] or told["metrics"]["model"]["mae"] < 0.7 * told["metrics"]["median"]["mae"]
    assert trained(folder, capsys, "chinese", *WORDS, "--C", "1", "--holdout", holdout)["warnings"] != []
    # Nobody needs to know it: characters are what such texts get.
    by_default = trained(folder, capsys, "chinese", "--C", "1", "--holdout", holdout)
    assert by_default["warnings"] == []
    assert by_default["metrics"] == told["metrics"]


@pytest.mark.parametrize("name", ["words", "english"])
def test_no_false_alarm(folder, capsys, name):
    assert trained(folder, capsys, name, "--C", "1")["warnings"] == []


def test_ranks_that_have_nothing_to_do_with_the_texts(tmp_path, capsys):
    rng = random.Random(1)
    write_csv(tmp_path / "noise.csv", [{**row, "stars": rng.randint(1, 5)} for row in make_rows(400)])
    told = trained(tmp_path, capsys, "noise")
    assert re.search(r"The model is (no|not measurably|hardly) better than always predicting \d: MAE", told["warnings"][0])
    assert "little to do with the texts" in told["warnings"][1]


def test_texts_without_a_word_in_common(tmp_path, capsys):
    for name, text, advice in (
        ("ids", "x{0}", ""),
        ("chinese", "这是我看的第{0}部电影", "Try --segmenter chinese or --analyzer char"),
    ):
        rows = [{"review": text.format(n), "stars": n % 3} for n in range(100)]
        train = [
            "train",
            write_csv(tmp_path / f"{name}.csv", rows),
            "--text",
            "review",
            "--target",
            "stars",
            "-o",
            tmp_path / "m",
            *WORDS,
        ]
        found = complaint(capsys, train)
        assert "No word occurs in enough of the 80 training texts to learn from." in found
        assert advice in found


def test_a_segmenter(folder, capsys):
    pytest.importorskip("jieba")
    told = trained(folder, capsys, "chinese", "--segmenter", "chinese", "--C", "1")
    assert told["warnings"] == []
    assert load_model(folder / "chinese.rankplane")[0].segmenter == "chinese"


def test_weights_count_rare_ranks_more(tmp_path, capsys):
    rows = [row for row in make_rows(1200, seed=4) if row["stars"] == 4 or row["id"] % 8 == 0]
    write_csv(tmp_path / "skewed.csv", rows)
    plain = trained(tmp_path, capsys, "skewed", "--model", "NPSVOR", "--C", "1")["metrics"]["model"]
    balanced = trained(tmp_path, capsys, "skewed", "--model", "NPSVOR", "--C", "1", "--class-weight", "balanced")
    assert balanced["metrics"]["model"]["macro_mae"] < 0.9 * plain["macro_mae"]
    assert balanced["choices"]["class_weight"] == "balanced"
    rule = trained(tmp_path, capsys, "skewed", "--class-weight", "1=3,5=2.5", "--decision", "ranker", "--C", "1")
    assert rule["choices"]["class_weight"] == "1=3,5=2.5"
    assert load_model(tmp_path / "skewed.rankplane")[-1].class_weight == {1: 3.0, 5: 2.5}


def test_the_page_has_the_command_for_the_same_model(folder, capsys, monkeypatch):
    options = ["--ngrams", "1-3", "--analyzer", "char_wb", "--class-weight", "1=2,2=1.5", "--C", "0.5", "--report", "again.html"]
    monkeypatch.chdir(folder)
    trained(folder, capsys, "english", *options)
    page = (folder / "again.html").read_text(encoding="utf-8")
    command = shlex.split(html.unescape(re.search(r"<pre>(rankplane train .*?)</pre>", page)[1]))
    assert main(command[1:]) == 0
    first, again = load_model("english.rankplane"), load_model(command[command.index("-o") + 1])
    np.testing.assert_array_equal(first[-1].coef_, again[-1].coef_)
    np.testing.assert_array_equal(first[-1].decision, again[-1].decision)
    assert first[0].get_params() == again[0].get_params()


def test_options_that_do_not_apply(folder, tmp_path, capsys):
    train = ["train", folder / "english.csv", "--text", "review", "--target", "stars", "-o", tmp_path / "m"]
    table = [
        "train",
        write_csv(tmp_path / "t.csv", [{"a": n, "stars": n % 3} for n in range(30)]),
        "--target",
        "stars",
        "-o",
        tmp_path / "m",
    ]
    cases = [
        ([*train, "--ngrams", "2-1"], "--ngrams must be a smallest and a largest length, such as 1-2. Got 2-1."),
        (
            [*train, "--analyzer", "letters"],
            "--analyzer must be one of word, char, char_wb, or several of them, such as word,char_wb. Got letters.",
        ),
        ([*train, "--analyzer", "word,word"], "--analyzer must be one of word, char, char_wb, or several of them"),
        (
            [*train, "--analyzer", "word,char", "--ngrams", "1,2,3"],
            "--ngrams must be one range, or one for each of word,char. Got 1,2,3.",
        ),
        ([*train, "--segmenter", "thai"], "--segmenter must be one of chinese. Got thai."),
        ([*train, "--segmenter", "chinese", "--analyzer", "char"], "--segmenter finds words, which --analyzer char does not use."),
        ([*train, "--class-weight", "even"], "--class-weight must be balanced, or different ranks with positive numbers"),
        ([*train, "--class-weight", "7=2"], '--class-weight must name ranks of 1, 2, 3, 4, 5, each once. Got "7" in 7=2.'),
        ([*table, "--ngrams", "1-2"], "--ngrams applies to texts only: name their columns by --text."),
        ([*table, "--analyzer", "char"], "--analyzer applies to texts only"),
        ([*table, "--segmenter", "chinese"], "--segmenter applies to texts only"),
        ([*table, "--preset", "paper"], "--preset applies to texts only"),
    ]
    for arguments, sentence in cases:
        assert sentence in complaint(capsys, arguments), arguments
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("command", ["predict", "evaluate", "report"])
def test_a_file_of_unknown_words(folder, tmp_path, capsys, command):
    trained(folder, capsys, "english", "--C", "1")
    output = {"predict": ["-o", str(tmp_path / "out.csv")], "report": ["-o", str(tmp_path / "out.html")]}.get(command, [])
    for name, is_unfamiliar in (("chinese", True), ("later", False)):
        path = str(folder / "chinese.csv") if is_unfamiliar else write_csv(tmp_path / f"{name}.csv", make_rows(50, seed=9))
        assert main([command, str(folder / "english.rankplane"), path, *output]) == 0
        warned = capsys.readouterr().err
        assert ("the model knows less than half of the words in 100% of the texts" in warned) == is_unfamiliar
        assert warned.count("\n") == is_unfamiliar


def test_predict_says_what_it_wrote(folder, tmp_path, capsys):
    trained(folder, capsys, "english", "--C", "1")
    output = tmp_path / "out.csv"
    assert main(["predict", str(folder / "english.rankplane"), str(folder / "english.csv"), "-o", str(output)]) == 0
    assert capsys.readouterr().out == f"Written: {output} (300 rows, {output.stat().st_size / 1e3:,.0f} kB)\n"
    assert len(read_csv(output)) == 300
    assert main(["predict", str(folder / "english.rankplane"), str(folder / "english.csv")]) == 0
    assert "Written" not in capsys.readouterr().out
