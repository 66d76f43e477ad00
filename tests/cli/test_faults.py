"""Faults made on purpose: nothing half-written under the asked name, nothing left over, one sentence, and no traceback ever."""

import csv
import errno
import gzip
import io
import json
import os
import random
import shutil
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta

import pytest

from command import COMMAND, start
from rankplane import files, load_model, modelfile
from rankplane.cli import commands, main
from rankplane.inputs import reading
from reviews import make_rows, write_csv

TRAIN = ["train", "reviews.csv", "--text", "review", "--target", "stars", "--C", "1", "--jobs", "1"]
JOBS = {
    "model": ([*TRAIN, "-o", "out/m.rankplane"], ["m.rankplane"]),
    "model and page": ([*TRAIN, "-o", "out/m.rankplane", "--report", "out/m.html"], ["m.rankplane", "m.html"]),
    "recalibrated": (["recalibrate", "stars.rankplane", "later.csv", "-o", "out/m.rankplane"], ["m.rankplane"]),
    "graph": (["export", "risk.rankplane", "--onnx", "out/m.onnx"], ["m.onnx"]),
    "page": (["report", "stars.rankplane", "later.csv", "-o", "out/m.html"], ["m.html"]),
    **{
        kind: (["predict", "stars.rankplane", "many.csv", "-o", f"out/o.{kind}"], [f"o.{kind}"])
        for kind in ("csv", "tsv", "jsonl", "parquet", "csv.gz", "jsonl.gz", "parquet.gz")
    },
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    write_csv(folder / "reviews.csv", make_rows(120))
    write_csv(folder / "later.csv", make_rows(40, seed=1))
    write_csv(folder / "many.csv", make_rows(1500, seed=2))
    assert main([*TRAIN[:1], str(folder / "reviews.csv"), *TRAIN[2:], "-o", str(folder / "stars.rankplane")]) == 0
    write_csv(folder / "risks.csv", [{"age": n, "risk": 1 + n // 40} for n in range(120)])
    options = ["--target", "risk", "--C", "1", "-o", str(folder / "risk.rankplane")]
    assert main(["train", str(folder / "risks.csv"), *options]) == 0
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A folder to work in, with an empty one for the output."""
    for name in os.listdir(made):
        shutil.copy(made / name, tmp_path)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def is_whole(path):
    """Whether a program that reads such files takes it."""
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    content = gzip.decompress(path.read_bytes()) if path.name.endswith(".gz") else path.read_bytes()
    if kind == "rankplane":
        return type(load_model(path)[-1]).__name__ == "NPSVOR"
    if kind == "onnx":
        import onnx

        return len(onnx.load_from_string(content).graph.output) == 3
    if kind == "html":
        return content.endswith(b"</html>\n")
    if kind == "parquet":
        import pyarrow.parquet

        return pyarrow.parquet.read_table(io.BytesIO(content)).num_rows == 1500
    lines = content.decode().splitlines()
    if kind == "jsonl":
        return len([json.loads(line) for line in lines]) == 1500
    return len(list(csv.DictReader(lines, delimiter="\t" if kind == "tsv" else ","))) == 1500


def check_failed(code, capsys, folder, names, sentence):
    """One sentence that names an output; the outputs are whole or not there; nothing else is there."""
    said = capsys.readouterr().err
    assert code == 2
    assert said.count("\n") == 1
    assert any(said == f"rankplane: out/{name}: {sentence}\n" for name in names), said
    found = sorted(os.listdir(folder))
    assert set(found) < set(names)
    assert all(is_whole(folder / name) for name in found)


class Fault:
    """Counts the steps that write, and lets one of them fail."""

    def __init__(self, monkeypatch, number):
        self.n_steps, self.failing = 0, None
        self.number = number
        monkeypatch.setattr(files.Output, "write", self.step(io.FileIO.write, naming=True))
        for name in ("fsync", "replace"):
            monkeypatch.setattr(os, name, self.step(getattr(os, name)))

    def step(self, function, naming=False):
        def attempt(*arguments):
            self.n_steps += 1
            if self.n_steps == self.failing:
                asked = arguments[0].asked if naming else None
                raise OSError(self.number, os.strerror(self.number), asked)
            return function(*arguments)

        return attempt


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_every_write_may_fail(job, number, here, monkeypatch, capsys):
    arguments, names = JOBS[job]
    fault = Fault(monkeypatch, number)
    assert main(arguments) == 0
    n_steps = fault.n_steps
    assert n_steps >= 3 * len(names)
    assert all(is_whole(here / "out" / name) for name in names)
    for failing in range(1, n_steps + 1):
        for name in os.listdir(here / "out"):
            os.unlink(here / "out" / name)
        capsys.readouterr()
        fault.n_steps, fault.failing = 0, failing
        check_failed(main(arguments), capsys, here / "out", names, os.strerror(number))


@pytest.mark.parametrize("job", JOBS)
def test_files_that_may_not_grow(job, here, capsys):
    resource = pytest.importorskip("resource")
    arguments, names = JOBS[job]
    assert main(arguments) == 0
    sizes = [os.path.getsize(here / "out" / name) for name in names]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for share in (0, 0.3, 0.99):
        shutil.rmtree(here / "out")
        (here / "out").mkdir()
        capsys.readouterr()
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(share * max(sizes)), before[1]))
        try:
            code = main(arguments)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        check_failed(code, capsys, here / "out", names, "File too large")


def test_what_was_there_stays_when_its_successor_fails(here, monkeypatch):
    fault = Fault(monkeypatch, errno.ENOSPC)
    for arguments, names in JOBS.values():
        for name in names:
            (here / "out" / name).write_bytes(b"precious")
        fault.n_steps, fault.failing = 0, 1
        assert main(arguments) == 2
        assert all((here / "out" / name).read_bytes() == b"precious" for name in names)


@pytest.fixture
def mounted(here):
    """The folder of outputs as a file system of its own."""

    def mount(options):
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", here / "out"], capture_output=True)
        if done.returncode:
            pytest.skip("cannot mount a file system here")

    yield mount
    subprocess.run(["umount", "--lazy", here / "out"], capture_output=True)


@pytest.mark.parametrize("job", ["csv", "parquet", "model and page"])
def test_a_small_disk(job, here, mounted, capsys):
    arguments, names = JOBS[job]
    mounted("size=12k")
    check_failed(main(arguments), capsys, here / "out", names, "No space left on device")


def test_a_read_only_file_system(here, mounted, capsys):
    mounted("ro")
    for arguments, names in JOBS.values():
        assert main(arguments) == 2
        expected = f"rankplane: {here / 'out'} does not allow writing, so out/{names[0]} cannot be written.\n"
        assert capsys.readouterr().err == expected


def test_a_folder_that_vanishes_during_the_work(here, monkeypatch, capsys):
    def vanishing(path, **options):
        shutil.rmtree(here / "out")
        return reading.read_batches(path, **options)

    monkeypatch.setattr(commands, "read_batches", vanishing)
    assert main(JOBS["csv"][0]) == 2
    assert capsys.readouterr().err == "rankplane: out/o.csv: No such file or directory\n"
    assert not os.path.exists(here / "out")
    assert main(JOBS["page"][0]) == 2
    assert "is not a folder, so out/m.html cannot be written" in capsys.readouterr().err


def test_inputs_that_vanish_after_reading_cost_nothing(here, monkeypatch):
    fit = commands.fitting.train_on

    def train_on(*arguments):
        os.unlink("reviews.csv")
        return fit(*arguments)

    monkeypatch.setattr(commands.fitting, "train_on", train_on)
    assert main(JOBS["model and page"][0]) == 0
    assert not os.path.exists("reviews.csv")
    assert modelfile.read_metadata("out/m.rankplane")["fingerprint"].startswith("sha256:")


@pytest.mark.skipif(os.name == "nt", reason="needs pipes with names")
def test_training_from_a_pipe_ends(here):
    """A pipe cannot be read again, for a fingerprint: that would wait for ever."""
    os.mkfifo("pipe.csv")
    with open("reviews.csv", "rb") as file, subprocess.Popen(["cp", "/dev/stdin", "pipe.csv"], stdin=file):
        assert main(["train", "pipe.csv", *TRAIN[2:], "-o", "out/m.rankplane", "--report", "out/m.html"]) == 0
    assert "fingerprint" not in modelfile.read_metadata("out/m.rankplane")


# Files that change while they are read.


def changing(path, change):
    """Batches of a file that changes after the first of them."""

    def batches(asked, **options):
        found = reading.read_batches(asked, 100, **options)
        yield next(found)
        change(path)
        yield from found

    return batches


def shrink(path):
    os.truncate(path, os.path.getsize(path) // 2)


def empty(path):
    os.truncate(path, 0)


def grow(path):
    with open(path, "ab") as file:
        file.write(b'1,a,"half a field')


def remove(path):
    os.unlink(path)


@pytest.mark.parametrize("change", [shrink, empty, grow, remove])
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "jsonl", "parquet", "parquet.gz", "csv.zst"])
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_files_that_change_while_they_are_read(change, kind, command, here, monkeypatch, capsys):
    source = f"in.{kind}"
    rows = make_rows(20_000)
    if "csv" in kind:
        write_csv("plain", rows)
    elif "jsonl" in kind:
        (here / "plain").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), "plain", row_group_size=100)
    content = (here / "plain").read_bytes()
    if kind.endswith(".gz"):
        content = gzip.compress(content, 1)
    if kind.endswith(".zst"):
        content = pytest.importorskip("zstandard").compress(content)
    (here / source).write_bytes(content)
    monkeypatch.setattr(commands, "read_batches", changing(source, change))
    arguments = ["predict", "stars.rankplane", source, "-o", "out/o.csv"]
    code = main(arguments if command == "predict" else ["evaluate", "stars.rankplane", source])
    said = capsys.readouterr().err
    assert code == 0 if not said else (code == 2 and said.startswith("rankplane: ") and said.count("\n") == 1), said
    assert os.listdir(here / "out") == (["o.csv"] if command == "predict" and code == 0 else [])


# Signals at any moment.

COMMANDS = {
    "train": [*TRAIN, "-o", "out/m.rankplane", "--report", "out/m.html"],
    "predict": ["predict", "stars.rankplane", "many.csv", "-o", "out/o.csv.gz", "--proba"],
    "evaluate": ["evaluate", "stars.rankplane", "many.csv"],
    "explain": ["explain", "stars.rankplane", "a great phone"],
    "report": ["report", "stars.rankplane", "later.csv", "-o", "out/m.html"],
    "demo": ["demo", "-o", "out"],
    "info": ["info", "stars.rankplane"],
    "compare": ["compare", "stars.rankplane", "stars.rankplane", "many.csv", "-o", "out/o.csv.gz"],
    "recalibrate": ["recalibrate", "stars.rankplane", "many.csv", "-o", "out/m.rankplane"],
    "export": ["export", "risk.rankplane", "--onnx", "out/m.onnx"],
}
SECONDS = 0.9  # about as long as the commands take here


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
@pytest.mark.parametrize("command", COMMANDS)
def test_signals_at_random_moments(command, here, answers_to_ctrl_c):
    rng = random.Random(command)
    environment = {**os.environ, "PIP_NO_INDEX": "1", "RANKPLANE_DATA": str(here / "none"), "PYTHONUNBUFFERED": ""}
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        with start([*COMMAND, *COMMANDS[command]], stdout=subprocess.DEVNULL, env=environment) as child:
            time.sleep(rng.uniform(0, SECONDS))
            child.send_signal(sent)
            code, said = child.wait(timeout=60), child.stderr.read()
        ended = {0: b""} | ({-sent: b""} if sent == signal.SIGKILL else {128 + sent: b"rankplane: stopped\n"})
        assert said == ended[code], (sent, code, said)
        shown = [name for name in os.listdir(here / "out") if not name.startswith(".")]
        assert all(is_whole(here / "out" / name) for name in shown)
        assert sent == signal.SIGKILL or sorted(os.listdir(here / "out")) == sorted(shown)


@pytest.mark.skipif(files.fcntl is None, reason="needs locks")
@pytest.mark.parametrize("job", JOBS)
def test_leftovers_of_a_killed_process_go_with_the_next_run(job, here):
    arguments, names = JOBS[job]
    for name in names:
        (here / "out" / f".{name}.rankplane-0123456789abcdef.partial").write_bytes(b"half")
    assert main(arguments) == 0
    assert sorted(os.listdir(here / "out")) == sorted(names)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_calls_that_are_interrupted_go_on(here, monkeypatch):
    """A signal every millisecond, whose handler returns: system calls end early, with EINTR or a part of their bytes."""
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for arguments, names in JOBS.values():
            assert main(arguments) == 0
            assert all(is_whole(here / "out" / name) for name in names)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_clock_that_goes_backwards(here, monkeypatch, capsys):
    now = [2e9]

    def earlier():
        now[0] -= 3600
        return now[0]

    class Calendar(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2026, 1, 1, tzinfo=UTC) - timedelta(seconds=2e9 - earlier())

    monkeypatch.setattr(time, "time", earlier)
    monkeypatch.setattr(modelfile, "datetime", Calendar)
    monkeypatch.setattr("rich.console.Console.is_terminal", True)  # so that bars are drawn
    for arguments, names in JOBS.values():
        assert main(arguments) == 0
        assert all(is_whole(here / "out" / name) for name in names)
    assert modelfile.read_metadata("out/m.rankplane")["date"].startswith("20")
    assert " -" not in capsys.readouterr().out.partition("columns, ")[2]
