"""Standard output takes every byte or somebody hears of it; what is printed never stops the work."""

import errno
import io
import json
import os
import sys

import pytest

from rankplane import streams
from rankplane.cli import main
from reviews import make_rows, write_csv


class Device(io.RawIOBase):
    """Takes a few bytes at a time, has so much room, and then fails, or would have to wait."""

    def __init__(self, at_a_time=1 << 20, room=1 << 30, failure=errno.ENOSPC):
        self.at_a_time, self.room, self.failure = at_a_time, room, failure
        self.taken = b""

    def writable(self):
        return True

    def write(self, data):
        n_bytes = min(len(data), self.at_a_time, self.room - len(self.taken))
        if n_bytes == 0 and len(data):
            if self.failure is None:
                return None
            raise OSError(self.failure, os.strerror(self.failure))
        self.taken += bytes(data[:n_bytes])
        return n_bytes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    write_csv(folder / "reviews.csv", make_rows(150))
    write_csv(folder / "later.csv", make_rows(40, seed=1))
    arguments = ["--text", "review", "--target", "stars", "--C", "1", "-o", str(folder / "m.rankplane")]
    assert main(["train", str(folder / "reviews.csv"), *arguments]) == 0
    return folder


MODES = {
    "csv": ["predict", "m.rankplane", "later.csv", "--proba"],
    "lines": ["predict", "m.rankplane", "-", "--proba"],
    "json": ["evaluate", "m.rankplane", "later.csv", "--json"],
    "tables": ["evaluate", "m.rankplane", "later.csv"],
    "explanation": ["explain", "m.rankplane", "a great phone"],
    "page": ["report", "m.rankplane", "later.csv", "-o", "page.html"],
    "training": ["train", "reviews.csv", "--text", "review", "--target", "stars", "--C", "1", "-o", "new.rankplane"],
    "help": ["train", "--help"],
    "version": ["--version"],
}
RESULTS = {"page": "page.html", "training": "new.rankplane"}


@pytest.fixture(params=MODES)
def mode(request, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"great phone\nawful\n" * 30)))
    for name in RESULTS.values():
        if os.path.exists(name):
            os.unlink(name)
    return request.param


@pytest.fixture(params=["unbuffered", "buffered"])
def run_on(request, mode, monkeypatch):
    """Run the command of the mode with standard output on a device; returns the exit code."""

    def run(device):
        layer = device if request.param == "unbuffered" else io.BufferedWriter(device, 64)
        stdout = io.TextIOWrapper(layer, encoding="utf-8", write_through=request.param == "unbuffered")
        monkeypatch.setattr(sys, "stdout", stdout)
        try:
            return main(MODES[mode])
        finally:
            assert sys.stdout is stdout
            monkeypatch.undo()
            device.room, device.at_a_time = 1 << 30, 1 << 20  # so that the layers can be closed in peace

    return run


def test_short_writes_lose_nothing(mode, run_on, folder, monkeypatch):
    short = Device(at_a_time=7)
    assert run_on(short) == 0
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"great phone\nawful\n" * 30)))
    whole = Device()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(whole), encoding="utf-8"))
    assert main(MODES[mode]) == 0
    without_seconds = [device.taken.rpartition(b" columns,")[0] or device.taken for device in (short, whole)]
    assert without_seconds[0] == without_seconds[1]
    assert len(whole.taken) > 10


@pytest.mark.parametrize("room", [0, 10])
def test_a_full_disk_is_one_sentence(room, mode, run_on, folder, capsys):
    assert run_on(Device(at_a_time=7, room=room)) == 2
    assert capsys.readouterr().err == "rankplane: standard output: No space left on device\n"
    assert mode not in RESULTS or os.path.getsize(folder / RESULTS[mode]) > 1000


@pytest.mark.parametrize("room", [0, 10])
def test_a_closed_pipe_is_silent(room, mode, run_on, folder, capsys):
    assert run_on(Device(room=room, failure=errno.EPIPE)) == 141
    assert capsys.readouterr().err == ""
    assert mode not in RESULTS or os.path.getsize(folder / RESULTS[mode]) > 1000


def test_a_stream_that_would_have_to_wait(mode, run_on, capsys):
    assert run_on(Device(room=10, failure=None)) == 2
    err = capsys.readouterr().err
    assert err.startswith("rankplane: standard output: ")
    assert err.count("\n") == 1


def test_one_failed_print_is_remembered_when_later_ones_work():
    device = Device(room=0)
    stdout = io.TextIOWrapper(device, encoding="utf-8", write_through=True)
    output = streams.DeferringOutput(stdout)
    print("lost", file=output)
    device.room = 100
    print("kept", file=output)
    with pytest.raises(OSError, match="No space left") as caught:
        output.finish()
    assert caught.value.filename == "standard output"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_letters_that_standard_output_does_not_have(encoding, folder, monkeypatch, tmp_path):
    rows = [{"größe 尺": n, "r": ("niedrig", "größer 高")[n // 10]} for n in range(20)]
    table = write_csv(tmp_path / "t.csv", rows)
    command = ["train", table, "--target", "r", "--ranks", "niedrig,größer 高", "--C", "1", "-o", str(tmp_path / "m")]
    device = Device()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(device), encoding=encoding))
    assert main(command) == 0
    assert b"20 rows" in device.taken
    device.taken = b""
    assert main([*command, "--json"]) == 0
    assert json.loads(device.taken.decode(encoding))["data"]["ranks"] == {"niedrig": 10, "größer 高": 10}


def test_complaints_to_nobody(monkeypatch):
    for stderr in (None, io.TextIOWrapper(Device(room=0), write_through=True)):
        monkeypatch.setattr(sys, "stderr", stderr)
        assert main(["predict"]) == 2
