"""Several files are read as one table, in the order in which they are given."""

import csv
import json
import os
import subprocess

import numpy as np
import pytest

from command import COMMAND, complaint
from rankplane import load_model, read_metadata
from rankplane.cli import main
from rankplane.inputs.reading import Dialect, called, files_of, read_all, read_batches
from rankplane.inputs.writing import write_batches
from reviews import make_rows, write_csv

TRAIN = ["--text", "review", "--target", "stars", "--C", "1", "--jobs", "2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, its three shards, and others that do not fit."""
    folder = tmp_path_factory.mktemp("files")
    rows = make_rows(90)
    write_csv(folder / "whole.csv", rows)
    for number in range(3):
        write_csv(folder / f"part-{number}.csv", rows[30 * number : 30 * number + 30])
    write_csv(folder / "turned.csv", [dict(reversed(row.items())) for row in rows[60:]])
    write_csv(folder / "fewer.csv", [{"review": "good", "stars": 5}])
    write_csv(folder / "more.csv", [{**rows[0], "place": "here"}])
    for ending in ("jsonl", "parquet"):
        write_batches(str(folder / f"part-2.{ending}"), [read_all(str(folder / "part-2.csv"))])
    assert main(["train", str(folder / "whole.csv"), *TRAIN, "-o", str(folder / "model")]) == 0
    return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


PARTS = {
    "names": ["part-0.csv", "part-1.csv", "part-2.csv"],
    "pattern": ["part-?.csv"],
    "other order of columns": ["part-0.csv", "part-1.csv", "turned.csv"],
    "other formats": ["part-0.csv", "part-1.csv", "part-2.jsonl"],
    "typed": ["part-0.csv", "part-1.csv", "part-2.parquet"],
}


@pytest.mark.parametrize("case", PARTS)
def test_train_on_several_files(case, tmp_path):
    assert main(["train", *PARTS[case], *TRAIN, "-o", str(tmp_path / "m")]) == 0
    expected, found = load_model("model"), load_model(tmp_path / "m")
    np.testing.assert_array_equal(found[-1].coef_, expected[-1].coef_)
    metadata = read_metadata(tmp_path / "m")
    assert metadata["source"] == "part-0.csv and 2 other files"
    assert metadata["source_files"] == [os.path.basename(path) for path in files_of(PARTS[case])]
    assert len(metadata["fingerprints"]) == 3
    assert metadata["fingerprint"] not in metadata["fingerprints"]


def test_one_file_is_remembered_as_before():
    metadata = read_metadata("model")
    assert metadata["source"] == "whole.csv"
    assert not {"source_files", "fingerprints"} & metadata.keys()


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("case", ["names", "pattern", "other order of columns", "other formats"])
@pytest.mark.parametrize("jobs", ["1", "3"])
def test_predict_writes_all_rows_in_order(case, jobs, tmp_path, capsys):
    assert main(["predict", "model", "whole.csv", "-o", str(tmp_path / "whole.csv"), "--proba", "--jobs", "1"]) == 0
    assert main(["predict", "model", *PARTS[case], "-o", str(tmp_path / "o.csv"), "--proba", "--jobs", jobs]) == 0
    assert rows_of(tmp_path / "o.csv") == rows_of(tmp_path / "whole.csv")
    assert "(90 rows, " in capsys.readouterr().out
    assert main(["predict", "model", *PARTS[case], "--proba", "--jobs", jobs]) == 0
    assert capsys.readouterr().out == (tmp_path / "whole.csv").read_text(encoding="utf-8")


def test_evaluate_several_files(capsys):
    found = []
    for files in (["whole.csv"], ["part-*.csv"]):
        capsys.readouterr()
        assert main(["evaluate", "model", *files, "--json"]) == 0
        captured = capsys.readouterr()
        found.append(json.loads(captured.out))
        assert ("too good" in captured.err) == (files == ["whole.csv"])
    assert found[0] == found[1]


def test_a_shard_of_training_is_recognised(tmp_path, capsys):
    assert main(["train", "part-*.csv", *TRAIN, "-o", str(tmp_path / "m")]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "m"), "turned.csv", "part-1.csv"]) == 0
    assert capsys.readouterr().err.startswith("rankplane: warning: part-1.csv is among the files that ")
    assert main(["report", str(tmp_path / "m"), "part-0.csv", "part-1.csv", "-o", str(tmp_path / "page.html")]) == 0
    assert "part-0.csv is among" in capsys.readouterr().err


def test_the_page_has_the_command_with_all_files(tmp_path):
    assert main(["train", "part-0.csv", "part-1.csv", *TRAIN, "-o", str(tmp_path / "m"), "--report", str(tmp_path / "p.html")]) == 0
    assert "rankplane train part-0.csv part-1.csv --text review" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_files_that_do_not_fit_together(tmp_path, capsys):
    train = [*TRAIN, "-o", tmp_path / "m"]
    same = "all files must have the same columns."
    cases = [
        (["part-0.csv", "fewer.csv"], f'fewer.csv has no column "id", but part-0.csv does: {same}'),
        (["part-0.csv", "more.csv"], f'part-0.csv has no column "place", but more.csv does: {same}'),
        (["part-0.csv", "part-1.csv", "./part-0.csv"], "part-0.csv is given 2 times."),
        (["part-*.csv", "part-1.csv"], "part-1.csv is given 2 times."),
        (["part-*.csv", "none-*.csv"], "none-*.csv matches no file."),
        (["part-0.csv", "missing.csv"], "missing.csv: No such file or directory"),
        (["part-0.csv", "nothing.csv"], "nothing.csv is empty."),
        (["part-0.csv", "bad.csv"], 'bad.csv line 3: "x" in column "stars" is not a number'),
        (["part-0.csv", "late.jsonl"], 'late.jsonl has no column "stars"'),
        (["part-0.csv", "a.svm"], "a.svm and part-0.csv cannot be read together: only one of them is svmlight."),
    ]
    with open("nothing.csv", "w"):
        pass
    write_csv("bad.csv", [*make_rows(1), {**make_rows(1)[0], "stars": "x"}])
    with open("late.jsonl", "w") as file:
        file.write('{"review": "good"}\n')
    with open("a.svm", "w") as file:
        file.write("1 1:1\n")
    for files, sentence in cases:
        assert complaint(capsys, ["train", *files, *train]).startswith(sentence), files
    assert complaint(capsys, ["predict", "model", "part-0.csv", "fewer.csv", "-o", tmp_path / "o.csv"]).startswith(
        "fewer.csv has no"
    )
    assert not os.listdir(tmp_path)
    assert complaint(capsys, ["evaluate", "model", "part-0.csv", "bad.csv"]).startswith('bad.csv line 3: "x"')
    assert complaint(capsys, ["predict", "model", "part-0.csv", "-"]).startswith("Lines of standard input, -, cannot be read")
    assert complaint(capsys, ["predict", "model", "part-0.csv", "--jobs", "0"]).startswith("--jobs must be a number of threads")
    assert complaint(capsys, ["predict", "model", "part-0.csv", "part-1.csv", "-o", "part-1.csv"]).startswith("part-1.csv would be")


def test_a_name_with_brackets_is_a_name(tmp_path):
    (tmp_path / "a[1].csv").write_text("a\n")
    assert files_of([str(tmp_path / "a[1].csv")]) == [str(tmp_path / "a[1].csv")]
    assert called(["a"]) == "a"
    assert called(["a", "b"]) == "a and 1 other file"


def test_svmlight_files_have_the_same_columns(tmp_path):
    rows = [f"{number % 3 + 1} {number % 3 + 1}:1 {number % 7 + 4}:0.5\n" for number in range(60)]
    # The second file alone has fewer columns.
    rows.sort(key=lambda row: int(row.split()[-1].split(":")[0]), reverse=True)
    (tmp_path / "a.svm").write_text("".join(rows[:20]))
    (tmp_path / "b.svm").write_text("".join(rows[20:]))
    (tmp_path / "whole.svm").write_text("".join(rows))
    models = []
    for files in (["whole.svm"], ["a.svm", "b.svm"]):
        models.append(tmp_path / f"{len(files)}.rankplane")
        assert main(["train", *(str(tmp_path / name) for name in files), "--C", "1", "--jobs", "1", "-o", str(models[-1])]) == 0
    first, second = map(load_model, models)
    np.testing.assert_array_equal(first.coef_ if hasattr(first, "coef_") else first[-1].coef_, second[-1].coef_)
    assert main(["predict", str(models[1]), str(tmp_path / "b.svm"), str(tmp_path / "a.svm"), "-o", str(tmp_path / "o.csv")]) == 0
    assert len(rows_of(tmp_path / "o.csv")) == 61


@pytest.mark.parametrize("limit", [1, 29, 30, 31, 60, 75, 90, 1000])
@pytest.mark.parametrize("size", [7, 1000])
def test_limit_counts_the_rows_of_all_files(limit, size):
    whole = read_all("whole.csv")
    batches = list(read_batches(PARTS["typed"], size, dialect=Dialect(limit=limit)))
    assert [review for batch in batches for review in batch.columns["review"]] == whole.columns["review"][:limit]


def test_files_after_the_limit_are_not_opened(tmp_path, capsys):
    assert main(["predict", "model", "part-0.csv", "absent.csv", "--limit", "30", "-o", str(tmp_path / "o.csv")]) == 0
    assert len(rows_of(tmp_path / "o.csv")) == 31
    assert complaint(capsys, ["predict", "model", "part-0.csv", "absent.csv", "--limit", "31"]).startswith("absent.csv: No such")


def piped(arguments, path):
    with open(path, "rb") as file:
        return subprocess.run([*COMMAND, *arguments], input=file.read(), capture_output=True)


def test_standard_input_among_files(tmp_path):
    done = piped(["train", "part-0.csv", "-", "part-2.csv", *TRAIN, "-o", str(tmp_path / "m")], "part-1.csv")
    # The other files tell their format by their names, and standard input is csv.
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(load_model(tmp_path / "m")[-1].coef_, load_model("model")[-1].coef_)
    metadata = read_metadata(tmp_path / "m")
    assert metadata["source_files"] == ["part-0.csv", "standard input", "part-2.csv"]
    assert "fingerprint" not in metadata
    done = piped(["predict", "model", "part-0.csv", "-", "--format", "csv"], "part-1.csv")
    assert len(done.stdout.splitlines()) == 61, done.stderr
    done = piped(["evaluate", "model", "-", "part-0.csv", "-"], "part-1.csv")
    assert done.stderr == b"rankplane: standard input is given 2 times.\n"


def test_recalibrate_on_several_files(tmp_path, capsys):
    rows = make_rows(120, seed=3)
    write_csv(tmp_path / "a.csv", rows[:60])
    write_csv(tmp_path / "b.csv", rows[60:])
    later, new = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")], str(tmp_path / "new")
    assert main(["recalibrate", "model", *later, "-o", new]) == 0
    record = read_metadata(new)["recalibrated"]
    assert (record["rows"], record["source"], record["source_files"]) == (120, "a.csv and 1 other file", ["a.csv", "b.csv"])
    capsys.readouterr()
    assert main(["evaluate", new, later[1]]) == 0
    assert f"{later[1]} is among the files that {new} was recalibrated on" in capsys.readouterr().err
    assert main(["info", new]) == 0
    assert "120 rows of a.csv and 1 other file" in capsys.readouterr().out
    write_csv(tmp_path / "copy.csv", make_rows(90))
    told = complaint(capsys, ["recalibrate", "model", later[0], str(tmp_path / "copy.csv"), "-o", str(tmp_path / "none")])
    assert "copy.csv is the file that model was trained on" in told


def test_info_of_several_files_is_of_the_training(tmp_path, capsys):
    assert main(["train", "part-*.csv", *TRAIN, "-o", str(tmp_path / "m")]) == 0
    capsys.readouterr()
    assert main(["info", str(tmp_path / "m"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["trained"]["source_files"] == ["part-0.csv", "part-1.csv", "part-2.csv"]
    assert told["metadata"] == {}


def test_compare_on_several_files(tmp_path, capsys):
    write_csv(tmp_path / "few.csv", make_rows(40, seed=5))
    assert main(["train", str(tmp_path / "few.csv"), *TRAIN[:4], "--C", "0.001", "-o", str(tmp_path / "m")]) == 0
    rows = make_rows(120, seed=3)
    write_csv(tmp_path / "whole.csv", rows)
    write_csv(tmp_path / "a.csv", rows[:5])
    write_csv(tmp_path / "b.csv", rows[5:])
    told = []
    for names in (["whole.csv"], ["a.csv", "b.csv"]):
        capsys.readouterr()
        assert main(["compare", "model", str(tmp_path / "m"), *(str(tmp_path / name) for name in names), "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    examples = [found["changed"].pop("examples") for found in told]
    assert told[0] == told[1]
    for one, other in zip(*examples, strict=True):
        assert other["line"] == one["line"] - 5 * (os.path.basename(other["file"]) == "b.csv")
    assert main(["compare", "model", str(tmp_path / "m"), str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]) == 0
    assert "b.csv:" in capsys.readouterr().out
