"""GPOR on the command line: a table from training to prediction, and what is refused in one sentence."""

import csv
import json

import pytest

from command import complaint
from conftest import make_curved
from rankplane import GPOR, load_model
from rankplane.cli import main
from reviews import REVIEWS, STARS


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("gpor") / "table.csv"
    X, y = make_curved(n_rows=120)
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["a", "b", "c", "level"], *([*row, rank] for row, rank in zip(X.tolist(), y, strict=True))])
    return path


@pytest.fixture(scope="module")
def trained(table):
    path = table.with_name("m.rankplane")
    arguments = ["train", str(table), "--target", "level", "--model", "GPOR", "--skewed", "none", "-o", str(path), "--quiet"]
    assert main(arguments) == 0
    return path


def test_from_training_to_reports(trained, table, capsys):
    model = load_model(trained)
    assert isinstance(model.steps[-1][1], GPOR)
    assert model.metadata_["metrics"]["model"]["mae"] < 0.5
    out = table.with_name("out.csv")
    assert main(["predict", str(trained), str(table), "-o", str(out), "--proba"]) == 0
    with open(out) as file:
        assert "level" in next(csv.reader(file))
    for arguments in (["evaluate", str(trained), str(table)], ["info", str(trained)], ["info", str(trained), "--markdown"]):
        assert main(arguments) == 0
    assert "GPOR" in capsys.readouterr().out
    page = table.with_name("page.html")
    assert main(["report", str(trained), str(table), "-o", str(page)]) == 0
    assert "GPOR" in page.read_text()


def test_without_test_rows(table, capsys):
    path = table.with_name("all.rankplane")
    arguments = ["train", str(table), "--target", "level", "--model", "GPOR", "--skewed", "none", "--holdout", "0", "-o", str(path)]
    assert main(arguments) == 0
    assert load_model(path).metadata_["search"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--C", "1"], "--C must be left out with --model GPOR, which chooses its parameters itself. Got 1.0."),
        (["--kernel", "rbf"], "--kernel must be left out with --model GPOR, which chooses its parameters itself. Got rbf."),
        (["--compact", "1"], "--compact must be left out with --model GPOR, which chooses its parameters itself. Got 1.0."),
        (
            ["--class-weight", "balanced", "--decision", "ranker"],
            "--class-weight multiplies costs, which --decision ranker does not have.",
        ),
    ],
)
def test_options_that_do_not_apply(options, message, table, capsys):
    path = table.with_name("refused.rankplane")
    assert complaint(capsys, ["train", table, "--target", "level", "--model", "GPOR", "-o", path, *options]) == message


def test_texts_are_refused(tmp_path, capsys):
    path = tmp_path / "texts.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["text", "stars"], *zip(REVIEWS, STARS, strict=True)])
    found = complaint(capsys, ["train", path, "--text", "text", "--target", "stars", "--model", "GPOR", "-o", tmp_path / "m"])
    assert found == "--model GPOR needs the columns of a table, few and dense; it does not take texts."


def test_compared(table, capsys):
    arguments = ["compare-models", str(table), "--target", "level", "--model", "GPOR", "--model", "SVOR", "--json"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["recommended"] == "GPOR"
