"""The command as a process: how soon it is there, how it is stopped, and what it does when its streams are closed or full."""

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rankplane
from command import COMMAND, start
from rankplane.cli import main
from reviews import make_rows, write_csv

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs signals and a shell")
NAMES = ("train", "predict", "evaluate", "explain", "report", "demo", "info", "compare", "recalibrate", "export")
CLOSED = "rankplane: standard output: Bad file descriptor\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("process")
    write_csv(folder / "reviews.csv", make_rows(200))
    write_csv(folder / "many.csv", make_rows(20_000))
    arguments = ["--text", "review", "--target", "stars", "--C", "1", "-o", str(folder / "stars.rankplane")]
    assert main(["train", str(folder / "reviews.csv"), *arguments]) == 0
    return folder


@pytest.fixture
def model(folder):
    return str(folder / "stars.rankplane")


def training(folder, tmp_path):
    options = ["--text", "review", "--target", "stars", "--C", "1"]
    return [*COMMAND, "train", str(folder / "reviews.csv"), *options, "-o", str(tmp_path / "m.rankplane")]


def shell(command, redirection, **environment):
    """Exit code and standard error of a command under bash, which can close streams."""
    line = " ".join(f"'{word}'" for word in command) + " " + redirection
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env={**os.environ, **environment})
    return done.returncode, done.stderr


# What is imported, and when.


def modules_after(code):
    code = f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_help_imports_little():
    asked = [
        [],
        ["--help"],
        ["--version"],
        *([name, "--help"] for name in NAMES),
    ]
    loaded = modules_after(f"from rankplane.cli import main\nfor asked in {asked}:\n    assert main(asked) == 0")
    assert not loaded & {"numpy", "scipy", "sklearn", "joblib", "pyarrow", "rankplane._core", "rankplane.cli.commands"}


def test_the_entry_point_imports_nothing_before_it_can_be_stopped():
    loaded = modules_after("import rankplane.__main__")
    assert not loaded & {"typer", "rich", "numpy", "rankplane.cli.app", "rankplane.files", "pathlib", "inspect"}


def test_names_of_the_package_come_when_they_are_used():
    assert not modules_after("import rankplane; dir(rankplane); rankplane.__version__") & {"numpy", "sklearn"}
    assert {"numpy", "rankplane.tabular"} <= modules_after(
        "import rankplane; rankplane.text.TextVectorizer; rankplane.tabular.ColumnEncoder"
    )
    for name in rankplane.__all__:
        assert name in dir(rankplane)
        assert getattr(rankplane, name).__name__ == name
    assert rankplane.NPSVOR is rankplane.estimators.NPSVOR
    assert type(pickle.loads(pickle.dumps(rankplane.SVR(C=2)))) is rankplane.SVR
    with pytest.raises(AttributeError, match="module 'rankplane' has no attribute 'NPSVR'"):
        _ = rankplane.NPSVR
    assert not hasattr(rankplane, "__wrapped__")


# Signals.


needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize(
    ("sent", "library"),
    [
        (signal.SIGINT, "python"),
        (signal.SIGTERM, "python"),
        (signal.SIGINT, "multiarray"),
        (signal.SIGHUP, "sparsetools"),
        (signal.SIGINT, "_core"),
    ],
)
def test_a_stop_in_the_middle_of_imports(sent, library, folder, tmp_path, answers_to_ctrl_c):
    with start(training(folder, tmp_path), stdout=subprocess.DEVNULL) as child:
        while library not in Path(f"/proc/{child.pid}/maps").read_text():
            time.sleep(0.001)
        child.send_signal(sent)
        assert child.wait(timeout=60) == 128 + sent
        assert child.stderr.read() == b"rankplane: stopped\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_command_leaves_nothing(sent, model, tmp_path, answers_to_ctrl_c):
    os.mkfifo(tmp_path / "endless.csv")
    command = [*COMMAND, "predict", model, str(tmp_path / "endless.csv"), "-o", str(tmp_path / "out.csv")]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE) as child,
        open(tmp_path / "endless.csv", "wb", buffering=0) as pipe,
    ):
        pipe.write(b"title,review\n" + b"a,good\n" * 9000)
        while len(os.listdir(tmp_path)) == 1:
            time.sleep(0.05)
        child.send_signal(sent)
        assert child.wait(timeout=60) == 128 + sent
        assert child.stderr.read() == b"rankplane: stopped\n"
    assert os.listdir(tmp_path) == ["endless.csv"]


@needs_proc
def test_signals_that_are_ignored_stay_so():
    script = "import signal, sys\nfrom rankplane.__main__ import run\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    script += (
        "sys.argv[1:] = ['--version']\ntry:\n    run()\nfinally:\n    print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[1:] == ["True"]


def test_a_stop_after_the_work_changes_nothing():
    """Python takes a while to end."""
    script = "import atexit, os, signal, sys\nfrom rankplane.__main__ import run\nsys.argv[1:] = ['--version']\n"
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        script += f"atexit.register(os.kill, os.getpid(), signal.{name})\n"
    script += "run()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stop_on_a_terminal_shows_the_cursor_again(tmp_path):
    """A bar hides it."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    child = start([*COMMAND, "predict", "-", "-"], stdin=theirs, stdout=theirs)
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=60) == 143
    child.stderr.close()
    assert os.read(ours, 100).endswith(b"\x1b[?25h")
    os.close(ours)
    os.close(theirs)


# Streams.


@pytest.mark.parametrize(
    ("redirection", "expected"),
    [
        (">&-", (2, CLOSED)),
        (">/dev/null 2>&-", (0, "")),
        (">/dev/null 0<&-", (0, "")),
        (">&- 2>&- 0<&-", (2, "")),
        (">/dev/full", (2, "rankplane: standard output: No space left on device\n")),
        ("| head -1 >/dev/null; exit ${PIPESTATUS[0]}", (141, "")),
        ("| true; exit ${PIPESTATUS[0]}", (141, "")),
    ],
)
def test_a_model_outlives_its_story(redirection, expected, folder, tmp_path):
    assert shell(training(folder, tmp_path), redirection) == expected
    assert os.listdir(tmp_path) == ["m.rankplane"]
    assert type(rankplane.load_model(tmp_path / "m.rankplane")[-1]).__name__ == "NPSVOR"


@pytest.mark.parametrize(
    ("redirection", "expected"),
    [
        (">&-", (2, CLOSED)),
        (">/dev/full", (2, "rankplane: standard output: No space left on device\n")),
        ("| head -1 >/dev/null; exit ${PIPESTATUS[0]}", (141, "")),
    ],
)
def test_rows_that_cannot_be_written(redirection, expected, folder, model):
    assert shell([*COMMAND, "predict", model, str(folder / "many.csv")], redirection) == expected


def test_other_streams(model, folder):
    missing = "rankplane: standard input: Bad file descriptor\n"
    assert shell([*COMMAND, "predict", model, "-"], "0<&-") == (2, missing)
    assert shell([*COMMAND, "nonsense"], "2>/dev/full") == (2, "")
    assert shell([*COMMAND, "--help"], "| true; exit ${PIPESTATUS[0]}") == (141, "")
    lines = [*COMMAND, "predict", model, "-"]
    assert shell(lines, f"<{folder / 'many.csv'} | head -1 >/dev/null; exit ${{PIPESTATUS[0]}}") == (141, "")


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 64 kilobytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True).returncode:
        pytest.skip("cannot mount a small disk here")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_disk_that_fills_up(unbuffered, model, folder, small_disk):
    command = [*COMMAND, "predict", model, str(folder / "many.csv")]
    expected = (2, "rankplane: standard output: No space left on device\n")
    assert shell(command, f"> {small_disk / 'o.csv'}", PYTHONUNBUFFERED=unbuffered) == expected
