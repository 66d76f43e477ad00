"""Bars in a real terminal: they move, and nothing of them is left."""

import os
import re
import subprocess
import time

import pytest

from command import COMMAND
from rankplane.progress import (
    ProgressBar,
    SearchSteps,
    clock,
    fraction_done,
    reading_progress,
    search_progress,
    solve_progress,
    working,
)
from reviews import make_rows, write_csv
from terminal import Screen

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
        search_progress(False, "x", [("C=1", 1.0)] * 3, may_end_early=True) as on_part,
        solve_progress(False, "x", 0.1) as on_report,
    ):
        on_read(0.5)
        on_part(1.0)
        on_part.skip_to(3)
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


def test_a_search_moves_by_what_its_settings_cost():
    moves = []
    steps = SearchSteps(lambda done, note="": moves.append((done, note)), [("C=1", 1.0), ("C=2", 2.0), ("C=4", 4.0)])
    for share in (0.5, 0.5, 1 / 3, 1 / 3, 1 / 3):
        steps(share)
    assert [note for _, note in moves] == ["C=1", "C=2", "C=2", "C=2", "C=4"]
    assert [done for done, _ in moves] == pytest.approx([0.5, 1.0, 5 / 3, 7 / 3, 3.0])
    steps.skip_to(3)
    assert moves[-1] == (7.0, "")


def test_time_left_is_a_bound_where_work_may_end_early(terminal):
    for is_at_most in (False, True):
        with ProgressBar(True) as bar:
            move = bar.phase("searching", 10, is_at_most=is_at_most)
            for done in range(4):
                move(done)
                time.sleep(0.15)
        assert ("at most 0:0" in terminal().ever) == is_at_most
