"""The command line: what it writes, what it says, and one line for every mistake."""

import csv
import gzip
import json
import os
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from command import COMMAND, complaint
from conftest import make_ranked
from rankplane import load_model, modelfile
from rankplane.cli import commands, main
from rankplane.inputs import reading
from reviews import make_rows, read_csv, write_csv


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    write_csv(folder / "reviews.csv", make_rows(200))
    arguments = ["--text", "review", "--text", "title", "--target", "stars", "--C", "1"]
    assert main(["train", str(folder / "reviews.csv"), *arguments, "-o", str(folder / "stars.rankplane")]) == 0
    return folder


@pytest.fixture
def model(folder):
    return str(folder / "stars.rankplane")


@pytest.fixture
def reviews(folder):
    return str(folder / "reviews.csv")


def test_train_tells_the_story(reviews, tmp_path, capsys):
    output = tmp_path / "m.rankplane"
    assert main(["train", reviews, "--text", "review", "--target", "stars", "-o", str(output), "--jobs", "1"]) == 0
    story = capsys.readouterr().out
    for word in (
        "200 rows, 5 ranks",
        "C by cross-validation",
        "best",
        "macro MAE",
        "most frequent",
        "median",
        "Most important features",
        "Written",
    ):
        assert word in story
    assert os.listdir(tmp_path) == ["m.rankplane"]


def test_train_in_json(reviews, tmp_path, capsys):
    output = tmp_path / "m.rankplane"
    arguments = ["--text", "review", "--target", "stars", "-o", str(output), "--json", "--model", "SVR", "--compact", "0.01"]
    assert main(["train", reviews, *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["metrics"]["model"]["mae"] < told["metrics"]["majority"]["mae"]
    search = told["search"]
    assert search["C"] + search["not_tried"] == [2.0**k for k in range(-5, 6)]
    assert len(search["scores"]) == len(search["spread"]) == len(search["C"])
    assert told["fingerprint"].startswith("sha256:")
    metadata = modelfile.read_metadata(output)
    assert metadata["metrics"] == told["metrics"]
    assert {"version", "date", "fingerprint", "choices", "data", "inputs"} <= metadata.keys()
    assert metadata["choices"]["compact"] == 0.01
    assert type(load_model(output)[-1]).__name__ == "SVR"


def test_the_same_seed_gives_the_same_model(reviews, tmp_path):
    for name in ("a", "b"):
        arguments = ["--text", "review", "--target", "stars", "--C", "1", "--seed", "3", "-o", str(tmp_path / name)]
        assert main(["train", reviews, *arguments]) == 0
    np.testing.assert_array_equal(load_model(tmp_path / "a")[-1].coef_, load_model(tmp_path / "b")[-1].coef_)


def test_copies_stay_on_one_side(tmp_path, capsys):
    rows = make_rows(60)
    path = write_csv(tmp_path / "twice.csv", rows + rows[:20])
    assert main(["train", path, "--text", "review", "--target", "stars", "--C", "1", "-o", str(tmp_path / "m")]) == 0
    assert "20 texts are exact copies of others" in capsys.readouterr().out


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".jsonl.gz", ".csv.zst", ".parquet.gz"])
def test_formats(ending, model, tmp_path):
    rows = make_rows(30, seed=1)
    path = tmp_path / f"in{ending}"
    kind, _, packing = ending[1:].partition(".")
    if kind in ("csv", "tsv"):
        write_csv(path, rows, "," if kind == "csv" else "\t")
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    if packing == "gz":
        path.write_bytes(gzip.compress(path.read_bytes()))
    elif packing == "zst":
        zstandard = pytest.importorskip("zstandard")
        path.write_bytes(zstandard.compress(path.read_bytes()))
    assert main(["predict", model, str(path), "-o", str(tmp_path / "out.csv"), "--proba", "--set", "0.9"]) == 0
    found = read_csv(tmp_path / "out.csv")
    assert [row["review"] for row in found] == [row["review"] for row in rows]
    assert list(found[0]) == ["id", "title", "review", "stars", "prediction", *(f"p_{star}" for star in range(1, 6)), "set"]
    texts = [f"{row['review']}\n{row['title']}" for row in rows]
    assert [int(row["prediction"]) for row in found] == load_model(model).predict(texts).tolist()
    assert main(["train", str(path), "--text", "review", "--target", "stars", "--C", "1", "-o", str(tmp_path / "m")]) == 0


@pytest.mark.parametrize("ending", [".tsv", ".jsonl", ".parquet", ".csv.gz"])
def test_outputs(ending, model, reviews, tmp_path):
    path = tmp_path / f"out{ending}"
    assert main(["predict", model, reviews, "-o", str(path)]) == 0
    if ending == ".parquet":
        import pyarrow.parquet

        found = pyarrow.parquet.read_table(path).to_pylist()
    elif ending == ".jsonl":
        found = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        content = gzip.decompress(path.read_bytes()) if ending == ".csv.gz" else path.read_bytes()
        found = list(csv.DictReader(content.decode().splitlines(), delimiter="\t" if ending == ".tsv" else ","))
    assert len(found) == 200
    assert list(found[0]) == ["id", "title", "review", "stars", "prediction"]


def test_predict_works_in_batches(model, reviews, tmp_path, monkeypatch):
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    assert main(["predict", model, reviews, "-o", str(whole), "--proba"]) == 0
    monkeypatch.setattr(commands, "read_batches", lambda path, **options: reading.read_batches(path, 7, **options))
    assert main(["predict", model, reviews, "-o", str(parts), "--proba"]) == 0
    assert parts.read_bytes() == whole.read_bytes()


def test_fields_that_come_late(model, tmp_path, capsys):
    lines = ['{"title": "a", "review": "good"}'] * 8192 + ['{"title": "a", "review": "bad", "tags": ["x"]}']
    path = tmp_path / "late.jsonl"
    path.write_text("\n".join(lines))
    sentence = 'field "tags" first occurs after line 8192, too late for a table: write jsonl instead.'
    assert complaint(capsys, ["predict", model, path, "-o", tmp_path / "out.csv"]) == sentence
    assert complaint(capsys, ["predict", model, path, "-o", tmp_path / "out.parquet"]) == sentence
    assert main(["predict", model, str(path), "-o", str(tmp_path / "out.jsonl")]) == 0
    assert json.loads((tmp_path / "out.jsonl").read_text().splitlines()[-1])["tags"] == ["x"]
    path.write_text(lines[-1])
    assert main(["predict", model, str(path), "-o", str(tmp_path / "out.csv")]) == 0
    assert read_csv(tmp_path / "out.csv")[0]["tags"] == '["x"]'


def test_parquet_keeps_its_types(model, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet

    n_rows = 9000
    when = pa.array([1] * n_rows, type=pa.timestamp("ms"))
    notes = pa.array([None] * (n_rows - 1) + ["late"], type=pa.string())
    columns = {
        "title": ["a"] * n_rows,
        "review": ["good"] * n_rows,
        "when": when,
        "note": notes,
        "n": pa.array([1] * n_rows, pa.int8()),
    }
    pyarrow.parquet.write_table(pa.table(columns), tmp_path / "in.parquet")
    assert main(["predict", model, str(tmp_path / "in.parquet"), "-o", str(tmp_path / "out.parquet")]) == 0
    found = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert found.select(list(columns)).equals(pyarrow.parquet.read_table(tmp_path / "in.parquet"))


def test_tables_of_columns(tmp_path, capsys):
    rng = random.Random(0)
    rows = []
    for _ in range(150):
        age, town = rng.uniform(20, 80), rng.choice(["Ulm", "Bonn"])
        risk = ["low", "medium", "high"][min(2, int((age - 20) / 25) + (town == "Ulm" and age > 60))]
        rows.append({"age": f"{age:.1f}" if rng.random() > 0.05 else "", "town": town, "risk": risk})
    path = write_csv(tmp_path / "risk.csv", rows)
    output = str(tmp_path / "m.rankplane")
    assert main(["train", path, "--target", "risk", "--ranks", "low,medium,high", "--kernel", "linear", "-o", output]) == 0
    assert "missing values in age" in capsys.readouterr().out
    assert main(["evaluate", output, path, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["model"]["mae"] < 0.3
    assert told["ranks"] == ["low", "medium", "high"]
    assert np.sum(told["confusion"]) == 150
    assert main(["explain", output, '{"age": 30, "town": "Ulm"}']) == 0
    assert "risk: low" in capsys.readouterr().out
    assert "JSON object" in complaint(capsys, ["explain", output, "thirty"])
    assert 'has no column "agee": did you mean "age"?' in complaint(capsys, ["explain", output, '{"agee": 30}'])
    assert "takes columns" in complaint(capsys, ["predict", output, "-"])


def test_svmlight(tmp_path, capsys):
    X, y = make_ranked()
    path = str(tmp_path / "rows.svm")
    dump_svmlight_file(X, y, path, zero_based=False)
    assert main(["train", path, "-o", str(tmp_path / "m"), "--C", "1", "--holdout", "0"]) == 0
    assert "so the model was not tested" in capsys.readouterr().out
    assert main(["predict", str(tmp_path / "m"), path, "-o", str(tmp_path / "o.csv")]) == 0
    assert np.mean([float(row["label"]) == float(row["prediction"]) for row in read_csv(tmp_path / "o.csv")]) > 0.7
    assert "numbered columns" in complaint(capsys, ["explain", tmp_path / "m", "x"])
    (tmp_path / "bad.svm").write_text("1 1:0.5\n2 three:1\n")
    assert "bad.svm line 2" in complaint(capsys, ["predict", tmp_path / "m", tmp_path / "bad.svm"])


def test_evaluate_and_explain(model, reviews, capsys):
    assert main(["evaluate", model, reviews]) == 0
    assert "macro MAE" in capsys.readouterr().out
    assert main(["explain", model, "the GREAT phone was broken"]) == 0
    story = capsys.readouterr().out
    assert story.startswith("stars: ")
    assert "%" in story
    assert "great +" in story
    assert main(["explain", model, "great", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(told["probabilities"].values()) == pytest.approx(1)


def test_a_file_of_its_own_to_measure_on(reviews, tmp_path, capsys):
    arguments = ["--text", "review", "--target", "stars", "--C", "1", "-o", str(tmp_path / "m"), "--json"]
    test = write_csv(tmp_path / "test.csv", make_rows(50, seed=2))
    assert main(["train", reviews, *arguments, "--test", test, "--group", "title"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["metrics"]["rows"] == 50
    assert told["data"]["trained_on"] == 200


BAD_TABLES = {
    "ragged.csv": (b"review,stars\ngood,5\nbad,1,2\n", "ragged.csv line 3: 3 fields, but the header has 2."),
    "open.csv": (b'review,stars\n"good,5\n', "open.csv line 2: a quote is opened and never closed."),
    "empty.csv": (b"", "empty.csv is empty."),
    "header.csv": (b"review,stars\n", "header.csv has no rows."),
    "junk.csv": (bytes(range(256)) * 8, "junk.csv is binary, not text."),
    "latin.csv": ("review,stars\ntrès,5\n".encode("latin-1"), "latin.csv line 2 is not UTF-8 text: name its encoding"),
    "word.csv": (b"review,stars\ngood,5\nbad,five\n", 'word.csv line 3: "five" in column "stars" is not a number'),
    "measured.csv": (
        b"review,stars\n" + b"".join(b"good,%d.5\n" % number for number in range(50)),
        'has 50 different values in 50 rows of column "stars": these are measurements, not ranks',
    ),
    "one.csv": (b"review,stars\ngood,5\nbad,5\n", "must hold at least two different ranks"),
    "twice.csv": (b"review,review,stars\ngood,bad,5\n", 'column "review" occurs twice'),
    "table.xyz": (b"review,stars\ngood,5\n", "table.xyz has an unknown extension"),
    "broken.jsonl": (b'{"review": "good", "stars": 5}\n{"review"\n', "broken.jsonl line 2: not JSON"),
    "list.jsonl": (b"[1, 2]\n", "list.jsonl line 1: must be a JSON object"),
    "junk.parquet": (b"PAR1 junk", "junk.parquet is not a parquet file"),
    "junk.csv.gz": (b"no gzip at all", "junk.csv.gz cannot be unpacked"),
    "cut.csv.gz": (gzip.compress(b"review,stars\n" + b"good,5\n" * 999)[:-20], "cut.csv.gz cannot be unpacked"),
    "junk.csv.zst": (b"no zstandard at all", "junk.csv.zst cannot be unpacked"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables(name, tmp_path, capsys):
    content, sentence = BAD_TABLES[name]
    (tmp_path / name).write_bytes(content)
    output = tmp_path / "m.rankplane"
    assert sentence in complaint(capsys, ["train", tmp_path / name, "--text", "review", "--target", "stars", "-o", output])
    assert os.listdir(tmp_path) == [name]


def test_bad_arguments(model, reviews, tmp_path, capsys):
    train = ["train", reviews, "--text", "review", "--target", "stars", "-o", tmp_path / "m"]
    cases = [
        (["train", "missing.csv", *train[2:]], "missing.csv: No such file or directory"),
        (["train", tmp_path, *train[2:]], "is a folder, not a file"),
        ([*train[:3], "reviw", *train[4:]], 'has no column "reviw": did you mean "review"?'),
        ([*train[:5], "star", *train[6:]], 'did you mean "stars"?'),
        ([*train[:5], "zzz", *train[6:]], "its columns are id, title, review, stars."),
        ([*train[:4], *train[6:]], "--target must name the column"),
        ([*train, "--ranks", "low,high"], "is not one of the ranks low, high"),
        ([*train, "--ranks", "low"], "--ranks must name at least two"),
        ([*train, "--model", "SVM"], "--model must be one of NPSVOR"),
        ([*train, "--decision", "best"], "--decision must be one of"),
        ([*train, "--holdout", "1.5"], "--holdout must be at least 0 and below 1"),
        ([*train, "--C", "-1"], "--C must be a positive number"),
        ([*train, "--C", "inf"], "--C must be a positive number"),
        ([*train, "--jobs", "0"], "--jobs must be a number of threads"),
        ([*train, "--compact", "-1"], "--compact must be a non-negative number"),
        ([*train, "--group", "autor"], 'has no column "autor"'),
        ([*train, "--preset", "none"], "--preset must be one of default, paper, sklearn, auto. Got none."),
        ([*train[:-1], tmp_path / "no" / "m"], "is not a folder"),
        ([*train[:-1], tmp_path], "is a folder, not a file"),
        (["predict", reviews, reviews], "reviews.csv is not a model file of rankplane."),
        (["predict", tmp_path, reviews], "is a folder, not a file"),
        (["predict", model, reviews, "-o", tmp_path / "o.xyz"], "unknown extension"),
        (["predict", model, reviews, "--set", "2"], "--set must be a number between 0 and 1"),
        (["predict", model], "Missing argument 'FILE'"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["predict", model, reviews, "--prob"], "No such option"),
    ]
    for arguments, sentence in cases:
        found = complaint(capsys, arguments)
        assert sentence in found, (arguments, found)
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert "folder.csv is a folder" in complaint(capsys, ["predict", model, folder])
    assert os.listdir(tmp_path) == ["folder.csv"]


def test_a_rank_may_be_called_none(tmp_path, capsys):
    rows = [
        {"age": 20 + 3 * place + number % 3, "grade": grade}
        for place, grade in enumerate(("none", "mild", "NA"))
        for number in range(30)
    ]
    table = write_csv(tmp_path / "sev.csv", [*rows, {"age": 1, "grade": ""}])
    assert main(["train", table, "--target", "grade", "--ranks", "none,mild,NA", "-o", str(tmp_path / "m"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["data"]["ranks"] == {"none": 30, "mild": 30, "NA": 30}
    assert said["data"]["missing_target"] == 1


def test_a_cell_that_does_not_fit_is_named_by_its_line(tmp_path, capsys):
    rows = [{"age": 20 + n, "grade": 1 + n // 20} for n in range(60)]
    assert main(["train", write_csv(tmp_path / "a.csv", rows), "--target", "grade", "-o", str(tmp_path / "m")]) == 0
    capsys.readouterr()
    bad = write_csv(tmp_path / "b.csv", [{"age": 30, "grade": ""}, {"age": "old", "grade": 2}])
    for command in (["predict", str(tmp_path / "m"), bad], ["evaluate", str(tmp_path / "m"), bad]):
        assert main(command) == 2
        assert "b.csv line 3: Column 'age' must hold numbers, as it did in training. Got 'old'." in capsys.readouterr().err


def test_an_infinite_number_is_named_by_its_line(tmp_path, capsys):
    rows = [{"age": 20 + n, "grade": 1 + n // 20} for n in range(60)]
    train = ["--target", "grade", "-o", str(tmp_path / "m")]
    assert main(["train", write_csv(tmp_path / "a.csv", rows), *train]) == 0
    capsys.readouterr()
    rows[1]["age"], rows[0]["grade"] = "1e999", ""
    bad = write_csv(tmp_path / "b.csv", rows)
    for command in (["train", bad, *train], ["predict", str(tmp_path / "m"), bad]):
        assert main(command) == 2
        assert "b.csv line 3: Column 'age' must hold finite numbers. Got '1e999'." in capsys.readouterr().err


def test_the_ranks_are_no_feature(reviews, tmp_path, capsys):
    for option in ("--text", "--group"):
        arguments = ["train", reviews, "--target", "stars", "--text", "review", option, "stars", "-o", str(tmp_path / "m")]
        assert main(arguments) == 2
        assert f'{option} must not name "stars", the column of the ranks' in capsys.readouterr().err


def test_measures_on_the_training_file_come_with_a_warning(model, reviews, tmp_path, capsys):
    assert main(["evaluate", model, reviews]) == 0
    assert "reviews.csv is the file that" in capsys.readouterr().err
    assert main(["evaluate", model, write_csv(tmp_path / "new.csv", make_rows(50, seed=1))]) == 0
    assert capsys.readouterr().err == ""


def test_texts_that_are_all_empty(tmp_path, capsys):
    table = write_csv(tmp_path / "empty.csv", [{"review": " ", "stars": 1 + n % 3} for n in range(20)])
    assert main(["train", table, "--text", "review", "--target", "stars", "-o", str(tmp_path / "m")]) == 2
    assert 'empty.csv has no text in column "review"' in capsys.readouterr().err


def test_ranks_that_training_never_saw(model, reviews, tmp_path, capsys):
    path = write_csv(
        tmp_path / "new.csv", [{"title": "", "review": "good", "stars": 5}, {"title": "", "review": "bad", "stars": 7}]
    )
    sentence = "new.csv line 3: rank 7 never occurred in training, whose ranks are 1, 2, 3, 4, 5."
    assert sentence in complaint(capsys, ["evaluate", model, path])
    arguments = ["--text", "review", "--target", "stars", "-o", tmp_path / "m", "--test", path]
    assert sentence in complaint(capsys, ["train", reviews, *arguments])
    assert os.listdir(tmp_path) == ["new.csv"]


def test_a_late_mistake_leaves_no_output(model, tmp_path, capsys):
    path = tmp_path / "long.csv"
    path.write_text("title,review\n" + "a,good\n" * 9000 + "a,b,c\n")
    assert "line 9002" in complaint(capsys, ["predict", model, path, "-o", tmp_path / "out.csv"])
    assert os.listdir(tmp_path) == ["long.csv"]


@pytest.fixture
def as_nobody():
    """The superuser may do everything, so become someone who may not."""
    if os.geteuid() == 0:
        os.seteuid(65534)
    yield
    os.seteuid(os.getuid())


def test_no_permission(model, reviews, tmp_path, capsys, request):
    folder = tmp_path / "closed"
    folder.mkdir()
    secret = write_csv(tmp_path / "secret.csv", make_rows(5))
    os.chmod(secret, 0)
    os.chmod(folder, 0o500)
    for path in (tmp_path, *tmp_path.parents, *Path(model).parents):
        if not path.stat().st_mode & 0o001:
            os.chmod(path, 0o755)
    request.getfixturevalue("as_nobody")
    assert complaint(capsys, ["predict", model, secret]) == f"{secret}: Permission denied"
    sentence = f"{folder} does not allow writing, so {folder / 'out.csv'} cannot be written."
    assert complaint(capsys, ["predict", model, reviews, "-o", folder / "out.csv"]) == sentence
    os.seteuid(os.getuid())
    assert os.listdir(folder) == []


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("rankplane 0.")
    assert main([]) == 0
    assert "train" in capsys.readouterr().out
    assert complaint(capsys, ["--wersion"]).endswith("See rankplane --help.")
    assert complaint(capsys, ["explain"]).endswith("See rankplane explain --help.")


def test_nothing_is_written_over_what_is_read(model, reviews, tmp_path, capsys):
    train = ["train", reviews, "--text", "review", "--target", "stars"]
    assert "would be overwritten" in complaint(capsys, [*train, "-o", reviews])
    os.symlink(reviews, tmp_path / "link.csv")
    assert "would be overwritten" in complaint(capsys, ["predict", model, reviews, "-o", tmp_path / "link.csv"])
    assert "would be overwritten" in complaint(capsys, [*train, "-o", tmp_path / "m", "--report", tmp_path / "m"])
    assert len(read_csv(reviews)) == 200


def test_dash_is_standard_output(model, reviews, capfdbinary):
    assert main(["predict", model, reviews, "-o", "-"]) == 0
    assert capfdbinary.readouterr().out.startswith(b"id,title,review,stars,prediction\n")


def test_lines_are_answered_as_they_come(model):
    child = subprocess.Popen([*COMMAND, "predict", model, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for text in (b"great lovely phone\n", b"awful broken waste\n"):
        child.stdin.write(text)
        child.stdin.flush()
        assert child.stdout.readline().strip() in {b"1", b"2", b"3", b"4", b"5"}
    child.stdin.write("naïve, no end of line".encode())
    rest, _ = child.communicate(timeout=60)
    assert len(rest.splitlines()) == 1
    assert child.returncode == 0


def test_pipes(model):
    texts = "great lovely phone\nawful broken waste\n\n"
    done = subprocess.run([*COMMAND, "predict", model, "-", "--set", "0.8"], input=texts, capture_output=True, text=True)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert int(lines[0].split("\t")[0]) > int(lines[1].split("\t")[0])
