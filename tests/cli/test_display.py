"""What the terminal shows: sums that add up, signs that need no colours, tables that fit."""

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from rankplane import NPSVOR
from rankplane.cli import display
from rankplane.inputs.batches import Batch
from rankplane.inputs.schema import Inputs, prepare
from rankplane.prediction.explanations import Boundary
from rankplane.text import TextVectorizer
from rankplane.training import fitting
from rankplane.training.choices import Choices
from rankplane.training.highlights import marked, shaded, text_pulls
from rankplane.training.model import TrainedModel
from reviews import make_rows, rows_of


def shown(function, *arguments, width=80):
    """What is printed without colours, as through a pipe."""
    console = Console(file=io.StringIO(), width=width)
    function(console, *arguments)
    text = console.file.getvalue()
    assert "\x1b" not in text
    assert all(len(line) <= width for line in text.splitlines())
    return text


@pytest.fixture(scope="module")
def trained():
    return fitting.train(rows_of(make_rows(200)), Inputs("stars", ["review"]), Choices()).model


def numbers_of(line):
    return [float(number) for number in re.findall(r"[+-]\d+\.\d\d", line)]


def test_an_explanation_adds_up_as_shown(trained):
    text = "the great lovely phone was broken and very awful, best of all, superb waste"
    story = shown(display.show_explanation, trained, [text], width=300)
    lines = [line for line in story.splitlines() if " | " in line]
    assert len(lines) == 4
    for line in lines:
        *terms, score = numbers_of(line)
        assert sum(terms) == pytest.approx(score, abs=1e-9)
    assert "bias + pulls + rest = score" in story
    assert "Known words: 12 of 14" in story


def test_terms_break_between_lines_only():
    terms = [(f"very good {number}", 0.25) for number in range(5)]
    boundary = Boundary(1, 2, 2.75, 0.5, terms, [(name, -value) for name, value in terms], 1.0)
    story = shown(display.show_boundaries, [boundary])
    assert story.count("+0.25") == story.count("-0.25") == 5
    assert len(re.findall(r"very good \d [+-]0\.25", story)) == 10


def test_terms_of_no_account_are_left_to_the_rest():
    boundary = Boundary(1, 2, 0.304, 0.3, [("a", 0.004)], [("b", -0.0004)], 0.0)
    story = shown(display.show_boundaries, [boundary])
    assert numbers_of(story) == [0.3, 0.0, 0.3]
    assert "-0.00" not in story


def test_a_text_without_known_words(trained):
    story = shown(display.show_explanation, trained, ["这部电影很好看"])
    assert "Known words: 0 of 1" in story
    assert "pulls up, " not in story


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([("great", 1.0), (" phone", 0.0)], "++great phone"),
        ([("great", 0.3), (" ", 0.3), ("awful", -0.7)], "+great --awful"),
        ([("simply great", 0.3)], "+simply +great"),
        ([("很", 0.3), ("好", 0.2), ("看", -0.2)], "+很好-看"),
        ([("a", 0.3), ("b", 0.01), ("c", 0.3)], "+ab+c"),
        ([], ""),
    ],
)
def test_marks(pieces, expected):
    assert "".join(piece for piece, _ in marked(pieces)) == expected


def test_pulls_are_marked_without_colours(trained):
    text = "the great phone was broken"
    story = shown(display.show_text, trained, text, trained.transform([text]))
    assert re.search(r"\+{1,2}great", story)
    assert re.search(r"-{1,2}broken", story)
    assert "+ green pulls up, - red pulls down" in story


def fit(vectorizer, texts, ranks):
    return TrainedModel(vectorizer, NPSVOR(C=10).fit(vectorizer.fit_transform(texts), ranks), Inputs("rank", ["text"]))


def pieces_of(model, text):
    return shaded(text, text_pulls(model, text, model.transform([text])))


@pytest.mark.parametrize("options", [{"analyzer": "char", "ngram_range": (1, 2)}, {"analyzer": "char_wb", "ngram_range": (2, 3)}])
def test_characters_are_marked_where_they_are(options):
    model = fit(TextVectorizer(min_df=1, **options), ["xxxx mmmm", "yyyy mmmm"] * 10, [1, 2] * 10)
    pieces = dict.fromkeys("".join(piece.split()) for piece, share in pieces_of(model, "mmmm yyyy") if share > 0.5)
    assert pieces
    assert all(set(piece) == {"y"} for piece in pieces)


def test_segmented_words_are_marked_where_they_are():
    pytest.importorskip("jieba")
    model = fit(TextVectorizer(min_df=1, segmenter="chinese"), ["电影很好看", "电影很无聊"] * 10, [2, 1] * 10)
    strongest = [piece for piece, share in pieces_of(model, "电影很无聊") if share < -0.5]
    assert strongest
    assert "电影" not in "".join(strongest)


def test_bars_of_the_search_start_at_zero():
    search = {"measure": "mae", "C": [1.0, 2.0, 4.0], "scores": [0.97, 1.0, 0.98], "spread": [0.02, 0.01, 0.01], "best_C": 1.0}
    story = shown(display.show_search, search, None)
    lengths = [line.count("█") for line in story.splitlines() if "█" in line]
    assert min(lengths) >= 0.9 * max(lengths)
    assert "0.9700 ±0.0200" in story
    assert "MAE ↓" in story
    lines = [line for line in story.splitlines() if "±0" in line]
    assert "best" in lines[0]
    assert "within one standard error" in lines[2]
    assert "within one standard error" not in lines[1]


def test_spread_and_gamma_are_kept_and_shown():
    rows = [{"a": n % 7, "b": n % 5, "stars": 1 + (n % 7 > 2) + (n % 5 > 2)} for n in range(90)]
    batch = Batch({name: [row[name] for row in rows] for name in rows[0]}, list(range(90)))
    inputs = Inputs("stars", columns=["a", "b"])
    for C in (None, 1.0):
        found = fitting.train(prepare(batch, "t", inputs), inputs, Choices(kernel="rbf", C=C)).model
        story = shown(display.show_trained, found, "rows")
        assert f"gamma {found.metadata['choices']['gamma']:.4g}" in story
        if C is None:
            assert len(found.metadata["search"]["spread"]) == len(found.metadata["search"]["C"]) == 11


def test_measures_say_which_way_is_better(trained):
    story = shown(display.show_metrics, trained.metadata["metrics"], "rows")
    for heading in ("accuracy ↑", "MAE ↓", "MSE ↓", "macro MAE ↓", "QWK ↑", "↑ more is better, ↓ less is better"):
        assert heading in story


def test_warnings_come_first(trained):
    warned = replace(trained, metadata=trained.metadata | {"warnings": ["The model is no better.", "Likely reason: x."]})
    story = shown(display.show_trained, warned, "rows")
    assert story.lstrip().startswith("Warning: The model is no better.\nLikely reason: x.")
    assert "Warning" not in shown(display.show_trained, trained, "rows")


def test_sentences_and_names_stay_whole_in_a_pipe():
    console = Console(file=io.StringIO(), width=40)
    sentence, source = "The model is no better than always predicting 4: " * 3, "a/long/name/" * 9
    display.show_warnings(console, [sentence])
    display.show_data(console, source, {"rows": 1, "ranks": {"1": 1}, "missing_target": 0})
    assert sentence.rstrip() in console.file.getvalue()
    assert source in console.file.getvalue()


def test_a_matrix_that_fits_is_shown_whole():
    order, matrix = list(range(1, 6)), np.arange(25).reshape(5, 5)
    story = shown(display.show_confusion, matrix, order)
    assert all(re.search(rf"\b{count}\b", story) for count in range(25))


def test_long_names_become_numbers():
    order = ["disagree very strongly indeed", "disagree", "neither agree nor disagree", "agree", "agree very strongly indeed"]
    matrix = 10 + np.arange(25).reshape(5, 5)
    story = shown(display.show_confusion, matrix, order)
    assert "3 neither agree nor" in story
    assert all(re.search(rf"\b{count}\b", story) for count in range(10, 35))
    assert order[0] in shown(display.show_confusion, matrix, order, width=200)


def test_a_matrix_too_wide_becomes_a_line_per_rank():
    order, matrix = list(range(1, 21)), np.eye(20, dtype=int) * 1000 + 17
    story = shown(display.show_confusion, matrix, order)
    assert "too wide" in story
    lines = [line.split() for line in story.splitlines() if re.match(r"\d", line)]
    assert [line[0] for line in lines] == [str(rank) for rank in order]
    assert all(line[-1] == line[0] for line in lines)
    assert lines[4] == ["5", "1,340", "76%", "78%", "5"]


def test_a_decision_by_costs_has_a_meaning():
    choices = Choices(C=1.0, class_weight="balanced")
    found = fitting.train(rows_of(make_rows(200)), Inputs("stars", ["review"]), choices).model
    assert "(the rank of least expected cost)" in shown(display.show_explanation, found, ["great"])
