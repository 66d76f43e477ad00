"""Habits of a command line: completion, quiet, first rows only, standard input, columns that can be named, decisions."""

import io
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from command import COMMAND, complaint
from rankplane import load_model, read_metadata
from rankplane.cli import main
from rankplane.inputs import reading
from rankplane.inputs.reading import Dialect
from reviews import make_rows, read_csv, write_csv

TRAIN = ["--text", "review", "--target", "stars", "--C", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("habits")
    write_csv(folder / "reviews.csv", make_rows(200))
    (folder / "later.jsonl").write_text("".join(json.dumps(row) + "\n" for row in make_rows(60, seed=1)))
    write_csv(folder / "later.csv", make_rows(60, seed=1))
    assert main(["train", str(folder / "reviews.csv"), *TRAIN, "-o", str(folder / "m.rankplane")]) == 0
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def piped(arguments, content, **options):
    return subprocess.run([*COMMAND, *arguments], input=content, capture_output=True, **options)


# Shell completion.


def completed(words, shell="bash", **environment):
    asked = {"_RANKPLANE_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    asked |= {"_TYPER_COMPLETE_ARGS": words}
    done = subprocess.run(COMMAND, capture_output=True, text=True, env={**os.environ, **asked, **environment})
    assert done.stderr == ""
    return done.stdout.split()


def test_shells_complete_commands_options_and_names():
    assert completed("rankplane re") == ["report", "recalibrate"]
    assert {"--decision", "--delimiter"} <= set(completed("rankplane predict m f --de"))
    assert completed("rankplane evaluate m f --decision m") == ["mae", "mse", "macro_mae"]
    assert completed("rankplane train f --model SV") == ["SVC", "SVR", "SVMOP", "SVOR", "SVOREX"]
    assert completed("rankplane serve m --log t") == ["texts"]
    assert completed("rankplane predict m.rank") == []  # which leaves files to the shell


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash installed")
def test_the_script_for_bash_completes(tmp_path):
    """As bash itself calls it when the key is pressed."""
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    script = subprocess.run([*COMMAND, "--show-completion", "bash"], capture_output=True, text=True, env=environment).stdout
    (tmp_path / "rankplane").write_text(f"#!/bin/sh\nexec '{sys.executable}' -m rankplane \"$@\"\n")
    (tmp_path / "rankplane").chmod(0o755)
    script += """
    asked=$(complete -p rankplane | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
    COMP_WORDS=(rankplane serve m --al) COMP_CWORD=3
    $asked rankplane --al m
    echo "${COMPREPLY[@]}"
    """
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env={**os.environ, "PATH": path})
    assert done.stdout.split() == ["--allow-origin"], done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_installed(shell, tmp_path):
    """In the shell that is asked for, by the variable that typer has for tests of its own."""
    environment = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run([*COMMAND, "--show-completion", shell], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "_RANKPLANE_COMPLETE" in done.stdout
    done = subprocess.run([*COMMAND, "--install-completion", shell], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert any(tmp_path.rglob("*rankplane*"))


# Quiet.


@pytest.mark.parametrize(
    "command",
    [
        ["train", "reviews.csv", *TRAIN, "-o", "quiet.rankplane", "--report", "quiet.html"],
        ["predict", "m.rankplane", "later.csv", "-o", "quiet.csv"],
        ["report", "m.rankplane", "later.csv", "-o", "quiet.html"],
        ["recalibrate", "m.rankplane", "later.csv", "-o", "quiet.rankplane"],
    ],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize("flag", ["-q", "--quiet"])
def test_quiet(command, flag, here, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main([*command, flag]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert all(line.startswith("rankplane: warning: ") for line in captured.err.splitlines())
    assert os.path.getsize(command[command.index("-o") + 1]) > 0


def test_quiet_leaves_rows_json_and_errors(here, capfdbinary):
    assert main(["predict", "m.rankplane", "later.csv"]) == 0
    rows = capfdbinary.readouterr().out
    assert main(["predict", "m.rankplane", "later.csv", "--quiet"]) == 0
    assert capfdbinary.readouterr().out == rows != b""
    assert main(["train", "reviews.csv", *TRAIN, "-o", "quiet.rankplane", "--quiet", "--json"]) == 0
    assert json.loads(capfdbinary.readouterr().out)["metrics"]["rows"] > 0
    assert main(["predict", "m.rankplane", "absent.csv", "-q"]) == 2
    assert capfdbinary.readouterr().err == b"rankplane: absent.csv: No such file or directory\n"


def test_a_quiet_command_leaves_the_streams_as_they_were(here):
    before = sys.stdout, sys.stderr
    assert main(["predict", "m.rankplane", "later.csv", "-o", "quiet.csv", "-q"]) == 0
    assert main(["predict", "m.rankplane", "absent.csv", "-q"]) == 2
    assert (sys.stdout, sys.stderr) == before


# The first rows only.


@pytest.mark.parametrize("file", ["later.csv", "later.jsonl"])
@pytest.mark.parametrize("size", [7, 1000])
def test_limit_is_the_first_rows(file, size, here):
    whole = reading.read_all(file)
    for limit in (1, 7, 8, 59, 60, 61, 10_000):
        batches = list(reading.read_batches(file, size, dialect=Dialect(limit=limit)))
        assert sum(map(len, batches)) == min(limit, 60)
        assert [review for batch in batches for review in batch.columns["review"]] == whole.columns["review"][:limit]
        assert [line for batch in batches for line in batch.lines] == list(whole.lines[:limit])


def test_limit_of_parquet_and_svmlight(tmp_path):
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(make_rows(50)), tmp_path / "t.parquet")
    assert reading.read_all(str(tmp_path / "t.parquet"), dialect=Dialect(limit=13)).columns["id"] == list(range(13))
    (tmp_path / "t.svm").write_text("".join(f"{n % 3} 1:{n} 2:1\n" for n in range(50)))
    batch = reading.read_all(str(tmp_path / "t.svm"), dialect=Dialect(limit=13))
    assert batch.matrix.shape[0] == len(batch.columns["label"]) == 13
    assert batch.matrix[:, 0].toarray().ravel().tolist() == list(range(13))


def test_rows_after_the_limit_are_not_read(here):
    rows = (here / "later.csv").read_text().splitlines()
    with open("broken.csv", "w") as file:
        file.write("\n".join([*rows[:21], "one,field,too,many,here", ""]))
    assert main(["predict", "m.rankplane", "broken.csv", "--limit", "20", "-o", "first.csv"]) == 0
    assert len(read_csv("first.csv")) == 20
    assert main(["predict", "m.rankplane", "broken.csv", "-o", "first.csv"]) == 2


def test_limit_of_all_commands(here, capsys):
    assert main(["evaluate", "m.rankplane", "later.csv", "--limit", "25", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 25
    assert main(["train", "reviews.csv", *TRAIN, "--limit", "100", "--test", "later.csv", "-o", "part.rankplane", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["data"]["trained_on"] == told["limit"] == 100
    assert told["metrics"]["rows"] == 60  # the limit is that of the file to train on
    assert "fingerprint" not in read_metadata("part.rankplane")
    assert main(["evaluate", "part.rankplane", "reviews.csv"]) == 0
    assert capsys.readouterr().err == ""
    for limit in ("0", "-3"):
        told = complaint(capsys, ["evaluate", "m.rankplane", "later.csv", "--limit", limit])
        assert told == f"--limit must be a positive number of rows. Got {limit}."
    assert "--limit" in complaint(capsys, ["evaluate", "m.rankplane", "later.csv", "--limit", "many"])


def test_limit_of_lines(here):
    done = piped(["predict", "m.rankplane", "-", "--limit", "2"], b"great\nawful\ngreat\n")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2
    assert piped(["predict", "m.rankplane", "-", "--limit", "0"], b"great\n").returncode == 2


def test_limit_of_a_pipe_does_not_wait_for_more(here):
    command = [*COMMAND, "evaluate", "m.rankplane", "-", "--limit", "20", "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        try:
            # More than a reader takes at once, and the pipe stays open.
            running.stdin.write((here / "later.csv").read_bytes())
            running.stdin.write(b"1,t,great,5\n" * 1000)
            running.stdin.flush()
            assert running.wait(60) == 0
            assert json.loads(running.stdout.read())["rows"] == 20
        finally:
            running.kill()


# Standard input.


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "csv.gz", "svmlight"])
def test_train_reads_standard_input(ending, tmp_path):
    rows = make_rows(80)
    kind = ending.split(".")[0]
    path, columns = tmp_path / f"in.{ending}", ["--text", "review", "--target", "stars"]
    if kind in ("csv", "tsv"):
        write_csv(path, rows, "," if kind == "csv" else "\t")
    elif kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(f"{row['stars']} 1:{row['stars'] + number % 3} 3:1\n" for number, row in enumerate(rows)))
        columns = []
    if ending.endswith(".gz"):
        import gzip

        path.write_bytes(gzip.compress(path.read_bytes()))
    options = [*columns, "--C", "1"]
    assert main(["train", str(path), *options, "-o", str(tmp_path / "named")]) == 0
    asked = [] if ending == "csv" else ["--format", ending]
    done = piped(["train", "-", *options, *asked, "-o", str(tmp_path / "piped")], path.read_bytes())
    assert done.returncode == 0, done.stderr
    assert b"standard input: 80 rows" in done.stdout.replace(b"\x1b[1m", b"").replace(b"\x1b[0m", b"")
    a, b = load_model(tmp_path / "named"), load_model(tmp_path / "piped")
    np.testing.assert_array_equal(a[-1].coef_, b[-1].coef_)
    metadata = read_metadata(tmp_path / "piped")
    assert metadata["source"] == "standard input"
    assert "fingerprint" not in metadata


def test_other_commands_read_standard_input(here):
    table = (here / "later.csv").read_bytes()
    done = piped(["evaluate", "m.rankplane", "-", "--json"], table)
    assert json.loads(done.stdout)["rows"] == 60, done.stderr
    done = piped(["predict", "m.rankplane", "-", "--format", "csv"], table)
    assert done.stdout.splitlines()[0] == b"id,title,review,stars,prediction"
    assert len(done.stdout.splitlines()) == 61
    done = piped(["recalibrate", "m.rankplane", "-", "-o", "piped.rankplane"], table)
    assert read_metadata("piped.rankplane")["recalibrated"]["source"] == "standard input", done.stderr
    assert piped(["report", "m.rankplane", "-", "-o", "piped.html"], table).returncode == 0
    assert "rows of standard input" in (here / "piped.html").read_text()


def test_mistakes_on_standard_input(here, monkeypatch, capsys):
    for content, options, told in [
        (b"", [], "standard input is empty."),
        (b"review,stars\n", [], "standard input has no rows."),
        (b"review,stars\na,b,c\n", [], "standard input line 2: 3 fields, but the header has 2"),
        (b"review,stars\na,five\n", [], 'standard input line 2: "five" in column "stars" is not a number'),
        (b"text,stars\na,1\n", [], 'standard input has no column "review"'),
        (b"a", ["--format", "xls"], "--format must be one of csv tsv tab jsonl"),
        (b"a", ["--format", "parquet"], "standard input is not a parquet file"),
        (b"review,stars\na,1\nb,2\n", ["--test", "-"], "standard input is empty."),
    ]:
        (here / "piped").write_bytes(content)
        with open("piped", "rb") as file:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
            assert complaint(capsys, ["train", "-", *TRAIN, *options, "-o", "bad.rankplane"]).startswith(told)
    assert not os.path.exists("bad.rankplane")


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_standard_input_that_is_closed(here):
    line = f"'{sys.executable}' -m rankplane train - {' '.join(TRAIN)} -o bad.rankplane <&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True)
    assert done.stderr == b"rankplane: standard input: Bad file descriptor\n"


def test_format_of_a_file_whose_name_does_not_tell(here, capsys):
    os.link("later.jsonl", "export.txt")
    assert main(["evaluate", "m.rankplane", "export.txt", "--format", "jsonl"]) == 0
    assert "export.txt has an unknown extension" in complaint(capsys, ["evaluate", "m.rankplane", "export.txt"])


# Columns with names.


def test_added_columns_have_the_names_that_are_asked_for(here):
    names = ["--rank-column", "stars_predicted", "--proba-prefix", "share of ", "--set-column", "range"]
    assert main(["predict", "m.rankplane", "later.csv", "-o", "named.csv", "--proba", "--set", "0.9", *names]) == 0
    assert main(["predict", "m.rankplane", "later.csv", "-o", "plain.csv", "--proba", "--set", "0.9"]) == 0
    named, plain = read_csv("named.csv"), read_csv("plain.csv")
    assert list(named[0])[4:] == ["stars_predicted", *(f"share of {star}" for star in range(1, 6)), "range"]
    assert [list(row.values()) for row in named] == [list(row.values()) for row in plain]


def test_names_that_are_taken(here, capsys):
    for options, told in [
        (["--rank-column", "stars"], 'later.csv has a column "stars" already: use --rank-column,'),
        (["--rank-column", "p_1", "--proba"], 'Another added column is called "p_1" already'),
        (["--set-column", "prediction", "--set", "0.9"], 'Another added column is called "prediction" already'),
        (["--rank-column", " "], "--rank-column must be a name, which is not empty."),
    ]:
        assert complaint(capsys, ["predict", "m.rankplane", "later.csv", *options]).startswith(told)


# Decisions after training.


@pytest.mark.parametrize("weights", [None, "balanced", "1=3,2=2"])
@pytest.mark.parametrize("trained", ["mae", "ranker"])
def test_another_decision_is_that_of_training_with_it(weights, trained, here, capsys):
    options = [*TRAIN, *([] if weights is None else ["--class-weight", weights])]
    assert main(["train", "reviews.csv", *options, "--decision", trained, "-o", "one.rankplane"]) == 0
    for decision in ("mae", "mse", "accuracy", *(["ranker"] if weights is None else [])):
        assert main(["train", "reviews.csv", *options, "--decision", decision, "-o", "other.rankplane"]) == 0
        if trained == "ranker" and weights is not None:
            # Its planes were trained with the weights, so only the costs can be compared.
            one, other = load_model("one.rankplane"), load_model("other.rankplane")
            assert main(["predict", "one.rankplane", "later.csv", "--decision", decision, "-o", "a.csv"]) == 0
            texts = [row["review"] for row in read_csv("a.csv")]
            expected = one[-1].set_params(decision=other[-1].decision).predict(one[0].transform(texts))
            assert [int(row["prediction"]) for row in read_csv("a.csv")] == expected.tolist()
            continue
        assert main(["predict", "one.rankplane", "later.csv", "--decision", decision, "-o", "a.csv"]) == 0
        assert main(["predict", "other.rankplane", "later.csv", "-o", "b.csv"]) == 0
        assert read_csv("a.csv") == read_csv("b.csv")
        capsys.readouterr()
        assert main(["evaluate", "one.rankplane", "later.csv", "--decision", decision, "--json"]) == 0
        assert main(["evaluate", "other.rankplane", "later.csv", "--json"]) == 0
        first, second = capsys.readouterr().out.split("}\n{")
        assert json.loads(first + "}") == json.loads("{" + second)
    assert load_model("one.rankplane")[-1].get_params()["probability"]  # the file is as it was


def test_explain_takes_a_decision(here, capsys):
    for decision in ("mse", "ranker"):
        assert main(["explain", "m.rankplane", "great phone, awful and broken", "--decision", decision]) == 0
        assert {"mse": "nearest to the mean", "ranker": "the model's own rule"}[decision] in capsys.readouterr().out


def test_decisions_that_do_not_apply(here, capsys):
    told = complaint(capsys, ["predict", "m.rankplane", "later.csv", "--decision", "median"])
    assert told == "--decision must be one of mae, mse, accuracy, macro_mae, qwk, ranker. Got median."
    assert main(["train", "reviews.csv", *TRAIN, "--class-weight", "balanced", "-o", "fair.rankplane"]) == 0
    capsys.readouterr()
    told = complaint(capsys, ["predict", "fair.rankplane", "later.csv", "--decision", "ranker"])
    assert told.startswith("--decision ranker ignores the class weights that the model was trained with, balanced: train again")


# A reader that leaves early.


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
@pytest.mark.parametrize(
    "command", ["info m.rankplane", "compare m.rankplane m.rankplane later.csv", "evaluate m.rankplane later.csv"]
)
def test_head_ends_commands_without_noise(command, here):
    line = f"'{sys.executable}' -m rankplane {command} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True)
    assert done.stderr in (b"", b"rankplane: warning: later.csv: ")
    assert done.returncode in (0, 141)


def test_nothing_else_takes_the_place_of_standard_input(here, monkeypatch, capsys):
    """Not even a file that is called like its sign."""
    with open("-", "w") as file:
        file.write("not,this\n1,2\n")
    with open("later.csv", "rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        assert main(["evaluate", "m.rankplane", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 60
