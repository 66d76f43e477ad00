"""The commands that look after trained models: info, compare, recalibrate."""

import json
import os
import re
import shlex

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from command import complaint
from conftest import make_curved, make_ranked
from rankplane import NPSVOR, SVOR, TextVectorizer, load_model, modelfile, read_metadata, save_model
from rankplane.cli import main
from rankplane.metrics import MEASURES
from rankplane.upkeep.comparing import Changed, differences, most_changed
from reviews import make_rows, read_csv, write_csv

TRAIN = ["--text", "review", "--target", "stars", "--C", "1"]


def raised(rows):
    """The same reviews, rated one star more highly."""
    return [row | {"stars": min(5, row["stars"] + 1)} for row in rows]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("upkeep")
    write_csv(folder / "reviews.csv", make_rows(300))
    write_csv(folder / "later.csv", make_rows(120, seed=1))
    write_csv(folder / "raised.csv", raised(make_rows(600, seed=2)))
    write_csv(folder / "raised-later.csv", raised(make_rows(300, seed=3)))
    write_csv(folder / "risks.csv", [{"age": n, "smoker": n % 3, "risk": 1 + n // 40} for n in range(120)])
    for name, options in {"m": [], "other": ["--limit", "60", "--model", "SVC"], "fair": ["--class-weight", "balanced"]}.items():
        assert main(["train", str(folder / "reviews.csv"), *TRAIN, *options, "-o", str(folder / f"{name}.rankplane")]) == 0
    assert main(["train", str(folder / "risks.csv"), "--target", "risk", "--C", "1", "-o", str(folder / "risk.rankplane")]) == 0
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


# info


def told(capsys, *arguments):
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_info_tells_what_a_model_is(here, capsys):
    story = told(capsys, "info", "m.rankplane")
    metadata = read_metadata("m.rankplane")
    for words in (
        "NPSVOR: Nonparallel support vector ordinal regression",
        "1, 2, 3, 4, 5",
        "the median, which minimises the absolute error (mae)",
        "text in column review",
        "Trained on 240 rows of reviews.csv",
        metadata["fingerprint"],
        "Measured on 60 rows held out of reviews.csv",
        f"{metadata['metrics']['model']['mae']:.3f}",
        "Most important features",
        "rankplane predict m.rankplane new.csv",
    ):
        assert words in story


def test_info_in_json_has_it_all(here, capsys):
    facts = json.loads(told(capsys, "info", "other.rankplane", "--json"))
    metadata = read_metadata("other.rankplane")
    assert facts["model"] == "SVC"
    assert facts["steps"] == ["TextVectorizer", "SVC"]
    assert facts["ranks"] == [1, 2, 3, 4, 5]
    assert facts["metrics"] == metadata["metrics"]
    assert facts["trained"]["limit"] == 60
    assert facts["trained"]["choices"] == metadata["choices"]
    assert facts["measured_on"] == "rows held out of reviews.csv"
    assert facts["bytes"] == os.path.getsize("other.rankplane")
    assert facts["columns"] == load_model("other.rankplane")[-1].n_features_in_
    assert len(facts["important"]) == 4


@pytest.mark.parametrize("model", ["m.rankplane", "risk.rankplane"])
def test_what_info_says_of_use_works(model, here, capsys):
    usage = json.loads(told(capsys, "info", model, "--json"))["usage"]
    tables = {"m.rankplane": "later.csv", "risk.rankplane": "risks.csv"}
    for name in ("new.csv", "rated.csv"):
        (here / name).write_bytes((here / tables[model]).read_bytes())
    for line in usage["shell"]:
        program, *arguments = shlex.split(line)
        assert program == "rankplane"
        assert main(arguments) == 0
    exec("\n".join(usage["python"]).replace("[...]", "[1, 2]"), {})


def test_a_model_card(here, capsys):
    card = told(capsys, "info", "m.rankplane", "--markdown")
    headings = re.findall(r"^#+ .*$", card, flags=re.MULTILINE)
    assert headings == ["# m.rankplane", "## Use", "## Training data", "## Measures", "## Most important features"]
    tables = re.findall(r"(?:^\|.*\|\n)+", card, flags=re.MULTILINE)
    assert len(tables) == 4
    for table in tables:
        assert len({re.sub(r"\\\|", "", line).count("|") for line in table.splitlines()}) == 1
    assert card.count("```") == 4


def test_a_card_of_hostile_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = "<b>|`x`\x1b[31m\u202e"
    write_csv("t.csv", [{name: row["review"], "stars": row["stars"]} for row in make_rows(60)])
    assert main(["train", "t.csv", "--text", name, "--target", "stars", "--C", "1", "-o", "m"]) == 0
    story, card = told(capsys, "info", "m"), told(capsys, "info", "m", "--markdown")
    for shown in (story, card):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    text = card.partition("```")[0]
    assert r"\<b\>\|\`x\`" in text
    assert "<b>" not in text


def test_info_of_models_from_python(tmp_path, capsys):
    X, y = make_curved()
    path = tmp_path / "m"
    texts = ["good phone", "bad phone", "good", "bad"] * 5
    models = {
        "bare": NPSVOR().fit(X, y),
        "kernel": NPSVOR(kernel="rbf", probability=True, decision=np.ones((4, 4))).fit(X, y),
        "pipeline": make_pipeline(StandardScaler(), SVOR()).fit(X, y),
        "texts": make_pipeline(TextVectorizer(min_df=1), NPSVOR()).fit(texts, [2, 1, 2, 1] * 5),
        "words": TextVectorizer(min_df=1).fit(texts),
    }
    for name, model in models.items():
        save_model(model, path, metadata={"owner": "reviews team"})
        story = told(capsys, "info", path)
        assert "reviews team" in story
        assert "load_model" in story
        assert "reviews team" in told(capsys, "info", path, "--markdown")
        facts = json.loads(told(capsys, "info", path, "--json"))
        assert facts["metadata"] == {"owner": "reviews team"}
        assert facts["metrics"] is facts["trained"] is None
        assert ("ranks" in facts) == (name != "words")
    save_model(models["texts"], path)
    assert "good" in told(capsys, "info", path)
    save_model(models["kernel"], path)
    assert "rbf kernel" in told(capsys, "info", path)
    assert "the rank of least expected cost" in told(capsys, "info", path)


def test_info_of_older_files(capsys):
    for number in (1, 2, 3):
        path = f"{os.path.dirname(__file__)}/../models/format{number}.rankplane"
        assert "ranks" in told(capsys, "info", path)
        assert told(capsys, "info", path, "--markdown").startswith("# format")


def test_info_of_metadata_that_nobody_wrote(here, tmp_path, capsys):
    model, metadata = modelfile.open_model("m.rankplane")
    path = tmp_path / "forged"
    for change in (
        {"metrics": "good"},
        {"metrics": {"rows": 3, "model": {}}},
        {"inputs": {"target": 3}},
        {"inputs": {"text": ["a"], "target": "b", "more": 1}},
        {"data": {"trained_ranks": [1], "missing_target": 0}},
        {"recalibrated": {"rows": "many"}},
        {"warnings": 3},
    ):
        save_model(model, path, metadata=metadata | change)
        assert complaint(capsys, ["info", path]) == f"{path} has metadata that train did not write: read_metadata shows them."


def test_info_refuses(here, capsys):
    assert complaint(capsys, ["info", "later.csv"]) == "later.csv is not a model file of rankplane."
    assert complaint(capsys, ["info", "absent"]) == "absent: No such file or directory"
    assert complaint(capsys, ["info", "."]) == ". is a folder, not a file."
    assert complaint(capsys, ["info", "m.rankplane", "--json", "--markdown"]) == "--json and --markdown exclude each other."


# compare


def test_differences_are_those_of_the_measures():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 5, 400)
    first, second = (np.clip(true + rng.integers(-spread, spread + 1, 400), 0, 4) for spread in (2, 1))
    found = differences(true, first, second)
    for name, (measure, is_more_better) in MEASURES.items():
        of = found[name]
        assert of.model == pytest.approx(measure(true, first))
        assert of.other == pytest.approx(measure(true, second))
        assert of.low < of.value < of.high
        assert (of.value > 0) == is_more_better
        assert of.verdict == "better"
        back = differences(true, second, first)[name]
        assert back.verdict == "worse"
        assert (back.low, back.high) == pytest.approx((-of.high, -of.low), abs=0.05)


def test_intervals_are_those_of_the_paired_mean():
    """For a mean, the bootstrap is near the normal interval of the paired differences, and much narrower than of unpaired ones."""
    rng = np.random.default_rng(1)
    true = rng.integers(0, 5, 1000)
    first = np.clip(true + rng.integers(-2, 3, 1000), 0, 4)
    second = np.where(rng.random(1000) < 0.1, true, first)
    pairs = np.abs(second - true) - np.abs(first - true)
    half = 1.96 * pairs.std() / np.sqrt(1000)
    found = differences(true, first, second)["mae"]
    assert (found.low, found.high) == pytest.approx((pairs.mean() - half, pairs.mean() + half), rel=0.15)
    assert half < 1.96 * np.abs(first - true).std() / np.sqrt(1000) / 1.5


def test_intervals_cover_as_often_as_they_say():
    rng = np.random.default_rng(2)
    covered = 0
    for seed in range(30):
        true = rng.integers(0, 3, 80)
        first, second = (np.where(rng.random(80) < 0.7, true, rng.integers(0, 3, 80)) for _ in range(2))
        found = differences(true, first, second, seed, n_draws=200)["accuracy"]
        covered += found.low <= 0 <= found.high
    assert covered >= 25  # of 30; 28 or 29 are expected


def test_the_same_answers_do_not_differ():
    true = np.array([0, 1, 2, 2])
    found = differences(true, true[::-1], true[::-1])
    assert all((of.value, of.low, of.high, of.verdict) == (0, 0, 0, "no clear difference") for of in found.values())
    assert differences(np.array([1]), np.array([1]), np.array([0]))["mae"].value == 1
    assert Changed.of(true, true, true) == Changed(0, 0, 0)


def test_rows_that_changed_most_come_first():
    true, first, second = np.array([0, 0, 4, 2, 1]), np.array([0, 4, 4, 1, 1]), np.array([0, 0, 2, 3, 2])
    assert most_changed(true, first, second, 10).tolist() == [1, 2, 4, 3]
    assert most_changed(true, first, second, 2).tolist() == [1, 2]
    assert Changed.of(true, first, second) == Changed(rows=4, nearer=1, further=2)


def test_compare(here, capsys):
    story = told(capsys, "compare", "m.rankplane", "other.rankplane", "later.csv", "-o", "changed.csv")
    assert "Measured on 120 rows of later.csv" in story
    assert "95% interval" in story
    facts = json.loads(told(capsys, "compare", "m.rankplane", "other.rankplane", "later.csv", "--json"))
    texts, stars = zip(*((row["review"], int(row["stars"])) for row in read_csv("later.csv")), strict=True)
    answers = [load_model(path).predict(texts) for path in ("m.rankplane", "other.rankplane")]
    differ = np.flatnonzero(answers[0] != answers[1])
    assert facts["rows"] == 120
    assert facts["changed"]["rows"] == len(differ) > 0
    for name, found in zip(("model", "other"), answers, strict=True):
        assert np.sum(facts["confusion"][name]) == 120
        assert facts["measures"]["mae"][name] == pytest.approx(np.abs(found - stars).mean())
    for row in facts["changed"]["examples"]:
        place = row["line"] - 2
        assert (row["true"], row["model"], row["other"]) == (stars[place], answers[0][place], answers[1][place])
        assert row["text"] == texts[place]
    written = read_csv("changed.csv")
    assert [row["review"] for row in written] == [texts[place] for place in differ]
    assert [int(row["prediction"]) for row in written] == answers[0][differ].tolist()
    assert [int(row["other_prediction"]) for row in written] == answers[1][differ].tolist()


def test_compare_a_model_with_itself(here, capsys):
    assert "The same ranks for all 120 rows" in told(capsys, "compare", "m.rankplane", "m.rankplane", "later.csv")
    story = told(capsys, "compare", "m.rankplane", "other.rankplane", "later.csv", "--limit", "12")
    assert "12 rows are few: the intervals are rough." in story


def test_compare_fits_any_screen(here, capsys, monkeypatch):
    for width in (64, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        story = told(capsys, "compare", "m.rankplane", "other.rankplane", "later.csv")
        assert max(map(len, story.splitlines())) <= width
        assert re.search(r"↑? +0\.\d{3} +0\.\d{3} +[+-]0\.\d{3} +[+-]0\.\d{3} to [+-]0\.\d{3}", story)
        assert re.search(r"^line +true +m\.ran.* +row", story, flags=re.MULTILINE)


def test_compare_warns_of_training_rows(here, capsys):
    assert main(["compare", "m.rankplane", "other.rankplane", "reviews.csv"]) == 0
    assert "reviews.csv is the file that m.rankplane was trained on" in capsys.readouterr().err


def test_compare_refuses(here, capsys, tmp_path):
    rows = [row | {"stars": min(row["stars"], 4)} for row in make_rows(60)]
    write_csv("four.csv", rows)
    write_csv("grades.csv", [{"review": row["review"], "grade": row["stars"]} for row in rows])
    assert main(["train", "four.csv", *TRAIN, "-o", "four.rankplane"]) == 0
    assert main(["train", "grades.csv", "--text", "review", "--target", "grade", "--C", "1", "-o", "grade.rankplane"]) == 0
    write_csv("taken.csv", [row | {"other_prediction": 1} for row in rows])
    capsys.readouterr()
    for arguments, expected in [
        (
            ["m.rankplane", "four.rankplane", "later.csv"],
            "m.rankplane has the ranks 1, 2, 3, 4, 5, but four.rankplane has 1, 2, 3, 4",
        ),
        (["m.rankplane", "grade.rankplane", "later.csv"], 'm.rankplane predicts "stars", but grade.rankplane predicts "grade"'),
        (["m.rankplane", "risk.rankplane", "later.csv"], 'm.rankplane predicts "stars", but risk.rankplane predicts "risk"'),
        (["m.rankplane", "later.csv", "later.csv"], "later.csv is not a model file"),
        (["m.rankplane", "other.rankplane", "taken.csv"], 'taken.csv has a column "other_prediction" already.'),
        (["m.rankplane", "other.rankplane", "later.csv", "-o", "later.csv"], "later.csv would be overwritten"),
        (["m.rankplane", "other.rankplane", "later.csv", "-o", "x.xls"], "x.xls has an unknown extension"),
    ]:
        assert complaint(capsys, ["compare", *arguments]).startswith(expected)


# recalibrate


def test_recalibrate(here, capsys):
    before = (here / "m.rankplane").read_bytes()
    story = told(capsys, "recalibrate", "m.rankplane", "raised.csv", "-o", "new.rankplane")
    for words in ("Warning: No sample has rank 1", "ranked probability score", "before", "after", "Written: new.rankplane"):
        assert words in story
    assert (here / "m.rankplane").read_bytes() == before
    old, new = load_model("m.rankplane"), load_model("new.rankplane")
    np.testing.assert_array_equal(new[-1].coef_, old[-1].coef_)
    metrics = read_metadata("new.rankplane")["metrics"]
    assert metrics["model"]["mae"] < 0.8 * metrics["before recalibrating"]["mae"]
    # What is measured holds for other rows.
    facts = json.loads(told(capsys, "evaluate", "new.rankplane", "raised-later.csv", "--json"))
    assert facts["model"]["mae"] == pytest.approx(metrics["model"]["mae"], abs=0.08)


def test_what_a_recalibrated_model_says_of_itself(here, capsys):
    facts = json.loads(told(capsys, "recalibrate", "m.rankplane", "raised.csv", "-o", "new.rankplane", "--json"))
    old, metadata = read_metadata("m.rankplane"), read_metadata("new.rankplane")
    assert {name: facts[name] for name in metadata} == metadata
    record = metadata["recalibrated"]
    assert record["source"] == "raised.csv"
    assert record["trained"] == {"version": old["version"], "date": old["date"]}
    assert record["rows"] == sum(record["ranks"].values()) == 600
    assert record["probabilities"]["before"]["coverage"] < 0.87 < record["probabilities"]["after"]["coverage"]
    assert record["probabilities"]["after"]["score"] < record["probabilities"]["before"]["score"]
    for name in ("fingerprint", "source", "inputs", "choices", "data", "search"):
        assert metadata[name] == old[name]
    story = told(capsys, "info", "new.rankplane")
    assert "Recalibrated on 600 rows of raised.csv" in story
    assert "Measured on 600 rows of raised.csv" in story
    assert main(["report", "new.rankplane", "later.csv", "-o", "new.html"]) == 0
    assert "When it was recalibrated" in (here / "new.html").read_text()
    capsys.readouterr()
    assert main(["evaluate", "new.rankplane", "raised.csv"]) == 0
    assert "raised.csv is the file that new.rankplane was recalibrated on" in capsys.readouterr().err


def test_balanced_weights_are_those_of_the_new_rows(here, capsys):
    assert main(["recalibrate", "fair.rankplane", "raised.csv", "-o", "new.rankplane"]) == 0
    ranks = list(read_metadata("new.rankplane")["recalibrated"]["ranks"].values())
    cost = load_model("new.rankplane")[-1].decision
    shares = np.array(ranks[1:]) / 600
    np.testing.assert_allclose(cost[1:, 0] / np.arange(1, 5), 1 / (4 * shares))
    assert main(["predict", "new.rankplane", "later.csv", "--decision", "mae", "-o", "again.csv"]) == 0
    expected = load_model("new.rankplane").predict([row["review"] for row in read_csv("later.csv")])
    assert [int(row["prediction"]) for row in read_csv("again.csv")] == expected.tolist()


def test_recalibrate_says_when_it_does_not_help(here, capsys):
    story = told(capsys, "recalibrate", "m.rankplane", "later.csv", "-o", "new.rankplane")
    assert "120 samples are few for a calibrator" in story
    assert re.search("The new probabilities are (worse|not measurably better) than the old ones on these 120 rows", story)


def test_recalibrate_a_compact_kernel_or_ranker_model(here, capsys):
    for options in (["--compact", "0.02"], ["--kernel", "rbf", "--gamma", "1"], ["--decision", "ranker"]):
        assert main(["train", "reviews.csv", *TRAIN, *options, "-o", "one.rankplane"]) == 0
        assert main(["recalibrate", "one.rankplane", "raised.csv", "-o", "new.rankplane"]) == 0
        assert os.path.getsize("new.rankplane") < 1.3 * os.path.getsize("one.rankplane") + 10_000
        assert load_model("new.rankplane")[-1].decision == load_model("one.rankplane")[-1].decision


def test_recalibrate_a_table(here, capsys):
    assert main(["recalibrate", "risk.rankplane", "risks.csv", "-o", "new.rankplane", "--limit", "90"]) == 0
    assert read_metadata("new.rankplane")["recalibrated"]["limit"] == 90


def test_recalibrate_refuses(here, capsys):
    write_csv("one.csv", [row | {"stars": 3} for row in make_rows(30, seed=4)])
    write_csv("six.csv", [row | {"stars": 6} for row in make_rows(30, seed=4)])
    for arguments, expected in [
        (
            ["m.rankplane", "reviews.csv", "-o", "x"],
            "reviews.csv is the file that m.rankplane was trained on, on which it is too sure",
        ),
        (["m.rankplane", "raised.csv", "-o", "m.rankplane"], "m.rankplane would be overwritten"),
        (["m.rankplane", "one.csv", "-o", "x"], "y must contain at least two different ranks of [1, 2, 3, 4, 5]. Got 1."),
        (["m.rankplane", "six.csv", "-o", "x"], "six.csv line 2: rank 6 never occurred in training"),
        (["m.rankplane", "risks.csv", "-o", "x"], 'risks.csv has no column "stars"'),
        (["m.rankplane", "raised.csv", "-o", "no/x"], f"{here / 'no'} is not a folder"),
    ]:
        assert complaint(capsys, ["recalibrate", *arguments]).startswith(expected)
    assert not os.path.exists("x")
    save_model(NPSVOR().fit(*make_ranked()), "bare")
    assert complaint(capsys, ["recalibrate", "bare", "raised.csv", "-o", "x"]).startswith("bare was not written by rankplane train")
