"""Bars in a real terminal: they move, and nothing of them is left."""

import os
import re
import subprocess

import pytest

from rankplane.progress import ProgressBar, clock, fraction_done, reading_progress, search_progress, solve_progress, working
from terminal import Screen
from test_cli import COMMAND, make_rows, write_csv

pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")


def in_terminal(arguments, folder, **environment):
    """What a terminal of 80 columns shows of a command."""
    master, slave = pty.openpty()
    variables = {**os.environ, "TERM": "xterm", "COLUMNS": "80", **environment}
    with subprocess.Popen([*COMMAND, *arguments], stdout=slave, stderr=slave, stdin=slave, cwd=folder, env=variables) as child:
        os.close(slave)
        written = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not part:
                break
            written += part
    os.close(master)
    assert child.returncode == 0, written
    return Screen(written.decode())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bars")
    write_csv(folder / "reviews.csv", make_rows(300))
    write_csv(folder / "later.csv", make_rows(60, seed=1))
    return folder


TRAIN = ["train", "reviews.csv", "--text", "review", "--target", "stars", "-o", "m.rankplane"]


@pytest.mark.parametrize("options", [[], ["--C", "1"]])
def test_training_leaves_no_bar(folder, options):
    screen = in_terminal([*TRAIN, *options, "--report", "m.html"], folder)
    phases = [
        "Reading reviews.csv",
        "Reading texts",
        "Counting terms",
        "Measuring folds",
        "Final fit",
        "Calibrating",
        "Writing the page",
    ]
    phases.append("Cross-validating NPSVOR" if options else "Searching NPSVOR")
    for phase in phases:
        assert phase in screen.ever
        assert phase not in screen.left
    assert "━" not in screen.left
    assert ("Searching" in screen.ever) == (not options)
    assert screen.left.startswith("reviews.csv: 300 rows, 5 ranks")
    assert all(len(line) <= 80 for line in screen.lines)


def test_other_commands_leave_no_bar(folder):
    in_terminal([*TRAIN, "--C", "1"], folder)
    predicted = in_terminal(["predict", "m.rankplane", "later.csv", "-o", "out.csv"], folder)
    assert "Reading later.csv" in predicted.ever
    assert predicted.left.startswith("Written: out.csv (60 rows, ")
    evaluated = in_terminal(["evaluate", "m.rankplane", "later.csv"], folder)
    assert "Reading later.csv" in evaluated.ever
    assert evaluated.left.lstrip().startswith("Measured on 60 rows of later.csv")
    reported = in_terminal(["report", "m.rankplane", "later.csv", "-o", "page.html"], folder)
    assert "Measuring and writing the page" in reported.ever
    assert reported.left.startswith("Written: page.html")


def test_no_colour_where_none_is_wanted(folder):
    screen = in_terminal([*TRAIN, "--C", "1"], folder, NO_COLOR="1")
    assert "Measured on 60 rows" in screen.left
    colour = r"\x1b\[[\d;]*\b[34]\dm"
    assert not re.search(colour, screen.written)
    assert re.search(colour, in_terminal([*TRAIN, "--C", "1"], folder).written)


def test_phases_take_the_place_of_each_other(terminal):
    with ProgressBar(True) as bar:
        bar.phase("first", 10)(5, "half")
        bar.phase("second", None)
    shown = terminal()
    assert "first" in shown.ever
    assert "second" in shown.ever
    assert shown.left == ""


def test_bars_go_to_standard_error_only(capsys, monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with working(True, "something"):
        pass
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "something" in captured.err


def test_an_error_removes_the_bar(terminal):
    with pytest.raises(RuntimeError), working(True, "something"):
        raise RuntimeError
    assert terminal().left == ""


def test_silence(capsys):
    with (
        reading_progress(False, "x") as on_read,
        search_progress(False, "x", 3) as on_setting,
        solve_progress(False, "x", 0.1) as on_report,
    ):
        on_read(0.5)
        on_setting({"C": 1.0}, 1)
        assert on_report is None
    with ProgressBar(0) as bar:
        assert bar.phase("x", 3) is None
        assert list(bar.each("x", "ab")) == ["a", "b"]
    assert capsys.readouterr() == ("", "")


def test_times_and_shares():
    assert [clock(seconds) for seconds in (0, 61.4, 3661)] == ["0:00", "1:01", "1:01:01"]
    assert fraction_done([1.0, 0.01], 0.01) == 0
    assert fraction_done([0.1, 0.01], 0.01) == pytest.approx(0.5)
    assert fraction_done([0.001], 0.01) == 1
    assert fraction_done([], 0.01) == 1
